/*
 * sharers: other processes that share a process's memory: those that clone(2)
 * created with CLONE_VM and without CLONE_THREAD, and parent and child of
 * vfork(2).  Their writes hit only the events of their own threads.
 *
 * kcmp(2) shows it.  If it is refused for one of two processes alone, that has
 * other credentials, and they have not one memory: changing them closes it to
 * who could look into the other.  Where it is refused altogether, they may have
 * unless the most that they have mapped at a time (VmPeak, which is for
 * everyone to read and never falls) shows that they have not, or what is in it
 * (contrast.h).
 */
#ifndef WP_SHARERS_H
#define WP_SHARERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Whether a thread and another process have one memory: unless it is known that
   they have not, or that process has ended. */
bool wp_sharers_has(pid_t tid, pid_t pid);

/* A process that has the memory of the one with this index; pid 0: it is not
   known whether one has, because it has ended, or the thread that was compared
   has. */
struct wp_sharer {
	size_t i;
	pid_t pid;
};

/* Those of n processes, of all that /proc shows, which is looked through once;
   into *sharers, malloc'd or NULL.  Result: how many; or -errno. */
int wp_sharers(const pid_t *pids, size_t n, struct wp_sharer **sharers);

/* Whether a process has one, or it is not known. */
bool wp_sharers_any(pid_t pid);

/* What posix_spawn(3) and the like create leaves the memory soon: whether a
   sharer does until then, ns, which is in a moment; whether one of all does
   not. */
uint64_t wp_sharers_moment(void);
bool wp_sharers_leaves(pid_t pid, pid_t sharer, uint64_t until);
bool wp_sharers_stay(pid_t pid);

#endif
