/*
 * condition: which conditions there are, what is wrong with others and where,
 * and what they are worth: the same as the compiler says, for each type of C's.
 */
#include "test.h"

#include <errno.h>
#include <float.h>
#include <limits.h>
#include <string.h>

#include "spec/condition.h"

/* what is checked is what C does, not how one writes it */
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wparentheses"
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wextra"
#ifdef __clang__
#pragma GCC diagnostic ignored "-Wall"
#else
#pragma GCC diagnostic ignored "-Wbool-compare"
#pragma GCC diagnostic ignored "-Wbool-operation"
#pragma GCC diagnostic ignored "-Wlogical-not-parentheses"
#pragma GCC diagnostic ignored "-Wint-in-bool-context"
#pragma GCC diagnostic ignored "-Wdouble-promotion"
#pragma GCC diagnostic ignored "-Wfloat-equal"
#pragma GCC diagnostic ignored "-Woverflow"
#endif

/* --- a hit --- */

static struct ex_number values[CONDITION_CPU + 1];
static unsigned known = ~0u;	/* bit of an enum condition_name */
static unsigned asked;		/* likewise: since it was set to 0 */

static bool
number(void *arg, enum condition_name name, struct ex_number *out)
{
	(void)arg;
	asked |= 1u << name;
	*out = values[name];
	return (known >> name & 1) != 0;
}

static bool
enumerator(void *arg, const char *text, struct ex_number *out)
{
	(void)arg;
	*out = ex_number_int(2);
	return strcmp(text, "OPEN") == 0;
}

static enum condition_truth
text(void *arg, enum condition_name name, const char *is)
{
	(void)arg;
	asked |= 1u << name;
	if ((known >> name & 1) == 0)
		return CONDITION_UNKNOWN;
	return strcmp(is, name == CONDITION_COMM ? "worker" :
	    name == CONDITION_ACCESS ? "write" : "user") == 0 ?
	    CONDITION_TRUE : CONDITION_FALSE;
}

/* in("here"), caller("main"); of others it is not known. */
static enum condition_truth
call(void *arg, const struct condition_node *node)
{
	(void)arg;
	if (strcmp(node->text, "unknown") == 0)
		return CONDITION_UNKNOWN;
	return strcmp(node->text, node->kind == CONDITION_IN ? "here" :
	    "main") == 0 ? CONDITION_TRUE : CONDITION_FALSE;
}

static const struct condition_hit hit = {number, enumerator, text, call, NULL};

static enum condition_truth
truth(const char *condition)
{
	struct condition_error error;
	struct condition c;
	enum condition_truth result;

	if (condition_parse(condition, &c, &error) != 0)
		fail_msg("%s: %s (column %u)", condition, error.text,
		    error.column);
	result = condition_holds(&c, &hit);
	condition_free(&c);
	return result;
}

static void
expect(const char *condition, enum condition_truth wanted)
{
	if (truth(condition) != wanted)
		fail_msg("%s is %d, not %d", condition, truth(condition),
		    wanted);
}

static int
set_up(void **state)
{
	(void)state;
	known = ~0u;
	values[CONDITION_OLD] = values[CONDITION_NEW] = ex_number_int(5);
	values[CONDITION_CHANGED] = ex_number_int(0);
	values[CONDITION_COUNT] = ex_number_integer(100, 8, true);
	values[CONDITION_TID] = ex_number_int(42);
	values[CONDITION_PID] = ex_number_int(40);
	values[CONDITION_CPU] = ex_number_int(1);
	return 0;
}

/* --- what the compiler says --- */

