/* nearest: the most similar names, in a stable order. */
#include "test.h"

#include <stdlib.h>

#include "util/nearest.h"

static const struct {
	const char *want;
	const char *offered[8];
	const char *near;
} cases[] = {
	{"countr", {"main", "counter", "counters", "cnt"},
	 "counter, counters"},
	{"counter", {"ns::counter", "ns::encounter", "a::b::counter"},
	 "a::b::counter, ns::counter, ns::encounter"},
	/* the order of offering does not matter, nor does repetition */
	{"table", {"tables", "stable", "cable", "tables", "able", "label"},
	 "able, cable, stable"},
	{"table", {"able", "label", "cable", "tables", "stable"},
	 "able, cable, stable"},
	/* short names are like few others */
	{"x", {"y", "xy", "xyz", "main"}, "xy, y"},
	{"abc", {"xyz", "abcd", "xabcde"}, "abcd, xabcde"},
	{"ssl", {"libc.so.6", "libssl.so.3"}, "libssl.so.3"},
	{"ab", {"xxabxx"}, ""},
	/* a part is less like than one of few edits */
	{"counter", {"a_counter_b", "xcountery", "counte", "countre",
	 "counters"}, "counte, counters, a_counter_b"},
	{"counter", {"pointer", "main", "", "fountains"}, "pointer"},
	/* other parameters */
	{"f(long int)", {"f(int)", "ff(long)", "g(long int)", "f"},
	 "f(int), g(long int)"},
	{"", {"a", "b"}, ""},
};

TEST(finds_the_nearest)
{
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct nearest near;
		struct buffer b = {0};

		nearest_begin(&near, cases[i].want);
		for (unsigned j = 0; j < 8 && cases[i].offered[j] != NULL; j++)
			nearest_offer(&near, cases[i].offered[j]);
		nearest_put(&near, &b);
		assert_string_equal(buffer_text(&b), cases[i].near);
		nearest_free(&near);
		buffer_free(&b);
	}
}

TEST(bounds_what_it_compares)
{
	size_t len = 1 << 20;
	char *name = malloc(len + 1);
	struct nearest near;

	assert_non_null(name);
	memset(name, 'a', len);
	name[len] = '\0';
	nearest_begin(&near, "aaaaaaa");
	nearest_offer(&near, name);
	assert_int_equal(near.n, 0);
	nearest_free(&near);
	nearest_begin(&near, name);
	nearest_offer(&near, "aaaaaaa");
	assert_int_equal(near.n, 0);
	nearest_offer(&near, name);
	assert_int_equal(near.n, 0);
	nearest_free(&near);
	free(name);
}

RUN_TESTS()
