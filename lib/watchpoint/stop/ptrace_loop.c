/*
 * ptrace_loop: a process whose threads are traced while they run.  See
 * ptrace_loop.h.
 *
 * Threads are distinguished from processes that it creates by clone(2), which
 * the kernel lets us trace too: those are released.
 */
#include "stop/ptrace_loop.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "os/clock.h"
#include "os/ptrace.h"

enum {
	PATIENCE = 10,		/* ms until sleepers are looked for */
	LIMIT = 5000,		/* ms for all to stop */
};

struct thread {
	struct wp_thread traced;
	uint32_t current;	/* the update it has had; 0: none */
};

struct wp_ptrace_loop {
	pid_t pid;
	uint64_t signals;	/* that are shown to the owner */
	const struct wp_ptrace_loop_calls *calls;
	void *arg;
	uint32_t current;	/* the last update */
	long began;		/* when, in ms */
	size_t behind;		/* threads that have not had it */
	bool ended;
	struct wp_thread_table all;
};

static struct thread *
find(const struct wp_ptrace_loop *tracer, pid_t tid)
{
	return (struct thread *)wp_thread_find(&tracer->all, tid);
}

static struct thread *
thread_at(const struct wp_ptrace_loop *tracer, size_t i)
{
	return (struct thread *)tracer->all.thread[i];
}

static struct thread *
add(struct wp_ptrace_loop *tracer, pid_t tid)
{
	struct thread *thread = find(tracer, tid);

	if (thread == NULL && (thread = wp_thread_add(&tracer->all, tid,
	    sizeof(*thread))) != NULL)
		tracer->behind++;
	return thread;
}

static void
forget(struct wp_ptrace_loop *tracer, struct thread *thread)
{
	tracer->calls->end(tracer->arg, &thread->traced);
	tracer->behind -= thread->current != tracer->current;
	wp_thread_drop(&tracer->all, &thread->traced);
}

static void
forget_all(struct wp_ptrace_loop *tracer)
{
	while (tracer->all.n > 0)
		forget(tracer, thread_at(tracer, 0));
}

void
wp_ptrace_loop_process(sigset_t *wake, const char *name, int orphaned)
{
	(void)sigfillset(wake);
	(void)sigprocmask(SIG_SETMASK, wake, NULL);
	/* ignored, it would not be waited for */
	(void)signal(SIGCHLD, SIG_DFL);
	(void)sigemptyset(wake);
	(void)sigaddset(wake, SIGCHLD);
	(void)sigaddset(wake, SIGTERM);
	(void)sigaddset(wake, orphaned);
	(void)prctl(PR_SET_PDEATHSIG, orphaned);
	(void)prctl(PR_SET_NAME, name);
}

int
wp_ptrace_loop_await(const sigset_t *wake, int ms)
{
	const struct timespec limit = {ms / 1000, ms % 1000 * 1000000L};

	return sigtimedwait(wake, NULL, ms < 0 ? NULL : &limit);
}

int
wp_ptrace_loop_new(struct wp_ptrace_loop **out, pid_t pid, uint64_t signals,
    const struct wp_ptrace_loop_calls *calls, void *arg)
{
	struct wp_ptrace_loop *tracer = calloc(1, sizeof(*tracer));

	if (tracer == NULL)
		return -ENOMEM;
	tracer->pid = pid;
	tracer->signals = signals;
	tracer->calls = calls;
	tracer->arg = arg;
	tracer->current = 1;
	*out = tracer;
	return 0;
}

void
wp_ptrace_loop_free(struct wp_ptrace_loop *tracer)
{
	if (tracer != NULL)
		forget_all(tracer);
	free(tracer);
}

/* Held threads report their stops one after the other, like those that are
   created later. */
int
wp_ptrace_loop_all(struct wp_ptrace_loop *tracer)
{
	struct wp_hold none = {0};

	return wp_ptrace_loop_command(tracer, &none);
}

/* A command stops again before it does anything, to report that. */
int
wp_ptrace_loop_command(struct wp_ptrace_loop *tracer, struct wp_hold *hold)
{
	const size_t known = hold->n;
	int err = wp_trace_process(hold, tracer->pid);

	for (size_t i = 0; i < hold->n && err == 0; i++)
		if (add(tracer, hold->thread[i].tid) == NULL)
			err = -ENOMEM;
	for (size_t i = 0; i < known && err == 0; i++) {
		wp_trace_interrupt(hold->thread[i].tid);
		wp_trace_continue(hold->thread[i].tid, 0);
	}
	free(hold->thread);
	*hold = (struct wp_hold){0};
	tracer->began = wp_clock_ms();
	return err;
}

int
wp_ptrace_loop_one(struct wp_ptrace_loop *tracer, pid_t tid)
{
	int err;

	if (find(tracer, tid) != NULL)
		return 0;
	if (tgkill(tracer->pid, tid, 0) != 0)
		return -errno;
	if ((err = wp_trace_thread(tid)) < 0)
		return err;
	tracer->began = wp_clock_ms();
	return add(tracer, tid) == NULL ? -ENOMEM : 0;
}

