/*
 * scope: what the tests of freezes and permits in C++ share: a word, writing
 * it, and how many writes were stray.
 */
#ifndef SCOPE_HH
#define SCOPE_HH

#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <csetjmp>
#include <cstdint>
#include <cstdlib>
extern "C" {
#include <cmocka.h>
}

#include "watchpoint.h"

static volatile long word;

static inline void
write_word()
{
	word = word + 1;
}

/* Before each test. */
static inline int
begin(void **)
{
	wp_stray_reset();
	return 0;
}

/* So many writes were stray, and one more is not. */
static inline void
expect(unsigned strays)
{
	assert_int_equal(wp_stray_count(), strays);
	write_word();
	assert_int_equal(wp_stray_count(), strays);
	assert_int_equal(wp_stray_missed(), 0);
}

static inline bool
scope_possible()
{
	(void)setenv("WATCHPOINT_HELPER", getenv("WATCHCTL"), 1);
	if (WP_WATCH(word) == -ENODEV)
		return false;
	(void)WP_UNWATCH(word);
	return true;
}

/* The exit status of a program: 77 is skipped. */
#define RUN_SCOPE_TESTS(tests)						\
	(scope_possible() ? cmocka_run_group_tests(tests, NULL, NULL) : 77)

#endif
