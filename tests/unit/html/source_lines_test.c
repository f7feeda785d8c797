/* source_lines: the lines around one. */
#include "test.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "html/source_lines.h"

static int
file_of(const void *text, size_t len)
{
	const int fd = memfd_create("source", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	return fd;
}

TEST(gives_two_before_and_two_behind)
{
	static const char text[] = "1\n2\n3\n4\n5\n6\n7";
	static const struct {
		int line, first;
		unsigned n;
	} rows[] = {
		{1, 1, 5}, {2, 1, 5}, {3, 1, 5}, {4, 2, 5}, {5, 3, 5},
		{6, 4, 4}, {7, 5, 3},
	};
	const int fd = file_of(text, strlen(text));
	struct source_lines lines;

	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_true(source_lines_read(&lines, fd, rows[i].line));
		assert_int_equal(lines.first, rows[i].first);
		assert_int_equal(lines.n, rows[i].n);
		for (unsigned k = 0; k < lines.n; k++)
			assert_int_equal(lines.text[k][0],
			    '0' + lines.first + (int)k);
	}
	assert_false(source_lines_read(&lines, fd, 8));
	assert_false(source_lines_read(&lines, fd, 0));
	assert_false(source_lines_read(&lines, fd, -1));
	assert_false(source_lines_read(&lines, fd, 2147483647));
	(void)close(fd);
}

TEST(shows_tabs_and_cuts_what_is_long)
{
	char text[1000] = "a\tb\r\n\0c\n";
	struct source_lines lines;
	int fd;

	memset(text + 8, 'x', sizeof(text) - 8);
	fd = file_of(text, sizeof(text));
	assert_true(source_lines_read(&lines, fd, 1));
	assert_string_equal(lines.text[0], "a       b");
	assert_string_equal(lines.text[1], "\1c");
	assert_int_equal(strlen(lines.text[2]), SOURCE_COLUMNS + 3);
	assert_string_equal(lines.text[2] + SOURCE_COLUMNS, "...");
	(void)close(fd);
}

TEST(reads_an_endless_file_up_to_a_limit)
{
	const int fd = memfd_create("source", MFD_CLOEXEC);
	struct source_lines lines;

	assert_int_equal(ftruncate(fd, (off_t)1 << 40), 0);
	assert_false(source_lines_read(&lines, fd, 2));
	assert_false(source_lines_read(&lines, -1, 1));
	(void)close(fd);
}

RUN_TESTS()