/* Those that have yet to report their first stop are not interrupted again. */
void
wp_ptrace_loop_update(struct wp_ptrace_loop *tracer)
{
	tracer->current++;
	tracer->behind = tracer->all.n;
	tracer->began = wp_clock_ms();
	for (size_t i = 0; i < tracer->all.n; i++)
		if (thread_at(tracer, i)->current != 0)
			wp_trace_interrupt(tracer->all.thread[i]->tid);
}

static bool
rest_asleep(const struct wp_ptrace_loop *tracer)
{
	for (size_t i = 0; i < tracer->all.n; i++)
		if (thread_at(tracer, i)->current != tracer->current &&
		    !tracer->all.thread[i]->stands &&
		    !wp_trace_asleep(tracer->all.thread[i]->tid))
			return false;
	return true;
}

int
wp_ptrace_loop_settled(struct wp_ptrace_loop *tracer)
{
	long took;

	if (tracer->behind == 0)
		return 1;
	took = wp_clock_ms() - tracer->began;
	if (took > PATIENCE && rest_asleep(tracer))
		return 1;
	return took > LIMIT ? -1 : 0;
}

bool
wp_ptrace_loop_busy(const struct wp_ptrace_loop *tracer)
{
	return tracer->all.n > 0;
}

/* What a thread gets instead of the signal that stopped it. */
static int
signal_for(struct wp_ptrace_loop *tracer, struct wp_thread *thread, int sig)
{
	siginfo_t info, was;
	int other;

	if ((tracer->signals >> (sig - 1) & 1) == 0 ||
	    wp_trace_get_signal(thread->tid, &info) < 0)
		return sig;
	was = info;
	other = tracer->calls->signal(tracer->arg, thread, &info);
	if (other == 0 || other == WP_TRACER_LATER ||
	    (other == sig && memcmp((const char *)&info, (const char *)&was,
	    sizeof(info)) == 0))
		return other;
	/* killed in between, we would leave it with the one's number and the
	   other's siginfo, of which the kernel makes a signal sent by a user */
	wp_trace_take(thread->tid);
	(void)wp_trace_set_signal(thread->tid, &info);
	return other;
}

/* A hit on what is armed now has still to be reported. */
static bool
hit_pending(const struct thread *thread)
{
	return thread->current != 0 &&
	    wp_trace_pending(thread->traced.tid, SIGTRAP, TRAP_HWBKPT);
}

/* Bring a stopped thread up to date; with a hit pending, at its next stop,
   which reports that.  false: it is traced no more. */
static bool
update(struct wp_ptrace_loop *tracer, struct thread *thread,
    enum wp_trace_what what)
{
	if (thread->current == tracer->current ||
	    (what != WP_TRACE_SIGNAL && hit_pending(thread)))
		return true;
	thread->current = tracer->current;
	tracer->behind--;
	return tracer->calls->arm(tracer->arg, &thread->traced);
}

static void
handle_stop(struct wp_ptrace_loop *tracer, struct thread *thread,
    const struct wp_trace *trace)
{
	int sig = 0;

	if (trace->what == WP_TRACE_SIGNAL)
		sig = signal_for(tracer, &thread->traced, trace->signal);
	if (sig == WP_TRACER_LATER)
		return;
	thread->traced.stands = trace->what == WP_TRACE_GROUP;
	if (update(tracer, thread, trace->what)) {
		wp_thread_go_on(&thread->traced, sig);
	} else {
		forget(tracer, thread);
		wp_trace_let_go(trace->tid, sig);
	}
}

/* A thread that was just made, or else no thread of the process. */
static struct thread *
adopt(struct wp_ptrace_loop *tracer, pid_t tid)
{
	return tgkill(tracer->pid, tid, 0) == 0 ? add(tracer, tid) : NULL;
}

static bool
handle(void *arg, const struct wp_trace *trace)
{
	struct wp_ptrace_loop *tracer = arg;
	struct thread *thread = find(tracer, trace->tid);

	if (trace->what == WP_TRACE_EXEC ||
	    (trace->what == WP_TRACE_END && trace->tid == tracer->pid)) {
		/* nothing may be armed when another program begins */
		forget_all(tracer);
		if (trace->what == WP_TRACE_EXEC &&
		    tracer->calls->executed != NULL)
			tracer->calls->executed(tracer->arg);
		wp_trace_let_go(trace->tid, 0);
		tracer->ended = true;
	} else if (trace->what == WP_TRACE_END) {
		if (thread != NULL)
			forget(tracer, thread);
		wp_trace_take(trace->tid);
	} else if (thread != NULL ||
	    (thread = adopt(tracer, trace->tid)) != NULL) {
		handle_stop(tracer, thread, trace);
	} else {
		wp_trace_let_go(trace->tid,
		    trace->what == WP_TRACE_SIGNAL ? trace->signal : 0);
	}
	return !tracer->ended;
}

bool
wp_ptrace_loop_others(const struct wp_ptrace_loop *tracer, pid_t tid)
{
	const struct wp_thread *other;
	struct wp_trace trace;

	for (pid_t at = 0; (other = wp_thread_after(&tracer->all, at)) != NULL;
	    at = other->tid)
		if (other->tid != tid && wp_trace_next(other->tid, &trace) > 0)
			return true;
	return false;
}

int
wp_ptrace_loop_step(struct wp_ptrace_loop *tracer)
{
	const bool more = wp_thread_step(&tracer->all, handle, tracer);

	return tracer->ended ? -ESRCH : more;
}
