/*
 * bpf_ring: a BPF ring buffer into which the programs on one processor write
 * perf samples.  Each record is contiguous.
 *
 * One thread reads; programs write.  What they never came to is not mapped,
 * since that takes longer than to make it.
 */
#ifndef WP_BPF_RING_H
#define WP_BPF_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/perf_event.h"

enum { WP_BPF_RING_PARTS = 64 };	/* at most, in size bytes */

struct wp_bpf_ring {
	int map;		/* the kernel's; < 0: there is none */
	uint64_t *taken;	/* what the kernel knows to be free */
	const uint64_t *made;	/* how far programs have come */
	const uint8_t *data;	/* size bytes, twice in a row; of these, */
	bool mapped[2 * WP_BPF_RING_PARTS];	/* parts that are mapped */
	uint64_t size;
	uint64_t at;		/* the next record */
	uint64_t head;		/* made, when last looked at */
};

/* One of size bytes, a power of two and at least a page.  0 or -errno: there is
   none. */
int wp_bpf_ring_open(struct wp_bpf_ring *, size_t size);
void wp_bpf_ring_close(struct wp_bpf_ring *);

/* See what has come, and give back what was read.  What cannot be mapped, for
   want of memory, has not come yet. */
void wp_bpf_ring_look(struct wp_bpf_ring *);

/* The next record; NULL: there was none, or it is not finished. */
const struct perf_event_header *wp_bpf_ring_record(const struct wp_bpf_ring *);

/* Leave that record. */
void wp_bpf_ring_advance(struct wp_bpf_ring *);

#endif
