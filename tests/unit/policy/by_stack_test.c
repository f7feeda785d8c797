/* by_stack: items begin as all zero, and are kept. */
#include "test.h"

#include "policy/by_stack.h"

TEST(keeps_what_is_added)
{
	static const unsigned indexes[] = {0, 63, 64, 5000, 70, 1, 10000};
	enum { N = COUNT(indexes) };
	struct item { uint64_t a; char b[5]; } *item;
	struct by_stack b = {0};

	for (uint64_t i = 0; i < N; i++) {
		item = by_stack_at(&b, indexes[i], sizeof(*item));
		assert_non_null(item);
		assert_int_equal(item->a, 0);
		item->a = i + 1;
		item->b[4] = 'x';
	}
	for (unsigned i = 0; i < N; i++) {
		item = by_stack_at(&b, indexes[i], sizeof(*item));
		assert_int_equal(item->a, i + 1);
	}
	assert_true(b.n > 10000);
	by_stack_free(&b, sizeof(*item));
}

static unsigned forgotten;

static void
forget(void *item)
{
	forgotten += *(unsigned *)item;
}

/* The items that are kept are so many; one is told before another takes its
   place. */
TEST(forgets)
{
	struct by_stack b = {.forget = forget};
	unsigned *item;

	for (unsigned i = 0; i < 3 * BY_STACK_MAX; i++) {
		assert_non_null(item = by_stack_at(&b, i, sizeof(*item)));
		assert_int_equal(*item, 0);
		*item = 1;
	}
	assert_int_equal(b.n, BY_STACK_MAX);
	assert_int_equal(forgotten, 2 * BY_STACK_MAX);
	assert_int_equal(*(unsigned *)by_stack_at(&b, 2 * BY_STACK_MAX + 5,
	    sizeof(*item)), 1);
	assert_int_equal(*(unsigned *)by_stack_at(&b, 5, sizeof(*item)), 0);
	assert_int_equal(forgotten, 2 * BY_STACK_MAX + 1);
	by_stack_free(&b, sizeof(*item));
	assert_int_equal(forgotten, 3 * BY_STACK_MAX);
	assert_int_equal(b.n, 0);
}

RUN_TESTS()
