/*
 * test: the frame of every test program.
 *
 *	TEST(adds_up)
 *	{
 *		assert_int_equal(1 + 1, 2);
 *	}
 *
 *	RUN_TESTS(.before_each = clear)
 *
 * Tests run in the order of the file.  With CASE in the environment only those
 * run whose names match this pattern, such as "adds_*".
 */
#ifndef TEST_H
#define TEST_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The text contains a part, or it does not. */
#define assert_holds(text, part)					\
	test_holds(text, part, true, __FILE__, __LINE__)
#define assert_lacks(text, part)					\
	test_holds(text, part, false, __FILE__, __LINE__)
void test_holds(const char *text, const char *part, bool does,
    const char *file, int line);

/* Whether the tested code has sanitizers, which take time and stack. */
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* How the tests of a program are run; all members are optional. */
struct test_group {
	CMFixtureFunction before_all, after_all;
	CMFixtureFunction before_each, after_each;
	bool (*possible)(void);	/* prints the reason and returns false if all
				   are skipped */
	const CMUnitTestFunction *only, *except;	/* NULL ends the list */
};

/* A test; and one with its own setup and teardown. */
#define TEST(fn) TEST_WITH(fn, NULL, NULL)
#define TEST_WITH(fn, before, after)					\
	static void fn(void **);					\
	static int							\
	end_##fn(void **state)						\
	{								\
		return test_end(state, before, after);			\
	}								\
	static __attribute__((constructor)) void			\
	add_##fn(void)							\
	{								\
		test_add(__LINE__, (struct CMUnitTest){#fn, fn, before,	\
		    after, NULL}, end_##fn);				\
	}								\
	static void fn(__attribute__((unused)) void **state)

/* Run all tests: as the program's main(), or within it. */
#define RUN_TESTS(...)							\
	int								\
	main(void)							\
	{								\
		return run_all_tests(__VA_ARGS__);			\
	}
/* The main() of a program that has no tests on this machine. */
#define SKIP_TESTS(why)							\
	int								\
	main(void)							\
	{								\
		print_message("%s\n", why);				\
		return 77;						\
	}
#define run_all_tests(...) test_run(&(struct test_group){__VA_ARGS__})

/* Free this when the test has ended, even if it failed; after a before_all,
   when all have ended. */
void test_frees(void *what, void (*how)(void *));
/* Free all of that now, in a test that has very many. */
void test_frees_now(void);
/* Define name(what), which calls test_frees for a pointer of this type and
   returns it. */
#define TEST_KEEPS(name, type, how)					\
	static void							\
	name##_freed(void *what)					\
	{								\
		how(what);						\
	}								\
	static type							\
	name(type what)							\
	{								\
		test_frees(what, name##_freed);				\
		return what;						\
	}

/* Add a test, which runs in the order of the lines, and the function for its
   end. */
void test_add(int line, struct CMUnitTest, CMFixtureFunction end);
int test_end(void **state, CMFixtureFunction before, CMFixtureFunction after);

/* Result: how many failed. */
int test_run(const struct test_group *);

#endif
