/*
 * held_modules: watches SPECs in modules that a process maps while its threads
 * stop at each hit (--stop).
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

/* Prepare, if any SPEC names a module that may come. *out NULL: none does.  0,
   or -errno after a line on stderr. */
int held_modules_open(struct held_modules **out, struct run *);
void held_modules_close(struct held_modules *);

/* A SPEC, by its index, was not found, for this cause, in a process whose
   program has mapped all its initial modules.  Result: whether the SPEC waits
   from now on. */
bool held_modules_wait(struct held_modules *, struct process *, size_t spec,
    const struct wp_cause *);

/* Reserve slots for those of n regions that wait and have no address yet.
   NULL: nothing waits. */
void held_modules_plan(struct held_modules *, const struct process *,
    struct wp_region *, size_t n);

/* Have a process stop at its loader's hook as well.  Its watches are planned,
   and are about to be armed.  0 or -errno with a cause. */
int held_modules_arm(struct held_modules *, struct process *,
    struct wp_cause *);

/* A thread has called the hook (NULL: it may have).  And then, with all threads
   of its process held: watch what is mapped now. */
void held_modules_called(struct held_modules *, const struct wp_sample *);
void held_modules_look(struct held_modules *, const struct wp_stops_held *);

#endif
