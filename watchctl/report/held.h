/*
 * held: the newest hits, explained, until they are wanted (--last with
 * --until).
 */
#ifndef HELD_H
#define HELD_H

#include "hit/hit.h"

struct held;

/* Room for so many hits, at least one, of so many samples in all.  NULL: out of
   memory. */
struct held *held_new(size_t hits, size_t samples);
void held_free(struct held *);

/* Whether the oldest has to go before this one is held. */
bool held_is_full(const struct held *, const struct ex_hit *);

/* Hold a copy, for which there is room; its backtrace and all else that it
   points to have to stay. */
void held_put(struct held *, const struct ex_hit *);

/* The oldest; NULL: none is held.  Let it go. */
struct ex_hit *held_first(struct held *);
void held_pop(struct held *);

#endif
