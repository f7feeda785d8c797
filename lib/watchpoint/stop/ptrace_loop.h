/*
 * ptrace_loop: a process whose threads are traced while they run, for as long
 * as something is armed in them that is not inherited: debug registers, or
 * events that signal one thread.
 *
 * Overview.  Each thread, when it is stopped for whatever reason, is first
 * brought up to date: the owner of the tracer arms it as it should be by now,
 * or has it released.  Then it goes on as it would have: with its signal, its
 * siginfo untouched; or stopped with its process until SIGCONT; a thread that
 * is made stops before its first instruction, so it is armed from there on.
 * Children made by fork(2) are not traced, and have no debug registers.
 *
 *	wp_ptrace_loop_new -> wp_ptrace_loop_all, wp_ptrace_loop_one
 *	    -> (wp_ptrace_loop_update), wp_ptrace_loop_step ...
 *	    -> wp_ptrace_loop_free
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
 * One thread uses a tracer.
 */
#ifndef WP_PTRACE_LOOP_H
#define WP_PTRACE_LOOP_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "os/ptrace.h"
#include "stop/thread_table.h"

struct wp_ptrace_loop;

enum { WP_TRACER_LATER = -1 };

/* What its owner does; all are called by functions below.  Each thread's own is
   the owner's. */
struct wp_ptrace_loop_calls {
	/* A thread is stopped: arm it.  Result: whether it is still to be
	   traced; if not, nothing must be left armed. */
	bool (*arm)(void *arg, struct wp_thread *);
	/* One is about to get a signal that its owner named.  Result: the
	   signal that it gets, 0: none; if that is another, *info has been made
	   its siginfo, and else may have been changed; WP_TRACER_LATER: it
	   stays where it is, and this is asked again by another step. */
	int (*signal)(void *arg, struct wp_thread *, siginfo_t *info);
	/* It has ended, or is traced no more: forget it, free own. */
	void (*end)(void *arg, struct wp_thread *);
	/* The process executes another program, which has not begun yet; end
	   has been called for all threads.  NULL: not reported. */
	void (*executed)(void *arg);
};

/* Make the calling process a tracer's, of this name: it blocks all signals, and
   gets one when its parent ends.  *wake: that one, SIGTERM and SIGCHLD. */
void wp_ptrace_loop_process(sigset_t *wake, const char *name, int orphaned);

/* Sleep until one comes, for ms at most; < 0: any time.  Which; < 0: none. */
int wp_ptrace_loop_await(const sigset_t *wake, int ms);

/* A tracer that traces no thread yet; signals (bit sig - 1 each) are shown to
   its owner; calls live as long as it.  0 or -ENOMEM. */
int wp_ptrace_loop_new(struct wp_ptrace_loop **, pid_t pid, uint64_t signals,
    const struct wp_ptrace_loop_calls *, void *arg);

/* Nobody is traced any more, for the calling process is to end now.  NULL:
   nothing to do. */
void wp_ptrace_loop_free(struct wp_ptrace_loop *);

/* Trace all threads and those to come; or those of a command that is held
   (wp_command_hold), which is free then; or one.  Each is armed before it goes
   on.  Who is traced already stays so.  0 or -errno: as of wp_hold_process. */
int wp_ptrace_loop_all(struct wp_ptrace_loop *);
int wp_ptrace_loop_command(struct wp_ptrace_loop *, struct wp_hold *);
int wp_ptrace_loop_one(struct wp_ptrace_loop *, pid_t tid);

/* Bring each thread up to date, interrupting it. */
void wp_ptrace_loop_update(struct wp_ptrace_loop *);

/*
 * Whether each has been brought up to date.  One that sleeps where no stop
 * reaches it (a vfork parent) counts, after a while: it stops before it does
 * anything.  -1: it takes too long.
 */
int wp_ptrace_loop_settled(struct wp_ptrace_loop *);

/* Whether a thread but this one has something to report now. */
bool wp_ptrace_loop_others(const struct wp_ptrace_loop *, pid_t tid);

/* Whether any thread is traced. */
bool wp_ptrace_loop_busy(const struct wp_ptrace_loop *);

/* Handle what threads report now.  1: there may be more; 0: nothing for now;
   -ESRCH: the process has ended, or executed another program: nothing is traced
   any more. */
int wp_ptrace_loop_step(struct wp_ptrace_loop *);

#endif
