/*
 * scope_cxx: the macros and objects in C++, where exceptions may leave a block.
 */
#include <cstring>

#include <pthread.h>

#include <memory>
#include <stdexcept>
#include <thread>

#include "scope.hh"

static jmp_buf outside;

static void
throw_frozen(int depth)
{
	WP_FREEZE(word) {
		if (depth > 0)
			throw_frozen(depth - 1);
		WP_PERMIT(word)
			throw std::runtime_error("in a permit in a freeze");
	}
}

static void
an_exception_leaves_blocks(void **)
{
	bool caught = false;

	try {
		throw_frozen(2);
	} catch (const std::runtime_error &) {
		caught = true;
	}
	assert_true(caught);
	expect(0);
	WP_FREEZE(word) {
		try {
			throw_frozen(0);
		} catch (const std::runtime_error &) {
			write_word();
		}
	}
	expect(1);
}

static void
throw_watched(int depth)
{
	volatile long local = depth;

	WP_SCOPE(local) {
		if (depth > 0)
			throw_watched(depth - 1);
		throw std::runtime_error("in a watch");
	}
}

static void
an_exception_leaves_watches(void **)
{
	bool caught = false;

	try {
		throw_watched(2);
	} catch (const std::runtime_error &) {
		caught = true;
	}
	assert_true(caught);
	expect(0);
}

static int
returns()
{
	WP_FREEZE(word)
		return 1;
	return 0;
}

static void
return_break_and_longjmp_leave_blocks(void **)
{
	assert_int_equal(returns(), 1);
	expect(0);
	for (;;) {
		WP_FREEZE(word)
			break;
		break;
	}
	expect(0);
	if (setjmp(outside) == 0) {
		WP_FREEZE(word)
			longjmp(outside, 1);
	}
	expect(0);
}

static void
a_thread_writes(void **)
{
	WP_FREEZE(word) {
		WP_PERMIT(word) {
			write_word();
			std::thread(write_word).join();
		}
	}
	expect(1);
}

static void
objects_last_as_long_as_they_live(void **)
{
	{
		wp::freeze frozen(word, "word");

		assert_true(bool(frozen));
		write_word();
		{
			wp::permit mine(word);

			write_word();
		}
		try {
			wp::permit mine(word);

			throw std::runtime_error("out of a permit");
		} catch (const std::runtime_error &) {
			write_word();
		}
	}
	expect(2);
}

static void *
end_frozen(void *unused)
{
	WP_FREEZE(word)
		WP_PERMIT(word)
			pthread_exit(unused);
	return unused;
}

/* By unwinding, which leaves a block twice. */
static void
the_end_of_a_thread_leaves_blocks(void **)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, end_frozen, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	expect(0);
}

/* Not in the order of a stack. */
static void
freezes_may_be_anywhere(void **)
{
	std::unique_ptr<wp::freeze> first(new wp::freeze(word));
	std::unique_ptr<wp::freeze> second(new wp::freeze(word));

	first.reset();
	{
		wp::permit mine(word);

		write_word();
		assert_int_equal(wp_stray_count(), 0);
	}
	write_word();
	second.reset();
	expect(1);
}

/* It could be somebody else's who has it: as a coroutine's. */
struct holder {
	wp::permit permit;

	__attribute__((noinline)) holder() : permit(word) {}
};

static void
a_permit_in_an_object_is_none(void **)
{
	WP_FREEZE(word) {
		holder holds;

		write_word();
		assert_int_equal(wp_stray_count(), 1);
	}
	expect(1);
}

static void
a_watch_is_an_object(void **)
{
	wp::watch watch(word, "word");
	const char text[1000] = "";
	wp::watch none(text);

	assert_true(bool(watch));
	assert_false(bool(none));
	assert_non_null(strstr(wp_cause(), "1000 bytes"));
	write_word();
	expect(0);
}

/* The operators end in free, but for a sanitizer's. */
static void
deleting_ends_a_watch(void **)
{
	volatile long *block = new long(0);

	assert_int_equal(WP_WATCH_HEAP(block), 0);
	assert_int_equal(WP_WATCH_HEAP(block), 0);
	*block = 1;
#ifndef SANITIZED
	const auto at = reinterpret_cast<uintptr_t>(block);
	delete block;
	assert_int_equal(wp_unwatch_variable(
	    reinterpret_cast<const void *>(at), sizeof(*block)), -ENOENT);
#else
	assert_int_equal(WP_UNWATCH(*block), 0);
	delete block;
#endif
	expect(0);
}

/* The function that macros are not needed for. */
static void
a_watch_moves(void **)
{
	static volatile char bytes[16];
	wp_attr attr = wp_attr();
	wp_watch *watch;
	uint64_t count;

	attr.size = sizeof(attr);
	attr.addr = bytes;
	attr.len = 1;
	assert_int_equal(wp_open(&attr, &watch), 0);
	assert_int_equal(wp_move(watch, &bytes[13]), 0);
	bytes[13] = 1;
	assert_int_equal(wp_move(watch, &bytes[14], 2), 0);
	bytes[15] = bytes[13] = 1;
	assert_int_equal(wp_count(watch, &count), 0);
	assert_int_equal(count, 2);
	wp_close(watch);
}

/* &object is not its address. */
struct odd {
	long value;
	odd *operator&() { return nullptr; }
};

static void
the_address_is_the_true_one(void **)
{
	static odd object;

	WP_FREEZE(object)
		object.value = 1;
	expect(1);
}

int
main()
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(an_exception_leaves_blocks, begin),
		cmocka_unit_test_setup(an_exception_leaves_watches, begin),
		cmocka_unit_test_setup(return_break_and_longjmp_leave_blocks,
		    begin),
		cmocka_unit_test_setup(a_thread_writes, begin),
		cmocka_unit_test_setup(the_end_of_a_thread_leaves_blocks,
		    begin),
		cmocka_unit_test_setup(objects_last_as_long_as_they_live,
		    begin),
		cmocka_unit_test_setup(freezes_may_be_anywhere, begin),
		cmocka_unit_test_setup(a_permit_in_an_object_is_none, begin),
		cmocka_unit_test_setup(a_watch_is_an_object, begin),
		cmocka_unit_test_setup(deleting_ends_a_watch, begin),
		cmocka_unit_test_setup(a_watch_moves, begin),
		cmocka_unit_test_setup(the_address_is_the_true_one, begin),
	};

	return RUN_SCOPE_TESTS(tests);
}
