/*
 * judge, sieve: what a condition's names are worth for a hit, and what is not
 * known of one; which hits are left out, and that another sieve goes on alike.
 */
#include "test.h"

#include <errno.h>
#include <string.h>

#include "insn/jump_index.h"
#include "symbol/line.h"
#include "made_hits.h"
#include "policy/hit_condition.h"
#include "policy/hit_filter.h"
#include "said.h"

/* --- what libexplain would say --- */

bool
ex_object_is_number(const struct ex_object *object)
{
	(void)object;
	return is_number;
}

bool
ex_object_enumerator(const struct ex_object *object, const char *name,
    struct ex_number *out)
{
	(void)object;
	*out = ex_number_int(0x2a);
	return strcmp(name, "ANSWER") == 0;
}

bool
ex_symbol_at(struct ex_module *module, uint64_t vaddr, struct ex_symbol *out)
{
	(void)module;
	(void)vaddr;
	(void)out;
	return false;
}

unsigned
ex_lines_at(struct ex_module *module, uint64_t vaddr,
    struct ex_line out[EX_LINES_MAX])
{
	(void)module;
	(void)vaddr;
	(void)out;
	return 0;
}

const struct ex_frames *
ex_symbol_frames(struct ex_module *module, uint64_t vaddr, uint64_t lookup)
{
	(void)module;
	(void)vaddr;
	(void)lookup;
	return NULL;
}

int
ex_jump_index_each(struct ex_module *const *in, unsigned n,
    struct ex_module *of,
    uint64_t vaddr, int (*fn)(void *, struct ex_module *, uint64_t), void *arg)
{
	(void)in;
	(void)n;
	(void)of;
	(void)vaddr;
	(void)fn;
	(void)arg;
	return 0;
}

bool
ex_jump_index_anywhere(struct ex_module *const *in, unsigned n,
    int (*fn)(void *, struct ex_module *, uint64_t), void *arg)
{
	(void)in;
	(void)n;
	(void)fn;
	(void)arg;
	return false;
}

/* --- judging --- */

static struct ex_hit hit;

static int
set_up(void **state)
{
	(void)state;
	hit = made_hit(1);
	hit.process = MADE_PROCESS;
	is_number = true;
	made_number = ex_number_integer(0, 8, true);
	return 0;
}

static void
expect(const char *condition, enum condition_truth wanted)
{
	struct condition_error error;
	struct condition c;
	struct hit_condition *judge;
	enum condition_truth truth;

	assert_int_equal(condition_parse(condition, &c, &error), 0);
	judge = hit_condition_new(&c);
	assert_non_null(judge);
	ex_hit_change(&hit);
	for (int i = 0; i < 2; i++) {	/* the second is remembered */
		truth = hit_condition_truth(judge, &hit, 7);
		if (truth != wanted)
			fail_msg("%s is %d, not %d", condition, truth, wanted);
	}
	hit_condition_free(judge);
	condition_free(&c);
}

#define YES(condition) expect(condition, CONDITION_TRUE)
#define NO(condition) expect(condition, CONDITION_FALSE)
#define UNKNOWN(condition) expect(condition, CONDITION_UNKNOWN)

TEST(what_is_known)
{
	YES("old == 41 && new == 42 && changed && count == 7");
	YES("tid == 4340 && pid == 4335 && cpu == 1 && comm == \"victim\"");
	YES("access == \"write\" && origin == \"user\" && new == ANSWER");
	NO("access != \"write\" || access == \"read\"");
	NO("origin == \"kernel\" || comm == \"victi\"");
	hit.cpu = UINT32_MAX;
	UNKNOWN("cpu == 1");
	hit.comm[0] = '\0';
	UNKNOWN("comm == \"victim\"");
	UNKNOWN("comm != \"victim\"");
	hit.pid = -1;
	UNKNOWN("pid == 4335");
	hit.kernel = true;
	YES("origin == \"kernel\"");
}

TEST(values_have_their_type)
{
	memset(hit.new.byte, 0xff, 8);
	YES("new == -1 && new < 0");
	made_number = ex_number_integer(0, 8, false);
	NO("new < 0");
	made_number = ex_number_integer(0, 2, true);
	made_object.size = 2;
	YES("new < 0");
	made_number = ex_number_integer(0, 2, false);
	NO("new < 0");
	YES("new == 65535");
	is_number = false;
	UNKNOWN("new < 0");
	UNKNOWN("new == old");
	made_object.size = 8;
}

/* An object that is watched in part is a number without a type: the sign is not
   known. */
