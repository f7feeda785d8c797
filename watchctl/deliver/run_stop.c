/*
 * run_stop: --stop.  Each thread stops at its hit, and the bytes of the watch
 * are added to its record; with --on-hit it stays stopped until the action is
 * done.
 *
 * Overview: release the threads that have stopped, each with its records joined
 * by values; explain the records; sleep until another thread stops.  Records
 * are taken a millisecond late, as from the rings; with --on-hit at once.
 *
 * A stop takes two switches between the thread and this process.  What takes
 * time is waking a sleeping processor.  So this process runs on the thread's
 * processor if the thread is bound to one; otherwise it stays awake while hits
 * come in quick succession, unless others want the processor.
 */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "deliver/deliver.h"
#include "os/clock.h"
#include "setup/setup.h"
#include "util/complain.h"
#include "util/interrupt.h"
#include "follow/follow.h"
#include "follow/rotate.h"
#include "pending/new_program.h"
#include "pending/held_modules.h"
#include "pending/instances.h"
#include "watch/ptrace_refused.h"
#include "stop/ptrace_loop.h"
#include "stop/stop.h"

enum {
	LOOK_MS = 20,		/* ms between looks when nothing happens */
	SOON_MS = 2,		/* the same when there are records */
	FLUSH = 5000000,	/* ns between two writes of the report */
	ON_ITS_WAY = 1000000,	/* ns until a record is certain to be in its
				   ring */
	STAY = 5000000,		/* ns before another processor is considered */
	SPIN = 100000,	/* ns after a hit in which another one is likely */
	YIELD = 100000000,	/* ns */
	SPINS = 256,	/* looks without sleep for each check of signals */
};

struct stop_run {
	struct run *run;
	struct wp_stops *stops;
	bool loops;		/* hits are being reported */
	cpu_set_t all;		/* processors that this thread may use */
	int cpu;		/* the one it has moved to; -1: any */
	pid_t followed;		/* the thread that made the last hit, */
	int seen;		/* its processor, */
	uint64_t last;		/* and the time of the hit */
	uint64_t moved;		/* when the processor was last considered */
	uint64_t flushed;	/* the report has been written up to then */
	unsigned spins;		/* looks without sleep so far */
	long pushed;		/* how often others preempted this thread, */
	uint64_t yields;  /* and until when it leaves the processor to them */
};

/* --- reported by stops --- */

static bool
executed(void *arg, pid_t pid)
{
	const struct stop_run *stop = arg;
	struct run *run = stop->run;

	run_check_privileges(run, pid);
	if (stop->loops && run->reason == NULL && run->follow == NULL &&
	    run->rotate == NULL && run_program(run, pid))
		return true;
	run_pid_executed(run, pid);
	return false;
}

static void
ended(void *arg, pid_t pid, int status)
{
	struct stop_run *stop = arg;
	struct run *run = stop->run;

	if (run->options->command != NULL && pid == run->process->pid)
		run->command_status = status;
}

static void
warn(void *arg, pid_t unwatched, const char *text)
{
	struct stop_run *stop = arg;

	session_warn(&stop->run->session, "%s", text);
	if (unwatched != 0)
		session_doubt(&stop->run->session, "thread %d was not watched",
		    unwatched);
}

/* --- where to be --- */

static void
be_anywhere(struct stop_run *stop)
{
	if (stop->cpu >= 0)
		(void)sched_setaffinity(0, sizeof(stop->all),
		    &stop->all);
	stop->cpu = -1;
}

/* Move to the processor of a thread that is bound to it.  Any other thread
   would only move away from a processor that is busy. */
