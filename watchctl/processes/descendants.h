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
	uint64_t seen;			/* ns: it had executed no program then;
					   0: since it was born */
	uint64_t gone;			/* ns: when it was found to be no longer
					   watched; 0: it is */
};

/* All zero: there are none. */
struct descendants {
	struct descendant *one;		/* n of them, that have not ended */
	size_t n, cap, many;		/* from many on, ended ones are looked
					   for */
	uint64_t left;			/* ns: the end of the watch; 0: it has
					   not ended */
	struct child executed;		/* the first that executed a program;
					   pid 0: none */
	bool unknown;			/* one was perhaps forgotten */
};

/* Add a record, in the order of time. caught tells whether a process was held
   when it executed a program after it had been created. */
void descendants_made(struct descendants *, const struct child *,
    bool (*caught)(void *arg, const struct child *), void *arg);
void descendants_thread(struct descendants *, pid_t, bool ended);

/* Call fn for each that lives and has executed a program after this time, ns,
   and forget it.  The older one is, the less often it is looked at, down to ten
   times a second, unless all are to be. */
void descendants_find_executed(struct descendants *, bool all,
    void (*fn)(void *arg, const struct child *, uint64_t after), void *arg);

/* The watch ends now: what is created or executed after that is of no
   interest.  To be called before the events are disabled, when all records from
   before `since`, ns, have been given. */
void descendants_leave(struct descendants *, uint64_t since);

/* All records have been given: decide. */
void descendants_settle(struct descendants *,
    bool (*caught)(void *arg, const struct child *), void *arg);

void descendants_close(struct descendants *);

#endif
