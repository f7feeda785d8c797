/* step: steps over an instruction that was trapped before it was executed. */
#include "handler/step.h"

#include <linux/hw_breakpoint.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/attr.h"
#include "os/perf.h"
#include "os/slot_cpu.h"
#include "handler/capture.h"
#include "handler/trap.h"

/* The signals that are blocked during the step: all but those that the
   instruction may raise and those that cannot be blocked.  A system call may
   wait for a signal, so its mask is left alone. */
static uint64_t
step_mask(const ucontext_t *context, int sig)
{
	const uint64_t allowed = wp_signal_bit(SIGSEGV) |
	    wp_signal_bit(SIGBUS) | wp_signal_bit(SIGILL) |
	    wp_signal_bit(SIGFPE) | wp_signal_bit(SIGSYS) |
	    wp_signal_bit(SIGTRAP) | wp_signal_bit(SIGKILL) |
	    wp_signal_bit(SIGSTOP) | wp_signal_bit(sig);

	return wp_signal_mask(context) |
	    (wp_cpu_at_syscall(context) ? 0 : ~allowed);
}

static int
open_next(const ucontext_t *context, pid_t tid, int sig)
{
	const struct wp_slot slot = {
		wp_cpu_next(context), wp_cpu_exec_len(), HW_BREAKPOINT_X,
	};
	struct perf_event_attr attr;
	int fd, err;

	wp_attr_inside(&attr, &slot, 1, false);
	if ((fd = wp_perf_open(&attr, tid, -1)) < 0)
		return fd;
	if ((err = wp_perf_signal(fd, tid, sig)) < 0 ||
	    (err = wp_perf_once(fd, 1)) < 0) {
		(void)syscall(SYS_close, fd);
		return err;
	}
	return fd;
}

int
wp_step_begin(struct wp_step *step, ucontext_t *context, pid_t tid, int sig)
{
	int fd = open_next(context, tid, sig);

	if (fd < 0)
		return fd;
	*step = (struct wp_step){
		.on = true, .fd = fd, .pc = wp_cpu_pc(context),
		.before = wp_signal_mask(context),
		.during = step_mask(context, sig),
	};
	wp_context_mask_set(context, step->during);
	return 0;
}

void
wp_step_end(struct wp_step *step, ucontext_t *context)
{
	/* close(2) is a cancellation point */
	(void)syscall(SYS_close, step->fd);
	if (wp_signal_mask(context) == step->during)
		wp_context_mask_set(context, step->before);
	step->on = false;
}
