/* by_stack: a map from backtraces, by their index, to items of any type. */
#include "policy/by_stack.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool
grow(struct by_stack *b, unsigned slot, size_t size)
{
	size_t n = b->n == 0 ? 64 : b->n;
	unsigned *of;
	char *items;

	while (n <= slot)
		n *= 2;
	if ((of = reallocarray(b->of, n, sizeof(*of))) == NULL)
		return false;
	b->of = of;
	if ((items = reallocarray(b->items, n, size)) == NULL)
		return false;
	b->items = items;
	memset(of + b->n, 0, (n - b->n) * sizeof(*of));
	b->n = n;
	return true;
}

static void
forget(struct by_stack *b, unsigned slot, size_t size)
{
	if (b->of[slot] != 0 && b->forget != NULL)
		b->forget((char *)b->items + slot * size);
	b->of[slot] = 0;
}

void *
by_stack_at(struct by_stack *b, unsigned index, size_t size)
{
	const unsigned slot = index % BY_STACK_MAX;
	char *item;

	if (slot >= b->n && !grow(b, slot, size))
		return NULL;
	item = (char *)b->items + slot * size;
	if (b->of[slot] != index + 1) {
		forget(b, slot, size);
		memset(item, 0, size);
		b->of[slot] = index + 1;
	}
	return item;
}

void
by_stack_free(struct by_stack *b, size_t size)
{
	for (unsigned slot = 0; slot < b->n; slot++)
		forget(b, slot, size);
	free(b->items);
	free(b->of);
	*b = (struct by_stack){.forget = b->forget};
}
