/*
 * allocator: recognizes hits that the allocator itself makes on the memory of a
 * freed object.
 */
#ifndef ALLOCATOR_H
#define ALLOCATOR_H

#include <stdbool.h>

#include "hit/hit.h"
#include "option/options.h"

/* Whether a function that allocates or frees memory made a hit: one of C or
   C++, by the names in these libraries and in the usual allocators, or one that
   the options name.  False if the backtrace shows no such function. */
bool allocator_made(const struct ex_hit *, const struct options *);

#endif
