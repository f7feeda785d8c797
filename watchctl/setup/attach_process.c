/*
 * attach_process: resolves the SPECs in a process and arms its watches.
 */
#include "setup/setup.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "follow/follow.h"
#include "follow/rotate.h"
#include "proc/proc.h"
#include "os/trap_cpu.h"
#include "pending/held_modules.h"
#include "pending/loader.h"
#include "pending/new_module.h"
#include "pending/new_program.h"
#include "pending/thread_local.h"
#include "run/initial_values.h"
#include "run/run.h"
#include "setup/arrivals.h"
#include "setup/all_cpus.h"
#include "setup/any_program.h"
#include "setup/objects.h"

/* Forget a process, and the watches planned for it. */
void
run_forget(struct run *run, size_t i)
{
	const size_t first = run->process[i].first, n = run->process[i].n;

	if (!run->waits && n > 0) {
		wp_target_unwatch(run->target, first, n);
		for (size_t k = i + 1; k < run->nprocesses; k++)
			run->process[k].first -= n;
	}
	run_leave_out(run, i);
}

/* Explain why a SPEC whose module is not mapped, or of which each thread has
   its own instance, is not waited for. */
static void
explain_not_waiting(const struct run *run, const struct spec *spec,
    struct wp_cause *cause)
{
	const char *with = run_waits_not_with(run->options);
	const char *each = thread_local_not_with(run->options);
	const size_t len = strlen(cause->text);

	if (with != NULL && cause->code == WP_CAUSE_MODULE_UNKNOWN &&
	    module_may_come(spec))
		(void)snprintf(cause->text + len, sizeof(cause->text) - len,
		    "; %s cannot wait for it", with);
	if (each != NULL && cause->code == WP_CAUSE_SYMBOL_TLS)
		(void)snprintf(cause->text + len, sizeof(cause->text) - len,
		    "; %s cannot watch all of them", each);
}

static int
resolve_one(struct run *run, struct process *process, size_t i, bool early,
    struct wp_cause *cause)
{
	struct spec *spec = &run->options->spec[i];
	/* with --stop the threads are traced already */
	const bool each = run->options->stop && !run->ops->registers &&
	    thread_local_not_with(run->options) == NULL;

	if (run->objects != NULL)
		return objects_resolve(run->objects, process, spec, early,
		    &process->place[i], cause);
	if (run->follow != NULL || (run->options->command != NULL &&
	    (!each || spec->thread != 0)))
		return live_broker_resolve(&run->live, process->pid, spec,
		    early, &process->place[i], cause);
	return thread_local_resolve(&run->live, process->pid, spec, each, early,
	    &process->place[i], cause);
}

/* Find each SPEC in a process.  early: its libraries are not mapped yet; all:
   all that the program starts with is mapped, so only modules loaded later are
   missing.  Returns 0, or -errno with a cause; -ENOENT if it is not in the
   modules mapped so far. */
static int
resolve(struct run *run, struct process *process, bool early, bool all,
    struct wp_cause *cause)
{
	int err = 0;

	for (size_t i = 0; i < run->options->nspecs && err == 0; i++) {
		free(process->place[i].symbol);
		process->place[i].symbol = NULL;
		run->options->spec[i].unborn = run->options->command != NULL;
		run->options->spec[i].follow = run->follow != NULL;
		err = resolve_one(run, process, i, early, cause);
		if (err < 0 && all && held_modules_wait(run->held_modules,
		    process, i, cause)) {
			*cause = (struct wp_cause){0};
			err = 0;
		}
		if (err < 0)
			explain_not_waiting(run, &run->options->spec[i], cause);
	}
	return err;
}

/* Let the loader of the held command map more modules, until the SPECs are
   found or the program itself begins. */
