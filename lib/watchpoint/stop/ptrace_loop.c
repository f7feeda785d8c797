/*
 * ptrace_loop: threads that are traced while they run.  See ptrace_loop.h.
 *
 * Threads are distinguished from processes that they create by clone(2), which
 * the kernel lets us trace too: those are released.
 */
#include "stop/ptrace_loop.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "os/clock.h"

enum {
	PATIENCE = 10,		/* ms after which sleeping threads are sought */
	LIMIT = 5000,		/* ms for all threads to stop */
	SETTLE_MS = 5,	/* ms between looks at threads that do not report */
	STEPS = 64,		/* least number of reports between two looks
				   at each thread */
};

/* --- the process --- */

void
wp_ptrace_loop_process(sigset_t *wake, const char *name, int orphaned)
{
	(void)sigfillset(wake);
	(void)sigprocmask(SIG_SETMASK, wake, NULL);
	/* if it were ignored, it could not be waited for */
	(void)signal(SIGCHLD, SIG_DFL);
	(void)sigemptyset(wake);
	(void)sigaddset(wake, SIGCHLD);
	(void)sigaddset(wake, SIGTERM);
	(void)sigaddset(wake, orphaned);
	(void)prctl(PR_SET_PDEATHSIG, orphaned);
	(void)prctl(PR_SET_NAME, name);
}

void
wp_ptrace_loop_null(void)
{
	for (int i = 0; i < 3; i++)
		(void)open("/dev/null", O_RDWR);
}

int
wp_ptrace_loop_await(const sigset_t *wake, int ms)
{
	const struct timespec limit = {ms / 1000, ms % 1000 * 1000000L};

	return sigtimedwait(wake, NULL, ms < 0 ? NULL : &limit);
}

/* --- threads --- */

void
wp_ptrace_loop_begin(struct wp_ptrace_loop *loop, pid_t pid, uint64_t signals,
    const struct wp_ptrace_loop_calls *calls, void *arg)
{
	*loop = (struct wp_ptrace_loop){
		.calls = calls, .arg = arg, .pid = pid, .signals = signals,
		.update = 1,
	};
}

struct wp_thread *
wp_ptrace_loop_add(struct wp_ptrace_loop *loop, pid_t pid, pid_t tid,
    bool armed)
{
	struct wp_thread *thread = wp_thread_find(&loop->all, tid);

	if (thread != NULL)
		return thread;
	thread = wp_thread_add(&loop->all, tid, loop->calls->size);
	if (thread == NULL)
		return NULL;
	thread->pid = pid;
	if (armed)
		thread->update = loop->update;
	else
		loop->behind++;
	return thread;
}

void
wp_ptrace_loop_forget(struct wp_ptrace_loop *loop, struct wp_thread *thread)
{
	loop->calls->end(loop->arg, thread);
	loop->behind -= thread->update != loop->update;
	wp_thread_drop(&loop->all, thread);
}

bool
wp_ptrace_loop_forget_process(struct wp_ptrace_loop *loop, pid_t pid)
{
	struct wp_thread *thread;
	bool any = false;

	for (pid_t tid = 0;
	    (thread = wp_thread_after(&loop->all, tid)) != NULL;) {
		tid = thread->tid;
		if (thread->pid != pid)
			continue;
		wp_ptrace_loop_forget(loop, thread);
		any = true;
	}
	return any;
}

void
wp_ptrace_loop_end(struct wp_ptrace_loop *loop)
{
	while (loop->all.n > 0)
		wp_ptrace_loop_forget(loop, loop->all.thread[0]);
}

/* Held threads report their stops one by one, like threads that are created
   later. */
int
wp_ptrace_loop_all(struct wp_ptrace_loop *loop)
{
	struct wp_hold none = {0};

	return wp_ptrace_loop_command(loop, &none);
}

