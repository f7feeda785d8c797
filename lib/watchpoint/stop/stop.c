/*
 * stop: processes whose threads stop at each hit.
 *
 * A thread that is stopped, for whatever reason, has all its samples in the
 * rings, so each stop is an opportunity to join them with values; the kind of
 * signal only decides whether it is removed.
 */
#include "stop/stop.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/proc.h"
#include "stop/stop_private.h"

enum {
	LATE = 50000000,	/* ns that a sample waits for its stop before it
				   is asked why, ... */
	TOO_LATE = 1000000000,	/* ... and at most: its processor may be busy */
	PATIENCE = 200,		/* ms for all to be released, or held */
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
	*out = stops;
	return 0;
}

void
wp_stops_free(struct wp_stops *stops)
{
	if (stops == NULL)
		return;
	wp_stops_end(stops);
	while (stops->all.n > 0)
		wp_stop_forget(stops, wp_stop_at(stops, 0));
	wp_stop_queue_free(&stops->queue);
	free(stops->closed_total);
	free(stops);
}

/* --- stops --- */

static void
warn(struct wp_stops *stops, pid_t tid, int err)
{
	char text[128];

	if (err == -ESRCH)	/* it was killed */
		return;
	(void)snprintf(text, sizeof(text), "thread %d cannot be watched: %s",
	    tid, strerror(-err));
	stops->calls->warn(stops->arg, text);
}

/* A thread has just made another.  It is added while its creator is stopped,
   which might otherwise have ended by the time it is reported: then a child's
   parent would not be known any more. */
static void
take_made(struct wp_stops *stops, pid_t tid)
{
	if (wp_stop_find(stops, tid) == NULL)
		/* if not, at its first stop */
		(void)wp_stop_adopt(stops, tid);
}

static void
go_on(struct wp_stop_thread *thread)
{
	thread->held = false;
	wp_thread_go_on(&thread->traced, thread->pass);
}

static void
let_go(struct wp_stops *stops, struct wp_stop_thread *thread)
{
	const pid_t tid = thread->traced.tid;
	const int sig = thread->pass;

	wp_stop_forget(stops, thread);
	wp_trace_let_go(tid, sig);
}

/* Record what a stop says; the thread then is held.  A signal that is
   passed on makes its handler run: if that hits too, the next stop comes as the
   handler ends, and so on without end. */
static enum wp_stop_at
take_stop(struct wp_stops *stops, struct wp_stop_thread *thread,
    const struct wp_trace *trace)
{
	enum wp_stop_signal what = WP_STOP_SIGNAL_ITS_OWN;
	enum wp_stop_at at;

	if (trace->made != 0)
		take_made(stops, trace->made);
	wp_stop_drain(stops);
	if (trace->what == WP_TRACE_SIGNAL)
		what = wp_stop_signal_of(stops, thread, trace->signal);
	if (what != WP_STOP_SIGNAL_ITS_OWN)
		thread->signal_blocked = false;
	thread->pass = trace->what == WP_TRACE_SIGNAL &&
	    what != WP_STOP_SIGNAL_OURS ? trace->signal : 0;
	thread->traced.stands = trace->what == WP_TRACE_GROUP;
	thread->held = true;
	at = wp_stop_join(stops, thread);
	if (what == WP_STOP_SIGNAL_JOINED && at == WP_STOP_AT_NOTHING)
		wp_stop_mute(thread);
	return at;
}

static void
handle_stop(struct wp_stops *stops, struct wp_stop_thread *thread,
    const struct wp_trace *trace)
{
	const pid_t pid = thread->process->pid, tid = trace->tid;
	const enum wp_stop_at at = take_stop(stops, thread, trace);

	if (at == WP_STOP_AT_NOTHING || stops->ending ||
	    stops->calls->hit == NULL) {
		if (stops->ending)
			let_go(stops, thread);
		else
			go_on(thread);
		return;
	}
	stops->holds = false;
	stops->left = stops->calls->hit(stops->arg, pid, tid,
	    at == WP_STOP_AT_CALL);
	if (!stops->left && !stops->holds)
		go_on(thread);
	/* this one may have been killed in the meantime */
	for (size_t i = 0; i < stops->all.n && stops->holds && !stops->left;
	    i++)
		if (wp_stop_at(stops, i)->held)
			go_on(wp_stop_at(stops, i));
}

/* Of a thread that may be new, or nothing of ours. */
static void
handle_some_stop(struct wp_stops *stops, const struct wp_trace *trace)
{
	struct wp_stop_thread *thread = wp_stop_find(stops, trace->tid);
	int err;

	if (thread == NULL && (err = wp_stop_adopt(stops, trace->tid)) < 0) {
		warn(stops, trace->tid, err);
		wp_trace_let_go(trace->tid,
		    trace->what == WP_TRACE_SIGNAL ? trace->signal : 0);
		return;
	}
	if (thread == NULL)
		thread = wp_stop_find(stops, trace->tid);
	handle_stop(stops, thread, trace);
}

