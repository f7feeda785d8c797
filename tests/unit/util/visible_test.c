/* visible: the text is safe to show, and valid where it must be. */
#include "test.h"

#include <jansson.h>
#include <string.h>

#include "util/visible.h"

static const struct {
	const char *text, *shown, *json;
} cases[] = {
	{"", "", "\"\""},
	{"counter", "counter", "\"counter\""},
	{"a b~", "a b~", "\"a b~\""},
	{"\033[2J", "\\x1b[2J", "\"\\u001b[2J\""},
	{"a\nb\tc\rd", "a\\nb\\tc\\rd", "\"a\\u000ab\\u0009c\\u000dd\""},
	{"\x01\x7f", "\\x01\\x7f", "\"\\u0001\\u007f\""},
	{"\"q\" \\", "\"q\" \\", "\"\\\"q\\\" \\\\\""},
	/* UTF-8 stays: e acute, euro, a face */
	{"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
	 "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
	 "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
	/* C1 controls, right-to-left override, line separator, a tag */
	{"\xc2\x9b" "5m", "\\u009b5m", "\"\\u009b5m\""},
	{"\xe2\x80\xae", "\\u202e", "\"\\u202e\""},
	{"\xe2\x80\xa8", "\\u2028", "\"\\u2028\""},
	{"\xf3\xa0\x81\x81", "\\ue0041", "\"\\udb40\\udc41\""},
	/* not UTF-8: a lone byte, cut short, overlong, surrogate, too high */
	{"a\xff" "b", "a\\xffb", "\"a\xef\xbf\xbd" "b\""},
	{"\xe2\x82", "\\xe2\\x82", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
	{"\xc0\xaf", "\\xc0\\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
	{"\xe0\x80\xaf", "\\xe0\\x80\\xaf",
	 "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
	{"\xed\xa0\x80", "\\xed\\xa0\\x80",
	 "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
	{"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80",
	 "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
};

TEST(shows_what_is_hidden)
{
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct buffer b = {0};

		visible_put(&b, cases[i].text);
		assert_string_equal(buffer_text(&b), cases[i].shown);
		buffer_free(&b);
	}
}

TEST(writes_json_strings)
{
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct buffer b = {0};

		visible_put_json(&b, cases[i].text);
		assert_string_equal(buffer_text(&b), cases[i].json);
		buffer_free(&b);
	}
}

/* Every byte, alone and after each lead byte: JSON that jansson reads. */
TEST(writes_valid_json_for_any_bytes)
{
	for (unsigned i = 1; i < 256; i++) {
		for (unsigned j = 0; j < 256; j++) {
			const char text[] = {(char)i, (char)j, 'x', '\0'};
			struct buffer b = {0};
			json_t *json;

			visible_put_json(&b, text);
			json = json_loads(buffer_text(&b), JSON_DECODE_ANY,
			    NULL);
			assert_non_null(json);
			json_decref(json);
			buffer_free(&b);
		}
	}
}

TEST(cuts_between_characters)
{
	struct buffer b = {0};

	visible_put_max(&b, "\xe2\x82\xac\033x", 2);
	assert_string_equal(buffer_text(&b), "\xe2\x82\xac\\x1b...");
	b.len = 0;
	visible_put_max(&b, "abc", 3);
	assert_string_equal(buffer_text(&b), "abc");
	buffer_free(&b);
}

TEST(cuts_lines)
{
	static const struct {
		unsigned columns;
		const char *text, *cut;
	} lines[] = {
		{6, "abcdef\n\nabcdefg\n", "abcdef\n\nabc...\n"},
		{6, "abcdefgh", "abc..."},
		{0, "abcdefgh\n", "abcdefgh\n"},
		{3, "abcdefgh\n", "abcdefgh\n"},
		{4, "abcde\n", "a...\n"},
		/* characters, not bytes */
		{4, "\xe2\x82\xac\xc3\xa9zz\n", "\xe2\x82\xac\xc3\xa9zz\n"},
		{4, "\xe2\x82\xac\xc3\xa9zzz\n", "\xe2\x82\xac...\n"},
		/* colours cost nothing, and end */
		{4, "\033[36mabcd\033[0m\n", "\033[36mabcd\033[0m\n"},
		{4, "\033[36mabcde\033[0m\n", "\033[36ma\033[0m...\n"},
		{5, "\033[1mabc\033[0mdef\033[2mg\033[0m\nx\n",
		 "\033[1mab\033[0m\033[2m\033[0m...\nx\n"},
	};

	for (size_t i = 0; i < COUNT(lines); i++) {
		struct buffer b = {0};

		buffer_puts(&b, "what is before, in a long line\n");
		buffer_puts(&b, lines[i].text);
		visible_cut(&b, strlen("what is before, in a long line\n"),
		    lines[i].columns);
		assert_string_equal(strchr(buffer_text(&b), '\n') + 1,
		    lines[i].cut);
		buffer_free(&b);
	}
}

TEST(counts_columns)
{
	assert_int_equal(visible_columns("", 0), 0);
	assert_int_equal(visible_columns("abc", 3), 3);
	assert_int_equal(visible_columns("a\xe2\x82\xac" "b", 5), 3);
}

RUN_TESTS()
