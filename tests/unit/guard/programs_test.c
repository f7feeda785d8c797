/* programs: a program is the same in another run. */
#include "test.h"

/* the guard is a library that replaces malloc: only this part of it is here */
#include "guard/programs.c"	/* NOLINT(bugprone-suspicious-include) */

struct hg_state hg_state;

static const char *temporary = "";

static struct hg_image
image(const char *first, const char *second)
{
	char *argv[] = {(char *)(uintptr_t)first, (char *)(uintptr_t)second,
		NULL};
	struct hg_image of;

	hg_program_image(2, argv, temporary, &of);
	return of;
}

TEST(arguments_tell_programs_apart)
{
	const struct hg_image one = image("cc1", "a.c");

	assert_true(image("cc1", "a.c").arguments == one.arguments);
	assert_true(image("cc1", "b.c").arguments != one.arguments);
	assert_true(image("cc1a", ".c").arguments != one.arguments);
	assert_true(image("cc1", "a.c").path == one.path);
}

TEST(names_of_temporary_files_do_not)
{
	static const char *const same[][2] = {
		{"/tmp/ccAbCdEf.s", "/tmp/ccXyZuVw.s"},
		{"--out=/tmp/tmp.UkG5/out", "--out=/tmp/tmp.9aZq/out"},
		{"/tmp/a/x:/var/tmp/b", "/tmp/c/x:/var/tmp/d"},
	};
	static const char *const other[][2] = {
		{"/tmp/tmp.UkG5/out", "/tmp/tmp.UkG5/in"},
		{"/tmp", "/tmp/"}, {"/tmpa", "/tmpb"}, {"tmp/a", "tmp/b"},
	};

	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		if (image("as", same[i][0]).arguments !=
		    image("as", same[i][1]).arguments)
			fail_msg("another: %s", same[i][1]);
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++)
		if (image("as", other[i][0]).arguments ==
		    image("as", other[i][1]).arguments)
			fail_msg("the same: %s", other[i][1]);
}

TEST(nor_do_those_in_the_directory_that_tmpdir_names)
{
	static const char *const same[][3] = {
		{"/scratch", "/scratch/ccAb.s", "/scratch/ccXy.s"},
		{"/home/u/t//", "-o/home/u/t/a/x", "-o/home/u/t/b/x"},
		{"/var/tmp", "/var/tmp/a:/tmp/b", "/var/tmp/c:/tmp/d"},
		{"/tmp/run.1", "/tmp/run.1/ccAb.s", "/tmp/run.1/ccXy.s"},
	};
	static const char *const other[][3] = {
		{"/scratch", "/scratch/a/in", "/scratch/a/out"},
		{"/scratch", "/scratcha", "/scratchb"},
		{"/", "/a", "/b"}, {"tmp", "tmp/a", "tmp/b"},
	};

	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		temporary = same[i][0];
		if (image("as", same[i][1]).arguments !=
		    image("as", same[i][2]).arguments)
			fail_msg("another: %s", same[i][2]);
	}
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		temporary = other[i][0];
		if (image("as", other[i][1]).arguments ==
		    image("as", other[i][2]).arguments)
			fail_msg("the same: %s", other[i][2]);
	}
}

RUN_TESTS()
