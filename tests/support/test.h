/*
 * test: what every test program is made of.
 *
 *	TEST(adds_up)
 *	{
 *		assert_int_equal(1 + 1, 2);
 *	}
 *
 *	RUN_TESTS(.before_each = clear)
 *
 * Each TEST is run, in the order of the file.  With CASE in the environment
 * only those whose names match it are, a pattern as in "adds_*".
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

/* The text holds a part, or it does not. */
#define assert_holds(text, part)					\
	test_holds(text, part, true, __FILE__, __LINE__)
#define assert_lacks(text, part)					\
	test_holds(text, part, false, __FILE__, __LINE__)
void test_holds(const char *text, const char *part, bool does,
    const char *file, int line);

/* Whether sanitizers are in what is tested, which takes time and stack. */
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* How the tests of a program are run; what is left out is not done. */
struct test_group {
	CMFixtureFunction before_all, after_all;
	CMFixtureFunction before_each, after_each;
	bool (*possible)(void);	/* says why, and false, where all are skipped */
	const CMUnitTestFunction *only, *except;	/* NULL ends the list */
};

/* A test; the second has what is done before and after this one only. */
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

/* Run them all: as the program's main(), or in it. */
#define RUN_TESTS(...)							\
	int								\
	main(void)							\
	{								\
		return run_all_tests(__VA_ARGS__);			\
	}
/* As the main() of a program that has no tests here. */
#define SKIP_TESTS(why)							\
	int								\
	main(void)							\
	{								\
		print_message("%s\n", why);				\
		return 77;						\
	}
#define run_all_tests(...) test_run(&(struct test_group){__VA_ARGS__})

/* Have this freed when the test has ended, also when it has failed; if it is of
   before_all, when all have. */
void test_frees(void *what, void (*how)(void *));
/* All of that now, where a test has very many. */
void test_frees_now(void);
/* As name(what), which returns it, of a type of pointer and what frees it. */
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

/* One more test, run in the order of the lines; and what its end does. */
void test_add(int line, struct CMUnitTest, CMFixtureFunction end);
int test_end(void **state, CMFixtureFunction before, CMFixtureFunction after);

/* Result: how many failed. */
int test_run(const struct test_group *);

#endif
