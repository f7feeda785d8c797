/* exec_tracer: a thread that traces programs which have nothing to watch. */
#include "pending/exec_tracer.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "os/array.h"
#include "os/clock.h"
#include "proc/proc.h"
#include "pending/instances.h"
#include "pending/new_module.h"
#include "pending/new_program.h"
#include "run/run.h"
#include "watch/ptrace_refused.h"
#include "stop/ptrace_loop.h"

enum { LOOK_MS = 10 };	/* ms between looks in case a signal is lost */

/* A process that is held. */
struct caught {
	pid_t pid, tid;		/* 0: it has executed a program; else this
				   thread has called its hook */
	bool runs;		/* neither: it is to be traced from now on */
};

/* A traced thread. */
struct traced_thread {
	struct wp_thread thread;
	uint64_t place;		/* address of its program's hook, or 0 */
	pid_t covered;		/* the process whose watches it has: its own,
				   or the one that created it */
	bool made;		/* its process was made by fork(2), and
				   nothing is armed there at a hook; */
	uint64_t mapped;	/* then: bits of the modules mapped at first */
	int hook;		/* the breakpoint, or < 0 */
	uint64_t calls;		/* calls of the hook that were examined */
	enum { RUNS, WAITS, PASSES } at_hook;
};

struct exec_tracer {
	struct run *run;
	pthread_t thread;
	struct wp_ptrace_loop loop;
	struct wp_command command;
	int result;		/* of starting the thread */
	int attached;		/* of the last exec_tracer_attach, */
	struct wp_cause *cause;	/* and its cause */
	int no_hook;  /* why a hook could not be set, -errno; 0: all were set */
	pid_t uncovered;	/* a thread that could not be armed, */
	struct wp_cause not_covered;	/* and why */
	pthread_mutex_t lock;	/* protects the following */
	pthread_cond_t changed;
	bool begun;		/* the thread has started */
	bool leave;
	struct caught *caught;	/* n of them, in order */
	size_t n, cap;
	struct caught due;	/* to be examined now; pid 0: none */
	atomic_bool busy;
	atomic_bool ends;	/* the run ends */
	bool starved;		/* of the thread: out of memory */
	bool missed;		/* of exec_tracer_end: the same */
	pid_t child;		/* the same */
	int wake;		/* eventfd: there is one more */
};

/* --- the thread --- */

/* Returns false if there is no memory or the run ends. */
static bool
put(struct exec_tracer *t, pid_t pid, pid_t tid)
{
	bool room;

	(void)pthread_mutex_lock(&t->lock);
	room = !t->leave && WP_ARRAY_ROOM(t, caught) == 0;
	t->starved = t->starved || (!room && !t->leave);
	if (room)
		t->caught[t->n++] = (struct caught){.pid = pid, .tid = tid};
	(void)pthread_mutex_unlock(&t->lock);
	(void)eventfd_write(t->wake, 1);
	return room;
}

static bool
executed(void *arg, pid_t pid)
{
	struct exec_tracer *t = arg;

	for (size_t i = 0; i < t->run->nprocesses; i++)
		if (t->run->process[i].pid == pid)
			t->run->process[i].each = false;
	return put(t, pid, 0);
}

/* --- hooks --- */

/* The hook of a process whose program has been examined, or 0 if nothing waits
   there.  Returns false if it has not been examined. */
static bool
hook_of(const struct run *run, pid_t pid, uint64_t *hook)
{
	bool known = false;

	for (size_t i = 0; i < run->nprocesses; i++)
		if (run->process[i].pid == pid && !run->process[i].module) {
			*hook = run->process[i].hook;
			known = true;
		}
	return known;
}

/* Which of the awaited modules the process has mapped, as a bit for each
   SPEC. */
static uint64_t
mapped_modules(const struct run *run, pid_t pid)
{
	const struct options *o = run->options;
	uint64_t mapped = 0;

	for (size_t i = 0; i < o->nspecs && i < 64; i++)
		if (module_may_come(&o->spec[i]) &&
		    module_is_mapped(pid, &o->spec[i]))
			mapped |= UINT64_C(1) << i;
	return mapped;
}

