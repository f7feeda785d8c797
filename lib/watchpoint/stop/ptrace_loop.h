/*
 * ptrace_loop: traces threads while they run, as long as something is armed in
 * them that new threads do not inherit: debug registers, or events that signal
 * one thread.  Its users ("owners") are stop.c and watchctl's tracers of debug
 * registers.
 *
 * Overview.  Whenever a thread is stopped, for whatever reason, the loop first
 * brings it up to date: the owner arms it as it should be by now, or has it
 * released.  Then the thread continues as it would have without a tracer: with
 * its signal, whose siginfo is untouched; or stopped with its process until
 * SIGCONT.  A new thread stops before its first instruction, so it is armed
 * from there on.  Children made by fork(2) are not traced, and have no debug
 * registers, unless the owner adopts them.
 *
 *	wp_ptrace_loop_begin -> wp_ptrace_loop_all, wp_ptrace_loop_one
 *	    -> (wp_ptrace_loop_update), wp_ptrace_loop_step ...
 *	    -> wp_ptrace_loop_end
 *
 * What a program can notice of tracing: TracerPid in /proc; no debugger can
 * attach; and a signal that it ignores interrupts its sleeping system calls for
 * a moment, so that the few that cannot be restarted (epoll_wait(2), semop(2),
 * sockets with a timeout) fail with EINTR, as they do after SIGSTOP and
 * SIGCONT.
 *
 * Waiting.  The tracer is a process of its own, with one thread and no
 * children.  It blocks SIGCHLD, and waits for it when there is nothing to do:
 *
 *  - The tracer cannot be a thread of the watched program's parent: wait(2)
 *    would show the child's stops to that parent, and take them from the
 *    tracer.  With another process as tracer, the parent sees what it would see
 *    without one.
 *  - The tracer never reaps the first thread's zombie.  When the process has
 *    ended the tracer has to end, and the kernel hands the zombie to the
 *    parent.
 *
 * Death.  Stops are peeked at and not consumed, so if the tracer is killed,
 * every thread continues at once, and gets the signal that it was about to get
 * (except that a signal whose siginfo was just being changed is lost).  But its
 * debug registers stay set.  From then on a hit raises a SIGTRAP from the
 * kernel (TRAP_HWBKPT, which does not name the register), and that kills a
 * program that has no handler, or whose thread blocks SIGTRAP.  So a caller
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

/* The callbacks of an owner. */
struct wp_ptrace_loop_calls {
	size_t size;	/* size of the owner's structure for a thread, which
			   begins with struct wp_thread; the rest is zero at
			   first */
	/* Arm a stopped thread; thread->update is 0 the first time.  Result:
	   whether it is still to be traced; if not, nothing may be left
	   armed. */
	bool (*arm)(void *arg, struct wp_thread *);
	/* A thread is about to get one of the signals that the owner named.
	   Result: the signal to deliver, 0: none; if it is another one, *info
	   has been made its siginfo, otherwise *info may have been changed;
	   WP_TRACER_LATER: the thread stays stopped, and a later step asks
	   again. */
	int (*signal)(void *arg, struct wp_thread *, siginfo_t *info);
	/* A thread that was to execute one instruction (thread->step) has
	   stopped.  done: behind the instruction, and it continues without a
	   signal; otherwise, the instruction was not executed, or ended
	   differently.  NULL: no thread is stepped. */
	void (*stepped)(void *arg, struct wp_thread *, bool done);
	/* A thread is about to end, and is stopped for the last time, if the
	   owner asked for that report (wp_trace_report_exit).  NULL: nothing to
	   do. */
	void (*leaving)(void *arg, struct wp_thread *);
	/* A thread for which that is reported (wp_trace_report_made) has made a
	   process, which is released; or it has waited for a process until now,
	   as trace says.  False: the thread stays stopped, and a later step
	   asks again.  NULL: nothing to do. */
	bool (*made)(void *arg, struct wp_thread *, const struct wp_trace *);
	/* There is no memory for a new thread: it is released, and nothing is
	   armed in it.  NULL: nothing to do. */
	void (*lost)(void *arg, pid_t tid);
	/* A thread has ended, or is not traced any more: forget it. */
	void (*end)(void *arg, struct wp_thread *);
	/* The process executes another program, which has not begun yet; end
	   was called for all threads.  Result: true if the owner takes the
	   process over, and lets it continue, or has done so; false: it is
	   released.  NULL: not reported. */
	bool (*executed)(void *arg, pid_t pid);

	/*
	 * For owners of more than one process:
	 */

