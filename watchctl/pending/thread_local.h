/*
 * thread_local: finds the address of a thread's instance of a thread-local
 * variable.
 */
#ifndef THREAD_LOCAL_H
#define THREAD_LOCAL_H

#include <sys/types.h>

#include "broker/live_broker.h"

/* Which option keeps a run from watching each thread's; NULL: none does. */
struct options;
const char *thread_local_not_with(const struct options *);

/* As live_broker_resolve, in a process that runs or is held by the calling
   thread, and also for the instance that the SPEC's thread has of a thread-local
   variable; that thread is stopped for a moment.  each: if the SPEC names no
   thread, for the instances of all threads.  -EAGAIN: the thread has none now,
   and may get one. */
int thread_local_resolve(struct live_broker *, pid_t, struct spec *, bool each,
    bool early, struct spec_place *, struct wp_cause *);

/* When its instances are watched in a process: whether the thread of each SPEC
   was there until then, whose end is not seen if it came before.  0 or -errno
   with a cause.  Of a process that ends it is not asked. */
int thread_local_check(pid_t, const struct spec *, size_t n, struct wp_cause *);

#endif
