/* replace_file: a file is replaced as a whole, or stays as it is. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>

#include "scratch.h"
#include "util/replace_file.h"

enum { NOBODY = 65534 };

static void
expect_text(const char *name, const char *want)
{
	char *text = scratch_read(name, NULL);

	assert_string_equal(text, want);
}

static int
replace(const char *name, const char *text)
{
	struct replace_file f;
	const char *why;
	int err = replace_file_open(&f, scratch_path(name), &why);

	if (err == 0)
		err = replace_file_write(&f, text, strlen(text));
	replace_file_close(&f);
	return err;
}

/* What lies in the directory beside what a test made. */
static void
expect_files(const char *names)
{
	scratch_run("test \"$(ls -A | tr '\\n' ' ')\" = '%s'", names);
}

TEST(mode_is_kept)
{
	struct replace_file f;
	struct buffer old = {0};
	struct stat st;
	const char *why;

	assert_int_equal(replace("m", "one"), 0);
	scratch_run("chmod 640 m && ln m other");
	assert_int_equal(replace_file_open(&f, scratch_path("m"), &why), 0);
	assert_int_equal(replace_file_read(&f, &old), 0);
	assert_string_equal(buffer_text(&old), "one");
	assert_int_equal(replace_file_write(&f, "two", 3), 0);
	replace_file_close(&f);
	buffer_free(&old);
	assert_int_equal(stat(scratch_path("m"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	expect_text("m", "two");
	expect_text("other", "one");
	expect_files("m other ");
	scratch_run("rm m other");
}

TEST(links_of_others_are_not_followed)
{
	scratch_write("to", "old");
	scratch_run("ln -s to own && ln -s to others");
	assert_int_equal(replace("own", "new"), 0);
	expect_text("to", "new");
	if (geteuid() == 0) {
		struct replace_file f;
		const char *why;

		assert_int_equal(lchown(scratch_path("others"), NOBODY,
		    NOBODY), 0);
		assert_int_equal(replace_file_open(&f, scratch_path("others"),
		    &why), -EPERM);
		assert_string_equal(why, "a symbolic link of somebody else");
		expect_text("to", "new");
	}
	scratch_run("rm to own others");
}

/* And not when all that was to be written has been found out. */
TEST(files_of_others_are_refused)
{
	struct replace_file f;
	const char *why;
	int err;

	if (geteuid() != 0) {
		print_message("only root can make one\n");
		skip();
	}
	scratch_write("f", "old");
	scratch_run("chmod 777 .");
	assert_int_equal(seteuid(NOBODY), 0);
	err = replace_file_open(&f, scratch_path("f"), &why);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(err, -EPERM);
	assert_string_equal(why, "somebody else's file");
	scratch_run("chmod 700 . && rm f");
}

TEST(what_is_no_file_is_refused)
{
	struct replace_file f;
	const char *why;

	assert_int_equal(replace_file_open(&f, scratch_dir, &why), -EINVAL);
	assert_string_equal(why, "not a regular file");
	assert_int_equal(replace_file_open(&f, "/dev/null", &why), -EINVAL);
	assert_int_equal(replace_file_open(&f, scratch_path("no/x"), &why),
	    -ENOENT);
	assert_string_equal(why, "its directory");
	assert_int_equal(replace_file_open(&f, "", &why), -ENOENT);
}

/* Nothing of it is lost, and nothing is left. */
TEST(a_full_disk_leaves_it_as_it_was)
{
	struct rlimit before, less = {2, 2};
	void (*on)(int) = signal(SIGXFSZ, SIG_IGN);
	int err;

	scratch_write("d", "old");
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	less.rlim_max = before.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &less), 0);
	err = replace("d", "new text");
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	(void)signal(SIGXFSZ, on);
	assert_int_equal(err, -EFBIG);
	expect_text("d", "old");
	expect_files("d ");
	scratch_run("rm d");
}

/* Whoever adds to it in the same way waits. */
TEST(the_directory_is_locked)
{
	struct replace_file f;
	const char *why;
	int fd = open(scratch_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(replace_file_open(&f, scratch_path("l"), &why), 0);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), -1);
	replace_file_close(&f);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(close(fd), 0);
}

RUN_TESTS(.before_all = scratch_make, .after_all = scratch_remove)
