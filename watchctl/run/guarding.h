/*
 * guarding: the main job with --stop where perf_event_open(2) is refused: by
 * debug registers, which guardian processes set.
 */
#ifndef GUARDING_H
#define GUARDING_H

#include "os/cause.h"
#include "run/run.h"

struct guarding;

/* No event can be opened, for this cause: if --stop can do without, make
   run->guarding, and put what is possible so into run->features.  0; -errno
   with the cause, or another. */
int guarding_open(struct run *, struct wp_cause *);

/* Make room; and start the command, if there is one, held: its failures are
   those of wp_target_launch.  0 or -errno with a cause. */
int guarding_launch(struct run *, struct wp_cause *);

/* Watch one process, or the held command.  0 or -errno with a cause. */
int guarding_attach(struct run *, const struct process *, struct wp_cause *);

/* How many threads there were. */
unsigned guarding_threads(const struct guarding *);

/* Say how it is watched, and what is not. */
void guarding_announce(struct run *);

/* Until there is a reason to end; then everything is cleared. */
void guarding_loop(struct run *);

/* Whether a process was not watched to the end, because its tracer was
   killed. */
bool guarding_failed(const struct guarding *);

/* A command that was not watched yet is killed.  NULL: nothing to do. */
void guarding_close(struct guarding *);

#endif
