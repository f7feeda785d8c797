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

/* The default and the least memory, bytes. */
#define WP_DRAIN_USUAL ((size_t)256 << 20)
#define WP_DRAIN_MIN ((size_t)2 << 20)

/*
 * Start the thread.  While memory (bytes) is full, records stay in the rings;
 * when these are full too, the kernel counts further records as lost.  The
 * rings must outlive the drain. 0 or -errno with a cause.
 */
int wp_drain_start(struct wp_drain **, struct wp_rings *, size_t memory,
    struct wp_cause *);

struct wp_target;

/* From now on insert marks of a target's tickets among the records
   (bpf/ticket.h), if it has tickets.  The target must outlive the drain.  NULL:
   insert no more. */
void wp_drain_marks(struct wp_drain *, struct wp_target *);

/* The descriptor to poll for POLLIN, which means that records have come since
   wp_drain_ready.  It belongs to the drain. */
int wp_drain_fd(const struct wp_drain *);

/* The time (ns, CLOCK_MONOTONIC) up to which all records are available that
   wp_drain_next returns from now on. */
uint64_t wp_drain_ready(struct wp_drain *);

/*
 * The oldest record, in order of time over all rings, or NULL; it is valid
 * until the next call.  After wp_drain_stop it also returns what was left in
 * the rings, and the last marks; NULL then means that there are no more.
 */
const struct perf_event_header *wp_drain_next(struct wp_drain *);

/*
 * The oldest record that this function has not returned yet, or NULL.  It stays
 * in memory, and valid, until wp_drain_next has returned it and is called
 * again.  A caller of this function must call wp_drain_next only for records
 * that it has returned.
 */
const struct perf_event_header *wp_drain_look(struct wp_drain *);

/* End the thread.  NULL: nothing to do. */
void wp_drain_stop(struct wp_drain *);

/* Stop, and free the drain with the records that were not taken. */
void wp_drain_free(struct wp_drain *);

#pragma GCC visibility pop

#endif
