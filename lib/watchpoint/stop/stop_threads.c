/* stop_threads: the processes whose threads stop at hits, and these threads. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/libc.h"
#include "proc/proc.h"
#include "proc/sharers.h"
#include "stop/stop_private.h"

enum {
	MAKER_NS = 1000000000,	/* ns for the creating thread to stop, as its
				   processor may be busy */
	NAP_NS = 50000,
};

struct wp_stop_thread *
wp_stop_find(const struct wp_stops *stops, pid_t tid)
{
	return (struct wp_stop_thread *)wp_thread_find(&stops->loop.all, tid);
}

struct wp_stop_thread *
wp_stop_at(const struct wp_stops *stops, size_t i)
{
	return (struct wp_stop_thread *)stops->loop.all.thread[i];
}

struct wp_stop_process *
wp_stop_find_process(const struct wp_stops *stops, pid_t pid)
{
	struct wp_stop_process *process = stops->process;

	while (process != NULL && process->pid != pid)
		process = process->next;
	return process;
}

static void
note_watches(struct wp_stops *stops, size_t first, size_t n)
{
	if (!stops->watches.any) {
		stops->watches.any = true;
		stops->watches.first = first;
		stops->watches.n = n;
	}
	stops->watches.differ = stops->watches.differ ||
	    stops->watches.first != first || stops->watches.n != n;
}

struct wp_stop_process *
wp_stop_add_process(struct wp_stops *stops, pid_t pid, size_t first, size_t n)
{
	struct wp_stop_process *process = calloc(1, sizeof(*process));

	if (process == NULL)
		return NULL;
	process->pid = pid;
	process->stat = wp_proc_caught_open(pid);
	process->first = first;
	process->n = n;
	process->scout = stops->scout;
	process->nscouts = stops->nscouts;
	for (size_t i = 0; i < n; i++)
		process->baseline[i].memory = pid;
	note_watches(stops, first, n);
	process->next = stops->process;
	stops->process = process;
	return process;
}

static void
drop_process(struct wp_stops *stops, struct wp_stop_process *process)
{
	struct wp_stop_process **at = &stops->process;

	while (*at != process)
		at = &(*at)->next;
	*at = process->next;
	if (process->stat >= 0)
		(void)close(process->stat);
	free(process);
}

/* Report the address of a thread's own instance of what is watched. */
static void
report_local(struct wp_stops *stops, const struct wp_stop_thread *thread,
    bool armed)
{
	const struct wp_stop_process *process = thread->process;

	if (stops->calls->local != NULL && process->n > 0 && !stops->ending &&
	    stops->target->watch[process->first].each)
		stops->calls->local(stops->arg, &thread->traced, process->first,
		    process->n, thread->block, armed);
}

int
wp_stop_add(struct wp_stops *stops, struct wp_stop_process *process, pid_t tid,
    bool made)
{
	struct wp_thread *traced = wp_ptrace_loop_add(&stops->loop,
	    process->pid, tid, !stops->ending);
	struct wp_stop_thread *thread = (struct wp_stop_thread *)traced;
	int err;

	if (thread == NULL)
		return -ENOMEM;
	thread->process = process;
	err = stops->ending ? 0 : wp_stop_arm(stops, thread, made);
	if (err < 0) {
		wp_stop_disarm(stops, thread);
		wp_thread_drop(&stops->loop.all, &thread->traced);
		return err;
	}
	thread->next_in_process = process->thread;
	process->thread = thread;
	process->threads++;
	report_local(stops, thread, true);
	return 0;
}

void
wp_stop_end(void *arg, struct wp_thread *traced)
{
	struct wp_stop_thread *thread = (struct wp_stop_thread *)traced;
	struct wp_stop_process *process = thread->process;
	struct wp_stop_thread **at = &process->thread;
	struct wp_stops *stops = arg;

	wp_stop_drain(stops);
	wp_stop_give_up(stops, traced->tid);
	wp_stop_void_baselines(stops, thread);
	report_local(stops, thread, false);
	wp_stop_disarm(stops, thread);
	while (*at != thread)
		at = &(*at)->next_in_process;
	*at = thread->next_in_process;
	process->left = wp_clock_ns();
	if (--process->threads == 0)
		drop_process(stops, process);
}

