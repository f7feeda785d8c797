/* ring_records: the records that a run drains from its rings. */
#ifndef RING_RECORDS_H
#define RING_RECORDS_H

#include "attach/drain.h"
#include "deliver/recorder.h"
#include "run/run.h"

struct ring_run {
	struct wp_drain *drain;		/* NULL: not begun, or --count */
	struct recorder *recorder;	/* NULL: hits are reported at once, or
					   held by who explains them */
};

/* Take what was drained; up to the horizon, ns, that is all.  False: no more
   are wanted. */
bool ring_records_take(struct run *, uint64_t horizon);

/* Take those from before this time, too, that are on their way.  Result: up to
   when all are there; 0: no more are wanted. */
uint64_t ring_records_until(struct run *, uint64_t time);

/* The same of all, and also those that are kept: hits of the program that was
   cannot be explained by what is mapped now. */
void ring_records_settle(struct run *);

/* Of what comes behind the last hit that is wanted, take only which processes
   end. */
void ring_records_skip(struct run *);

#endif
