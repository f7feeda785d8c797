/*
 * hold: holds the threads of processes.
 *
 * Overview: a thread is SEIZEd, which by itself changes nothing for it, then
 * INTERRUPTed, and waited for.  Either it reports the interruption, or a signal
 * that came first (which it gets when it is released), or a stop of its
 * own (SIGSTOP), in which it stays when it is released.  A thread that sleeps
 * uninterruptibly (a vfork parent, a page being read) cannot report before it
 * wakes, but its stop is pending and comes before its next user instruction:
 * it counts as held, and so does one that is just ending.  The kernel releases
 * it when the holding thread exits.
 *
 * Stops are looked at and not taken (WNOWAIT): of one that was taken the kernel
 * forgets the signal, and it would be lost if the holding thread died before it
 * lets go.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "os/array.h"
#include "os/clock.h"
#include "os/libc.h"
#include "proc/proc.h"
#include "ptrace/ptrace_private.h"

enum {
	STOP_PATIENCE = 10,	/* ms for a thread to stop before its state
				   is checked */
	STOP_LIMIT = 5000,	/* ms for all threads together */
	NAP_NS = 50000,
};

static int
held_order(const void *a, const void *b)
{
	pid_t x = ((const struct wp_held *)a)->tid;
	pid_t y = ((const struct wp_held *)b)->tid;

	return (x > y) - (x < y);
}

/* Whether tid is among the first n threads, which are sorted. */
static bool
is_held(const struct wp_hold *hold, size_t n, pid_t tid)
{
	struct wp_held key = {.tid = tid};

	return n > 0 && bsearch(&key, hold->thread, n, sizeof(key),
	    held_order) != NULL;
}

static void
hold_drop(struct wp_hold *hold, size_t i)
{
	hold->thread[i] = hold->thread[--hold->n];
}

/* Which threads to hold, and how. */
struct whom {
	pid_t pid;
	pid_t but;		/* not this thread; 0: all threads */
	unsigned options;	/* PTRACE_O_*; if not 0, some threads may be
				   traced already */
};

static void
hold_add(struct wp_hold *hold, pid_t tid, bool ours)
{
	hold->thread[hold->n++] = (struct wp_held){.tid = tid, .ours = ours};
	(void)ptrace(PTRACE_INTERRUPT, tid, 0, 0);
}

/* Seize and interrupt one thread.  Returns 1 if it is held, 0 if not, or
   -errno.  *others counts threads that need not be held but are still listed:
   the first thread after its end, and threads whose tracer has not noticed
   their end. */
static int
seize(struct wp_hold *hold, const struct whom *whom, pid_t tid,
    unsigned *others)
{
	struct wp_proc_status status;
	int err = WP_ARRAY_ROOM(hold, thread);	/* before the thread is
						   seized */

	if (err < 0)
		return err;
	if (tid == whom->but) {
		++*others;
		return 0;
	}
	if (ptrace(PTRACE_SEIZE, tid, 0,
	    (void *)(uintptr_t)whom->options) == 0) {
		hold_add(hold, tid, false);
		return 1;
	}
	err = errno;
	if (wp_proc_status(tid, &status) != 0 || status.state == 'X')
		return 0;
	if (status.state == 'Z') {
		*others += tid == whom->pid || status.tracer != 0;
		return 0;
	}
	if (whom->options != 0 && status.tracer == wp_libc_tid()) {
		hold_add(hold, tid, true);
		return 1;
	}
	return err == ESRCH ? 0 : -err;
}

/*
 * Seize the threads of the process that are not held yet.  Returns 0 if there
 * are no others, 1 if the list has to be read again, or -errno.  While the list
 * is read, the kernel skips a thread if the one before it ends.  But the number
 * of threads read afterwards is exact: if it equals the number of stopped
 * threads, there are no others.
 */
static int
seize_new(struct wp_hold *hold, const struct whom *whom, pid_t **tids,
    size_t *cap)
{
	struct wp_proc_status status;
	size_t known = hold->n;
	unsigned others = 0;
	int n = wp_proc_threads(whom->pid, tids, cap), err;

	if (n < 0)
		return n;
	if (known > 0)
		qsort(hold->thread, known, sizeof(*hold->thread), held_order);
	for (int i = 0; i < n; i++)
		if (!is_held(hold, known, (*tids)[i]) && (err = seize(hold,
		    whom, (*tids)[i], &others)) < 0)
			return err;
	if ((err = wp_proc_status(whom->pid, &status)) < 0)
		return err;
	return hold->n > known || status.threads != known + others;
}

/* A thread of the process has ended.  Its zombie would block an execve(2) by
   another thread.  The first thread is reaped by its parent. */
