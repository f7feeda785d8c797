/*
 * by_stack: a map from backtraces, by their index, to items of any type.  The
 * number of items is bounded, so an item may replace another backtrace's.
 */
#ifndef BY_STACK_H
#define BY_STACK_H

#include <stddef.h>

enum { BY_STACK_MAX = 1 << 16 };

/* All zero: empty. */
struct by_stack {
	void *items;		/* n of them, NULL: none; by the index, modulo
				   BY_STACK_MAX */
	unsigned *of;		/* the owner of each: the backtrace's index + 1;
				   0: none */
	size_t n;
	void (*forget)(void *item);	/* called before an item is dropped; may
					   be NULL */
};

/* The item of a backtrace, all zero at first; size is that of an item, the same
   in every call.  It is valid until the next call.  NULL: out of memory. */
void *by_stack_at(struct by_stack *, unsigned index, size_t size);

/* Forget all items, and empty it. */
void by_stack_free(struct by_stack *, size_t size);

#endif
