/*
 * run_debugreg: --stop where perf_event_open(2) is refused, or the processor
 * traps before the access: by debug registers, which tracer processes set
 * (debugreg_tracer.h).
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "deliver/deliver.h"
#include "os/clock.h"
#include "util/complain.h"
#include "deliver/debugreg_tracer.h"
#include "processes/live_maps.h"
#include "proc/proc.h"
#include "ptrace/ptrace.h"

enum {
	BATCH = 64,		/* records between looks at other things */
	STOP_MS = 2000,		/* ms for a process to stop */
	ROOM = WP_DEBUG_REGISTERS * 65536 + 64,	/* bytes, for the packets of
						   a stop */
};

struct debugreg_run {
	struct traced_process {
		struct debugreg_tracer *tracer;
		pid_t pid;
		pid_t stopped;	/* whose thread made the last hit: with -f
				   perhaps a child of that */
		struct wp_uptime uptime;	/* once it has ended */
		bool ended;
	} *traced;		/* n of them, one for each process */
	size_t n;
	pid_t command;		/* until it is watched; 0: none */
	struct wp_uptime uptime;	/* of processes that have ended */
	char why[sizeof(((struct wp_cause *)0)->text)];	/* why perf events
							   are not used */
	uint8_t *record;	/* ROOM bytes, for the records of a stop */
};

/* Whether a thread that makes a hit stays stopped until the action is done. */
static bool
is_acting(const struct run *run)
{
	return run->options->on_hit.what != ON_HIT_REPORT;
}

int
run_choose_debugreg(struct run *run, struct wp_cause *cause)
{
	const struct options *o = run->options;
	struct debugreg_run *own;
	char refusal[sizeof(cause->text)];

	if (!o->stop || (cause->code != WP_CAUSE_NONE && cause->err != EPERM &&
	    cause->err != EACCES && cause->err != ENOSYS))
		return -cause->err;
	if (o->follow_pointers || o->rotate) {
		(void)snprintf(refusal, sizeof(refusal), "%s %s: leave it out",
		    o->rotate ? "--slots rotate" : "--follow",
		    cause->code != WP_CAUSE_NONE ?
		    "needs perf_event_open, which is refused here (see "
		    "watchctl doctor)" : "does not go with --stop on this "
		    "processor, which traps an access before it is made");
		return wp_cause_set(cause, WP_CAUSE_ATTR, refusal);
	}
	own = calloc(1, sizeof(*own));
	if (own == NULL ||
	    (own->record = malloc(ROOM)) == NULL) {
		free(own);
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	}
	memcpy(own->why, cause->text, sizeof(own->why));
	if (cause->code != WP_CAUSE_NONE)
		run->features.caps = wp_slot_usual;
	*cause = (struct wp_cause){0};
	run->ops = &run_by_debugreg;
	run->own = own;
	return 0;
}

/* Wait until an untraced process that got SIGSTOP has stopped. */
static int
await_stopped(pid_t pid)
{
	const uint64_t limit = wp_clock_ns() + STOP_MS * 1000000ull;
	struct wp_proc_status status;

	while (wp_proc_status(pid, &status) == 0 && status.state != 'T') {
		if (wp_clock_ns() > limit || status.state == 'Z')
			return -ESRCH;
		wp_clock_sleep(100000);
	}
	return 0;
}

static int
add(struct run *run, pid_t pid, struct wp_command *command,
    struct wp_cause *cause)
{
	struct debugreg_run *own = run->own;
	struct traced_process *traced = &own->traced[own->n];
	int err = debugreg_tracer_new(&traced->tracer, pid, command,
	    run->options->follow, cause);

	if (err < 0)
		return err;
	traced->pid = pid;
	own->n++;
	return 0;
}

/* The tracer holds the command from its start, so that there is always a
   process that releases it. */
