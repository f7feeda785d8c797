/* heap_writers: the backtraces of hits, by their numbers. */
#include "report/heap_writers.h"

#include <stdlib.h>

#include "base/array.h"

enum { MOST = 1 << 16 };

void
heap_writers_add(struct heap_writers *writers, const struct ex_hit *hit)
{
	if (hit->stack == NULL || !EX_ARRAY_ROOM(writers, at, MOST))
		return;
	ex_stack_hold(hit->stack);
	writers->at[writers->n++] = (struct heap_writer){hit->seq, hit->stack};
}

const struct ex_stack *
heap_writers_find(const struct heap_writers *writers, uint64_t seq)
{
	for (size_t i = 0; i < writers->n; i++)
		if (writers->at[i].seq == seq)
			return writers->at[i].stack;
	return NULL;
}

void
heap_writers_free(struct heap_writers *writers)
{
	for (size_t i = 0; i < writers->n; i++)
		ex_stack_let_go(writers->at[i].stack);
	free(writers->at);
	*writers = (struct heap_writers){0};
}
