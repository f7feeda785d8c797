/*
 * json_text: what is JSON and what is not, as another reader of it has it; and
 * the values in it.
 */
#include "test.h"

#include <jansson.h>
#include <string.h>

#include "merge/json_text.h"

static struct json_text
text_of(const char *text)
{
	return (struct json_text){text, strlen(text)};
}

static const char *const whole[] = {
	"{}", " { } ", "{\"a\":1}", "{\"a\":[]}", "{\"a\":[1,2,{\"b\":null}]}",
	"{\"a\":-0.5e+10,\"b\":0,\"c\":-1,\"d\":1E3,\"e\":1.25e-2}",
	"{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e4\\ud83d\\ude00\"}",
	"{\"a\":true,\"b\":false,\"c\":null}", "{\"\":\"\"}",
	"{\"a\" : [ 1 , 2 ] , \"b\" : { } }", "{\"a\":\"\xc3\xa4\"}",
	"{\"a\":\"x\xe2\x82\xac\xf0\x9f\x98\x80\\n\"}",
};

static const char *const wrong[] = {
	"", " ", "1", "[]", "\"a\"", "null", "{", "}", "{\"a\"}", "{\"a\":}",
	"{\"a\":1,}", "{,}", "{\"a\":1 \"b\":2}", "{a:1}", "{'a':1}",
	"{\"a\":01}", "{\"a\":+1}", "{\"a\":.5}", "{\"a\":1.}", "{\"a\":1e}",
	"{\"a\":-}", "{\"a\":tru}", "{\"a\":nul}", "{\"a\":\"\\x\"}",
	"{\"a\":\"\\u12g4\"}", "{\"a\":\"\\u123\"}", "{\"a\":\"\n\"}",
	"{\"a\":[1,]}", "{\"a\":[1}", "{\"a\":{]}", "{}{}", "{} x",
	"{\"a\":\"", "{\"a\":\"\\", "{\"a\":1e5e}", "{\"a\":[1 2]}",
	"{\"a\":\"\xf9\"}", "{\"a\":\"\xc3\"}", "{\"\x80\":1}",
	"{\"a\":\"\xed\xa0\x80\"}", "{\"a\":\"\xe2\x82",
};

TEST(what_is_json)
{
	for (size_t i = 0; i < COUNT(whole); i++)
		if (!json_text_object(text_of(whole[i]), NULL, NULL))
			fail_msg("%s is JSON", whole[i]);
	for (size_t i = 0; i < COUNT(wrong); i++)
		if (json_text_object(text_of(wrong[i]), NULL, NULL))
			fail_msg("%s is no JSON", wrong[i]);
}

/* Cut anywhere, or with one byte changed: as jansson has it, but for what it
   refuses beyond that (a NUL in a string, a number that it cannot hold). */
TEST(as_another_reader_has_it)
{
	static const char line[] = "{\"type\":\"hit\",\"seq\":12,\"time\":1.25,"
	    "\"frames\":[{\"pc\":\"0x4\",\"line\":10,\"inlined\":false},{}],"
	    "\"new\":\"0x2a\",\"t\\u0041\":null,\"x\":-1e-3}";
	static const char bytes[] = "\"\\{}[]:,0-.eu tn\x1f";
	const size_t len = sizeof(line) - 1;
	char text[sizeof(line)];

	for (size_t n = 0; n < len; n++)
		assert_false(json_text_object((struct json_text){line, n}, NULL,
		    NULL));
	assert_true(json_text_object((struct json_text){line, len}, NULL,
	    NULL));
	for (size_t i = 0; i < len; i++)
		for (size_t k = 0; k < sizeof(bytes) - 1; k++) {
			json_t *json;

			memcpy(text, line, sizeof(line));
			text[i] = bytes[k];
			json = json_loadb(text, len, 0, NULL);
			if (json_text_object((struct json_text){text, len},
			    NULL, NULL) != json_is_object(json))
				fail_msg("%s", text);
			json_decref(json);
		}
}

TEST(depth_is_bounded)
{
	char text[3000] = "{\"a\":";

	memset(text + 5, '[', 2000);
	assert_false(json_text_object(text_of(text), NULL, NULL));
}

static void
note(void *arg, const char *name, size_t len, struct json_text value)
{
	char *all = arg;

	(void)sprintf(all + strlen(all), "%.*s=%.*s;", (int)len, name,
	    (int)value.len, value.at);
}

TEST(members)
{
	char all[256] = "";

	assert_true(json_text_object(text_of("{\"a\" : 1,\"b\":[{\"c\":2}] , "
	    "\"d\":\"x\"}"), note, all));
	assert_string_equal(all, "a=1;b=[{\"c\":2}];d=\"x\";");
}

TEST(values)
{
	struct json_text array = text_of("[1, \"x\" ,{}]"), value;
	uint64_t number;
	int64_t ns;
	char text[16];
	size_t n = 0;

	while (json_text_next(&array, &value))
		n++;
	assert_int_equal(n, 3);
	assert_true(json_text_uint(text_of("18446744073709551615"), &number));
	assert_true(number == UINT64_MAX);
	assert_false(json_text_uint(text_of("18446744073709551616"), &number));
	assert_false(json_text_uint(text_of("-1"), &number));
	assert_false(json_text_uint(text_of("1.5"), &number));
	assert_false(json_text_uint((struct json_text){NULL, 0}, &number));
	assert_true(json_text_hex(text_of("\"0xffffffffffffffff\""), &number));
	assert_true(number == UINT64_MAX);
	assert_true(json_text_hex(text_of("\"9f3c\""), &number));
	assert_int_equal(number, 0x9f3c);
	assert_false(json_text_hex(text_of("\"0x10000000000000000\""),
	    &number));
	assert_false(json_text_hex(text_of("\"x\""), &number));
	assert_false(json_text_hex(text_of("12"), &number));
	assert_true(json_text_seconds(text_of("12.003417"), &ns));
	assert_int_equal(ns, 12003417000);
	assert_false(json_text_seconds(text_of("1e300"), &ns));
	assert_true(json_text_string(text_of("\"a\\n\\u00e4\\ud83d\\ude00\""),
	    text, sizeof(text)));
	assert_string_equal(text, "a\n\xc3\xa4\xf0\x9f\x98\x80");
	assert_true(json_text_string(text_of("\"\\u0000\\ud83dx\""), text,
	    sizeof(text)));
	assert_string_equal(text, "\xef\xbf\xbd\xef\xbf\xbdx");
	assert_false(json_text_string(text_of("\"0123456789abcdef\""), text,
	    sizeof(text)));
}

TEST(written_again)
{
	struct buffer b = {0};

	json_text_put(&b, text_of("[ {\"pc\":\"0x1\" , \"f\":\"\\u001b[31m\"}, "
	    "1.5,{\"pc\":1}]"), "pc");
	assert_string_equal(buffer_text(&b),
	    "[{\"f\":\"\\u001b[31m\"},1.5,{}]");
	buffer_free(&b);
}

RUN_TESTS()
