/*
 * run_children: follows the watched processes, the processes that they create,
 * and their threads, as far as the report has to mention them.
 */
#include <errno.h>

#include "proc/proc.h"
#include "run/run.h"
#include "util/executable.h"
#include "watch/io_workers.h"

enum { CHILD_MS = 1000 };	/* ms for a child to execute another program */

/* The program that the process executed is not watched, and may have accessed
   anything. */
void
run_executed(struct run *run, struct process *process)
{
	if (process->executed || options_scope(run->options) != NULL)
		return;
	process->executed = true;
	session_warn(&run->session, "process %d executed another program, "
	    "where addresses mean something else: its watches have ended",
	    process->pid);
	session_doubt(&run->session, "process %d executed another program, "
	    "which was not watched", process->pid);
}

void
run_pid_executed(struct run *run, pid_t pid)
{
	size_t i = run->nprocesses;

	while (i > 0 && run->process[i - 1].pid != pid)
		i--;
	if (i > 0)
		run_executed(run, &run->process[i - 1]);
}

void
run_check_privileges(struct run *run, pid_t pid)
{
	if (run->unprivileged_reported || !executable_lost_privileges(pid))
		return;
	run->unprivileged_reported = true;
	session_warn(&run->session, "process %d runs without the privileges "
	    "that its file gives (set-user-ID, set-group-ID or capabilities), "
	    "because it was traced as it began, by an ordinary user: run "
	    "watchctl as root", pid);
}

/* Whether children of the watched processes are not watched. */
static bool
leaves_children(const struct run *run)
{
	const struct wp_options *got = wp_target_options(run->target);

	return !run->options->follow && (run->ops->registers ||
	    got->inherit_thread || got->stop);
}

/* Following children that end soon takes perf events, so it is done only if the
   exit status has to vouch for the run.  Where children are watched, threads of
   the kernel are looked for, which a stop does not have. */
void
run_track_children(struct run *run, const struct process *process)
{
	const bool stops = wp_target_options(run->target)->stop;

	run->children.watched = run->options->follow;
	if (run->ops->registers)
		run->children.blind = true;
	else if ((leaves_children(run) || stops) && options_vouch(run->options))
		children_track(&run->children, process->pid);
	if (stops && options_vouch(run->options))
		children_find_workers(&run->children, process->pid);
}

void
run_take_child(struct run *run, const struct ex_record *r)
{
	if (r->type == PERF_RECORD_FORK && r->task.pid != r->task.ppid &&
	    leaves_children(run))
		children_made(&run->children, r->task.pid, r->task.ppid,
		    r->task.time);
}

/* A thread that ends leaves its thread-local instance to nobody, or soon to
   another thread.  Accesses since then are not reported either
   (explained_session.c). */
static void
leave_instances(struct run *run, const struct process *process, pid_t tid)
{
	for (size_t i = 0; i < process->n && !process->disarmed; i++) {
		const struct spec *spec =
		    &run->options->spec[run_spec_of(process,
		    process->first + i)];

		if (spec->thread != tid)
			continue;
		if (run->ops->turn_off != NULL)
			run->ops->turn_off(run, process->first + i);
		session_warn(&run->session, "thread %d has ended, and with it "
		    "its '%s', which is no longer watched", tid, spec->text);
	}
}

static bool
is_named(const struct run *run, pid_t tid)
{
	for (size_t i = 0; i < run->options->nspecs; i++)
		if (run->options->spec[i].thread == tid)
			return true;
	return false;
}

void
run_take_thread_end(struct run *run, const struct ex_record *r)
{
	if (r->type != PERF_RECORD_EXIT || !is_named(run, r->task.tid) ||
	    wp_proc_exiting(r->task.pid))
		return;
	for (size_t i = 0; i < run->nprocesses; i++)
		if (run->process[i].pid == r->task.pid)
			leave_instances(run, &run->process[i], r->task.tid);
}

