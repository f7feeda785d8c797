/*
 * ptrace: holds threads still, traces them while they run, and starts commands
 * held.  No other file calls ptrace(2).
 *
 *	hold.c		threads held still
 *	trace.c		threads that run traced
 *	command.c	commands started held
 *	debugreg_*.c	registers, by processor
 *
 * All calls for a held or traced thread are made by the thread that holds it.
 * If that thread or its process dies, at any instant, the kernel lets every
 * held thread continue as it was: none of the stops used here would kill a
 * target.  (Debug registers stay set then; see ptrace_loop.h.)
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
		int signal;	/* to be delivered on release: the signal
				   arrived before the stop */
		bool stopped;	/* false: it sleeps in the kernel where no stop
				   can reach it, and will stop before it
				   returns; or it is just ending */
		bool ours;	/* the caller traced it before */
		int cpu;	/* the caller's note */
	} *thread;
	size_t n, cap;
};

/*
 * Hold every thread of a process: SEIZE and INTERRUPT the listed threads until
 * all of them are stopped and a new listing shows no others, so that no thread
 * is left that could create one.  0 or -errno: -ESRCH: it ended; -EPERM: not
 * allowed, or traced by another process; -ETIMEDOUT: a thread did not stop.  On
 * failure no thread is held, unless the hold was not empty: it is then a
 * command's (wp_hold_command), which must not run before the caller has decided
 * whether it may.
 *
 * Threads that are not stopped cannot be released by a call, so call this from
 * a thread that ends soon after it has released the others.
 */
int wp_hold_process(struct wp_hold *, pid_t pid);

/* The same for one thread only, which must not create others in the
   meantime. */
int wp_hold_others(struct wp_hold *, pid_t pid, pid_t tid);

/* Hold one thread of a process.  If it sleeps in the kernel, it need not have
   stopped. */
int wp_hold_thread(struct wp_hold *, pid_t pid, pid_t tid);

/* Release all threads, each with the signal that it was about to get, and free
   the hold. */
void wp_hold_release(struct wp_hold *);

/*
 * Start a command, held at the end of its execve(2), before its first
 * instruction: *pid is its only thread and our child.  0 or -errno of execve.
 */
int wp_hold_command(struct wp_hold *, char *const argv[], pid_t *pid);

/*
 * The same by two processes: one starts the command as its child, which waits;
 * another one, the next child of that process, holds the command.  If the other
 * process does not, or is killed first, the command ends.
 */
struct wp_command {
	pid_t pid;
	int go, result;		/* pipes, until the command is left or held */
};
int wp_command_start(struct wp_command *, char *const argv[]);
int wp_command_hold(struct wp_command *, struct wp_hold *);
void wp_command_leave(struct wp_command *);	/* leave it to the other
						   process */

/* Kill a child, unless it has ended, and wait for it. */
void wp_command_end(pid_t pid);

/* What happened to a single held thread that was let run. */
struct wp_stop {
	bool ended;		/* the process has ended; status is its last */
	int status;		/* ended: as of waitpid(2) */
	int signal;		/* the signal that it stopped by, which is not
				   delivered yet */
	int fd;		/* if a descriptor sent the signal (F_SETSIG), that one;
			   else -1 */
};

/* How long to wait for a stop: goes_on is called repeatedly. */
struct wp_patience {
	bool (*goes_on)(void *arg);
	void *arg;
};

/* Let the only thread of a hold run, with the signal that it was stopped by,
   until it stops again or ends.  0 or -errno: -EINTR: the patience is over
   (NULL: never), and the thread was stopped where it was, unless it sleeps
   where no stop reaches it. */
int wp_hold_continue(struct wp_hold *, const struct wp_patience *,
    struct wp_stop *);

/* The same, and the thread also stops, without a signal, where it enters or
   leaves a system call. */
int wp_hold_to_call(struct wp_hold *, const struct wp_patience *,
    struct wp_stop *);

/*
 * Tracing.  A traced thread runs, and stops now and then: each stop is reported
 * by wp_trace_next until the thread is resumed, or has ended.  Its debug
 * registers and signals can be accessed only while it is stopped; -ESRCH then
 * means that it was just killed.
 */

/*
 * Trace all threads of a process, and all that they make (also children, if
 * requested), which stop before their first instruction.  On success every
 * thread is stopped, or stops before it does anything, including those that
 * were traced before.  Free hold->thread.  If the hold is not empty, its
 * threads are stopped already, and no stop of them is reported.  On failure as
 * wp_hold_process.
 */