static void
reap(pid_t pid, pid_t tid)
{
	if (tid != pid)
		(void)waitpid(tid, NULL, __WALL | WNOHANG);
}

/* Whether a thread is stopped although it has nothing to report, because its
   stop has been taken. */
static bool
stands_already(const struct wp_held *held)
{
	siginfo_t info;

	return held->ours && wp_trace_get_signal(held->tid, &info) != -ESRCH;
}

/* Collect the stops that have been reported.  Returns how many are missing. */
static size_t
collect(struct wp_hold *hold, pid_t pid)
{
	size_t missing = 0;

	for (size_t i = 0; i < hold->n; i++) {
		struct wp_held *held = &hold->thread[i];
		siginfo_t info = {0};

		if (held->stopped)
			continue;
		if (waitid(P_PID, (id_t)held->tid, &info, WSTOPPED | WEXITED |
		    WNOHANG | WNOWAIT | __WALL) == 0 && info.si_pid == 0) {
			held->stopped = stands_already(held);
			missing += !held->stopped;
		} else if (info.si_code == CLD_TRAPPED ||
		    info.si_code == CLD_STOPPED) {
			held->stopped = true;
			held->signal = wp_stop_signal_in(info.si_status);
		} else {
			if (!held->ours)
				reap(pid, held->tid);
			hold_drop(hold, i--);
		}
	}
	return missing;
}

bool
wp_trace_asleep(pid_t tid)
{
	struct wp_proc_status status;

	return wp_proc_status(tid, &status) == 0 &&
	    strchr("DZX", status.state) != NULL;
}

/* Whether all threads that have not stopped are asleep. */
static bool
rest_asleep(const struct wp_hold *hold)
{
	for (size_t i = 0; i < hold->n; i++)
		if (!hold->thread[i].stopped &&
		    !wp_trace_asleep(hold->thread[i].tid))
			return false;
	return true;
}

static int
await_stops(struct wp_hold *hold, pid_t pid, long limit)
{
	long began = wp_clock_ms();

	while (collect(hold, pid) > 0) {
		long now = wp_clock_ms();

		if (now - began > STOP_PATIENCE && rest_asleep(hold))
			return 0;
		if (now > limit)
			return -ETIMEDOUT;
		wp_clock_sleep(NAP_NS);
	}
	return 0;
}

static int
hold_all(struct wp_hold *hold, const struct whom *whom)
{
	const long limit = wp_clock_ms() + STOP_LIMIT;
	const bool is_command = hold->n > 0;
	pid_t *tids = NULL;
	size_t cap = 0;
	int again, err;

	do {
		again = seize_new(hold, whom, &tids, &cap);
		/* even before giving up, as only stopped threads can be
		   released */
		err = await_stops(hold, whom->pid, limit);
		if (again < 0)
			err = again;
		else if (err == 0 && again > 0 && wp_clock_ms() > limit)
			err = -ETIMEDOUT;
	} while (err == 0 && again > 0);
	free(tids);
	if (err == 0 && hold->n == 0 && whom->but == 0)
		err = -ESRCH;
	if (err != 0 && !is_command)
		wp_hold_release(hold);
	return err;
}

int
wp_hold_process(struct wp_hold *hold, pid_t pid)
{
	return wp_hold_others(hold, pid, 0);
}

int
wp_hold_others(struct wp_hold *hold, pid_t pid, pid_t tid)
{
	const struct whom whom = {.pid = pid, .but = tid};

	return hold_all(hold, &whom);
}

int
wp_hold_thread(struct wp_hold *hold, pid_t pid, pid_t tid)
{
	const struct whom whom = {.pid = pid};
	unsigned others = 0;
	int err = seize(hold, &whom, tid, &others);

	if (err > 0)
		err = await_stops(hold, pid, wp_clock_ms() + STOP_LIMIT);
	if (err == 0 && hold->n == 0)
		err = -ESRCH;
	if (err < 0)
		wp_hold_release(hold);
	return err;
}

void
wp_hold_release(struct wp_hold *hold)
{
	for (size_t i = 0; i < hold->n; i++) {
		const struct wp_held *held = &hold->thread[i];

		if (!held->ours)
			wp_trace_let_go(held->tid, held->signal);
	}
	free(hold->thread);
	*hold = (struct wp_hold){0};
}

int
wp_trace_process(struct wp_hold *hold, pid_t pid, bool children)
{
	const struct whom whom = {
		.pid = pid, .options = WP_TRACE_OPTIONS | (children ?
		    PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK : 0),
	};

	for (size_t i = 0; i < hold->n; i++)
		if (ptrace(PTRACE_SETOPTIONS, hold->thread[i].tid, 0,
		    (void *)(uintptr_t)whom.options) != 0 && errno != ESRCH)
			return -errno;
	return hold_all(hold, &whom);
}
