/*
 * bpf_ring: a BPF ring buffer that programs of one processor write perf's
 * samples to.  Its records lie in one piece.
 *
 * One thread reads; programs write.
 */
#ifndef WP_BPF_RING_H
#define WP_BPF_RING_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

struct wp_bpf_ring {
	int map;		/* the kernel's; < 0: there is none */
	uint64_t *taken;	/* what the kernel knows to be free */
	const uint64_t *made;	/* how far programs have come */
	const uint8_t *data;	/* size bytes, twice in a row */
	uint64_t size;
	uint64_t at;		/* the next record */
	uint64_t head;		/* made, when last looked at */
};

/* One of size bytes, a power of two and at least a page.  0 or -errno: there is
   none. */
int wp_bpf_ring_open(struct wp_bpf_ring *, size_t size);
void wp_bpf_ring_close(struct wp_bpf_ring *);

/* See what has come, and give back what was read. */
void wp_bpf_ring_look(struct wp_bpf_ring *);

/* The next record; NULL: there was none, or it is not finished. */
const struct perf_event_header *wp_bpf_ring_record(const struct wp_bpf_ring *);

/* Leave that record. */
void wp_bpf_ring_advance(struct wp_bpf_ring *);

#endif
