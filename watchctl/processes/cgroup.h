/*
 * cgroup: a control group of version 2, and the processes in it or in its
 * descendants.
 *
 * The group is identified by its path: one that is removed and created again is
 * the same.
 */
#ifndef CGROUP_H
#define CGROUP_H

#include <stdbool.h>
#include <sys/types.h>

#include "os/tracepoint.h"

struct cgroup {
	char *name;		/* as /proc/PID/cgroup has it, without an end of
				   "/"; malloc'd */
};

/* The group of a path: of its directory, or below where groups are mounted, or
   as /proc/PID/cgroup has it.  0; or -errno after a line on stderr, which says
   why it is none. */
int cgroup_find(struct cgroup *, const char *path);
void cgroup_free(struct cgroup *);

/* Whether a process is in it. */
bool cgroup_has(const struct cgroup *, pid_t);

/* Whether the group that a process is in is frozen (cgroup.freeze): it does not
   run.  False, too, if that cannot be read. */
bool cgroup_is_frozen(pid_t);

/* The tracepoint by which the kernel reports that a process was moved from a
   group to another. 0; -ENOENT: it cannot be known so here. */
int cgroup_moves(struct wp_tracepoint *);

#endif
