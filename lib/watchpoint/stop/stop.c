/*
 * stop: processes whose threads stop at each hit.
 *
 * A thread that is stopped, for whatever reason, has all its samples in the
 * rings, so each stop is an opportunity to join them with values; the kind of
 * signal only decides whether it is removed.
 */
#include "stop/stop.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/clock.h"
#include "proc/proc.h"
#include "stop/stop_private.h"

enum {
	LATE = 50000000,	/* ns after which a sample that waits for its
				   stop is looked into, */
	TOO_LATE = 1000000000,	/* and at most, as the processor may be busy */
	PATIENCE = 200,		/* ms for all threads to be released, or held */
	NAP_NS = 100000,
	SPIN_NS = 100000,	/* ns of waiting before the first nap */
};

/* --- stops --- */

static void
warn(struct wp_stops *stops, pid_t tid, int err)
{
	struct wp_cause cause;
	char what[64];

	if (err == -ESRCH)	/* the thread was killed */
		return;
	(void)snprintf(what, sizeof(what), "thread %d cannot be watched", tid);
	(void)wp_cause_errno(&cause, what, -err);
	stops->calls->warn(stops->arg, tid, cause.text);
}

/* Only the stop of the creating thread would have shown which watches the
   process is to have. */
static void
warn_of_orphan(struct wp_stops *stops, pid_t pid)
{
	char text[160];

	(void)snprintf(text, sizeof(text), "process %d is not watched: what "
	    "created it was killed before it was known what it had created",
	    pid);
	stops->calls->warn(stops->arg, pid, text);
}

/* The new thread is added while its creator is stopped.  If that were left to
   the report of the new thread, its creator might have ended by then, and the
   parent of a child would not be known. */
static void
take_made(struct wp_stops *stops, struct wp_stop_process *maker, pid_t tid)
{
	if (wp_stop_find(stops, tid) == NULL)
		/* on failure, try again at its first stop */
		(void)wp_stop_adopt(stops, tid, maker);
}

/* Mark the thread as running.  Returns the signal that it gets. */
static int
goes_on(struct wp_stop_thread *thread)
{
	thread->held = false;
	for (size_t i = 0; i < thread->process->n; i++)
		thread->crowd[i].since = wp_clock_ns();
	return thread->pass;
}

/* Let all held threads continue. */
static void
all_go_on(struct wp_stops *stops)
{
	for (size_t i = 0; i < stops->loop.all.n; i++) {
		struct wp_stop_thread *thread = wp_stop_at(stops, i);

		if (thread->held)
			wp_thread_go_on(&thread->traced, goes_on(thread));
	}
}

/* Record the values at a stop; the thread then counts as held.  If a signal is
   passed on and its handler makes a hit too, the next stop comes when the
   handler ends, and so on without end; so a merged signal without a hit
   disables the signal. */
static enum wp_stopped_at
take_stop(struct wp_stops *stops, struct wp_stop_thread *thread,
    const struct wp_trace *trace)
{
	enum wp_stop_signal what = WP_STOP_SIGNAL_ITS_OWN;
	enum wp_stopped_at at;

	if (trace->made != 0)
		take_made(stops, thread->process, trace->made);
	wp_stop_drain(stops);
	if (trace->what == WP_TRACE_SIGNAL)
		what = wp_stop_signal_of(stops, thread, trace->signal);
	if (what != WP_STOP_SIGNAL_ITS_OWN)
		thread->signal_blocked = false;
	thread->pass = trace->what == WP_TRACE_SIGNAL &&
	    what != WP_STOP_SIGNAL_OURS ? trace->signal : 0;
	thread->held = true;
	at = wp_stop_join(stops, thread);
	if (what == WP_STOP_SIGNAL_MERGED && at == WP_STOP_AT_NOTHING &&
	    thread->scout_ip != wp_trace_pc(thread->traced.tid))
		wp_stop_mute(thread);
	thread->scout_ip = 0;
	return at;
}

/* Record the stop, and let all held threads continue, unless the process is
   being left, when nothing more is handled. */
