/* by_stack: items begin as all zero, and are kept. */
#include "test.h"

#include <stdlib.h>

#include "report/by_stack.h"

TEST(keeps_what_is_put)
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
	item = b.items;
	assert_true(b.n > 10000);
	for (size_t i = 0; i < b.n; i++)
		assert_int_equal(item[i].b[4] == 'x', item[i].a > 0);
	free(b.items);
}

RUN_TESTS()
