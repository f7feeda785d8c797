/*
 * instances: the instances of a thread-local variable, one for each thread.
 */
#ifndef INSTANCES_H
#define INSTANCES_H

#include <stddef.h>
#include <sys/types.h>

struct run;
struct ex_record;
struct wp_target_event;

/* Take note of a record before it is passed on to the session. */
void instances_take(struct run *, const struct ex_record *);

/* Note that a thread is armed with these events; or that it has ended, and with
   it its instances of watches first to first + n - 1.  Any thread may call
   these. */
void instances_armed(struct run *, pid_t, pid_t tid,
    const struct wp_target_event *, int n);
void instances_left(struct run *, pid_t, pid_t tid, size_t first, size_t n);

/* Note the events that were opened since their watches were described. */
void instances_learn(struct run *);

/* Report what was noted since the last call, once the report has begun. */
void instances_report(struct run *);

void instances_free(struct run *);

#endif