/* Another traced thread of the process, or NULL. */
static const struct traced_thread *
other_of(const struct exec_tracer *t, pid_t pid,
    const struct traced_thread *but)
{
	for (size_t i = 0; i < t->loop.all.n; i++) {
		const struct wp_thread *thread = t->loop.all.thread[i];

		if (thread->pid == pid && thread != &but->thread)
			return (const struct traced_thread *)thread;
	}
	return NULL;
}

/* The last hook that was found, for a process whose parent is not traced. */
static uint64_t
last_hook(const struct run *run)
{
	size_t i = run->nprocesses;

	while (i > 0 && run->process[i - 1].hook == 0)
		i--;
	return i > 0 ? run->process[i - 1].hook : 0;
}

/* A process made by fork(2) has its parent's modules, and what is watched in
   them. */
static void
find_hook(struct exec_tracer *t, struct traced_thread *traced)
{
	const pid_t pid = traced->thread.pid;
	const struct traced_thread *other;
	struct wp_proc_status status;

	if (hook_of(t->run, pid, &traced->place))
		return;
	if ((other = other_of(t, pid, traced)) != NULL) {
		traced->place = other->place;
		traced->made = other->made;
		traced->mapped = other->mapped;
		return;
	}
	if (wp_proc_status(pid, &status) == 0 &&
	    (other = other_of(t, status.parent, traced)) != NULL)
		traced->place = other->place;
	else
		traced->place = last_hook(t->run);
	traced->made = traced->place != 0;
	if (traced->made)
		traced->mapped = mapped_modules(t->run, pid);
}

static void
set_hook(struct exec_tracer *t, struct traced_thread *traced)
{
	if (traced->hook >= 0)
		return;
	find_hook(t, traced);
	if (traced->place == 0)
		return;
	traced->hook = wp_target_break(t->run->target, traced->thread.tid,
	    traced->place);
	if (traced->hook < 0 && traced->hook != -ESRCH) {
		t->missed = true;
		t->no_hook = traced->hook;
	}
}

static void
close_hook(struct exec_tracer *t, struct traced_thread *traced)
{
	struct wp_perf_count count;

	if (traced->hook < 0)
		return;
	if (wp_perf_read(traced->hook, PERF_FORMAT_TOTAL_TIME_RUNNING,
	    &count) < 0 || count.value > traced->calls)
		t->missed = true;
	(void)close(traced->hook);
	traced->hook = -1;
}

/* The program now handles the signal of the hook, and would get it if this
   process died.  Choose another one. */
static void
change_signal(struct exec_tracer *t, struct traced_thread *traced, int sig)
{
	struct wp_proc_status status;

	if (wp_proc_status(traced->thread.tid, &status) == 0 &&
	    wp_proc_signal_in(status.caught, sig)) {
		close_hook(t, traced);
		traced->calls = 0;
		set_hook(t, traced);
	}
}

/* If the signal that a thread is about to get is that of its hook, the thread
   does not get it, and waits until the process has been examined. */
static int
take_signal(void *arg, struct wp_thread *thread, siginfo_t *info)
{
	struct traced_thread *traced = (struct traced_thread *)thread;
	struct exec_tracer *t = arg;

	if (info->si_code <= 0 || info->si_code == SI_KERNEL ||
	    traced->hook < 0 || info->si_fd != traced->hook)
		return info->si_signo;
	traced->calls += traced->at_hook == RUNS;
	if (traced->made) {
		if (mapped_modules(t->run, thread->pid) != traced->mapped)
			t->child = thread->pid;
		return 0;
	}
	if (traced->at_hook == RUNS) {
		traced->at_hook = put(t, thread->pid, thread->tid) ? WAITS :
		    PASSES;
	}
	if (traced->at_hook == WAITS)
		return WP_TRACER_LATER;
	traced->at_hook = RUNS;
	change_signal(t, traced, info->si_signo);
	return 0;
}

/* --- threads that are armed one by one --- */

/* The process whose watches it has: itself, or the one that created it, if it
   has executed nothing since. */
static pid_t
find_covered(struct exec_tracer *t, const struct traced_thread *traced)
{
	const pid_t pid = traced->thread.pid;
	const struct traced_thread *other;
	struct wp_proc_status status;

	for (size_t i = 0; i < t->run->nprocesses; i++)
		if (t->run->process[i].pid == pid && t->run->process[i].each)
			return pid;
	other = other_of(t, pid, traced);
	if (other == NULL && wp_proc_status(pid, &status) == 0)
		other = other_of(t, status.parent, traced);
	return other != NULL ? other->covered : pid;
}

