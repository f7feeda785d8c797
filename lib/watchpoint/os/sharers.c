/* sharers: other processes that have a process's memory. */
#include "os/sharers.h"

#include <errno.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/proc.h"

/* 1 or 0; -1: not known. */
static int
compare(pid_t tid, pid_t pid)
{
	const long order = syscall(SYS_kcmp, tid, pid, KCMP_VM, 0, 0);

	return order < 0 ? -1 : order == 0;
}

/* Whether it can be compared: if not with pid, that alone is closed to us. */
static bool
is_open(pid_t tid)
{
	return compare(tid, tid) > 0 && wp_proc_has_memory(tid);
}

static bool
exists(pid_t pid)
{
	return kill(pid, 0) == 0 || errno != ESRCH;
}

/* Where kcmp(2) says nothing.  If they have one memory, what it had at most in
   between is no less than before, and no more than after. */
static bool
may_have(pid_t tid, pid_t pid)
{
	uint64_t before = 0, theirs = 0, after = 0;

	(void)wp_proc_peak(tid, &before);
	if (wp_proc_peak(pid, &theirs) < 0)
		return exists(pid);
	if (theirs == 0)
		return false;
	(void)wp_proc_peak(tid, &after);
	return before == 0 || after == 0 ||
	    (before <= theirs && theirs <= after);
}

/* A first thread that has ended has no memory any more: then one that lives is
   compared. */
static bool
has(pid_t tid, pid_t pid)
{
	int same = compare(tid, pid);

	if (same == 0 && wp_proc_has_threads(pid)) {
		pid = wp_proc_living(pid);
		same = compare(tid, pid);
	}
	if (same >= 0)
		return same > 0;
	return !is_open(tid) && may_have(tid, pid);
}

bool
wp_sharers_has(pid_t tid, pid_t pid)
{
	return has(tid, pid) || (!wp_proc_has_memory(tid) &&
	    may_have(tid, pid));
}

int
wp_sharers(pid_t pid, pid_t **pids, size_t *cap)
{
	const pid_t living = wp_proc_living(pid);
	const int all = wp_proc_processes(pids, cap);
	int n = 0;

	for (int i = 0; i < all; i++)
		if ((*pids)[i] != pid && has(living, (*pids)[i]))
			(*pids)[n++] = (*pids)[i];
	return all < 0 ? all : wp_proc_has_memory(living) ? n : -ESRCH;
}

bool
wp_sharers_any(pid_t pid)
{
	pid_t *pids = NULL;
	size_t cap = 0;
	const int n = wp_sharers(pid, &pids, &cap);

	free(pids);
	return n != 0;
}
