/*
 * executions: the programs that watched processes, and with -f their children,
 * execute while nothing traces these.
 *
 * Overview: the kernel removes the events of a process at its execve(2).  What
 * the SPECs name is looked for in the new program, as often as its loader may
 * have mapped more, and watched from then on, like a process that is attached
 * to.  The program has run for a while by then, which is reported.  Nothing
 * reports that a child has executed one, so children are looked at
 * (descendants.h).
 */
#ifndef EXECUTIONS_H
#define EXECUTIONS_H

#include <stdbool.h>

struct process;
struct run;

/* A process has executed another program.  False: this kind of run does not
   watch it. */
bool executions_expect(struct run *, struct process *);

/* With -f, from now on look for what children of watched processes execute. */
void executions_begin(struct run *);

/* Look at those children, or at all of them. */
void executions_look(struct run *, bool all);

/* Whether programs are still to be examined. */
bool executions_await(const struct run *);

/* Watch the programs in which the SPECs are found. */
void run_take_executions(struct run *);

/* At the end of the watch, report the programs that were not examined. */
void executions_end(struct run *);

#endif
