/*
 * stop: processes whose threads stop at each hit.
 *
 * A thread that stands still, for whatever reason, has all its samples in the
 * rings, so each stop is a time to join them with values; what the signal was
 * tells only whether it is to be taken away.
 */
#include "stop.h"

#include <errno.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "proc.h"
#include "stop_private.h"

enum {
	STEPS = 64,		/* reports, at least, before each thread is
				   looked at once */
	LATE = 50000000,	/* ns that a sample waits for its stop */
	PATIENCE = 200,		/* ms for all to be let go, or held */
};

/* --- the tables --- */

static struct wp_stop_thread **
place(struct wp_stops *stops, pid_t tid)
{
	struct wp_stop_thread **at =
	    &stops->bucket[(unsigned)tid % WP_STOP_BUCKETS];

	while (*at != NULL && (*at)->tid != tid)
		at = &(*at)->next;
	return at;
}

struct wp_stop_thread *
wp_stop_find(const struct wp_stops *stops, pid_t tid)
{
	struct wp_stop_thread *thread =
	    stops->bucket[(unsigned)tid % WP_STOP_BUCKETS];

	while (thread != NULL && thread->tid != tid)
		thread = thread->next;
	return thread;
}

static struct wp_stop_process *
find_process(const struct wp_stops *stops, pid_t pid)
{
	struct wp_stop_process *process = stops->process;

	while (process != NULL && process->pid != pid)
		process = process->next;
	return process;
}

static struct wp_stop_process *
add_process(struct wp_stops *stops, pid_t pid, size_t first, size_t n)
{
	struct wp_stop_process *process = calloc(1, sizeof(*process));

	if (process == NULL)
		return NULL;
	process->pid = pid;
	process->first = first;
	process->n = n;
	process->next = stops->process;
	stops->process = process;
	return process;
}

static void
drop_process(struct wp_stops *stops, struct wp_stop_process *process)
{
	struct wp_stop_process **at = &stops->process;

	while (*at != process)
		at = &(*at)->next;
	*at = process->next;
	free(process);
}

/* A thread that stands still, before it does anything: arm it, unless it only
   waits to be let go. */
static int
add_thread(struct wp_stops *stops, struct wp_stop_process *process, pid_t tid,
    bool made)
{
	struct wp_stop_thread *thread = calloc(1, sizeof(*thread));
	int err;

	if (thread == NULL)
		return -ENOMEM;
	thread->tid = tid;
	thread->process = process;
	err = stops->ending ? 0 : wp_stop_arm(stops, thread, made);
	if (err < 0) {
		wp_stop_disarm(stops, thread);
		free(thread);
		return err;
	}
	*place(stops, tid) = thread;
	thread->sister = process->thread;
	process->thread = thread;
	process->threads++;
	stops->n++;
	return 0;
}

/* It is traced no more.  Result: whether its process still is. */
static bool
forget(struct wp_stops *stops, pid_t tid)
{
	struct wp_stop_thread **at = place(stops, tid), *thread = *at;
	struct wp_stop_process *process;

	if (thread == NULL)
		return false;
	process = thread->process;
	wp_stop_drain(stops);
	wp_stop_give_up(stops, tid);
	wp_stop_unsettle(stops, thread);
	wp_stop_disarm(stops, thread);
	*at = thread->next;
	for (at = &process->thread; *at != thread; at = &(*at)->sister)
		;
	*at = thread->sister;
	free(thread);
	stops->n--;
	if (--process->threads > 0)
		return true;
	drop_process(stops, process);
	return false;
}

static void
forget_process(struct wp_stops *stops, pid_t pid)
{
	for (size_t i = 0; i < WP_STOP_BUCKETS; i++)
		for (struct wp_stop_thread *t = stops->bucket[i], *next;
		    t != NULL; t = next) {
			next = t->next;
			if (t->process->pid == pid)
				(void)forget(stops, t->tid);
		}
}

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
	for (size_t i = 0; i < WP_STOP_BUCKETS; i++)
		while (stops->bucket[i] != NULL)
			(void)forget(stops, stops->bucket[i]->tid);
	wp_stop_queue_free(&stops->queue);
	free(stops->gone);
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

