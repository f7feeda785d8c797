/* children: the processes that watched processes create.  See children.h. */
#include "processes/children.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "os/array.h"
#include "os/clock.h"
#include "proc/proc.h"

enum {
	MANY = 256,		/* with this many, ended ones are removed */
	NAP = 5000000,		/* ns between looks */
	REUSED = 1000000000,	/* ns: a process created this much later has
				   reused the id */
};

/* Convert a time of CLOCK_MONOTONIC to the clock of process start times, in
   ns. */
static uint64_t
since_boot(uint64_t time)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return time + ((uint64_t)now.tv_sec * 1000000000 +
	    (uint64_t)now.tv_nsec) - wp_clock_ns();
}

/* Whether a process that started at this time is not another one, with the
   child's number. */
static bool
is_itself(const struct child *child, uint64_t start)
{
	return start <= since_boot(child->born) + REUSED;
}

bool
child_goes_on(const struct child *child)
{
	uint64_t start;

	return wp_proc_unexecuted(child->pid, &start) &&
	    is_itself(child, start);
}

bool
child_has_executed(const struct child *child)
{
	uint64_t start = 0;

	return !wp_proc_unexecuted(child->pid, &start) && start != 0 &&
	    is_itself(child, start) && !wp_proc_exiting(child->pid);
}

static void
note(struct children *children, const struct child *child, bool ended)
{
	if (children->went_on.pid != 0)
		return;
	children->went_on = *child;
	children->ended = ended;
}

static void
drop(struct children *children, size_t i)
{
	children->child[i] = children->child[--children->n];
}

static struct child *
find(struct children *children, pid_t pid)
{
	for (size_t i = 0; i < children->n; i++)
		if (children->child[i].pid == pid)
			return &children->child[i];
	return NULL;
}

static void
add(struct children *children, const struct child *child)
{
	/* an earlier process with this id executed a program and ended */
	struct child *at = find(children, child->pid);

	children->unknown = children->unknown ||
	    (at != NULL && children->blind);
	if (at == NULL && WP_ARRAY_ROOM(children, child) < 0)
		children->unknown = true;
	else
		*(at != NULL ? at : &children->child[children->n++]) = *child;
}

static void
made(void *arg, const struct sideband_child *by)
{
	const struct child child = {
		.pid = by->pid, .parent = by->parent, .born = by->time,
	};

	if (!((struct children *)arg)->watched)
		add(arg, &child);
}

static void
ended(void *arg, pid_t pid)
{
	struct children *children = arg;
	struct child *child = find(children, pid);

	if (child == NULL)	/* a watched process, or the child of a child */
		return;
	note(children, child, true);
	drop(children, (size_t)(child - children->child));
}

static void
executed(void *arg, pid_t pid)
{
	struct children *children = arg;
	struct child *child = find(children, pid);

	if (child != NULL)
		drop(children, (size_t)(child - children->child));
}

static void
served(void *arg, pid_t pid)
{
	((struct children *)arg)->served = pid;
}

static void
nothing_mapped(void *arg, const struct sideband_mapping *map)
{
	(void)arg;
	(void)map;
}

/* Whether the end of every child that executes nothing is recorded. */
static bool
is_tracked(const struct children *children)
{
	return !children->blind && sideband_knows_tasks(&children->side);
}

void
children_track(struct children *children, pid_t pid)
{
	const int err = children->blind ? 0 :
	    sideband_add(&children->side, pid);

	if (err == 0 || err == -ESRCH)
		return;
	children->blind = true;
	sideband_close(&children->side);
}

void
children_find_workers(struct children *children, pid_t pid)
{
	pid_t *tids = NULL;
	size_t cap = 0;
	const int n = wp_proc_threads(pid, &tids, &cap);
	char comm[64];

	for (int i = 0; i < n; i++)
		if (tids[i] != pid && wp_proc_comm(pid, tids[i], comm) == 0 &&
		    sideband_is_worker(comm))
			served(children, pid);
	free(tids);
}

/* A child that has ended already will be found missing. */
void
children_made(struct children *children, pid_t pid, pid_t parent, uint64_t time)
{
	const struct child child = {.pid = pid, .parent = parent, .born = time};

	add(children, &child);
}

void
children_await(struct children *children, pid_t pid, pid_t parent,
    uint64_t time)
{
	const struct child child = {
		.pid = pid, .parent = parent, .born = time, .awaited = true,
	};

	add(children, &child);
}

void
children_awaited(struct children *children, pid_t pid, bool has_executed)
{
	if (has_executed)
		executed(children, pid);
	else
		ended(children, pid);
}

static void
read_records(struct children *children)
{
	static const struct sideband_calls calls = {
		.mapped = nothing_mapped, .made = made, .ended = ended,
		.executed = executed, .worker = served,
	};

	if (children->side.tasks.rings != NULL)
		(void)sideband_look(&children->side, &calls, children);
}

/* If a process has gone when this starts, the record of its end is in the
   rings; settling: it has been reported otherwise. */
static void
drop_gone(struct children *children, bool settling)
{
	for (size_t i = 0; i < children->n; i++)
		children->child[i].gone = (settling ||
		    !children->child[i].awaited) &&
		    !child_goes_on(&children->child[i]);
	read_records(children);
	for (size_t i = children->n; i-- > 0;)
		if (children->child[i].gone) {
			children->unknown = children->unknown ||
			    !is_tracked(children);
			drop(children, i);
		}
	children->many = 2 * children->n < MANY ? MANY : 2 * children->n;
}

void
children_look(struct children *children)
{
	read_records(children);
	if (children->n > children->many || children->many == 0)
		drop_gone(children, false);
}

/* Whether a child is so new that it may be about to execute a program. */
static bool
is_any_young(const struct children *children, int ms)
{
	const uint64_t now = wp_clock_ns();

	for (size_t i = 0; i < children->n; i++)
		if (children->child[i].born + (uint64_t)ms * 1000000 > now)
			return true;
	return false;
}

void
children_settle(struct children *children, int ms)
{
	drop_gone(children, true);
	while (children->went_on.pid == 0 && is_any_young(children, ms)) {
		wp_clock_sleep(NAP);
		drop_gone(children, true);
	}
	if (children->n > 0)
		note(children, &children->child[0], false);
}

void
children_close(struct children *children)
{
	sideband_close(&children->side);
	free(children->child);
	*children = (struct children){0};
}
