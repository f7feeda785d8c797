/*
 * new_module: modules that a process maps while the watch is on.
 *
 * The dynamic loader calls a function that does nothing when its list of
 * modules is about to change, and when it has changed: after a module is
 * mapped, and before it is relocated and its constructors run; and after one is
 * unmapped.  A thread that calls it is held there, and what is mapped is
 * compared with what is watched.
 */
#include "pending/new_module.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "proc/proc.h"
#include "pending/exec_tracer.h"
#include "run/initial_values.h"
#include "pending/loader.h"
#include "pending/new_program.h"
#include "run/run.h"
#include "pending/thread_local.h"

enum {
	LIMIT_S = 10,		/* for a loader to start */
	LOOK_NS = 1000000,	/* ns between looks at it */
};

const char *
run_changes_not_with(const struct options *o)
{
	return o->count ? "--count" : o->follow_pointers ? "--follow" :
	    o->rotate ? "--slots rotate" : o->form == FORM_PERF ? "-o perf" :
	    options_scope(o);
}

const char *
run_waits_not_with(const struct options *o)
{
	return run_changes_not_with(o);
}

/* --- names --- */

static bool
ends_with(const char *text, const char *end)
{
	const size_t len = strlen(text), n = strlen(end);

	return len >= n && strcmp(text + len - n, end) == 0;
}

bool
module_may_come(const struct spec *spec)
{
	static const char *const sources[] = {
		".c", ".cc", ".cpp", ".cxx", ".C", ".h", ".f", ".f90", ".F90",
		".rs", ".S", ".s", ".d", ".go", ".m",
	};

	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]) &&
	    spec->module != NULL; i++)
		if (ends_with(spec->module, sources[i]))
			return false;
	/* the thread-local variables of a module loaded later are nowhere
	   yet */
	return spec->symbol != NULL && spec->module != NULL &&
	    spec->thread == 0;
}

struct sought {
	const char *want, *real;
};

static int
is_sought(void *arg, const struct wp_proc_map *map)
{
	const struct sought *sought = arg;

	return map->ino != 0 &&
	    (spec_module_fit(map->path, sought->want) != FIT_NONE ||
	    (sought->real != NULL && strcmp(map->path, sought->real) == 0));
}

bool
module_is_mapped(pid_t pid, const struct spec *spec)
{
	char *real = *spec->module == '/' ? realpath(spec->module, NULL) : NULL;
	struct sought sought = {spec->module, real};
	const bool is = wp_proc_maps(pid, is_sought, &sought) == 1;

	free(real);
	return is;
}

/* --- what has changed --- */

static void
report(struct run *run, pid_t pid, enum watch_event_what what, uint64_t time,
    const struct ex_watch *watch, const struct spec *spec)
{
	/* each thread has its own at another address */
	const bool there = what != WATCH_MISSING && !watch->local;
	struct watch_event event = {
		.what = what, .watch = watch->id - 1, .time = time,
		.pid = pid, .gap = WATCH_NO_GAP,
		.addr = there ? watch->addr : 0, .len = there ? watch->len : 0,
	};

	(void)snprintf(event.module, sizeof(event.module), "%.*s",
	    (int)sizeof(event.module) - 1, basename(spec->module));
	session_event(&run->session, &event);
}

/* The process that waits for modules of this one.  An index, because more may
   be added to the list; nprocesses if none does. */
static size_t
find_waiting(const struct run *run, pid_t pid)
{
	size_t i = run->nprocesses;

	while (i-- > 0)
		if (run->process[i].pid == pid && run->process[i].hook != 0 &&
		    !run->process[i].module)
			return i;
	return run->nprocesses;
}

/* The module of a SPEC is no longer mapped. */
static void
leave(struct run *run, pid_t pid, size_t spec)
{
	for (size_t i = 0; i < run->nprocesses; i++) {
		struct process *process = &run->process[i];

		if (process->pid != pid || !process->module ||
		    process->disarmed || process->spec[0] != spec)
			continue;
		report(run, pid, WATCH_DISARMED, wp_clock_ns(), run_watch(run,
		    process->first), &run->options->spec[spec]);
		run_disarm(run, process);
		process->each = false;
	}
}

