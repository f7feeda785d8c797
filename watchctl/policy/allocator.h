/*
 * allocator: recognizes hits that the allocator itself makes on the memory of a
 * freed object.
 */
#ifndef ALLOCATOR_H
#define ALLOCATOR_H

#include <stdbool.h>

#include "hit/hit.h"
#include "option/options.h"

/* Whether a function that hands out memory or frees it made a hit: C's, or C++'s
   own, by their names and those that allocators have for them; or those that
   options name.  A backtrace that shows none is of none. */
bool allocator_made(const struct ex_hit *, const struct options *);

#endif
