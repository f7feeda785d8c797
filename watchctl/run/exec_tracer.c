/* exec_tracer: a thread that traces programs which have nothing to watch. */
#include "run/exec_tracer.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "os/array.h"
#include "os/proc.h"
#include "run/new_program.h"
#include "run/run.h"
#include "stop/ptrace_loop.h"

enum { LOOK_MS = 10 };	/* between looks, if a signal should be lost */

struct exec_tracer {
	struct run *run;
	pthread_t thread;
	struct wp_ptrace_loop loop;
	struct wp_command command;
	int result;		/* of its start, */
	struct wp_cause *cause;	/* and why */
	pthread_mutex_t lock;	/* of what follows */
	pthread_cond_t changed;
	bool begun;		/* there is a result */
	bool leave;
	pid_t *pid;		/* n that have executed a program and are
				   held */
	size_t n, cap;
	pid_t due;		/* run_program is to be run for it; 0: for none */
	atomic_bool busy;
	int caught;		/* an eventfd: there is one more */
};

/* --- the thread --- */

/* Without memory it is released. */
static bool
executed(void *arg, pid_t pid)
{
	struct exec_tracer *t = arg;
	bool room;

	(void)pthread_mutex_lock(&t->lock);
	room = !t->leave && WP_ARRAY_ROOM(t, pid) == 0;
	if (room)
		t->pid[t->n++] = pid;
	(void)pthread_mutex_unlock(&t->lock);
	(void)eventfd_write(t->caught, 1);
	return room;
}

/* A thread that one of them has made, or a process. */
static struct wp_thread *
adopt(void *arg, pid_t tid)
{
	struct exec_tracer *t = arg;
	struct wp_proc_status status;

	if (wp_proc_status(tid, &status) < 0 || status.tracer != gettid())
		return NULL;
	if (!t->run->options->follow && status.tgid != t->command.pid)
		return NULL;
	return wp_ptrace_loop_add(&t->loop, status.tgid, tid, true);
}

static bool
arm(void *arg, struct wp_thread *thread)
{
	(void)arg;
	(void)thread;
	return true;
}

static void
end(void *arg, struct wp_thread *thread)
{
	(void)arg;
	(void)thread;
}

static void
ended(void *arg, pid_t pid, int status)
{
	const struct exec_tracer *t = arg;

	if (pid == t->command.pid)
		t->run->command_status = status;
}

static const struct wp_ptrace_loop_calls calls = {
	.size = sizeof(struct wp_thread), .arm = arm, .end = end,
	.executed = executed, .adopt = adopt, .ended = ended,
};

static void
say_begun(struct exec_tracer *t, int result)
{
	(void)pthread_mutex_lock(&t->lock);
	t->result = result;
	t->begun = true;
	if (result == 0 && WP_ARRAY_ROOM(t, pid) == 0)
		t->pid[t->n++] = t->command.pid;
	(void)eventfd_write(t->caught, 1);
	(void)pthread_cond_broadcast(&t->changed);
	(void)pthread_mutex_unlock(&t->lock);
}

/* Do what the run asks for.  False: it is to end. */
static bool
serve(struct exec_tracer *t)
{
	pid_t due;
	bool leave;

	(void)pthread_mutex_lock(&t->lock);
	due = t->due;
	leave = t->leave;
	(void)pthread_mutex_unlock(&t->lock);
	if (due == 0)
		return !leave;
	(void)run_program(t->run, due);
	(void)pthread_mutex_lock(&t->lock);
	t->due = 0;
	(void)pthread_cond_broadcast(&t->changed);
	(void)pthread_mutex_unlock(&t->lock);
	return !leave;
}

