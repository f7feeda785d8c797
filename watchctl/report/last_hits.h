/*
 * last_hits: the newest hits, explained and kept until they are needed (--last
 * with --until).
 */
#ifndef LAST_HITS_H
#define LAST_HITS_H

#include "hit/hit.h"

struct last_hits;

/* Make room for this many hits, at least one, with this many samples in total.
   NULL: out of memory. */
struct last_hits *last_hits_new(size_t hits, size_t samples);
void last_hits_free(struct last_hits *);

/* Whether the oldest hit has to be dropped before this one can be kept. */
bool last_hits_is_full(const struct last_hits *, const struct ex_hit *);

/* Keep a copy, for which there is room; its backtrace and everything else that
   it points to must stay valid. */
void last_hits_put(struct last_hits *, const struct ex_hit *);

/* The oldest hit; NULL: none is kept.  And drop it. */
struct ex_hit *last_hits_first(struct last_hits *);
void last_hits_pop(struct last_hits *);

#endif
