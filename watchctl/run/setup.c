/*
 * setup: from the command line to armed watches.
 *
 * Overview: probe what is possible; make the target and, with it, the rings;
 * hold the command or look at the processes; find out what the SPECs mean
 * there; arm; and only then describe what is armed to the session, since its
 * events have their ids by then.
 *
 *	prepare -> launch -> learn -> find_watches -> arm -> describe
 *
 * What can fail comes before the arming, as far as it can.
 */
#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "watch/aslr.h"
#include "probe/probe.h"
#include "os/clock.h"
#include "os/proc.h"
#include "util/complain.h"
#include "util/executable.h"
#include "watch/fire_check.h"
#include "watch/ptrace_refused.h"
#include "run/everywhere.h"
#include "run/exec_tracer.h"
#include "run/initial_values.h"
#include "run/loader.h"
#include "run/new_module.h"
#include "run/thread_local.h"
#include "session/replay.h"
#include "run/run.h"
#include "spec/condition_filter.h"

/* Room for what is found out about each process. */
static int
make_processes(struct run *run)
{
	const struct options *o = run->options;

	if (o->exe != NULL && arrivals_open(&run->arrivals, o->exe) < 0)
		return -EINVAL;
	if (o->command == NULL &&
	    chosen_find(&run->chosen, o, run->arrivals) < 0)
		return -EINVAL;
	run->nprocesses = o->command != NULL || options_everywhere(o) ? 1 :
	    run->chosen.n;
	/* one more, for there may be none */
	run->process = calloc(run->nprocesses + 1, sizeof(*run->process));
	for (size_t i = 0; run->process != NULL && i < run->nprocesses; i++) {
		struct process *process = &run->process[i];

		process->pid = o->command != NULL ? 0 :
		    options_everywhere(o) ? EVERYWHERE : run->chosen.pid[i];
		process->place = calloc(o->nspecs, sizeof(*process->place));
		if (process->place == NULL)
			return complain("out of memory");
	}
	return run->process == NULL ? complain("out of memory") : 0;
}

/* Events are refused, for this cause: whether stops by debug registers do what
   is asked for, as the end of a sentence. */
static const char *
without_events(const struct options *o, const struct wp_cause *cause)
{
	if (o->stop || (cause->err != EPERM && cause->err != EACCES &&
	    cause->err != ENOSYS))
		return "";
	if (!ptrace_works())
		return "; ptrace(2) is refused too, and --stop and --inside "
		    "cannot do without both";
	return o->count || o->follow || o->form == FORM_PERF ?
	    "; --stop does without, but not with --count, -f or -o perf" :
	    "; or add --stop, which does without";
}

/* Forget a process, and the watches planned for it. */
static void
leave_out(struct run *run, size_t i)
{
	const size_t nspecs = run->options->nspecs;
	size_t planned = 0;

	if (run->target != NULL)
		(void)wp_target_watches(run->target, &planned);
	if (!run->waits && planned > i * nspecs) {
		wp_target_unwatch(run->target, i * nspecs, nspecs);
		for (size_t k = i + 1; k < run->nprocesses; k++)
			run->process[k].first -= nspecs;
	}
	run_leave_out(run, i);
}

/* A process cannot be watched.  If it has ended, and others are to be watched,
   it is left out.  0, or err; with a line on stderr. */
static int
skip(struct run *run, size_t i, int err, const struct wp_cause *cause)
{
	struct wp_cause now = {0};
	bool skipped;

	if (run->options->command == NULL && run->process[i].pid != EVERYWHERE)
		(void)wp_target_check(run->process[i].pid, &now);
	skipped = (run->nprocesses > 1 || run->options->exe != NULL) &&
	    (now.code == WP_CAUSE_NO_PROCESS || now.code == WP_CAUSE_ZOMBIE ||
	    now.code == WP_CAUSE_GONE);
	if (skipped)
		leave_out(run, i);
	if (skipped || cause->code != WP_CAUSE_NONE)
		(void)complain("%s%s", skipped ? now.text : cause->text,
		    skipped ? "; skipped" : "");
	return skipped ? 0 : err;
}