/* A new child, with the watches of the process that made it. */
static struct wp_stop_process *
adopt_process(struct wp_stops *stops, const struct wp_proc_status *status)
{
	struct wp_stop_process *parent = find_process(stops, status->parent);
	struct wp_stop_process *process;

	if (parent == NULL || !stops->target->options.follow)
		return NULL;
	process = add_process(stops, status->tgid, parent->first, parent->n);
	if (process == NULL)
		return NULL;
	wp_stop_settle(stops, process);
	/* unless it is known to have its own */
	if (syscall(SYS_kcmp, parent->pid, process->pid, KCMP_VM, 0, 0) <= 0)
		process->shares = parent;
	return process;
}

/* A thread that was just made, of a child perhaps.  0; -ESRCH, nothing of ours,
   or it was killed; or -errno. */
static int
adopt(struct wp_stops *stops, pid_t tid)
{
	struct wp_stop_process *process;
	struct wp_proc_status status;
	int err = wp_proc_status(tid, &status);

	if (err < 0)
		return err;
	process = find_process(stops, status.tgid);
	if (process == NULL &&
	    (process = adopt_process(stops, &status)) == NULL)
		return -ESRCH;
	err = add_thread(stops, process, tid, true);
	if (err < 0 && process->threads == 0)
		drop_process(stops, process);
	return err;
}

/* A thread has just made another.  It is taken in while its maker stands still,
   who else may have ended when it is heard of: then nobody knew a child's
   parent any more. */
static void
take_made(struct wp_stops *stops, pid_t tid)
{
	if (wp_stop_find(stops, tid) == NULL)
		(void)adopt(stops, tid);	/* if not, at its first stop */
}

static void
go_on(struct wp_stop_thread *thread)
{
	thread->held = false;
	if (thread->stands)
		wp_trace_listen(thread->tid);
	else
		wp_trace_continue(thread->tid, thread->pass);
}

static void
let_go(struct wp_stops *stops, struct wp_stop_thread *thread)
{
	const pid_t tid = thread->tid;
	const int sig = thread->stands ? 0 : thread->pass;

	(void)forget(stops, tid);
	wp_trace_let_go(tid, sig);
}

/* Take down what a stop tells; the thread then is held. */
static enum wp_stop_at
take_stop(struct wp_stops *stops, struct wp_stop_thread *thread,
    const struct wp_trace *trace)
{
	bool ours;

	if (trace->made != 0)
		take_made(stops, trace->made);
	wp_stop_drain(stops);
	ours = trace->what == WP_TRACE_SIGNAL &&
	    wp_stop_is_ours(thread, trace->signal);
	if (ours)
		thread->blind = false;
	thread->pass = trace->what == WP_TRACE_SIGNAL && !ours ?
	    trace->signal : 0;
	thread->stands = trace->what == WP_TRACE_GROUP;
	thread->held = true;
	return wp_stop_join(stops, thread);
}

static void
handle_stop(struct wp_stops *stops, struct wp_stop_thread *thread,
    const struct wp_trace *trace)
{
	const pid_t pid = thread->process->pid, tid = thread->tid;
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
	/* this one may have been killed meanwhile */
	for (size_t i = 0; i < WP_STOP_BUCKETS && stops->holds && !stops->left;
	    i++)
		for (struct wp_stop_thread *t = stops->bucket[i]; t != NULL;
		    t = t->next)
			if (t->held)
				go_on(t);
}

