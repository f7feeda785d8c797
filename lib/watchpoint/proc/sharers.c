/* sharers: other processes that share a process's memory. */
#include "proc/sharers.h"

#include <errno.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/array.h"
#include "os/clock.h"
#include "proc/memory_compare.h"
#include "proc/proc.h"

/* peak size of a memory that cannot be read */
#define UNKNOWN UINT64_MAX

enum {
	NAP = 50000,		/* ns between two checks of which processes
				   share the memory, */
	MOMENT = 50000000,	/* for this long, ns */
};

/* Returns 1, 0, or -1 if not known. */
static int
compare(pid_t tid, pid_t pid)
{
	const long order = syscall(SYS_kcmp, tid, pid, KCMP_VM, 0, 0);

	return order < 0 ? -1 : order == 0;
}

/* Whether kcmp(2) works for this thread; if a comparison with pid fails
   nevertheless, it is pid that is not permitted. */
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

/* Used where kcmp(2) is not permitted.  If both share one memory, its peak size
   cannot shrink between two readings, and its contents do not differ. */
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
	return before == 0 || after == 0 || (before <= theirs &&
	    theirs <= after && !wp_memory_differs(tid, wp_proc_living(pid)));
}

/* The first thread may have ended and then has no memory, so one that lives is
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

/* --- of several processes at once --- */

/* The processes that others are compared with, and the results. */
struct scan {
	struct one {
		size_t i;		/* index of the process */
		pid_t pid, tid;		/* the process, and one of its
					   threads that lives */
		uint64_t peak;		/* if not open: peak size, read
					   before the others' */
	} *one;			/* n of them; the first nopen are sorted in
				   kcmp(2)'s order, for a binary search */
	size_t n, nopen;
	struct wp_sharer *found;	/* nfound of them */
	size_t nfound, cap;
	bool failed;		/* out of memory */
};

static void
add(struct scan *s, const struct one *one, pid_t pid)
{
	if (pid == one->pid)
		return;
	if (wp_array_room(&s->found, s->nfound, &s->cap, sizeof(*s->found)) <
	    0)
		s->failed = true;
	else
		s->found[s->nfound++] = (struct wp_sharer){one->i, pid};
}

static int
by_memory(const void *a, const void *b)
{
	const long order = syscall(SYS_kcmp, ((const struct one *)a)->tid,
	    ((const struct one *)b)->tid, KCMP_VM, 0, 0);

	return order == 1 ? -1 : order == 2 ? 1 : 0;
}

/* Whether they are still in that order.  A process that has executed another
   program has a new memory, and may have misled the search. */
static bool
in_order(const struct scan *s)
{
	for (size_t i = 1; i < s->nopen; i++) {
		const long order = syscall(SYS_kcmp, s->one[i - 1].tid,
		    s->one[i].tid, KCMP_VM, 0, 0);

		if (order != 0 && order != 1)
			return false;
	}
	return true;
}

/* Whether any of them share the memory of this thread, which belongs to pid. */
static bool
look_up(struct scan *s, pid_t tid, pid_t pid)
{
	size_t low = 0, high = s->nopen;
	bool any = false;

	while (low < high) {
		const size_t middle = (low + high) / 2;
		const long order = syscall(SYS_kcmp, s->one[middle].tid, tid,
		    KCMP_VM, 0, 0);

		if (order < 0)	/* it has other credentials or has ended */
			return false;
		if (order == 1)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < s->nopen && compare(s->one[low].tid, tid) > 0; low++) {
		add(s, &s->one[low], pid);
		any = true;
	}
	return any;
}

static void
look_for_memory(struct scan *s, const pid_t *pids, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!look_up(s, pids[i], pids[i]) &&
		    wp_proc_has_threads(pids[i]))
			(void)look_up(s, wp_proc_living(pids[i]), pids[i]);
}

/* The same without relying on the order. */
static void
look_for_each(struct scan *s, size_t first, size_t end, const pid_t *pids,
    size_t n)
{
	for (size_t k = first; k < end; k++)
		for (size_t i = 0; i < n; i++)
			if (has(s->one[k].tid, pids[i]))
				add(s, &s->one[k], pids[i]);
}

