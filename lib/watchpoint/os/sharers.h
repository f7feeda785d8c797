/*
 * sharers: other processes that have a process's memory: those that clone(2)
 * made with CLONE_VM and without CLONE_THREAD, and parent and child of
 * vfork(2).  What one of them writes is an access of its own threads only.
 *
 * kcmp(2) shows it.  If it is refused for one of two processes alone, that has
 * other credentials, and they have not one memory: changing them closes it to
 * who could look into the other.  Where it is refused altogether, they may have
 * unless the most that they have mapped at a time (VmPeak, which is for everyone
 * to read and never falls) shows that they have not.
 */
#ifndef WP_SHARERS_H
#define WP_SHARERS_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether a thread and another process have one memory: unless it is known that
   they have not, or that process has ended. */
bool wp_sharers_has(pid_t tid, pid_t pid);

/* Those of all processes that /proc shows, into *pids (malloc'd or grown with
   realloc; *cap is its size in elements).  Result: how many; or -errno: -ESRCH,
   it has ended, or the thread that was compared has. */
int wp_sharers(pid_t pid, pid_t **pids, size_t *cap);

/* Whether there is one, or it is not known. */
bool wp_sharers_any(pid_t pid);

#endif