/* Of a thread that may be new, or nothing of ours. */
static void
handle_some_stop(struct wp_stops *stops, const struct wp_trace *trace)
{
	struct wp_stop_thread *thread = wp_stop_find(stops, trace->tid);
	int err;

	if (thread == NULL && (err = adopt(stops, trace->tid)) < 0) {
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
	const struct wp_stop_thread *thread = wp_stop_find(stops, tid);
	const bool first = thread == NULL || thread->process->pid == tid;
	int status;

	if (first)
		forget_process(stops, tid);
	else
		(void)forget(stops, tid);
	status = wp_trace_reap(tid);
	if (first && status >= 0)
		stops->calls->ended(stops->arg, tid, status);
}

static void
handle(struct wp_stops *stops, const struct wp_trace *trace)
{
	if (trace->what == WP_TRACE_EXEC) {
		bool known = find_process(stops, trace->tid) != NULL;

		forget_process(stops, trace->tid);
		wp_trace_let_go(trace->tid, 0);
		if (known)
			stops->calls->executed(stops->arg, trace->tid);
	} else if (trace->what == WP_TRACE_END) {
		handle_end(stops, trace->tid);
	} else {
		handle_some_stop(stops, trace);
	}
}

/* Look at each thread once: the kernel tells first of those made last, and
   would tell of nobody else as long as they have hits. */
static void
look_at_each(struct wp_stops *stops)
{
	pid_t *tids = malloc((stops->n + 1) * sizeof(*tids));
	struct wp_trace trace;
	size_t n = 0;

	for (size_t i = 0; tids != NULL && i < WP_STOP_BUCKETS; i++)
		for (const struct wp_stop_thread *t = stops->bucket[i];
		    t != NULL; t = t->next)
			tids[n++] = t->tid;
	for (size_t i = 0; i < n && !stops->left; i++)
		if (wp_trace_next(tids[i], &trace) > 0)
			handle(stops, &trace);
	free(tids);
}

/* A sample waits too long: its thread blocks the signal, perhaps, or sleeps
   where it cannot stop. */
static void
look_at_late(struct wp_stops *stops)
{
	const struct wp_stop_record *record =
	    wp_stop_queue_waiting(&stops->queue);
	struct wp_stop_thread *thread;
	struct wp_trace trace;

	if (record == NULL || record->time + LATE > wp_clock_ns())
		return;
	thread = wp_stop_find(stops, record->tid);
	if (thread != NULL && wp_trace_next(record->tid, &trace) > 0)
		return;		/* it does stop */
	if (thread != NULL) {
		wp_stop_signal_check(stops, thread);
		thread->blind = true;
	}
	wp_stop_give_up(stops, record->tid);
}

int
wp_stops_step(struct wp_stops *stops)
{
	struct wp_trace trace;
	bool more = true;

	for (size_t i = 0; more && !stops->left && (i < STEPS || i < stops->n);
	    i++)
		if ((more = wp_trace_next(0, &trace) > 0))
			handle(stops, &trace);
	if (more && !stops->left)
		look_at_each(stops);
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
	return stops->n > 0;
}

uint64_t
wp_stops_last(const struct wp_stops *stops, int *cpu, pid_t *tid)
{
	*cpu = stops->last_cpu;
	*tid = stops->last_tid;
	return stops->last;
}

/* --- beginning and end --- */

static int
make_room(struct wp_stops *stops)
{
	const size_t n = stops->target->nwatches;
	struct wp_perf_count *gone = realloc(stops->gone, n * sizeof(*gone));

	if (gone == NULL)
		return -ENOMEM;
	memset(gone + stops->ngone, 0, (n - stops->ngone) * sizeof(*gone));
	stops->gone = gone;
	stops->ngone = n;
	return 0;
}

/* Arm all who stand still. */
static int
arm_all(struct wp_stops *stops, const struct wp_hold *hold,
    const struct wp_stop_process *at, struct wp_cause *cause)
{
	struct wp_stop_process *process = add_process(stops, at->pid,
	    at->first, at->n);
	int err;

	if (process == NULL)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	for (size_t i = 0; i < hold->n; i++) {
		const pid_t tid = hold->thread[i].tid;

		err = add_thread(stops, process, tid, false);
		if (err == 0 || err == -ESRCH)
			continue;
		err = wp_target_explain(stops->target, process->first,
		    process->n, err, tid, cause);
		if (process->threads > 0)
			forget_process(stops, at->pid);
		else
			drop_process(stops, process);
		return err;
	}
	if (process->threads == 0) {
		drop_process(stops, process);
		return wp_cause_set(cause, WP_CAUSE_GONE, at->pid);
	}
	wp_target_read_before(stops->target, hold, process->first, process->n);
	wp_stop_settle(stops, process);
	return 0;
}

static int
attach_running(struct wp_stops *stops, const struct wp_stop_process *at,
    struct wp_cause *cause)
{
	struct wp_hold hold = {0};
	int err = wp_trace_family(&hold, at->pid,
	    stops->target->options.follow);

	if (err == -ESRCH)
		return wp_cause_set(cause, WP_CAUSE_GONE, at->pid);
	if (err < 0) {
		*cause = (struct wp_cause){0};
		return err;
	}
	if ((err = arm_all(stops, &hold, at, cause)) < 0)
		wp_hold_release(&hold);
	free(hold.thread);
	return err;
}

/* The command has nothing to report of its stop: it goes on from here. */
static int
attach_command(struct wp_stops *stops, const struct wp_stop_process *at,
    struct wp_cause *cause)
{
	struct wp_target *target = stops->target;
	const size_t known = target->hold.n;
	int err = wp_trace_family(&target->hold, at->pid,
	    target->options.follow);

	if (err < 0)
		return err == -ESRCH ?
		    wp_cause_set(cause, WP_CAUSE_ENDED_EARLY) :
		    wp_cause_errno(cause, "holding the command", -err);
	if ((err = arm_all(stops, &target->hold, at, cause)) < 0)
		return err;
	for (size_t i = 0; i < known; i++)
		wp_trace_continue(target->hold.thread[i].tid,
		    target->hold.thread[i].signal);
	free(target->hold.thread);
	target->hold = (struct wp_hold){0};
	target->command = 0;
	return 0;
}

int
wp_stops_attach(struct wp_stops *stops, pid_t pid, size_t first, size_t n,
    struct wp_cause *cause)
{
	struct wp_target *target = stops->target;
	const struct wp_stop_process at = {.pid = pid, .first = first, .n = n};
	const bool command = target->command == pid;
	const size_t before = stops->n;
	const uint64_t began = wp_clock_ns();
	double frozen;
	int err;

	if (make_room(stops) < 0)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	if (!command && (err = wp_target_check(pid, cause)) < 0)
		return err;
	err = command ? attach_command(stops, &at, cause) :
	    attach_running(stops, &at, cause);
	if (err < 0)
		return err;
	look_at_each(stops);
	target->threads += (unsigned)(stops->n - before);
	frozen = (double)(wp_clock_ns() - began) / 1e6;
	if (!command && frozen > target->frozen_ms)
		target->frozen_ms = frozen;
	return 0;
}

static void
nap(void)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

static void
interrupt_all(struct wp_stops *stops, pid_t pid)
{
	for (size_t i = 0; i < WP_STOP_BUCKETS; i++)
		for (const struct wp_stop_thread *t = stops->bucket[i];
		    t != NULL; t = t->next)
			if (!t->held && (pid == 0 || t->process->pid == pid))
				wp_trace_interrupt(t->tid);
}

/* Take the stops of a process's threads as they come; nobody goes on.  Result:
   how many are still to come. */
static size_t
collect(struct wp_stops *stops, pid_t pid)
{
	pid_t *tids = malloc((stops->n + 1) * sizeof(*tids));
	struct wp_trace trace;
	size_t n = 0, missing = 0;

	for (size_t i = 0; tids != NULL && i < WP_STOP_BUCKETS; i++)
		for (const struct wp_stop_thread *t = stops->bucket[i];
		    t != NULL; t = t->next)
			if (t->process->pid == pid && !t->held)
				tids[n++] = t->tid;
	for (size_t i = 0; i < n; i++) {
		struct wp_stop_thread *t = wp_stop_find(stops, tids[i]);

		if (t == NULL)
			continue;
		if (wp_trace_next(tids[i], &trace) <= 0)
			/* the first thread may have ended before others */
			missing += tids[i] != pid || !wp_proc_exiting(pid);
		else if (trace.what == WP_TRACE_EXEC ||
		    trace.what == WP_TRACE_END)
			handle(stops, &trace);
		else
			(void)take_stop(stops, t, &trace);
	}
	free(tids);
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
	return find_process(stops, pid) == NULL ? -ESRCH : 0;
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

	if (stops->ending)
		return;
	stops->ending = true;
	stops->left = false;
	for (size_t i = 0; i < WP_STOP_BUCKETS; i++)
		for (struct wp_stop_thread *t = stops->bucket[i], *next;
		    t != NULL; t = next) {
			next = t->next;
			for (size_t k = 0; k < t->events.n; k++)
				(void)wp_perf_disable(t->events.event[k].fd);
			if (t->held)
				let_go(stops, t);
		}
	interrupt_all(stops, 0);
	while (stops->n > 0 && wp_clock_ns() < limit)
		if (wp_stops_step(stops) == 0)
			nap();
}

/* The first to go takes the signal, and stops the others, who get to know of it
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
