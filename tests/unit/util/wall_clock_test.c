/* wall: times of day as text, and what is none. */
#include "test.h"

#include "util/wall_clock.h"

static void
expect(void (*put)(struct buffer *, uint64_t), uint64_t ns, const char *want)
{
	struct buffer b = {0};

	buffer_puts(&b, "{");
	put(&b, ns);
	assert_string_equal(buffer_text(&b), want);
	buffer_free(&b);
}

TEST(times_are_in_utc)
{
	const uint64_t ns = UINT64_C(1795253400250000999);

	expect(wall_clock_put, ns, "{2026-11-21 09:30:00 UTC");
	expect(wall_field, ns, "{\"wall\":\"2026-11-21T09:30:00.250000Z\"");
	expect(wall_field, 0, "{");
}

TEST(what_was_written_is_read)
{
	static const char *const bad[] = {
		"", "2026-11-21", "2026-11-21T09:30:00.250000Zx",
		"2026-11-21T09:30:00.250000", "1969-12-31T23:59:59.000000Z",
		"9999-01-01T00:00:00.000000Z",
	};

	assert_int_equal(wall_clock_parse("2026-11-21T09:30:00.250000Z"),
	    INT64_C(1795253400250000000));
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_int_equal(wall_clock_parse(bad[i]), 0);
}

RUN_TESTS()
