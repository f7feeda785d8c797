/* ptrace_refused: finds the reason why ptrace(2) on a process is refused. */
#include "watch/ptrace_refused.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probe/probe.h"
#include "proc/proc.h"

/* Find out whether one of the threads has another tracer, and name it. */
static bool
is_traced(pid_t pid, struct wp_cause *cause)
{
	struct wp_proc_status status;
	pid_t *tids = NULL;
	size_t cap = 0;
	int n = wp_proc_threads(pid, &tids, &cap);
	bool traced = false;
	char comm[64];

	for (int i = 0; i < n && !traced; i++) {
		traced = wp_proc_status(tids[i], &status) == 0 &&
		    status.tracer != 0 && status.tracer != getpid();
		if (!traced)
			continue;
		if (wp_proc_comm(status.tracer, status.tracer, comm) < 0)
			(void)strcpy(comm, "?");
		(void)wp_cause_set(cause, WP_CAUSE_TRACED, tids[i],
		    status.tracer, comm);
	}
	free(tids);
	return traced;
}

bool
ptrace_works(void)
{
	struct wp_probe_result shot;

	wp_probe_fire(WP_PROBE_PTRACE, &shot);
	return shot.ok || shot.err == 0;
}

const char *
ptrace_way_out(bool command)
{
	struct wp_features features;

	if (wp_probe_features(&features, NULL) < 0)
		return "; perf_event_open(2) is refused too, so no way is "
		    "left: have one of the two permitted";
	return command ? "; --inside does without" :
	    "; leave out what needs it (--stop, WATCHPOINT_DELIVERY=ptrace)";
}

/* The meaning of Yama's scopes.  In scope 1 the program may have permitted
   tracing by PR_SET_PTRACER; then Yama is not the reason. */
static void
explain_scope(pid_t pid, int scope, struct wp_cause *cause)
{
	(void)wp_cause_set(cause, WP_CAUSE_TRACE_YAMA, pid, scope, scope == 1 ?
	    "only a command that watchctl starts itself may be traced" :
	    "users may trace nothing", scope == 1 ? 0 : 1);
}

static bool
is_own(pid_t pid)
{
	struct wp_proc_status status;

	return wp_proc_status(pid, &status) == 0 && status.uid == geteuid();
}

int
ptrace_refused(pid_t pid, int err, struct wp_cause *cause)
{
	const int scope = wp_proc_setting("yama/ptrace_scope");

	if (err != EPERM && err != EACCES && err != ENOSYS)
		return wp_cause_errno(cause, err == ETIMEDOUT ?
		    "holding the program's threads still" :
		    "tracing the program", err);
	if (is_traced(pid, cause))
		return -err;
	if (scope <= 1 && !ptrace_works())
		(void)wp_cause_set(cause, WP_CAUSE_TRACE_REFUSED, pid,
		    ptrace_way_out(false));
	else if (scope > 1 || (scope == 1 && is_own(pid)))
		explain_scope(pid, scope, cause);
	else
		(void)wp_cause_set(cause, WP_CAUSE_TRACE_DENIED, pid);
	return -err;
}