/* Find it in its module, plan and arm it, and describe it.  0 or -errno with a
   cause. */
static int
arm(struct run *run, struct process *process, size_t i, struct wp_cause *cause)
{
	struct spec *spec = &run->options->spec[i];
	struct spec_place *place = &process->place[i];
	struct wp_region region;
	int err = run_learn(run, process, true, cause);

	if (err < 0)
		return err;
	spec->unborn = false;
	if ((err = thread_local_resolve(&run->live, process->pid, spec,
	    thread_local_not_with(run->options) == NULL, false, place,
	    cause)) < 0)
		return err;
	region = run_region(run, process, i);
	if ((err = wp_target_mapped(process->pid, &region, cause)) < 0 ||
	    (err = wp_target_watch(run->target, &region, 1, cause)) < 0)
		return err;
	process->first = (size_t)err;
	process->n = 1;
	process->spec[0] = i;
	process->each = place->local;
	if (place->local)
		wp_target_local(run->target, process->first, place->base);
	(void)session_object(&run->session, process->pid, spec, region.addr,
	    region.len);
	initial_sharers_find(run, process, 1, false);
	process->since = wp_clock_ns();	/* there are no hits from before */
	if ((err = exec_tracer_arm(run->tracer, process, cause)) < 0) {
		wp_target_unwatch(run->target, process->first, process->n);
		process->n = 0;
		return err;
	}
	initial_sharers_find(run, process, 1, true);
	if (!run->session.started)
		return 0;	/* it is described with all others */
	initial_sharers_report(run, process);
	return run_describe_armed(run, process, process->first);
}

static void
give_up(struct run *run, struct process *process, const struct spec *spec,
    const struct wp_cause *cause)
{
	session_warn(&run->session, "process %d: %s", process->pid,
	    cause->code != WP_CAUSE_NONE ? cause->text : spec->text);
	session_doubt(&run->session, "%s was not watched in process %d",
	    spec->text, process->pid);
	process->disarmed = true;
}

/* 0; or before the report has begun -errno with a cause. */
static int
enter(struct run *run, pid_t pid, size_t i, struct wp_cause *cause)
{
	struct process *process = run_new_program(run, pid);
	const struct spec *spec = &run->options->spec[i];
	int err;

	*cause = (struct wp_cause){0};
	if (process == NULL) {
		session_note(&run->session, -ENOMEM);
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	}
	process->module = true;
	if ((err = arm(run, process, i, cause)) < 0) {
		if (run->session.started)
			give_up(run, process, spec, cause);
		return err;
	}
	if (run->session.started)
		report(run, pid, WATCH_ARMED, process->since, run_watch(run,
		    process->first), spec);
	run->found = true;
	return 0;
}

static int
take_modules(struct run *run, pid_t pid, struct wp_cause *cause)
{
	const size_t waiting = find_waiting(run, pid);
	int err = 0;

	/* what is watched may be unmapped next, and then its code could not be
	   compared any more with that of its file, which is what is
	   explained */
	if (run->session.started)
		(void)run_explain_before(run, pid);
	for (size_t i = 0; waiting < run->nprocesses &&
	    i < run->options->nspecs; i++) {
		const struct spec *spec = &run->options->spec[i];
		bool is, *waits = run->process[waiting].waits;

		if (!module_may_come(spec))
			continue;
		is = module_is_mapped(pid, spec);
		if (waits[i] && is)
			err = enter(run, pid, i, cause);
		else if (!waits[i] && !is)
			leave(run, pid, i);
		run->process[waiting].waits[i] = !is;
		if (err < 0 && !run->session.started)
			return err;
	}
	return 0;
}

void
run_modules(struct run *run, pid_t pid)
{
	struct wp_cause cause;

	(void)take_modules(run, pid, &cause);
}

