/*
 * initial_values: determines how values are read, and the values of the watched
 * bytes when the watch began, so that the first hit has an old value.
 *
 * If all threads were held, the bytes were read then.  Otherwise they are read
 * now, and later hits begin from there.
 */
#ifndef INITIAL_VALUES_H
#define INITIAL_VALUES_H

#include "run/run.h"

/* For n processes that were not held since their execve: find other processes
   that have their memory, before they are armed and again afterwards; and
   report one of these that is not watched, unless it soon executes another
   program. */
void initial_sharers_find(const struct run *, struct process *, size_t n,
    bool armed);
void initial_sharers_report(struct run *, const struct process *);

/* Pass the initial values to the session's explainer; watches are armed and the
   session is ready. */
void initial_values_report(struct run *);

/* The same for one more watch, by its index. */
void initial_value_report(struct run *, size_t watch, pid_t);

/* The same for a place that a watch has moved to. */
void initial_place_report(struct run *, const struct ex_watch *, pid_t);

/* Whether every write to these bytes is a hit. */
bool initial_writes_hit(const struct run *, pid_t, uint64_t addr, uint64_t len);

#endif
