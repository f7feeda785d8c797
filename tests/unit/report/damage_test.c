/* damage: findings in a program's heap, as text. */
#include "test.h"

#include "report/damage.h"

static const struct {
	uint64_t size;
	const char *text;
} sizes[] = {
	{1, "of a 1-byte block"}, {8, "of an 8-byte block"},
	{11, "of an 11-byte block"}, {18, "of an 18-byte block"},
	{40, "of a 40-byte block"}, {80, "of an 80-byte block"},
	{100, "of a 100-byte block"}, {800, "of an 800-byte block"},
	{1800, "of a 1800-byte block"}, {8192, "of an 8192-byte block"},
	{11000, "of an 11000-byte block"}, {81920, "of an 81920-byte block"},
	{118000, "of a 118000-byte block"},
};

TEST(a_size_has_the_article_that_is_spoken)
{
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const struct hg_finding f = {
			.kind = HG_OVERFLOW, .size = sizes[i].size,
			.offset = (int64_t)sizes[i].size, .nbytes = 1,
		};
		struct buffer b = {0};

		damage_put(&b, &f);
		assert_holds(buffer_text(&b), sizes[i].text);
		buffer_free(&b);
	}
}

RUN_TESTS()
