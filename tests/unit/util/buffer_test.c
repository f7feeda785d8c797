/* buffer: numbers as printf writes them, and lines whole or not at all. */
#include "test.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "util/buffer.h"

TEST(writes_numbers)
{
	static const uint64_t numbers[] = {
		0, 1, 9, 10, 15, 16, 99, 100, 4711, 0x404090,
		UINT64_MAX / 10, UINT64_MAX - 1, UINT64_MAX,
	};

	for (size_t i = 0; i < COUNT(numbers); i++) {
		struct buffer b = {0};
		char want[80];

		(void)snprintf(want, sizeof(want),
		    "%" PRIu64 " 0x%" PRIx64 " %09" PRIu64, numbers[i],
		    numbers[i], numbers[i]);
		buffer_dec(&b, numbers[i]);
		buffer_puts(&b, " ");
		buffer_hex(&b, numbers[i]);
		buffer_puts(&b, " ");
		buffer_digits(&b, numbers[i], 9);
		assert_string_equal(buffer_text(&b), want);
		buffer_free(&b);
	}
}

TEST(grows)
{
	struct buffer b = {0};

	for (unsigned i = 0; i < 10000; i++)
		buffer_printf(&b, "%u,", i % 10);
	buffer_fill(&b, '.', 5000);
	assert_int_equal(b.len, 25000);
	assert_memory_equal(b.bytes + 19996, "8,9,....", 8);
	assert_int_equal(buffer_commit(&b, 0), 0);
	buffer_free(&b);
	assert_string_equal(buffer_text(&b), "");
	buffer_free(&b);
}

TEST(takes_back_what_is_not_whole)
{
	struct buffer b = {0};

	buffer_puts(&b, "whole\n");
	buffer_puts(&b, "par");
	buffer_fill(&b, 'x', SIZE_MAX / 2);
	buffer_puts(&b, "t\n");
	assert_true(b.failed);
	assert_int_equal(buffer_commit(&b, 6), -ENOMEM);
	buffer_puts(&b, "again\n");
	assert_int_equal(buffer_commit(&b, 6), 0);
	assert_string_equal(buffer_text(&b), "whole\nagain\n");
	buffer_free(&b);
}

TEST(says_when_a_stream_fails)
{
	struct buffer b = {0};
	FILE *full = fopen("/dev/full", "w");

	assert_non_null(full);
	buffer_puts(&b, "lost\n");
	assert_int_equal(buffer_write(&b, full), -ENOSPC);
	assert_int_equal(b.len, 0);
	(void)fclose(full);
	buffer_free(&b);
}

RUN_TESTS()
