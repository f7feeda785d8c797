/*
 * hit_filter: decides which hits are reported, of those that the condition
 * (hit_condition.h) does not reject: by --every, --once and --max-rate, in this
 * order; and how many, by --each.
 *
 * watchctl and its explainer (remote/remote_session.h) both keep one in the
 * same state: the explainer's decides, watchctl's is told of each decision, and
 * a new explainer begins with its state.
 */
#ifndef HIT_FILTER_H
#define HIT_FILTER_H

#include "hit/hit.h"
#include "option/options.h"

struct hit_filter;

/* Create one for these options, which must outlive it.  NULL: out of memory. */
struct hit_filter *hit_filter_new(const struct options *);
void hit_filter_free(struct hit_filter *);

/* Count a hit; every hit must be counted.  Result: its number among those of
   its watch, from 1; 0: unknown. */
uint64_t hit_filter_count(struct hit_filter *, const struct ex_hit *);

/* The number of counted hits of a watch, or of a part of one, by its index. */
uint64_t hit_filter_hits(const struct hit_filter *, size_t watch);

/* Whether a hit that is not rejected is left out by the other options; else it
   counts as reported. */
bool hit_filter_skips(struct hit_filter *, const struct ex_hit *);

/* Whether a watch, by its index, has had as many hits as --each allows. */
bool hit_filter_is_full(const struct hit_filter *, size_t watch);

/* Hits were lost: the numbers of later ones are unknown. */
void hit_filter_lost(struct hit_filter *);

/* Record the decision of another filter on a hit of a watch at a time: whether
   the condition and --changed let it pass, and whether it was reported. */
void hit_filter_took(struct hit_filter *, const struct ex_watch *, bool passed,
    bool reported, uint64_t time);

/* Record that the other filter reported the backtrace of a hit.  All watches
   exist. */
void hit_filter_recall(struct hit_filter *, const struct ex_hit *);

/* The state of a filter. */
struct hit_filter_place {
	uint64_t second, in_second;	/* --max-rate */
	bool lost;
};
struct hit_filter_count {
	uint64_t hits, passed;	/* of a watch: all hits, and those that the
				   condition and --changed let pass; */
	uint64_t reported;
};

void hit_filter_state(const struct hit_filter *, struct hit_filter_place *,
    const struct hit_filter_count **, size_t *n);
/* Take over the state of another filter.  False: out of memory. */
bool hit_filter_resume(struct hit_filter *, const struct hit_filter_place *,
    const struct hit_filter_count *, size_t n);

#endif
