/*
 * ring: delivery by the kernel's ring buffers, one for each processor, read as
 * one stream in order of time.
 *
 * Each ring belongs to an event of ours that never fires; any number of watches
 * is redirected into it.  Records are read in place.
 *
 * One thread reads; the kernel writes.
 */
#ifndef WP_RING_H
#define WP_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "os/perf_event.h"
#include "os/cause.h"

#pragma GCC visibility push(default)

struct wp_rings;

/*
 * Rings of at most size bytes for each processor (rounded down to a power of
 * two), smaller if the kernel's limit of locked memory requires it, never below
 * 64 KiB. 0 or -errno with a cause.
 */
int wp_rings_open(struct wp_rings **, size_t size, struct wp_cause *);
void wp_rings_close(struct wp_rings *);

/* The same, with a poller that is woken by each record; size 0: the
   smallest. */
int wp_rings_open_eager(struct wp_rings **, size_t size, struct wp_cause *);

/* A size that keeps all rings together within 64 MiB, at most 32 MiB each. */
size_t wp_rings_usual_size(void);

/* The number of processors with a ring (0 for NULL); the processor of ring i,
   its descriptor (to redirect to, and to poll for POLLIN), and its size in
   bytes. */
unsigned wp_rings_count(const struct wp_rings *);
int wp_rings_cpu(const struct wp_rings *, unsigned i);
int wp_rings_fd(const struct wp_rings *, unsigned i);
size_t wp_rings_size(const struct wp_rings *);

/*
 * Add a BPF ring buffer of at most size bytes to each ring (rounded like
 * theirs), whose records are merged with the others by time. 0; or -errno:
 * close the rings.
 */
int wp_rings_add_bpf(struct wp_rings *, size_t size);

/* The BPF map of ring i's buffer; < 0: there is none, or rings is NULL. */
int wp_rings_bpf(const struct wp_rings *, unsigned i);

/* Whether a ring of the kernel's has ever been so full that it may have lost
   records. */
bool wp_rings_were_full(const struct wp_rings *);

/* Drop the side records of other processes, except that this one has created
   them; 0: drop none.  Call this before any of its events is opened. */
void wp_rings_only(struct wp_rings *, pid_t);

/* Note whether the processor of this ring has no events, probably because it is
   offline. */
void wp_rings_leave_out(struct wp_rings *, unsigned ring, bool out);

/* The next processor that has events and had none when this was last asked; -1:
   there is none, or rings is NULL. */
int wp_rings_returned(struct wp_rings *);

/* A processor that is online and has no ring, because the kernel refused it
   (perhaps while it was offline), or no events: hits there are not delivered.
   -1: there is none, or rings is NULL. */
int wp_rings_uncovered(const struct wp_rings *);

/*
 * The oldest record of the last reading of the rings that is not younger than
 * horizon (ns, CLOCK_MONOTONIC), or NULL; after NULL the next call reads the
 * rings again.  The record is valid until the next call.  A horizon a little
 * before the present preserves the order among processors, since a record may
 * not have arrived in one ring while a younger one is visible in another;
 * UINT64_MAX takes all.  Where records may have been lost and the kernel has
 * not reported it yet, a LOST record with the count 0 precedes samples.
 */
const struct perf_event_header *wp_rings_next(struct wp_rings *,
    uint64_t horizon);

#pragma GCC visibility pop

#endif
