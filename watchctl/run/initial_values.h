/*
 * initial_values: how values are read, and the values of the watched bytes when
 * the watch began, so that the first hit has an old value.
 *
 * If all threads were held, the bytes were read then.  Otherwise they are read
 * now, which is what a later hit finds.
 */
#ifndef INITIAL_VALUES_H
#define INITIAL_VALUES_H

#include "run/run.h"

/* Of n processes that were not held since they executed their programs: find
   others that have their memory, before they are armed and again when they are;
   and report one that is not watched, unless it has soon executed another
   program. */
void initial_sharers_find(const struct run *, struct process *, size_t n,
    bool armed);
void initial_sharers_report(struct run *, const struct process *);

/* Watches are armed and the session is ready: pass it to its explainer. */
void initial_values_report(struct run *);

/* The same of one more watch, by its index. */
void initial_value_report(struct run *, size_t watch, pid_t);

/* The same of a place that a watch has moved to. */
void initial_place_report(struct run *, const struct ex_watch *, pid_t);

/* Whether all writes there are hits. */
bool initial_is_seen(const struct run *, pid_t, uint64_t addr, uint64_t len);

#endif