/* Processes that kcmp(2) cannot compare.  The peak size of each is read once,
   after which only a few need a closer look. */
static void
look_at_peaks(struct scan *s, const pid_t *pids, size_t n)
{
	uint64_t *peak = calloc(n + 1, sizeof(*peak)), after;

	s->failed = s->failed || peak == NULL;
	for (size_t i = 0; peak != NULL && i < n; i++)
		if (wp_proc_peak(pids[i], &peak[i]) < 0)
			peak[i] = UNKNOWN;
	for (size_t k = s->nopen; peak != NULL && k < s->n; k++) {
		if (wp_proc_peak(s->one[k].tid, &after) < 0 || after == 0)
			after = UNKNOWN;
		for (size_t i = 0; i < n; i++)
			if (peak[i] == UNKNOWN || (peak[i] != 0 &&
			    s->one[k].peak <= peak[i] && peak[i] <= after))
				look_for_each(s, k, k + 1, &pids[i], 1);
	}
	free(peak);
}

/* The process has ended, so remove what was found for it. */
static void
forget(struct scan *s, const struct one *one)
{
	size_t n = 0;

	for (size_t i = 0; i < s->nfound; i++)
		if (s->found[i].i != one->i)
			s->found[n++] = s->found[i];
	s->nfound = n;
	add(s, one, 0);
}

static void
look_for_all(struct scan *s, const pid_t *pids, size_t n)
{
	if (s->nopen > 0)
		look_for_memory(s, pids, n);
	if (!in_order(s)) {
		s->nfound = 0;
		look_for_each(s, 0, s->nopen, pids, n);
	}
	if (s->nopen < s->n)
		look_at_peaks(s, pids, n);
	for (size_t k = 0; k < s->n; k++)
		if (!wp_proc_has_memory(s->one[k].tid))
			forget(s, &s->one[k]);
}

/* Sorts the open ones to the front. */
static void
prepare(struct scan *s, const pid_t *pids, size_t n)
{
	s->n = n;
	for (size_t i = 0, closed = n; i < n; i++) {
		struct one one = {i, pids[i], wp_proc_living(pids[i]), 0};

		if (is_open(one.tid))
			s->one[s->nopen++] = one;
		else {
			(void)wp_proc_peak(one.tid, &one.peak);
			s->one[--closed] = one;
		}
	}
	qsort(s->one, s->nopen, sizeof(*s->one), by_memory);
}

int
wp_sharers(const pid_t *pids, size_t n, struct wp_sharer **sharers)
{
	struct scan s = {.one = calloc(n, sizeof(*s.one))};
	pid_t *all = NULL;
	size_t cap = 0;
	int nall;

	*sharers = NULL;
	if (s.one == NULL)
		return -ENOMEM;
	prepare(&s, pids, n);
	nall = wp_proc_processes(&all, &cap);
	if (nall >= 0)
		look_for_all(&s, all, (size_t)nall);
	free(all);
	free(s.one);
	*sharers = s.found;
	return nall < 0 ? nall : s.failed ? -ENOMEM : (int)s.nfound;
}

bool
wp_sharers_any(pid_t pid)
{
	struct wp_sharer *found;
	const int n = wp_sharers(&pid, 1, &found);

	free(found);
	return n != 0;
}

uint64_t
wp_sharers_moment(void)
{
	return wp_clock_ns() + MOMENT;
}

bool
wp_sharers_leaves(pid_t pid, pid_t sharer, uint64_t until)
{
	while (wp_sharers_has(pid, sharer)) {
		if (wp_clock_ns() >= until)
			return false;
		wp_clock_sleep(NAP);
	}
	return true;
}

bool
wp_sharers_stay(pid_t pid)
{
	struct wp_sharer *found;
	const int n = wp_sharers(&pid, 1, &found);
	const uint64_t until = wp_sharers_moment();
	bool stay = n < 0;

	for (int i = 0; i < n; i++)
		stay = stay || found[i].pid == 0 ||
		    !wp_sharers_leaves(pid, found[i].pid, until);
	free(found);
	return stay;
}
