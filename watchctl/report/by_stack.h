/* by_stack: a map from backtraces, by their index, to items of any type. */
#ifndef BY_STACK_H
#define BY_STACK_H

#include <stddef.h>

/* All zero: empty. */
struct by_stack {
	void *items;		/* n of them; the owner frees it; NULL: none */
	size_t n;
};

/* The item of a backtrace, all zero at first; size is that of an item, the same
   in every call.  It is valid until the next call.  NULL: out of memory. */
void *by_stack_at(struct by_stack *, unsigned index, size_t size);

#endif
