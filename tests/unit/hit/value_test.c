/* value: known bytes, as numbers. */
#include "test.h"

#include "hit/value.h"

TEST(marks_known_bytes)
{
	static const struct {
		uint32_t known;
		unsigned from, len;
		bool all;
	} cases[] = {
		{0, 0, 1, false}, {1, 0, 1, true}, {1, 0, 2, false},
		{0xff, 0, 8, true}, {0xfe, 0, 8, false}, {0xfe, 1, 7, true},
		{0x7f, 0, 8, false}, {UINT32_MAX, 0, 32, true},
		{UINT32_MAX >> 1, 0, 32, false}, {UINT32_MAX, 31, 1, true},
		{UINT32_MAX, 31, 2, false}, {UINT32_MAX, 32, 1, false},
		{UINT32_MAX, 0, 0, false}, {UINT32_MAX, 0, 33, false},
		{UINT32_MAX, UINT32_MAX, 1, false},
		{UINT32_MAX, 1, UINT32_MAX, false},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct ex_value value = {.known = cases[i].known};

		if (ex_value_known(&value, cases[i].from, cases[i].len) !=
		    cases[i].all)
			fail_msg("case %zu", i);
	}
}

TEST(is_a_number)
{
	const struct ex_value value = {
		.byte = {1, 2, 3, 4, 5, 6, 7, 8, 9, [31] = 0xff},
		.known = UINT32_MAX,
	};

	assert_int_equal(ex_value_number(&value, 0, 1), 1);
	assert_int_equal(ex_value_number(&value, 0, 2), 0x201);
	assert_int_equal(ex_value_number(&value, 1, 8), 0x0908070605040302);
	assert_int_equal(ex_value_number(&value, 31, 1), 0xff);
	assert_int_equal(ex_value_number(&value, 0, 0), 0);
}

TEST(names_its_source)
{
	assert_null(ex_value_source_text(EX_VALUE_UNKNOWN));
	assert_string_equal(ex_value_source_text(EX_VALUE_REGISTER),
	    "register");
	assert_string_equal(ex_value_source_text(EX_VALUE_IMMEDIATE),
	    "immediate");
	assert_string_equal(ex_value_source_text(EX_VALUE_DERIVED), "derived");
	assert_string_equal(ex_value_source_text(EX_VALUE_STOP), "stop");
	assert_string_equal(ex_value_source_text(EX_VALUE_PROVED), "proved");
	assert_string_equal(ex_value_source_text(EX_VALUE_LATER), "later");
}

RUN_TESTS()
