/*
 * launch: a command under watch from its first instruction.
 *
 * To wait for modules that the dynamic loader has yet to map, the command runs
 * on to an execution breakpoint.  That stops it by a signal which programs
 * ignore by default and which is taken away from it here; if this process dies
 * in the meantime, the command gets the signal and ignores it.
 */
#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <signal.h>
#include <unistd.h>

#include "os/array.h"
#include "proc/proc.h"
#include "os/slot_cpu.h"
#include "os/trap_cpu.h"
#include "attach/target_private.h"
#include "attach/uprobes.h"

enum {
	RUN_TO_MAX = 4,
	STORAGE_CALLS = 1000,	/* most system calls that a program makes
				   before it has thread-local storage, if it
				   ever has */
};

int
wp_launch_explain(int err, const char *name, struct wp_cause *cause)
{
	switch (-err) {
	case ENOENT:
	case ENOTDIR:
		return wp_cause_set(cause, WP_CAUSE_NOT_FOUND, name);
	case EACCES:
	case ENOEXEC:
	case EISDIR:
		return wp_cause_set(cause, WP_CAUSE_NOT_EXECUTABLE, name,
		    -err == ENOEXEC ? "not in a format that the kernel runs" :
		    "no permission, or not a program");
	case EPERM:
		return wp_cause_set(cause, WP_CAUSE_HOLD_DENIED, name);
	default:
		return wp_cause_errno(cause, name, -err);
	}
}

int
wp_target_launch(struct wp_target *target, char *const argv[], pid_t *pid,
    struct wp_cause *cause)
{
	int err = wp_hold_command(&target->hold, argv, pid);

	if (err < 0)
		return wp_launch_explain(err, argv[0], cause);
	target->command = *pid;
	target->command_first = target->nwatches;
	target->adopted = false;
	return 0;
}

int
wp_target_hold(struct wp_target *target, struct wp_command *command,
    const char *name, struct wp_cause *cause)
{
	int err = wp_command_hold(command, &target->hold);

	if (err < 0) {
		wp_command_end(command->pid);
		return wp_launch_explain(err, name, cause);
	}
	target->command = command->pid;
	target->command_first = target->nwatches;
	target->adopted = false;
	return 0;
}

void
wp_target_give(struct wp_target *target, struct wp_hold *hold)
{
	*hold = target->hold;
	target->hold = (struct wp_hold){0};
	target->command = 0;
}

int
wp_target_adopt(struct wp_target *target, pid_t pid)
{
	struct wp_hold *hold = &target->hold;

	if (target->command != 0)
		return -EBUSY;
	if (WP_ARRAY_ROOM(hold, thread) < 0)
		return -ENOMEM;
	hold->thread[hold->n++] = (struct wp_held){.tid = pid, .stopped = true};
	target->command = pid;
	target->command_first = target->nwatches;
	target->adopted = true;
	wp_trace_report_exec(pid);
	return 0;
}

bool
wp_target_holds(const struct wp_target *target, pid_t pid)
{
	return target->command == pid;
}

/* A signal that is ignored by default, and is not in `others'. */
static int
harmless_signal(uint64_t others)
{
	static const int harmless[] = {SIGURG, SIGWINCH};

	for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
		if (!wp_proc_signal_in(others, harmless[i]))
			return harmless[i];
	return -EBUSY;
}

/* Have an event signal its thread: it, or -errno. */
static int
signal_by(int fd, pid_t tid, int sig)
{
	const int err = fd < 0 ? fd : wp_perf_signal(fd, tid, sig);

	if (fd >= 0 && err < 0)
		(void)close(fd);
	return err < 0 ? err : fd;
}

static int
break_open(pid_t tid, uint64_t addr, int sig)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT, .size = sizeof(attr),
		.bp_type = HW_BREAKPOINT_X, .bp_addr = addr,
		.bp_len = wp_cpu_exec_len(), .sample_period = 1,
		.read_format = PERF_FORMAT_TOTAL_TIME_RUNNING,
		.wakeup_events = 1, .exclude_kernel = 1, .exclude_hv = 1,
	};

	return signal_by(wp_perf_open(&attr, tid, -1), tid, sig);
}

/* A uprobe, where there are no breakpoints, stops it one instruction later. */
static int
stop_open(const struct wp_target *target, pid_t tid, uint64_t addr, int sig)
{
	return target->features.caps.slots == 0 ?
	    signal_by(wp_uprobe_open_signal(tid, addr), tid, sig) :
	    break_open(tid, addr, sig);
}

/* The same for a moment, for which a uprobe serves if others have the slots. */
static int
stop_once(const struct wp_target *target, pid_t tid, uint64_t addr, int sig)
{
	int fd = stop_open(target, tid, addr, sig);

	if (fd == -ENOSPC) {
		fd = signal_by(wp_uprobe_open_signal(tid, addr), tid, sig);
		fd = fd < 0 ? -ENOSPC : fd;
	}
	return fd;
}

int
wp_target_break(const struct wp_target *target, pid_t tid, uint64_t addr)
{
	struct wp_proc_status status;
	int sig = wp_proc_status(tid, &status);

	/* a process being created blocks all signals */
	if (sig == 0)
		sig = harmless_signal(status.caught);
	return sig < 0 ? sig : stop_open(target, tid, addr, sig);
}