static void *
trace(void *arg)
{
	struct exec_tracer *t = arg;
	sigset_t wake;

	(void)sigemptyset(&wake);
	(void)sigaddset(&wake, SIGCHLD);
	say_begun(t, wp_target_hold(t->run->target, &t->command,
	    t->run->options->command[0], t->cause));
	while (t->result == 0 && serve(t)) {
		const bool more = wp_ptrace_loop_step(&t->loop) > 0;

		(void)pthread_mutex_lock(&t->lock);
		atomic_store(&t->busy, wp_ptrace_loop_busy(&t->loop) ||
		    t->n > 0 || t->due != 0);
		(void)pthread_mutex_unlock(&t->lock);
		if (!more)
			(void)wp_ptrace_loop_await(&wake, LOOK_MS);
	}
	/* the kernel lets all go that this thread still traces */
	wp_ptrace_loop_end(&t->loop);
	return NULL;
}

/* --- the run --- */

static void
tracer_free(struct exec_tracer *t)
{
	(void)pthread_mutex_destroy(&t->lock);
	(void)pthread_cond_destroy(&t->changed);
	if (t->caught >= 0)
		(void)close(t->caught);
	free(t->pid);
	free(t);
}

/* SIGCHLD is the thread's; one that is ignored or not blocked anywhere would not
   wake it.  The command has the signals as they were. */
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
	int err;

	if (t == NULL)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	t->run = run;
	t->cause = cause;
	atomic_store(&t->busy, true);
	t->caught = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	(void)pthread_mutex_init(&t->lock, NULL);
	(void)pthread_cond_init(&t->changed, NULL);
	wp_ptrace_loop_begin(&t->loop, 0, 0, &calls, t);
	if ((err = t->caught < 0 ? -EMFILE : 0) < 0 ||
	    (err = wp_command_start(&t->command, run->options->command)) < 0 ||
	    (err = make_thread(t)) < 0) {
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
	run->process->pid = t->command.pid;
	*out = t;
	return 0;
}

/* The next that is held; 0: there is none. */
static pid_t
next(struct exec_tracer *t)
{
	pid_t pid = 0;

	(void)pthread_mutex_lock(&t->lock);
	if (t->n > 0) {
		pid = t->pid[0];
		t->n--;
		for (size_t i = 0; i < t->n; i++)
			t->pid[i] = t->pid[i + 1];
		t->due = pid;
	}
	(void)pthread_mutex_unlock(&t->lock);
	return pid;
}

int
exec_tracer_fd(const struct exec_tracer *t)
{
	return t->caught;
}

void
exec_tracer_take(struct exec_tracer *t)
{
	eventfd_t n;

	if (t != NULL)
		(void)eventfd_read(t->caught, &n);
	while (t != NULL && next(t) != 0) {
		(void)pthread_kill(t->thread, SIGCHLD);
		(void)pthread_mutex_lock(&t->lock);
		while (t->due != 0)
			(void)pthread_cond_wait(&t->changed, &t->lock);
		(void)pthread_mutex_unlock(&t->lock);
	}
}

int
exec_tracer_pass(struct exec_tracer *t, pid_t pid)
{
	struct wp_hold hold;
	size_t known;
	int err;

	wp_target_give(t->run->target, &hold);
	known = hold.n;
	err = wp_trace_process(&hold, pid, t->run->options->follow);
	for (size_t i = 0; i < hold.n && err == 0; i++)
		if (wp_ptrace_loop_add(&t->loop, pid, hold.thread[i].tid,
		    true) == NULL)
			err = -ENOMEM;
	for (size_t i = 0; i < known && err == 0; i++)
		wp_trace_continue(hold.thread[i].tid, hold.thread[i].signal);
	free(hold.thread);
	return err;
}

bool
exec_tracer_is_busy(const struct exec_tracer *t)
{
	return t != NULL && atomic_load(&t->busy);
}

void
exec_tracer_end(struct exec_tracer *t)
{
	if (t == NULL)
		return;
	(void)pthread_mutex_lock(&t->lock);
	t->leave = true;
	(void)pthread_mutex_unlock(&t->lock);
	(void)pthread_kill(t->thread, SIGCHLD);
	(void)pthread_join(t->thread, NULL);
	tracer_free(t);
}