/* The next process of the run, from i on, of whose watches the thread has its
   own; nprocesses if there is none. */
static size_t
next_covered(const struct run *run, const struct traced_thread *traced,
    size_t i)
{
	while (i < run->nprocesses && (run->process[i].pid != traced->covered ||
	    !run->process[i].each || run->process[i].n == 0))
		i++;
	return i;
}

/* Arm a stopped thread unless it is armed, and report its instance. */
static void
cover(struct exec_tracer *t, struct traced_thread *traced)
{
	struct run *run = t->run;
	const pid_t tid = traced->thread.tid;

	traced->covered = find_covered(t, traced);
	for (size_t i = 0; (i = next_covered(run, traced, i)) <
	    run->nprocesses; i++) {
		struct wp_target_event *event;
		const int n = wp_target_add_thread(run->target,
		    run->process[i].first, run->process[i].n, tid, &event);

		if (n >= 0) {
			instances_armed(run, traced->thread.pid, tid, event, n);
			free(event);
		} else if (n != -ESRCH) {
			t->uncovered = tid;
			(void)wp_target_explain(run->target,
			    run->process[i].first, run->process[i].n, n, tid,
			    &t->not_covered);
		}
	}
}

static void
uncover(struct exec_tracer *t, const struct traced_thread *traced)
{
	struct run *run = t->run;
	const pid_t tid = traced->thread.tid;

	for (size_t i = 0; (i = next_covered(run, traced, i)) <
	    run->nprocesses; i++) {
		const size_t first = run->process[i].first;

		wp_target_drop_thread(run->target, first, run->process[i].n,
		    tid);
		instances_left(run, traced->thread.pid, tid, first,
		    run->process[i].n);
	}
}

static void
pass_hook(struct exec_tracer *t, pid_t tid)
{
	struct traced_thread *traced =
	    (struct traced_thread *)wp_thread_find(&t->loop.all, tid);

	if (traced != NULL)
		traced->at_hook = PASSES;
}

/* held: the thread stops before it executes anything. */
static struct wp_thread *
add_thread(struct exec_tracer *t, pid_t pid, pid_t tid, bool held)
{
	struct traced_thread *traced =
	    (struct traced_thread *)wp_thread_find(&t->loop.all, tid);

	if (traced == NULL) {
		traced = (struct traced_thread *)wp_ptrace_loop_add(&t->loop,
		    pid, tid, held);
		if (traced == NULL)
			return NULL;
		traced->hook = -1;
		traced->covered = find_covered(t, traced);
	}
	set_hook(t, traced);
	if (held)
		cover(t, traced);
	return &traced->thread;
}

/* Whether the user named the process, and it is not a child of one. */
static bool
is_given(const struct exec_tracer *t, pid_t pid)
{
	const struct selected *chosen = &t->run->chosen;

	for (size_t i = 0; i < chosen->n; i++)
		if (chosen->pid[i] == pid)
			return true;
	return pid == t->command.pid;
}

/* Add a thread or process that was created by one that is traced. */
static struct wp_thread *
adopt(void *arg, pid_t tid)
{
	struct exec_tracer *t = arg;
	struct wp_proc_status status;
	struct wp_thread *thread;

	if (wp_proc_status(tid, &status) < 0 || status.tracer != gettid())
		return NULL;
	if (!t->run->options->follow && !is_given(t, status.tgid))
		return NULL;
	if ((thread = add_thread(t, status.tgid, tid, false)) == NULL)
		t->starved = true;
	return thread;
}

/* Whether a process is held after executing a program. */
static bool
is_caught(struct exec_tracer *t, pid_t pid)
{
	bool is;

	(void)pthread_mutex_lock(&t->lock);
	is = t->due.pid == pid;
	for (size_t i = 0; i < t->n && !is; i++)
		is = t->caught[i].pid == pid;
	(void)pthread_mutex_unlock(&t->lock);
	return is;
}

/* The new thread is added while its creator is stopped.  By the time of its own
   report the creator might have ended, and its parent would not be known. */