static int
launch(struct run *run, struct wp_cause *cause)
{
	char *const *argv = run->options->command;
	struct debugreg_run *own = run->own;
	struct wp_command command;
	int err = wp_command_start(&command, argv);

	if (err < 0)
		return wp_launch_explain(err, argv[0], cause);
	run->process->pid = own->command = command.pid;
	err = add(run, command.pid, &command, cause);
	wp_command_leave(&command);
	if (err == 0 &&
	    (err = debugreg_tracer_await_command(own->traced->tracer)) < 0)
		(void)wp_launch_explain(err, argv[0], cause);
	return err;
}

static int
debugreg_launch(struct run *run, struct wp_cause *cause)
{
	struct debugreg_run *own = run->own;

	own->traced = calloc(run->nprocesses, sizeof(*own->traced));
	if (own->traced == NULL)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	return run->options->command != NULL ? launch(run, cause) : 0;
}

/* Report the mappings of the program that is to be watched. */
static void
say_mapped(struct run *run, pid_t pid)
{
	struct live_maps_origin origin;

	live_maps_origin(pid, &origin);
	session_mapped(&run->session, pid, &(struct journal_mapped){
		.program = origin.program, .known = origin.known,
	});
}

static int
debugreg_attach(struct run *run, const struct process *process,
    struct wp_cause *cause)
{
	struct debugreg_run *own = run->own;
	size_t all;
	const struct debugreg_tracer_job job = {
		.watched = wp_target_watches(run->target, &all),
		.first = process->first, .n = run->options->nspecs,
		.stack = run->options->stack, .stay_stopped = is_acting(run),
	};
	int err = run->options->command != NULL ? 0 :
	    add(run, process->pid, NULL, cause);

	if (err < 0)
		return err;
	if (run->remote != NULL)
		say_mapped(run, process->pid);
	err = debugreg_tracer_begin(own->traced[own->n - 1].tracer, &job,
	    cause);
	if (err == 0)
		own->command = 0;
	else if (run->options->command == NULL)
		debugreg_tracer_free(own->traced[--own->n].tracer);
	return err;
}

static unsigned
debugreg_threads(const struct run *run)
{
	const struct debugreg_run *own = run->own;
	unsigned threads = 0;

	for (size_t i = 0; i < own->n; i++)
		threads += debugreg_tracer_threads(own->traced[i].tracer);
	return threads;
}

static bool
refuses(pid_t pid, int sig)
{
	struct wp_proc_status status;

	return wp_proc_status(pid, &status) == 0 &&
	    (wp_proc_signal_in(status.ignored, sig) ||
	    (wp_proc_signal_in(status.blocked, sig) &&
	    !wp_proc_is_making_thread(status.blocked)));
}

static void
debugreg_announce(struct run *run)
{
	const struct debugreg_run *own = run->own;

	if (own->why[0] == '\0')
		run_announce_kernel(run);
	else
		session_warn(&run->session, "debug registers are set through "
		    "ptrace%s: %s", options_kernel_may_access(run->options) ?
		    ", so the kernel's accesses on the program's behalf are "
		    "not watched" : "", own->why);
	for (size_t i = 0; i < run->nprocesses; i++) {
		const pid_t pid = run->process[i].pid;

		if (refuses(pid, SIGTRAP))
			session_warn(&run->session, "process %d ignores or "
			    "blocks SIGTRAP, and no longer does so after a hit",
			    pid);
	}
}

/* --- --on-hit --- */

static int
hold(void *tracer, pid_t pid)
{
	(void)pid;
	return debugreg_tracer_hold(tracer);
}

static int
core(void *tracer, int fd, const struct core_of *of, struct core_size *size)
{
	return debugreg_tracer_core(tracer, fd, of, size);
}

static bool
debugreg_tracer(struct run *run, pid_t pid, pid_t tid,
    struct on_hit_tracer *tracer)
{
	const struct debugreg_run *own = run->own;
	size_t i = 0;

	while (i < own->n && own->traced[i].stopped != pid)
		i++;
	if (i == own->n || pid != run->stopped.pid || tid != run->stopped.tid)
		return false;
	*tracer = (struct on_hit_tracer){hold, core, own->traced[i].tracer};
	return true;
}

