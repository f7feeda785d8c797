/*
 * last_hits: the newest hits, explained and kept until they are needed (--last
 * with --until).
 */
#ifndef LAST_HITS_H
#define LAST_HITS_H

#include "hit/hit.h"

struct last_hits;

/* Room for so many hits, at least one, of so many samples in all.  NULL: out of
   memory. */
struct last_hits *last_hits_new(size_t hits, size_t samples);
void last_hits_free(struct last_hits *);

/* Whether the oldest has to go before this one is held. */
bool last_hits_is_full(const struct last_hits *, const struct ex_hit *);

/* Hold a copy, for which there is room; its backtrace and all else that it
   points to have to stay. */
void last_hits_put(struct last_hits *, const struct ex_hit *);

/* The oldest; NULL: none is held.  Let it go. */
struct ex_hit *last_hits_first(struct last_hits *);
void last_hits_pop(struct last_hits *);

#endif