TEST(values_without_a_type)
{
	for (int i = 0; i < 2; i++) {
		hit.process = i == 0 ? NULL : MADE_PROCESS;
		made_object.size = i == 0 ? 8 : 16;
		memset(hit.new.byte, 0xff, 8);
		UNKNOWN("new < 0");
		YES("(long)new < 0");
		NO("(unsigned long)new < 0");
		YES("new == -1 && new == 0xffffffffffffffff");
		YES("new != old");
		YES("new < 0 || tid == 4340");
		memset(hit.new.byte, 0x7f, 8);
		NO("new < 0");
		YES("new > 0");
	}
	made_object.size = 8;
	/* of a wider watch, what was touched */
	hit.process = NULL;
	hit.watch = &made_watches[1];
	hit.addr = hit.watch->addr + 4;
	hit.len = 2;
	hit.new.byte[4] = 0xfe;
	hit.new.byte[5] = 0x01;
	YES("new == 0x1fe");
	hit.len = 3;
	UNKNOWN("new == 0x1fe");
}

TEST(what_is_not_proved_decides_nothing)
{
	hit.source = EX_VALUE_LATER;
	UNKNOWN("new == 42");
	UNKNOWN("changed");
	YES("old == 41");
	hit.source = EX_VALUE_STOP;
	YES("new == 42");
	hit.old.known = 0x0f;
	UNKNOWN("old == 41");
	YES("changed");		/* by the first byte */
	hit.old.byte[0] = hit.new.byte[0];
	UNKNOWN("changed");
	hit.old.known = 0xff;
	NO("changed");
	hit.source = EX_VALUE_UNKNOWN;
	UNKNOWN("new == 42");
	hit.unchanged = true;
	NO("changed");
}

TEST(reads_and_execution)
{
	hit.access = "read";
	hit.source = EX_VALUE_UNKNOWN;
	YES("new == 41 && old == 41 && !changed");
	YES("access == \"read\" && access != \"write\"");
	hit.access = "read-write";
	YES("access == \"read\" && access == \"write\"");
	YES("access == \"read-write\" && access != \"execute\"");
	hit.access = "access";
	UNKNOWN("access == \"read\"");
	UNKNOWN("access != \"write\"");
	NO("access == \"execute\"");
	hit.access = "execute";
	YES("access == \"execute\"");
}

static struct ex_stack stack;	/* of the hit, changed */

static void
take_stack(const struct ex_stack *from)
{
	stack = *from;
	hit.stack = &stack;
}

TEST(functions)
{
	YES("in(\"bump\") && !in(\"main\") && caller(\"main\")");
	NO("in(\"ns::level<int, long>\") || caller(\"bump\")");
	YES("caller(\"ns::level*\") && caller(\"__libc_start_call_main\")");
	NO("caller(\"other\") || in(\"victim.c\")");
	/* what is not whole may have more callers, but it has those */
	take_stack(&made_plain);
	stack.end = EX_END_STACK;
	UNKNOWN("caller(\"other\")");
	YES("caller(\"main\")");
	NO("in(\"other\")");
	/* late: it is not the access's */
	hit.late = true;
	UNKNOWN("in(\"bump\")");
	UNKNOWN("caller(\"main\")");
	hit.late = false;
	/* a call that made the access has entered the innermost already */
	hit.insn.pc = 0x401000;
	UNKNOWN("in(\"bump\")");
	hit.insn.pc = 0x401320;
	hit.insn.confidence = EX_AMBIGUOUS;
	UNKNOWN("in(\"bump\")");
	hit.stack = NULL;
	UNKNOWN("in(\"bump\")");
}

TEST(inlined_functions_are_in_each_other)
{
	take_stack(&made_plain);
	stack.frame++;
	stack.n--;
	YES("in(\"ns::level<int, long>\") && in(\"main\")");
	NO("in(\"__libc_start_call_main\")");
	YES("caller(\"main\") && !caller(\"ns::level<int, long>\")");
}

TEST(functions_without_a_name)
{
	hit = made_kernel_hit(1);
	hit.process = MADE_PROCESS;
	UNKNOWN("in(\"read\")");
	UNKNOWN("in(\"ksys_read\")");
	UNKNOWN("caller(\"main\")");
	hit = made_tail_hit(1);
	YES("in(\"set\") && caller(\"main\")");
	UNKNOWN("caller(\"other\")");
}

static int
check(const char *condition, const struct ex_object *object, char **said)
{
	struct condition_error error;
	struct condition c;
	int err;

	assert_int_equal(condition_parse(condition, &c, &error), 0);
	said_begin(STDERR_FILENO);
	err = hit_condition_check(&c, object);
	*said = said_end(STDERR_FILENO);
	condition_free(&c);
	return err;
}

TEST(enumerators_are_the_watched_type_s)
{
	char *said;

	assert_int_equal(check("new == ANSWER", &made_object, &said), 0);
	assert_string_equal(said, "");
	assert_int_equal(check("new == ANSWER || new == WRONG", &made_object,
	    &said), -EINVAL);
	assert_holds(said, "'WRONG'");
	assert_holds(said, "type long (column 25)\n");
	assert_int_equal(check("new == ANSWER", NULL, &said), -EINVAL);
	assert_holds(said, "debug information (column 8)\n");
	assert_int_equal(check("new == 3", NULL, &said), 0);
	is_number = false;	/* its members may be of that type */
	assert_int_equal(check("new == ANSWER", &made_object, &said), 0);
}