/* The command stops once more to report this, before it executes anything. */
int
wp_ptrace_loop_command(struct wp_ptrace_loop *loop, struct wp_hold *hold)
{
	const size_t known = hold->n;
	int err = wp_trace_process(hold, loop->pid, loop->calls->adopt != NULL);

	for (size_t i = 0; i < hold->n && err == 0; i++)
		if (wp_ptrace_loop_add(loop, loop->pid, hold->thread[i].tid,
		    false) == NULL)
			err = -ENOMEM;
	for (size_t i = 0; i < known && err == 0; i++) {
		wp_trace_interrupt(hold->thread[i].tid);
		wp_trace_continue(hold->thread[i].tid, 0);
	}
	free(hold->thread);
	*hold = (struct wp_hold){0};
	loop->began = wp_clock_ms();
	return err;
}

int
wp_ptrace_loop_one(struct wp_ptrace_loop *loop, pid_t tid)
{
	int err;

	if (wp_thread_find(&loop->all, tid) != NULL)
		return 0;
	if (syscall(SYS_tgkill, loop->pid, tid, 0) != 0)
		return -errno;
	if ((err = wp_trace_thread(tid)) < 0)
		return err;
	loop->began = wp_clock_ms();
	return wp_ptrace_loop_add(loop, loop->pid, tid, false) == NULL ?
	    -ENOMEM : 0;
}

bool
wp_ptrace_loop_busy(const struct wp_ptrace_loop *loop)
{
	return loop->all.n > 0 ||
	    ((loop->pid == 0 || loop->calls->adopt != NULL) && wp_trace_any());
}

bool
wp_ptrace_loop_others(const struct wp_ptrace_loop *loop, pid_t tid)
{
	struct wp_trace trace;

	for (size_t i = 0; i < loop->all.n; i++)
		if (loop->all.thread[i]->tid != tid &&
		    wp_trace_next(loop->all.thread[i]->tid, &trace) > 0)
			return true;
	return false;
}

/* --- updates --- */

/* A thread whose first stop has not been reported yet stops anyway, so it is
   not interrupted. */
void
wp_ptrace_loop_update(struct wp_ptrace_loop *loop)
{
	loop->update++;
	loop->behind = loop->all.n;
	loop->began = wp_clock_ms();
	for (size_t i = 0; i < loop->all.n; i++)
		if (loop->all.thread[i]->update != 0)
			wp_trace_interrupt(loop->all.thread[i]->tid);
}

static bool
rest_asleep(const struct wp_ptrace_loop *loop)
{
	for (size_t i = 0; i < loop->all.n; i++) {
		const struct wp_thread *thread = loop->all.thread[i];

		if (thread->update != loop->update && !thread->group_stopped &&
		    !wp_trace_asleep(thread->tid))
			return false;
	}
	return true;
}

int
wp_ptrace_loop_settled(struct wp_ptrace_loop *loop)
{
	long took;

	if (loop->behind == 0)
		return 1;
	took = wp_clock_ms() - loop->began;
	if (took > PATIENCE && rest_asleep(loop))
		return 1;
	return took > LIMIT ? -1 : 0;
}

int
wp_ptrace_loop_settle(struct wp_ptrace_loop *loop, const sigset_t *wake)
{
	int more, settled, sig;

	while ((more = wp_ptrace_loop_step(loop)) >= 0 &&
	    (settled = wp_ptrace_loop_settled(loop)) == 0)
		if (more == 0 && (sig = wp_ptrace_loop_await(wake,
		    SETTLE_MS)) > 0 && sig != SIGCHLD)
			return -EINTR;
	return more < 0 ? more : settled < 0 ? -ETIMEDOUT : 0;
}

/* Whether a hit on what is armed now, or the end of a step, was not reported
   yet.  A thread that is released before would die of its signal. */
static bool
trap_pending(const struct wp_ptrace_loop *loop, const struct wp_thread *thread)
{
	return (thread->update != 0 &&
	    (loop->signals >> (SIGTRAP - 1) & 1) != 0 &&
	    wp_trace_pending(thread->tid, SIGTRAP, TRAP_HWBKPT)) ||
	    (thread->step &&
	    wp_trace_pending(thread->tid, SIGTRAP, TRAP_TRACE));
}

