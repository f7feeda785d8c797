/*
 * detached: a process that the program which starts it cannot notice.
 *
 * It is not a child: wait(2) does not return it, and it raises no SIGCHLD.  It
 * has no terminal, nothing of the program's descriptors but standard error, and
 * its signals as a new process has them.
 *
 * Nothing is allocated.  All signals have to be blocked, and cancellation
 * disabled, by the caller: the new process begins in the program's memory.
 */
#ifndef WP_DETACHED_H
#define WP_DETACHED_H

#include <sys/types.h>

struct wp_detached {
	const char *path;
	char *const *argv;
	char *const *env;
	int fd;			/* will be its descriptor WP_DETACHED_FD */
	int program;		/* a descriptor of what is executed, whatever is
				   at path now; 0: what is at path */
};

enum { WP_DETACHED_FD = 3 };

/* Start it.  *pid is its process id.  0, or -errno of the step that failed,
   execve(2) for example. */
int wp_detached_start(const struct wp_detached *, pid_t *pid);

#endif
