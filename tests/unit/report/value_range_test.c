/* value_range: what is known of the values of several hits. */
#include "test.h"

#include "made_hits.h"
#include "report/value_range.h"

/* A hit, with what it left. */
struct left {
	long value;
	enum ex_value_source source;
	const char *access;	/* NULL: write */
	unsigned at, len;	/* of what it touched; 0: all */
	bool unknown;		/* one of its bytes is */
};

static struct ex_hit
hit_of(const struct left *left)
{
	struct ex_hit hit = made_hit(1);
	const bool read = left->access != NULL &&
	    strcmp(left->access, "read") == 0;
	struct ex_value *value = read ? &hit.old : &hit.new;

	if (left->access != NULL)
		hit.access = left->access;
	hit.source = read ? EX_VALUE_UNKNOWN : left->source;
	hit.addr += left->at;
	hit.len = left->len != 0 ? left->len : hit.len;
	memcpy(value->byte, &left->value, sizeof(left->value));
	value->known = left->unknown ? 0xef : 0xff;
	return hit;
}

static void
expect_known(const struct range_value *v, const char *expected)
{
	struct buffer b = {0};

	assert_int_equal(v->known, expected != NULL);
	if (expected == NULL)
		return;
	value_range_put_hex(&b, v);
	buffer_put(&b, "", 1);
	assert_string_equal(b.bytes, expected);
	buffer_free(&b);
}

#define KNOWN EX_VALUE_REGISTER
static const struct {
	struct left left[3];	/* up to the one that has no source */
	bool is_typed, is_signed;
	const char *first, *last, *least, *largest;
} cases[] = {
	{{{5, KNOWN}}, true, true, "0x5", "0x5", "0x5", "0x5"},
	{{{5, KNOWN}, {-1, EX_VALUE_STOP}, {3, EX_VALUE_PROVED}}, true, true,
	    "0x5", "0x3", "0xffffffffffffffff", "0x5"},
	/* without a sign */
	{{{5, KNOWN}, {-1, EX_VALUE_IMMEDIATE}, {3, EX_VALUE_DERIVED}}, true,
	    false, "0x5", "0x3", "0x3", "0xffffffffffffffff"},
	{{{5, KNOWN}, {-1, KNOWN}, {3, KNOWN}}, false, true,
	    "0x5", "0x3", "0x3", "0xffffffffffffffff"},
	/* of one it is not proved */
	{{{5, KNOWN}, {9, EX_VALUE_LATER}, {3, KNOWN}}, true, true,
	    "0x5", "0x3", NULL, NULL},
	{{{5, EX_VALUE_LATER}, {9, KNOWN}, {3, KNOWN}}, true, true,
	    NULL, "0x3", NULL, NULL},
	{{{5, KNOWN}, {9, KNOWN}, {3, EX_VALUE_LATER}}, true, true,
	    "0x5", NULL, NULL, NULL},
	{{{5, KNOWN}, {9, KNOWN, .unknown = true}, {3, KNOWN}}, true, true,
	    "0x5", "0x3", NULL, NULL},
	/* of other bytes */
	{{{5, KNOWN}, {1, KNOWN, .len = 4}, {3, KNOWN}}, true, true,
	    "0x5", "0x3", NULL, NULL},
	{{{5, KNOWN, .len = 4}, {1, KNOWN, .at = 4, .len = 4}}, true, true,
	    "0x5", "0x0", NULL, NULL},
	{{{5, KNOWN, .at = 1, .len = 3}}, true, true, "0x0", "0x0", NULL, NULL},
	/* reads find values */
	{{{7, KNOWN, "read"}, {6, KNOWN, "read"}}, true, true,
	    "0x7", "0x6", "0x6", "0x7"},
	{{{7, KNOWN, "read-write"}, {8, KNOWN}}, true, true,
	    "0x7", "0x8", "0x7", "0x8"},
};

