/*
 * deliver: the ways in which hits are delivered (struct run_ops of run/run.h):
 * by rings; by a stop at each hit (--stop); and by debug registers, where no
 * perf events for --stop are available.
 */
#ifndef DELIVER_H
#define DELIVER_H

#include "run/run.h"

extern const struct run_ops run_by_ring, run_by_stop, run_by_debugreg;

/* run_ops.without_events of --stop. */
int run_choose_debugreg(struct run *, struct wp_cause *);

#endif
