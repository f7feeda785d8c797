/*
 * watch: the main job.
 *
 * Overview: probe what is possible; make the target and, with it, the rings;
 * hold the command or look at the process; find out what the SPECs mean there;
 * arm; then read the rings until the end, and close the account.
 *
 *	prepare -> launch -> resolve -> arm -> loop -> finish
 */
#include "watch.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "complain.h"
#include "earlier.h"
#include "kernel.h"
#include "loader.h"
#include "session.h"
#include "synth.h"
#include "target.h"

/* How often the rings are looked at when nothing wakes us, in ms; and how long
   a record may be on its way into a ring, in ns. */
enum { LOOK_MS = 20, ON_ITS_WAY = 1000000 };

struct run {
	const struct options *options;
	struct wp_features features;
	struct wp_target *target;
	struct session session;
	struct ex_formats *formats;	/* of the armed events */
	struct earlier earlier;		/* what was there before the watch */
	struct process {
		pid_t pid;
		size_t first;		/* of its watches, one for each SPEC */
		struct spec_place *place;	/* what each SPEC means there */
	} *process;			/* nprocesses of them */
	size_t nprocesses;
	int command_status;		/* as of waitpid(2); < 0: it runs */
	struct pollfd *poll;		/* signals, processes, rings; npoll */
	size_t npoll;
	uint64_t began;			/* ns */
	const char *reason;		/* why it ended; NULL: it has not */
};

static uint64_t
now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Room for what is found out about each process. */
static int
make_processes(struct run *run)
{
	const struct options *o = run->options;

	run->nprocesses = o->command != NULL ? 1 : o->npids;
	run->process = calloc(run->nprocesses, sizeof(*run->process));
	for (size_t i = 0; run->process != NULL && i < run->nprocesses; i++) {
		struct process *process = &run->process[i];

		process->pid = o->command != NULL ? 0 : o->pid[i];
		process->place = calloc(o->nspecs, sizeof(*process->place));
		if (process->place == NULL)
			return complain("out of memory");
	}
	return run->process == NULL ? complain("out of memory") : 0;
}

/* What is possible here, and with it the target and its rings. */
static int
prepare(struct run *run)
{
	const struct options *o = run->options;
	const struct wp_options wish = {
		.count = o->count, .kernel = !o->user_only,
		.follow = o->follow, .stack = o->stack,
		.for_perf = o->form == FORM_PERF,
	};
	struct wp_cause cause = {0};

	for (size_t i = 0; i < o->npids; i++)
		if (wp_target_check(o->pid[i], &cause) < 0)
			return complain("%s", cause.text);
	if (wp_probe_features(&run->features, &cause) < 0 ||
	    wp_target_new(&run->target, &run->features, &wish, &cause) < 0)
		return complain("%s", cause.text);
	if (make_processes(run) < 0)
		return -ENOMEM;
	return session_open(&run->session, o, EX_LIVE,
	    o->command != NULL ? stderr : stdout);
}

static void
learn_record(void *arg, const struct ex_record *record)
{
	ex_space_learn(arg, record);
}

/* Learn what a process maps now. */
static int
learn(struct run *run, const struct process *process)
{
	int err = earlier_take(&run->earlier, process->pid);
	struct wp_cause cause;

	if (err == -ESRCH)
		(void)wp_cause_set(&cause, WP_CAUSE_GONE, process->pid);
	else if (err == -EACCES || err == -EPERM)
		(void)wp_cause_set(&cause, WP_CAUSE_DENIED_OTHER, process->pid);
	else if (err < 0)
		(void)wp_cause_errno(&cause, "reading its mappings", -err);
	if (err < 0)
		return complain("%s", cause.text);
	earlier_each(&run->earlier, learn_record, run->session.space);
	return 0;
}

/* Find each SPEC in a process.  0 or -errno with a cause; -ENOENT: not there,
   as far as its modules are mapped. */
static int
resolve(struct run *run, struct process *process, struct wp_cause *cause)
{
	struct ex_process *memory =
	    ex_space_process(run->session.space, process->pid);
	int err = 0;

	if (memory == NULL)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	for (size_t i = 0; i < run->options->nspecs && err == 0; i++) {
		free(process->place[i].symbol);
		process->place[i].symbol = NULL;
		err = spec_resolve(&run->options->spec[i], memory,
		    &process->place[i], cause);
	}
	return err;
}

