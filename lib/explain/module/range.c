/* range: sorted address ranges. */
#include "module/range.h"

#include <stdlib.h>

#include "base/array.h"

/* More than the largest programs have; a damaged file may claim any number. */
#define RANGES_MAX ((size_t)1 << 23)

bool
ex_ranges_room(struct ex_ranges *ranges, size_t more)
{
	return ex_array_room(&ranges->at, ranges->n, more, &ranges->cap,
	    sizeof(*ranges->at), RANGES_MAX);
}

bool
ex_ranges_add(struct ex_ranges *ranges, uint64_t start, uint64_t end,
    uint64_t what)
{
	if (start >= end)
		return true;
	if (!EX_ARRAY_ROOM(ranges, at, RANGES_MAX))
		return false;
	ranges->at[ranges->n] = (struct ex_range){start, end, what, 0};
	ranges->n++;
	return true;
}

void
ex_ranges_sort(struct ex_ranges *ranges)
{
	uint64_t reach = 0;

	if (!EX_ARRAY_SORT(ranges->at, ranges->n, start))
		ranges->n = 0;
	for (size_t i = 0; i < ranges->n; i++) {
		if (ranges->at[i].end > reach)
			reach = ranges->at[i].end;
		ranges->at[i].reach = reach;
	}
}

const struct ex_range *
ex_ranges_find(const struct ex_ranges *ranges, uint64_t addr)
{
	size_t low = EX_ARRAY_UPTO(ranges->at, ranges->n, start, addr);

	while (low-- > 0 && ranges->at[low].reach > addr) {
		if (ranges->at[low].end > addr)
			return &ranges->at[low];
	}
	return NULL;
}

void
ex_ranges_free(struct ex_ranges *ranges)
{
	free(ranges->at);
	*ranges = (struct ex_ranges){0};
}

void
ex_ranges_release(void *ranges)
{
	ex_ranges_free(ranges);
}
