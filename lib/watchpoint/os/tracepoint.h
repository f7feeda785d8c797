/*
 * tracepoint: describes a tracepoint, by the kernel's tracing file system.
 */
#ifndef WP_TRACEPOINT_H
#define WP_TRACEPOINT_H

#include <stdint.h>

struct wp_tracepoint {
	uint64_t id;		/* config of its event */
	uint32_t offset;	/* of a field of 4 bytes, in its raw bytes */
};

/* Find one by its name ("GROUP/NAME"), and where it has a field of 4 bytes.  0
   or -errno: the file system is not mounted, or there is no such one. */
int wp_tracepoint_find(struct wp_tracepoint *, const char *name,
    const char *field);

#endif
