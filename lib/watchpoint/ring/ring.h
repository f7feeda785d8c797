/*
 * ring: delivery by the kernel's ring buffers, one for each processor, read as
 * one stream in order of time.
 *
 * Each ring belongs to an event of ours that never fires; watches are
 * redirected into it, however many there are.  Records are read where they lie.
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
 * two), smaller when the kernel's locked-memory limit asks for it, never below
 * 64 KiB.  0 or -errno with a cause.
 */
int wp_rings_open(struct wp_rings **, size_t size, struct wp_cause *);
void wp_rings_close(struct wp_rings *);

/* The same, whose poller is woken by each record; size 0: the smallest. */
int wp_rings_open_eager(struct wp_rings **, size_t size, struct wp_cause *);

/* A size that keeps all rings together within 64 MiB, at most 32 MiB each. */
size_t wp_rings_usual_size(void);

/* How many processors have a ring (none of NULL), which one ring i is of, its
   descriptor (to redirect to, and to poll for POLLIN), and its size. */
unsigned wp_rings_count(const struct wp_rings *);
int wp_rings_cpu(const struct wp_rings *, unsigned i);
int wp_rings_fd(const struct wp_rings *, unsigned i);
size_t wp_rings_size(const struct wp_rings *);

/*
 * Have a BPF ring buffer of at most size bytes beside each (rounded like
 * theirs), whose records are given among the others, by time.  0 or -errno:
 * close them.
 */
int wp_rings_add_bpf(struct wp_rings *, size_t size);

/* The BPF map that ring i's is; < 0: there are none, of NULL neither. */
int wp_rings_bpf(const struct wp_rings *, unsigned i);

/* Whether a ring of the kernel's has ever been so full that it may have lost
   records. */
bool wp_rings_were_full(const struct wp_rings *);

/* Leave out what side records say of other processes, but that this one has
   made them; 0: nothing.  Before any of its events is opened. */
void wp_rings_only(struct wp_rings *, pid_t);

/* The processor of this ring has no events: it is offline, it seems. */
void wp_rings_leave_out(struct wp_rings *, unsigned ring);

/* A processor that runs and has no ring, since the kernel gave it none (while
   it was offline, perhaps), or no events: what happens there is not delivered.
   -1: there is none, of NULL neither. */
int wp_rings_uncovered(const struct wp_rings *);

/*
 * The oldest record that was there when the rings were last looked at and is
 * not younger than horizon (ns, CLOCK_MONOTONIC), or NULL; after NULL the next
 * call looks anew.  It is valid until the next call.  A horizon a little before
 * the present keeps order among processors, since a record may be on its way
 * into one ring while a younger one shows in another; UINT64_MAX takes all.
 * Where records may have been lost and the kernel has not said so yet, a LOST
 * record that counts none is given before samples.
 */
const struct perf_event_header *wp_rings_next(struct wp_rings *,
    uint64_t horizon);

#pragma GCC visibility pop

#endif
