/*
 * trap_cpu: what differs by processor about traps.  One of trap_x86_64.c and
 * trap_aarch64.c implements it.
 */
#ifndef WP_TRAP_CPU_H
#define WP_TRAP_CPU_H

#include <stdbool.h>

/* Whether a data access is trapped before it is made.  A thread that goes on
   from the trap, as a signal's handler or a tracer finds it, then makes it
   again. */
bool wp_cpu_traps_before(void);

/* Whether the kernel has a thread step over what was trapped, with its watches
   off.  It forgets about that if a tracer stops the thread before the step is
   made: nothing is trapped in that thread any more. */
bool wp_cpu_kernel_steps(void);

/* Whether the accesses that the kernel makes to a program's memory are
   trapped. */
bool wp_cpu_traps_kernel(void);

/* Whether 32-bit programs can be watched. */
bool wp_cpu_watches_narrow(void);

#endif