/* Apply the update to a stopped thread.  If a trap is pending, that has to wait
   for the next stop, which reports the trap.  Returns false if the thread is no
   longer traced. */
static bool
update(struct wp_ptrace_loop *loop, struct wp_thread *thread,
    enum wp_trace_what what)
{
	if (thread->update == loop->update ||
	    (what != WP_TRACE_SIGNAL && trap_pending(loop, thread)))
		return true;
	if (!loop->calls->arm(loop->arg, thread))
		return false;
	thread->update = loop->update;
	loop->behind--;
	return true;
}

/* --- what threads report --- */

/* The signal that the thread gets in place of the one that stopped it. */
static int
signal_for(struct wp_ptrace_loop *loop, struct wp_thread *thread, int sig)
{
	siginfo_t info, was;
	int other;

	if ((loop->signals >> (sig - 1) & 1) == 0 ||
	    wp_trace_get_signal(thread->tid, &info) < 0)
		return sig;
	was = info;
	other = loop->calls->signal(loop->arg, thread, &info);
	if (other == 0 || other == WP_TRACER_LATER ||
	    (other == sig && memcmp((const char *)&info, (const char *)&was,
	    sizeof(info)) == 0))
		return other;
	/* if we were killed in between, the thread would get the number of one
	   signal with the siginfo of the other, which the kernel turns into a
	   signal sent by a user */
	(void)wp_trace_take(thread->tid);
	(void)wp_trace_set_signal(thread->tid, &info);
	return other;
}

void
wp_thread_go_on(const struct wp_thread *thread, int sig)
{
	if (thread->group_stopped)
		wp_trace_listen(thread->tid);
	else if (thread->step)
		wp_trace_step(thread->tid, sig);
	else
		wp_trace_continue(thread->tid, sig);
}

/* Whether pid is a process rather than a thread; not if it is 0. */
static bool
is_process(pid_t pid)
{
	return pid != 0 && syscall(SYS_tgkill, pid, pid, 0) == 0;
}

/* A thread that was to execute one instruction has stopped.  Returns whether it
   has executed it.  If it was interrupted, or stopped with its process, it
   continues with that step, whose end may be pending and is reported next. */
static bool
end_step(struct wp_ptrace_loop *loop, struct wp_thread *thread,
    const struct wp_trace *trace)
{
	siginfo_t info;
	const bool done = trace->what == WP_TRACE_SIGNAL &&
	    trace->signal == SIGTRAP &&
	    wp_trace_get_signal(thread->tid, &info) == 0 &&
	    info.si_code == TRAP_TRACE;

	if (trace->what == WP_TRACE_STOP || trace->what == WP_TRACE_GROUP)
		return false;
	thread->step = false;
	if (done)	/* cleared now: if we were killed before, the thread
			   would get the signal */
		(void)wp_trace_take(thread->tid);
	loop->calls->stepped(loop->arg, thread, done);
	return done;
}

static void
handle_stop(struct wp_ptrace_loop *loop, struct wp_thread *thread,
    const struct wp_trace *trace)
{
	const bool stepped = thread->step && end_step(loop, thread, trace);
	int sig = 0;

	if (trace->what == WP_TRACE_EXIT) {
		if (loop->calls->leaving != NULL)
			loop->calls->leaving(loop->arg, thread);
		wp_trace_continue(thread->tid, 0);
		return;
	}
	if (loop->calls->made != NULL && (trace->awaited != 0 ||
	    is_process(trace->made)) &&
	    !loop->calls->made(loop->arg, thread, trace))
		return;
	thread->group_stopped = trace->what == WP_TRACE_GROUP;
	if (stepped)
		sig = 0;
	else if (loop->calls->stopped != NULL)
		sig = loop->calls->stopped(loop->arg, thread, trace);
	else if (trace->what == WP_TRACE_SIGNAL)
		sig = signal_for(loop, thread, trace->signal);
	if (sig == WP_TRACER_LATER)
		return;
	if (update(loop, thread, trace->what)) {
		wp_thread_go_on(thread, sig);
	} else {
		wp_ptrace_loop_forget(loop, thread);
		wp_trace_let_go(trace->tid, sig);
	}
}