/* --- a process that runs already --- */

/* Resolve the SPECs that must exist now: all except those of a module that may
   be mapped later.  If that module is mapped already, its SPECs must exist,
   too.  0 or -errno with a cause. */
static int
find_now(struct run *run, struct process *process, struct wp_cause *cause)
{
	int err = run_learn(run, process, false, cause);

	bool any = false;

	for (size_t i = 0; i < run->options->nspecs && err == 0; i++) {
		struct spec *spec = &run->options->spec[i];

		spec->unborn = false;
		any = any || module_may_come(spec);
		process->waits[i] = module_may_come(spec);
		if (process->waits[i] && !module_is_mapped(process->pid, spec))
			err = process->hook != 0 ? 0 : wp_cause_set(cause,
			    WP_CAUSE_STATIC, spec->text, process->pid,
			    spec->module);
		else
			err = thread_local_resolve(&run->live, process->pid,
			    spec, thread_local_not_with(run->options) == NULL,
			    false, &process->place[i], cause);
		/* it runs, and has opened or closed the module meanwhile */
		if (err < 0 && process->waits[i] &&
		    (cause->code == WP_CAUSE_MODULE_UNKNOWN ||
		    cause->code == WP_CAUSE_UNMAPPED))
			err = 0;
	}
	if (!any)
		process->hook = 0;
	return err;
}

/* Arm what was found, hold all threads, and have them stop at their hook. */
static int
attach(struct run *run, struct process *process, struct wp_cause *cause)
{
	bool *found = calloc(run->options->nspecs, sizeof(*found));
	size_t n = 0;
	int err = 0;

	for (size_t i = 0; found != NULL && i < run->options->nspecs; i++)
		n += found[i] = !process->waits[i];
	if (found == NULL || (n > 0 &&
	    (err = run_plan(run, process, found, cause)) < 0)) {
		free(found);
		return err < 0 ? err : wp_cause_set(cause,
		    WP_CAUSE_NO_MEMORY);
	}
	free(found);
	run_track_children(run, process);
	initial_sharers_find(run, process, 1, false);
	process->since = wp_clock_ns();
	if ((err = run->ops->pass(run, process, cause)) < 0)
		return err;
	if ((err = thread_local_check(process->pid, run->options->spec,
	    run->options->nspecs, cause)) < 0) {
		run_disarm(run, process);
		return err;
	}
	run->found = run->found || n > 0;
	initial_sharers_find(run, process, 1, true);
	return 0;
}

/* The loader of what was executed just now has not begun. */
static int
await_hook(struct process *process, struct wp_cause *cause)
{
	const uint64_t limit = wp_clock_ns() + LIMIT_S * UINT64_C(1000000000);

	while ((process->hook = loader_hook_of(process->pid)) == 0 &&
	    loader_is_needed(process->pid)) {
		if (wp_clock_ns() >= limit)
			return wp_cause_set(cause, WP_CAUSE_LOADER_LATE,
			    LIMIT_S);
		wp_clock_sleep(LOOK_NS);
	}
	return process->hook == 0 && wp_proc_exiting(process->pid) ?
	    wp_cause_set(cause, WP_CAUSE_GONE, process->pid) : 0;
}

int
run_attach_waiting(struct run *run, pid_t pid, struct wp_cause *cause)
{
	struct process *process = run_new_program(run, pid);
	int err;

	if (process == NULL || (process->waits =
	    calloc(run->options->nspecs, sizeof(bool))) == NULL)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	if ((err = await_hook(process, cause)) < 0 ||
	    (err = find_now(run, process, cause)) < 0 ||
	    (err = attach(run, process, cause)) < 0) {
		if (process->n > 0)
			wp_target_unwatch(run->target, process->first,
			    process->n);
		process->n = 0;
		process->hook = 0;
		return err;
	}
	/* while it maps one, the hook is called when that is done */
	return process->hook != 0 && loader_is_consistent(pid) ?
	    take_modules(run, pid, cause) : 0;
}