/* Report the first child that went on unwatched. */
static void
report_child(struct run *run)
{
	const struct children *children = &run->children;
	const struct child *child = &children->went_on;

	if (child->pid == 0 || run->child_reported)
		return;
	run->child_reported = true;
	session_warn(&run->session, "process %d created process %d, which %s "
	    "and is not watched%s", child->parent, child->pid,
	    children->ended ? "ended without executing another program" :
	    "goes on in the same program", run->ops->registers ? "" :
	    "; -f watches it too");
	session_doubt(&run->session, "process %d, which process %d created, "
	    "was not watched", child->pid, child->parent);
}

void
run_check_children(struct run *run)
{
	children_look(&run->children);
	report_child(run);
}

/* Their accesses are recorded, but a stop has none. */
static void
report_worker(struct run *run)
{
	const pid_t pid = run->children.served;

	if (pid != 0 && wp_target_options(run->target)->stop)
		io_workers_report(&run->session, pid, "which cannot be stopped "
		    "and are not watched", "--stop");
}

static void
settle_unwatched(struct run *run)
{
	const bool vouched = options_vouch(run->options);

	children_settle(&run->children, vouched ? CHILD_MS : 0);
	report_child(run);
	if (!run->children.unknown || !vouched || run->child_reported)
		return;
	session_warn(&run->session, "a child process may have gone on in the "
	    "program, unwatched: %s%s", run->ops->registers ?
	    "without perf events it is not known what became of it" :
	    run->children.blind ? run->children.side.cause.text :
	    "records of what it did were lost", run->ops->registers ? "" :
	    "; -f watches children too");
	session_doubt(&run->session, "a child process may not have been "
	    "watched");
}

void
run_settle_children(struct run *run)
{
	if (leaves_children(run))
		settle_unwatched(run);
	else
		children_look(&run->children);
	report_worker(run);
}

/* Whether the status has to vouch for descendants, and their programs are not
   watched anew as with a scope. */
static bool
vouches_for_descendants(const struct run *run)
{
	const struct options *o = run->options;

	return o->follow && options_vouch(o) && options_scope(o) == NULL;
}

/* Whether the process was traced when it executed a program, and so was watched
   from its start. */
static bool
was_caught(void *arg, const struct child *child)
{
	const struct run *run = arg;

	for (size_t i = 0; i < run->nprocesses; i++)
		if (run->process[i].pid == child->pid &&
		    run->process[i].program &&
		    run->process[i].since >= child->born)
			return true;
	return false;
}

void
run_take_descendant(struct run *run, const struct ex_record *r)
{
	const struct child child = {
		.pid = r->task.pid, .parent = r->task.ppid,
		.born = r->task.time,
	};

	if (!vouches_for_descendants(run) && !run->executions.children)
		return;
	if (r->type == PERF_RECORD_FORK && child.pid != child.parent)
		descendants_made(&run->descendants, &child, was_caught, run);
	else
		descendants_thread(&run->descendants, child.pid,
		    r->type == PERF_RECORD_EXIT);
}

static void
warn_of_executed(struct run *run)
{
	const struct child *child = &run->descendants.executed;

	session_warn(&run->session, "process %d, which process %d created, "
	    "executed another program, where addresses mean something else: "
	    "its watches have ended%s", child->pid, child->parent,
	    run->ops->registers ? "" :
	    "; --stop watches what it executes too");
}

void
run_child_executed(struct run *run, const struct child *child)
{
	if (run->descendants.executed.pid != 0)
		return;
	run->descendants.executed = *child;
	if (!vouches_for_descendants(run))
		warn_of_executed(run);
}

void
run_leave_descendants(struct run *run, uint64_t since)
{
	if (vouches_for_descendants(run))
		descendants_leave(&run->descendants, since);
}

/* Lost records may include that a process has ended; but they are already a
   reason not to vouch for the run. */
void
run_settle_descendants(struct run *run)
{
	struct descendants *d = &run->descendants;
	const struct child *child = &d->executed;

	if (!vouches_for_descendants(run) || run->session.lost > 0)
		return;
	descendants_settle(d, was_caught, run);
	if (d->unknown)
		session_note(&run->session, -ENOMEM);
	if (child->pid == 0)
		return;
	warn_of_executed(run);
	session_doubt(&run->session, "process %d executed another program, "
	    "which was not watched", child->pid);
}
