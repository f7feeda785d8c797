/*
 * allocator_functions: finds the functions of a process that free objects
 * (alloc:) and those that allocate memory.
 */
#ifndef ALLOCATOR_FUNCTIONS_H
#define ALLOCATOR_FUNCTIONS_H

#include "attach/objects.h"
#include "run/run.h"

/* Put the freeing functions of C and C++, and of --free-function, into
   what->end; put the functions that resize memory or, with what->stays, all
   that allocate it, into what->call.  early: see live_broker_resolve.  0 or
   -errno with a cause: a named function was not found. */
int allocator_functions_find(struct run *, pid_t, bool early,
    struct wp_objects_what *, struct wp_cause *);

#endif
