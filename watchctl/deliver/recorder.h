/*
 * recorder: the newest hits (--last), as records: nothing is explained until
 * they are needed.
 *
 * Records stay where they were drained to.  The recorder looks at each once, to
 * find out which samples are one hit, and lets the oldest go when there are
 * more hits than are to be kept, or more bytes than there is room for.  What
 * processes map is learnt in its place among the samples, so that it explains
 * those that came before and after it; but the files are opened at once.
 */
#ifndef RECORDER_H
#define RECORDER_H

#include "attach/drain.h"
#include "run/run.h"

struct recorder;

/* One that keeps so many hits of a drain, which outlives it, in at most so many
   bytes.  NULL: out of memory. */
struct recorder *recorder_new(struct wp_drain *, uint64_t hits, size_t bytes);
void recorder_free(struct recorder *);

/* The next record is in the drain, and was decoded: keep it.  False: no more
   are wanted, since there is no memory, or the report failed. */
bool recorder_keep(struct recorder *, struct run *,
    const struct perf_event_header *, const struct ex_record *);

/* There is one that cannot be decoded, or is not to be reported. */
bool recorder_pass(struct recorder *, const struct perf_event_header *);

/* Have the session take what is kept; nothing is kept then.  False as above. */
bool recorder_tell(struct recorder *, struct run *);

/* Whether any hit is kept; or there is anything to report: a hit, or that there
   was none. */
bool recorder_has_hits(const struct recorder *);
bool recorder_is_due(const struct recorder *);

#endif