static void
follow(struct stop_run *stop, pid_t tid, int cpu)
{
	const uint64_t now = wp_clock_ns();
	cpu_set_t its;

	if ((tid == stop->followed && cpu == stop->seen) ||
	    now < stop->moved + STAY)
		return;
	stop->moved = now;
	stop->followed = tid;
	stop->seen = cpu;
	be_anywhere(stop);
	if (sched_getaffinity(tid, sizeof(its), &its) == 0 &&
	    CPU_COUNT(&its) == 1 && CPU_ISSET(cpu, &stop->all) &&
	    sched_setaffinity(0, sizeof(its), &its) == 0)
		stop->cpu = cpu;
}

/* Whether others need the processor that this thread would keep busy, as their
   preemptions show.  Sleeping is quicker then. */
static bool
is_in_the_way(struct stop_run *stop)
{
	const uint64_t now = wp_clock_ns();
	struct rusage usage;

	(void)getrusage(RUSAGE_THREAD, &usage);
	if (usage.ru_nivcsw != stop->pushed)
		stop->yields = now + YIELD;
	stop->pushed = usage.ru_nivcsw;
	return now < stop->yields;
}

/* Whether the next hit, on another processor, is likely so soon that sleeping
   and waking up would take longer. */
static bool
is_worth_waiting(struct stop_run *stop)
{
	pid_t tid;
	int cpu;
	const uint64_t last = wp_stops_last(stop->stops, &cpu, &tid);

	if (last == 0 || last + SPIN < wp_clock_ns())
		return false;
	if (last != stop->last)
		follow(stop, tid, cpu);
	stop->last = last;
	return cpu != sched_getcpu() && !is_in_the_way(stop);
}

/* --- records --- */

/* Explain what was recorded before the horizon; all: even if records that still
   wait are older.  Returns false if no more are wanted. */
static bool
feed(struct stop_run *stop, uint64_t horizon, bool all)
{
	struct run *run = stop->run;
	const struct perf_event_header *header;
	struct ex_record record;

	/* places are reported before their hits */
	if (stop->loops)
		follow_report(run->follow);
	instances_report(run);
	while ((header = wp_stops_next(stop->stops, horizon, all)) !=
	    NULL) {
		if (!run_decode(run, header, &record))
			continue;
		run_take_child(run, &record);
		run_take_thread_end(run, &record);
		rotate_take(run->rotate, &record);
		instances_take(run, &record);
		if (!session_record(&run->session, &record))
			return false;
	}
	if (horizon < stop->flushed + FLUSH)
		return true;
	stop->flushed = horizon;
	return session_flush(&run->session, horizon);
}

/* --- at a hit --- */

static int
hold(void *stops, pid_t pid)
{
	return wp_stops_hold(stops, pid);
}

/* A thread that blocks the signal is not stopped. */
static bool
stop_tracer(struct run *run, pid_t pid, pid_t tid, struct on_hit_tracer *tracer)
{
	struct stop_run *stop = run->own;

	if (!wp_stops_is_stopped(stop->stops, pid, tid))
		return false;
	be_anywhere(stop);
	*tracer = (struct on_hit_tracer){.hold = hold, .arg = stop->stops};
	return true;
}

/* Explain the hit while its thread is stopped, if there is an action for hits,
   or if the thread is in a system call, whose descriptors and vectors can be
   read only now.  The report has not begun while other processes are still
   being attached. */
static bool
stopped_at_hit(void *arg, pid_t pid, pid_t tid, bool kernel)
{
	struct stop_run *stop = arg;
	struct run *run = stop->run;
	struct session *s = &run->session;

	if (!stop->loops || run->remote == NULL ||
	    (run->on_hit.what == ON_HIT_REPORT && !kernel))
		return false;
	run->stopped.pid = pid;
	run->stopped.tid = tid;
	session_stopped(s, tid);
	(void)feed(stop, UINT64_MAX, true);
	session_stopped(s, 0);
	if (run_act_pass(run))
		return false;
	run->reason = "paused";
	return true;
}

/* --- the run --- */

static void
scouted(void *arg, const struct wp_sample *sample)
{
	const struct stop_run *stop = arg;

	if (stop->run->held_modules != NULL)
		held_modules_called(stop->run->held_modules, sample);
	else
		follow_scouted(stop->run->follow, sample);
}