/* Do something with each process that is to be watched. */
static int
each_process(struct run *run,
    int (*fn)(struct run *, struct process *, struct wp_cause *))
{
	struct wp_cause cause = {0};
	int err = 0;

	for (size_t i = 0; i < run->nprocesses && err == 0;) {
		if ((err = fn(run, &run->process[i], &cause)) == 0)
			i++;
		else
			err = skip(run, i, err, &cause);
	}
	return err;
}

/* One that was named. */
static int
check(struct run *run, struct process *process, struct wp_cause *cause)
{
	(void)run;
	return wp_target_check(process->pid, cause);
}

/* What keeps this run from waiting for a module. */
static const char *
waits_not_with(const struct options *o)
{
	return o->stop ? "--stop" : o->count ? "--count" :
	    o->follow_pointers ? "--follow" : o->form == FORM_PERF ?
	    "-o perf" : o->exe != NULL ? "--exe" : NULL;
}

/* Whether one of the processes that run has not mapped a SPEC's module. */
static bool
is_missing(const struct run *run, const struct spec *spec)
{
	for (size_t i = 0; i < run->nprocesses; i++)
		if (!module_is_mapped(run->process[i].pid, spec))
			return true;
	return false;
}

/* Whether what is watched may come with dlopen(3), and this way of watching waits
   for it. */
static bool
waits_for_modules(const struct run *run)
{
	const struct options *o = run->options;

	if (waits_not_with(o) != NULL || run->ops->registers ||
	    options_everywhere(o))
		return false;
	for (size_t i = 0; i < o->nspecs; i++)
		if (module_may_come(&o->spec[i]) && (o->command != NULL ||
		    is_missing(run, &o->spec[i])))
			return true;
	return false;
}

static bool
know(void *arg, const struct wp_known_stack *stack)
{
	const struct run *run = arg;

	return wp_target_know(run->target, stack);
}

static void
forget(void *arg, pid_t pid)
{
	const struct run *run = arg;

	wp_target_forget(run->target, pid);
}

/* Have an explainer keep the session, if anything is explained. */
static int
open_kept(struct run *run)
{
	const struct options *o = run->options;
	int err;

	if (o->form == FORM_PERF)
		return 0;
	err = kept_session_open(&run->kept, &run->session, &run->live.box);
	if (err == 0)
		kept_session_know(run->kept, know, forget, run);
	return err;
}

/* What is possible here, and with it the target and its rings. */
static int
prepare(struct run *run)
{
	const struct options *o = run->options;
	struct wp_options wish = {
		.count = o->count, .kernel = !o->user_only,
		.follow = o->follow, .stack = o->stack, .stop = o->stop,
		.for_perf = o->form == FORM_PERF,
		.whole_stacks = o->form == FORM_PERF || o->last != 0,
		/* a program writes the address that a slot had at first */
		.bpf = o->delivery != DELIVERY_RING && !o->follow_pointers &&
		    (o->count || !options_everywhere(o)),
		.everywhere = options_everywhere(o),
		.with = o->with,
		.filter = condition_filter(&o->condition, &run->filter) ?
		    &run->filter : NULL,
	};
	struct wp_cause cause = {0};

	if (make_processes(run) < 0 ||
	    (o->command == NULL && !options_everywhere(o) &&
	    each_process(run, check) < 0))
		return -EINVAL;
	run->ops = o->stop ? &run_by_stop : &run_by_ring;
	if (wp_probe_features(&run->features, &cause) < 0 &&
	    run_choose_debugreg(run, &cause) < 0)
		return complain("%s%s", cause.text, without_events(o, &cause));
	run->waits = (o->command != NULL && o->skip_missing) ||
	    waits_for_modules(run);
	if (run->waits && run->ops->registers)
		return complain("--if-missing skip: without perf events, which "
		    "are refused here, only one program can be watched: leave "
		    "it out, and watch the program itself");
	if (fire_check_try(run->ops->registers) < 0)
		return -ENODEV;
	wish.registers = run->ops->registers;
	if (o->with != 0 && run->ops->registers)
		return complain("--with: perf events, which count, are refused "
		    "here (%s): leave it out", cause.text);
	if (wp_target_new(&run->target, &run->features, &wish, &cause) < 0)
		return complain("%s%s", o->with != 0 ? "--with: " : "",
		    cause.text);
	if (o->delivery == DELIVERY_BPF &&
	    wp_target_no_bpf(run->target)->code != WP_CAUSE_NONE)
		return complain("--delivery bpf: %s; --delivery ring does "
		    "without", wp_target_no_bpf(run->target)->text);
	if (o->follow_pointers && follow_open(&run->follow, run) < 0)
		return -ENOMEM;
	if (run_poll_make(run) < 0 ||
	    (run->ops->open != NULL && run->ops->open(run) < 0))
		return -ENOMEM;
	if (session_open(&run->session, o,
	    o->command != NULL ? stderr : stdout) < 0)
		return -EINVAL;
	live_box_make(&run->live, o->explain_memory, o->form == FORM_PERF ?
	    NULL : o->argv);
	run->live.box.answers.no_cache = o->no_cache;
	/* which may be any process's */
	run->live.box.answers.no_memory = options_everywhere(o);
	return open_kept(run);
}