/* Start the command, held; its failures have statuses of their own. */
static int
launch(struct run *run)
{
	struct wp_cause cause = {0};

	if (wp_target_launch(run->target, run->options->command,
	    &run->process->pid, &cause) == 0)
		return 0;
	(void)complain("%s", cause.text);
	return cause.code == WP_CAUSE_NOT_FOUND ? STATUS_NOT_FOUND :
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
	struct loader loader;
	int err, at = HOOK;

	loader_find(process->pid, ex_space_process(run->session.space,
	    process->pid), &loader);
	while ((err = resolve(run, process, cause)) == -ENOENT && at == HOOK) {
		const uint64_t stop[STOPS] = {loader.hook, loader.entry};

		at = wp_target_run_to(run->target, stop, STOPS,
		    &run->command_status);
		if (at == -ECHILD)
			return wp_cause_set(cause, WP_CAUSE_ENDED_EARLY);
		if (at < 0)
			return wp_cause_errno(cause, "running the command up "
			    "to its libraries", -at);
		earlier_free(&run->earlier);
		if ((err = learn(run, process)) < 0)
			return err;
	}
	return err;
}

/* What the SPECs mean in a process, and that it can be watched there. */
static int
find_watches(struct run *run, struct process *process)
{
	const struct options *o = run->options;
	struct wp_cause cause = {0};
	struct wp_region *regions = calloc(o->nspecs, sizeof(*regions));
	int err;

	if (regions == NULL)
		return complain("out of memory");
	err = o->command != NULL ? resolve_launched(run, &cause) :
	    resolve(run, process, &cause);
	for (size_t i = 0; i < o->nspecs && err >= 0; i++)
		regions[i] = (struct wp_region){
			.addr = process->place[i].addr,
			.len = process->place[i].len,
			.access = (enum wp_access)(unsigned char)
			    o->spec[i].access,
		};
	if (err >= 0)
		err = wp_target_watch(run->target, regions, o->nspecs, &cause);
	process->first = err >= 0 ? (size_t)err : 0;
	for (size_t i = 0; i < o->nspecs && err >= 0; i++)
		err = wp_target_mapped(process->pid, &regions[i], &cause);
	free(regions);
	if (err < 0)
		return cause.code == WP_CAUSE_NONE ? err :
		    complain("%s", cause.text);
	return 0;
}

/* From here on every access counts. */
static int
arm(struct run *run)
{
	const struct options *o = run->options;
	struct wp_cause cause = {0};
	int err = 0;

	run->began = now_ns();
	if (o->command != NULL)
		err = wp_target_arm(run->target, &cause);
	for (size_t i = 0; i < o->npids && err == 0; i++)
		err = wp_target_attach(run->target, o->pid[i],
		    run->process[i].first, o->nspecs, &cause);
	return err < 0 ? complain("%s", cause.text) : 0;
}

/* Tell session and formats of one slot; event is what a recording says of
   it, its ids malloc'd. */
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
	return err < 0 ? err : session_add_slot(&run->session, (int)w,
	    slot->addr, slot->type == HW_BREAKPOINT_X ? 1 : slot->len);
}

/* Tell the session of one watch.  Result: how many events it has. */
static int
describe_watch(struct run *run, size_t w, struct ex_perf_event *events)
{
	const size_t nspecs = run->options->nspecs;
	const struct process *process = &run->process[w / nspecs];
	const struct spec *spec = &run->options->spec[w % nspecs];
	size_t n;
	const struct wp_watched *watched =
	    &wp_target_watches(run->target, &n)[w];
	const struct wp_region *region = &watched->region;
	int err = session_add_watch(&run->session, spec->text,
	    process->place[w % nspecs].symbol, region->addr,
	    spec->access == 'x' ? 1 : region->len, spec->access,
	    watched->nslots);

	if (run->nprocesses > 1)
		run->session.watches[w].pid = process->pid;
	for (unsigned i = 0; i < watched->nslots && err >= 0; i++) {
		events[i].name = spec->text;
		err = describe_slot(run, w, i, &watched->slot[i], &events[i]);
	}
	return err < 0 ? err : (int)watched->nslots;
}

