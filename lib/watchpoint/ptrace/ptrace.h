/*
 * ptrace: holding threads still, tracing them while they run, and starting
 * commands held.  No other file calls ptrace(2).
 *
 *	hold.c		threads held still
 *	trace.c		threads that run traced
 *	command.c	commands started held
 *	debugreg_*.c	registers, by processor
 *
 * All calls on a held or traced thread come from the thread that holds it.
 * Should that thread or its process die at any instant, the kernel lets every
 * held thread go on as it was: no stop used here is one that a target would die
 * of.  (Debug registers stay set then; see ptrace_loop.h.)
 */
#ifndef WP_PTRACE_H
#define WP_PTRACE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "os/slot.h"

/* Threads held still. */
struct wp_hold {
	struct wp_held {
		pid_t tid;
		int signal;	/* to be delivered on release: it came first */
		bool stopped;	/* false: sleeps in the kernel where no stop can
				   reach it, and will stop before it returns;
				   or is just ending */
		bool ours;	/* was traced by the caller before */
		int cpu;	/* the caller's note */
	} *thread;
	size_t n, cap;
};

/*
 * Hold every thread of a process: SEIZE and INTERRUPT those in the list until,
 * with all of them stopped, there are no others: then no thread is left that
 * could create one.  0 or -errno: -ESRCH ended; -EPERM not allowed, or traced
 * by another; -ETIMEDOUT one would not stop.  On failure none is held, but for
 * a hold that was not empty: it is a command's (wp_hold_command), which must
 * not run before somebody has decided whether it is to.
 *
 * Threads that are not stopped cannot be released by a call: call this from a
 * thread that ends soon after it has let the others go.
 */
int wp_hold_process(struct wp_hold *, pid_t pid);

/* The same for one thread only, which must not create others in the
   meantime. */
int wp_hold_others(struct wp_hold *, pid_t pid, pid_t tid);

/* Hold one thread of it.  It need not have stopped if it sleeps in the
   kernel. */
int wp_hold_thread(struct wp_hold *, pid_t pid, pid_t tid);

/* Let all go, each with the signal it was about to get, and free. */
void wp_hold_release(struct wp_hold *);

/*
 * Start a command, held at the end of its execve(2), before its first
 * instruction: *pid is its only thread and our child.  0 or -errno of execve.
 */
int wp_hold_command(struct wp_hold *, char *const argv[], pid_t *pid);

/*
 * The same by two processes: one starts it, as its child, which waits; another,
 * a child of that one that was made next, holds it.  Should the other not do
 * so, or be killed before, the command ends.
 */
struct wp_command {
	pid_t pid;
	int go, result;		/* pipes, until it is left or held */
};
int wp_command_start(struct wp_command *, char *const argv[]);
int wp_command_hold(struct wp_command *, struct wp_hold *);
void wp_command_leave(struct wp_command *);	/* to the other */

/* Kill a child, unless it has ended, and wait for it. */
void wp_command_end(pid_t pid);

/* What became of a lone held thread that was let run on. */
struct wp_stop {
	bool ended;		/* the process is gone: status is its last */
	int status;		/* ended: as of waitpid(2) */
	int signal;		/* stopped by it, which is not delivered yet */
	int fd;		/* signal of a descriptor (F_SETSIG): which; -1 */
};

/* For how long to wait for a stop; goes_on is asked again and again. */
struct wp_patience {
	bool (*goes_on)(void *arg);
	void *arg;
};

/* Let the one thread of a hold run on, with the signal it was stopped by, until
   it stops again or ends.  0 or -errno: -EINTR, there is no more patience
   (NULL: endless), and it was stopped where it was, unless it sleeps where no
   stop reaches it. */
int wp_hold_continue(struct wp_hold *, const struct wp_patience *,
    struct wp_stop *);

/* The same, and it stops, by no signal, where it enters or leaves a system
   call, too. */
int wp_hold_to_call(struct wp_hold *, const struct wp_patience *,
    struct wp_stop *);

/*
 * Tracing.  A traced thread runs, and stops now and then: each stop is reported
 * by wp_trace_next until the thread is resumed, or has ended.  Its debug
 * registers and signals can be accessed only while it is stopped; -ESRCH then
 * means that it was just killed.
 */

/*
 * Trace all threads of a process, and all that they make (children too, if
 * asked): these stop before their first instruction.  On success every thread
 * is stopped, or stops before it does anything, including those that were
 * traced before.  Free hold->thread.  Of a hold that is not empty the threads
 * are stopped already, and no stop of them is to be reported.  On failure as
 * wp_hold_process.
 */
int wp_trace_process(struct wp_hold *, pid_t pid, bool children);

/* Have it reported when a stopped thread, or one that it makes, is about to
   end. */
void wp_trace_report_exit(pid_t tid);

