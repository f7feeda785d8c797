/*
 * thread_local: finds the address of a thread's instance of a thread-local
 * variable.
 */
#ifndef THREAD_LOCAL_H
#define THREAD_LOCAL_H

#include <sys/types.h>

#include "broker/live_broker.h"

/* The option that prevents a run from watching each thread's instance; NULL:
   none does. */
struct options;
const char *thread_local_not_with(const struct options *);

/* As live_broker_resolve, in a process that runs or is held by the calling
   thread, and also for a thread-local variable: the instance of the SPEC's
   thread, which is stopped for a moment; each: if the SPEC names no thread, the
   instances of all threads. -EAGAIN: the thread has no instance now, and may
   get one. */
int thread_local_resolve(struct live_broker *, pid_t, struct spec *, bool each,
    bool early, struct spec_place *, struct wp_cause *);

/* Check, when instances are watched in a process, that the thread of each SPEC
   has lived until then; an earlier end is not noticed otherwise.  0 or -errno
   with a cause.  A process that ends is not checked. */
int thread_local_check(pid_t, const struct spec *, size_t n, struct wp_cause *);

#endif
