/*
 * children: the processes that watched processes create and that are not
 * watched themselves, and which of them run on in the same program.
 *
 * A child that executes another program no longer has the watched memory, and
 * is ignored.  Children of posix_spawn(3), system(3), popen(3), and of fork(2)
 * before execve(2), are such.  But a child that runs on, or ends without
 * executing a program, runs the program's code in a copy of its memory or
 * (vfork(2), clone(2)) in that memory itself, and no event sees it.
 *
 * The kernel records the creation of every process, and the end of those that
 * executed no other program (sideband.h).  For a living child, /proc shows
 * whether it has executed one.
 */
#ifndef CHILDREN_H
#define CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "processes/sideband.h"

struct child {
	pid_t pid, parent;
	uint64_t born;			/* ns */
	bool gone;			/* it was seen to have ended, or to have
					   executed another program */
	bool awaited;			/* children_awaited will report it */
};

/* Whether it lives, and has executed no program, or one. */
bool child_goes_on(const struct child *);
bool child_has_executed(const struct child *);

/* All zero: nothing has been created. */
struct children {
	struct sideband side;		/* reports what ends */
	bool watched;			/* they are: only threads of the kernel
					   are looked for */
	bool blind;			/* one process's children are not
					   reported, or nobody's ends are
					   recorded */
	struct child *child;		/* n of them, undecided so far */
	size_t n, cap, many;		/* from many on, ended ones are looked
					   for and removed */
	struct child went_on;		/* the first that ran on; pid 0: none */
	bool ended;			/* it has ended by now */
	bool unknown;			/* others may have run on */
	pid_t served;			/* a process that has threads of the
					   kernel for io_uring(7), which cannot
					   be stopped; 0: none */
};

/* From now on record the ends of the processes that this one creates.  To be
   called before it can create one that matters. */
void children_track(struct children *, pid_t);

/* Look for threads that the kernel has made in a process already, of which there
   are no records. */
void children_find_workers(struct children *, pid_t);

/* A process was created, according to a record of the watches' own events; it
   may be reported twice. */
void children_made(struct children *, pid_t pid, pid_t parent, uint64_t time);

/* Where nothing is recorded: a process was created whose creator waits until it
   has executed a program or ended; and now it has. */
void children_await(struct children *, pid_t pid, pid_t parent, uint64_t time);
void children_awaited(struct children *, pid_t pid, bool executed);

/* Read the records. */
void children_look(struct children *);

/* Decide about the undecided ones.  A child that was created less than ms ago
   and has not executed a program is given that time. */
void children_settle(struct children *, int ms);

void children_close(struct children *);

#endif
