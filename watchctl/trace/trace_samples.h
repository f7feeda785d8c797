/*
 * trace_samples: the time, thread and backtrace of each hit of a trace, in
 * about eight bytes, kept until the trace ends.
 */
#ifndef TRACE_SAMPLES_H
#define TRACE_SAMPLES_H

#include <sys/types.h>

#include "util/buffer.h"

struct trace_sample {
	uint64_t time;		/* ns, not before the previous sample's */
	pid_t pid, tid;
	unsigned frame;
};

/* All zero: empty. */
struct trace_samples {
	struct buffer packed;
	struct trace_sample last;	/* the sample added last */
	uint64_t left_out;	/* samples for which there was no room */
};

void trace_samples_add(struct trace_samples *, const struct trace_sample *);

/* Iterate: the first sample when *at is 0 and *sample all zero, then the next
   ones.  False: there are no more. */
bool trace_samples_next(const struct trace_samples *, size_t *at,
    struct trace_sample *);

#endif
