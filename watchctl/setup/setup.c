/*
 * setup: from the command line to armed watches.
 *
 * Overview: probe what is possible; make the target and, with it, the rings;
 * hold the command or look at the processes; find out what the SPECs mean
 * there; arm; and only then describe what is armed to the session, since its
 * events have their ids by then.
 *
 *	prepare -> launch -> learn -> run_find_watches -> arm -> describe
 *
 * What can fail comes before the arming, as far as it can.
 */
#include "setup/setup.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "watch/aslr.h"
#include "probe/probe.h"
#include "os/uprobe_names.h"
#include "os/clock.h"
#include "proc/proc.h"
#include "os/trap_cpu.h"
#include "util/complain.h"
#include "util/executable.h"
#include "watch/fire_check.h"
#include "watch/ptrace_refused.h"
#include "follow/follow.h"
#include "follow/rotate.h"
#include "pending/exec_tracer.h"
#include "pending/held_modules.h"
#include "pending/new_module.h"
#include "pending/thread_local.h"
#include "processes/cgroup.h"
#include "run/initial_values.h"
#include "run/run.h"
#include "run/counted_hits.h"
#include "setup/arrivals.h"
#include "setup/all_cpus.h"
#include "setup/any_program.h"
#include "setup/mappers.h"
#include "setup/objects.h"
#include "spec/condition_filter.h"

