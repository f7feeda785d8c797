/* array_test: an array grows, and keeps what is in it. */
#include "test.h"

#include "os/array.h"

TEST(grows_and_keeps_what_is_there)
{
	struct {
		size_t *at, n, cap;
	} all = {0};

	while (all.n < 1000) {
		assert_int_equal(WP_ARRAY_ROOM(&all, at), 0);
		assert_true(all.n < all.cap);
		all.at[all.n] = all.n;
		all.n++;
	}
	for (size_t i = 0; i < all.n; i++)
		assert_int_equal(all.at[i], i);
	free(all.at);
}

TEST(does_not_move_while_there_is_room)
{
	char *at = NULL, *before;
	size_t cap = 0, was;

	assert_int_equal(wp_array_room(&at, 0, &cap, 1), 0);
	before = at;
	was = cap;
	assert_int_equal(wp_array_room(&at, was - 1, &cap, 1), 0);
	assert_ptr_equal(at, before);
	assert_int_equal(cap, was);
	free(at);
}

RUN_TESTS()
