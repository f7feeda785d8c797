/*
 * watchpoint-cmocka: cmocka tests that fail at a stray write, with the file and
 * line of that write.
 *
 *	return wp_cmocka_run_group_tests(tests, setup, teardown);
 *
 * in place of cmocka_run_group_tests.  The tests declare what is stray by
 * WP_FREEZE or by watches with WP_STRAY:
 *
 *	static void
 *	serving_leaves_the_configuration_alone(void **state)
 *	{
 *		WP_FREEZE(config) { serve(); }
 *	}
 *
 * A stray access by the thread that runs the tests fails the test right there,
 * and the rest of the test is not run, as with any assertion.  A stray access
 * by another thread, or inside the C library, which may hold a lock, fails the
 * test when it ends.  A test also fails when a freeze in it could not be armed;
 * to skip it then, call wp_cmocka_skip_unwatched() in the frozen block.  The
 * report, with its backtrace, is written to standard error at the moment of the
 * access; it is also in cmocka's own output if that has a format for files
 * (CMOCKA_MESSAGE_OUTPUT=XML, TAP, SUBUNIT).
 *
 * Where the tests must be run by cmocka_run_group_tests itself, the fixture is
 * enough for accesses by the tests' own thread:
 *
 *	cmocka_run_group_tests(tests, wp_cmocka_setup, wp_cmocka_teardown);
 *
 * Nothing is called at a test's end then, so accesses by other threads are
 * reported when the group ends.  cmocka does not count these, so the process
 * ends with exit status 1 whatever main returns.
 *
 * Include <cmocka.h>, and the headers that it needs, before this one.
 */
#ifndef WATCHPOINT_CMOCKA_H
#define WATCHPOINT_CMOCKA_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <watchpoint.h>

/* What is known while a group runs. */
struct wp_cmocka {
	pthread_t thread;	/* the one that runs the tests */
	int on;			/* its accesses may fail a test */
	int whole;		/* cmocka's messages hold whole reports */
	uint64_t strays;	/* accounted for, by a failed test or
				   otherwise */
	uint64_t missed;	/* the same of wp_stray_missed */
	uint64_t left;		/* strays, not in a test, or in one that failed
				   anyway */
	uint64_t left_missed;	/* the same of missed */
	CMFixtureFunction setup, teardown;	/* of the group; may be NULL */
	void *state;		/* of the group: from setup */
	char message[8192];	/* to fail with */
	struct wp_place place;	/* where to fail */
};

/* A test that is run by wp_cmocka_run. */
struct wp_cmocka_test {
	const struct CMUnitTest *test;	/* as it was given */
	void *state;		/* what it is given */
};

static inline struct wp_cmocka *
wp_cmocka_group(void)
{
	static struct wp_cmocka group;

	return &group;
}

/* What a report's first line says: "stray write  config (8 bytes at 0x404090)";
   its number is of no interest here. */
static inline int
wp_cmocka_what(const char *report, char *to, size_t size)
{
	size_t len;

	if (report[0] == '#')
		report += strcspn(report, " ");
	report += strspn(report, " ");
	len = strcspn(report, "\n");
	return snprintf(to, size, "%.*s", (int)len, report);
}

/* What to fail with, and where, as a report says; without a helper there is
   none ("") in a handler. */
static inline void
wp_cmocka_learn(const char *report, const struct wp_hit *hit)
{
	struct wp_cmocka *group = wp_cmocka_group();
	char *message = group->message;
	const size_t half = sizeof(group->message) / 2;
	int n;

	wp_report_place(report, &group->place);
	if (report[0] != '\0' || hit == NULL)
		n = wp_cmocka_what(report, message, half);
	else
		n = snprintf(message, half, "stray access to %s before %p",
		    hit->label, hit->pc);
	if (n < 0 || (size_t)n >= half)
		n = (int)strlen(message);
	if (group->place.function[0] != '\0')
		n += snprintf(message + n, half, ", by %s",
		    group->place.function);
	if (group->whole)
		(void)snprintf(message + n, sizeof(group->message) - (size_t)n,
		    "\n%s", report);
}

static inline void
wp_cmocka_fail(void)
{
	const struct wp_cmocka *group = wp_cmocka_group();

	_assert_true(0, group->message, group->place.line > 0 ?
	    group->place.file : "(no line)", group->place.line);
}

/* At each stray access. */
static inline void
wp_cmocka_stray(const struct wp_hit *hit, void *arg)
{
	struct wp_cmocka *group = (struct wp_cmocka *)arg;

	if (!group->on || !pthread_equal(pthread_self(), group->thread) ||
	    !wp_may_leave(hit))
		return;
	group->strays++;
	wp_cmocka_learn(hit->text, hit);
	wp_leave(hit);
	wp_cmocka_fail();
}

/* How many there are that were not accounted for, which they are now.  The test
   may have called wp_stray_reset. */
static inline uint64_t
wp_cmocka_new(uint64_t now, uint64_t *accounted)
{
	uint64_t n = now < *accounted ? now : now - *accounted;

	*accounted = now;
	return n;
}

/* What happened outside of tests, or in one that has failed by itself. */
static inline void
wp_cmocka_catch_up(void)
{
	struct wp_cmocka *group = wp_cmocka_group();

	group->left += wp_cmocka_new(wp_stray_count(), &group->strays);
	group->left_missed += wp_cmocka_new(wp_stray_missed(), &group->missed);
}

