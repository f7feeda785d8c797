/*
 * run_stop: each thread stops at its hit, and its record gets the watch's bytes
 * (--stop); with --on-hit it is stopped until what was requested is done.
 *
 * Overview: let threads that have stopped go on, each with its records joined
 * by values; explain these; sleep until another one stops.  Records are taken a
 * millisecond behind the present, as from the rings; with --on-hit at once.
 *
 * A stop is two switches between the thread and this process.  What takes time
 * is to wake a processor that sleeps.  So this process is on the thread's own
 * processor, if it is bound to one; else it stays awake while hits are dense,
 * unless others want the processor.
 */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "os/clock.h"
#include "util/complain.h"
#include "util/interrupt.h"
#include "action/on_hit.h"
#include "run/run.h"
#include "watch/ptrace_refused.h"
#include "stop/ptrace_loop.h"
#include "stop/stop.h"

enum {
	LOOK_MS = 20,		/* between looks when nothing happens */
	SOON_MS = 2,		/* or when records are there */
	FLUSH = 5000000,	/* ns between writes of the report */
	ON_ITS_WAY = 1000000,	/* ns that a record may take into a ring */
	STAY = 5000000,		/* ns until another processor is thought of */
	SPIN = 100000,		/* ns after a hit that another comes soon */
	YIELD = 100000000,	/* ns */
	SPINS = 256,		/* looks without sleep to one at signals */
};

struct stopping {
	struct run *run;
	struct wp_stops *stops;
	struct on_hit on_hit;	/* what it remembers */
	bool loops;		/* hits are reported: they can be acted at */
	bool missed;		/* a hit was not acted at, as reported */
	cpu_set_t all;		/* processors that we may use */
	int cpu;		/* where we are; -1: on any */
	pid_t followed;		/* the thread that hit last, ... */
	int seen;		/* ... where that was ... */
	uint64_t last;		/* ... and when */
	uint64_t moved;		/* when it was looked at where to be */
	uint64_t flushed;	/* the report was written up to then */
	unsigned spins;		/* looks without sleep */
	long pushed;		/* how often others took the processor, ... */
	uint64_t yields;	/* ... and so long it is left to them */
};

/* --- reported by stops --- */

static struct process *
find_process(struct run *run, pid_t pid)
{
	for (size_t i = 0; i < run->nprocesses; i++)
		if (run->process[i].pid == pid)
			return &run->process[i];
	return NULL;
}

static void
executed(void *arg, pid_t pid)
{
	struct stopping *stopping = arg;
	struct process *process = find_process(stopping->run, pid);

	if (process != NULL)
		run_executed(stopping->run, process);
}

static void
ended(void *arg, pid_t pid, int status)
{
	struct stopping *stopping = arg;
	struct run *run = stopping->run;

	if (run->options->command != NULL && pid == run->process->pid)
		run->command_status = status;
}

static void
warn(void *arg, const char *text)
{
	struct stopping *stopping = arg;

	session_warn(&stopping->run->session, "%s", text);
}

/* --- where to be --- */

static void
be_anywhere(struct stopping *stopping)
{
	if (stopping->cpu >= 0)
		(void)sched_setaffinity(0, sizeof(stopping->all),
		    &stopping->all);
	stopping->cpu = -1;
}

/* Be where a thread is that cannot be elsewhere; another one would only move
   away from a processor that is taken. */
static void
follow(struct stopping *stopping, pid_t tid, int cpu)
{
	const uint64_t now = wp_clock_ns();
	cpu_set_t its;

	if ((tid == stopping->followed && cpu == stopping->seen) ||
	    now < stopping->moved + STAY)
		return;
	stopping->moved = now;
	stopping->followed = tid;
	stopping->seen = cpu;
	be_anywhere(stopping);
	if (sched_getaffinity(tid, sizeof(its), &its) == 0 &&
	    CPU_COUNT(&its) == 1 && CPU_ISSET(cpu, &stopping->all) &&
	    sched_setaffinity(0, sizeof(its), &its) == 0)
		stopping->cpu = cpu;
}

/* Whether others want the processor that we would keep busy, as they lately
   did: then a stop that is slept for comes sooner. */
