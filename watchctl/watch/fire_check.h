/*
 * fire_check: checks before the first use whether breakpoints fire on this
 * machine.
 *
 * Some hypervisors and emulators accept breakpoints that never trap.  Without
 * this check no access would be found there.
 */
#ifndef FIRE_CHECK_H
#define FIRE_CHECK_H

#include <stdbool.h>

#include "os/cause.h"

/* Fire a breakpoint on each processor that this thread may run on, or
   (registers) one set by ptrace.  0, also when that is impossible to try;
   -ENODEV after a line on stderr: one did not fire. */
int fire_check_try(bool registers);

/* The same of what a program's own watches use: where events are refused, that
   is debug registers set by ptrace. */
int fire_check_inside(void);

/* The same on each processor, without the line: the cause has it. */
int fire_check_processors(struct wp_cause *);

#endif
