/* state: the state of a process or thread, and whether it has ended. */
#ifndef STATE_H
#define STATE_H

#include <stdbool.h>
#include <sys/wait.h>

#include "os/clock.h"
#include "proc/proc.h"

/* The state, as ps(1) shows it; 0: it is gone. */
static inline char
state_of(pid_t tid)
{
	struct wp_proc_status status;

	return wp_proc_status(tid, &status) == 0 ? status.state : 0;
}

/* Whether a process has ended, reaped or not. */
static inline bool
is_gone(pid_t pid)
{
	const char state = state_of(pid);

	return state == 0 || state == 'Z';
}

/* Whether a child has ended with all its threads.  This does not reap it. */
static inline bool
has_ended(pid_t child)
{
	siginfo_t info = {.si_pid = 0};

	return waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) ==
	    0 && info.si_pid == child;
}

#endif
