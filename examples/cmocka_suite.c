/*
 * cmocka_suite: a stray write turns a test red, with file and line.
 *
 *	[ RUN      ] accepting_changes_nothing
 *	#1   stray write  config (4 of 8 bytes, at 0x560fbda3d2f4)
 *	     cmocka_suite[2856/2856] cpu 1  +0.000293s
 *	     accepts+0xa  mov %eax, 0x13077(%rip)   cmocka_suite.c:36
 *	     0  accepts                    cmocka_suite.c:36
 *	     1  accepting_changes_nothing  cmocka_suite.c:57
 *	     ...
 *	[  ERROR   ] --- stray write  config (4 of 8 bytes, ...), by accepts
 *	[   LINE   ] --- cmocka_suite.c:36: error: Failure!
 *	[  FAILED  ] accepting_changes_nothing
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <watchpoint-cmocka.h>

static struct config {
	int port;
	int limit;
} config = {8080, 3};

static void
reload(void)
{
	config.port = 8081;
}

static int
accepts(int clients)
{
	if ((config.limit = clients))	/* meant: == */
		return 0;
	return 1;
}

static void
reloading_changes_the_port(void **state)
{
	(void)state;
	WP_FREEZE(config) {
		WP_PERMIT(config.port)
			reload();
	}
	assert_int_equal(config.port, 8081);
}

static void
accepting_changes_nothing(void **state)
{
	(void)state;
	WP_FREEZE(config)
		assert_false(accepts(3));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reloading_changes_the_port),
		cmocka_unit_test(accepting_changes_nothing),
	};

	return wp_cmocka_run_group_tests(tests, NULL, NULL);
}
