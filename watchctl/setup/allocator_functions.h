/*
 * allocator_functions: finds the functions of a process that free objects
 * (alloc:) and hand out memory.
 */
#ifndef ALLOCATOR_FUNCTIONS_H
#define ALLOCATOR_FUNCTIONS_H

#include "attach/objects.h"
#include "run/run.h"

/* Those of C and C++, and of --free-function, go into what->end; what resizes,
   or, what->stays, hands out memory into what->call.  early: as of
   live_broker_resolve.  0 or -errno with a cause: there is none of that name. */
int allocator_functions_find(struct run *, pid_t, bool early,
    struct wp_objects_what *, struct wp_cause *);

#endif
