/* ptrace_private: what the files that call ptrace(2) share. */
#ifndef WP_PTRACE_PRIVATE_H
#define WP_PTRACE_PRIVATE_H

#include <sys/ptrace.h>

#include "ptrace/ptrace.h"

/* Threads that are made are traced; execve(2) is reported, because it ends
   everything. */
#define WP_TRACE_OPTIONS (PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC)

/* What a stopped thread is about to get: the signal, or 0 at stops that are not
   a signal's.  code: as si_status has it, or a wait status shifted by 8. */
static inline int
wp_stop_signal_in(int code)
{
	return code >> 8 == 0 ? code : 0;
}

#endif
