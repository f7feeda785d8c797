/*
 * held_modules: SPECs of modules that a process opens while its threads stop at
 * each hit (--stop).
 */
#ifndef HELD_MODULES_H
#define HELD_MODULES_H

#include <stdbool.h>
#include <sys/types.h>

#include "spec/spec.h"

struct held_modules;
struct process;
struct run;
struct wp_cause;
struct wp_region;
struct wp_sample;
struct wp_stops_held;

/* Be ready, if any SPEC is of such a module.  *out NULL: none is.  0, or -errno
   after a line on stderr. */
int held_modules_open(struct held_modules **out, struct run *);
void held_modules_close(struct held_modules *);

/* A SPEC, by its index, was not found in a process, for this cause, whose
   program has mapped all that it begins with: whether it waits from now on. */
bool held_modules_wait(struct held_modules *, struct process *, size_t spec,
    const struct wp_cause *);

/* Reserve slots for those of n regions that wait, which are nowhere yet.  NULL:
   nothing does. */
void held_modules_plan(struct held_modules *, const struct process *,
    struct wp_region *, size_t n);

/* The watches of a process are planned, and are about to be armed: have it
   stop at its loader's hook as well.  0 or -errno with a cause. */
int held_modules_arm(struct held_modules *, struct process *,
    struct wp_cause *);

/* A thread has called the hook; NULL: that is not known.  Then, all threads of
   its process are held: watch what is mapped now. */
void held_modules_called(struct held_modules *, const struct wp_sample *);
void held_modules_look(struct held_modules *, const struct wp_stops_held *);

#endif
