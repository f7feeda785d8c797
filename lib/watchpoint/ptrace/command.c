/* command: a command that is held at its first instruction, and runs held. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/array.h"
#include "os/clock.h"
#include "ptrace/ptrace_private.h"

enum {
	SPIN_NS = 200000,	/* ns of polling before the first sleep, as
				   most stops come soon */
	NAP_NS = 200000,
	STOP_NS = 200000000,	/* ns for an interrupted thread to stop */
};

/* The new process waits until it has been seized, and then executes the
   command.  If execve(2) fails, its errno is sent through the pipe. */
static _Noreturn void
become(char *const argv[], const int go[2], int result)
{
	ssize_t n;
	char c;
	int err;

	/* our own end would keep the pipe open if the launcher died */
	(void)close(go[1]);
	/* a process that the launcher starts may trace it too; Yama requires
	   this */
	(void)prctl(PR_SET_PTRACER, getppid(), 0, 0, 0);
	while ((n = read(go[0], &c, 1)) < 0 && errno == EINTR)
		;
	if (n != 1)
		_exit(127);
	(void)execvp(argv[0], argv);
	err = errno;
	(void)!write(result, &err, sizeof(err));
	_exit(127);
}

static bool
is_group_stop(int status)
{
	return WIFSTOPPED(status) && status >> 16 == PTRACE_EVENT_STOP &&
	    WSTOPSIG(status) != SIGTRAP;
}

/* Wait for a report of a thread.  Returns 0 or -errno; -EINTR if patience has
   run out. */
static int
await_report(pid_t tid, const struct wp_patience *patience, int *status)
{
	const uint64_t began = wp_clock_ns();
	pid_t got;

	while ((got = waitpid(tid, status, __WALL |
	    (patience != NULL ? WNOHANG : 0))) != tid) {
		if (got < 0 && errno != EINTR)
			return -errno;
		if (patience == NULL)
			continue;
		if (!patience->goes_on(patience->arg))
			return -EINTR;
		if (wp_clock_ns() - began > SPIN_NS)
			wp_clock_sleep(NAP_NS);
		else
			(void)sched_yield();
	}
	return 0;
}

/* Wait until a thread stops by itself or ends; its process may be stopped and
   continued meanwhile.  Returns as await_report. */
static int
next_stop(pid_t tid, const struct wp_patience *patience, int *status)
{
	int err;

	while ((err = await_report(tid, patience, status)) == 0 &&
	    is_group_stop(*status))
		if (ptrace(PTRACE_LISTEN, tid, 0, 0) != 0 && errno != ESRCH)
			return -errno;
	return err;
}

static bool
is_soon(void *limit)
{
	return wp_clock_ns() < *(const uint64_t *)limit;
}

/* Stop a thread that runs, or is stopped with its process.  Returns 0 or
   -errno. */
static int
stop_here(pid_t tid, int *status)
{
	uint64_t limit = wp_clock_ns() + STOP_NS;
	const struct wp_patience soon = {is_soon, &limit};

	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) != 0)
		return -errno;
	return await_report(tid, &soon, status);
}

/* Wait for the stop at the end of execve, and deliver signals on the way.
   Returns 0, or -ECHILD if the process ended. */
static int
await_exec(pid_t pid)
{
	int status, err;

	for (;;) {
		if ((err = next_stop(pid, NULL, &status)) < 0)
			return err;
		if (!WIFSTOPPED(status))
			return -ECHILD;
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8))
			return 0;
		if (ptrace(PTRACE_CONT, pid, 0,
		    (void *)(intptr_t)wp_stop_signal_in(status >> 8)) != 0 &&
		    errno != ESRCH)
			return -errno;
	}
}

static int
seize_command(const struct wp_command *command)
{
	int err = 0;

	if (ptrace(PTRACE_SEIZE, command->pid, 0, PTRACE_O_TRACEEXEC) != 0)
		return -errno;
	(void)!write(command->go, "", 1);
	if ((err = await_exec(command->pid)) == -ECHILD &&
	    read(command->result, &err, sizeof(err)) == sizeof(err))
		err = -err;
	return err;
}

int
wp_command_start(struct wp_command *command, char *const argv[])
{
	int go[2], result[2], err;

	if (pipe2(go, O_CLOEXEC) != 0)
		return -errno;
	if (pipe2(result, O_CLOEXEC) != 0) {
		err = -errno;
		(void)close(go[0]);
		(void)close(go[1]);
		return err;
	}
	*command = (struct wp_command){fork(), go[1], result[0]};
	err = errno;
	if (command->pid == 0)
		become(argv, go, result[1]);
	(void)close(go[0]);
	(void)close(result[1]);
	if (command->pid > 0)
		return 0;
	wp_command_leave(command);
	return -err;
}

void
wp_command_leave(struct wp_command *command)
{
	(void)close(command->go);
	(void)close(command->result);
	command->go = command->result = -1;
}

int
wp_command_hold(struct wp_command *command, struct wp_hold *hold)
{
	int err = WP_ARRAY_ROOM(hold, thread);

	if (err == 0)
		err = seize_command(command);
	wp_command_leave(command);
	if (err == 0)
		hold->thread[hold->n++] = (struct wp_held){
			.tid = command->pid, .stopped = true,
		};
	else
		wp_hold_release(hold);
	return err;
}

int
wp_hold_command(struct wp_hold *hold, char *const argv[], pid_t *pid)
{
	struct wp_command command = {.pid = -1};
	int err = wp_command_start(&command, argv);

	if (err < 0)
		return err;
	*pid = command.pid;
	if ((err = wp_command_hold(&command, hold)) < 0)
		wp_command_end(*pid);
	return err;
}

void
wp_command_end(pid_t pid)
{
	if (waitpid(pid, NULL, WNOHANG) != 0)
		return;
	(void)kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* Whether a stopped thread is entering or leaving a system call. */
static bool
is_at_call(pid_t tid)
{
	siginfo_t info;

	return ptrace(PTRACE_GETSIGINFO, tid, 0, &info) == 0 &&
	    info.si_signo == SIGTRAP && info.si_code == SIGTRAP;
}

static int
go_on(struct wp_hold *hold, bool to_call, const struct wp_patience *patience,
    struct wp_stop *stop)
{
	struct wp_held *held = &hold->thread[0];
	siginfo_t info;
	int status, err;

	if (ptrace(to_call ? PTRACE_SYSCALL : PTRACE_CONT, held->tid, 0,
	    (void *)(intptr_t)held->signal) != 0 && errno != ESRCH)
		return -errno;
	*stop = (struct wp_stop){.fd = -1};
	held->signal = 0;
	err = next_stop(held->tid, patience, &status);
	if (err < 0 && (err != -EINTR || stop_here(held->tid, &status) < 0))
		return err;
	if (!WIFSTOPPED(status)) {
		stop->ended = true;
		stop->status = status;
		hold->n = 0;
		return 0;
	}
	if (to_call && is_at_call(held->tid))
		return err;
	stop->signal = held->signal = wp_stop_signal_in(status >> 8);
	if (stop->signal != 0 &&
	    ptrace(PTRACE_GETSIGINFO, held->tid, 0, &info) == 0 &&
	    info.si_code > 0 && info.si_code != SI_KERNEL)
		stop->fd = info.si_fd;
	return err;
}

int
wp_hold_continue(struct wp_hold *hold, const struct wp_patience *patience,
    struct wp_stop *stop)
{
	return go_on(hold, false, patience, stop);
}

int
wp_hold_to_call(struct wp_hold *hold, const struct wp_patience *patience,
    struct wp_stop *stop)
{
	return go_on(hold, true, patience, stop);
}