	/* A thread is stopped that was not traced so far.  Result: the thread,
	   which has been added; NULL: it is released.  If the callback is NULL,
	   threads of the loop's own process are added. */
	struct wp_thread *(*adopt)(void *arg, pid_t tid);
	/* Called instead of signal, at each stop, if not NULL.  Result: the
	   signal to deliver, 0: none; WP_TRACER_LATER: the owner lets the thread
	   continue, or has done so, or the thread has ended. */
	int (*stopped)(void *arg, struct wp_thread *, const struct wp_trace *);
	/* A process has ended, with this status as of waitpid(2).  NULL: not
	   reported. */
	void (*ended)(void *arg, pid_t pid, int status);
};

struct wp_ptrace_loop {
	const struct wp_ptrace_loop_calls *calls;	/* must outlive the
							   loop */
	void *arg;
	pid_t pid;		/* the process of wp_ptrace_loop_all and the
				   like, which is the only one if nothing is
				   adopted; 0: the owner manages the
				   processes */
	uint64_t signals;	/* signals for which the owner's function is
				   called, bit sig - 1 */
	struct wp_thread_table all;
	uint32_t update;	/* number of the last update, from 1 */
	long began;		/* when that began, ms */
	size_t behind;		/* threads that have not been updated */
	bool enough;		/* set by the owner: handle nothing more */
	bool ended;		/* pid has ended, or executed another program */
};

/* Make the calling process a tracer with this name: it blocks all signals, and
   gets the signal `orphaned' when its parent ends.  *wake: that signal, SIGTERM
   and SIGCHLD. */
void wp_ptrace_loop_process(sigset_t *wake, const char *name, int orphaned);

/* Open /dev/null as descriptors 0 to 2, which are closed, so that no later file
   gets these numbers. */
void wp_ptrace_loop_null(void);

/* Sleep until one of these signals comes, but for ms at most; < 0: forever.
   Result: the signal; < 0: none. */
int wp_ptrace_loop_await(const sigset_t *wake, int ms);

/* Initialize a loop that traces no thread yet. */
void wp_ptrace_loop_begin(struct wp_ptrace_loop *, pid_t pid, uint64_t signals,
    const struct wp_ptrace_loop_calls *, void *arg);

/* Forget all threads, because the calling process is about to end. */
void wp_ptrace_loop_end(struct wp_ptrace_loop *);

/* Trace all threads of the process, present and future; or those of a command
   that is held (wp_command_hold), whose hold is freed; or one thread.  Each is
   armed before it continues.  Threads that are traced already stay so.  0 or
   -errno, as of wp_hold_process. */
int wp_ptrace_loop_all(struct wp_ptrace_loop *);
int wp_ptrace_loop_command(struct wp_ptrace_loop *, struct wp_hold *);
int wp_ptrace_loop_one(struct wp_ptrace_loop *, pid_t tid);

/* Add a traced thread; armed: it is up to date.  NULL: out of memory. */
struct wp_thread *wp_ptrace_loop_add(struct wp_ptrace_loop *, pid_t pid,
    pid_t tid, bool armed);

/* Forget a thread, or all threads of a process, without releasing them.
   Result: whether there was any. */
void wp_ptrace_loop_forget(struct wp_ptrace_loop *, struct wp_thread *);
bool wp_ptrace_loop_forget_process(struct wp_ptrace_loop *, pid_t pid);

/* Let a thread continue with a signal (0: none), or stop with its process. */
void wp_thread_go_on(const struct wp_thread *, int sig);

/* Interrupt each thread, so that it is brought up to date. */
void wp_ptrace_loop_update(struct wp_ptrace_loop *);

/*
 * Whether each thread has been brought up to date.  A thread that sleeps where
 * no stop reaches it (a vfork parent) counts, after a while, because it stops
 * before it does anything.  -1: it takes too long.
 */
int wp_ptrace_loop_settled(struct wp_ptrace_loop *);

/* Step until all threads are up to date: 0; -ESRCH: as of wp_ptrace_loop_step;
   -ETIMEDOUT; -EINTR: a signal of wake other than SIGCHLD came. */
int wp_ptrace_loop_settle(struct wp_ptrace_loop *, const sigset_t *wake);

/* Whether any thread but this one has something to report now. */
bool wp_ptrace_loop_others(const struct wp_ptrace_loop *, pid_t tid);

/* Whether any thread is traced; if the owner adopts processes, also whether one
   was made that has not stopped yet. */
bool wp_ptrace_loop_busy(const struct wp_ptrace_loop *);

/* Handle what threads report now, including threads that were unknown.  1:
   there may be more; 0: nothing for now; -ESRCH: the loop's process has ended,
   or executed another program, and nothing is traced any more. */
int wp_ptrace_loop_step(struct wp_ptrace_loop *);

/* Handle what each thread reports now; or a single report. */
void wp_ptrace_loop_look(struct wp_ptrace_loop *);
void wp_ptrace_loop_handle(struct wp_ptrace_loop *, const struct wp_trace *);

#endif