void
wp_stop_forget_process(struct wp_stops *stops, struct wp_stop_process *process)
{
	if (!wp_ptrace_loop_forget_process(&stops->loop, process->pid))
		drop_process(stops, process);
}

/* The creating thread was killed, or its process ended, before the stop that
   would have shown what it created; the child has another parent now.  Which
   other processes share its memory is no longer known. */
static int
adopt_orphan(struct wp_stops *stops, pid_t pid, struct wp_stop_process **out)
{
	if (stops->ending)
		return -ESRCH;
	if (stops->watches.differ)
		return -ECHILD;
	*out = wp_stop_add_process(stops, pid, stops->watches.first,
	    stops->watches.n);
	if (*out == NULL)
		return -ENOMEM;
	(*out)->lent = true;
	wp_stop_take_baselines(stops, *out);
	return 0;
}

/* Whether a thread of the process runs, and so may still stop. */
static bool
any_runs(const struct wp_stop_process *process)
{
	const struct wp_stop_thread *thread = process->thread;
	struct wp_proc_status status;

	while (thread != NULL && (wp_proc_status(thread->traced.tid,
	    &status) < 0 || status.state != 'R'))
		thread = thread->next_in_process;
	return thread != NULL;
}

static bool
any_made(const struct wp_stop_process *process, pid_t pid)
{
	const struct wp_stop_thread *thread = process->thread;

	while (thread != NULL && wp_trace_made(thread->traced.tid) != pid)
		thread = thread->next_in_process;
	return thread != NULL;
}

/* Returns the parent of a child whose creating thread is not known, provided
   that this is the parent that created it: once that was killed, the child may
   have another one (PR_SET_CHILD_SUBREAPER).  The creating thread stops right
   after the call, and never sleeps before it. */
static const struct wp_stop_process *
find_maker(const struct wp_stops *stops, pid_t pid, pid_t parent)
{
	const struct wp_stop_process *process =
	    wp_stop_find_process(stops, parent);
	const uint64_t limit = wp_clock_ns() + MAKER_NS;
	bool runs = process != NULL;

	while (runs) {
		runs = any_runs(process) && wp_clock_ns() < limit;
		if (any_made(process, pid))
			return process;
		if (runs)
			wp_clock_sleep(NAP_NS);
	}
	return NULL;
}

/* Add a new child, with the watches of the process that created it.  Returns 0
   or -errno. */
static int
adopt_process(struct wp_stops *stops, pid_t pid,
    const struct wp_stop_process *parent, struct wp_stop_process **out)
{
	struct wp_stop_process *process;

	/* a process that has executed a program is not watched any more: it was
	   to be released, but may have slept where that is impossible */
	if (!stops->target->options.follow || wp_proc_has_executed(pid) != 0)
		return -ESRCH;
	if (parent == NULL)
		return adopt_orphan(stops, pid, out);
	process = wp_stop_add_process(stops, pid, parent->first, parent->n);
	if (process == NULL)
		return -ENOMEM;
	if (wp_sharers_has(parent->pid, process->pid)) {
		process->lent = parent->lent || parent->unsure;
		for (size_t i = 0; i < process->n; i++)
			process->baseline[i].memory =
			    parent->baseline[i].memory;
	}
	wp_stop_take_baselines(stops, process);
	*out = process;
	return 0;
}

int
wp_stop_adopt(struct wp_stops *stops, pid_t tid,
    const struct wp_stop_process *maker)
{
	struct wp_stop_process *process;
	struct wp_proc_status status;
	int err = wp_proc_status(tid, &status);

	if (err < 0)
		return err;
	if (status.tracer != wp_libc_tid())
		return -ESRCH;
	process = wp_stop_find_process(stops, status.tgid);
	if (process == NULL && (err = adopt_process(stops, status.tgid,
	    maker != NULL ? maker : find_maker(stops, status.tgid,
	    status.parent), &process)) < 0)
		return err;
	err = wp_stop_add(stops, process, tid, true);
	if (err < 0 && process->threads == 0)
		drop_process(stops, process);
	return err;
}