static bool
made(void *arg, struct wp_thread *thread, const struct wp_trace *trace)
{
	(void)thread;
	if (trace->made != 0 && !is_caught(arg, trace->made))
		(void)adopt(arg, trace->made);	/* on failure, try again at
						   its first stop */
	return true;
}

/* The thread has just been created. */
static bool
arm(void *arg, struct wp_thread *thread)
{
	cover(arg, (struct traced_thread *)thread);
	return true;
}

static void
end(void *arg, struct wp_thread *thread)
{
	struct exec_tracer *t = arg;

	close_hook(t, (struct traced_thread *)thread);
	if (!t->leave)		/* at the end all are disarmed at once */
		uncover(t, (struct traced_thread *)thread);
}

static void
ended(void *arg, pid_t pid, int status)
{
	const struct exec_tracer *t = arg;

	if (pid == t->command.pid && pid != 0)
		t->run->command_status = status;
}

static const struct wp_ptrace_loop_calls calls = {
	.size = sizeof(struct traced_thread), .arm = arm, .signal = take_signal,
	.made = made, .end = end,
	.executed = executed, .adopt = adopt, .ended = ended,
};

static void
say_begun(struct exec_tracer *t, int result)
{
	(void)pthread_mutex_lock(&t->lock);
	t->result = result;
	t->begun = true;
	(void)pthread_cond_broadcast(&t->changed);
	(void)pthread_mutex_unlock(&t->lock);
}

/* There is no memory: the run has failed, and the process is released. */
static void
leave_unwatched(struct exec_tracer *t, pid_t pid)
{
	session_note(&t->run->session, -ENOMEM);
	wp_trace_let_go(pid, 0);
}

static int
explain_no_hook(const struct exec_tracer *t, pid_t pid)
{
	if (t->no_hook == -EBUSY)
		return wp_cause_set(t->cause, WP_CAUSE_NO_SIGNAL, pid);
	if (t->no_hook != -ENOSPC)
		return wp_cause_errno(t->cause, "perf_event_open", -t->no_hook);
	return wp_cause_set(t->cause, WP_CAUSE_NO_SLOT, pid, 1,
	    t->run->features.caps.slots, "for what is watched and one for its "
	    "loader, whose mappings must be seen; watch fewer regions");
}

/* Its threads are held until the loop continues.  A failure here does not mean
   that other processes are not watched. */
static void
attach(struct exec_tracer *t, pid_t pid)
{
	const size_t before = t->run->nprocesses;

	t->no_hook = 0;
	t->attached = run_attach_waiting(t->run, pid, t->cause);
	if (t->attached >= 0 && t->no_hook != 0)
		t->attached = explain_no_hook(t, pid);
	if (t->attached < 0)
		run_leave_programs(t->run, before);
}

/* Do what the run asks for.  Returns false if the thread is to end. */
static bool
serve(struct exec_tracer *t)
{
	struct caught due;
	bool leave;

	(void)pthread_mutex_lock(&t->lock);
	due = t->due;
	leave = t->leave;
	(void)pthread_mutex_unlock(&t->lock);
	if (due.pid == 0)
		return !leave;
	if (due.runs) {
		attach(t, due.pid);
	} else if (due.tid == 0) {
		run_check_privileges(t->run, due.pid);
		if (!run_program(t->run, due.pid))
			leave_unwatched(t, due.pid);
	} else {
		run_modules(t->run, due.pid);
	}
	pass_hook(t, due.tid);
	(void)pthread_mutex_lock(&t->lock);
	t->due.pid = 0;
	(void)pthread_cond_broadcast(&t->changed);
	(void)pthread_mutex_unlock(&t->lock);
	return !leave;
}

static bool
is_command(const struct exec_tracer *t)
{
	return t->run->options->command != NULL;
}