int wp_trace_process(struct wp_hold *, pid_t pid, bool children);

/* Request a report when a stopped thread, or one that it makes, is about to
   end. */
void wp_trace_report_exit(pid_t tid);

/* The same, and reports of the processes that they make, which are traced as
   well, and stop before their first instruction. */
void wp_trace_report_made(pid_t tid);

/* Request no reports of a stopped thread but of its signals, its end, and its
   execution of another program: what it makes is not traced. */
void wp_trace_report_exec(pid_t tid);

/* Trace one thread, and those that it makes.  It will stop soon.  0 or
   -errno. */
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
	pid_t made;		/* STOP: the thread or process that it has just
				   made; else 0; ... */
	bool waits;		/* ... and whether it waits for that, as with
				   vfork(2); ... */
	pid_t awaited;		/* ... the process that it waited for until now,
				   which has executed a program, or ended; else
				   0 */
};

/* Get the report of a thread (0: of any thread).  1; 0: nothing now; -errno. */
int wp_trace_next(pid_t tid, struct wp_trace *);

/* The ID of what a thread has just made, if it is stopped for that; otherwise
   any number but the ID of what another thread made. */
pid_t wp_trace_made(pid_t tid);

/* Whether the calling thread traces any thread, including new ones that have
   reported nothing yet.  Its children do not count. */
bool wp_trace_any(void);

void wp_trace_interrupt(pid_t tid);		/* let it stop soon */
void wp_trace_continue(pid_t tid, int sig);	/* with a signal or 0 */
void wp_trace_step(pid_t tid, int sig);	/* the same, for one instruction: then
					   it is about to get SIGTRAP */
void wp_trace_listen(pid_t tid);	/* stay stopped, with its process */
void wp_trace_let_go(pid_t tid, int sig);	/* no longer traced */

/* Consume what a thread reported, so that it is not reported again: its end,
   which leaves a zombie until then; or a signal, which the thread then gets
   from wp_trace_continue only, and not if its tracer is killed.  Result: its
   wait status, or < 0. */
int wp_trace_take(pid_t tid);

/* Whether a thread is known to sleep where no stop reaches it, or to be
   ending. */
bool wp_trace_asleep(pid_t tid);

/* The address at which a stopped thread, also of a 32-bit program, will
   continue; 0: not known. */
uint64_t wp_trace_pc(pid_t tid);

/* The address of a stopped thread's control block, next to which its
   thread-local storage is; 0: it has none, or the address is not known. */
uint64_t wp_trace_thread_block(pid_t tid);

/* The number of the system call that a thread has just returned from, and its
   result; -1: none. */
int wp_trace_call(pid_t tid, int64_t *result);

/* The signal that a thread is about to get, as its handler would see it. */
int wp_trace_get_signal(pid_t tid, siginfo_t *);
int wp_trace_set_signal(pid_t tid, const siginfo_t *);

/* Whether a signal with this number and code is pending for the thread; and
   which signals the thread blocks (bit n - 1 for n). */
bool wp_trace_pending(pid_t tid, int sig, int code);
uint64_t wp_trace_blocked(pid_t tid);

/* Read a register set (NT_*, elf.h) of a stopped thread, as in a core file.
   Result: its length; -errno: -ESRCH: not stopped, or ended; otherwise the
   processor has no such set. */
ssize_t wp_trace_regset(pid_t tid, unsigned set, void *to, size_t len);

#define WP_DEBUG_REGISTERS 4

/* Set all debug registers; a slot of len 0 is unused.  Registers that are not
   in `on' (bit n for n) are reserved, and do not fire.  0 or -errno: -ENOSPC:
   perf events hold them, and none fires.  Once used, a register is not
   available to perf events of that thread any more. */
int wp_trace_registers(pid_t tid,
    const struct wp_slot slot[WP_DEBUG_REGISTERS], unsigned on);

/* Whether the registers are still set in this way.  1, 0 or -errno. */
int wp_trace_registers_hold(pid_t tid,
    const struct wp_slot slot[WP_DEBUG_REGISTERS], unsigned on);

/* Which of the registers in `on' were hit by the trap at which the thread is
   stopped, bit n for n. */
unsigned wp_trace_registers_hit(pid_t tid,
    const struct wp_slot slot[WP_DEBUG_REGISTERS], unsigned on);

/* The instruction at which a thread is stopped, on processors where all have
   four bytes; 0: not known. */
uint32_t wp_trace_code(pid_t tid);

#endif
