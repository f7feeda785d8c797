/*
 * ptrace: holding threads still, and starting commands held.  The one file that
 * calls ptrace(2).
 *
 * All calls on a held thread come from the thread that holds it.  Should that
 * thread or its process die at any instant, the kernel lets every held thread
 * go on as it was: no stop used here is one that a target would die of.
 */
#ifndef WP_PTRACE_H
#define WP_PTRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Threads held still. */
struct wp_hold {
	struct wp_held {
		pid_t tid;
		int signal;	/* to be delivered when let go: it came first */
		bool stopped;	/* false: sleeps in the kernel where no stop can
				   reach it, and will stop before it returns;
				   or is just ending */
	} *thread;
	size_t n, cap;
};

/*
 * Hold every thread of a process: SEIZE and INTERRUPT those in the list until,
 * with all of them stopped, there are no others: then there is nobody left who
 * could make one.  0 or -errno: -ESRCH ended; -EPERM not allowed, or traced by
 * another; -ETIMEDOUT one would not stop.  On failure nobody is held.
 *
 * Threads that are not stopped cannot be let go by a call: call this from a
 * thread that ends soon after it has let the others go.
 */
int wp_hold_process(struct wp_hold *, pid_t pid);

/* Let all go, each with the signal it was about to get, and free. */
void wp_hold_release(struct wp_hold *);

/*
 * Start a command, held at the end of its execve(2), before its first
 * instruction: *pid is its only thread and our child.  0 or -errno of execve.
 */
int wp_hold_command(struct wp_hold *, char *const argv[], pid_t *pid);

/* What became of a lone held thread that was let run on. */
struct wp_stop {
	bool ended;		/* the process is no more: status is its last */
	int status;		/* ended: as of waitpid(2) */
	int signal;		/* stopped by it, which is not delivered yet */
	int fd;			/* signal of a descriptor (F_SETSIG): which; -1 */
};

/* Let the one thread of a hold run on, with the signal it was stopped by, until
   it stops again or ends.  0 or -errno. */
int wp_hold_continue(struct wp_hold *, struct wp_stop *);

/* Plant (or with addr 0 clear) debug register n of a held thread: its data
   watch for writes on len bytes.  0 or -errno. */
int wp_hold_debug_register(pid_t tid, unsigned n, uint64_t addr, unsigned len);

#endif