#define SAME(expression)						\
	expect(#expression, (expression) ? CONDITION_TRUE : CONDITION_FALSE)

TEST(precedence)
{
	SAME(1 + 2 * 3 == 7);
	SAME(10 - 4 - 3 == 3);
	SAME(100 / 10 / 5 == 2);
	SAME(7 % 4 * 2 == 6);
	SAME(1 << 2 + 1 == 8);
	SAME((1 << 2 + 1) == 8);
	SAME(1 << 1 << 2 == 8);
	SAME(-1 >> 1 == -1);
	SAME(1 < 2 == 1);
	SAME(3 > 2 > 1);
	SAME(2 == 2 != 0);
	SAME(6 & 3 == 3);
	SAME((6 & 3) == 3);
	SAME(6 & 1 ^ 1);
	SAME(4 | 1 ^ 5 & 4);
	SAME(1 || 0 && 0);
	SAME((1 || 0) && 0);
	SAME(0 || 1 && 1);
	SAME(!1 == 0);
	SAME(!(1 == 0));
	SAME(~0 == -1);
	SAME(- 1 + 2 == 1);
	SAME(-(1 + 2) == -3);
	SAME(- - 3 == 3);
	SAME(1 ? 0 : 1);
	SAME(0 ? 0 : 1 ? 2 : 3);
	SAME((0 ? 0 : 1 ? 0 : 3) == 0);
	SAME(1 ? 1 ? 0 : 1 : 1);
	SAME(1 == 1 ? 1 : 0);
	SAME((unsigned char)255 + 1 == 256);
	SAME((unsigned char)(255 + 1) == 0);
	SAME((char)200 < 0);
	SAME(-(unsigned char)1 < 0);
	SAME((int)3.9 == 3);
	SAME((int)-3.9 == -3);
	SAME((unsigned)-1 > 0);
	SAME((double)1 / 4 == 0.25);
	SAME((float)0.1 == 0.1);
	SAME((float)0.1 == 0.1f);
	SAME(0.1f + 0.2f == 0.3f);
	SAME(0.1 + 0.2 == 0.3);
	SAME(0.1L + 0.2L == 0.3L);
	SAME(1 / 3.0f == (float)(1 / 3.0));
	SAME(1e3 == 1000 && 1.e3 == 1000. && .5 == 5e-1);
	SAME(0x1p4 == 16 && 0x.8p0 == 0.5);
	SAME((_Bool)256 == 1 && (_Bool)0.5 == 1);
	SAME((unsigned long long int)-1 == 18446744073709551615u);
	SAME((short)0x18000 == -32768);
}

TEST(constants)
{
	SAME(0x10 == 16 && 010 == 8 && 10 == 10u);
	SAME(-1 < 0u);
	SAME(-1 < 0ul);
	SAME(-1L < 0u);
	SAME(2147483648 > 0);
	SAME(-2147483648 < 0);
	SAME(0x80000000 > 0 && -0x80000000 > 0);
	SAME(0xffffffff == -1);
	SAME(4294967295 == -1);
	SAME(0xffffffffffffffff == -1);
	SAME('a' == 97 && '\n' == 10 && '\x41' == 'A' && '\'' == 39);
	SAME('\377' == -1);
	expect("true && !false && NULL == 0", CONDITION_TRUE);
}

/* A variable of each type, with its numbers at the ends of what it can be, in
   conditions where their types matter. */
#define IN_A_TYPE(name, type)						\
static void								\
set_##name(enum condition_name of, type value)				\
{									\
	struct ex_number *n = &values[of];				\
									\
	*n = (struct ex_number){.is_float = (type)0.5 != 0 &&		\
	    (type)0.5 != 1, .is_signed = (type)-1 < (type)1,		\
	    .size = sizeof(type)};					\
	if (n->is_float)						\
		n->real = (long double)value;				\
	else								\
		*n = ex_number_integer((uint64_t)(int64_t)value,	\
		    n->size, n->is_signed);				\
}									\
									\
static void								\
check_##name(type old, type new)					\
{									\
	set_##name(CONDITION_OLD, old);					\
	set_##name(CONDITION_NEW, new);					\
	SAME(new < 0);							\
	SAME(new <= -1);						\
	SAME(new > 0u);							\
	SAME(new >= -1L);						\
	SAME(new > 100ul);						\
	SAME(new == 255);						\
	SAME(new == 0xff);						\
	SAME(new == 0xffffffff);					\
	SAME(new == 0xffffffffffffffff);				\
	SAME(new == -1);						\
	SAME(new != 0.5);						\
	SAME(new > 0.1f);						\
	SAME(new == old);						\
	SAME(old < new);						\
	SAME(-new < 0);							\
	SAME(+new >= old);						\
	SAME(!new);							\
	SAME(new + 1 > old);						\
	SAME(new - old == 1);						\
	SAME(new * 2u > old);						\
	SAME(new / 3 == old);						\
	SAME(new / -3L < old);						\
	SAME((int)(new / 1000000000000.0) == 0);			\
	SAME((new ? new : -1) > 0);					\
	SAME((old ? 0.5f : new) == 1);					\
	SAME((new < 0 ? new : 1u) > 5);					\
}

#define WHOLE(name, type)						\
static void								\
check_whole_##name(type old, type new)					\
{									\
	set_##name(CONDITION_OLD, old);					\
	set_##name(CONDITION_NEW, new);					\
	SAME(~new == -1);						\
	SAME(~new > old);						\
	SAME(new % 10 == 5);						\
	SAME(new % 7u == old % 7u);					\
	SAME((new & 0x80) != 0);					\
	SAME((new ^ old) == 0xffffffff);				\
	SAME((new | -2) == -1);						\
	SAME(new >> 3 == old >> 3);					\
	SAME((unsigned char)new == new + 0);				\
	SAME((signed char)new == new + 0); \
	SAME((unsigned short)new == old);				\
	SAME((short)new == new);					\
	SAME((unsigned)new == new);					\
	SAME((int)new == new);						\
	SAME((long)new < 0);						\
	SAME((unsigned long)new > 9);					\
	SAME((float)new == new);					\
	SAME((double)new == new);					\
	SAME((long double)new == new);					\
	SAME((_Bool)new == new);					\
}									\
									\
static void								\
check_all_##name(type low, type high)					\
{									\
	const type some[] = {0, 1, 5, 100, 127, (type)-1, low, high};	\
									\
	for (size_t i = 0; i < COUNT(some); i++) {			\
		for (size_t k = 0; k < COUNT(some); k++) {		\
			check_##name(some[i], some[k]);			\
			check_whole_##name(some[i], some[k]);		\
		}							\
	}								\
}

/* what overflows is another matter */
#pragma GCC diagnostic ignored "-Wunused-function"

IN_A_TYPE(signed_char, signed char)
WHOLE(signed_char, signed char)
IN_A_TYPE(unsigned_char, unsigned char)
WHOLE(unsigned_char, unsigned char)
IN_A_TYPE(short, short)
WHOLE(short, short)
IN_A_TYPE(unsigned_short, unsigned short)
WHOLE(unsigned_short, unsigned short)
IN_A_TYPE(int, int)
WHOLE(int, int)
IN_A_TYPE(unsigned, unsigned)
WHOLE(unsigned, unsigned)
IN_A_TYPE(long, long)
WHOLE(long, long)
IN_A_TYPE(unsigned_long, unsigned long)
WHOLE(unsigned_long, unsigned long)
IN_A_TYPE(float, float)
IN_A_TYPE(double, double)
IN_A_TYPE(long_double, long double)

TEST(whole_numbers_of_each_type)
{
	check_all_signed_char(SCHAR_MIN, SCHAR_MAX);
	check_all_unsigned_char(200, UCHAR_MAX);
	check_all_short(SHRT_MIN, SHRT_MAX);
	check_all_unsigned_short(40000, USHRT_MAX);
	check_all_int(INT_MIN / 2, INT_MAX / 2);
	check_all_unsigned(UINT_MAX / 2, UINT_MAX);
	check_all_long(LONG_MIN / 2, LONG_MAX / 2);
	check_all_unsigned_long(1UL << 63, ULONG_MAX);
}

TEST(floating_point_numbers)
{
	static const double some[] = {0, -0.0, 0.5, -1, 255, 0.1, 1e9, -1e-9};

	for (size_t i = 0; i < COUNT(some); i++) {
		for (size_t k = 0; k < COUNT(some); k++) {
			check_float((float)some[i], (float)some[k]);
			check_double(some[i], some[k]);
			check_long_double(some[i], some[k] / 3.0L);
		}
	}
	values[CONDITION_NEW].real = __builtin_nanl("");
	expect("new == new", CONDITION_FALSE);
	expect("new != new", CONDITION_TRUE);
	expect("new < 0 || new >= 0", CONDITION_FALSE);
}

/* --- what is not known --- */

TEST(undefined_is_unknown)
{
	set_int(CONDITION_OLD, 0);
	set_int(CONDITION_NEW, INT_MIN);
	expect("1 / old == 1", CONDITION_UNKNOWN);
	expect("1 % old == 1", CONDITION_UNKNOWN);
	expect("new / -1 > 0", CONDITION_UNKNOWN);
	expect("new % -1 == 0", CONDITION_UNKNOWN);
	expect("1 << new", CONDITION_UNKNOWN);
	expect("1 << 32", CONDITION_UNKNOWN);
	expect("1L << 32 > 0", CONDITION_TRUE);
	expect("(char)1e9", CONDITION_UNKNOWN);
	expect("(unsigned)-1.0", CONDITION_UNKNOWN);
	expect("old != 0 && 1 / old == 1", CONDITION_FALSE);
	/* an object of floating point has neither remainder nor bits */
	set_float(CONDITION_NEW, 1.5f);
	expect("new % 2", CONDITION_UNKNOWN);
	expect("new & 1", CONDITION_UNKNOWN);
	expect("~new", CONDITION_UNKNOWN);
	expect("new << 1", CONDITION_UNKNOWN);
	expect("new / old > 1e30", CONDITION_TRUE);
}

TEST(no_more_is_unknown_than_must_be)
{
	static const struct {
		const char *condition;
		enum condition_truth truth;
	} all[] = {
		{"new", CONDITION_UNKNOWN}, {"!new", CONDITION_UNKNOWN},
		{"new == new", CONDITION_UNKNOWN},
		{"new + 1 > 0", CONDITION_UNKNOWN},
		{"new && 0", CONDITION_FALSE}, {"0 && new", CONDITION_FALSE},
		{"new && 1", CONDITION_UNKNOWN},
		{"1 && new", CONDITION_UNKNOWN},
		{"new || 1", CONDITION_TRUE}, {"1 || new", CONDITION_TRUE},
		{"new || 0", CONDITION_UNKNOWN},
		{"0 || new", CONDITION_UNKNOWN},
		{"!(new && 0)", CONDITION_TRUE},
		{"(new || 1) + 1 == 2", CONDITION_TRUE},
		{"(new && 1) + 1 == 2", CONDITION_UNKNOWN},
		{"new ? 1 : 0", CONDITION_UNKNOWN},
		{"new ? 3 : 3", CONDITION_TRUE},
		{"1 ? 3 : new", CONDITION_TRUE},
		{"0 ? new : 0", CONDITION_FALSE},
		{"1 ? new : 3", CONDITION_UNKNOWN},
		{"(1 ? 3 : new) == 3", CONDITION_UNKNOWN},
		{"0 ? 1 / (1 - 1 * 1) : 2", CONDITION_TRUE},
		{"OPEN == 2", CONDITION_TRUE}, {"CLOSED", CONDITION_UNKNOWN},
		{"in(\"unknown\")", CONDITION_UNKNOWN},
		{"caller(\"unknown\") || caller(\"main\")", CONDITION_TRUE},
		{"in(\"unknown\") && in(\"there\")", CONDITION_FALSE},
	};

	known &= ~(1u << CONDITION_NEW);
	for (size_t i = 0; i < COUNT(all); i++)
		expect(all[i].condition, all[i].truth);
}

TEST(names)
{
	expect("old == 5 && new == old && !changed", CONDITION_TRUE);
	expect("count % 50 == 0 && tid == 42 && pid == 40 && cpu",
	    CONDITION_TRUE);
	expect("comm == \"worker\" && \"write\" == access", CONDITION_TRUE);
	expect("comm != \"worker\" || access != \"write\"", CONDITION_FALSE);
	expect("origin == \"user\" && !(origin == \"kernel\")",
	    CONDITION_TRUE);
	expect("in(\"here\") && !in(\"there\")", CONDITION_TRUE);
	expect("caller ( \"main\" ) - caller(\"other\") == 1", CONDITION_TRUE);
	expect("new == OPEN + 3", CONDITION_TRUE);
	/* names that others begin with */
	expect("older || newest || counts || include", CONDITION_UNKNOWN);
	known = 0;
	expect("comm == \"worker\"", CONDITION_UNKNOWN);
	expect("comm != \"worker\"", CONDITION_UNKNOWN);
}

/* What is found out more quickly is looked at first, and decides alone. */
TEST(the_cheap_parts_come_first)
{
	static const char *const conditions[] = {
		"new < 0 && tid == 1", "tid == 1 && new < 0",
		"old > new && new < 0 && tid == 1",
		"!(new < 0 || tid == 42)",
	};

	for (size_t i = 0; i < COUNT(conditions); i++) {
		asked = 0;
		expect(conditions[i], CONDITION_FALSE);
		assert_int_equal(asked, 1u << CONDITION_TID);
	}
}

/* --- what is wrong --- */

TEST(errors_point_at_their_column)
{
	static const struct {
		const char *condition;
		unsigned column;
		const char *what;
	} all[] = {
		{"", 1, "a value is missing"},
		{"   ", 4, "a value is missing"},
		{"new <", 6, "a value is missing"},
		{"new < ", 7, "a value is missing"},
		{"< new", 1, "a value is missing"},
		{"new <> 3", 6, "a value is missing"},
		{"new 3", 5, "an operator is missing"},
		{"new == 3 old", 10, "an operator is missing"},
		{"new = 3", 5, "== compares"},
		{"new += 3", 6, "nothing is assigned"},
		{"new <<= 3", 7, "nothing is assigned"},
		{"new++", 6, "a value is missing"},
		{"++new", 1, "no ++"},
		{"1 + --new", 5, "no ++"},
		{"*new", 1, "memory is not read"},
		{"1 && &new", 6, "memory is not read"},
		{"new->x", 5, "a value is missing"},
		{"new.x", 4, "an operator is missing"},
		{"new[1]", 4, "an operator is missing"},
		{"(new", 5, "')' is missing"},
		{"(new < 0", 9, "')' is missing"},
		{"new)", 4, "no '('"},
		{"()", 2, "a value is missing"},
		{"1 ? 2", 6, "':' is missing"},
		{"1 ? 2 :", 8, "a value is missing"},
		{"1 : 2", 3, "an operator is missing"},
		{"1, 2", 2, "an operator is missing"},
		{"\"worker\"", 1, "a string"},
		{"comm", 1, "a string"},
		{"!comm", 2, "a string"},
		{"comm + 1", 1, "a string"},
		{"1 && comm", 6, "a string"},
		{"comm < \"a\"", 1, "a string"},
		{"comm == 3", 9, "compared with a string"},
		{"comm == origin", 9, "compared with a string"},
		{"\"a\" == \"a\"", 8, "compared with a string"},
		{"new == \"a\"", 8, "compared with a string"},
		{"comm == \"worker", 9, "not closed"},
		{"access == \"wri\"", 11, "no such access"},
		{"\"exec\" == access", 1, "no such access"},
		{"origin != \"app\"", 11, "no such origin"},
		{"in", 3, "'(' is missing"},
		{"in()", 4, "name is missing"},
		{"in(f)", 4, "name is missing"},
		{"in(\"\")", 4, "a function has a name"},
		{"caller(\"f\"", 11, "')' is missing"},
		{"new < 0 && f(3)", 12, "no such function"},
		{"Color::RED", 1, "without its type"},
		{"1.5 % 2", 5, "floating-point"},
		{"2 << 1.0", 3, "floating-point"},
		{"~1.5", 1, "floating-point"},
		{"new & (float)1", 5, "floating-point"},
		{"new / 0", 5, "divides by zero"},
		{"new % 0x0", 5, "divides by zero"},
		{"1x", 2, "not a digit"},
		{"0x", 3, "hexadecimal"},
		{"089", 2, "not a digit"},
		{"1.5.2", 4, "not a digit"},
		{"1e", 2, "not a digit"},
		{"99999999999999999999", 1, "64 bits"},
		{"''", 1, "character"},
		{"'ab'", 1, "character"},
		{"(char *)new", 1, "a cast"},
		{"(void)new", 1, "a cast"},
		{"(int &)new", 1, "a cast"},
		{"(int)", 6, "a value is missing"},
		{"(int)comm", 6, "a string"},
		{"new # 2", 5, "an operator is missing"},
		{"\x01", 1, "a value is missing"},
	};

	for (size_t i = 0; i < COUNT(all); i++) {
		struct condition_error error = {0};
		struct condition c;

		if (condition_parse(all[i].condition, &c, &error) != -EINVAL)
			fail_msg("%s is accepted", all[i].condition);
		if (error.column != all[i].column ||
		    strstr(error.text, all[i].what) == NULL)
			fail_msg("%s: %s (column %u)", all[i].condition,
			    error.text, error.column);
		condition_free(&c);
	}
}

/* Bounded, whatever is nested in what. */
TEST(neither_depth_nor_length_is_unbounded)
{
	static const char *const parts[] = {"(", "!", "-(", "1?", "1?1:",
	    "(int)", "1+", "1||"};
	static char condition[50001];

	for (size_t i = 0; i < COUNT(parts); i++) {
		struct condition_error error = {0};
		struct condition c;

		condition[0] = '\0';
		for (size_t n = 0; n < 10000; n++)
			memcpy(condition + n * strlen(parts[i]), parts[i],
			    strlen(parts[i]) + 1);
		assert_int_equal(condition_parse(condition, &c, &error),
		    -EINVAL);
		assert_true(strstr(error.text, "too deeply") != NULL ||
		    strstr(error.text, "too long") != NULL);
		condition_free(&c);
	}
}

RUN_TESTS(.before_each = set_up)
