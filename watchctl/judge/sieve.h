/*
 * sieve: which hits are reported, of those that there are and that a judge
 * (judge.h) does not reject: by --every, --once and --max-rate, in this order;
 * and how many, by --each.
 *
 * One that is kept in one process and judged in another (kept/kept_session.h)
 * is the same in both: what became of each hit is added in the one, and the
 * next judge is sent its state.
 */
#ifndef SIEVE_H
#define SIEVE_H

#include "hit/hit.h"
#include "option/options.h"

struct sieve;

/* For these options, which outlive it.  NULL: out of memory. */
struct sieve *sieve_new(const struct options *);
void sieve_free(struct sieve *);

/* Count a hit, as each has to be.  Result: which of its watch it is, from 1; 0:
   that is not known. */
uint64_t sieve_count(struct sieve *, const struct ex_hit *);

/* How many were, of a watch, or a part of one, by its index. */
uint64_t sieve_hits(const struct sieve *, size_t watch);

/* Whether one that is not rejected is left out by the rest, or counted as
   reported. */
bool sieve_skips(struct sieve *, const struct ex_hit *);

/* Whether a watch, by its index, has had all the hits that --each asks for. */
bool sieve_is_full(const struct sieve *, size_t watch);

/* Hits were lost: which number one has is no longer known. */
void sieve_lost(struct sieve *);

/* What another sieve did with a hit of a watch, at a time: whether the
   condition and --changed let it pass, and it was reported then. */
void sieve_took(struct sieve *, const struct ex_watch *, bool passed,
    bool reported, uint64_t time);

/* It reported the backtrace of a hit, of watches that are all there. */
void sieve_recall(struct sieve *, const struct ex_hit *);

/* Where a sieve stands. */
struct sieve_place {
	uint64_t second, in_second;	/* --max-rate */
	bool lost;
};
struct sieve_count {
	uint64_t hits, passed;	/* of a watch: all, and those that the
				   condition and --changed let pass; */
	uint64_t reported;
};

void sieve_stand(const struct sieve *, struct sieve_place *,
    const struct sieve_count **, size_t *n);
/* Stand where another did.  False: out of memory. */
bool sieve_go_on(struct sieve *, const struct sieve_place *,
    const struct sieve_count *, size_t n);

#endif
