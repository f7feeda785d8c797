/*
 * known: a stack is known again by all that its unwinding read, if that is what
 * programs compare.
 */
#include "test.h"

#include <asm/perf_regs.h>
#include <string.h>

#include "bpf/known_stack_map.h"
#include "stack/hot_stack.h"

static uint64_t regs[PERF_REG_X86_64_MAX];
static uint64_t stack[512];
static struct ex_sample sample;
static struct ex_reads reads;
static struct wp_known_stack known;

#define AT_REG(reg) (EX_READ_REG | PERF_REG_X86_##reg * 8)

static int
set_up(void **state)
{
	(void)state;
	for (unsigned i = 0; i < PERF_REG_X86_64_MAX; i++)
		regs[i] = 1000 + i;
	for (unsigned i = 0; i < COUNT(stack); i++)
		stack[i] = i;
	sample = (struct ex_sample){
		.user = {
			.abi = PERF_SAMPLE_REGS_ABI_64,
			.mask = (UINT64_C(1) << PERF_REG_X86_64_MAX) - 1,
			.values = (const uint8_t *)regs,
		},
		.stack = (const uint8_t *)stack, .stack_len = sizeof(stack),
		.stack_asked = sizeof(stack),
	};
	reads = (struct ex_reads){0};
	return 0;
}

static void
add(uint32_t place)
{
	reads.place[reads.n++] = place;
}

/* What it has, as it makes sense to programs. */
static bool
make(void)
{
	const bool made = ex_hot_stack_make(&sample, &reads, &known);

	known.pid = 1;
	assert_true(!made || wp_known_is_valid(&known));
	return made;
}

TEST(has_what_was_read)
{
	add(AT_REG(IP));
	add(AT_REG(SP));
	add(16);
	add(WP_KNOWN_REACH - 8);
	add(16);
	assert_true(make());
	assert_int_equal(known.pc, 1000 + PERF_REG_X86_IP);
	assert_int_equal(known.sp, 1000 + PERF_REG_X86_SP);
	assert_false(known.by_fp);
	assert_int_equal(known.n, 2);
	assert_true(known.place[0] == 16 && known.word[0] == 2);
	assert_true(known.place[1] == WP_KNOWN_REACH - 8 &&
	    known.word[1] == WP_KNOWN_REACH / 8 - 1);
	add(AT_REG(BP));
	assert_true(make());
	assert_true(known.by_fp);
	assert_int_equal(known.fp, 1000 + PERF_REG_X86_BP);
	assert_false(known.by_sp);
	reads.by_sp = true;
	assert_true(make());
	assert_true(known.by_sp);
}

/* A word that is both, or a stack of which more than that matters, is known
   only where it is. */
TEST(has_what_is_an_address)
{
	add(AT_REG(SP) | EX_READ_ADDRESS);
	add(AT_REG(BP) | EX_READ_ADDRESS);
	add(16 | EX_READ_ADDRESS);
	add(24);
	add(16 | EX_READ_ADDRESS);
	assert_true(make());
	assert_true(known.by_fp && !known.by_sp);
	assert_int_equal(known.n, 2);
	assert_true(known.place[0] == (16 | WP_KNOWN_RELATIVE) &&
	    known.word[0] == 2);
	assert_true(known.place[1] == 24 && known.word[1] == 3);
	add(24 | EX_READ_ADDRESS);
	assert_true(make());
	assert_int_equal(known.n, 2);
	assert_true(known.by_sp);
}

static void
expect_none_with(uint32_t place)
{
	(void)set_up(NULL);
	add(8);
	assert_true(make());
	add(place);
	assert_false(make());
}

TEST(no_stack_with_words_that_are_not_compared)
{
	expect_none_with(AT_REG(BX));
	expect_none_with(AT_REG(AX));
	expect_none_with(4);
	expect_none_with(WP_KNOWN_REACH);
	sample.user.mask &= ~(UINT64_C(1) << PERF_REG_X86_SP);
	reads.n = 1;
	assert_false(make());
}

TEST(no_stack_with_too_many_words)
{
	for (uint32_t i = 0; i < WP_KNOWN_WORDS; i++) {
		add(i * 8);
		assert_true(make());
	}
	add(WP_KNOWN_WORDS * 8);
	assert_false(make());
	reads.n = EX_READS_MAX + 1;
	assert_false(make());
	reads.n = 0;
	assert_false(make());
}

TEST(inconsistent_stacks_are_rejected)
{
	const struct wp_known_stack good = {
		.pid = 1, .n = 2, .place = {0, WP_KNOWN_REACH - 8},
	};
	struct wp_known_stack bad = good;

	assert_true(wp_known_is_valid(&good));
	bad.n = 0;
	assert_false(wp_known_is_valid(&bad));
	bad.n = WP_KNOWN_WORDS + 1;
	assert_false(wp_known_is_valid(&bad));
	bad = good;
	bad.place[1] = WP_KNOWN_REACH;
	assert_false(wp_known_is_valid(&bad));
	bad.place[1] = 12;
	assert_false(wp_known_is_valid(&bad));
	bad = good;
	bad.pid = 0;
	assert_false(wp_known_is_valid(&bad));
	bad = good;
	bad.by_fp = 2;
	assert_false(wp_known_is_valid(&bad));
	bad = good;
	bad.by_sp = 2;
	assert_false(wp_known_is_valid(&bad));
	bad = good;
	bad.place[0] |= WP_KNOWN_RELATIVE;
	assert_true(wp_known_is_valid(&bad));
	bad.place[0] = 2;
	assert_false(wp_known_is_valid(&bad));
}

int
main(void)
{
	return run_all_tests(.before_each = set_up);
}
