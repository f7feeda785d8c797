/*
 * inside_uptime: for how long a program's watches on itself were on, compared
 * with the time that its threads ran.
 *
 * Duplicates of the watches' events measure the former; an event of this
 * process, its clock, which the program cannot influence, measures the latter
 * (uptime.h).  At the beginning the clock is opened after the duplicates were
 * read, and at the end it is read before them, so that it never shows more than
 * they do.
 */
#ifndef INSIDE_UPTIME_H
#define INSIDE_UPTIME_H

#include "ring/uptime.h"
#include "processes/event_dups.h"

/* All zero: it has not begun. */
struct inside_uptime {
	const struct event_dups *dups;
	pid_t pid;
	int clock;			/* -EBUSY: none, as it had several
					   threads; other -errno: none */
	uint64_t since;			/* ns: it had one thread then */
	unsigned made;			/* threads that it made later */
	uint64_t on[WP_WATCHES_MAX][WP_SLOTS_MAX];	/* by the copies */
	bool measured[WP_WATCHES_MAX];
};

/* Begin, in a program that has one thread, which waits: with several it would
   not be known which of them creates more.  The duplicates live as long.
   until_exec: the clock ends, as the watches do, when the program executes
   another one, so that there is no gap then. */
void inside_uptime_begin(struct inside_uptime *, const struct event_dups *,
    pid_t, bool until_exec);

/* It has made another thread, at that time, ns. */
void inside_uptime_thread(struct inside_uptime *, uint64_t time);

/* Up to now, of a program that may run or have ended: not known if it has not
   begun, or there is no clock, or a watch is not to be measured.  uptime.watch
   is the channel's index; uptime.threads are those that were reported. */
void inside_uptime_end(struct inside_uptime *, struct wp_uptime *);

void inside_uptime_close(struct inside_uptime *);

#endif
