/*
 * arrivals: processes of --exe, as they come.
 *
 * Overview: one event for each processor records what all processes create and
 * execute.  It is there before the processes are listed that run now, so none is
 * missed between.  What executes the file, and has not inherited the events of
 * the process that created it, is armed; by then it has run for a while, which is
 * reported.
 */
#ifndef ARRIVALS_H
#define ARRIVALS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "os/cause.h"

struct arrivals;
struct run;
struct stat;

/* Begin to look.  0; or -errno after a line on stderr: there is no such file, or
   it is not permitted. */
int arrivals_open(struct arrivals **, const char *path);
void arrivals_close(struct arrivals *);

/* What to poll for POLLIN: so many descriptors (none of NULL), from 0. */
unsigned arrivals_fds(const struct arrivals *);
int arrivals_fd(const struct arrivals *, unsigned i);

/* Watch those that have come. */
void run_take_arrivals(struct run *);

/* The file. */
const struct stat *arrivals_file(const struct arrivals *);

/* It is watched from this time on, ns, and so is what it forks then. */
void arrivals_armed(struct arrivals *, pid_t, uint64_t time);

#endif