static void
handle_end(struct wp_stops *stops, pid_t tid)
{
	struct wp_stop_thread *thread = wp_stop_find(stops, tid);
	const bool first = thread == NULL || thread->process->pid == tid;
	int status;

	if (first)
		wp_stop_forget_process(stops, tid);
	else
		wp_stop_forget(stops, thread);
	status = wp_trace_reap(tid);
	if (first && status >= 0)
		stops->calls->ended(stops->arg, tid, status);
}

static bool
handle(void *arg, const struct wp_trace *trace)
{
	struct wp_stops *stops = arg;

	if (trace->what == WP_TRACE_EXEC) {
		const bool known = wp_stop_find_process(stops, trace->tid) !=
		    NULL;

		wp_stop_forget_process(stops, trace->tid);
		wp_trace_let_go(trace->tid, 0);
		if (known)
			stops->calls->executed(stops->arg, trace->tid);
	} else if (trace->what == WP_TRACE_END) {
		handle_end(stops, trace->tid);
	} else {
		handle_some_stop(stops, trace);
	}
	return !stops->left;
}

void
wp_stop_look(struct wp_stops *stops)
{
	wp_thread_look(&stops->all, handle, stops);
}

/* A sample waits too long: its thread blocks the signal, perhaps, or sleeps
   where it cannot stop. */
static void
look_at_late(struct wp_stops *stops)
{
	const struct wp_stop_record *record =
	    wp_stop_queue_waiting(&stops->queue);
	const uint64_t now = wp_clock_ns();
	struct wp_stop_thread *thread;
	struct wp_trace trace;

	if (record == NULL || record->time + LATE > now || stops->left)
		return;
	thread = wp_stop_find(stops, record->tid);
	if (thread != NULL) {
		if (wp_trace_next(record->tid, &trace) > 0) {
			(void)handle(stops, &trace);
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
	const bool more = wp_thread_step(&stops->all, handle, stops);

	wp_stop_drain(stops);
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
	return stops->all.n > 0;
}

uint64_t
wp_stops_last(const struct wp_stops *stops, int *cpu, pid_t *tid)
{
	*cpu = stops->last_cpu;
	*tid = stops->last_tid;
	return stops->last;
}

/* --- holding all, and the end --- */

static void
nap(void)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

/* pid 0: those of all processes. */
static void
interrupt_all(struct wp_stops *stops, pid_t pid)
{
	for (size_t i = 0; i < stops->all.n; i++) {
		const struct wp_stop_thread *t = wp_stop_at(stops, i);

		if (!t->held && (pid == 0 || t->process->pid == pid))
			wp_trace_interrupt(t->traced.tid);
	}
}

/* Take the stops of a process's threads as they come; none goes on.  Result:
   how many are still to come. */
static size_t
collect(struct wp_stops *stops, pid_t pid)
{
	struct wp_thread *traced;
	struct wp_trace trace;
	size_t missing = 0;

	for (pid_t tid = 0; (traced = wp_thread_after(&stops->all, tid)) !=
	    NULL;) {
		struct wp_stop_thread *t = (struct wp_stop_thread *)traced;

		tid = traced->tid;
		if (t->process->pid != pid || t->held)
			continue;
		if (wp_trace_next(tid, &trace) <= 0)
			/* the first thread may have ended before others */
			missing += tid != pid || !wp_proc_exiting(pid);
		else if (trace.what == WP_TRACE_EXEC ||
		    trace.what == WP_TRACE_END)
			(void)handle(stops, &trace);
		else
			(void)take_stop(stops, t, &trace);
	}
	return missing;
}

int
wp_stops_hold(struct wp_stops *stops, pid_t pid)
{
	const uint64_t limit = wp_clock_ns() + PATIENCE * 1000000ull;

	stops->holds = true;
	interrupt_all(stops, pid);
	while (collect(stops, pid) > 0) {
		if (wp_clock_ns() > limit)
			return -ETIMEDOUT;
		nap();
	}
	return wp_stop_find_process(stops, pid) == NULL ? -ESRCH : 0;
}

bool
wp_stops_stands(const struct wp_stops *stops, pid_t pid, pid_t tid)
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
	stops->left = false;
	while ((traced = wp_thread_after(&stops->all, tid)) != NULL) {
		struct wp_stop_thread *t = (struct wp_stop_thread *)traced;

		tid = traced->tid;
		wp_events_stop(&t->events);
		if (t->held)
			let_go(stops, t);
	}
	interrupt_all(stops, 0);
	while (stops->all.n > 0 && wp_clock_ns() < limit)
		if (wp_stops_step(stops) == 0)
			nap();
}

/* The first to go takes the signal, and stops the others, which learn of it
   before they go on. */
void
wp_stops_leave(struct wp_stops *stops, pid_t pid)
{
	const uint64_t limit = wp_clock_ns() + PATIENCE * 1000000ull;
	struct wp_proc_status status;

	(void)kill(pid, SIGSTOP);
	wp_stops_end(stops);
	while (wp_clock_ns() < limit && wp_proc_status(pid, &status) == 0 &&
	    status.state != 'T')
		nap();
}