static int
resolve_launched(struct run *run, struct wp_cause *cause)
{
	enum { HOOK, ENTRY, STOPS };
	struct process *process = run->process;
	const unsigned first = loader_count(process->pid);
	struct loader loader;
	bool early = true, all = false;
	int err, at = HOOK;

	loader_find(process->pid, &run->live, &loader);
	/* stopping it anywhere else takes a perf event */
	while (((err = resolve(run, process, early, all, cause)) == -ENOENT ||
	    err == -EAGAIN) && at == HOOK && !run->ops->registers &&
	    !wp_cpu_kernel_steps()) {
		const uint64_t stop[STOPS] = {loader.hook, loader.entry};

		at = wp_target_run_to(run->target, stop, STOPS, NULL,
		    &run->command_status);
		if (at == -ECHILD)
			return wp_cause_set(cause, WP_CAUSE_ENDED_EARLY);
		if (at < 0)
			return wp_target_explain_stop(run->target, at, cause);
		synthetic_records_free(&run->synthetic);
		if ((err = run_learn(run, process, false, cause)) < 0)
			return err;
		early = at == HOOK && loader_count(process->pid) == first;
		/* no constructor has run yet */
		all = at == ENTRY || (!early &&
		    loader_is_consistent(process->pid));
	}
	if (err == -EAGAIN && at == ENTRY && wp_target_run_to_storage(
	    run->target, NULL, &run->command_status) == 0)
		err = resolve(run, process, false, true, cause);
	return err;
}

/* Whether the module of a SPEC is not mapped yet. */
static bool
waits_for(const struct process *process, size_t i)
{
	return process->waits != NULL && process->waits[i];
}

/* Check that the bytes are mapped.  In a new command they need not be yet, for
   example if they are on the heap. */
static int
check_mapped(const struct run *run, struct process *process, size_t i,
    const struct wp_region *region, struct wp_cause *cause)
{
	int err = wp_target_mapped(process->pid, region, cause);

	if (err == 0 || run->options->command == NULL ||
	    cause->code != WP_CAUSE_UNMAPPED ||
	    run->options->spec[i].symbol != NULL)
		return err;
	*cause = (struct wp_cause){0};
	process->place[i].later = true;
	return 0;
}

/* Add to the cause that one watch is too wide. */
static void
explain_too_wide(const struct options *o, struct wp_cause *cause)
{
	const size_t len = strlen(cause->text);

	if (cause->code == WP_CAUSE_LENGTH && !o->rotate &&
	    !options_objects(o))
		(void)snprintf(cause->text + len, sizeof(cause->text) - len,
		    "; or add --slots rotate");
}

/* Why uprobes cannot be used in place of slots, or NULL if they can. */
static const char *
no_uprobes(const struct run *run)
{
	const char *why = run_no_uprobes(run->options);

	return why != NULL ? why : !run->ops->registers &&
	    wp_target_uprobes(run->target) ? NULL : RUN_NO_UPROBES;
}

/* Add to the cause that there are too few slots. */
static void
explain_too_many(const struct run *run, struct wp_cause *cause)
{
	const struct options *o = run->options;
	const char *why = no_uprobes(run);
	bool executes = false;
	size_t len;

	for (size_t i = 0; i < o->nspecs; i++)
		executes = executes || o->spec[i].access == WP_EXEC;
	if (cause->code != WP_CAUSE_TOO_MANY || !executes)
		return;
	if (why == NULL)
		why = "are where an instruction surely begins: at a function, "
		    "a line, or another place that its code leads to";
	if (run->no_breakpoints.code != WP_CAUSE_NONE)
		*cause = run->no_breakpoints;
	len = strlen(cause->text);
	(void)snprintf(cause->text + len, sizeof(cause->text) - len,
	    "; uprobes, which take none, %s", why);
}

/* Watch the regions of the SPECs, or what replaces them.  Returns the first of
   *n watches. */
static int
watch_regions(struct run *run, struct process *process,
    struct wp_region *regions, size_t *n, struct wp_cause *cause)
{
	int err = 0, first;

	for (size_t i = 0; i < run->options->nspecs; i++)
		regions[i] = run_region(run, process, i);
	if (run->follow != NULL)
		err = follow_plan(run->follow, process, regions, cause);
	if (err >= 0)
		held_modules_plan(run->held_modules, process, regions, *n);
	if (err >= 0)
		err = rotate_plan(run->rotate, process, regions, n, cause);
	if (err >= 0)
		err = objects_plan(run->objects, process, regions, n, cause);
	if (err >= 0)
		err = wp_target_watch(run->target, regions, *n, cause);
	if (err < 0 || run->objects == NULL)
		return err;
	first = err;
	err = objects_open_probes(run->objects, (size_t)first, cause);
	return err < 0 ? err : first;
}

