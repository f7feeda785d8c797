/* callers: backtraces that differ have numbers that differ, and what was walked
   once is known again. */
#include "test.h"

#include <string.h>
#include <sys/mman.h>

/* the guard is a library that replaces malloc: only this part of it is here */
#include "guard/callers.c"	/* NOLINT(bugprone-suspicious-include) */

struct hg_state hg_state = {.nthreads = 1};

static struct hg_thread thread;
static struct {
	struct hg_record record;
	uint64_t above[32];
} top;
static uint64_t *const stack = top.above;
static unsigned steps;

/* How functions go on, by their return addresses. */
enum { LEAF = 0x101000, MIDDLE = 0x102000, BY_BP = 0x103000,
	OUTER = 0x104000, OTHER = 0x105000 };

/* None is kept, so that each step is counted. */
_Atomic uint64_t hg_rules[HG_RULES];

struct hg_rule
hg_rule_learn(uint64_t pc)
{
	steps++;
	return (struct hg_rule){
		.how = pc == OUTER || pc == OTHER ? HG_UNKNOWN :
		    pc == BY_BP ? HG_FROM_BP : HG_FROM_SP,
		.cfa = pc == LEAF ? 4 : 2,
	};
}

bool
hg_frame_module(uint64_t pc, struct hg_module *module)
{
	(void)pc;
	*module = (struct hg_module){.end = UINT64_MAX, .name = "module"};
	return true;
}

uint32_t
hg_watch_wants(uint64_t callers)
{
	(void)callers;
	return 0;
}

/* A stack with nothing on it, and the innermost frame. */
static struct hg_frame
begin(void)
{
	memset(&top, 0, sizeof(top));
	assert_int_equal(hg_callers_begin(), 0);
	memset(&thread, 0, sizeof(thread));
	steps = 0;
	return (struct hg_frame){LEAF, (uintptr_t)stack,
		(uintptr_t)(stack + 8), false};
}

static uint32_t
number(const struct hg_frame *f)
{
	uint32_t n;

	top.record = (struct hg_record){f->bp, f->pc};
	n = hg_callers_of(&thread, &top.record, 2);

	assert_int_not_equal(n, 0);
	return n;
}

TEST(what_was_walked_once_is_known_by_its_nearest_frames)
{
	const struct hg_frame f = begin();
	struct hg_stack found;
	uint32_t n;

	stack[3] = MIDDLE;
	stack[5] = OUTER;
	n = number(&f);
	steps = 0;
	assert_int_equal(number(&f), n);
	assert_int_equal(steps, 1);
	hg_callers_stack(n, &found);
	assert_int_equal(found.n, 3);
	assert_int_equal(found.pc[2], OUTER);
}

TEST(another_caller_of_callers_is_another_one)
{
	const struct hg_frame f = begin();
	uint32_t n, other;

	stack[3] = MIDDLE;
	stack[5] = OUTER;
	n = number(&f);
	stack[5] = OTHER;
	other = number(&f);
	assert_int_not_equal(other, n);
	stack[5] = OUTER;
	assert_int_equal(number(&f), n);
}

/* Both return addresses are there, and rbp decides which is meant. */
TEST(a_frame_that_rbp_leads_to_is_found_by_it)
{
	struct hg_frame f = begin();
	uint32_t n;

	stack[3] = BY_BP;
	stack[9] = OUTER;
	stack[11] = OTHER;
	n = number(&f);
	f.bp += 16;
	assert_int_not_equal(number(&f), n);
	f.bp -= 16;
	assert_int_equal(number(&f), n);
}

/* Whatever is in it. */
TEST(where_no_frame_goes_by_rbp_it_does_not_matter)
{
	struct hg_frame f = begin();
	uint32_t n;

	stack[3] = MIDDLE;
	stack[5] = OUTER;
	n = number(&f);
	f.bp = 12345;
	steps = 0;
	assert_int_equal(number(&f), n);
	assert_int_equal(steps, 1);
}

TEST(after_a_library_has_gone_all_is_walked_again)
{
	const struct hg_frame f = begin();

	stack[3] = MIDDLE;
	stack[5] = OUTER;
	(void)number(&f);
	atomic_store(&hg_state.forgotten, 1);
	steps = 0;
	(void)number(&f);
	assert_int_not_equal(steps, 1);
	atomic_store(&hg_state.forgotten, 0);
}

TEST(callers_are_counted_each_for_itself)
{
	const struct hg_frame f = begin();
	uint32_t n, other;

	stack[3] = OUTER;
	n = number(&f);
	stack[3] = OTHER;
	other = number(&f);
	assert_int_equal(hg_callers_count(n), 1);
	assert_int_equal(hg_callers_count(n), 2);
	assert_int_equal(hg_callers_count(other), 1);
	assert_int_equal(hg_callers_count_in(&thread, n), 1);
}

/* KiB of a table that have been touched. */
static size_t
touched(bucket *table)
{
	unsigned char is_in[BUCKETS * sizeof(*table) / 4096 + 1];
	size_t n = 0;

	assert_int_equal(mincore(table, BUCKETS * sizeof(*table), is_in), 0);
	for (size_t i = 0; i < sizeof(is_in); i++)
		n += is_in[i] & 1;
	return n * 4;
}

enum { FEW = 100, MANY = 20000 };

/* The number of the i-th of many callers. */
static uint32_t
ith(const struct hg_frame *f, uint32_t i)
{
	stack[3] = 0x200000 + 16 * i;
	return number(f);
}

/* The largest index of a site that is in use. */
static size_t
last_site(void)
{
	size_t last = 0;

	for (size_t i = 0; i < HG_SITES; i++)
		if (thread.site[i].sum != 0)
			last = i;
	return last;
}

/* Sites take part of the table only, and more of it when there are many: then
   nearly all are found at once. */
TEST(the_table_of_sites_grows)
{
	enum { SOME = 4000 };
	const struct hg_frame f = begin();
	unsigned known = 0;

	stack[5] = OUTER;
	for (uint32_t i = 1; i <= FEW; i++)
		(void)ith(&f, i);
	assert_in_range(last_site(), 1, HG_SITES_FIRST - 1);
	for (unsigned round = 0; round < 3; round++)
		for (uint32_t i = 1; i <= SOME; i++) {
			steps = 0;
			(void)ith(&f, i);
			known += round == 2 && steps == 1;
		}
	assert_in_range(last_site(), HG_SITES_FIRST, HG_SITES - 1);
	assert_in_range(known, SOME * 9 / 10, SOME);
}

TEST(many_callers_are_known_again_and_few_take_little_memory)
{
	const struct hg_frame f = begin();
	const uint32_t before = hg_callers_made();

	stack[5] = OUTER;
	for (uint32_t i = 1; i <= MANY; i++) {
		assert_int_equal(ith(&f, i), before + i);
		if (i == FEW)
			assert_in_range(touched(keys) + touched(by_hash), 8,
			    48);
	}
	/* by their keys, and by their hashes */
	for (uint64_t forgotten = 0; forgotten < 2; forgotten++) {
		atomic_store(&hg_state.forgotten, forgotten);
		memset(&thread, 0, sizeof(thread));
		for (uint32_t i = 1; i <= MANY; i++)
			assert_int_equal(ith(&f, i), before + i);
	}
	atomic_store(&hg_state.forgotten, 0);
}

RUN_TESTS()