/* The index of the breakpoint whose signal stopped the command, or -1.  Other
   signals carry no descriptor. */
static int
which(const int *fds, size_t n, const struct wp_stop *stop, int sig)
{
	for (size_t i = 0; i < n && stop->signal == sig; i++)
		if (fds[i] == stop->fd && stop->fd >= 0)
			return (int)i;
	return -1;
}

int
wp_target_run_to(struct wp_target *target, const uint64_t *addrs, size_t n,
    const struct wp_patience *patience, int *status)
{
	struct wp_proc_status now = {0};
	struct wp_stop stop = {.fd = -1};
	int fds[RUN_TO_MAX], sig, err;
	size_t open = 0;

	if (wp_cpu_kernel_steps())	/* it would stop once and never again */
		return -ENOTSUP;
	(void)wp_proc_status(target->command, &now);
	sig = harmless_signal(now.blocked);
	err = sig < 0 ? sig : 0;
	for (; open < n && open < RUN_TO_MAX && err >= 0; open++) {
		fds[open] = -1;
		if (addrs[open] != 0)
			err = fds[open] = stop_once(target, target->command,
			    addrs[open], sig);
	}
	if (err == -ESRCH)	/* it was killed, and ends when it continues */
		err = 0;
	while (err >= 0 && !stop.ended && which(fds, open, &stop, sig) < 0)
		err = wp_hold_continue(&target->hold, patience, &stop);
	if (err >= 0 && !stop.ended)
		err = which(fds, open, &stop, sig);
	/* the breakpoint was reached after all, so the signal is ours */
	else if (err == -EINTR && which(fds, open, &stop, sig) >= 0)
		target->hold.thread[0].signal = 0;
	for (size_t i = 0; i < open; i++)
		if (fds[i] >= 0)
			(void)close(fds[i]);
	if (err >= 0 && stop.ended) {
		*status = stop.status;
		wp_target_let_go(target);
		return -ECHILD;
	}
	if (err >= 0)
		target->hold.thread[0].signal = 0;
	return err;
}

int
wp_target_explain_stop(const struct wp_target *target, int err,
    struct wp_cause *cause)
{
	return err == -ENOSPC ? wp_cause_set(cause, WP_CAUSE_NO_SLOT,
	    target->command, 2u, target->features.caps.slots, "to stop it "
	    "when its libraries are mapped, and other perf events hold the "
	    "rest (see what runs perf, gdb or watchctl on it); uprobes, which "
	    "take none, need root") : wp_cause_errno(cause, "running the "
	    "command up to its libraries", -err);
}

int
wp_target_run_to_storage(struct wp_target *target,
    const struct wp_patience *patience, int *status)
{
	struct wp_stop stop = {.fd = -1};
	int err = 0;

	for (unsigned i = 0; i < STORAGE_CALLS && err >= 0 &&
	    wp_trace_thread_block(target->command) == 0; i++) {
		err = wp_hold_to_call(&target->hold, patience, &stop);
		if (err >= 0 && stop.ended) {
			*status = stop.status;
			wp_target_let_go(target);
			return -ECHILD;
		}
	}
	return err < 0 ? err : 0;
}

static int
arm_held(struct wp_target *target, struct wp_hold *hold, pid_t pid,
    size_t first, size_t n, struct wp_cause *cause)
{
	int err;

	do {
		err = wp_target_load(target, first, n, pid, cause);
		if (err == 0)
			err = wp_target_open_events(target, hold, pid, first,
			    n, cause);
		err = wp_target_loaded(target, first, n, err);
	} while (wp_target_again(target, first, n, err));
	return err;
}

static int
arm(struct wp_target *target, struct wp_cause *cause)
{
	const size_t first = target->command_first;
	const size_t n = target->nwatches - first;
	int err;

	/* it may have created threads on its way here */
	if ((err = wp_hold_process(&target->hold, target->command)) < 0)
		return err == -ESRCH ?
		    wp_cause_set(cause, WP_CAUSE_ENDED_EARLY) :
		    wp_cause_errno(cause, "holding the command", -err);
	err = arm_held(target, &target->hold, target->command, first, n,
	    cause);
	if (err == 0)
		wp_target_let_go(target);
	return err;
}

int
wp_target_arm(struct wp_target *target, struct wp_cause *cause)
{
	int err;

	(void)pthread_mutex_lock(&target->changing);
	err = arm(target, cause);
	(void)pthread_mutex_unlock(&target->changing);
	return err;
}

int
wp_target_arm_held(struct wp_target *target, struct wp_hold *hold, pid_t pid,
    size_t first, size_t n, struct wp_cause *cause)
{
	int err;

	(void)pthread_mutex_lock(&target->changing);
	err = arm_held(target, hold, pid, first, n, cause);
	(void)pthread_mutex_unlock(&target->changing);
	return err;
}

void
wp_target_let_go(struct wp_target *target)
{
	if (target->command == 0)
		return;
	wp_hold_release(&target->hold);
	target->command = 0;
}

void
wp_target_abandon(struct wp_target *target)
{
	pid_t command = target->command;

	if (command == 0 || target->adopted) {
		wp_target_let_go(target);
		return;
	}
	(void)kill(command, SIGKILL);
	wp_target_let_go(target);
	wp_command_end(command);
}
