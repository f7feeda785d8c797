/*
 * new_program: programs that a process executes while the watch is on.
 *
 * Addresses mean nothing in another program.  So what the SPECs name is looked
 * for there, while the process stands in front of its first instruction, and as
 * often as its loader has mapped more libraries, until the program itself
 * begins.  What is found is armed as further watches, with the SPECs' numbers.
 *
 *	held at execve -> learnt -> resolved (-> run to its libraries ...)
 *	    -> armed, reported, let go
 *	    -> or nothing is there: reported, and traced to its next execve
 */
#include "pending/new_program.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "os/trap_cpu.h"
#include "proc/proc.h"
#include "ptrace/ptrace.h"
#include "pending/exec_tracer.h"
#include "pending/held_modules.h"
#include "pending/loader.h"
#include "pending/new_module.h"
#include "pending/thread_local.h"
#include "run/run.h"
#include "util/complain.h"

enum {
	EXPLAIN_MS = 2000,  /* ms that a held process waits for explanations */
	LIMIT_S = 10,		/* s for a loader to continue */
};

/* A program that is searched for SPECs. */
struct new_program {
	struct process *process;
	char path[PATH_MAX];
	bool *found;		/* by SPEC; */
	bool *waits;		/* those whose module is not mapped */
	size_t nfound, nwaiting;
	bool unready;		/* the addresses of thread-local variables
				   are not known yet */
	uint64_t hook;	/* the address that its loader calls then, or 0 */
};

bool
run_watches_programs(const struct run *run)
{
	const struct options *o = run->options;

	for (size_t i = 0; i < o->nspecs; i++)
		if (o->spec[i].symbol != NULL)
			return o->form != FORM_PERF && !o->count &&
			    !run->ops->registers;
	return false;
}

/* --- the process --- */

struct process *
run_new_program(struct run *run, pid_t pid)
{
	struct process *process = run_new_process(run, pid);

	if (process != NULL) {
		process->program = true;
		process->since = wp_clock_ns();
	}
	return process;
}

void
run_leave_programs(struct run *run, size_t first)
{
	while (run->nprocesses > first) {
		struct process *process = &run->process[run->nprocesses - 1];

		if (process->n > 0) {
			run_disarm(run, process);
			wp_target_unwatch(run->target, process->first,
			    process->n);
		}
		run_leave_out(run, run->nprocesses - 1);
	}
}

/* --- what it has --- */

/* Search for SPECs not found yet.  Returns how many are missing that may come
   with more libraries. */
static size_t
resolve(struct run *run, struct new_program *program, bool early)
{
	const struct options *o = run->options;
	size_t missing = 0;

	program->nwaiting = 0;
	for (size_t i = 0; i < o->nspecs; i++) {
		const bool may_come = module_may_come(&o->spec[i]);
		struct wp_cause cause = {0};
		int err;

		if (program->found[i] || o->spec[i].symbol == NULL)
			continue;
		o->spec[i].unborn = true;
		err = thread_local_resolve(&run->live, program->process->pid,
		    &o->spec[i], thread_local_not_with(o) == NULL, early,
		    &program->process->place[i], may_come ? &cause : NULL);
		program->unready = program->unready || err == -EAGAIN;
		program->found[i] = err == 0;
		program->waits[i] = may_come &&
		    cause.code == WP_CAUSE_MODULE_UNKNOWN &&
		    (run->tracer != NULL || run->held_modules != NULL);
		program->nwaiting += program->waits[i];
		program->nfound += err == 0;
		missing += err == -ENOENT || err == -EAGAIN;
	}
	return missing;
}

/* The same, unless these files were searched in vain before. */
static size_t
resolve_unless_absent(struct run *run, struct new_program *program, bool early)
{
	struct buffer set;
	size_t missing = 1;

	if (program->nfound > 0 || program->nwaiting > 0)
		return resolve(run, program, early);
	set = search_misses_set(program->process->pid, early);
	if (!search_misses_has(&run->absent, &set))
		missing = resolve(run, program, early);
	if (program->nfound == 0 && program->nwaiting == 0 &&
	    !program->unready && missing == run->options->nspecs)
		search_misses_add(&run->absent, &set);
	buffer_free(&set);
	return missing;
}

/* A wait for a program whose loader may itself wait for a file or be stopped.
   It is limited, because other programs may be waiting for watchctl. */
struct loader_wait {
	struct run *run;
	uint64_t limit;		/* until then, ns */
};

