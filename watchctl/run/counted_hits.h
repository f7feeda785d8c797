/*
 * counted_hits: with -o summary, hits whose backtrace is known are only
 * counted, in the kernel (attach/stack_counts.h).  The counts are passed to the
 * session at the end; with --top twice a second; when the table is full; and
 * when the explainer that knows their backtraces has died.
 */
#ifndef COUNTED_HITS_H
#define COUNTED_HITS_H

#include "run/run.h"

/* Take in a record that may say that such a backtrace holds no more. */
void counted_hits_learn(const struct run *, const struct ex_record *);

/* Look at what was counted, now and then; records were taken in up to the
   horizon, ns.  --top is told what it is by now. */
void counted_hits_look(struct run *, uint64_t horizon);

/* Hand it all to the session. */
void counted_hits_take(struct run *);

/* The same; the explainer that knew the backtraces has died. */
void counted_hits_save(struct run *);

#endif