/* The end of a test: it fails if there was something. */
static inline void
wp_cmocka_check(void)
{
	struct wp_cmocka *group = wp_cmocka_group();
	uint64_t strays = wp_cmocka_new(wp_stray_count(), &group->strays);
	uint64_t missed = wp_cmocka_new(wp_stray_missed(), &group->missed);

	if (strays > 0) {
		wp_cmocka_learn(wp_stray_text(), NULL);
		wp_cmocka_fail();
	}
	if (missed > 0)
		_assert_true(0, wp_stray_missed_text(), "(not watched)", 0);
}

/* Skip the running test when something in it could not be armed. */
#define wp_cmocka_skip_unwatched()					\
	do {								\
		if (wp_cmocka_new(wp_stray_missed(),			\
		    &wp_cmocka_group()->missed) > 0)			\
			skip();						\
	} while (0)

static inline int
wp_cmocka_setup(void **state)
{
	struct wp_cmocka *group = wp_cmocka_group();
	const char *form = getenv("CMOCKA_MESSAGE_OUTPUT");

	(void)state;
	group->thread = pthread_self();
	group->whole = form != NULL && form[0] != '\0' &&
	    strcmp(form, "STDOUT") != 0 && strcmp(form, "stdout") != 0;
	group->strays = wp_stray_count();
	group->missed = wp_stray_missed();
	group->left = 0;
	group->left_missed = 0;
	group->on = 1;
	wp_stray_handler(wp_cmocka_stray, group);
	return 0;
}

/* The end of a group: how much was left. */
static inline uint64_t
wp_cmocka_end(void)
{
	struct wp_cmocka *group = wp_cmocka_group();

	wp_cmocka_catch_up();
	group->on = 0;
	wp_stray_handler(NULL, NULL);
	if (group->left > 0)
		print_error("stray accesses outside of tests, or not reported "
		    "by one: %llu, the last:\n%s",
		    (unsigned long long)group->left, wp_stray_text());
	if (group->left_missed > 0)
		print_error("stray accesses that may have been missed outside "
		    "of tests, or not reported by one: %llu, the last: %s",
		    (unsigned long long)group->left_missed,
		    wp_stray_missed_text());
	return group->left + group->left_missed;
}

static inline void
wp_cmocka_exit(void)
{
	(void)fflush(NULL);
	_exit(EXIT_FAILURE);
}

static inline int
wp_cmocka_teardown(void **state)
{
	(void)state;
	if (wp_cmocka_end() == 0)
		return 0;
	(void)atexit(wp_cmocka_exit);
	return -1;
}

/*
 * Running the tests ourselves: cmocka is given tests whose initial state is the
 * true test.
 */
static inline int
wp_cmocka_run_setup(void **state)
{
	struct wp_cmocka_test *own = (struct wp_cmocka_test *)*state;
	struct wp_cmocka *group = wp_cmocka_group();

	wp_cmocka_catch_up();
	own->state = group->state != NULL ? group->state :
	    own->test->initial_state;
	return own->test->setup_func == NULL ? 0 :
	    own->test->setup_func(&own->state);
}

static inline void
wp_cmocka_run(void **state)
{
	struct wp_cmocka_test *own = (struct wp_cmocka_test *)*state;

	own->test->test_func(&own->state);
	wp_cmocka_check();
}

static inline int
wp_cmocka_run_teardown(void **state)
{
	struct wp_cmocka_test *own = (struct wp_cmocka_test *)*state;

	return own->test->teardown_func(&own->state);
}

static inline int
wp_cmocka_group_setup(void **state)
{
	struct wp_cmocka *group = wp_cmocka_group();

	(void)wp_cmocka_setup(state);
	group->state = NULL;
	return group->setup != NULL ? group->setup(&group->state) : 0;
}

static inline int
wp_cmocka_group_teardown(void **state)
{
	struct wp_cmocka *group = wp_cmocka_group();

	(void)state;
	return group->teardown != NULL ? group->teardown(&group->state) : 0;
}

/* Result: as of cmocka_run_group_tests, and one more if something was left. */
static inline int
wp_cmocka_run_group(const char *name, const struct CMUnitTest *tests, size_t n,
    CMFixtureFunction setup, CMFixtureFunction teardown)
{
	struct wp_cmocka *group = wp_cmocka_group();
	struct CMUnitTest *run = (struct CMUnitTest *)
	    __builtin_alloca(n * sizeof(*run));
	struct wp_cmocka_test *own = (struct wp_cmocka_test *)
	    __builtin_alloca(n * sizeof(*own));
	int failed;

	group->setup = setup;
	group->teardown = teardown;
	for (size_t i = 0; i < n; i++) {
		own[i].test = &tests[i];
		own[i].state = NULL;
		run[i].name = tests[i].name;
		run[i].test_func = wp_cmocka_run;
		run[i].setup_func = wp_cmocka_run_setup;
		run[i].teardown_func = tests[i].teardown_func == NULL ? NULL :
		    wp_cmocka_run_teardown;
		run[i].initial_state = &own[i];
	}
	failed = _cmocka_run_group_tests(name, run, n, wp_cmocka_group_setup,
	    wp_cmocka_group_teardown);
	return failed + (wp_cmocka_end() != 0);
}

#define wp_cmocka_run_group_tests(tests, setup, teardown)		\
	wp_cmocka_run_group_tests_name(#tests, tests, setup, teardown)
#define wp_cmocka_run_group_tests_name(name, tests, setup, teardown)	\
	wp_cmocka_run_group(name, tests, sizeof(tests) / sizeof((tests)[0]), \
	    setup, teardown)

#endif