static void *
trace(void *arg)
{
	struct exec_tracer *t = arg;
	sigset_t wake;

	(void)sigemptyset(&wake);
	(void)sigaddset(&wake, SIGCHLD);
	say_begun(t, is_command(t) ? wp_target_hold(t->run->target, &t->command,
	    t->run->options->command[0], t->cause) : 0);
	if (t->result == 0 && is_command(t))
		(void)put(t, t->command.pid, 0);
	while (t->result == 0 && serve(t)) {
		const bool more = wp_ptrace_loop_step(&t->loop) > 0;

		(void)pthread_mutex_lock(&t->lock);
		atomic_store(&t->busy, wp_ptrace_loop_busy(&t->loop) ||
		    t->n > 0 || t->due.pid != 0);
		(void)pthread_mutex_unlock(&t->lock);
		if (!more)
			(void)wp_ptrace_loop_await(&wake, LOOK_MS);
	}
	/* the kernel releases all that this thread still traces */
	wp_ptrace_loop_end(&t->loop);
	return NULL;
}

/* --- the run --- */

static void
tracer_free(struct exec_tracer *t)
{
	(void)pthread_mutex_destroy(&t->lock);
	(void)pthread_cond_destroy(&t->changed);
	if (t->wake >= 0)
		(void)close(t->wake);
	free(t->caught);
	free(t);
}

/* The thread waits for SIGCHLD, which would not wake it if it were ignored, or
   not blocked in some thread.  The command gets the signals as they were. */
static int
make_thread(struct exec_tracer *t)
{
	sigset_t all, before;
	int err;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_BLOCK, &all, &before);
	(void)signal(SIGCHLD, SIG_DFL);
	err = pthread_create(&t->thread, NULL, trace, t);
	(void)sigaddset(&before, SIGCHLD);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

int
exec_tracer_start(struct exec_tracer **out, struct run *run,
    struct wp_cause *cause)
{
	struct exec_tracer *t = calloc(1, sizeof(*t));
	pthread_condattr_t monotonic;
	int err;

	if (t == NULL)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	t->run = run;
	t->cause = cause;
	atomic_store(&t->busy, true);
	t->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	(void)pthread_mutex_init(&t->lock, NULL);
	(void)pthread_condattr_init(&monotonic);
	(void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&t->changed, &monotonic);
	(void)pthread_condattr_destroy(&monotonic);
	wp_ptrace_loop_begin(&t->loop, 0, UINT64_C(1) << (SIGURG - 1) |
	    UINT64_C(1) << (SIGWINCH - 1), &calls, t);
	if ((err = t->wake < 0 ? -EMFILE : 0) < 0 ||
	    (err = is_command(t) ? wp_command_start(&t->command,
	    run->options->command) : 0) < 0 || (err = make_thread(t)) < 0) {
		tracer_free(t);
		return wp_cause_errno(cause, "starting the command", -err);
	}
	(void)pthread_mutex_lock(&t->lock);
	while (!t->begun)
		(void)pthread_cond_wait(&t->changed, &t->lock);
	(void)pthread_mutex_unlock(&t->lock);
	if ((err = t->result) < 0) {
		(void)pthread_join(t->thread, NULL);
		tracer_free(t);
		return err;
	}
	if (is_command(t))
		run->process->pid = t->command.pid;
	*out = t;
	return 0;
}

/* Have the next process examined.  Returns false if there is none. */
static bool
next(struct exec_tracer *t)
{
	bool any;

	(void)pthread_mutex_lock(&t->lock);
	if ((any = t->n > 0)) {
		t->due = t->caught[0];
		t->n--;
		for (size_t i = 0; i < t->n; i++)
			t->caught[i] = t->caught[i + 1];
	}
	(void)pthread_mutex_unlock(&t->lock);
	return any;
}

int
exec_tracer_fd(const struct exec_tracer *t)
{
	return t->wake;
}

/* Wait a limited time for the thread.  Returns false if it has not finished. */
static bool
await_done(struct exec_tracer *t)
{
	const uint64_t limit = wp_clock_ns() + LOOK_MS * 1000000;
	const struct timespec until = {
		(time_t)(limit / 1000000000), (long)(limit % 1000000000),
	};
	bool done;

	(void)pthread_mutex_lock(&t->lock);
	while (!(done = t->due.pid == 0) &&
	    pthread_cond_timedwait(&t->changed, &t->lock, &until) == 0)
		;
	(void)pthread_mutex_unlock(&t->lock);
	return done;
}

/* Wait until the thread has finished.  Before the report has begun, signals end
   watchctl by themselves, and -t does not apply yet. */
static void
have_done(struct exec_tracer *t)
{
	(void)pthread_kill(t->thread, SIGCHLD);
	while (!await_done(t))
		if (t->run->session.started && !run_goes_on(t->run))
			atomic_store(&t->ends, true);
}

