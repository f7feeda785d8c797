/*
 * tracepoint: describes a tracepoint, by the kernel's tracing file system.
 */
#ifndef WP_TRACEPOINT_H
#define WP_TRACEPOINT_H

#include <stdbool.h>
#include <stdint.h>

struct wp_tracepoint {
	uint64_t id;		/* config of its event */
	uint32_t offset;	/* of a field of 4 bytes, in its raw bytes */
};

enum { WP_TRACEFS_PATH = 256 };

/* The path of a file there: of the i-th place, from 0, where it may be mounted.
   False: there are no more. */
bool wp_tracefs_path(char path[WP_TRACEFS_PATH], unsigned i, const char *file);

/* Find one by its name ("GROUP/NAME"), and where it has a field of 4 bytes.  0
   or -errno: the file system is not mounted, or there is no such one. */
int wp_tracepoint_find(struct wp_tracepoint *, const char *name,
    const char *field);

#endif
