/* ring_records: takes the records that a run drains from its rings. */
#ifndef RING_RECORDS_H
#define RING_RECORDS_H

#include "attach/drain.h"
#include "deliver/recorder.h"
#include "run/run.h"

struct ring_run {
	struct wp_drain *drain;		/* NULL: not begun, or --count */
	struct recorder *recorder;	/* NULL: hits are reported at once, or
					   held by the explainer */
};

/* Take what was drained; it is complete up to the horizon, ns.  False: no more
   records are wanted. */
bool ring_records_take(struct run *, uint64_t horizon);

/* Wait for all records from before this time and take them.  Result: the time
   up to which they are complete; 0: no more records are wanted. */
uint64_t ring_records_until(struct run *, uint64_t time);

/* The same for all records, and for those that a recorder keeps: hits of a
   previous program cannot be explained with the mappings of the next one. */
void ring_records_settle(struct run *, bool watched);

/* After the last hit that is wanted: take only the ends of processes. */
void ring_records_skip(struct run *);

#endif