static int
record_header(void *arg, const struct perf_event_header *header)
{
	struct session *s = arg;
	int err = ex_perfwriter_record(s->recording, header);

	if (err < 0 && s->err == 0)
		s->err = err;
	return err;
}

static void
record_earlier(void *arg, const struct ex_record *record)
{
	(void)record_header(arg,
	    (const struct perf_event_header *)(const void *)record->bytes);
}

/* Begin the file of -o perf with what was there before. */
static int
begin_recording(struct run *run, const struct ex_perf_event *events, size_t n)
{
	int err = session_record_to_file(&run->session, events, n);

	if (err < 0)
		return err;
	if (wp_target_options(run->target)->kernel)
		(void)wp_synth_kernel(record_header, &run->session);
	earlier_each(&run->earlier, record_earlier, &run->session);
	return 0;
}

/* Everything that is armed, told to the session. */
static int
describe(struct run *run)
{
	size_t n, nevents = 0;
	const struct wp_watched *watched = wp_target_watches(run->target, &n);
	struct ex_perf_event *events = calloc(n, WP_SLOTS_MAX *
	    sizeof(*events));
	int err = events == NULL ? -ENOMEM : 0;

	(void)watched;
	run->formats = ex_formats_new();
	if (run->formats == NULL)
		err = -ENOMEM;
	for (size_t w = 0; w < n && err >= 0; w++) {
		err = describe_watch(run, w, events + nevents);
		nevents += err > 0 ? (size_t)err : 0;
	}
	if (err >= 0 && (err = session_ready(&run->session)) == 0 &&
	    run->options->form == FORM_PERF)
		err = begin_recording(run, events, nevents);
	else if (err < 0)
		(void)complain("preparing the report: %s", strerror(-err));
	for (size_t i = 0; events != NULL && i < nevents; i++)
		free((uint64_t *)(uintptr_t)events[i].ids);
	free(events);
	return err;
}

/* Say that the watch has begun, and what it cannot vouch for. */
static void
announce(struct run *run)
{
	const struct wp_options *got = wp_target_options(run->target);
	struct report_start start = {
		.pid = run->process->pid, .mode = "ring",
		.threads = wp_target_threads(run->target),
		.frozen_ms = wp_target_frozen_ms(run->target),
		.time = run->began,
		.comm = ex_space_comm(run->session.space, run->process->pid,
		    run->process->pid),
	};

	session_start(&run->session, &start);
	if (!run->options->user_only && !got->kernel)
		session_warn(&run->session, "the kernel's accesses on the "
		    "program's behalf are not watched: not permitted "
		    "(kernel.perf_event_paranoid is %d); --user-only accepts "
		    "that", run->features.paranoid);
	if (!run->options->follow && !got->inherit_thread)
		session_warn(&run->session, "this kernel cannot tell threads "
		    "from children: child processes are watched too");
	if (wp_target_inexact(run->target))
		session_warn(&run->session, "the process could not be held "
		    "while attaching (another traces it, or ptrace is not "
		    "permitted): a thread made meanwhile may be missed or "
		    "counted twice");
	(void)session_flush(&run->session, 0);
}

/* What the loop sleeps on. */
static int
make_poll(struct run *run)
{
	struct wp_rings *rings = wp_target_rings(run->target);
	unsigned nrings = wp_rings_count(rings);
	struct pollfd *p = calloc(1 + run->nprocesses + nrings, sizeof(*p));
	sigset_t signals;

	if (p == NULL)
		return complain("out of memory");
	run->poll = p;
	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGINT);
	(void)sigaddset(&signals, SIGQUIT);
	(void)sigaddset(&signals, SIGTERM);
	(void)sigaddset(&signals, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	/* a report whose reader has gone ends by its error; only now, for a
	   command must not inherit that */
	(void)signal(SIGPIPE, SIG_IGN);
	(p++)->fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	for (size_t i = 0; i < run->nprocesses; i++)
		(p++)->fd = pidfd_open(run->process[i].pid, 0);
	for (unsigned i = 0; i < nrings; i++)
		(p++)->fd = wp_rings_fd(rings, i);
	run->npoll = (size_t)(p - run->poll);
	while (p-- > run->poll)
		p->events = POLLIN;
	return 0;
}

