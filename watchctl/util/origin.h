/*
 * origin: where a process of a parallel job runs: on which host, and as which
 * rank; and file names with these parts.
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

/* This one: its rank is what Open MPI, PMI, PMIx or Slurm says in the
   environment. */
void origin_here(struct origin *);

/* Whether a name has only what is known here: %h, %p, %r, %%.  0, or -EINVAL
   after a line on stderr. */
int origin_name_check(const char *name);

/* Whether it has %p. */
bool origin_name_has_pid(const char *name);

/* The name with host, rank (0: there is none) and this process in it, malloc'd;
   NULL: out of memory. */
char *origin_name(const char *name, pid_t);

#endif
