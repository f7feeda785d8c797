/* complain: one line on stderr, whatever it contains. */
#include "test.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "util/complain.h"
#include "said.h"

TEST(says_a_line)
{
	char *said;
	int result;

	said_begin(STDERR_FILENO);
	result = complain("process %d: %s", 12, "gone");
	said = said_end(STDERR_FILENO);
	assert_int_equal(result, -EINVAL);
	assert_string_equal(said, "watchctl: process 12: gone\n");
}

TEST(makes_text_visible)
{
	char *said;

	said_begin(STDERR_FILENO);
	(void)complain("'%s'", "a\033[2J\n\xff caf\303\251 \xe2\x80\xae");
	said = said_end(STDERR_FILENO);
	assert_string_equal(said, "watchctl: 'a\\x1b[2J\\n\\xff caf\303\251 "
	    "\\u202e'\n");
}

TEST(gives_the_way_out)
{
	char *said;

	said_begin(STDERR_FILENO);
	assert_int_equal(complain_errno(EMFILE, "process %d", 12), -EINVAL);
	(void)complain_errno(ENOMEM, "memory to share");
	(void)complain_errno(EIO, "x");
	said = said_end(STDERR_FILENO);
	assert_string_equal(said, "watchctl: process 12: Too many open files; "
	    "raise the limit (ulimit -n, or LimitNOFILE=)\n"
	    "watchctl: memory to share: Cannot allocate memory; raise the "
	    "limits of processes and memory (ulimit -u and -v), or make room\n"
	    "watchctl: x: Input/output error\n");
}

/* The longest path there is, and what is said of it, are not cut. */
TEST(has_room_for_a_path)
{
	static char path[PATH_MAX], huge[1 << 16];
	char *said;

	memset(path, 'p', sizeof(path) - 1);
	said_begin(STDERR_FILENO);
	(void)complain("-O %s: no such directory", path);
	said = said_end(STDERR_FILENO);
	assert_int_equal(strlen(said), strlen("watchctl: -O : no such "
	    "directory\n") + sizeof(path) - 1);
	assert_holds(said, "p: no such directory\n");

	memset(huge, 'h', sizeof(huge) - 1);
	said_begin(STDERR_FILENO);
	(void)complain("%s", huge);
	said = said_end(STDERR_FILENO);
	assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
}

RUN_TESTS()