/* Whether the process is to be left stopped. */
static bool
is_left(const struct run *run, const struct traced_process *traced)
{
	return run->on_hit.left != 0 && traced->stopped == run->on_hit.left;
}

/* Let the thread continue after all records of its stop.  Returns false if no
   more are wanted. */
static bool
let_go_on(struct run *run, struct traced_process *traced)
{
	const bool more = session_flush(&run->session, UINT64_MAX);

	(void)run_act_pass(run);
	if (is_left(run, traced))
		return false;
	debugreg_tracer_go(traced->tracer);
	return more;
}

/* --- records --- */

/* Receive what a tracer has sent: all records of a stop, if the thread is
   stopped or the records belong together; otherwise one.  Returns their bytes;
   -EAGAIN if there are none now; another -errno at the end. */
static ssize_t
receive(const struct run *run, const struct traced_process *traced, int flags,
    bool *stopped)
{
	const struct debugreg_run *own = run->own;
	struct perf_event_header header;
	bool several = false;
	size_t len = 0;

	*stopped = false;
	for (;;) {
		const ssize_t n = recv(debugreg_tracer_fd(traced->tracer),
		    own->record + len, ROOM - len, flags);

		if (n <= 0 && len == 0)
			return n < 0 ? -errno : -EPIPE;
		if (n <= 0)
			return (ssize_t)len;
		memcpy(&header, own->record + len, sizeof(header));
		*stopped = header.type == TRACER_STOPPED;
		if (*stopped)
			return (ssize_t)len;
		len += (size_t)n;
		several = (several || header.type == TRACER_SEVERAL) &&
		    header.type != TRACER_ALL;
		if (!several && (!is_acting(run) ||
		    header.type == TRACER_CHILD ||
		    header.type == TRACER_EXECUTED ||
		    header.type == TRACER_UNARMED ||
		    header.type == TRACER_EXCLUSIVE))
			return (ssize_t)len;
		flags = 0;	/* the others are on their way */
	}
}

static void
take_uptime(struct traced_process *traced, const uint8_t *packet)
{
	struct tracer_uptime last;

	memcpy(&last, packet, sizeof(last));
	traced->uptime = last.uptime;
}

/* The process may end when it is not needed any more. */
static void
let_end(struct run *run, struct traced_process *traced)
{
	(void)session_flush(&run->session, UINT64_MAX);
	debugreg_tracer_go(traced->tracer);
}

static void
put_record(void *arg, const struct ex_record *record)
{
	(void)session_record(arg, record);
}

/* A child is watched: it may be asked about, and its mappings are those of its
   parent. */
static void
take_watched(struct run *run, const struct tracer_child *child)
{
	struct journal_mapped mapped = {.parent = child->parent};
	struct synthetic_records records = {0};

	if (run->remote != NULL) {
		answers_allow_child(&run->live.broker.answers, child->pid,
		    child->parent);
		mapped.known = wp_proc_program(child->pid,
		    &mapped.program) == 0;
		session_mapped(&run->session, child->pid, &mapped);
		return;
	}
	/* a recording begins with those of its parent */
	if (synthetic_records_take(&records, child->pid) == 0)
		synthetic_records_each(&records, put_record, &run->session);
	synthetic_records_free(&records);
}

static void
take_child(struct run *run, const uint8_t *packet)
{
	struct tracer_child child;

	memcpy(&child, packet, sizeof(child));
	if (run->options->follow)
		take_watched(run, &child);
	else if (child.is_known)
		children_awaited(&run->children, child.pid, child.executed);
	else if (child.awaited)
		children_await(&run->children, child.pid, child.parent,
		    child.time);
	else
		children_made(&run->children, child.pid, child.parent,
		    child.time);
}

static void
take_executed(struct run *run, const struct traced_process *traced,
    const uint8_t *packet)
{
	struct tracer_executed executed;

	memcpy(&executed, packet, sizeof(executed));
	if (executed.pid == traced->pid)
		run_pid_executed(run, executed.pid);
	else
		run_child_executed(run, &(struct child){
			.pid = executed.pid, .parent = executed.parent,
			.born = executed.time,
		});
}