int
run_learn(struct run *run, struct process *process, bool executed,
    struct wp_cause *cause)
{
	const size_t before = run->synthetic.len;
	int err = synthetic_records_take(&run->synthetic, process->pid);

	if (err == 0 && executed)
		synthetic_records_executed(&run->synthetic, before);
	if (err == 0)
		err = live_box_learn(&run->live, process->pid,
		    run->synthetic.bytes + before, run->synthetic.len - before);
	if (run->kept != NULL)		/* a recording begins with them all */
		run->synthetic.len = before;
	if (err == -ESRCH)
		return wp_cause_set(cause, WP_CAUSE_GONE, process->pid);
	if (err == -EACCES || err == -EPERM)
		return wp_cause_denied(cause, process->pid);
	if (err < 0)
		return wp_cause_errno(cause, "reading its mappings", -err);
	if (wp_proc_comm(process->pid, process->pid, process->comm) < 0)
		process->comm[0] = '\0';
	return 0;
}

/* A SPEC's module is not mapped, for this cause. */
static void
explain_not_waiting(const struct run *run, const struct spec *spec,
    struct wp_cause *cause)
{
	const char *with = waits_not_with(run->options);
	const size_t len = strlen(cause->text);

	if (with != NULL && cause->code == WP_CAUSE_MODULE_UNKNOWN &&
	    module_may_come(spec))
		(void)snprintf(cause->text + len, sizeof(cause->text) - len,
		    "; %s cannot wait for it", with);
}

static int
resolve_one(struct run *run, struct process *process, size_t i, bool early,
    struct wp_cause *cause)
{
	struct spec *spec = &run->options->spec[i];

	return run->options->command == NULL && run->follow == NULL ?
	    thread_local_resolve(&run->live, process->pid, spec,
	    &process->place[i], cause) : live_box_resolve(&run->live,
	    process->pid, spec, early, &process->place[i], cause);
}

/* Find each SPEC in a process; early: before its libraries are mapped.  0 or
   -errno with a cause; -ENOENT: not there, as far as its modules are mapped. */
static int
resolve(struct run *run, struct process *process, bool early,
    struct wp_cause *cause)
{
	int err = 0;

	for (size_t i = 0; i < run->options->nspecs && err == 0; i++) {
		free(process->place[i].symbol);
		process->place[i].symbol = NULL;
		run->options->spec[i].unborn = run->options->command != NULL;
		run->options->spec[i].follow = run->follow != NULL;
		err = resolve_one(run, process, i, early, cause);
		if (err < 0)
			explain_not_waiting(run, &run->options->spec[i], cause);
	}
	return err;
}

int
run_launch(struct run *run, struct wp_cause *cause)
{
	return run->options->command == NULL ? 0 :
	    wp_target_launch(run->target, run->options->command,
	    &run->process->pid, cause);
}

