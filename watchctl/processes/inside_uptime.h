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

/* All zero: not begun. */
struct inside_uptime {
	const struct event_dups *dups;
	pid_t pid;
	int clock;			/* -EBUSY: none, because the program had
					   several threads; other -errno:
					   none */
	uint64_t since;			/* ns: when it began, with one thread */
	unsigned made;			/* threads that the program has created
					   since */
	uint64_t on[WP_WATCHES_MAX][WP_SLOTS_MAX];	/* by the duplicates */
	bool measured[WP_WATCHES_MAX];
};

/* Begin, in a program with one thread, which waits; with several it would be
   unknown which of them creates more.  The duplicates must outlive this.
   until_exec: the clock ends, as the watches do, when the program executes
   another one, so that no gap appears. */
void inside_uptime_begin(struct inside_uptime *, const struct event_dups *,
    pid_t, bool until_exec);

/* The program created another thread at this time, ns. */
void inside_uptime_thread(struct inside_uptime *, uint64_t time);

/* Determine the times up to now, of a program that may run or have ended.  They
   are unknown if this has not begun, or there is no clock, or a watch cannot be
   measured. uptime.watch is the channel's index; uptime.threads counts the
   reported threads. */
void inside_uptime_end(struct inside_uptime *, struct wp_uptime *);

void inside_uptime_close(struct inside_uptime *);

#endif
