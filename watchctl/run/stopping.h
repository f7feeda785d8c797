/*
 * stopping: the main job with --stop: each thread stops at its hit, and its
 * record gets the watch's bytes; with --on-hit it is stopped until what was
 * requested is done.
 */
#ifndef STOPPING_H
#define STOPPING_H

#include "os/cause.h"
#include "run/run.h"

struct stopping;

/* Be ready to attach; makes run->stopping.  0, or -errno after a line on
   stderr. */
int stopping_open(struct run *);

/* Watch one process, or the held command.  0 or -errno with a cause. */
int stopping_attach(struct run *, const struct process *, struct wp_cause *);

/* Until there is a reason to end; then disarm. */
void stopping_loop(struct run *);

/* What was counted and not delivered is lost. */
void stopping_account(struct run *);

/* For how long watches were on, in each thread that there was. */
void stopping_uptime(const struct stopping *, struct wp_uptime *);

void stopping_close(struct stopping *);

#endif
