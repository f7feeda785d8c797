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
	char *name;		/* as in /proc/PID/cgroup, without a trailing
				   "/"; malloc'd */
};

/* Find a group by its directory, by its path below the cgroup mount, or by its
   name in /proc/PID/cgroup.  0; or -errno after a line on stderr. */
int cgroup_find(struct cgroup *, const char *path);
void cgroup_free(struct cgroup *);

/* Whether a process is in it. */
bool cgroup_has(const struct cgroup *, pid_t);

/* The file by which the group of a process is frozen, so that it does not run:
   cgroup.freeze, or of version 1 freezer.state.  NULL: it is not, or that cannot
   be read. */
const char *cgroup_frozen_by(pid_t);

/* The tracepoint by which the kernel reports moves of processes between
   groups.  0; -ENOENT: not available here. */
int cgroup_moves(struct wp_tracepoint *);

#endif
