/*
 * heap: what is no block is refused, because its watch would never end.  This
 * can be tested without breakpoints.
 */
#include "test.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "handler/watches.h"

static long variable;

static void
expect_refused(const void *p, const char *why)
{
	assert_int_equal(WP_WATCH_HEAP((const volatile long *)p, variable),
	    -EINVAL);
	assert_non_null(strstr(wp_cause(), why));
}

static char *
allocate(void)
{
	char *block = calloc(4, sizeof(long));

	assert_non_null(block);
	test_frees(block, free);
	return block;
}

TEST(what_is_not_aligned_is_no_block)
{
	expect_refused(allocate() + 1, "give the block's start");
}

TEST(what_is_on_the_stack_is_no_block)
{
	long local = 0;

	expect_refused(&local, "use WP_SCOPE");
}

/* In a program that contains malloc, its variables may be a pool. */
TEST(a_variable_is_no_block)
{
	Dl_info here, allocator;

	if (dladdr(&variable, &here) == 0 ||
	    dladdr((void *)(uintptr_t)free, &allocator) == 0 ||
	    here.dli_fbase == allocator.dli_fbase)
		skip();
	expect_refused(&variable, "use WP_WATCH");
}

/* Whatever this machine has against it. */
TEST(a_block_is_not_refused_as_none)
{
	long *block = (long *)allocate();
	const int err = WP_WATCH_HEAP(block, block[1]);

	if (err == 0)
		assert_int_equal(WP_UNWATCH(block[1]), 0);
	else
		assert_null(strstr(wp_cause(), "block"));
}

RUN_TESTS()