static bool
goes_on(void *arg)
{
	const struct loader_wait *waiting = arg;
	struct run *run = waiting->run;

	return wp_clock_ns() < waiting->limit && (run->tracer != NULL ?
	    exec_tracer_goes_on(run->tracer) : run_goes_on(run));
}

/* -EINTR, the run ends, or another -errno, some with a cause. */
static int
explain_late(const struct loader_wait *waiting, int err, struct wp_cause *cause)
{
	if (err == -ENOSPC)
		return wp_target_explain_stop(waiting->run->target, err,
		    cause);
	if (err != -EINTR || wp_clock_ns() < waiting->limit)
		return err;
	return wp_cause_set(cause, WP_CAUSE_LOADER_LATE, LIMIT_S);
}

/* A static program makes its thread-local storage itself, before its
   constructors run. */
static int
find_static(struct run *run, struct new_program *program,
    const struct wp_patience *patience, struct wp_cause *why)
{
	int status, err = wp_target_run_to_storage(run->target, patience,
	    &status);

	if (err == -ECHILD && program->process->pid == run->process->pid)
		run->command_status = status;
	if (err < 0)
		return explain_late(patience->arg, err, why);
	(void)resolve_unless_absent(run, program, false);
	return 0;
}

/* Where stops by events are possible, let it map its libraries, one step after
   the other, until nothing is missing or the program begins.  0 or -errno with
   or without a cause: -ECHILD, it has ended; -EINTR, the run ends. */
static int
find(struct run *run, struct new_program *program, struct wp_cause *why)
{
	struct loader_wait waiting = {.run = run};
	const struct wp_patience patience = {goes_on, &waiting};
	const pid_t pid = program->process->pid;
	const unsigned first = loader_count(pid);
	struct loader loader;
	uint64_t base = 0;
	bool early = true, all = false;
	int at, status, err = run_learn(run, program->process, true, why);

	if (err < 0)
		return err;
	loader_find(pid, &run->live, &loader);
	if (wp_proc_auxv(pid, AT_BASE, &base) == 0 && base != 0)
		program->hook = loader.hook;	/* it has a loader */
	/* what is there is to be watched before any constructor runs */
	while (resolve_unless_absent(run, program, early) >
	    (all ? program->nwaiting : 0) && !wp_cpu_kernel_steps()) {
		const uint64_t stop[] = {loader.hook, loader.entry};

		/* what was looked for before may have taken long */
		waiting.limit = wp_clock_ns() + LIMIT_S * UINT64_C(1000000000);
		at = wp_target_run_to(run->target, stop, 2, &patience,
		    &status);
		if (at == -ECHILD && pid == run->process->pid)
			run->command_status = status;
		if (at < 0)
			return explain_late(&waiting, at, why);
		if ((err = run_learn(run, program->process, true, why)) < 0)
			return err;
		early = at == 0 && loader_count(pid) == first;
		all = !early && loader_is_consistent(pid);
		if (at == 1) {
			(void)resolve_unless_absent(run, program, false);
			return program->unready ? find_static(run, program,
			    &patience, why) : 0;
		}
	}
	return 0;
}

/* --- watching it --- */

int
run_plan(struct run *run, struct process *process, const bool *found,
    struct wp_cause *cause)
{
	const struct options *o = run->options;
	struct wp_region region[WP_SLOTS_MAX];
	size_t n = 0, nfound = 0;
	int err;

	for (size_t i = 0; i < o->nspecs; i++)
		nfound += found[i];
	if (nfound > WP_SLOTS_MAX)
		return wp_cause_set(cause, WP_CAUSE_TOO_MANY,
		    (unsigned)nfound, run->features.caps.slots);
	for (size_t i = 0; i < o->nspecs; i++) {
		if (!found[i])
			continue;
		region[n] = run_region(run, process, i);
		process->spec[n++] = i;
	}
	held_modules_plan(run->held_modules, process, region, n);
	for (size_t i = 0; i < n; i++)
		process->each = process->each ||
		    process->place[process->spec[i]].local;
	for (size_t i = 0; i < n; i++)
		if (region[i].addr != 0 && (err = wp_target_mapped(
		    process->pid, &region[i], cause)) < 0)
			return err;
	if ((err = wp_target_watch(run->target, region, n, cause)) < 0)
		return err;
	process->first = (size_t)err;
	process->n = n;
	for (size_t i = 0; i < n; i++) {
		const size_t spec = process->spec[i];

		if (process->place[spec].local)
			wp_target_local(run->target, process->first + i,
			    process->place[spec].base);
		if (o->spec[spec].line != 0 && (err = wp_target_places(
		    run->target, process->first + i,
		    process->place[spec].more, process->place[spec].nmore,
		    cause)) < 0)
			return err;
	}
	for (size_t i = 0; i < n; i++)
		if (region[i].addr != 0)
			(void)session_object(&run->session, process->pid,
			    &o->spec[process->spec[i]], region[i].addr,
			    region[i].len);
	return 0;
}

