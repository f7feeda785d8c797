/*
 * ptrace_loop: threads that are traced while they run, for as long as something
 * is armed in them that is not inherited: debug registers, or events that
 * signal one thread.  Its users are stop.c and watchctl's tracers of debug
 * registers.
 *
 * Overview.  Each thread, when it is stopped for whatever reason, is first
 * brought up to date: the owner of the loop arms it as it should be by now, or
 * has it released.  Then it goes on as it would have: with its signal, its
 * siginfo untouched; or stopped with its process until SIGCONT; a thread that
 * is made stops before its first instruction, so it is armed from there on.
 * Children made by fork(2) are not traced, and have no debug registers; but
 * those of an owner that adopts them.
 *
 *	wp_ptrace_loop_begin -> wp_ptrace_loop_all, wp_ptrace_loop_one
 *	    -> (wp_ptrace_loop_update), wp_ptrace_loop_step ...
 *	    -> wp_ptrace_loop_end
 *
 * What tracing lets a program notice: TracerPid in /proc; no debugger can
 * attach; and a signal that it ignores interrupts its sleeping system calls for
 * a moment, so that the few that cannot be restarted (epoll_wait(2), semop(2),
 * sockets with a timeout) fail with EINTR, as they do after SIGSTOP and
 * SIGCONT.
 *
 * Waiting.  The tracer is a process of its own, with one thread and no
 * children, which has SIGCHLD blocked and waits for it when there is nothing to
 * do:
 *
 *  - A thread of the watched program's parent would not do: to such a parent
 *    wait(2) shows the stops of its child, and takes them away from the tracer.
 *    With another process, the parent sees of it what it would without a
 *    tracer.
 *  - The first thread's zombie is never reaped here.  When the process has
 *    ended the tracer has to end, and the kernel hands the zombie on to the
 *    parent.
 *
 * Death.  Stops are looked at and not taken, so if the tracer is killed, every
 * thread goes on at once, and gets the signal it was about to get (but for one
 * whose siginfo was just being changed: that is lost).  But its debug registers
 * stay set.  From then on a hit is a SIGTRAP of the kernel's making
 * (TRAP_HWBKPT, which does not name the register), and it kills a program that
 * has no handler, or that hits in a thread which blocks SIGTRAP.  So a caller
 * that arms debug registers installs a handler first, and the tracer outlives
 * its helper.
 *
 * One thread uses a loop.
 */
#ifndef WP_PTRACE_LOOP_H
#define WP_PTRACE_LOOP_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "ptrace/ptrace.h"
#include "stop/thread_table.h"

enum { WP_TRACER_LATER = -1 };

/* What its owner does; the functions below call these. */
struct wp_ptrace_loop_calls {
	size_t size;	/* of its structure for a thread, which begins with
			   struct wp_thread; the rest is zero at first */
	/* A thread is stopped: arm it; thread->update is 0 at its first time.
	   Result: whether it is still to be traced; if not, nothing must be
	   left armed. */
	bool (*arm)(void *arg, struct wp_thread *);
	/* One is about to get a signal that its owner named.  Result: the
	   signal that it gets, 0: none; if that is another, *info has been made
	   its siginfo, and else may have been changed; WP_TRACER_LATER: it
	   stays where it is, and this is asked again by another step. */
	int (*signal)(void *arg, struct wp_thread *, siginfo_t *info);
	/* One that went on by one instruction (thread->step) has stopped: done,
	   behind it, and it goes on with no signal; else the instruction was
	   not executed, or has ended differently.  NULL: none does. */
	void (*stepped)(void *arg, struct wp_thread *, bool done);
	/* It is about to end, and is stopped for the last time; if the owner
	   has that reported (wp_trace_report_exit).  NULL: nothing to do. */
	void (*leaving)(void *arg, struct wp_thread *);
	/* One that is to have it reported (wp_trace_report_made) has made a
	   process, which is released, or has waited for it until now, as trace
	   says.  False: it stays where it is, and this is asked again by
	   another step.  NULL: nothing to do. */
	bool (*made)(void *arg, struct wp_thread *, const struct wp_trace *);
	/* There is no memory for one that was made: it is released, and nothing
	   is armed in it.  NULL: nothing to do. */
	void (*lost)(void *arg, pid_t tid);
	/* It has ended, or is traced no more: forget it. */
	void (*end)(void *arg, struct wp_thread *);
	/* The process executes another program, which has not begun yet; end
	   has been called for all threads.  Result: whether its owner takes
	   over, and lets it go on, or has done so; else it is released.  NULL:
	   not reported. */
	bool (*executed)(void *arg, pid_t pid);

	/*
	 * Of an owner with more than one process:
	 */