/* The same; and which processes they make, which are traced as well, and stop
   before their first instruction. */
void wp_trace_report_made(pid_t tid);

/* Have nothing reported of a stopped thread but its signals, its end, and that
   it executes another program: what it makes is not traced. */
void wp_trace_report_exec(pid_t tid);

/* Trace one thread, and those that it makes.  It stops soon.  0 or -errno. */
int wp_trace_thread(pid_t tid);

struct wp_trace {
	pid_t tid;
	enum wp_trace_what {
		WP_TRACE_STOP,		/* new, or interrupted, or continued
					   with its process (SIGCONT) */
		WP_TRACE_SIGNAL,	/* about to get a signal */
		WP_TRACE_GROUP,		/* stopped with its process (SIGSTOP) */
		WP_TRACE_EXEC,		/* executed another program; tid is the
					   process's.  Reported once */
		WP_TRACE_EXIT,		/* about to end, with registers as they
					   were (wp_trace_report_exit) */
		WP_TRACE_END,		/* ended.  For the first thread only
					   when all others are gone */
	} what;
	int signal;
	pid_t made;		/* STOP: it has just made this one; else 0;
				   ... */
	bool waits;		/* ... and waits for it, as with vfork(2),
				   ... */
	pid_t awaited;		/* ... until now: this one has executed a
				   program, or ended; else 0 */
};

/* What a thread (0: some thread) has to report.  1; 0: nothing now; -errno. */
int wp_trace_next(pid_t tid, struct wp_trace *);

/* What a thread has just made, if it is stopped for that; else anything but the
   id of what another made. */
pid_t wp_trace_made(pid_t tid);

/* Whether the calling thread traces any thread, of which some may have been
   made just now and have reported nothing yet.  Its children do not count. */
bool wp_trace_any(void);

void wp_trace_interrupt(pid_t tid);		/* let it stop soon */
void wp_trace_continue(pid_t tid, int sig);	/* with a signal or 0 */
void wp_trace_step(pid_t tid, int sig);	/* the same, for one instruction: then
					   it is about to get SIGTRAP */
void wp_trace_listen(pid_t tid);	/* stay stopped, with its process */
void wp_trace_let_go(pid_t tid, int sig);	/* no longer traced */

/* Take what a thread reported, so that it is not reported again: its end, which
   leaves a zombie before; or a signal, which it then gets from
   wp_trace_continue only, and not if its tracer is killed.  Result: its wait
   status, or < 0. */
int wp_trace_take(pid_t tid);

/* Whether a thread is known to sleep where no stop reaches it, or to be
   ending. */
bool wp_trace_asleep(pid_t tid);

/* Where a stopped thread, of a 32-bit program too, is to go on; 0: not
   known. */
uint64_t wp_trace_pc(pid_t tid);

/* Where a stopped thread's control block is, at which its thread-local storage
   is; 0: it has none, or that is not known. */
uint64_t wp_trace_thread_block(pid_t tid);

/* The system call that a thread has just come out of, by its number, and what
   it gives; -1: none. */
int wp_trace_call(pid_t tid, int64_t *result);

/* The signal that a thread is about to get, as its handler would get it. */
int wp_trace_get_signal(pid_t tid, siginfo_t *);
int wp_trace_set_signal(pid_t tid, const siginfo_t *);

/* Whether one with this number and code is pending to the thread; and which
   signals it blocks (bit n - 1 for n). */
bool wp_trace_pending(pid_t tid, int sig, int code);
uint64_t wp_trace_blocked(pid_t tid);

/* Read a register set (NT_*, elf.h) of a stopped thread, as a core file has it.
   Result: its length; -errno: -ESRCH not stopped, or gone; else the processor
   has no such set. */
ssize_t wp_trace_regset(pid_t tid, unsigned set, void *to, size_t len);

#define WP_DEBUG_REGISTERS 4

/* Set all debug registers; a slot of len 0: unused.  Those that are not in on
   (bit n for n) are taken, and do not fire.  0 or -errno: -ENOSPC, perf events
   hold them; then none fires.  One that was used once is not free for perf
   events of that thread any more. */
int wp_trace_registers(pid_t tid,
    const struct wp_slot slot[WP_DEBUG_REGISTERS], unsigned on);

/* Whether they still are set in this way.  1, 0 or -errno. */
int wp_trace_registers_hold(pid_t tid,
    const struct wp_slot slot[WP_DEBUG_REGISTERS], unsigned on);

/* Which of those that are on were hit by the trap at which the thread is
   stopped, bit n for n. */
unsigned wp_trace_registers_hit(pid_t tid,
    const struct wp_slot slot[WP_DEBUG_REGISTERS], unsigned on);

/* The instruction at which a thread is stopped, where they all have four bytes;
   0: not known. */
uint32_t wp_trace_code(pid_t tid);

#endif