/* Add what a watch is besides its region: the instances of the threads, or
   several places. */
static int
add_places(struct run *run, struct process *process, struct wp_region *regions,
    struct wp_cause *cause)
{
	int err = 0;

	for (size_t i = 0; i < run->options->nspecs && err >= 0; i++) {
		const struct spec_place *place = &process->place[i];

		if (place->local)
			wp_target_local(run->target, process->first + i,
			    place->base);
		if (place->rotates) {
			regions[i].addr = place->addr;
			regions[i].len = place->len;
		}
		if (run->options->spec[i].line != 0)
			err = wp_target_places(run->target, process->first + i,
			    place->more, place->nmore, cause);
	}
	return err;
}

static int
check_regions(struct run *run, struct process *process,
    const struct wp_region *regions, struct wp_cause *cause)
{
	const struct options *o = run->options;
	int err = 0;

	for (size_t i = 0; i < o->nspecs && err >= 0; i++)
		if ((o->spec[i].line != 0 || process->place[i].nmore == 0) &&
		    run->objects == NULL && !waits_for(process, i))
			err = check_mapped(run, process, i, &regions[i],
			    cause);
	for (size_t i = 0; i < o->nspecs && err >= 0; i++)
		if (!o->count && o->form != FORM_PERF && regions[i].addr != 0)
			err = session_object(&run->session, process->pid,
			    &o->spec[i], regions[i].addr, regions[i].len);
	return err;
}

/* Find the SPECs in the process, and check that they can be watched there. */
static int
find_own_watches(struct run *run, struct process *process,
    struct wp_cause *cause)
{
	const struct options *o = run->options;
	size_t n = o->nspecs;
	struct wp_region *regions = calloc(n + WP_SLOTS_MAX, sizeof(*regions));
	int err;

	if (regions == NULL)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	err = o->command != NULL ? resolve_launched(run, cause) :
	    resolve(run, process, false, true, cause);
	if (err >= 0)
		err = watch_regions(run, process, regions, &n, cause);
	if (err < 0)
		explain_too_wide(o, cause);
	process->first = err >= 0 ? (size_t)err : 0;
	process->n = err >= 0 ? n : 0;
	if (err >= 0)
		err = add_places(run, process, regions, cause);
	if (err < 0)
		explain_too_many(run, cause);
	else
		err = check_regions(run, process, regions, cause);
	free(regions);
	return err < 0 ? err : 0;
}

int
run_find_watches(struct run *run, struct process *process,
    struct wp_cause *cause)
{
	int err;

	if (process->pid == EVERYWHERE)
		return all_cpus_find(run, process, cause);
	if (options_any_program(run->options) ||
	    run_has_executed(run, process->pid))
		return any_program_find(run, process, cause);
	if ((err = run_learn(run, process, false, cause)) < 0)
		return err;
	return find_own_watches(run, process, cause);
}

/* Every access counts from here on. */
int
run_arm(struct run *run, struct process *process, struct wp_cause *cause)
{
	const unsigned before = wp_target_threads(run->target);
	int err;

	if (run->options->command != NULL &&
	    !run_has_executed(run, process->pid))
		run_track_children(run, process);
	if (run->follow != NULL &&
	    (err = follow_arm(run->follow, process, cause)) < 0)
		return err;
	if ((err = held_modules_arm(run->held_modules, process, cause)) < 0)
		return err;
	objects_expect(run->objects);
	if ((err = run->ops->attach(run, process, cause)) == 0 &&
	    (err = objects_begin(run->objects)) == 0)
		err = thread_local_check(process->pid, run->options->spec,
		    run->options->nspecs, cause);
	/* with events on processors it is not known which threads the records
	   are of */
	process->threads = wp_target_is_on_processors(run->target,
	    process->first) ? 0 :
	    (long)(wp_target_threads(run->target) - before);
	if (err == 0 && run->arrivals != NULL)
		arrivals_armed(run->arrivals, process->pid,
		    wp_target_armed(run->target));
	return err;
}