bool
exec_tracer_goes_on(const struct exec_tracer *t)
{
	return !atomic_load(&t->ends);
}

int
exec_tracer_attach(struct exec_tracer *t, pid_t pid, struct wp_cause *cause)
{
	(void)pthread_mutex_lock(&t->lock);
	t->cause = cause;
	t->due = (struct caught){.pid = pid, .runs = true};
	(void)pthread_mutex_unlock(&t->lock);
	have_done(t);
	return t->attached;
}

void
exec_tracer_take(struct exec_tracer *t)
{
	eventfd_t n;

	if (t != NULL)
		(void)eventfd_read(t->wake, &n);
	while (t != NULL && next(t))
		have_done(t);
}

void
exec_tracer_take_one(struct exec_tracer *t)
{
	while (!next(t)) {
		struct pollfd p = {.fd = t->wake, .events = POLLIN};

		(void)poll(&p, 1, LOOK_MS);
	}
	have_done(t);
}

int
exec_tracer_pass(struct exec_tracer *t, const struct process *process,
    struct wp_cause *cause)
{
	struct wp_target *target = t->run->target;
	struct wp_hold hold;
	size_t known;
	int err;

	wp_target_give(target, &hold);
	known = hold.n;
	err = wp_trace_process(&hold, process->pid, t->run->options->follow);
	if (err < 0) {
		wp_hold_release(&hold);
		return is_command(t) ? wp_cause_errno(cause,
		    "tracing a process", -err) : err == -ESRCH ?
		    wp_cause_set(cause, WP_CAUSE_GONE, process->pid) :
		    ptrace_refused(process->pid, -err, cause);
	}
	if (process->n > 0)
		err = wp_target_arm_held(target, &hold, process->pid,
		    process->first, process->n, cause);
	for (size_t i = 0; i < hold.n && err == 0; i++)
		if (add_thread(t, process->pid, hold.thread[i].tid,
		    true) == NULL)
			err = wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	for (size_t i = 0; i < known; i++)
		wp_trace_continue(hold.thread[i].tid, hold.thread[i].signal);
	free(hold.thread);
	return err;
}

/* Threads that are stopped for this report it, and continue. */
int
exec_tracer_arm(struct exec_tracer *t, const struct process *process,
    struct wp_cause *cause)
{
	struct wp_hold hold = {0};
	int err = wp_trace_process(&hold, process->pid,
	    t->run->options->follow);

	if (err < 0)
		return wp_cause_errno(cause, "holding a process", -err);
	err = wp_target_arm_held(t->run->target, &hold, process->pid,
	    process->first, process->n, cause);
	for (size_t i = 0; i < hold.n && err == 0 && process->each; i++) {
		struct wp_thread *thread = wp_thread_find(&t->loop.all,
		    hold.thread[i].tid);

		if (thread != NULL)
			cover(t, (struct traced_thread *)thread);
	}
	free(hold.thread);
	return err;
}

bool
exec_tracer_is_busy(const struct exec_tracer *t)
{
	return t != NULL && atomic_load(&t->busy);
}

static void
report_uncovered(const struct exec_tracer *t)
{
	if (t->uncovered == 0)
		return;
	session_warn(&t->run->session, "thread %d, which was made under watch, "
	    "could not be watched: %s", t->uncovered, t->not_covered.text);
	session_doubt(&t->run->session, "thread %d was not watched",
	    t->uncovered);
}

bool
exec_tracer_end(struct exec_tracer *t, pid_t *child)
{
	bool missed;

	if (t == NULL)
		return false;
	(void)pthread_mutex_lock(&t->lock);
	t->leave = true;
	(void)pthread_mutex_unlock(&t->lock);
	(void)pthread_kill(t->thread, SIGCHLD);
	(void)pthread_join(t->thread, NULL);
	if (t->starved) {
		session_warn(&t->run->session, "out of memory: a process that "
		    "was created, or executed a program, may not have been "
		    "watched");
		session_doubt(&t->run->session, "a process may not have been "
		    "watched");
	}
	report_uncovered(t);
	missed = t->missed;
	*child = t->child;
	tracer_free(t);
	return missed;
}