/* --- sieves --- */

static struct options options;
static struct hit_condition *judge;	/* by its condition; NULL: it has
				   none */

static struct hit_filter *
hit_filter_with(struct options with, const char *condition)
{
	struct condition_error error;
	struct hit_filter *s;

	options = with;
	if (condition != NULL) {
		assert_int_equal(condition_parse(condition, &options.condition,
		    &error), 0);
		judge = hit_condition_new(&options.condition);
		assert_non_null(judge);
	}
	s = hit_filter_new(&options);
	assert_non_null(s);
	return s;
}

static void
done(struct hit_filter *s)
{
	hit_filter_free(s);
	hit_condition_free(judge);
	judge = NULL;
	condition_free(&options.condition);
}

/* 'r': rejected, 's': skipped, '+': reported, '?': and unsure. */
static char
pass(struct hit_filter *s)
{
	ex_hit_change(&hit);
	hit.unsure = false;
	if (hit_condition_rejects(judge, &hit, hit_filter_count(s, &hit)))
		return 'r';
	return hit_filter_skips(s, &hit) ? 's' : hit.unsure ? '?' : '+';
}

static void
expect_passed(struct hit_filter *s, const char *wanted)
{
	char got[64] = "";

	for (size_t i = 0; i < strlen(wanted); i++)
		got[i] = pass(s);
	assert_string_equal(got, wanted);
}

TEST(each_nth_of_a_watch)
{
	struct hit_filter *s = hit_filter_with((struct options){.every = 3},
	    NULL);

	expect_passed(s, "ss+ss+s");
	hit.watch = &made_watches[2];	/* it counts for itself */
	hit.addr = hit.watch->addr;
	expect_passed(s, "ss+");
	hit = made_hit(1);
	expect_passed(s, "s+");
	done(s);
}

TEST(a_condition_comes_first)
{
	struct hit_filter *s = hit_filter_with((struct options){.every = 2},
	    "count % 2 == 0");

	expect_passed(s, "rsr+rsr+");
	done(s);
}

TEST(each_backtrace_once)
{
	struct hit_filter *s = hit_filter_with((struct options){.once = true},
	    NULL);

	expect_passed(s, "+ss");
	hit.stack = &made_kernel;
	expect_passed(s, "+s");
	hit.late = true;
	expect_passed(s, "+s");
	hit.stack = NULL;	/* which it is, is not known */
	expect_passed(s, "++");
	done(s);
}

TEST(a_maximum_rate)
{
	struct hit_filter *s = hit_filter_with((struct options){.max_rate = 2},
	    NULL);

	hit.time = 5000000000;
	expect_passed(s, "++ss");
	hit.time += 999999999;
	expect_passed(s, "s");
	hit.time += 1;
	expect_passed(s, "++s");
	hit.time += 5500000000;
	expect_passed(s, "+");
	hit.time += 600000000;
	expect_passed(s, "+s");
	done(s);
}

TEST(lost_hits_have_no_number)
{
	struct hit_filter *s = hit_filter_with((struct options){0},
	    "count == 2");

	expect_passed(s, "r+r");
	hit_filter_lost(s);
	expect_passed(s, "??");
	done(s);
}

/* One that was told what became of hits stands where the other does; and one
   that goes on from there does the same. */
TEST(another_goes_on)
{
	const struct options with = {.every = 2, .max_rate = 3, .once = true};
	struct hit_filter *s = hit_filter_with(with, "count != 3");
	struct hit_filter *told, *next;
	const struct hit_filter_count *count;
	struct hit_filter_place place;
	size_t n;

	told = hit_filter_new(&options);
	next = hit_filter_new(&options);
	assert_true(told != NULL && next != NULL);
	for (const char *p = "s+rss"; *p != '\0'; p++) {
		assert_int_equal(pass(s), *p);
		hit_filter_took(told, hit.watch, *p != 'r', *p == '+',
		    hit.time);
	}
	hit_filter_state(told, &place, &count, &n);
	assert_true(hit_filter_resume(next, &place, count, n));
	hit_filter_recall(next, &hit);
	for (unsigned i = 0; i < 12; i++) {
		const struct ex_stack *const stacks[] = {
			&made_plain, &made_kernel, &made_evil, &made_tails,
		};
		struct ex_stack other = *stacks[i / 2 % 4];

		other.index = i;
		hit.stack = &other;
		hit.time += i == 9 ? 2000000000 : 1;
		assert_int_equal(pass(next), pass(s));
	}
	hit_filter_free(told);
	hit_filter_free(next);
	done(s);
}

RUN_TESTS(.before_each = set_up)
