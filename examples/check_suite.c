/*
 * check_suite: the same with Check, where a fixture checks after each test.  It
 * must be a checked fixture, because only those run in the test's process.
 *
 *	0%: Checks: 1, Failures: 1, Errors: 0
 *	check_suite.c:41:S:config:accepting_changes_nothing:0: stray write
 *	#1   stray write  config (4 of 8 bytes, at 0x55a115b1d414)
 *	     check_suite[7898/7898] cpu 0  +0.000294s
 *	     accepts+0xa  mov %eax, 0x198fb(%rip)   check_suite.c:26
 *	     0  accepts                       check_suite.c:26
 *	     1  accepting_changes_nothing_fn  check_suite.c:34
 *	     ...
 */
#include <check.h>
#include <stdlib.h>
#include <watchpoint.h>

static struct config {
	int port;
	int limit;
} config = {8080, 3};

static int
accepts(int clients)
{
	if ((config.limit = clients))	/* meant: == */
		return 0;
	return 1;
}

START_TEST(accepting_changes_nothing)
{
	WP_FREEZE(config)
		ck_assert(!accepts(3));
}
END_TEST

static void
no_stray_writes(void)
{
	ck_assert_msg(wp_stray_count() == 0, "stray write\n%s",
	    wp_stray_text());
	ck_assert_msg(wp_stray_missed() == 0, "%s", wp_stray_missed_text());
}

int
main(void)
{
	Suite *suite = suite_create("config");
	TCase *tests = tcase_create("config");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tests, wp_stray_reset, no_stray_writes);
	tcase_add_test(tests, accepting_changes_nothing);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
