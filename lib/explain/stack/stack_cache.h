/*
 * stack_cache: caches backtraces, by the parts of the sample that the unwinding
 * read.
 *
 * Unwinding reads few words of a stack, and its result depends on these alone
 * (unwind/reads.h).  So a sample that has the same values in the same places
 * has the same backtrace, and comparing them is much faster than unwinding.
 * All these values are compared; the hash only finds the candidates.
 *
 * The size is bounded: a new backtrace replaces an older one.
 */
#ifndef EX_STACK_CACHE_H
#define EX_STACK_CACHE_H

#include <stddef.h>

#include "unwind/reads.h"

struct ex_stack_cache;
struct ex_stack;

/* An empty one; NULL: out of memory. */
struct ex_stack_cache *ex_stack_cache_new(void);
void ex_stack_cache_free(struct ex_stack_cache *);

void ex_stack_cache_clear(struct ex_stack_cache *);

/*
 * The backtrace of a sample with the same n words, which are everything else
 * that the result depends on, and the same values in the places that were
 * read.  NULL: not known.
 */
const struct ex_stack *ex_stack_cache_find(struct ex_stack_cache *,
    const uint64_t *word, size_t n, const struct ex_sample *);

/* Whether the backtrace that was found last has now come often, which is
   reported at ever rarer times: then its reads. */
bool ex_stack_cache_often(const struct ex_stack_cache *, struct ex_reads *);

/* Remember a sample's backtrace and the reads that led to it, unless there were
   too many or there is no memory. */
void ex_stack_cache_put(struct ex_stack_cache *, const uint64_t *word, size_t n,
    const struct ex_sample *, const struct ex_reads *,
    const struct ex_stack *);

#endif
