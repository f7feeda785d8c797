/*
 * fire_check: tries before the first use whether breakpoints fire on this
 * machine.
 *
 * Some hypervisors and emulators accept breakpoints that never trap.  Without
 * this check every program would be found innocent there.
 */
#ifndef FIRE_CHECK_H
#define FIRE_CHECK_H

#include <stdbool.h>

/* Fire one on each processor that this thread may run on, or (registers) one by
   ptrace.  0, also when that cannot be tried; -ENODEV after a line on stderr:
   somewhere it did not fire. */
int fire_check_try(bool registers);

#endif