static int
stopped(void *arg, struct wp_thread *traced, const struct wp_trace *trace)
{
	struct wp_stop_thread *thread = (struct wp_stop_thread *)traced;
	const pid_t pid = traced->pid, tid = traced->tid;
	struct wp_stops *stops = arg;
	const enum wp_stopped_at at = take_stop(stops, thread, trace);

	stops->holds = false;
	wp_stop_look_at_scouts(stops);
	if (at != WP_STOP_AT_NOTHING && !stops->ending &&
	    stops->calls->hit != NULL)
		stops->loop.enough = stops->calls->hit(stops->arg, pid, tid,
		    at == WP_STOP_AT_CALL);
	if (!stops->loop.enough && !stops->holds)
		return goes_on(thread);
	/* traced may have been freed in the meantime */
	if (!stops->loop.enough)
		all_go_on(stops);
	return WP_TRACER_LATER;
}

/* Handle the report of a thread that may be new, or not one of ours. */
static struct wp_thread *
adopt(void *arg, pid_t tid)
{
	struct wp_stops *stops = arg;
	const int err = wp_stop_adopt(stops, tid, NULL);

	if (err == -ECHILD)
		warn_of_orphan(stops, tid);
	else if (err < 0 && !stops->ending)
		warn(stops, tid, err);
	return wp_thread_find(&stops->loop.all, tid);
}

static bool
arm(void *arg, struct wp_thread *thread)
{
	const struct wp_stops *stops = arg;

	(void)thread;
	return !stops->ending;
}

static bool
executed(void *arg, pid_t pid)
{
	const struct wp_stops *stops = arg;

	return stops->calls->executed(stops->arg, pid) && !stops->ending;
}

static void
ended(void *arg, pid_t pid, int status)
{
	const struct wp_stops *stops = arg;

	stops->calls->ended(stops->arg, pid, status);
}

static const struct wp_ptrace_loop_calls loop_calls = {
	.size = sizeof(struct wp_stop_thread), .arm = arm, .end = wp_stop_end,
	.adopt = adopt, .stopped = stopped, .executed = executed,
	.ended = ended,
};

int
wp_stops_new(struct wp_stops **out, struct wp_target *target,
    const struct wp_stops_calls *calls, void *arg)
{
	struct wp_stops *stops = calloc(1, sizeof(*stops));

	if (stops == NULL)
		return -ENOMEM;
	stops->target = target;
	stops->calls = calls;
	stops->arg = arg;
	wp_ptrace_loop_begin(&stops->loop, 0, 0, &loop_calls, stops);
	*out = stops;
	return 0;
}

void
wp_stops_free(struct wp_stops *stops)
{
	if (stops == NULL)
		return;
	wp_stops_end(stops);
	wp_ptrace_loop_end(&stops->loop);
	wp_stop_queue_free(&stops->queue);
	free(stops->closed_total);
	free(stops);
}

/* A sample has waited too long: its thread may block the signal, or sleep where
   it cannot stop. */
static void
look_at_late(struct wp_stops *stops)
{
	const struct wp_stop_record *record =
	    wp_stop_queue_waiting(&stops->queue);
	const uint64_t now = wp_clock_ns();
	struct wp_stop_thread *thread;
	struct wp_trace trace;

	if (record == NULL || record->time + LATE > now || stops->loop.enough)
		return;
	thread = wp_stop_find(stops, record->tid);
	if (thread != NULL) {
		if (wp_trace_next(record->tid, &trace) > 0) {
			wp_ptrace_loop_handle(&stops->loop, &trace);
			return;
		}
		if (wp_stop_signal_check(stops, thread) &&
		    record->time + TOO_LATE > now)
			return;
		thread->signal_blocked = true;
	}
	wp_stop_give_up(stops, record->tid);
}

int
wp_stops_step(struct wp_stops *stops)
{
	const int more = wp_ptrace_loop_step(&stops->loop);

	wp_stop_drain(stops);
	stops->holds = false;
	wp_stop_look_at_scouts(stops);
	if (stops->holds)
		all_go_on(stops);
	look_at_late(stops);
	wp_stop_look_at_signals(stops);
	return more;
}

const struct perf_event_header *
wp_stops_next(struct wp_stops *stops, uint64_t horizon, bool all)
{
	return wp_stop_queue_next(&stops->queue, horizon, !all);
}