/* Explain what was recorded before the move. */
static void
held(void *arg, const struct wp_stops_held *process)
{
	struct stop_run *stop = arg;

	(void)feed(stop, UINT64_MAX, true);
	if (stop->run->held_modules != NULL)
		held_modules_look(stop->run->held_modules, process);
	else if (stop->run->rotate != NULL)
		rotate_held(stop->run->rotate, process->pid);
	else
		follow_held(stop->run->follow, process);
}

static int
stop_scout(struct run *run, struct wp_target *scouts, pid_t pid, size_t first,
    size_t n, struct wp_cause *cause)
{
	struct stop_run *stop = run->own;

	(void)pid;
	(void)cause;
	wp_stops_scout(stop->stops, scouts, first, n);
	return 0;
}

static int
stop_move(struct run *run, pid_t pid, struct wp_target *target, size_t watch,
    const struct wp_region *region)
{
	struct stop_run *stop = run->own;

	return wp_stops_move(stop->stops, pid, target, watch, region);
}

static bool
stop_owns(const struct run *run, pid_t pid, uint64_t addr, uint64_t len)
{
	const struct stop_run *stop = run->own;

	return wp_stops_owns(stop->stops, pid, addr, len);
}

static void
local(void *arg, const struct wp_thread *thread, size_t first, size_t n,
    uint64_t block, bool armed)
{
	const struct stop_run *stop = arg;
	struct run *run = stop->run;
	size_t all;
	const struct wp_watched *watched = wp_target_watches(run->target, &all);

	if (!armed)
		instances_left(run, thread->pid, thread->tid, first, n);
	for (size_t w = first; w < first + n && armed; w++) {
		const struct wp_target_event event = {
			.watch = w, .addr = watched[w].region.addr + block -
			    watched[w].block,
		};

		if (watched[w].block != 0 && block != 0)
			instances_armed(run, thread->pid, thread->tid, &event,
			    1);
	}
}

static const struct wp_stops_calls calls = {
	stopped_at_hit, executed, ended, warn, scouted, held, local,
};

static int
stop_open(struct run *run)
{
	struct stop_run *stop = calloc(1, sizeof(*stop));

	if (stop == NULL || wp_stops_new(&stop->stops, run->target,
	    &calls, stop) < 0) {
		free(stop);
		return complain("out of memory");
	}
	stop->run = run;
	stop->cpu = stop->seen = -1;
	(void)sched_getaffinity(0, sizeof(stop->all), &stop->all);
	run->own = stop;
	return 0;
}

static int
stop_attach(struct run *run, const struct process *process,
    struct wp_cause *cause)
{
	struct stop_run *stop = run->own;
	int err = wp_stops_attach(stop->stops, process->pid,
	    process->first, process->n, cause);

	return err < 0 && cause->code == WP_CAUSE_NONE ?
	    ptrace_refused(process->pid, -err, cause) : err;
}

static void
stop_lend(struct run *run, const struct process *process)
{
	const struct stop_run *stop = run->own;

	wp_stops_lend(stop->stops, process->pid, process->lent);
}

static void
stop_settle(struct run *run, bool watched)
{
	(void)watched;
	(void)feed(run->own, UINT64_MAX, true);
	(void)session_flush(&run->session, wp_clock_ns());
}

/* The signals that end a sleep: stops, and requests to end. */
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
wait_a_little(struct stop_run *stop, const sigset_t *signals, bool more)
{
	struct run *run = stop->run;
	const double left = run_left_ms(run);
	int ms = wp_stops_pending(stop->stops) ? SOON_MS : LOOK_MS;

	run_check_processors(run);
	run_check_children(run);
	if (run->reason != NULL)
		return;
	if (!wp_stops_busy(stop->stops))
		run->reason = "exit";
	else if (left <= 0)
		run->reason = "time";
	else if (!is_worth_waiting(stop))
		wait_ms(run, signals, more ? 0 :
		    left < ms ? (int)left + 1 : run_sleep_ms(run, ms));
	else if (++stop->spins % SPINS == 0)
		wait_ms(run, signals, 0);
	else
		(void)sched_yield();	/* the threads of the program may
					   need the processor */
}

