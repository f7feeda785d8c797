/*
 * chosen: which processes -p means: pids, names, and descendants, as they are at
 * this moment.
 */
#ifndef CHOSEN_H
#define CHOSEN_H

#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "spec/options.h"

struct chosen {
	pid_t *pid;		/* malloc'd: n of them, each once */
	size_t n, cap;
};

/* 0; or -errno after a line on stderr: there is none of a name, or no memory.
   exe: also what executes this file, of which there need not be any; NULL: there is
   no such file.  All zero at first; free its pids in any case. */
int chosen_find(struct chosen *, const struct options *,
    const struct stat *exe);

/* Call fn with what each process may be called, its own name and that of what it
   executes, "" where that is not known. */
void chosen_names(void (*fn)(void *arg, const char *name), void *arg);

/* Whether there is a process now that descends from one of -p @CHILDREN:PID and
   is not among these, as one may be that was created meanwhile: its id, or 0. */
pid_t chosen_missing(const struct chosen *, const struct options *);

#endif
