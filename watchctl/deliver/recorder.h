/*
 * recorder: keeps the newest hits (--last) as records, which are explained only
 * when they are needed.
 *
 * Records stay in the memory that they were drained to.  The recorder reads
 * each record once, to find out which samples belong to one hit.  It drops the
 * oldest hits when there are more than --last keeps, or more bytes than it has
 * room for.  Records of mappings are kept in order among the samples, so that
 * each sample is explained with the mappings of its time; but mapped files are
 * opened at once.
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