/* With --stop, a pending SPEC has a watch from the start. */
static void
reserve(struct new_program *program, const struct options *o)
{
	for (size_t i = 0; i < o->nspecs; i++) {
		if (!program->waits[i] || program->found[i])
			continue;
		program->found[i] = true;
		program->nfound++;
		program->process->place[i] = (struct spec_place){
			.len = o->spec[i].len,
		};
	}
}

static void
report_armed(struct run *run, const struct new_program *program,
    const struct ex_watch *watch)
{
	/* each thread has its own somewhere else */
	const bool there = !watch->local;
	struct watch_event event = {
		.what = WATCH_ARMED, .watch = watch->id - 1,
		.time = program->process->since,
		.pid = program->process->pid, .gap = WATCH_NO_GAP,
		.addr = there ? watch->addr : 0, .len = there ? watch->len : 0,
	};

	(void)snprintf(event.program, sizeof(event.program), "%.*s",
	    (int)sizeof(event.program) - 1, program->path);
	session_event(&run->session, &event);
}

/* It is armed: report that to the explainer before its first hit. */
static void
describe(struct run *run, const struct new_program *program)
{
	const struct process *process = program->process;
	const size_t end = process->first + process->n;
	int err = 0;

	for (size_t w = process->first; w < end && err == 0; w++)
		err = run_describe_armed(run, process, w);
	session_note(&run->session, err);
	for (size_t w = process->first; w < end && err == 0; w++)
		if (!run_watch(run, w)->pending)
			report_armed(run, program, run_watch(run, w));
}

/* Modules come with a loader only. */
static void
wait_for_modules(struct run *run, struct new_program *program)
{
	if (program->nwaiting == 0 || program->hook != 0)
		return;
	session_warn(&run->session, "process %d executed %s, which is linked "
	    "statically: no module that is waited for can be opened in it",
	    program->process->pid, program->path);
	memset(program->waits, 0, run->options->nspecs * sizeof(bool));
	program->nwaiting = 0;
}

/* The command itself has not what it must have: it does not begin. */
static bool
is_refused(struct run *run, struct new_program *program)
{
	const struct options *o = run->options;
	struct wp_cause cause;

	for (size_t i = 0; i < o->nspecs && !o->skip_missing &&
	    !run->session.started; i++) {
		if (program->found[i] || program->waits[i])
			continue;
		(void)thread_local_resolve(&run->live, program->process->pid,
		    &o->spec[i], thread_local_not_with(o) == NULL, false,
		    &program->process->place[i], &cause);
		(void)complain("%s", cause.text);
		run->refused = true;
		(void)kill(program->process->pid, SIGKILL);
		return true;
	}
	return false;
}

void
run_name_program(struct watch_event *event)
{
	char path[PATH_MAX] = "";

	(void)wp_proc_exe(event->pid, path);
	(void)snprintf(event->program, sizeof(event->program), "%.*s",
	    (int)sizeof(event->program) - 1, path);
}

void
run_report_missing(struct run *run, pid_t pid, bool (*lacks)(const void *arg,
    size_t spec), const void *arg)
{
	const struct options *o = run->options;

	for (size_t i = 0; i < o->nspecs; i++) {
		struct watch_event event = {
			.what = WATCH_MISSING, .time = wp_clock_ns(),
			.pid = pid, .gap = WATCH_NO_GAP,
		};

		/* an address belongs to the previous program */
		if (o->spec[i].symbol == NULL || !lacks(arg, i))
			continue;
		event.watch = run_spec_watch(run, i)->id - 1;
		run_name_program(&event);
		session_event(&run->session, &event);
		if (!o->skip_missing)
			session_doubt(&run->session, "process %d executed "
			    "another program, which was not watched: %s has "
			    "no %s", pid, event.program, o->spec[i].text);
	}
}