static void
take_unarmed(struct run *run, const uint8_t *packet)
{
	struct tracer_unarmed unarmed;

	memcpy(&unarmed, packet, sizeof(unarmed));
	session_warn(&run->session, "thread %d cannot be watched: %s",
	    unarmed.tid, unarmed.err == -ENOSPC ? "its debug registers are "
	    "in use" : strerror(-unarmed.err));
	session_doubt(&run->session, "thread %d was not watched",
	    unarmed.tid);
}

static void
take_exclusive(struct run *run, const uint8_t *packet)
{
	struct tracer_exclusive exclusive;

	memcpy(&exclusive, packet, sizeof(exclusive));
	run_report_exclusive(run, exclusive.watch);
}

/* Explain this many bytes of records.  Returns false if no more are wanted. */
static bool
feed(struct run *run, struct traced_process *traced, size_t len)
{
	const struct debugreg_run *own = run->own;
	const uint8_t *at = own->record, *end = at + len;
	struct perf_event_header header;
	struct ex_record record;

	for (; at < end; at += header.size) {
		memcpy(&header, at, sizeof(header));
		if (header.type == TRACER_EXECUTED)
			take_executed(run, traced, at);
		if (header.type == TRACER_UPTIME)
			take_uptime(traced, at);
		if (header.type == TRACER_UNARMED)
			take_unarmed(run, at);
		if (header.type == TRACER_EXCLUSIVE)
			take_exclusive(run, at);
		if (header.type == TRACER_LEAVING)
			let_end(run, traced);
		if (header.type == TRACER_CHILD)
			take_child(run, at);
		if (ex_record_decode(run->formats, at, header.size,
		    &record) != 1)
			continue;
		if (run->stopped.pid != 0)
			run->stopped.pid = traced->stopped = record.pid;
		run->stopped.tid = run->stopped.pid != 0 ? record.tid : 0;
		if (!session_record(&run->session, &record))
			return false;
	}
	return true;
}

/* A tracer has ended by itself: report whether it was killed, or the process
   has executed another program. */
static void
report_end(struct run *run, struct traced_process *traced)
{
	const pid_t pid = traced->pid;

	if (traced->ended)
		return;
	traced->ended = true;
	if (!debugreg_tracer_was_killed(traced->tracer)) {
		if (run->reason == NULL && !wp_proc_exiting(pid) &&
		    !run->options->follow)
			run_pid_executed(run, pid);
		return;
	}
	run->failed = true;
	session_warn(&run->session, "the process that had set the debug "
	    "registers of process %d was killed, which ends this watch; had "
	    "they been hit before they were cleared, SIGTRAP would have ended "
	    "process %d as well", pid, pid);
	session_doubt(&run->session, "the process that watched process %d was "
	    "killed", pid);
}

/* Take what a tracer has sent.  Returns false if it has ended or no more is
   wanted. */
static bool
take_records(struct run *run, struct traced_process *traced, int flags)
{
	bool stopped;

	for (int i = 0; i < BATCH; i++) {
		const ssize_t len = receive(run, traced, flags, &stopped);

		if (len == -EAGAIN)
			return true;
		if (len < 0) {
			report_end(run, traced);
			return false;
		}
		run->stopped.pid = stopped ? traced->pid : 0;
		if (!feed(run, traced, (size_t)len) ||
		    (stopped && !let_go_on(run, traced)))
			return false;
	}
	return true;
}

static bool
is_wanted(const struct run *run)
{
	return !run->session.full && run->session.err == 0;
}

