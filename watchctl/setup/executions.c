/* executions: programs that are executed during a run. */
#include "setup/executions.h"

#include <errno.h>
#include <stdlib.h>

#include "os/array.h"
#include "os/clock.h"
#include "pending/loader.h"
#include "pending/new_program.h"
#include "proc/proc.h"
#include "run/run.h"
#include "setup/setup.h"

/* ns that a program may take to map its libraries; and ns between looks */
#define PATIENCE UINT64_C(5000000000)
#define AGAIN UINT64_C(1000000)

/* Whether this kind of run watches what is executed. */
static bool
is_possible(const struct run *run)
{
	return run_watches_programs(run) && run->follow == NULL &&
	    run->rotate == NULL && run->objects == NULL &&
	    run->mappers == NULL && run->tracer == NULL &&
	    options_scope(run->options) == NULL;
}

void
executions_begin(struct run *run)
{
	run->executions.children = run->options->follow && is_possible(run);
}

bool
executions_expect(struct run *run, struct process *process)
{
	struct executions *all = &run->executions;

	if (process->executed || !is_possible(run))
		return false;
	if (WP_ARRAY_ROOM(all, executed) < 0)
		return false;
	if (run_has_addresses(run))
		run_executed(run, process);
	process->executed = true;
	all->executed[all->n++] = (struct executed){
		.pid = process->pid, .time = wp_clock_ns(),
		.after = process->seen != 0 ? process->seen : run->began,
	};
	return true;
}

static void
take_child(void *arg, const struct child *child, uint64_t after)
{
	struct run *run = arg;
	struct process *process = run_add_unwatched(run, child->pid);

	if (process == NULL) {
		session_note(&run->session, -ENOMEM);
		return;
	}
	process->seen = after;
	if (!executions_expect(run, process))
		run_executed(run, process);
}

void
executions_look(struct run *run, bool all)
{
	if (run->executions.children)
		descendants_find_executed(&run->descendants, all, take_child,
		    run);
}

bool
executions_await(const struct run *run)
{
	return run->executions.n > 0;
}

/* Whether the loader has mapped all libraries that the program starts with. */
static bool
has_begun(pid_t pid)
{
	return loader_is_consistent(pid) || !loader_is_needed(pid);
}

/* Whether a SPEC, by its index, was found in the program, which may have ended
   since. */
static bool
was_found(const struct run *run, pid_t pid, size_t spec)
{
	for (size_t i = 0; i < run->nprocesses; i++) {
		const struct process *process = &run->process[i];

		if (process->pid != pid || process->executed)
			continue;
		for (size_t k = 0; k < process->n; k++)
			if (process->spec[k] == spec)
				return true;
	}
	return false;
}

struct searched {
	const struct run *run;
	pid_t pid;
};

static bool
lacks(const void *arg, size_t spec)
{
	const struct searched *searched = arg;

	return !was_found(searched->run, searched->pid, spec);
}

static bool
has_all(const struct run *run, pid_t pid)
{
	const struct options *o = run->options;
	size_t i = 0;

	while (i < o->nspecs && (o->spec[i].symbol == NULL ||
	    was_found(run, pid, i)))
		i++;
	return i == o->nspecs;
}

/* Report a program that was not examined because it ended, or the watch did.
   If a SPEC is an address, that has been reported. */
static void
give_up(struct run *run, pid_t pid)
{
	size_t i = run->nprocesses;

	while (run->process[i - 1].pid != pid)
		i--;
	run->process[i - 1].executed = run_has_addresses(run);
	run_executed(run, &run->process[i - 1]);
}

/* Explain the hits of the earlier program, once, by its mappings. */
static void
leave_program(struct run *run, pid_t pid)
{
	for (size_t i = 0; i < run->nprocesses; i++) {
		struct process *process = &run->process[i];

		if (process->pid != pid || !process->executed ||
		    process->disarmed)
			continue;
		(void)run_explain_before(run, pid);
		run_disarm(run, process);
	}
}

/* Look for the SPECs.  False: the program may come to have more of them. */
static bool
take(struct run *run, const struct executed *one)
{
	const bool begun = has_begun(one->pid) ||
	    wp_clock_ns() > one->time + PATIENCE;
	struct wp_cause cause = {0};
	int err;

	leave_program(run, one->pid);
	err = run_add_process(run, one->pid, one->after, &cause);
	if (err == 0 && has_all(run, one->pid))
		return true;
	if (err < 0 && wp_proc_exiting(one->pid)) {
		give_up(run, one->pid);
		return true;
	}
	if (err == 0 || err == -ENOENT || cause.code == WP_CAUSE_UNMAPPED) {
		if (begun)
			run_report_missing(run, one->pid, lacks,
			    &(struct searched){run, one->pid});
		return begun;
	}
	session_warn(&run->session, "process %d executed another program, "
	    "which is not watched: %s", one->pid, cause.text);
	session_doubt(&run->session, "process %d executed another program, "
	    "which was not watched", one->pid);
	return true;
}

void
run_take_executions(struct run *run)
{
	struct executions *all = &run->executions;
	size_t n = 0;

	for (size_t i = 0; i < all->n; i++) {
		const struct executed one = all->executed[i];

		if (run->reason != NULL || !take(run, &one))
			all->executed[n++] = one;
	}
	all->n = n;
	run->wake = n > 0 ? wp_clock_ns() + AGAIN : 0;
}

void
executions_end(struct run *run)
{
	for (size_t i = 0; i < run->executions.n; i++)
		give_up(run, run->executions.executed[i].pid);
	free(run->executions.executed);
	run->executions = (struct executions){0};
}