/* Start the command, held, or what else has to be there first; a command's
   failures have statuses of their own. */
static int
launch(struct run *run)
{
	struct wp_cause cause = {0};
	char path[PATH_MAX];
	int err, before = aslr_begin(run->options);

	if (before < 0)
		return STATUS_OWN_FAILURE;
	err = run->ops->launch(run, &cause);
	aslr_end(before);
	if (err == 0)
		return 0;
	if (cause.code == WP_CAUSE_NOT_FOUND &&
	    executable_find(run->options->command[0], path) == 0)
		(void)wp_cause_set(&cause, WP_CAUSE_NO_INTERPRETER, path);
	(void)complain("%s%s", cause.text,
	    cause.code == WP_CAUSE_HOLD_DENIED ? ptrace_way_out(true) : "");
	return cause.err == ENOENT ? STATUS_NOT_FOUND :
	    cause.code == WP_CAUSE_NOT_EXECUTABLE ? STATUS_NOT_EXECUTABLE :
	    STATUS_OWN_FAILURE;
}

/* Let the held command's loader map more modules, until the SPECs are found or
   the program itself begins. */
static int
resolve_launched(struct run *run, struct wp_cause *cause)
{
	enum { HOOK, ENTRY, STOPS };
	struct process *process = run->process;
	const unsigned first = loader_count(process->pid);
	struct loader loader;
	bool early = true;
	int err, at = HOOK;

	loader_find(process->pid, &run->live, &loader);
	/* it takes an event to stop it elsewhere */
	while ((err = resolve(run, process, early, cause)) == -ENOENT &&
	    at == HOOK && !run->ops->registers) {
		const uint64_t stop[STOPS] = {loader.hook, loader.entry};

		at = wp_target_run_to(run->target, stop, STOPS, NULL,
		    &run->command_status);
		if (at == -ECHILD)
			return wp_cause_set(cause, WP_CAUSE_ENDED_EARLY);
		if (at < 0)
			return wp_cause_errno(cause, "running the command up "
			    "to its libraries", -at);
		synthetic_records_free(&run->synthetic);
		if ((err = run_learn(run, process, false, cause)) < 0)
			return err;
		early = at == HOOK && loader_count(process->pid) == first;
	}
	return err;
}

/* Whether the bytes are there; of a command an address need not be yet, such as
   one of a heap. */
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

/* What the SPECs mean in a process, and that it can be watched there. */
static int
find_watches(struct run *run, struct process *process, struct wp_cause *cause)
{
	const struct options *o = run->options;
	struct wp_region *regions;
	int err;

	if (process->pid == EVERYWHERE)
		return everywhere_find(run, process, cause);
	if ((err = run_learn(run, process, false, cause)) < 0)
		return err;
	if ((regions = calloc(o->nspecs, sizeof(*regions))) == NULL)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	err = o->command != NULL ? resolve_launched(run, cause) :
	    resolve(run, process, false, cause);
	for (size_t i = 0; i < o->nspecs && err >= 0; i++)
		regions[i] = (struct wp_region){
			.addr = process->place[i].addr,
			.len = process->place[i].len,
			.access = o->spec[i].access,
		};
	if (err >= 0 && run->follow != NULL)
		err = follow_plan(run->follow, process, regions, cause);
	if (err >= 0)
		err = wp_target_watch(run->target, regions, o->nspecs, cause);
	process->first = err >= 0 ? (size_t)err : 0;
	process->n = o->nspecs;
	for (size_t i = 0; i < o->nspecs && err >= 0; i++)
		if (o->spec[i].line != 0)
			err = wp_target_places(run->target, process->first + i,
			    process->place[i].more, process->place[i].nmore,
			    cause);
	for (size_t i = 0; i < o->nspecs && err >= 0; i++)
		if (o->spec[i].line != 0 || process->place[i].nmore == 0)
			err = check_mapped(run, process, i, &regions[i],
			    cause);
	for (size_t i = 0; i < o->nspecs && err >= 0; i++)
		if (!o->count && o->form != FORM_PERF && regions[i].addr != 0)
			err = session_object(&run->session, process->pid,
			    &o->spec[i], regions[i].addr, regions[i].len);
	free(regions);
	return err < 0 ? err : 0;
}

