/*
 * origin: determines where a process of a parallel job runs: on which host, and
 * as which rank; and file names with these parts.
 */
#ifndef ORIGIN_H
#define ORIGIN_H

#include <stdbool.h>
#include <sys/types.h>

struct origin {
	char host[65];		/* "": not known */
	bool ranked;		/* it has a rank */
	unsigned rank;
};

/* The origin of this process: its rank is taken from the environment of Open
   MPI, PMI, PMIx or Slurm. */
void origin_here(struct origin *);

/* Check that a name has no other sequences than %h, %p, %r, %%. 0, or -EINVAL
   after a line on stderr. */
int origin_name_check(const char *name);

/* Whether it has %p. */
bool origin_name_has_pid(const char *name);

/* The name with host, rank (0 if there is none) and this process inserted,
   malloc'd; NULL: out of memory. */
char *origin_name(const char *name, pid_t);

#endif
