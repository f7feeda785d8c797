/*
 * learned: learns the writers of each watch, for a policy file (--learn).
 */
#ifndef LEARNED_H
#define LEARNED_H

#include "policy/policy.h"

/* Hits whose writers could not be learned. */
struct learned_rest {
	uint64_t unnamed;	/* their functions have no names, or names that
				   cannot be in a line */
	uint64_t missing;	/* functions may be missing in their
				   backtraces */
	uint64_t late;		/* their backtraces are not the accesses' */
};

struct learned;

/* NULL: out of memory. */
struct learned *learned_new(void);
void learned_free(struct learned *);

/* Learn from a hit that stands for `times' hits; what the dynamic loader itself
   writes is ignored.  0 or -ENOMEM.  Hot path, as policy_judge is. */
int learned_take(struct learned *, const struct ex_hit *, uint64_t times);

/* Write a [watch] for this watch even if it was never accessed.  0 or
   -ENOMEM. */
int learned_watch(struct learned *, const struct ex_watch *);

/* Append what was learned, as a policy file.  Result: hits that are not covered
   by it. */
struct learned_rest learned_put(const struct learned *, struct buffer *);

#endif