static bool
lacks(const void *arg, size_t spec)
{
	const struct new_program *program = arg;

	return !program->found[spec] && !program->waits[spec];
}

/* Watch what was found; or if there is nothing, go on as far as the next
   program.  0 or -errno with a cause. */
static int
go_on(struct run *run, struct new_program *program, struct wp_cause *cause)
{
	struct process *process = program->process;
	bool stays = program->nfound == 0 || program->nwaiting > 0;
	int err;

	if (run->held_modules != NULL)
		reserve(program, run->options);
	if (program->nwaiting > 0) {
		process->hook = program->hook;
		process->waits = program->waits;
		program->waits = NULL;
	}
	if (program->nfound > 0 && (err = run_plan(run, process,
	    program->found, cause)) < 0)
		return err;
	if ((err = held_modules_arm(run->held_modules, process, cause)) < 0)
		return err;
	stays = stays || process->each;
	process->since = wp_clock_ns();	/* there are no hits from before */
	if ((err = (stays ? run->ops->pass : run->ops->attach)(run, process,
	    cause)) < 0 || program->nfound == 0)
		return err;
	process->alone = !stays && !run->options->stop;
	process->threads = process->alone;	/* so far */
	run->found = true;
	if (run->session.started)
		describe(run, program);
	return 0;
}

/* Report a failure, which does not end the watch. */
static void
give_up(struct run *run, const struct new_program *program, int err,
    const struct wp_cause *cause)
{
	struct process *process = program->process;
	const pid_t pid = process->pid;

	if (err != -ECHILD && err != -ESRCH && err != -EINTR) {
		session_warn(&run->session, "process %d executed %s, which is "
		    "not watched: %s", pid, program->path,
		    cause->code != WP_CAUSE_NONE ? cause->text :
		    strerror(-err));
		session_doubt(&run->session, "process %d executed %s, which "
		    "was not watched", pid, program->path);
	}
	/* the session does not know of them: the next have their numbers */
	if (process->n > 0)
		wp_target_unwatch(run->target, process->first, process->n);
	process->n = 0;
	wp_target_let_go(run->target);
}

static void
program_free(struct new_program *program)
{
	free(program->found);
	free(program->waits);
}

static int
begin(struct run *run, struct new_program *program, pid_t pid)
{
	if (!wp_target_holds(run->target, pid) &&
	    wp_target_adopt(run->target, pid) < 0)
		return -EBUSY;
	program->found = calloc(run->options->nspecs, sizeof(bool));
	program->waits = calloc(run->options->nspecs, sizeof(bool));
	program->process = run_new_program(run, pid);
	if (program->found != NULL && program->waits != NULL &&
	    program->process != NULL)
		return 0;
	program_free(program);
	wp_target_let_go(run->target);
	return -ENOMEM;
}

bool
run_has_addresses(const struct run *run)
{
	const struct options *o = run->options;

	for (size_t i = 0; i < o->nspecs; i++)
		if (o->spec[i].symbol == NULL)
			return true;
	return false;
}

bool
run_explain_before(struct run *run, pid_t pid)
{
	bool watched = false;

	for (size_t i = 0; i < run->nprocesses; i++)
		watched = watched || (run->process[i].pid == pid &&
		    run->process[i].n > 0 && !run->process[i].disarmed);
	/* of a child of a watched process, its fork(2) */
	if ((!watched && !run->options->follow) || run->remote == NULL)
		return watched;
	run->ops->settle(run, watched);
	(void)session_flush(&run->session, UINT64_MAX);
	remote_session_catch_up(run->remote, EXPLAIN_MS);
	return watched;
}

bool
run_program(struct run *run, pid_t pid)
{
	struct new_program program = {.path = ""};
	struct wp_cause cause = {0};
	int err;

	if (!run_watches_programs(run))
		return false;
	if (run_explain_before(run, pid) && run_has_addresses(run))
		run_pid_executed(run, pid);
	if (begin(run, &program, pid) < 0)
		return false;
	(void)wp_proc_exe(pid, program.path);
	if ((err = find(run, &program, &cause)) == 0) {
		wait_for_modules(run, &program);
		if (is_refused(run, &program)) {
			wp_target_let_go(run->target);
		} else {
			run_report_missing(run, pid, lacks, &program);
			err = go_on(run, &program, &cause);
		}
	}
	if (err < 0)
		give_up(run, &program, err, &cause);
	program_free(&program);
	return true;
}
