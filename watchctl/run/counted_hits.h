/*
 * counted_hits: with -o summary, hits whose backtrace is known are only
 * counted, in the kernel (attach/stack_counts.h).  The counts are passed to the
 * session at the end; with --top twice a second; when the table is full; and
 * when the explainer that knows their backtraces has died.
 */
#ifndef COUNTED_HITS_H
#define COUNTED_HITS_H

#include "run/run.h"

/* Take notice of a record that may invalidate a known backtrace. */
void counted_hits_learn(const struct run *, const struct ex_record *);

/* Check the counts now and then; records up to the horizon, ns, have been
   processed. --top gets the present state. */
void counted_hits_look(struct run *, uint64_t horizon);

/* Pass all counts to the session. */
void counted_hits_take(struct run *);

/* The same, when the explainer that knew the backtraces has died. */
void counted_hits_save(struct run *);

#endif