static void
stop_loop(struct run *run)
{
	struct stop_run *stop = run->own;
	sigset_t signals;

	wake_signals(&signals);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	(void)signal(SIGCHLD, SIG_DFL);	/* if it were ignored, it would not
					   arrive */
	run_act_begin(run);
	stop->loops = true;
	if (run->follow != NULL || run->held_modules != NULL)
		wp_stops_begin_moving(stop->stops);
	if (run->waits)
		(void)run_program(run, run->process->pid);
	while (run->reason == NULL) {
		bool more;

		run_round(run);
		if (rotate_is_due(run->rotate))
			wp_stops_begin_moving(stop->stops);
		more = wp_stops_step(stop->stops) > 0;
		if (run->reason == NULL &&
		    !feed(stop, wp_clock_ns() - ON_ITS_WAY, false))
			run->reason = session_full_reason(&run->session);
		run_turn_off(run);
		wait_a_little(stop, &signals, more);
	}
	follow_report(run->follow);
	rotate_end(run->rotate);
	stop->loops = false;
	run_act_end(run);
	if (run->on_hit.left != 0) {
		wp_stops_leave(stop->stops, run->on_hit.left);
		on_hit_report_paused(&run->on_hit);
	} else {
		wp_stops_end(stop->stops);
	}
	be_anywhere(stop);
}

/* Threads that cannot be released yet are released as soon as they wake up. */
static void
let_all_go(struct stop_run *stop)
{
	sigset_t signals;

	wake_signals(&signals);
	while (stop->run->command_status < 0 &&
	    wp_stops_busy(stop->stops)) {
		if (wp_stops_step(stop->stops) == 0)
			wait_ms(stop->run, &signals, LOOK_MS);
	}
}

static int
stop_account(struct run *run)
{
	struct stop_run *stop = run->own;
	struct session *s = &run->session;
	struct wp_perf_count count;
	uint64_t counts = 0;

	if (s->err < 0 || (!s->full && feed(stop, UINT64_MAX, true))) {
		for (size_t w = 0; w < s->nwatches; w++)
			if (wp_stops_count(stop->stops, w, &count) == 0)
				counts += hit_filter_is_full(s->filter,
				    run_session_index(run, w)) ?
				    session_samples(s, run_session_index(run,
				    w)) : count.value;
		session_counted(s, counts);
	}
	if (run->options->command != NULL)
		let_all_go(stop);
	return 0;
}

static void
stop_uptime(const struct run *run, struct wp_uptime *uptime)
{
	const struct stop_run *stop = run->own;

	wp_stops_uptime(stop->stops, uptime);
}

static void
stop_turn_off(struct run *run, size_t watch)
{
	struct stop_run *stop = run->own;

	wp_stops_turn_off(stop->stops, watch);
}

static void
stop_close(struct run *run)
{
	struct stop_run *stop = run->own;

	wp_stops_free(stop->stops);
	free(stop);
}

const struct run_ops run_by_stop = {
	.mode = "stop", .without_events = run_choose_debugreg,
	.open = stop_open, .launch = run_launch,
	.attach = stop_attach, .lend = stop_lend, .settle = stop_settle,
	.pass = stop_attach,	/* the process stays traced */
	.threads = run_threads, .tracer = stop_tracer,
	.announce = run_announce_kernel, .loop = stop_loop,
	.account = stop_account, .uptime = stop_uptime,
	.close = stop_close, .turn_off = stop_turn_off,
	.scout = stop_scout, .move = stop_move, .owns = stop_owns,
};
