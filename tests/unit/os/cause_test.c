/* cause: every cause has its own text and errno. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "os/cause.h"

static void
formats_arguments(void **state)
{
	struct wp_cause cause;

	(void)state;
	assert_int_equal(wp_cause_set(&cause, WP_CAUSE_NO_PROCESS, 4711),
	    -ESRCH);
	assert_int_equal(cause.code, WP_CAUSE_NO_PROCESS);
	assert_non_null(strstr(cause.text, "4711"));
	assert_null(strchr(cause.text, '\n'));
}

static void
keeps_the_callers_errno(void **state)
{
	struct wp_cause cause;

	(void)state;
	assert_int_equal(wp_cause_errno(&cause, "reading maps", EMFILE),
	    -EMFILE);
	assert_int_equal(cause.err, EMFILE);
	assert_string_equal(cause.text, "reading maps: Too many open files; "
	    "raise the limit (ulimit -n, or LimitNOFILE=)");
	assert_int_equal(wp_cause_errno(&cause, "reading maps", EIO), -EIO);
	assert_string_equal(cause.text, "reading maps: Input/output error");
	assert_int_equal(wp_cause_errno(NULL, "", ENOMEM), -ENOMEM);
}

static void
cuts_what_is_too_long(void **state)
{
	struct wp_cause cause;
	char name[2048];

	(void)state;
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(wp_cause_set(&cause, WP_CAUSE_NOT_FOUND, name),
	    -ENOENT);
	assert_int_equal(strlen(cause.text), sizeof(cause.text) - 1);
}

static void
may_be_left_out(void **state)
{
	(void)state;
	assert_int_equal(wp_cause_set(NULL, WP_CAUSE_NO_MEMORY), -ENOMEM);
	assert_string_equal(wp_cause_name(WP_CAUSE_NO_MEMORY), "NO_MEMORY");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(formats_arguments),
		cmocka_unit_test(keeps_the_callers_errno),
		cmocka_unit_test(cuts_what_is_too_long),
		cmocka_unit_test(may_be_left_out),
	};

	return cmocka_run_group_tests_name("cause", tests, NULL, NULL);
}