/* Find processes that share the memory of these, before they are armed and once
   more when they are.  A command has been held since its execve(2), so it
   shares none; what it executes later has run for a while. */
void
run_find_sharers(struct run *run, size_t first, bool armed)
{
	if (first == run->nprocesses || (run->options->command != NULL &&
	    !run_has_executed(run, run->process[first].pid)))
		return;
	/* a child may be created after the first search and end before the
	   second */
	for (size_t i = first; !armed && i < run->nprocesses; i++)
		run_track_children(run, &run->process[i]);
	initial_sharers_find(run, &run->process[first],
	    run->nprocesses - first, armed);
	for (size_t i = first; armed && run->ops->lend != NULL &&
	    i < run->nprocesses; i++)
		run->ops->lend(run, &run->process[i]);
}

int
run_arm_last(struct run *run, struct process *process, int err,
    struct wp_cause *cause)
{
	const size_t i = run->nprocesses - 1;

	if (err == 0) {
		run_find_sharers(run, i, false);
		err = run_arm(run, process, cause);
	}
	if (err < 0)
		run_forget(run, i);
	else
		run_find_sharers(run, i, true);
	return err;
}

/* Describe the watches of the last process in a report that has begun. */
static int
describe_process(struct run *run, const struct process *process, uint64_t since)
{
	const uint64_t armed = wp_target_armed(run->target);

	for (size_t i = 0; i < process->n; i++) {
		const size_t w = process->first + i;
		const int err = run_describe_armed(run, process, w);
		struct watch_event event;
		size_t n;

		if (err < 0)
			return err;
		event = (struct watch_event){
			.what = WATCH_ARMED, .watch = (unsigned)w,
			.time = armed, .pid = process->pid,
			.addr = wp_target_watches(run->target,
			    &n)[w].region.addr,
			.len = process->place[run_spec_of(process, w)].len,
			.gap = armed > since ? armed - since : 0,
		};
		if (run_has_executed(run, process->pid))
			run_name_program(&event);
		session_event(&run->session, &event);
	}
	return 0;
}

struct process *
run_add_unwatched(struct run *run, pid_t pid)
{
	struct process *process = run_new_process(run, pid);

	if (process == NULL || run_poll_add(run, pid) == 0)
		return process;
	run->nprocesses--;
	free(process->place);
	return NULL;
}

/* The process was watched before as another program, or its id belonged to
   another process.  Report what is kept of that first. */
static void
settle_before(struct run *run, pid_t pid)
{
	bool known = false;

	for (size_t i = 0; i < run->nprocesses; i++)
		known = known || run->process[i].pid == pid;
	if (known && run->options->last != 0)
		run->ops->settle(run, true);
}

int
run_add_process(struct run *run, pid_t pid, uint64_t since,
    struct wp_cause *cause)
{
	const size_t i = run->nprocesses;
	struct process *process;
	uint64_t program = 0, now = 0;
	int err;

	settle_before(run, pid);
	if ((process = run_add_unwatched(run, pid)) == NULL)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	(void)wp_proc_program(pid, &program);
	err = run_arm_last(run, process, run_find_watches(run, process, cause),
	    cause);
	if (err < 0)
		return err;
	/* the addresses belong to the previous program */
	if (wp_proc_program(pid, &now) < 0 || now != program) {
		if (run->arrivals != NULL)
			arrivals_armed(run->arrivals, pid, 0);
		run_disarm(run, process);
		run_forget(run, i);
		return wp_cause_set(cause, WP_CAUSE_GONE, pid), -ENOENT;
	}
	synthetic_records_free(&run->synthetic);
	if (describe_process(run, process, since) < 0)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	initial_sharers_report(run, process);
	session_doubt(&run->session, "process %d ran for at most %.1f ms "
	    "before it was watched", pid,
	    (double)(wp_target_armed(run->target) - since) / 1e6);
	return 0;
}