/* Add a thread that has just been created.  NULL if it is not a thread of the
   process. */
static struct wp_thread *
adopt(struct wp_ptrace_loop *loop, pid_t tid)
{
	struct wp_thread *thread;

	if (loop->calls->adopt != NULL)
		return loop->calls->adopt(loop->arg, tid);
	if (syscall(SYS_tgkill, loop->pid, tid, 0) != 0)
		return NULL;
	thread = wp_ptrace_loop_add(loop, loop->pid, tid, false);
	if (thread == NULL && loop->calls->lost != NULL)
		loop->calls->lost(loop->arg, tid);
	return thread;
}

/* Whether the loop ends with this process. */
static bool
is_only(const struct wp_ptrace_loop *loop, pid_t pid)
{
	return pid == loop->pid && loop->calls->adopt == NULL;
}

/* Nothing must be armed when another program starts. */
static void
handle_exec(struct wp_ptrace_loop *loop, pid_t pid)
{
	const bool ours = wp_ptrace_loop_forget_process(loop, pid);

	if (loop->calls->executed != NULL && (ours || pid == loop->pid) &&
	    loop->calls->executed(loop->arg, pid))
		return;
	wp_trace_let_go(pid, 0);
	loop->ended = is_only(loop, pid);
}

static void
handle_end(struct wp_ptrace_loop *loop, pid_t tid)
{
	struct wp_thread *thread = wp_thread_find(&loop->all, tid);
	const bool first = thread == NULL || thread->pid == tid;
	int status;

	if (first)
		(void)wp_ptrace_loop_forget_process(loop, tid);
	else
		wp_ptrace_loop_forget(loop, thread);
	if ((loop->ended = is_only(loop, tid)))
		return;
	status = wp_trace_take(tid);
	if (first && status >= 0 && loop->calls->ended != NULL)
		loop->calls->ended(loop->arg, tid, status);
}

void
wp_ptrace_loop_handle(struct wp_ptrace_loop *loop, const struct wp_trace *trace)
{
	struct wp_thread *thread = wp_thread_find(&loop->all, trace->tid);

	if (trace->what == WP_TRACE_EXEC)
		handle_exec(loop, trace->tid);
	else if (trace->what == WP_TRACE_END)
		handle_end(loop, trace->tid);
	else if (thread != NULL || (thread = adopt(loop, trace->tid)) != NULL)
		handle_stop(loop, thread, trace);
	else
		wp_trace_let_go(trace->tid,
		    trace->what == WP_TRACE_SIGNAL ? trace->signal : 0);
}

static bool
is_done(const struct wp_ptrace_loop *loop)
{
	return loop->ended || loop->enough;
}

/* Threads that are created during the loop are handled in a later call. */
void
wp_ptrace_loop_look(struct wp_ptrace_loop *loop)
{
	const size_t n = loop->all.n;
	const pid_t last = n > 0 ? loop->all.thread[n - 1]->tid : 0;
	const struct wp_thread *thread;
	struct wp_trace trace;

	for (pid_t tid = 0; !is_done(loop) && tid < last &&
	    (thread = wp_thread_after(&loop->all, tid)) != NULL;) {
		tid = thread->tid;
		if (wp_trace_next(tid, &trace) > 0)
			wp_ptrace_loop_handle(loop, &trace);
	}
}

/* The kernel reports the newest threads first, and would never report others as
   long as these have hits; so each thread is looked at in turn. */
int
wp_ptrace_loop_step(struct wp_ptrace_loop *loop)
{
	struct wp_trace trace;

	for (size_t i = 0; !is_done(loop) && (i < STEPS || i < loop->all.n);
	    i++) {
		if (wp_trace_next(0, &trace) <= 0)
			return 0;
		wp_ptrace_loop_handle(loop, &trace);
	}
	wp_ptrace_loop_look(loop);
	return loop->ended ? -ESRCH : 1;
}
