/* by_stack: a map from backtraces, by their index, to items of any type. */
#include "report/by_stack.h"

#include <stdlib.h>
#include <string.h>

void *
by_stack_at(struct by_stack *b, unsigned index, size_t size)
{
	size_t n = b->n == 0 ? 64 : b->n;
	char *more;

	if (index >= b->n) {
		while (n <= index)
			n *= 2;
		if ((more = reallocarray(b->items, n, size)) == NULL)
			return NULL;
		memset(more + b->n * size, 0, (n - b->n) * size);
		b->items = more;
		b->n = n;
	}
	return (char *)b->items + index * size;
}
