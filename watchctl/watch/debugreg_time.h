/*
 * debugreg_time: measures for how long the debug registers of one thread were
 * on, by its tracer.
 *
 * Only a thread's tracer can set or clear its registers, and the kernel
 * switches them with the thread.  So if the tracer finds them at the end as it
 * has set them, they were set for all the time that the thread ran in between.
 * The time is the scheduler's.
 *
 * If they differ at the end, the time of the change is unknown, and all of that
 * time counts as a gap.  Nothing is known of a thread that was not stopped
 * again before it ended.
 */
#ifndef DEBUGREG_TIME_H
#define DEBUGREG_TIME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "ring/uptime.h"
#include "ptrace/ptrace.h"

/* All zero: not begun. */
struct debugreg_time {
	bool begun;
	bool counted;			/* among the threads */
	uint64_t ran;			/* ns, when it began */
	struct wp_slot slot[WP_DEBUG_REGISTERS];
	unsigned on;
};

/* The registers of a stopped thread have just been set in this way.  If none is
   on, nothing is measured. */
void debugreg_time_begin(struct debugreg_time *, pid_t tid,
    const struct wp_slot slot[WP_DEBUG_REGISTERS], unsigned on);

/* The registers are about to be changed, or the thread is about to end; it is
   stopped.  A gap is counted for this watch.  Does nothing before
   debugreg_time_begin. */
void debugreg_time_end(struct debugreg_time *, pid_t tid, unsigned watch,
    struct wp_uptime *);

/* The thread has just executed another program, before which its registers were
   on. */
void debugreg_time_executed(struct debugreg_time *, pid_t tid,
    struct wp_uptime *);

/* The thread has ended or was released: if measuring had begun, the time is
   unknown. */
void debugreg_time_lost(struct debugreg_time *, struct wp_uptime *);

#endif