/* A signal for watchctl.  Those of the terminal reach a command by themselves;
   others are passed on to it, since it is what they are meant for. */
static void
take_signal(struct run *run)
{
	struct signalfd_siginfo info;

	while (read(run->poll[0].fd, &info, sizeof(info)) ==
	    (ssize_t)sizeof(info)) {
		int sig = (int)info.ssi_signo;

		if (run->options->command == NULL)
			run->reason = "signal";
		else if (sig == SIGTERM || sig == SIGHUP)
			(void)kill(run->process->pid, sig);
	}
}

/*
 * Whether a process has nothing to watch any more: it ended (and with -f its
 * children too), or executed another program, which ends its watches.  Its
 * slot in the poll set is then empty.
 */
static bool
has_ended(struct run *run, size_t i)
{
	const struct process *process = &run->process[i];
	struct pollfd *p = &run->poll[1 + i];
	bool watched = wp_target_alive(run->target, process->first,
	    run->options->nspecs);

	if (p->fd < 0)
		return !run->options->follow || !watched;
	if (p->revents == 0 && watched)
		return false;
	if (p->revents == 0 && poll(p, 1, 0) == 0)
		session_warn(&run->session, "process %d executed another "
		    "program, where addresses mean something else: its "
		    "watches have ended", process->pid);
	(void)close(p->fd);
	p->fd = -1;	/* poll(2) passes over it */
	return !run->options->follow || !watched;
}

static bool
all_ended(struct run *run)
{
	bool all = true;

	for (size_t i = 0; i < run->nprocesses; i++)
		all = has_ended(run, i) && all;
	return all;
}

/* Wait for something to happen, but not for long. */
static void
wait_a_little(struct run *run)
{
	double left = run->options->seconds * 1e3 -
	    (double)(now_ns() - run->began) / 1e6;
	int ms = LOOK_MS;

	if (run->options->seconds > 0 && left < ms)
		ms = left > 0 ? (int)left + 1 : 0;
	(void)poll(run->poll, run->npoll, ms);
	if (run->poll[0].revents != 0)
		take_signal(run);
	if (run->reason == NULL && all_ended(run))
		run->reason = "exit";
	if (run->reason == NULL && run->options->seconds > 0 && left <= 0)
		run->reason = "time";
}

/* Read what the rings hold up to a time.  False: no more are wanted. */
static bool
read_rings(struct run *run, uint64_t horizon)
{
	struct wp_rings *rings = wp_target_rings(run->target);
	const struct perf_event_header *header;
	struct ex_record record;

	while ((header = wp_rings_next(rings, horizon)) != NULL) {
		int got = ex_record_decode(run->formats, header, header->size,
		    &record);

		if (got == 0)
			run->session.skipped++;
		else if (got > 0 && !session_record(&run->session, &record))
			return false;
	}
	return session_flush(&run->session, horizon);
}

static uint64_t
counted(const struct run *run, size_t watch)
{
	struct wp_perf_count count;

	return wp_target_count(run->target, watch, &count) < 0 ? 0 :
	    count.value;
}

static uint64_t
counted_in_all(const struct run *run)
{
	uint64_t sum = 0;

	for (size_t w = 0; w < run->session.nwatches; w++)
		sum += counted(run, w);
	return sum;
}

static void
loop(struct run *run)
{
	bool more = true;

	while (run->reason == NULL) {
		wait_a_little(run);
		if (run->options->count)
			more = run->options->limit == 0 ||
			    counted_in_all(run) < run->options->limit;
		else
			more = read_rings(run, now_ns() - ON_ITS_WAY);
		if (!more)
			run->reason = run->session.full ||
			    run->options->count ? "count" : "detached";
	}
	wp_target_stop(run->target);
}

/* What was counted and not delivered is lost, whatever records said of it. */
static void
account(struct run *run)
{
	struct session *s = &run->session;
	uint64_t counts;

	if (s->full || s->err < 0 || !read_rings(run, UINT64_MAX))
		return;
	counts = counted_in_all(run);
	if (counts > s->samples + s->lost)
		session_lost(s, counts - s->samples - s->lost);
}

