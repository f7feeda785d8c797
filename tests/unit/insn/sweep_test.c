/*
 * sweep: instructions are found by their end, in code of this program that
 * never runs.
 */
#include "test.h"

#include "insn/sweep.h"
#include "own_code.h"

#define FUNCTION(name, text)						\
	extern const uint8_t name[], name##_insn[], name##_end[];	\
	__asm__(".pushsection .text\n	.type " #name ", @function\n"	\
	    #name ":\n	" text "\n	.size " #name ", . - " #name "\n" \
	    "	.popsection");

#define REPEATED	400		/* times */
#define PERIOD		13		/* bytes, in instructions of 1 to 7 */

/* Longer than any buffer. */
FUNCTION(longest, ".rept 400\n	push %rbp\n	mov %esp,%ebp\n"
    "	mov %rdi,%rsi\n	mov %eax,0x10(%rsp,%rcx,8); .byte 0x90, 0x90, 0x90\n"
    "	.endr\nlongest_insn: longest_end:\n")
FUNCTION(entered, "je entered_insn+1\nentered_insn: lock incl (%rdi)\n"
    "entered_end: ret")
FUNCTION(entered_before, "1: lock incl (%rsi); je 1b+1\n"
    "entered_before_insn: incl (%rdi)\nentered_before_end: ret")
/* Reached through a register only, after a byte that is no instruction, after
   one that takes the 8 bytes that follow, after zeros. */
FUNCTION(broken, "jmp *%rax; .byte 0x06\nbroken_insn: incl (%rdi)\n"
    "broken_end: ret")
FUNCTION(out_of_step, "jmp *%rax; .byte 0x48, 0xb8\n"
    "out_of_step_insn: incl (%rdi)\nout_of_step_end: ret; .fill 16, 1, 0x90")
FUNCTION(zeros, "jmp *%rax; .quad 0\nzeros_insn: incl (%rdi)\n"
    "zeros_end: ret")
FUNCTION(cased, "jmp *%rax; nop\ncased_insn: incl (%rdi)\ncased_end: ret")
/* Data that would go with what follows, jumped over, back to, and called. */
FUNCTION(over, "jmp over_insn; .byte 0x48\nover_insn: incl (%rdi)\n"
    "over_end: ret")
FUNCTION(back, "jmp 1f; .byte 0x48\nback_insn: incl (%rdi)\n"
    "back_end: ret; 1: jmp back_insn")
FUNCTION(pushed, "call pushed_insn; .byte 0x48\npushed_insn: incl (%rdi)\n"
    "pushed_end: ret")
static int
setup(void **state)
{
	return own_code_open(state, longest);
}

static struct ex_sweep
before(const struct own_code *f, const uint8_t *end)
{
	return ex_sweep_before(f->module, &f->decoder,
	    (uint64_t)(uintptr_t)end - f->base);
}

/* In the long function: at which byte of a period what instruction ends. */
static const uint8_t lengths[PERIOD + 1] = {
	[1] = 1, [3] = 2, [6] = 3, [10] = 4, [11] = 1, [12] = 1, [13] = 1,
};

TEST(finds_every_instruction)
{
	const struct own_code *f = *state;
	const uint8_t *at = longest;

	assert_ptr_equal(longest + REPEATED * PERIOD, longest_end);
	for (unsigned i = 0; i < REPEATED; i++, at += PERIOD) {
		/* near the start all of them, then some */
		for (unsigned n = 1; n <= PERIOD; n += i < 40 ? 1 : 12) {
			struct ex_sweep found = before(f, at + n);

			if (lengths[n] == 0) {
				assert_false(found.certain);
				continue;
			}
			assert_true(found.certain);
			assert_int_equal(found.len, lengths[n]);
		}
	}
}

TEST(finds_the_same_instruction_again)
{
	const struct own_code *f = *state;

	for (unsigned i = 0; i < 200; i++) {
		struct ex_sweep found = before(f, longest + i * PERIOD + 6);

		assert_int_equal(found.len, 3);
	}
	for (unsigned i = 0; i < 200; i++) {
		struct ex_sweep found = before(f, longest + i * PERIOD + 6);

		assert_true(found.certain);
		assert_int_equal(found.len, 3);
	}
}

TEST(doubts)
{
	const struct own_code *f = *state;
	const struct {
		const uint8_t *insn, *end;
		bool certain;
	} cases[] = {
		{ entered_insn, entered_end, false },
		{ entered_before_insn, entered_before_end, true },
		{ broken_insn, broken_end, false },
		{ out_of_step_insn, out_of_step_end, false },
		{ zeros_insn, zeros_end, false },
		{ cased_insn, cased_end, true },
		{ over_insn, over_end, true },
		{ back_insn, back_end, true },
		{ pushed_insn, pushed_end, true },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ex_sweep found = before(f, cases[i].end);

		assert_int_equal(found.len, cases[i].end - cases[i].insn);
		assert_int_equal(found.certain, cases[i].certain);
	}
}

TEST(finds_nothing_where_nothing_is)
{
	const struct own_code *f = *state;

	assert_int_equal(ex_sweep_before(f->module, &f->decoder, 0).len, 0);
	assert_int_equal(ex_sweep_before(f->module, &f->decoder, 1U << 30).len,
	    0);
	assert_int_equal(ex_sweep_before(f->module, &f->decoder,
	    UINT64_MAX).len, 0);
}

RUN_TESTS(.before_each = setup, .after_each = own_code_close)