static bool
is_in_the_way(struct stopping *stopping)
{
	const uint64_t now = wp_clock_ns();
	struct rusage usage;

	(void)getrusage(RUSAGE_THREAD, &usage);
	if (usage.ru_nivcsw != stopping->pushed)
		stopping->yields = now + YIELD;
	stopping->pushed = usage.ru_nivcsw;
	return now < stopping->yields;
}

/* Whether the next hit comes so soon, on another processor, that sleeping and
   being woken would take longer. */
static bool
is_worth_waiting(struct stopping *stopping)
{
	pid_t tid;
	int cpu;
	const uint64_t last = wp_stops_last(stopping->stops, &cpu, &tid);

	if (last == 0 || last + SPIN < wp_clock_ns())
		return false;
	if (last != stopping->last)
		follow(stopping, tid, cpu);
	stopping->last = last;
	return cpu != sched_getcpu() && !is_in_the_way(stopping);
}

/* --- records --- */

/* Explain what is there of before the horizon; all: also what came later than
   others that still wait.  False: no more are wanted. */
static bool
feed(struct stopping *stopping, uint64_t horizon, bool all)
{
	struct run *run = stopping->run;
	const struct perf_event_header *header;
	struct ex_record record;

	while ((header = wp_stops_next(stopping->stops, horizon, all)) !=
	    NULL) {
		if (!run_decode(run, header, &record))
			continue;
		if (!session_record(&run->session, &record))
			return false;
	}
	if (horizon < stopping->flushed + FLUSH)
		return true;
	stopping->flushed = horizon;
	return session_flush(&run->session, horizon);
}

/* --- --on-hit --- */

static int
hold(void *stops, pid_t pid)
{
	return wp_stops_hold(stops, pid);
}

static void
tell_missed(struct stopping *stopping, const struct ex_hit *hit)
{
	if (stopping->missed)
		return;
	stopping->missed = true;
	session_warn(&stopping->run->session, "hit #%" PRIu64 ": --on-hit did "
	    "nothing, because thread %d was not stopped there: it blocks the "
	    "signal that stops it, or hit while others were being attached",
	    hit->seq, hit->tid);
}

/* It has been reported: act, if its thread is stopped there (one that blocks
   the signal is not). */
static void
act(void *arg, const struct ex_hit *hit)
{
	struct stopping *stopping = arg;
	const struct on_hit_tracer tracer = {
		.hold = hold, .arg = stopping->stops,
	};

	if (stopping->on_hit.left != 0 || run_is_ending(stopping->run))
		return;
	if (!wp_stops_stands(stopping->stops, hit->pid, hit->tid)) {
		tell_missed(stopping, hit);
		return;
	}
	be_anywhere(stopping);
	stopping->on_hit.ms = run_left_for_wait(stopping->run);
	on_hit_act(&stopping->on_hit, &tracer, &stopping->run->session, hit);
}

/* Explain it while the thread is stopped: if there is something to do at hits,
   and if it is in a system call, whose descriptors and vectors are there only
   now.  While other processes are still being attached there is no report
   yet. */
static bool
stands_at_hit(void *arg, pid_t pid, pid_t tid, bool kernel)
{
	struct stopping *stopping = arg;
	struct session *s = &stopping->run->session;
	const struct ex_hints hints = {.tid = tid, .stopped = true};

	(void)pid;
	if (!stopping->loops || s->explainer == NULL ||
	    (s->acted == NULL && !kernel))
		return false;
	ex_explain_hints(s->explainer, &hints);
	(void)feed(stopping, UINT64_MAX, true);
	ex_explain_hints(s->explainer, NULL);
	if (stopping->on_hit.left == 0)
		return false;
	stopping->run->reason = "paused";
	return true;
}

/* --- the run --- */

static const struct wp_stops_calls calls = {
	stands_at_hit, executed, ended, warn,
};

static int
stop_open(struct run *run)
{
	struct stopping *stopping = calloc(1, sizeof(*stopping));

	if (stopping == NULL || wp_stops_new(&stopping->stops, run->target,
	    &calls, stopping) < 0) {
		free(stopping);
		return complain("out of memory");
	}
	stopping->run = run;
	stopping->on_hit = run->options->on_hit;
	stopping->cpu = stopping->seen = -1;
	(void)sched_getaffinity(0, sizeof(stopping->all), &stopping->all);
	run->own = stopping;
	return 0;
}

