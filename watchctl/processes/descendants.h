/*
 * descendants: the processes that watched processes create with -f, and whether
 * one of them executed another program, which ends its watches.
 *
 * The kernel records the creation and the end of processes and threads.  But
 * for a process that executes another program it records no end, because that
 * removes the events.  So if a process is gone, or lives and has executed a
 * program, and the ends of its threads were not all recorded, it has executed
 * one.
 */
#ifndef DESCENDANTS_H
#define DESCENDANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "processes/children.h"

struct descendant {
	struct child child;
	long threads;			/* by their records */
	uint64_t gone;			/* ns: when it was seen to be no longer
					   watched; 0: it was not */
};

/* All zero: there are none. */
struct descendants {
	struct descendant *one;		/* n of them, that have not ended */
	size_t n, cap, many;		/* from many on, it is looked who is
					   gone */
	uint64_t left;			/* ns: the watch ended then; 0: it has
					   not */
	struct child executed;		/* the first that did; pid 0: none */
	bool unknown;			/* one was perhaps forgotten */
};

/* A record, in the order of time; and whether a process was caught as it
   executed a program, after it was created at this time, ns. */
void descendants_made(struct descendants *, const struct child *,
    bool (*caught)(void *arg, const struct child *), void *arg);
void descendants_thread(struct descendants *, pid_t, bool ended);

/* The watch ends now: what is created or executed after that is of no
   interest.  To be called before the events are disabled, when all records from
   before `since`, ns, have been given. */
void descendants_leave(struct descendants *, uint64_t since);

/* All records have been given: decide. */
void descendants_settle(struct descendants *,
    bool (*caught)(void *arg, const struct child *), void *arg);

void descendants_close(struct descendants *);

#endif
