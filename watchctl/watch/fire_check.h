/*
 * fire_check: whether breakpoints fire here at all, tried before the first use.
 *
 * Some hypervisors and emulators accept them and trap nothing.  Without this
 * every program would be found innocent there.
 */
#ifndef FIRE_CHECK_H
#define FIRE_CHECK_H

#include <stdbool.h>

/* Fire one on each processor that this thread may run on, or (registers) one by
   ptrace.  0, also when that cannot be tried; -ENODEV after a line on stderr:
   somewhere it did not fire. */
int fire_check_try(bool registers);

#endif