/* From here on every access counts. */
static int
arm(struct run *run, struct process *process, struct wp_cause *cause)
{
	const unsigned before = wp_target_threads(run->target);
	int err;

	if (process->pid != EVERYWHERE)
		run_track_children(run, process);
	if (run->follow != NULL &&
	    (err = follow_arm(run->follow, process, cause)) < 0)
		return err;
	if ((err = run->ops->attach(run, process, cause)) == 0)
		err = thread_local_check(process->pid, run->options->spec,
		    run->options->nspecs, cause);
	process->threads = (long)(wp_target_threads(run->target) - before);
	if (err == 0 && run->arrivals != NULL)
		arrivals_armed(run->arrivals, process->pid,
		    wp_target_armed(run->target));
	return err;
}

/* Tell session and formats of one slot; event describes it for a
   recording, its ids malloc'd. */
static int
describe_slot(struct run *run, size_t w, unsigned i,
    const struct wp_slot *slot, struct ex_perf_event *event)
{
	uint64_t *ids;
	int err, n = wp_target_slot_ids(run->target, w, i, &event->attr, &ids);

	if (n < 0)
		return n;
	event->ids = ids;
	event->nids = (size_t)n;
	err = ex_formats_add(run->formats, &event->attr, ids, event->nids);
	session_format(&run->session, &event->attr, ids, event->nids);
	return err < 0 ? err : session_add_slot(&run->session,
	    (int)(w + run->npending), slot->addr,
	    wp_slot_bytes(slot->type, slot->len));
}

/* Which SPEC a watch of a process is for. */
static size_t
spec_of(const struct process *process, size_t w)
{
	return process->program ? process->spec[w - process->first] :
	    w - process->first;
}

/* How the session knows a watch; of several processes, which one it is in. */
static int
add_watch(struct run *run, const struct process *process, size_t w,
    const struct wp_watched *watched)
{
	const size_t i = spec_of(process, w);
	const struct spec *spec = &run->options->spec[i];

	/* of a command its first program is another one in the list */
	if (run->nprocesses > (run->waits ? 2 : 1) || run->npending > 0 ||
	    run->options->exe != NULL)
		session_of_process(&run->session, (unsigned)i + 1,
		    process->pid, process->comm);
	session_moves(&run->session, follow_has(run->follow, w), 0);
	session_pending(&run->session, watched->region.addr == 0 &&
	    follow_has(run->follow, w));
	return session_add_watch(&run->session, spec->text,
	    process->place[i].symbol, watched->region.addr,
	    watched->region.len, spec->access, watched->nslots);
}

int
run_describe_place(struct run *run, int watch, size_t w,
    const struct wp_slot *slot)
{
	struct perf_event_attr attr;
	uint64_t *ids;
	int err, n = wp_target_slot_ids(run->target, w, 0, &attr, &ids);

	if (n < 0)
		return n;
	/* its events are those of the first place */
	free(ids);
	err = ex_formats_add(run->formats, &attr, NULL, 0);
	session_format(&run->session, &attr, NULL, 0);
	return err < 0 ? err : session_add_slot(&run->session, watch,
	    slot->addr, wp_slot_bytes(slot->type, slot->len));
}

/* Pass an armed watch of a process to the session.  Result: how many events it has,
   for a recording, with ids to be freed; or -errno. */
static int
describe_watch(struct run *run, const struct process *process, size_t w,
    struct ex_perf_event *events)
{
	size_t n;
	const struct wp_watched *watched =
	    &wp_target_watches(run->target, &n)[w];
	const struct spec *spec = &run->options->spec[spec_of(process, w)];
	int err = add_watch(run, process, w, watched);

	for (unsigned i = 0; i < watched->nslots && err >= 0; i++) {
		events[i].name = spec->text;
		err = describe_slot(run, w, i, &watched->slot[i], &events[i]);
		events[i].attr.config = spec->access == WP_READ ? REPLAY_READS :
		    0;
	}
	return err < 0 ? err : (int)watched->nslots;
}

