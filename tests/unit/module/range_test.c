/* range: the search agrees with a linear one. */
#include "test.h"

#include "module/range.h"

TEST(finds_the_nearest_that_reaches)
{
	static const struct {
		uint64_t addr;
		int what;	/* -1: none */
	} cases[] = {
		{0, -1}, {9, -1}, {10, 1}, {19, 1}, {20, 2}, {24, 2},
		{25, 3}, {26, 2}, {29, 2}, {30, 1}, {39, 1}, {40, -1},
		{49, -1}, {50, 6}, {54, 6}, {55, 5}, {60, -1},
		{UINT64_MAX - 1, 7}, {UINT64_MAX, -1},
	};
	struct ex_ranges r = {0};

	ex_ranges_sort(&r);
	assert_null(ex_ranges_find(&r, 0));
	assert_true(ex_ranges_add(&r, UINT64_MAX - 1, UINT64_MAX, 7));
	assert_true(ex_ranges_add(&r, 50, 60, 5));
	assert_true(ex_ranges_add(&r, 50, 55, 6));	/* added last */
	assert_true(ex_ranges_add(&r, 25, 26, 3));
	assert_true(ex_ranges_add(&r, 10, 40, 1));
	assert_true(ex_ranges_add(&r, 20, 30, 2));
	assert_true(ex_ranges_add(&r, 45, 45, 4));	/* empty */
	assert_true(ex_ranges_add(&r, 47, 46, 4));
	ex_ranges_sort(&r);
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct ex_range *found =
		    ex_ranges_find(&r, cases[i].addr);

		assert_int_equal(found != NULL ? (int)found->what : -1,
		    cases[i].what);
	}
	ex_ranges_free(&r);
	assert_null(ex_ranges_find(&r, 25));
}

/* What the answer is by definition: of those that hold addr, the one that
   starts last, and of these the one added last. */
static int
look_through(const uint64_t (*all)[2], int n, uint64_t addr)
{
	int best = -1;

	for (int i = 0; i < n; i++) {
		if (all[i][0] <= addr && addr < all[i][1] &&
		    (best < 0 || all[i][0] >= all[best][0]))
			best = i;
	}
	return best;
}

TEST(finds_among_many)
{
	enum { N = 300 };
	static uint64_t all[N][2];
	struct ex_ranges r = {0};
	uint32_t random = 1;

	for (int i = 0; i < N; i++) {
		random = random * 1664525 + 1013904223;
		all[i][0] = random >> 22;
		all[i][1] = all[i][0] + 1 + (random >> 12 & (i & 31));
		assert_true(ex_ranges_add(&r, all[i][0], all[i][1],
		    (uint64_t)i));
	}
	ex_ranges_sort(&r);
	for (uint64_t addr = 0; addr < 1100; addr++) {
		const struct ex_range *found = ex_ranges_find(&r, addr);

		assert_int_equal(found != NULL ? (int)found->what : -1,
		    look_through((const uint64_t (*)[2])all, N, addr));
	}
	ex_ranges_free(&r);
}

RUN_TESTS()
