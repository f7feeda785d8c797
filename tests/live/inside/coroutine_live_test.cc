/*
 * coroutine: freezes and permits in coroutines.  A freeze stays in force while
 * its coroutine is suspended; a permit holds only in its own coroutine.
 */
#include <coroutine>
#include <exception>
#include <utility>

#include "scope.hh"

/* A coroutine that runs when it is resumed, until it ends or suspends itself.
   */
struct task {
	struct promise_type {
		task get_return_object()
		{
			return {std::coroutine_handle<
			    promise_type>::from_promise(*this)};
		}
		std::suspend_always initial_suspend() noexcept { return {}; }
		std::suspend_always final_suspend() noexcept { return {}; }
		void return_void() {}
		void unhandled_exception() { std::terminate(); }
	};
	std::coroutine_handle<promise_type> handle;
};

/* Run it in a freeze, writing while it is suspended.  Result: strays of the
   resumer's 2 writes. */
static unsigned
resume_and_write(task of)
{
	unsigned strays = 0;

	WP_FREEZE(word) {
		for (int i = 0; i < 2; i++) {
			uint64_t before;

			of.handle.resume();
			before = wp_stray_count();
			write_word();
			strays += wp_stray_count() - before;
		}
	}
	of.handle.destroy();
	return strays;
}

static task
permit_object()
{
	wp::permit mine(word);

	write_word();
	co_await std::suspend_always();
	write_word();
}

static task
permit_block()
{
	WP_PERMIT(word) {
		write_word();
		co_await std::suspend_always();
		write_word();
	}
}

static void
a_permit_is_not_the_resumers(void **)
{
	assert_int_equal(resume_and_write(permit_object()), 2);
	assert_int_equal(resume_and_write(permit_block()), 2);
	write_word();
	assert_int_equal(wp_stray_missed(), 0);
}

static task
permit_calls()
{
	int got = wp::permitted(word, [] { write_word(); return 7; });

	assert_int_equal(got, 7);
	co_await std::suspend_always();
	wp::permitted(word, write_word);
}

static void
what_is_called_may_be_permitted(void **)
{
	assert_int_equal(resume_and_write(permit_calls()), 2);
	expect(2);
}

static task
freeze_across(bool object)
{
	if (object) {
		wp::freeze all(word);

		co_await std::suspend_always();
	} else {
		WP_FREEZE(word) {
			co_await std::suspend_always();
		}
	}
}

static void
a_freeze_holds_while_it_is_suspended(void **)
{
	for (int object = 0; object < 2; object++) {
		task frozen = freeze_across(object);

		wp_stray_reset();
		frozen.handle.resume();
		write_word();
		assert_int_equal(wp_stray_count(), 1);
		frozen.handle.resume();
		frozen.handle.destroy();
		expect(1);
	}
}

/* Destroyed while it is suspended. */
static void
destroying_it_thaws(void **)
{
	task frozen = freeze_across(false);

	frozen.handle.resume();
	frozen.handle.destroy();
	expect(0);
}

static std::jmp_buf outside;

__attribute__((noinline)) static void
jump_permitted()
{
	WP_PERMIT(word)
		longjmp(outside, 1);
}

/* What is no coroutine does what it does in other versions of the language. */
static void
functions_are_permitted(void **)
{
	WP_FREEZE(word) {
		wp::permit mine(word);

		write_word();
	}
	WP_FREEZE(word) {
		WP_PERMIT(word)
			write_word();
		if (setjmp(outside) == 0)
			jump_permitted();
		write_word();
	}
	expect(1);
}

int
main()
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_permit_is_not_the_resumers, begin),
		cmocka_unit_test_setup(what_is_called_may_be_permitted, begin),
		cmocka_unit_test_setup(a_freeze_holds_while_it_is_suspended,
		    begin),
		cmocka_unit_test_setup(destroying_it_thaws, begin),
		cmocka_unit_test_setup(functions_are_permitted, begin),
	};

	return RUN_SCOPE_TESTS(tests);
}