int
run_describe_armed(struct run *run, const struct process *process, size_t w)
{
	struct ex_perf_event events[WP_SLOTS_MAX] = {{.ids = NULL}};
	const int n = describe_watch(run, process, w, events);

	for (size_t i = 0; i < WP_SLOTS_MAX; i++)
		free((uint64_t *)(uintptr_t)events[i].ids);
	if (n < 0)
		return n;
	if (run->kept != NULL)
		initial_value_report(run, w, process->pid);
	return 0;
}

const struct process *
run_process_of(const struct run *run, size_t w)
{
	const struct process *process = run->process;

	while (w < process->first || w >= process->first + process->n)
		process++;
	return process;
}

const struct ex_watch *
run_spec_watch(const struct run *run, size_t i)
{
	const struct session *s = &run->session;
	size_t w = 0;

	while (w < s->nwatches && ex_watch_number(s->watches[w]) != i + 1)
		w++;
	return w < s->nwatches ? s->watches[w] : NULL;
}

const struct ex_watch *
run_watch(const struct run *run, size_t w)
{
	return run->session.watches[w + run->npending];
}

/* Whether a SPEC is not armed: it may be in programs that are executed from here
   on, or in a module that a process has not mapped yet. */
static bool
is_pending(const struct run *run, size_t i)
{
	bool waits = run->options->skip_missing;

	for (size_t k = 0; k < run->nprocesses && !waits; k++)
		waits = run->process[k].waits != NULL &&
		    run->process[k].waits[i];
	return waits;
}

static int
describe_pending(struct run *run)
{
	const struct options *o = run->options;
	int err = 0;

	session_pending(&run->session, true);
	for (size_t i = 0; i < o->nspecs && err == 0; i++) {
		if (!is_pending(run, i))
			continue;
		session_of_process(&run->session, (unsigned)i + 1, 0, "");
		err = session_add_watch(&run->session, o->spec[i].text, NULL,
		    0, o->spec[i].len, o->spec[i].access, 0);
		run->npending += err == 0;
	}
	session_pending(&run->session, false);
	if (run->npending == 0)
		session_of_process(&run->session, 0, 0, "");
	return err;
}

/* Pass everything that is armed to the session. */
static int
describe(struct run *run)
{
	struct ex_perf_event *events;
	size_t n, nevents = 0;
	int err;

	(void)wp_target_watches(run->target, &n);
	events = calloc(n + 1, WP_SLOTS_MAX * sizeof(*events));
	err = events == NULL ? -ENOMEM : 0;
	run->formats = ex_formats_new();
	if (run->formats == NULL)
		err = -ENOMEM;
	if (run->waits && err == 0)
		err = describe_pending(run);
	for (size_t w = 0; w < n && err >= 0; w++) {
		err = describe_watch(run, run_process_of(run, w), w,
		    events + nevents);
		nevents += err > 0 ? (size_t)err : 0;
	}
	if (err < 0 || (err = session_ready(&run->session)) < 0)
		(void)complain_errno(-err, "preparing the report");
	else if (run->kept == NULL)
		err = recording_begin(run, events, nevents);
	else
		initial_values_report(run);
	for (size_t i = 0; events != NULL && i < nevents; i++)
		free((uint64_t *)(uintptr_t)events[i].ids);
	free(events);
	return err;
}

static void
warn_unmapped(struct run *run)
{
	for (size_t i = 0; run->options->command != NULL &&
	    i < run->options->nspecs; i++)
		if (run->process->place[i].later)
			aslr_warn_unmapped(&run->session, run->options, i);
}

/* A process that was created before its parent was watched. */
static void
warn_missing(struct run *run)
{
	const pid_t missing = chosen_missing(&run->chosen, run->options);

	if (missing == 0)
		return;
	session_warn(&run->session, "process %d was created after the "
	    "processes of -p @CHILDREN were looked for: it is perhaps not "
	    "watched", missing);
	session_doubt(&run->session, "process %d was perhaps not watched",
	    missing);
}

