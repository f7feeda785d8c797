/*
 * hit_filter: decides which hits are reported, of those that the condition
 * (hit_condition.h) does not reject: by --every, --once and --max-rate, in this
 * order; and how many, by --each.
 *
 * One that is kept in one process and judged in another
 * (remote/remote_session.h) is the same in both: what became of each hit is
 * added in the one, and the next judge is sent its state.
 */
#ifndef HIT_FILTER_H
#define HIT_FILTER_H

#include "hit/hit.h"
#include "option/options.h"

struct hit_filter;

/* For these options, which outlive it.  NULL: out of memory. */
struct hit_filter *hit_filter_new(const struct options *);
void hit_filter_free(struct hit_filter *);

/* Count a hit, as each has to be.  Result: which of its watch it is, from 1; 0:
   that is not known. */
uint64_t hit_filter_count(struct hit_filter *, const struct ex_hit *);

/* How many were, of a watch, or a part of one, by its index. */
uint64_t hit_filter_hits(const struct hit_filter *, size_t watch);

/* Whether one that is not rejected is left out by the rest, or counted as
   reported. */
bool hit_filter_skips(struct hit_filter *, const struct ex_hit *);

/* Whether a watch, by its index, has had all the hits that --each asks for. */
bool hit_filter_is_full(const struct hit_filter *, size_t watch);

/* Hits were lost: which number one has is no longer known. */
void hit_filter_lost(struct hit_filter *);

/* What another sieve did with a hit of a watch, at a time: whether the
   condition and --changed let it pass, and it was reported then. */
void hit_filter_took(struct hit_filter *, const struct ex_watch *, bool passed,
    bool reported, uint64_t time);

/* It reported the backtrace of a hit, of watches that are all there. */
void hit_filter_recall(struct hit_filter *, const struct ex_hit *);

/* Where a sieve stands. */
struct hit_filter_place {
	uint64_t second, in_second;	/* --max-rate */
	bool lost;
};
struct hit_filter_count {
	uint64_t hits, passed;	/* of a watch: all, and those that the
				   condition and --changed let pass; */
	uint64_t reported;
};

void hit_filter_state(const struct hit_filter *, struct hit_filter_place *,
    const struct hit_filter_count **, size_t *n);
/* Stand where another did.  False: out of memory. */
bool hit_filter_resume(struct hit_filter *, const struct hit_filter_place *,
    const struct hit_filter_count *, size_t n);

#endif
