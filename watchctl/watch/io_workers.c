/* io_workers: threads of the kernel in watched processes.  See io_workers.h. */
#include "watch/io_workers.h"

void
io_workers_report(struct session *session, pid_t pid, const char *why,
    const char *option)
{
	if (session->options->user_only)
		return;
	session_warn(session, "the kernel made threads of process %d for its "
	    "io_uring(7), %s; without %s they are", pid, why, option);
	session_doubt(session, "the kernel's threads for the io_uring(7) of "
	    "process %d were not watched", pid);
}