/* Room for what is found out about each process. */
static int
make_processes(struct run *run)
{
	const struct options *o = run->options;

	if (options_shared(o) && mappers_open(&run->mappers, o) < 0)
		return -EINVAL;
	if (options_scope(o) != NULL && run->mappers == NULL &&
	    arrivals_open(&run->arrivals, o) < 0)
		return -EINVAL;
	if ((o->npids > 0 || o->nnames > 0 || run->arrivals != NULL) &&
	    selected_find(&run->chosen, o,
	    run->arrivals == NULL ? NULL : arrivals_fits, run->arrivals) < 0)
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

/* Events are refused, for this cause.  Result: whether stops by debug registers
   could do the same, as the end of a sentence. */
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

/* A process cannot be watched.  If it has ended, and others are to be watched,
   it is left out.  0, or err; with a line on stderr. */
static int
skip(struct run *run, size_t i, int err, const struct wp_cause *cause)
{
	struct wp_cause now = {0};
	bool skipped;

	if (options_any_program(run->options)) {
		any_program_skip(run, i, err, cause);
		return 0;
	}
	if (run->options->command == NULL && run->process[i].pid != EVERYWHERE)
		(void)wp_target_check(run->process[i].pid, &now);
	skipped = (run->nprocesses > 1 || run->arrivals != NULL) &&
	    (now.code == WP_CAUSE_NO_PROCESS || now.code == WP_CAUSE_ZOMBIE ||
	    now.code == WP_CAUSE_GONE);
	if (skipped)
		run_forget(run, i);
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

/* Check a process that was named. */
static int
check(struct run *run, struct process *process, struct wp_cause *cause)
{
	(void)run;
	return wp_target_check(process->pid, cause);
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

/* Whether what is watched may come with dlopen(3), and this way of watching
   waits for it. */
static bool
waits_for_modules(const struct run *run)
{
	const struct options *o = run->options;

	if (run_waits_not_with(o) != NULL || o->stop || run->ops->registers ||
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
	struct wp_known_stack it = *stack;
	const ssize_t w = it.watch == 0 ? -1 :
	    run_target_index(run, it.watch - 1);

	if (it.watch > 0 && w < 0)
		return false;
	it.watch = (uint32_t)(w + 1);
	return wp_target_know(run->target, &it);
}

static void
forget(void *arg, pid_t pid)
{
	struct run *run = arg;

	wp_target_forget(run->target, pid);
	if (pid == 0)
		counted_hits_save(run);
}

/* Have an explainer keep the session, if anything is explained. */
static int
open_kept(struct run *run)
{
	const struct options *o = run->options;
	int err;

	if (o->form == FORM_PERF)
		return 0;
	err = remote_session_open(&run->remote, &run->session,
	    &run->live.broker);
	if (err == 0)
		remote_session_know(run->remote, know, forget, run);
	return err;
}

/* The target's options, except for those that depend on what works here. */
static struct wp_options
wish_of(struct run *run)
{
	const struct options *o = run->options;

	return (struct wp_options){
		.count = o->count, .kernel = !o->user_only,
		.follow = o->follow, .stack = o->stack, .stop = o->stop,
		.physical = options_shared(o),
		.for_perf = o->form == FORM_PERF,
		.whole_stacks = o->form == FORM_PERF || o->last != 0,
		/* a program writes the address that a slot had at first */
		.bpf = o->delivery != DELIVERY_RING && !o->follow_pointers &&
		    !o->rotate && !options_shared(o) && !options_objects(o) &&
		    (o->count || !options_everywhere(o)),
		.everywhere = options_everywhere(o), .uprobes = true,
		.tally = options_tally(o),
		.with = o->with,
		.filter = condition_filter(&o->condition, &run->filter) ?
		    &run->filter : NULL,
	};
}

const char *
run_no_uprobes(const struct options *o)
{
	const char *why = options_no_uprobes(o);

	return why == NULL && o->follow ? wp_uprobe_names_why_not() : why;
}

/* Breakpoints cannot serve, for this cause: whether uprobes can, because all
   there is to watch is execution. */
static bool
turn_to_uprobes(struct run *run, const struct wp_cause *cause)
{
	const struct options *o = run->options;

	if (options_watch_data(o) || run_no_uprobes(o) != NULL)
		return false;
	wp_probe_without_slots(&run->features);
	if (wp_target_try_uprobe(&run->features, NULL) < 0)
		return false;
	run->no_breakpoints = *cause;
	return true;
}

/* As the end of a sentence. */
static const char *
without_uprobes(const struct options *o)
{
	return options_watch_data(o) ? "" : run_no_uprobes(o) != NULL ?
	    run_no_uprobes(o) : RUN_NO_UPROBES;
}

/* A way to watch without breakpoints.  -errno: there is none, after a line on
   stderr. */
static int
find_another(struct run *run, struct wp_cause *cause)
{
	const struct options *o = run->options;
	const char *why = without_uprobes(o);

	if ((run->ops->without_events != NULL &&
	    run->ops->without_events(run, cause) == 0) ||
	    turn_to_uprobes(run, cause))
		return 0;
	return complain("%s%s%s%s", cause->text, without_events(o, cause),
	    *why == '\0' ? "" : "; uprobes, which do without breakpoints, ",
	    why);
}

/* Choose the way in which hits are delivered here. cause: why events are not
   available, if they are not. */
static int
find_way(struct run *run, struct wp_cause *cause)
{
	const struct options *o = run->options;
	const bool events = wp_probe_features(&run->features, cause) == 0 &&
	    !(o->stop && wp_cpu_kernel_steps());
	const bool fires = !events || fire_check_processors(cause) == 0;

	if (!(events && fires) && find_another(run, cause) < 0)
		return -ENODEV;
	run->waits = (o->command != NULL && o->skip_missing) ||
	    waits_for_modules(run);
	if (run->waits && run->ops->registers)
		return complain("--if-missing skip: without perf events, which "
		    "are refused here, only one program can be watched: leave "
		    "it out, and watch the program itself");
	if (run->ops->registers && fire_check_try(true) < 0)
		return -ENODEV;
	if (o->with != 0 && run->ops->registers)
		return complain("--with: perf events, which count, are refused "
		    "here (%s): leave it out", cause->text);
	return 0;
}

static int
make_target(struct run *run, struct wp_options wish)
{
	const struct options *o = run->options;
	struct wp_cause cause = {0};
	int err = find_way(run, &cause);

	if (err < 0)
		return err;
	wish.registers = run->ops->registers;
	wish.processors = run->nprocesses == 1 && !run->waits &&
	    o->command == NULL && options_scope(o) == NULL;
	if (wp_target_new(&run->target, &run->features, &wish, &cause) < 0)
		return complain("%s%s", o->with != 0 ? "--with: " : "",
		    cause.text);
	if (o->delivery == DELIVERY_BPF &&
	    wp_target_no_bpf(run->target)->code != WP_CAUSE_NONE)
		return complain("--delivery bpf: %s; --delivery ring does "
		    "without", wp_target_no_bpf(run->target)->text);
	return 0;
}

static void
make_broker(struct run *run)
{
	const struct options *o = run->options;
	struct answers *answers = &run->live.broker.answers;

	live_broker_make(&run->live, o->explain_memory, o->form == FORM_PERF ?
	    NULL : o->argv);
	answers->no_cache = o->no_cache;
	answers->sources = o->form == FORM_HTML;
	answers->policy = &o->policy;
	if (run->mappers != NULL) {
		answers->read = run_read_mappers;
		answers->read_arg = run;
	}
	/* which may be any process's */
	answers->no_memory = options_everywhere(o);
}

/* Determine what works here, and create the target and its rings
   accordingly. */
static int
prepare(struct run *run)
{
	const struct options *o = run->options;
	const struct wp_options wish = wish_of(run);
	int err;

	if (make_processes(run) < 0 ||
	    (o->command == NULL && !options_everywhere(o) &&
	    each_process(run, check) < 0))
		return -EINVAL;
	if ((err = make_target(run, wish)) < 0)
		return err;
	if ((o->follow_pointers && follow_open(&run->follow, run) < 0) ||
	    (o->rotate && rotate_open(&run->rotate, run) < 0) ||
	    (options_objects(o) && objects_open(&run->objects, run) < 0) ||
	    held_modules_open(&run->held_modules, run) < 0 ||
	    run_poll_make(run) < 0 ||
	    (run->ops->open != NULL && run->ops->open(run) < 0))
		return -ENOMEM;
	if (session_open(&run->session, o,
	    o->command != NULL ? stderr : stdout) < 0)
		return -EINVAL;
	make_broker(run);
	return open_kept(run);
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

/* Whether a SPEC is not armed: it may be in programs that are executed from
   here on, or in a module that a process has not mapped yet. */
static bool
is_pending(const struct run *run, size_t i)
{
	bool waits = run->mappers != NULL ? mappers_lacks(run->mappers, i) :
	    run->options->skip_missing;

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
	if ((run->waits || run->mappers != NULL) && err == 0)
		err = describe_pending(run);
	for (size_t w = 0; w < n && err >= 0; w++) {
		err = run_describe_watch(run, run_process_of(run, w), w,
		    events + nevents);
		nevents += err > 0 ? (size_t)err : 0;
	}
	if (err < 0 || (err = session_ready(&run->session)) < 0)
		(void)complain_errno(-err, "preparing the report");
	else if (run->remote == NULL)
		err = perf_output_begin(run, events, nevents);
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

/* A process that does not run, and so makes no hits for now. */
static void
warn_frozen(struct run *run)
{
	const char *file;

	if (run->options->command != NULL || run->arrivals != NULL ||
	    options_everywhere(run->options))
		return;
	for (size_t i = 0; i < run->nprocesses; i++)
		if ((file = cgroup_frozen_by(run->process[i].pid)) != NULL)
			session_warn(&run->session, "the control group of "
			    "process %d is frozen (%s): it makes no hits "
			    "until that is thawed", run->process[i].pid, file);
}

/* A process that was created before its parent was watched. */
static void
warn_missing(struct run *run)
{
	const pid_t missing = selected_missing(&run->chosen, run->options);

	if (missing == 0)
		return;
	session_warn(&run->session, "process %d was created after the "
	    "processes of -p @CHILDREN were looked for: it may not be "
	    "watched", missing);
	session_doubt(&run->session, "process %d may not have been watched",
	    missing);
}

static const char *
delivery_name(const struct run *run)
{
	return run->ops->registers ? "ptrace" : run->options->count ? NULL :
	    wp_target_bpf(run->target) ? "bpf" : "ring";
}

void
run_announce(struct run *run)
{
	const struct wp_options *got = wp_target_options(run->target);
	struct report_start start = {
		.pid = run->mappers != NULL && run->nprocesses == 0 ?
		    EVERYWHERE : run->process->pid,
		.mode = run->ops->mode, .delivery = delivery_name(run),
		.threads = run->ops->threads(run),
		.frozen_ms = wp_target_frozen_ms(run->target),
		.time = run->began, .wall = wp_clock_wall(run->began),
		.comm = *run->process->comm == '\0' ? NULL :
		    run->process->comm,
	};

	session_start(&run->session, &start);
	run->ops->announce(run);
	if (run->options->with != 0 && !wp_target_bpf(run->target))
		session_warn(&run->session, "not all hits are delivered by "
		    "BPF: the others have no counters (--with)");
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
	if (run->no_breakpoints.code != WP_CAUSE_NONE)
		session_warn(&run->session, "uprobes watch execution, since "
		    "breakpoints cannot: %s", run->no_breakpoints.text);
	warn_unmapped(run);
	warn_missing(run);
	warn_frozen(run);
	any_program_announce(run);
	arrivals_announce(run);
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

/* Check that something can be watched in the processes that were examined. */
static int
check_scope(struct run *run)
{
	return options_any_program(run->options) ? any_program_check(run) : 0;
}

/* As run_find_watches; but if each thread has its own of what is to be watched,
   and they can be watched while they are traced, run->each is set instead of a
   cause. */
static int
find_watches(struct run *run, struct process *process, struct wp_cause *cause)
{
	const int err = run_find_watches(run, process, cause);

	if (cause->code != WP_CAUSE_SYMBOL_TLS || run->ops->pass == NULL ||
	    run->options->stop || run->ops->registers ||
	    thread_local_not_with(run->options) != NULL)
		return err;
	run->each = true;
	*cause = (struct wp_cause){0};
	return err;
}

/* Start again with a thread that traces processes.  It also starts the command
   again, which has not executed any code of its own. */
static int
begin_anew(struct run *run)
{
	for (size_t i = run->nprocesses; i-- > 0; ) {
		struct process *process = &run->process[i];

		if (process->n > 0)
			wp_target_unwatch(run->target, process->first,
			    process->n);
		process->first = process->n = 0;
	}
	if (run->options->command != NULL)
		wp_target_abandon(run->target);
	synthetic_records_free(&run->synthetic);
	run->waits = true;
	return launch(run);
}

/* Find the watches of each process that need not be traced for that.  0, or the
   exit status after a line on stderr. */
static int
find(struct run *run)
{
	int err;

	if (run->mappers != NULL || run->waits)
		return 0;
	err = each_process(run, find_watches);
	if (run->each)
		return begin_anew(run);
	if (err == 0)
		err = check_scope(run);
	/* a command that is gone has ended by itself, unwatched */
	return err == 0 ? 0 : err == -ESRCH && run->options->command != NULL &&
	    run->options->error_status != 0 ? STATUS_NOT_VOUCHED :
	    STATUS_OWN_FAILURE;
}

/* Arm them, or find and arm those of processes that are traced. */
static int
find_and_arm(struct run *run)
{
	int err;

	if (run->mappers != NULL)
		return run_begin_mappers(run);
	if (run->waits && run->options->command == NULL) {
		run->began = wp_clock_ns();
		return each_process(run, attach_waiting);
	}
	if (run->waits) {	/* each program is examined when it starts */
		run->began = wp_clock_ns();
		err = run_learn(run, run->process, false,
		    &(struct wp_cause){0});
		if (err < 0 && err != -ESRCH)
			return complain("reading the command's mappings: %s",
			    strerror(-err));
		if (!run->options->skip_missing)
			exec_tracer_take_one(run->tracer);
		return run->refused ? -EINVAL : 0;
	}
	run->began = wp_clock_ns();
	run_round(run);
	if (options_everywhere(run->options)) {
		if ((err = each_process(run, run_arm)) == 0)
			all_cpus_learn(run);
		return err;
	}
	run_find_sharers(run, 0, false);
	if ((err = each_process(run, run_arm)) == 0)
		err = check_scope(run);
	if (err == 0)
		run_find_sharers(run, 0, true);
	return err;
}

int
run_begin(struct run *run)
{
	const struct options *o = run->options;
	int err;

	if (prepare(run) < 0)
		return STATUS_OWN_FAILURE;
	if ((err = launch(run)) != 0 || (err = find(run)) != 0)
		return err;
	if (o->command != NULL) {
		run->command = run->process->pid;
		run_check_privileges(run, run->command);
	}
	if (run->nprocesses > 0 && session_first_process(&run->session,
	    run->process->pid) < 0)
		return STATUS_OWN_FAILURE;
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