TEST(what_is_proved_of_several)
{
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct value_range range = {.first = {.known = false}};

		is_number = true;
		made_number.is_signed = cases[i].is_signed;
		for (unsigned k = 0; k < 3 && cases[i].left[k].source !=
		    EX_VALUE_UNKNOWN; k++) {
			struct ex_hit hit = hit_of(&cases[i].left[k]);

			hit.process = cases[i].is_typed ? MADE_PROCESS : NULL;
			ex_hit_change(&hit);
			value_range_add(&range, &hit, k == 0);
		}
		print_message("%zu\n", i);
		expect_known(&range.first, cases[i].first);
		expect_known(&range.last, cases[i].last);
		expect_known(&range.least, cases[i].least);
		expect_known(&range.largest, cases[i].largest);
	}
}

/* What came before was taken down by nobody. */
TEST(one_that_is_not_the_first)
{
	struct value_range range = {.first = {.known = false}};
	const struct ex_hit hit = made_hit(2);
	struct ex_hit made = hit;

	ex_hit_change(&made);
	value_range_add(&range, &made, false);
	expect_known(&range.first, NULL);
	expect_known(&range.last, "0x2a");
	expect_known(&range.least, NULL);
	expect_known(&range.largest, NULL);
}

/* A value's text is the program's; a long one ends in dots. */
TEST(for_a_reader)
{
	struct value_range range = {.first = {.known = false}};
	struct ex_hit hit = made_hit(1);
	struct buffer b = {0};

	hit.process = MADE_PROCESS;
	ex_hit_change(&hit);
	value_range_add(&range, &hit, true);
	value_range_put(&b, &range.first);
	memset(hit.change.new_text, 'x', 255);
	hit.change.new_text[255] = '\0';
	value_range_add(&range, &hit, false);
	value_range_put(&b, &range.last);
	hit.change.new_text[0] = '\0';
	value_range_add(&range, &hit, false);
	value_range_put(&b, &range.last);
	buffer_put(&b, "", 1);
	assert_string_equal(b.bytes, "<42>xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
	    "...42");
	buffer_free(&b);
}

/* Code has no value. */
TEST(execution_has_none)
{
	static const struct ex_watch code = {
		.id = 1, .spec = "f", .addr = 0x404090, .len = 8,
		.access = WP_EXEC,
	};
	struct value_range range = {.first = {.known = true}};
	struct ex_hit hit = made_hit(1);

	hit.watch = &code;
	ex_hit_change(&hit);
	value_range_add(&range, &hit, true);
	expect_known(&range.first, NULL);
	expect_known(&range.last, NULL);
}

/* Hits that were counted, all or some with values, before and behind others. */
TEST(counted_hits_widen_it)
{
	const struct left left = {5, KNOWN};
	struct ex_hit hit = hit_of(&left);
	struct wp_target_tally tally = {
		.count = 3, .values = 3, .has_first = true, .has_last = true,
		.first_value = 2, .last_value = UINT64_MAX, .least = 2,
		.largest = UINT64_MAX, .least_signed = -1, .largest_signed = 9,
	};
	struct value_range range = {0};

	hit.process = NULL;
	value_range_tally(&range, &hit, &tally, true,
	    VALUE_RANGE_FIRST | VALUE_RANGE_LAST);
	expect_known(&range.first, "0x2");
	expect_known(&range.last, "0xffffffffffffffff");
	expect_known(&range.least, "0x2");
	expect_known(&range.largest, "0xffffffffffffffff");
	tally.least = 1;
	tally.has_last = false;
	tally.first_value = 1;
	value_range_tally(&range, &hit, &tally, false, VALUE_RANGE_FIRST);
	expect_known(&range.first, "0x1");
	expect_known(&range.last, "0xffffffffffffffff");
	expect_known(&range.least, "0x1");
	hit = hit_of(&left);
	value_range_add_late(&range, &hit);
	expect_known(&range.last, "0xffffffffffffffff");
	hit.process = NULL;
	tally.values = 2;
	value_range_tally(&range, &hit, &tally, false, VALUE_RANGE_LAST);
	expect_known(&range.first, "0x1");
	expect_known(&range.last, NULL);
	expect_known(&range.least, NULL);
	expect_known(&range.largest, NULL);
}

RUN_TESTS()
