/*
 * children: the processes that watched processes create, which are not watched
 * themselves, and which of these went on in the program.
 *
 * Who executes another program has nothing of this one any more, and is of no
 * interest: what posix_spawn(3), system(3) and popen(3) create, or fork(2) in
 * front of execve(2).  But a child that goes on, or ends as it is, runs the
 * program's code in a copy of its memory, or (vfork(2), clone(2)) in that
 * memory itself, and no event sees it.
 *
 * The kernel records who is created; and the end of who has executed no program
 * (sideband.h).  Of who lives, /proc knows whether it has.
 */
#ifndef CHILDREN_H
#define CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "watch/sideband.h"

struct child {
	pid_t pid, parent;
	uint64_t born;			/* ns */
	bool gone;			/* it lives no more, or has executed
					   another program, as was seen */
};

/* All zero: nothing has been created. */
struct children {
	struct sideband side;		/* who ends */
	bool blind;			/* of a process that is not known */
	struct child *child;		/* n whose fate is not known yet */
	size_t n, cap, many;		/* many: then the dead are looked for */
	struct child went_on;		/* the first that did; pid 0: none */
	bool ended;			/* by now */
	bool unknown;			/* it may be that others did */
};

/* From now on the ends of what a process creates are recorded: before it can
   create anything that matters. */
void children_heed(struct children *, pid_t);

/* A process was created, as a record of the watches' own events says; the same
   may be said twice. */
void children_made(struct children *, pid_t pid, pid_t parent, uint64_t time);

/* Look at the records. */
void children_look(struct children *);

/* Decide about those of which nothing is known yet.  Who was created less than
   ms ago, and has not executed a program, is given that time. */
void children_settle(struct children *, int ms);

void children_close(struct children *);

#endif