static int
stop_attach(struct run *run, const struct process *process,
    struct wp_cause *cause)
{
	struct stopping *stopping = run->own;
	int err = wp_stops_attach(stopping->stops, process->pid,
	    process->first, run->options->nspecs, cause);

	return err < 0 && cause->code == WP_CAUSE_NONE ?
	    ptrace_refused(process->pid, -err, cause) : err;
}

/* What wakes us: stops, and the signals that are ours to take. */
static void
wake_signals(sigset_t *signals)
{
	interrupt_signals(signals);
	(void)sigaddset(signals, SIGCHLD);
}

static void
wait_ms(struct run *run, const sigset_t *signals, int ms)
{
	const int sig = wp_ptrace_loop_await(signals, ms);

	if (sig > 0 && sig != SIGCHLD)
		run_signal(run, sig);
}

/* Sleep for a while, unless there is more to do or a reason to end. */
static void
wait_a_little(struct stopping *stopping, const sigset_t *signals, bool more)
{
	struct run *run = stopping->run;
	const double left = run_left_ms(run);
	int ms = wp_stops_pending(stopping->stops) ? SOON_MS : LOOK_MS;

	run_check_processors(run);
	if (run->reason != NULL)
		return;
	if (!wp_stops_busy(stopping->stops))
		run->reason = "exit";
	else if (left <= 0)
		run->reason = "time";
	else if (!is_worth_waiting(stopping))
		wait_ms(run, signals, more ? 0 :
		    left < ms ? (int)left + 1 : ms);
	else if (++stopping->spins % SPINS == 0)
		wait_ms(run, signals, 0);
	else
		(void)sched_yield();	/* others may want the processor */
}

static void
stop_loop(struct run *run)
{
	struct stopping *stopping = run->own;
	const bool on_hit = run->options->on_hit.what != ON_HIT_REPORT;
	sigset_t signals;

	wake_signals(&signals);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	(void)signal(SIGCHLD, SIG_DFL);	/* ignored, it would not come */
	if (on_hit) {
		run->session.acted = act;
		run->session.acted_arg = stopping;
	}
	stopping->loops = true;
	while (run->reason == NULL) {
		const bool more = wp_stops_step(stopping->stops) > 0;

		if (run->reason == NULL &&
		    !feed(stopping, wp_clock_ns() - ON_ITS_WAY, false))
			run->reason = run->session.full ? "count" : "detached";
		wait_a_little(stopping, &signals, more);
	}
	stopping->loops = false;
	run->session.acted = NULL;
	if (stopping->on_hit.left != 0) {
		wp_stops_leave(stopping->stops, stopping->on_hit.left);
		on_hit_tell_paused(&stopping->on_hit);
	} else {
		wp_stops_end(stopping->stops);
	}
	be_anywhere(stopping);
}

/* Threads that could not be released yet are released as soon as they wake. */
static void
let_all_go(struct stopping *stopping)
{
	sigset_t signals;

	wake_signals(&signals);
	while (stopping->run->command_status < 0 &&
	    wp_stops_busy(stopping->stops)) {
		if (wp_stops_step(stopping->stops) == 0)
			wait_ms(stopping->run, &signals, LOOK_MS);
	}
}

static int
stop_account(struct run *run)
{
	struct stopping *stopping = run->own;
	struct session *s = &run->session;
	struct wp_perf_count count;
	uint64_t counts = 0;

	if (s->err < 0 || (!s->full && feed(stopping, UINT64_MAX, true))) {
		for (size_t w = 0; w < s->nwatches; w++)
			if (wp_stops_count(stopping->stops, w, &count) == 0)
				counts += count.value;
		session_counted(s, counts);
	}
	if (run->options->command != NULL)
		let_all_go(stopping);
	return 0;
}

static void
stop_uptime(const struct run *run, struct wp_uptime *uptime)
{
	const struct stopping *stopping = run->own;

	wp_stops_uptime(stopping->stops, uptime);
}

static void
stop_close(struct run *run)
{
	struct stopping *stopping = run->own;

	wp_stops_free(stopping->stops);
	free(stopping);
}

const struct run_ops run_by_stop = {
	.mode = "stop", .open = stop_open, .launch = run_launch,
	.attach = stop_attach, .threads = run_threads,
	.announce = run_announce_kernel, .loop = stop_loop,
	.account = stop_account, .uptime = stop_uptime,
	.close = stop_close,
};
