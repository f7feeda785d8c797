/*
 * bpf_ring: a BPF ring buffer into which the programs on one processor write
 * perf samples.  Each record is contiguous.
 *
 * One thread reads; programs write.  A part of the buffer is mapped only when
 * programs have reached it, since mapping takes longer than making the buffer.
 */
#ifndef WP_BPF_RING_H
#define WP_BPF_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/perf_event.h"

enum { WP_BPF_RING_PARTS = 64 };	/* at most, in size bytes */

struct wp_bpf_ring {
	int map;		/* the BPF map; < 0: there is none */
	uint64_t *taken;	/* the consumer position: the kernel may
				   overwrite what is before it */
	const uint64_t *made;	/* the producer position: how far programs have
				   written */
	const uint8_t *data;	/* size bytes, mapped twice in a row; of
				   these: */
	bool mapped[2 * WP_BPF_RING_PARTS];	/* the parts that are mapped */
	uint64_t size;
	uint64_t at;		/* the position of the next record */
	uint64_t head;		/* the producer position when last read */
};

/* Make a ring buffer of size bytes, a power of two and at least a page.  0 or
   -errno: there is none. */
int wp_bpf_ring_open(struct wp_bpf_ring *, size_t size);
void wp_bpf_ring_close(struct wp_bpf_ring *);

/* Look for new records, and give the space of those that were read back.  A
   part that cannot be mapped for want of memory is treated as not written
   yet. */
void wp_bpf_ring_look(struct wp_bpf_ring *);

/* The next record; NULL: there is none, or it is not complete. */
const struct perf_event_header *wp_bpf_ring_record(const struct wp_bpf_ring *);

/* Step over that record. */
void wp_bpf_ring_advance(struct wp_bpf_ring *);

#endif
