/*
 * selected: finds the processes of -p at this moment: pids, names, and
 * descendants.
 */
#ifndef SELECTED_H
#define SELECTED_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "option/options.h"

struct selected {
	pid_t *pid;		/* malloc'd: n of them, each once */
	size_t n, cap;
};

/* 0; or -errno after a line on stderr: there is none of a name, or no memory.
   fits: also those for which it returns true, of which there need not be any;
   NULL: none.  All zero at first; free its pids in any case. */
int selected_find(struct selected *, const struct options *,
    bool (*fits)(void *arg, pid_t), void *arg);

/* Call fn with what each process may be called, its own name and that of what
   it executes, "" where that is not known. */
void selected_names(void (*fn)(void *arg, const char *name), void *arg);

/* Whether there is a process now that descends from one of -p @CHILDREN:PID and
   is not among these, as one may be that was created meanwhile: its id, or
   0. */
pid_t selected_missing(const struct selected *, const struct options *);

#endif