unsigned
run_threads(const struct run *run)
{
	return wp_target_threads(run->target);
}

void
run_announce_kernel(struct run *run)
{
	if (!run->options->user_only && !wp_target_options(run->target)->kernel)
		session_warn(&run->session, "the kernel's accesses on the "
		    "program's behalf are not watched: not permitted "
		    "(kernel.perf_event_paranoid is %d); --user-only accepts "
		    "that", run->features.paranoid);
}

static const char *
delivery(const struct run *run)
{
	return run->ops->registers ? "ptrace" : run->options->count ? NULL :
	    wp_target_bpf(run->target) ? "bpf" : "ring";
}

void
run_announce(struct run *run)
{
	const struct wp_options *got = wp_target_options(run->target);
	struct report_start start = {
		.pid = run->process->pid,
		.mode = run->ops->mode, .delivery = delivery(run),
		.threads = run->ops->threads(run),
		.frozen_ms = wp_target_frozen_ms(run->target),
		.time = run->began, .wall = wp_clock_wall(run->began),
		.comm = *run->process->comm == '\0' ? NULL :
		    run->process->comm,
	};

	session_start(&run->session, &start);
	run->ops->announce(run);
	if (run->options->with != 0 && !wp_target_bpf(run->target))
		session_warn(&run->session, "not all hits are delivered by BPF: "
		    "those have no counters (--with)");
	if (!run->options->follow && !got->inherit_thread && !got->stop)
		session_warn(&run->session, "this kernel cannot distinguish "
		    "threads from children: child processes are watched too");
	if (wp_target_inexact(run->target)) {
		session_doubt(&run->session, "a thread may have been missed "
		    "while attaching");
		session_warn(&run->session, "the process could not be held "
		    "while attaching (another traces it, or ptrace is not "
		    "permitted): a thread created then may be missed or "
		    "counted twice");
	}
	warn_unmapped(run);
	warn_missing(run);
	for (size_t i = 0; i < run->nprocesses &&
	    !options_everywhere(run->options); i++)
		initial_sharers_report(run, &run->process[i]);
	run_check_processors(run);
	(void)session_flush(&run->session, 0);
}

/* Watch a process that may map more of what is to be watched. */
static int
attach_waiting(struct run *run, struct process *process, struct wp_cause *cause)
{
	int err = process->program ? 0 :	/* one that was just added */
	    run_learn(run, process, false, cause);

	return err < 0 || process->program ? err :
	    exec_tracer_attach(run->tracer, process->pid, cause);
}

/* Who has the memory of the processes from this one on, before they are armed, and
   when they are.  A command has been held since its execve(2). */
static void
find_sharers(struct run *run, size_t first, bool armed)
{
	if (run->options->command != NULL || first == run->nprocesses)
		return;
	initial_sharers_find(run, &run->process[first],
	    run->nprocesses - first, armed);
	for (size_t i = first; armed && run->ops->lend != NULL &&
	    i < run->nprocesses; i++)
		run->ops->lend(run, &run->process[i]);
}

/* Find the watches of each process, and arm them. */
static int
find_and_arm(struct run *run)
{
	int err;

	if (run->waits && run->options->command == NULL) {
		run->began = wp_clock_ns();
		return each_process(run, attach_waiting);
	}
	if (run->waits) {	/* each program is looked at as it begins */
		run->began = wp_clock_ns();
		err = run_learn(run, run->process, false, &(struct wp_cause){0});
		if (err < 0 && err != -ESRCH)
			return complain("reading the command's mappings: %s",
			    strerror(-err));
		if (!run->options->skip_missing)
			exec_tracer_take_one(run->tracer);
		return run->refused ? -EINVAL : 0;
	}
	if ((err = each_process(run, find_watches)) < 0)
		return err;
	run->began = wp_clock_ns();
	run_round(run);
	if (options_everywhere(run->options)) {
		if ((err = each_process(run, arm)) == 0)
			everywhere_learn(run);
		return err;
	}
	find_sharers(run, 0, false);
	err = each_process(run, arm);
	if (err == 0)
		find_sharers(run, 0, true);
	return err;
}

