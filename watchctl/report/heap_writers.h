/* heap_writers: the backtraces of hits, by their numbers, to which findings in
   heaps refer. */
#ifndef HEAP_WRITERS_H
#define HEAP_WRITERS_H

#include "hit/hit.h"

/* All zero: empty. */
struct heap_writers {
	struct heap_writer {
		uint64_t seq;
		const struct ex_stack *stack;	/* held */
	} *at;				/* n of them */
	size_t n, cap;
};

/* Remember a hit, if there is memory, up to a limit. */
void heap_writers_add(struct heap_writers *, const struct ex_hit *);

/* The backtrace of a hit; NULL: not known. */
const struct ex_stack *heap_writers_find(const struct heap_writers *,
    uint64_t seq);

void heap_writers_free(struct heap_writers *);

#endif
