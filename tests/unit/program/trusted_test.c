/*
 * trusted: which files may be used, depending on their owner and on the owners
 * of their directories.
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "scratch.h"
#include "program/trusted.h"

static int
result(const char *path)
{
	int fd = wp_trusted_open(path);

	if (fd >= 0)
		assert_int_equal(close(fd), 0);
	return fd < 0 ? fd : 0;
}

/* What the commands leave, and what it is taken for. */
static const struct {
	const char *commands, *path;
	int result;
} cases[] = {
	{":", "bin/helper", 0},
	{":", "bin//./helper", 0},
	{":", "bin/../bin/helper", 0},
	{":", "bin/other", -ENOENT},
	{":", "bin/helper/more", -EPERM},
	{":", "bin", -EPERM},
	{"chmod g+w bin/helper", "bin/helper", 0},
	{"chmod g+w bin/helper; chgrp 65534 bin/helper", "bin/helper", -EPERM},
	{"chmod o+w bin/helper", "bin/helper", -EPERM},
	{"chmod g+w bin; chgrp 65534 bin", "bin/helper", -EPERM},
	{"chmod o+w bin", "bin/helper", -EPERM},
	{"chmod 1777 bin", "bin/helper", 0},
	{"chmod o+w .", "bin/helper", -EPERM},
	{"chown 65534 bin", "bin/helper", -EPERM},
	{"chown 65534 bin/helper", "bin/helper", -EPERM},
	{"ln -s helper bin/link", "bin/link", -EPERM},
	{"ln -s bin link", "link/helper", -EPERM},
	{"mkfifo bin/fifo", "bin/fifo", -EPERM},
};

TEST(takes_what_only_root_can_have_put_there)
{
	if (geteuid() != 0) {
		print_message("the files have to be root's\n");
		skip();
	}
	for (size_t i = 0; i < COUNT(cases); i++) {
		int got;

		scratch_run("umask 022 && mkdir bin && : > bin/helper && "
		    "chmod 755 bin/helper && %s", cases[i].commands);
		if ((got = result(scratch_path(cases[i].path))) !=
		    cases[i].result)
			fail_msg("%s: %s: %d", cases[i].commands,
			    cases[i].path, got);
		scratch_run("chmod 755 . && rm -rf bin link");
	}
	assert_int_equal(result("bin/helper"), -EPERM);
	assert_int_equal(result(""), -EPERM);
}

/* What was opened is executed, whatever takes its place. */
TEST(gives_the_file_itself)
{
	struct stat before, after;
	int fd;

	if (geteuid() != 0) {
		print_message("the file has to be root's\n");
		skip();
	}
	scratch_run("umask 022 && : > helper");
	assert_int_equal(stat(scratch_path("helper"), &before), 0);
	fd = wp_trusted_open(scratch_path("helper"));
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	scratch_run("mv helper old && : > helper");
	assert_int_equal(fstat(fd, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(close(fd), 0);
}

RUN_TESTS(.before_all = scratch_make, .after_all = scratch_remove)
