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

/* A recorder that keeps this many hits in at most this many bytes of a drain,
   which must outlive it.  NULL: out of memory. */
struct recorder *recorder_new(struct wp_drain *, uint64_t hits, size_t bytes);
void recorder_free(struct recorder *);

/* Keep the next record of the drain, which was decoded.  False: no more records
   are wanted, because there is no memory or the report failed. */
bool recorder_keep(struct recorder *, struct run *,
    const struct perf_event_header *, const struct ex_record *);

/* The same for a record that cannot be decoded or shall not be reported. */
bool recorder_pass(struct recorder *, const struct perf_event_header *);

/* Hand everything that is kept to the session.  False as above. */
bool recorder_release(struct recorder *, struct run *);

/* Whether any hit is kept; and whether there is anything to report: a hit, or
   that there was none. */
bool recorder_has_hits(const struct recorder *);
bool recorder_is_due(const struct recorder *);

#endif
