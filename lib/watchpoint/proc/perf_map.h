/*
 * perf_map: the file in which a process names code that it has generated:
 * /tmp/perf-PID.map in its own root directory, where PID is its id in its own
 * PID namespace.
 */
#ifndef WP_PERF_MAP_H
#define WP_PERF_MAP_H

#include <sys/types.h>
#include <time.h>

#pragma GCC visibility push(default)

struct wp_perf_map {
	pid_t pid;
	int root;		/* its directory; -1: ours */
	char name[32];		/* of the file, in tmp */
	uid_t uid;		/* the required owner of the file */
	time_t began;		/* when the process did */
};

/* Find the file of a running process, whose root directory is the descriptor
   root, which outlives this, or -1: ours. 0; -ESRCH: it is not known. */
int wp_perf_map_find(struct wp_perf_map *, pid_t, int root);

/* Open it for reading, if it is a regular file, no link, that belongs to the
   process's user, and was written since the process began: it may be left from
   another that had the same id.  A descriptor, or -errno. */
int wp_perf_map_open(const struct wp_perf_map *);

#pragma GCC visibility pop

#endif
