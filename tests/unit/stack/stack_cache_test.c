/*
 * memo: a backtrace is known again by what its unwinding read, by all of that
 * and by nothing else.
 */
#include "test.h"

#include <malloc.h>

#include "capture.h"
#include "space/space.h"
#include "stack/stack_cache.h"
#include "unwind/unwind.h"

#define OWN __attribute__((noinline))
#define STACK 4096

/* --- this program, caught by an int3 --- */

static struct capture caught;
static volatile long sink;

static OWN void
nest(long n)
{
	if (n == 0)
		__asm__ volatile("int3");
	else
		nest(n - 1);
	sink = n;
}

static struct ex_space *space;
static struct ex_process *process;
static struct ex_reads reads;
static struct ex_stack_cache *memo;

/* What the caller's words are, and backtraces, which are never looked into. */
static uint64_t word[] = { 1, 2, 3 };
#define WORDS (sizeof(word) / sizeof(word[0]))

static const struct ex_stack *
stack(uintptr_t number)
{
	return (const void *)(number * 8);
}

static const struct ex_stack *
find(void)
{
	return ex_stack_cache_find(memo, word, WORDS, &caught.sample);
}

static void
put(uintptr_t number)
{
	ex_stack_cache_put(memo, word, WORDS, &caught.sample, &reads,
	    stack(number));
}

static int
set_up(void **state)
{
	struct ex_pc pc[64];
	enum ex_end end;

	(void)state;
	capture_call(&caught, STACK, nest, 10);
	space = ex_space_new(EX_LIVE);
	capture_maps(space, getpid());
	process = ex_space_process(space, getpid());
	memo = ex_stack_cache_new();
	return process == NULL || memo == NULL || ex_unwind_reads(process,
	    &caught.sample, pc, 64, &end, &reads) < 12;
}

static int
tear_down(void **state)
{
	(void)state;
	ex_stack_cache_free(memo);
	ex_space_free(space);
	return 0;
}

static bool
was_read(uint32_t place)
{
	for (unsigned i = 0; i < reads.n; i++)
		if ((reads.place[i] & ~EX_READ_ADDRESS) == place)
			return true;
	return false;
}

static void
flip(uint8_t *byte, bool is_read)
{
	*byte ^= 0x10;
	assert_ptr_equal(find(), is_read ? NULL : stack(1));
	*byte ^= 0x10;
	assert_ptr_equal(find(), stack(1));
}

TEST(compares_every_word_that_was_read_and_no_other)
{
	unsigned read = 0;

	assert_null(find());
	put(1);
	for (uint32_t at = 0; at < caught.sample.stack_len / 8 * 8; at += 8) {
		read += was_read(at);
		flip(caught.stack + at, was_read(at));
	}
	assert_in_range(read, 10, 100);
	for (uint32_t i = 0; i < PERF_REG_X86_64_MAX; i++)
		flip((uint8_t *)&caught.regs[i],
		    was_read(EX_READ_REG | i * 8));
	assert_true(was_read(EX_READ_REG | PERF_REG_X86_IP * 8));
	assert_true(was_read(EX_READ_REG | PERF_REG_X86_SP * 8));
	assert_false(was_read(EX_READ_REG | PERF_REG_X86_AX * 8));
}

TEST(compares_what_the_caller_says_and_the_sample_s_shape)
{
	struct ex_sample *s = &caught.sample;
	const struct ex_sample good = *s;

	put(1);
	for (size_t i = 0; i < WORDS; i++)
		flip((uint8_t *)&word[i], true);
	assert_null(ex_stack_cache_find(memo, word, WORDS - 1, s));
	s->stack_len -= 8;
	assert_null(find());
	*s = good;
	s->stack_asked += 8;
	assert_null(find());
	*s = good;
	s->user.mask &= ~(UINT64_C(1) << PERF_REG_X86_R15);
	assert_null(find());
	*s = good;
	s->user.abi = PERF_SAMPLE_REGS_ABI_32;
	assert_null(find());
	*s = good;
	s->stack = NULL;
	assert_null(find());
	*s = good;
	assert_ptr_equal(find(), stack(1));
}

/* Of the one that was found last; at times that double. */
TEST(reports_frequent_stacks)
{
	struct ex_reads often = {0};
	unsigned times = 0;

	put(1);
	assert_false(ex_stack_cache_often(memo, &often));
	for (unsigned i = 1; i <= 64; i++) {
		assert_ptr_equal(find(), stack(1));
		times += ex_stack_cache_often(memo, &often);
	}
	assert_int_equal(times, 5);
	assert_true(ex_stack_cache_often(memo, &often));
	assert_int_equal(often.n, reads.n);
	assert_memory_equal(often.place, reads.place,
	    reads.n * sizeof(reads.place[0]));
	word[0]++;
	assert_null(find());
	assert_false(ex_stack_cache_often(memo, &often));
	word[0]--;
}

/* Those that share pc and sp; and more of all kinds than there is room for. */
TEST(keeps_the_newest_and_no_more_than_fit)
{
	uint64_t *sp = &caught.regs[PERF_REG_X86_SP], old = *sp, value;
	const uint32_t last = reads.place[reads.n - 1] & ~EX_READ_ADDRESS;
	uint8_t *at = caught.stack + last;
	size_t used = 0;

	assert_int_equal(last & EX_READ_REG, 0);
	memcpy(&value, at, sizeof(value));
	for (uintptr_t i = 1; i <= 200000; i++) {
		memcpy(at, &i, sizeof(i));
		*sp = old + i % 4096 * 16;
		assert_null(find());
		put(i);
		assert_ptr_equal(find(), stack(i));
		if (i == 50000)
			used = mallinfo2().uordblks;
	}
	assert_int_equal(mallinfo2().uordblks, used);
	*sp = old;
	for (uintptr_t i = 1; i <= 4; i++) {
		memcpy(at, &i, sizeof(i));
		put(i);
	}
	for (uintptr_t i = 1; i <= 4; i++) {
		memcpy(at, &i, sizeof(i));
		assert_ptr_equal(find(), stack(i));
	}
	memcpy(at, &value, sizeof(value));
}

TEST(remembers_nothing_of_too_many_reads)
{
	word[0]++;
	reads.n = EX_READS_MAX + 1;
	put(1);
	assert_null(find());
}

int
main(void)
{
	return run_all_tests(.before_each = set_up, .after_each = tear_down);
}
