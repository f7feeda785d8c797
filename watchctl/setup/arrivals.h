/*
 * arrivals: processes of --exe, --cgroup and --all-cpus that appear during a
 * run.
 *
 * Overview: one event for each processor records what all processes create,
 * execute and map, and who is moved to another control group.  It is there
 * before the processes are listed that run now, so none is missed between.  One
 * that is to be watched, and has not inherited the events of the process that
 * created it, is armed; by then it has run for a while, which is reported.
 */
#ifndef ARRIVALS_H
#define ARRIVALS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "os/cause.h"

struct arrivals;
struct options;
struct run;
struct stat;

/* The file of --exe.  0, or -EINVAL after a line on stderr. */
int arrivals_find_file(const char *path, struct stat *);

/* Begin to look.  0; or -errno after a line on stderr: there is no such file or
   control group, or it is not permitted. */
int arrivals_open(struct arrivals **, const struct options *);
void arrivals_close(struct arrivals *);

/* What to poll for POLLIN: so many descriptors (none of NULL), from 0. */
unsigned arrivals_fds(const struct arrivals *);
int arrivals_fd(const struct arrivals *, unsigned i);

/* A processor that runs and on which nothing is noticed, as of the last time
   that it was looked for one; -1: there is none, or it is NULL. */
int arrivals_uncovered(struct arrivals *, bool look);

/* Watch those that have come, and not those that have left. */
void run_take_arrivals(struct run *);

/* Whether a process is one of those that are meant. */
bool arrivals_fits(void *arrivals, pid_t);

/* It is watched from this time on, ns, and so is what it forks then. */
void arrivals_armed(struct arrivals *, pid_t, uint64_t time);

/* It has nothing of what is to be watched, nor has what it forks, until it
   executes another program or maps more. */
void arrivals_lack(struct arrivals *, pid_t);

/* Say what is not seen of those that come. */
void arrivals_announce(struct run *);

#endif
