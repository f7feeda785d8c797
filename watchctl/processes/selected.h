/*
 * selected: finds the processes that -p selects at this moment: pids, names,
 * and descendants.
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

/* Find them. fits: also add those for which it returns true, if there are any;
   NULL: none.  0; or -errno after a line on stderr: a name has no process, or
   there is no memory.  All zero at first; free the pids in any case. */
int selected_find(struct selected *, const struct options *,
    bool (*fits)(void *arg, pid_t), void *arg);

/* Call fn for each process with the names that select it: its own and that of
   its executable, "" where unknown. */
void selected_names(void (*fn)(void *arg, const char *name), void *arg);

/* A process that descends from one of -p @CHILDREN:PID and is not among these,
   because it was created meanwhile; 0: none. */
pid_t selected_missing(const struct selected *, const struct options *);

#endif
