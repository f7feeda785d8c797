/*
 * step: stepping over an instruction that was trapped before it was executed.
 *
 * Some processors (arm64) trap before the access.  A thread that continues
 * there meets the watch again, without end: the kernel would step over the
 * instruction, but what it steps over is the first one of the signal handler.
 * So the watch stays off, in this thread alone, until the thread has come to
 * the next instruction:
 *
 *	hit		its event has used up its one overflow (deliver_async.c)
 *	handler		an event on the execution of the next instruction
 *	instruction	all signals blocked, but those that it may raise itself
 *	next		the event's signal: close it; arm the watch again
 *
 * All these events are the thread's own: other threads are watched all the
 * while, and each access is counted once.  SIGTRAP events are inherited, and no
 * thread could switch off its own copy; so there is no sigtrap delivery on such
 * processors.
 *
 * If the next instruction is not reached, because this one faults and the
 * program's handler for that goes elsewhere, the thread's watch stays off, and
 * its signals stay blocked, until it hits another watch.
 *
 * Everything here is async-signal-safe.
 */
#ifndef WP_STEP_H
#define WP_STEP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <ucontext.h>

/* A thread's step; all 0: none is on. */
struct wp_step {
	bool on;
	int fd;			/* the event on the next instruction */
	uint64_t pc;		/* of the instruction itself */
	uint64_t before;	/* signals that the thread had blocked */
	uint64_t during;	/* and has for the step */
};

/* Let the thread execute one instruction at the context; before the next one it
   gets a signal (sig, with si_fd step->fd).  0 or -errno. */
int wp_step_begin(struct wp_step *, ucontext_t *, pid_t tid, int sig);

/* It has, or will not any more: the context, wherever it is, gets back the
   signals that were blocked for the step. */
void wp_step_end(struct wp_step *, ucontext_t *);

/*
 * What differs by processor: step_x86_64.c, step_aarch64.c.
 */

/* The address of the instruction after the one at the context. */
uint64_t wp_cpu_next(const ucontext_t *);

/* Whether that instruction is a system call. */
bool wp_cpu_at_syscall(const ucontext_t *);

#endif