/* Describe the watches of the last process to a report that has begun. */
static int
describe_process(struct run *run, const struct process *process, uint64_t since)
{
	const uint64_t armed = wp_target_armed(run->target);

	for (size_t i = 0; i < run->options->nspecs; i++) {
		const size_t w = process->first + i;
		const int err = run_describe_armed(run, process, w);
		size_t n;

		if (err < 0)
			return err;
		session_event(&run->session, &(struct watch_event){
			.what = WATCH_ARMED, .watch = (unsigned)w,
			.time = armed, .pid = process->pid,
			.addr = wp_target_watches(run->target,
			    &n)[w].region.addr,
			.len = process->place[i].len,
			.gap = since == WATCH_NO_GAP ? since :
			    armed > since ? armed - since : 0,
		});
	}
	return 0;
}

struct process *
run_new_process(struct run *run, pid_t pid)
{
	struct process *process = reallocarray(run->process,
	    run->nprocesses + 1, sizeof(*process));
	struct spec_place *place = calloc(run->options->nspecs, sizeof(*place));

	if (process != NULL)
		run->process = process;
	if (process == NULL || place == NULL) {
		free(place);
		return NULL;
	}
	process += run->nprocesses;
	*process = (struct process){.pid = pid, .place = place};
	run->nprocesses++;
	return process;
}

/* One that is slept on, too. */
static struct process *
new_polled(struct run *run, pid_t pid)
{
	struct process *process = run_new_process(run, pid);

	if (process == NULL || run_poll_add(run, pid) == 0)
		return process;
	run->nprocesses--;
	free(process->place);
	return NULL;
}

/* It was watched as another program, or another process had this id: what is kept
   of that is told. */
static void
settle_before(struct run *run, pid_t pid)
{
	bool known = false;

	for (size_t i = 0; i < run->nprocesses; i++)
		known = known || run->process[i].pid == pid;
	if (known && run->options->last != 0)
		run->ops->settle(run);
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
	if ((process = new_polled(run, pid)) == NULL)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	(void)wp_proc_program(pid, &program);
	if ((err = find_watches(run, process, cause)) == 0) {
		find_sharers(run, i, false);
		err = arm(run, process, cause);
	}
	if (err < 0) {
		leave_out(run, i);
		return err;
	}
	find_sharers(run, i, true);
	/* addresses are those of the program that it was */
	if (wp_proc_program(pid, &now) < 0 || now != program) {
		arrivals_armed(run->arrivals, pid, 0);
		run_disarm(run, process);
		leave_out(run, i);
		return wp_cause_set(cause, WP_CAUSE_GONE, pid), -ENOENT;
	}
	synthetic_records_free(&run->synthetic);
	if (describe_process(run, process, since) < 0)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	initial_sharers_report(run, process);
	if (since == WATCH_NO_GAP)
		session_doubt(&run->session, "process %d ran before it was "
		    "watched, for how long is not known", pid);
	else
		session_doubt(&run->session, "process %d ran for %.1f ms "
		    "before it was watched", pid,
		    (double)(wp_target_armed(run->target) - since) / 1e6);
	return 0;
}

int
run_begin(struct run *run)
{
	const struct options *o = run->options;
	int err;

	if (prepare(run) < 0)
		return STATUS_OWN_FAILURE;
	if ((err = launch(run)) != 0)
		return err;
	if (o->command != NULL) {
		run->command = run->process->pid;
		run_check_privileges(run, run->command);
	}
	/* a file's limit is an error like others; the command has it as it
	   was */
	(void)signal(SIGXFSZ, SIG_IGN);
	if (run_poll_processes(run) < 0)
		return STATUS_OWN_FAILURE;
	/* a command that is gone has ended by itself, unwatched */
	if ((err = find_and_arm(run)) == -ESRCH && o->command != NULL &&
	    o->error_status != 0)
		return STATUS_NOT_VOUCHED;
	if (err < 0 || describe(run) < 0)
		return STATUS_OWN_FAILURE;
	return 0;
}