static int
record_build_id(void *arg, struct ex_module *module, uint64_t base)
{
	const struct run *run = arg;
	const char *hex = ex_module_build_id(module);
	uint8_t id[64];
	size_t n = strlen(hex) / 2;

	(void)base;
	for (size_t i = 0; i < n && i < sizeof(id); i++) {
		unsigned byte;

		if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
			return 0;
		id[i] = (uint8_t)byte;
	}
	if (n > 0 && n <= sizeof(id))
		(void)ex_perfwriter_build_id(run->session.recording,
		    ex_module_path(module), id, n);
	return 0;
}

/* What a recording's modules are, for who reads it on another day. */
static void
record_build_ids(struct run *run)
{
	struct session *s = &run->session;
	uint8_t id[20];
	size_t len;

	if (wp_target_options(run->target)->kernel &&
	    (len = ex_kernel_build_id(id)) > 0)
		(void)ex_perfwriter_build_id(s->recording, "[kernel.kallsyms]",
		    id, len);
	for (size_t i = 0; i < run->nprocesses; i++)
		(void)ex_process_modules(ex_space_process(s->space,
		    run->process[i].pid), record_build_id, run);
}

/* Wait for the command; signals that are meant for it are passed on. */
static int
command_status(struct run *run)
{
	struct pollfd wait[] = {
		run->poll[0],
		{.fd = pidfd_open(run->process->pid, 0), .events = POLLIN},
	};
	int status = run->command_status;

	while (status < 0 && waitpid(run->process->pid, &status, WNOHANG) == 0) {
		status = -1;
		(void)poll(wait, 2, -1);
		take_signal(run);
	}
	(void)close(wait[1].fd);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
	    WEXITSTATUS(status);
}

static int
finish(struct run *run)
{
	struct session *s = &run->session;
	uint64_t *counts = NULL;
	int status = 0;

	if (run->options->count) {
		if ((counts = calloc(s->nwatches, sizeof(*counts))) == NULL)
			return complain("out of memory"), STATUS_OWN_FAILURE;
		for (size_t w = 0; w < s->nwatches; w++)
			counts[w] = counted(run, w);
	} else {
		account(run);
	}
	if (s->recording != NULL)
		record_build_ids(run);
	if (run->options->command != NULL)
		status = command_status(run);
	status = session_end(s, run->reason, status, counts);
	free(counts);
	return status;
}

static void
run_free(struct run *run)
{
	for (size_t i = 0; i < run->npoll && i <= run->nprocesses; i++)
		if (run->poll[i].fd >= 0)
			(void)close(run->poll[i].fd);
	free(run->poll);
	for (size_t i = 0; run->process != NULL && i < run->nprocesses; i++) {
		for (size_t k = 0; run->process[i].place != NULL &&
		    k < run->options->nspecs; k++)
			free(run->process[i].place[k].symbol);
		free(run->process[i].place);
	}
	free(run->process);
	earlier_free(&run->earlier);
	session_close(&run->session);
	ex_formats_free(run->formats);
	if (run->target != NULL)
		wp_target_abandon(run->target);
	wp_target_free(run->target);
}

/* From the command line to an armed target.  0, or the exit status. */
static int
begin(struct run *run)
{
	int err;

	if (prepare(run) < 0)
		return STATUS_OWN_FAILURE;
	if (run->options->command != NULL && (err = launch(run)) != 0)
		return err;
	for (size_t i = 0; i < run->nprocesses; i++)
		if (learn(run, &run->process[i]) < 0 ||
		    find_watches(run, &run->process[i]) < 0)
			return STATUS_OWN_FAILURE;
	if (arm(run) < 0 || describe(run) < 0 || make_poll(run) < 0)
		return STATUS_OWN_FAILURE;
	return 0;
}

int
watch(const struct options *options)
{
	struct run run = {.options = options, .command_status = -1};
	int status = begin(&run);

	if (status == 0) {
		announce(&run);
		loop(&run);
		status = finish(&run);
	}
	run_free(&run);
	return status;
}