	/* One is stopped that is not traced so far.  Result: it has been added;
	   NULL: it is released.  If this is NULL, those of the loop's own
	   process are added. */
	struct wp_thread *(*adopt)(void *arg, pid_t tid);
	/* Asked instead of signal, at each stop.  Result: the signal that it
	   gets, 0: none; WP_TRACER_LATER: its owner lets it go on, or has done
	   so, or it has ended. */
	int (*stopped)(void *arg, struct wp_thread *, const struct wp_trace *);
	/* A process has ended, with this status as of waitpid(2). */
	void (*ended)(void *arg, pid_t pid, int status);
};

struct wp_ptrace_loop {
	const struct wp_ptrace_loop_calls *calls;	/* live as long */
	void *arg;
	pid_t pid;		/* 0: processes are the owner's business */
	uint64_t signals;	/* that the owner is asked about, bit sig - 1 */
	struct wp_thread_table all;
	uint32_t update;	/* the last, from 1 */
	long began;		/* when, in ms */
	size_t behind;		/* threads that have not been updated */
	bool enough;		/* set by the owner: nothing more is handled */
	bool ended;		/* pid has, or is another program */
};

/* Make the calling process a tracer's, of this name: it blocks all signals, and
   gets one when its parent ends.  *wake: that one, SIGTERM and SIGCHLD. */
void wp_ptrace_loop_process(sigset_t *wake, const char *name, int orphaned);

/* Make descriptors 0 to 2, which are closed, /dev/null: they are not to become
   anything else. */
void wp_ptrace_loop_null(void);

/* Sleep until one comes, for ms at most; < 0: any time.  Which; < 0: none. */
int wp_ptrace_loop_await(const sigset_t *wake, int ms);

/* One that traces no thread yet. */
void wp_ptrace_loop_begin(struct wp_ptrace_loop *, pid_t pid, uint64_t signals,
    const struct wp_ptrace_loop_calls *, void *arg);

/* Forget all threads, because the calling process is about to end. */
void wp_ptrace_loop_end(struct wp_ptrace_loop *);

/* Trace all threads and those to come; or those of a command that is held
   (wp_command_hold), which is free then; or one.  Each is armed before it goes
   on.  Threads that are traced already stay so.  0 or -errno: as of
   wp_hold_process. */
int wp_ptrace_loop_all(struct wp_ptrace_loop *);
int wp_ptrace_loop_command(struct wp_ptrace_loop *, struct wp_hold *);
int wp_ptrace_loop_one(struct wp_ptrace_loop *, pid_t tid);

/* Add a traced thread; armed: it is up to date.  NULL: out of memory. */
struct wp_thread *wp_ptrace_loop_add(struct wp_ptrace_loop *, pid_t pid,
    pid_t tid, bool armed);

/* Forget a thread, or those of a process; they are not released.  Result:
   whether there was any. */
void wp_ptrace_loop_forget(struct wp_ptrace_loop *, struct wp_thread *);
bool wp_ptrace_loop_forget_process(struct wp_ptrace_loop *, pid_t pid);

/* Let one go on with a signal (0: none), or stop with its process. */
void wp_thread_go_on(const struct wp_thread *, int sig);

/* Have each thread brought up to date, interrupting it. */
void wp_ptrace_loop_update(struct wp_ptrace_loop *);

/*
 * Whether each has been brought up to date.  One that sleeps where no stop
 * reaches it (a vfork parent) counts, after a while: it stops before it does
 * anything.  -1: it takes too long.
 */
int wp_ptrace_loop_settled(struct wp_ptrace_loop *);

/* Step until that is so: 0; -ESRCH: as of wp_ptrace_loop_step; -ETIMEDOUT;
   -EINTR: one of the signals of wake came, which is not SIGCHLD. */
int wp_ptrace_loop_settle(struct wp_ptrace_loop *, const sigset_t *wake);

/* Whether a thread but this one has something to report now. */
bool wp_ptrace_loop_others(const struct wp_ptrace_loop *, pid_t tid);

/* Whether any thread is traced; where processes are the owner's business, also
   one that was made and has not stopped yet. */
bool wp_ptrace_loop_busy(const struct wp_ptrace_loop *);

/* Handle what threads report now, of threads that were not there as well.  1:
   there may be more; 0: nothing for now; -ESRCH: the loop's process has ended,
   or executed another program: nothing is traced any more. */
int wp_ptrace_loop_step(struct wp_ptrace_loop *);

/* Handle what each thread has to report now; or a single report. */
void wp_ptrace_loop_look(struct wp_ptrace_loop *);
void wp_ptrace_loop_handle(struct wp_ptrace_loop *, const struct wp_trace *);

#endif
