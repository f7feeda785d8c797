/*
 * async_count: what an event that signals one thread has counted (the async
 * delivery).
 *
 * Overview.  Its signal is a standard one, so that there always is room for it;
 * but while one is pending it stands for all that follow, of this event and of
 * others.  So each event has a ring of one page, into which the kernel writes
 * where in the program the thread was at each overflow.  If that is where the
 * signal finds the thread, the signal was caused by the step before; otherwise
 * the signal is late, and what caused it is not known.  The event's count shows
 * how many accesses there were.
 *
 * Signal safety: wp_async_count_take is async-signal-safe.
 */
#ifndef WP_ASYNC_COUNT_H
#define WP_ASYNC_COUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/perf_event.h"

struct wp_async_count {
	struct perf_event_mmap_page *ring;	/* NULL: none */
	size_t size;		/* of its data */
	uint64_t taken;		/* accesses that were asked about so far */
};

/* Where a thread continues after a signal. */
struct wp_at {
	uint64_t pc, sp;
};

/* For an event made with wp_attr_fires.  0 or -errno; -ENOBUFS: too much memory
   would be locked. */
int wp_async_count_open(struct wp_async_count *, int fd);
void wp_async_count_close(struct wp_async_count *);

/* The number of accesses since the last call; 0: no overflow was among them.
   *late is set unless all overflows were caused by the instruction after which
   the thread is now. */
uint64_t wp_async_count_take(struct wp_async_count *, int fd, struct wp_at,
    bool *late);

#endif