bool
wp_stops_pending(const struct wp_stops *stops)
{
	return stops->queue.end > stops->queue.first;
}

bool
wp_stops_busy(const struct wp_stops *stops)
{
	return wp_ptrace_loop_busy(&stops->loop);
}

uint64_t
wp_stops_last(const struct wp_stops *stops, int *cpu, pid_t *tid)
{
	*cpu = stops->last_cpu;
	*tid = stops->last_tid;
	return stops->last;
}

/* --- holding all, and the end --- */

/* Take the stops of a process's threads as they come, and let none of them
   continue.  Returns how many are still missing. */
static size_t
collect(struct wp_stops *stops, pid_t pid)
{
	struct wp_thread *traced;
	struct wp_trace trace;
	size_t missing = 0;

	for (pid_t tid = 0; (traced = wp_thread_after(&stops->loop.all,
	    tid)) != NULL;) {
		struct wp_stop_thread *t = (struct wp_stop_thread *)traced;

		tid = traced->tid;
		if (traced->pid != pid || t->held)
			continue;
		if (wp_trace_next(tid, &trace) <= 0)
			/* the first thread may have ended before the others */
			missing += tid != pid || !wp_proc_exiting(pid);
		else if (trace.what == WP_TRACE_EXEC ||
		    trace.what == WP_TRACE_END)
			wp_ptrace_loop_handle(&stops->loop, &trace);
		else {
			traced->group_stopped = trace.what == WP_TRACE_GROUP;
			(void)take_stop(stops, t, &trace);
		}
	}
	return missing;
}

int
wp_stops_hold(struct wp_stops *stops, pid_t pid)
{
	const uint64_t began = wp_clock_ns();

	stops->holds = true;
	for (size_t i = 0; i < stops->loop.all.n; i++) {
		const struct wp_stop_thread *t = wp_stop_at(stops, i);

		if (t->traced.pid == pid && !t->held)
			wp_trace_interrupt(t->traced.tid);
	}
	while (collect(stops, pid) > 0) {
		const uint64_t took = wp_clock_ns() - began;

		if (took > PATIENCE * 1000000ull)
			return -ETIMEDOUT;
		if (took > SPIN_NS)
			wp_clock_sleep(NAP_NS);
		else
			(void)sched_yield();
	}
	return wp_stop_find_process(stops, pid) == NULL ? -ESRCH : 0;
}

bool
wp_stops_is_stopped(const struct wp_stops *stops, pid_t pid, pid_t tid)
{
	const struct wp_stop_thread *thread = wp_stop_find(stops, tid);

	return thread != NULL && thread->held && thread->process->pid == pid;
}

void
wp_stops_end(struct wp_stops *stops)
{
	const uint64_t limit = wp_clock_ns() + PATIENCE * 1000000ull;
	struct wp_thread *traced;
	pid_t tid = 0;

	if (stops->ending)
		return;
	stops->ending = true;
	stops->loop.enough = false;
	while ((traced = wp_thread_after(&stops->loop.all, tid)) != NULL) {
		struct wp_stop_thread *t = (struct wp_stop_thread *)traced;
		const int sig = t->pass;

		tid = traced->tid;
		wp_events_stop(&t->events, &stops->target->options);
		wp_events_stop(&t->scouts, &stops->target->options);
		if (t->held) {
			wp_ptrace_loop_forget(&stops->loop, traced);
			wp_trace_let_go(tid, sig);
		}
	}
	wp_ptrace_loop_update(&stops->loop);
	while (wp_stops_busy(stops) && wp_clock_ns() < limit)
		if (wp_stops_step(stops) == 0)
			wp_clock_sleep(NAP_NS);
}

/* The first thread that is let go stops the others by the signal, and they see
   it before they continue. */
void
wp_stops_leave(struct wp_stops *stops, pid_t pid)
{
	const uint64_t limit = wp_clock_ns() + PATIENCE * 1000000ull;
	struct wp_proc_status status;

	(void)kill(pid, SIGSTOP);
	wp_stops_end(stops);
	while (wp_clock_ns() < limit && wp_proc_status(pid, &status) == 0 &&
	    status.state != 'T')
		wp_clock_sleep(NAP_NS);
}
