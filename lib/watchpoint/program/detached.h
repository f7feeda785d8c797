/*
 * detached: starts a process without its parent program noticing.
 *
 * The process is not a child of the program: wait(2) does not return it, and it
 * raises no SIGCHLD.  It has no terminal, none of the program's descriptors but
 * standard error, and default signal settings.
 *
 * Nothing is allocated.  The caller must block all signals and disable
 * cancellation, because the new process begins in the program's memory.
 */
#ifndef WP_DETACHED_H
#define WP_DETACHED_H

#include <sys/types.h>

struct wp_detached {
	const char *path;
	char *const *argv;
	char *const *env;
	int fd;			/* becomes its descriptor WP_DETACHED_FD */
	int program;		/* a descriptor of the file to execute, whatever
				   is at path by now; 0: execute the file at
				   path */
};

enum { WP_DETACHED_FD = 3 };

/* Start the process, *pid.  0, or -errno of the step that failed, for example
   execve(2). */
int wp_detached_start(const struct wp_detached *, pid_t *pid);

#endif
