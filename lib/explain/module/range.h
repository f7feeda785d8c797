/*
 * range: address ranges, sorted, each with a number.
 *
 * A table is filled once, then sorted, then searched.  Ranges may overlap and
 * nest: the answer is the one with the nearest start at or below an address
 * that includes it.
 */
#ifndef EX_RANGE_H
#define EX_RANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ex_range {
	uint64_t start, end;	/* start < end */
	uint64_t what;		/* the caller's: an index, an offset */
	uint64_t reach;		/* the largest end up to here: set by sorting */
};

struct ex_ranges {		/* all zero: empty */
	struct ex_range *at;
	size_t n, cap;
};

/* Make room for more ranges, which adding them does as well, in steps. */
bool ex_ranges_room(struct ex_ranges *, size_t more);

/* Add a range; an empty one is ignored.  False: out of memory, or too many. */
bool ex_ranges_add(struct ex_ranges *, uint64_t start, uint64_t end,
    uint64_t what);

/* Sort, after adding and before finding.  Of ranges that start together the
   one added last is found first. */
void ex_ranges_sort(struct ex_ranges *);

/* The range that holds addr, or NULL. */
const struct ex_range *ex_ranges_find(const struct ex_ranges *, uint64_t addr);

void ex_ranges_free(struct ex_ranges *);
void ex_ranges_release(void *ranges);	/* the same, for ex_module_cache */

#endif
