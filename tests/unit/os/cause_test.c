/* cause: every cause has its own text and errno. */
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "os/cause.h"

TEST(formats_arguments)
{
	struct wp_cause cause;

	assert_int_equal(wp_cause_set(&cause, WP_CAUSE_NO_PROCESS, 4711),
	    -ESRCH);
	assert_int_equal(cause.code, WP_CAUSE_NO_PROCESS);
	assert_holds(cause.text, "4711");
	assert_null(strchr(cause.text, '\n'));
}

TEST(keeps_the_callers_errno)
{
	struct wp_cause cause;
	char text[256];

	assert_int_equal(wp_cause_errno(&cause, "reading maps", EMFILE),
	    -EMFILE);
	assert_int_equal(cause.err, EMFILE);
	(void)snprintf(text, sizeof(text), "reading maps: %s; raise the limit "
	    "(ulimit -n, or LimitNOFILE=)", strerror(EMFILE));
	assert_string_equal(cause.text, text);
	assert_int_equal(wp_cause_errno(&cause, "reading maps", EIO), -EIO);
	(void)snprintf(text, sizeof(text), "reading maps: %s", strerror(EIO));
	assert_string_equal(cause.text, text);
	assert_int_equal(wp_cause_errno(NULL, "", ENOMEM), -ENOMEM);
}

TEST(cuts_what_is_too_long)
{
	struct wp_cause cause;
	char name[2048];

	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(wp_cause_set(&cause, WP_CAUSE_NOT_FOUND, name),
	    -ENOENT);
	assert_int_equal(strlen(cause.text), sizeof(cause.text) - 1);
}

TEST(may_be_left_out)
{
	assert_int_equal(wp_cause_set(NULL, WP_CAUSE_NO_MEMORY), -ENOMEM);
	assert_string_equal(wp_cause_name(WP_CAUSE_NO_MEMORY), "NO_MEMORY");
}

RUN_TESTS()
