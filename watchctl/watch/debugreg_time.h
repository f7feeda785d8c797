/*
 * debugreg_time: for how long the debug registers of one thread were on, as its
 * tracer measures it.
 *
 * The kernel lets nobody but a thread's tracer set or clear its registers, and
 * switches them with the thread.  So if the tracer finds them at the end as it
 * has set them, they were set for all the time that the thread ran in between.
 * The time is the scheduler's.
 *
 * If they are different at the end, it is not known when they were changed:
 * then all of that time counts as a gap.  Nothing is known of a thread that was
 * not stopped again before it ended.
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

/* The registers of a stopped thread have just been set so.  If none is on,
   there is nothing to be measured. */
void debugreg_time_begin(struct debugreg_time *, pid_t tid,
    const struct wp_slot slot[WP_DEBUG_REGISTERS], unsigned on);

/* They are about to be changed, or the thread is about to end; it is stopped.
   A gap is counted for this watch.  Does nothing if it has not begun. */
void debugreg_time_end(struct debugreg_time *, pid_t tid, unsigned watch,
    struct wp_uptime *);

/* The thread has ended, or is let go: if this had begun, it is not known. */
void debugreg_time_lost(struct debugreg_time *, struct wp_uptime *);

#endif
