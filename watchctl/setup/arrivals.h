/*
 * arrivals: processes of --exe, --cgroup and --all-cpus that appear during a
 * run.
 *
 * Overview: an event on each processor records what processes are created,
 * executed and mapped, and which ones move to another control group.  These
 * events are opened before the running processes are listed, so no process is
 * missed in between.  A new process that is to be watched, and did not inherit
 * its creator's events, is armed.  It has run for a while by then, which is
 * reported.
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

/* Find the file of --exe.  0, or -EINVAL after a line on stderr. */
int arrivals_find_file(const char *path, struct stat *);

/* Open the events.  0; or -errno after a line on stderr: the file or control
   group does not exist, or access is denied. */
int arrivals_open(struct arrivals **, const struct options *);
void arrivals_close(struct arrivals *);

/* The descriptors to poll for POLLIN, numbered from 0 (NULL: none). */
unsigned arrivals_fds(const struct arrivals *);
int arrivals_fd(const struct arrivals *, unsigned i);

/* The rings of its events (NULL: none); look: after opening those that a
   processor that came online lacks. */
struct wp_rings *arrivals_rings(struct arrivals *, bool look);

/* Watch processes that have arrived, and stop watching those that have left. */
void run_take_arrivals(struct run *);

/* Whether a process is one of those to be watched. */
bool arrivals_fits(void *arrivals, pid_t);

/* Note that a process, and what it forks from then on, is watched from this
   time on, ns. */
void arrivals_armed(struct arrivals *, pid_t, uint64_t time);

/* Note that a process, and what it forks, has nothing to watch until it
   executes another program or maps more. */
void arrivals_lack(struct arrivals *, pid_t);

/* Print what is not seen of the processes that arrive. */
void arrivals_announce(struct run *);

#endif
