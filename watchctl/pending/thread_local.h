/*
 * thread_local: where a thread has its own instance of a thread-local variable.
 */
#ifndef THREAD_LOCAL_H
#define THREAD_LOCAL_H

#include <sys/types.h>

#include "box/live_box.h"

/* As live_box_resolve, in a process that runs, also for the instance that the SPEC's
   thread has of a thread-local variable: that one is stopped for a moment. */
int thread_local_resolve(struct live_box *, pid_t, struct spec *,
    struct spec_place *, struct wp_cause *);

/* When its instances are watched in a process: whether the thread of each SPEC was
   there until then, whose end is not seen if it came before.  0 or -errno with a
   cause.  Of a process that ends it is not asked. */
int thread_local_check(pid_t, const struct spec *, size_t n, struct wp_cause *);

#endif
