/* trace: threads that run traced: their stops, signals and registers. */
#include <errno.h>
#include <signal.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "ptrace/ptrace_private.h"

int
wp_trace_thread(pid_t tid)
{
	if (ptrace(PTRACE_SEIZE, tid, 0, (void *)WP_TRACE_OPTIONS) != 0 ||
	    ptrace(PTRACE_INTERRUPT, tid, 0, 0) != 0)
		return -errno;
	return 0;
}

void
wp_trace_report_exit(pid_t tid)
{
	(void)ptrace(PTRACE_SETOPTIONS, tid, 0,
	    (void *)(WP_TRACE_OPTIONS | PTRACE_O_TRACEEXIT));
}

void
wp_trace_report_made(pid_t tid)
{
	(void)ptrace(PTRACE_SETOPTIONS, tid, 0, (void *)(WP_TRACE_OPTIONS |
	    PTRACE_O_TRACEEXIT | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
	    PTRACE_O_TRACEVFORKDONE));
}

void
wp_trace_report_exec(pid_t tid)
{
	(void)ptrace(PTRACE_SETOPTIONS, tid, 0, (void *)PTRACE_O_TRACEEXEC);
}

static enum wp_trace_what
stop_kind(int event, int sig)
{
	switch (event) {
	case 0:
		return WP_TRACE_SIGNAL;
	case PTRACE_EVENT_STOP:
		return sig == SIGTRAP ? WP_TRACE_STOP : WP_TRACE_GROUP;
	case PTRACE_EVENT_EXEC:
		return WP_TRACE_EXEC;
	case PTRACE_EVENT_EXIT:
		return WP_TRACE_EXIT;
	default:
		return WP_TRACE_STOP;
	}
}

/* The thread or process that its last event is about. */
pid_t
wp_trace_made(pid_t tid)
{
	unsigned long object = 0;

	(void)ptrace(PTRACE_GETEVENTMSG, tid, 0, &object);
	return (pid_t)object;
}

static void
take_event(struct wp_trace *trace, int event)
{
	trace->waits = event == PTRACE_EVENT_VFORK;
	if (event == PTRACE_EVENT_CLONE || event == PTRACE_EVENT_FORK ||
	    event == PTRACE_EVENT_VFORK)
		trace->made = wp_trace_made(trace->tid);
	else if (event == PTRACE_EVENT_VFORK_DONE)
		trace->awaited = wp_trace_made(trace->tid);
}

/* Reports an execve(2): the thread may be another one than the one that had
   this id before, and until its tracer has taken notice the kernel refuses all
   requests. */
int
wp_trace_next(pid_t tid, struct wp_trace *trace)
{
	siginfo_t info = {0};

	if (waitid(tid == 0 ? P_ALL : P_PID, (id_t)tid, &info, WSTOPPED |
	    WEXITED | WNOHANG | WNOWAIT | __WALL | __WNOTHREAD) != 0)
		return errno == ECHILD ? 0 : -errno;
	if (info.si_pid == 0)
		return 0;
	*trace = (struct wp_trace){.tid = info.si_pid, .what = WP_TRACE_END};
	if (info.si_code == CLD_TRAPPED || info.si_code == CLD_STOPPED) {
		trace->signal = info.si_status & 0xff;
		trace->what = stop_kind(info.si_status >> 8, trace->signal);
		take_event(trace, info.si_status >> 8);
	}
	if (trace->what == WP_TRACE_EXEC)
		(void)wp_trace_take(trace->tid);
	return 1;
}

/* With __WCLONE a traced thread is found whether it is a "clone" child or not,
   and the caller's other children are left out. */
bool
wp_trace_any(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WSTOPPED | WEXITED | WNOHANG | WNOWAIT |
	    __WCLONE | __WNOTHREAD) == 0 || errno != ECHILD;
}

void
wp_trace_interrupt(pid_t tid)
{
	(void)ptrace(PTRACE_INTERRUPT, tid, 0, 0);
}

void
wp_trace_continue(pid_t tid, int sig)
{
	(void)ptrace(PTRACE_CONT, tid, 0, (void *)(intptr_t)sig);
}

void
wp_trace_step(pid_t tid, int sig)
{
	(void)ptrace(PTRACE_SINGLESTEP, tid, 0, (void *)(intptr_t)sig);
}

void
wp_trace_listen(pid_t tid)
{
	(void)ptrace(PTRACE_LISTEN, tid, 0, 0);
}

void
wp_trace_let_go(pid_t tid, int sig)
{
	(void)ptrace(PTRACE_DETACH, tid, 0, (void *)(intptr_t)sig);
}

int
wp_trace_take(pid_t tid)
{
	int status;

	return waitpid(tid, &status, __WALL | __WNOTHREAD | WNOHANG) == tid ?
	    status : -1;
}

int
wp_trace_get_signal(pid_t tid, siginfo_t *info)
{
	return ptrace(PTRACE_GETSIGINFO, tid, 0, info) != 0 ? -errno : 0;
}

int
wp_trace_set_signal(pid_t tid, const siginfo_t *info)
{
	return ptrace(PTRACE_SETSIGINFO, tid, 0, info) != 0 ? -errno : 0;
}

bool
wp_trace_pending(pid_t tid, int sig, int code)
{
	struct __ptrace_peeksiginfo_args some = {.nr = 8};
	siginfo_t info[8];
	long n;

	for (; (n = ptrace(PTRACE_PEEKSIGINFO, tid, &some, info)) > 0;
	    some.off += (uint64_t)n)
		for (long i = 0; i < n; i++)
			if (info[i].si_signo == sig && info[i].si_code == code)
				return true;
	return false;
}

uint64_t
wp_trace_blocked(pid_t tid)
{
	uint64_t mask = 0;

	(void)ptrace(PTRACE_GETSIGMASK, tid, (void *)sizeof(mask), &mask);
	return mask;
}

ssize_t
wp_trace_regset(pid_t tid, unsigned set, void *to, size_t len)
{
	struct iovec io = {to, len};

	return ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)set, &io) != 0 ?
	    -errno : (ssize_t)io.iov_len;
}
