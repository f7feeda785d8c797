/*
 * uptime: for how long watches were on.
 *
 * Overview.  An event runs while its thread does, on its processor.  Each
 * thread has one more that never fires, on any processor: its reference.  It is
 * opened after the events of the thread's slots, in the same way inherited, and
 * read before they are disabled.  So a slot's events run together at least as
 * long as the reference ran until then; where they do not, the slot was off:
 * another process disabled its events, or the thread was on a processor where
 * it has none.
 *
 * The kernel takes the events of a thread that executes a program from it one
 * after the other, and forgets for how long each ran since its time was taken
 * last: when the thread was switched, or when that event was read or disabled.
 * So slots are read before their reference, and for how long the thread ran in
 * between is not known.  The kernel takes the reference first, because it alone
 * is not pinned, so no time is forgotten of the slots alone.
 *
 * Where whatever runs is watched, each processor has a reference instead.
 *
 * Times are the kernel's, of the same clock and the same switches of the
 * thread, so they agree to the nanosecond.
 */
#ifndef WP_UPTIME_H
#define WP_UPTIME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "os/attr.h"

#pragma GCC visibility push(default)

struct wp_events;

struct wp_uptime {
	bool known;		/* something was measured */
	unsigned threads;	/* number of threads with events of their own;
				   0: it is not known */
	uint64_t ran;	/* ns that they, and those that inherited, ran */
	uint64_t off;		/* of these ns: not all of a thread's watches
				   were on */
	/* the longest that one was off; 0: none was */
	uint64_t worst;
	unsigned watch;		/* its number */
	pid_t tid;	/* where, or in a thread that inherited from it; -1: on
			   any processor */
	unsigned processors;	/* on which the watches were, whatever ran
				   there; 0: they were of threads */
	unsigned unknown;	/* processes that are not included, because it
				   is not known of all their threads */
	unsigned executed;	/* of these, that executed another program */
};

/* Add the events of threads, which are all stopped. */
void wp_uptime_add(struct wp_uptime *, const struct wp_events *,
    const struct wp_options *);

/* Add what is known of a process. */
void wp_uptime_join(struct wp_uptime *, const struct wp_uptime *of_process);

#pragma GCC visibility pop

#endif
