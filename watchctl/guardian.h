/*
 * guardian: --stop where perf_event_open(2) is refused and ptrace(2) is not:
 * debug registers.
 *
 * Overview.  A thread that has them set dies at its next hit if nobody traces
 * it.  So who traces is a process of its own, the guardian, that nobody has a
 * reason to kill: in a session of its own, with a name of its own.  It sends a
 * record of each hit, made while the thread stands, by a socket, and lets the
 * thread go on.  When we end, or are killed, it clears all registers, lets
 * everybody go, and ends.
 *
 *	thread -- trap --> guardian -- record --> we: explain, report
 *
 * There is one for each process that is watched.
 */
#ifndef GUARDIAN_H
#define GUARDIAN_H

#include "cause.h"
#include "target.h"

struct guardian;

/* Watch a process by these n watches of a target, whose samples have the ids of
   wp_stops_id: all its threads, and those to come.  0; -errno with a cause. */
int guardian_start(struct guardian **, pid_t pid, const struct wp_watched *,
    size_t first, size_t n, uint32_t stack, struct wp_cause *);

/* The socket: each packet is a record; at its end nobody is watched. */
int guardian_fd(const struct guardian *);

/* How many threads it began with. */
unsigned guardian_threads(const struct guardian *);

/* Have it clear everything, and end.  Packets that it sent are still there. */
void guardian_stop(struct guardian *);

void guardian_free(struct guardian *);

#endif
