/*
 * drain: moves records from the rings into memory, by a dedicated thread, so
 * that they wait there to be explained, and the rings stay empty for the
 * kernel.
 *
 * While it runs, the rings belong to that thread.  One thread uses a drain.
 */
#ifndef WP_DRAIN_H
#define WP_DRAIN_H

#include <stddef.h>
#include <stdint.h>

#include "os/perf_event.h"
#include "os/cause.h"

#pragma GCC visibility push(default)

struct wp_drain;
struct wp_rings;

/* What memory is given without being asked for, and the least there can be. */
#define WP_DRAIN_USUAL ((size_t)256 << 20)
#define WP_DRAIN_MIN ((size_t)2 << 20)

/*
 * Begin.  While memory (bytes) is full, records stay in the rings; when these
 * are full too, the kernel has no room for more and counts them as lost.  The
 * rings have to outlive it.  0 or -errno with a cause.
 */
int wp_drain_start(struct wp_drain **, struct wp_rings *, size_t memory,
    struct wp_cause *);

struct wp_target;

/* From now on put marks of a target's tickets among the records (bpf/ticket.h),
   where it has some; it outlives the drain.  NULL: no more. */
void wp_drain_marks(struct wp_drain *, struct wp_target *);

/* What to poll for POLLIN: records have come since wp_drain_ready. */
int wp_drain_fd(const struct wp_drain *);

/* Up to when (ns, CLOCK_MONOTONIC) all records are there that wp_drain_next
   gives from now on. */
uint64_t wp_drain_ready(struct wp_drain *);

/*
 * The oldest record, in order of time over all rings, or NULL; it is valid
 * until the next call.  After wp_drain_stop also what was left in the rings,
 * and the last marks: then NULL is the end of all.
 */
const struct perf_event_header *wp_drain_next(struct wp_drain *);

/*
 * The oldest record that this has not given yet, or NULL; it stays in memory,
 * and valid, until wp_drain_next has given it and is called again.  Who calls
 * this calls that for no other records.
 */
const struct perf_event_header *wp_drain_look(struct wp_drain *);

/* End the thread; of NULL nothing. */
void wp_drain_stop(struct wp_drain *);

/* Stop, and free what was not taken. */
void wp_drain_free(struct wp_drain *);

#pragma GCC visibility pop

#endif