static void
look_at_all(struct run *run, struct pollfd *p)
{
	struct debugreg_run *own = run->own;
	bool any = false;

	for (size_t i = 0; i < own->n; i++) {
		if (p[1 + i].fd >= 0 &&
		    !take_records(run, &own->traced[i], MSG_DONTWAIT))
			p[1 + i].fd = -1;	/* poll(2) ignores negative
						   descriptors */
		any = any || p[1 + i].fd >= 0;
	}
	run_check_children(run);
	if (run->on_hit.left != 0)
		run->reason = "paused";
	else if (!session_flush(&run->session, wp_clock_ns()) ||
	    !is_wanted(run))
		run->reason = session_full_reason(&run->session);
	else if (!any && run->reason == NULL)
		run->reason = run->failed ? "detached" : "exit";
}

/* No more records are wanted.  With --on-hit, a tracer may wait for a reply. */
static void
drain(struct run *run, struct traced_process *traced)
{
	const struct debugreg_run *own = run->own;
	const int flags = is_acting(run) ? MSG_DONTWAIT : 0;
	struct perf_event_header header;
	bool stopped;

	while (receive(run, traced, flags, &stopped) > 0) {
		memcpy(&header, own->record, sizeof(header));
		if (header.type == TRACER_UPTIME)
			take_uptime(traced, own->record);
		else if (header.type == TRACER_LEAVING)
			debugreg_tracer_go(traced->tracer);
		else if (header.type == TRACER_CHILD)
			take_child(run, own->record);
	}
}

/* Have all registers cleared, and report what was sent before. */
static void
clear(struct run *run)
{
	struct debugreg_run *own = run->own;

	for (size_t i = 0; i < own->n; i++)
		if (is_left(run, &own->traced[i]))
			debugreg_tracer_pause(own->traced[i].tracer);
		else
			debugreg_tracer_stop(own->traced[i].tracer);
	for (size_t i = 0; i < own->n; i++)
		while (is_wanted(run) && take_records(run, &own->traced[i], 0))
			;
	(void)session_flush(&run->session, UINT64_MAX);
	run_settle_descendants(run);
	for (size_t i = 0; i < own->n; i++) {
		drain(run, &own->traced[i]);
		wp_uptime_join(&own->uptime, &own->traced[i].uptime);
		debugreg_tracer_free(own->traced[i].tracer);
	}
	own->n = 0;
}

static void
debugreg_loop(struct run *run)
{
	struct debugreg_run *own = run->own;
	struct pollfd *p = calloc(1 + own->n, sizeof(*p));

	if (p == NULL) {
		run->reason = "detached";
		return;
	}
	p[0] = run->poll[0];
	for (size_t i = 0; i < own->n; i++)
		p[1 + i] = (struct pollfd){
			debugreg_tracer_fd(own->traced[i].tracer), POLLIN, 0,
		};
	run_act_begin(run);
	while (run->reason == NULL) {
		run_round(run);
		run_poll(run, p, 1 + own->n);
		run_check_time(run);
		look_at_all(run, p);
	}
	run_act_end(run);
	free(p);
	clear(run);
	if (run->on_hit.left != 0) {
		(void)await_stopped(run->on_hit.left);
		on_hit_report_paused(&run->on_hit);
	}
}

static void
debugreg_uptime(const struct run *run, struct wp_uptime *uptime)
{
	const struct debugreg_run *own = run->own;

	*uptime = own->uptime;
}

static void
debugreg_close(struct run *run)
{
	struct debugreg_run *own = run->own;

	if (own->command > 0)
		(void)kill(own->command, SIGKILL);
	for (size_t i = 0; i < own->n; i++) {
		if (own->command > 0 &&
		    debugreg_tracer_was_killed(own->traced[i].tracer))
			(void)complain("the process that was to watch the "
			    "command was killed, so the command was ended");
		debugreg_tracer_free(own->traced[i].tracer);
	}
	if (own->command > 0)
		wp_command_end(own->command);
	free(own->traced);
	free(own->record);
	free(own);
}

const struct run_ops run_by_debugreg = {
	.mode = "stop", .registers = true, .launch = debugreg_launch,
	.attach = debugreg_attach, .threads = debugreg_threads,
	.tracer = debugreg_tracer,
	.announce = debugreg_announce, .loop = debugreg_loop,
	.uptime = debugreg_uptime, .close = debugreg_close,
};
