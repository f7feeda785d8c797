/*
 * uprobe_place: where a uprobe sees the calls of a function, in code of this
 * program that never runs.
 */
#include "test.h"

#include <string.h>

#include "insn/uprobe_place.h"
#include "own_code.h"

/* A function, and the offset of its label AT, where the uprobe is to be. */
#define FUNCTION(name, text)						\
	extern const uint8_t name[];					\
	extern const uint64_t name##_at;				\
	__asm__(".pushsection .text\n"					\
	    "	ud2\n	.type " #name ", @function\n"			\
	    #name ":\n	" text "\n	ud2\n"				\
	    ".size " #name ", . - " #name "\n	.popsection\n"		\
	    ".pushsection .data\n" #name "_at: .quad 9b - " #name "\n"	\
	    "	.popsection");
#define AT "9: "

/* --- those that are emulated come first --- */
FUNCTION(is_push, AT "push %rbp; ret")
FUNCTION(is_jump, AT "jmp *%rax")
FUNCTION(test_je, "test %rdi,%rdi; " AT "je 1f; push %rbx; nop; 1: ret")
FUNCTION(far_je, "test %rdi,%rdi; " AT "je 1f; .skip 200, 0x90; 1: ret")
FUNCTION(marked, "endbr64; mov %rdi,%rax; " AT "push %r12; ret")
FUNCTION(loads, "mov is_push(%rip),%rcx; and $-8,%rcx; xor %eax,%eax; "
    AT "jmp code_elsewhere")
FUNCTION(long_nop, "nopl 0(%rax,%rax,1); " AT "nop; ret")
FUNCTION(through_slot, "test %rdi,%rdi; " AT "je 1f; "
    "jmp *code_elsewhere@GOTPCREL(%rip); 1: ret")
FUNCTION(is_entered_by_its_start, "test %rdi,%rdi; "
    AT "je 1f; jmp is_entered_by_its_start; 1: ret")
FUNCTION(called, "mov %rdi,%rax; " AT "call code_elsewhere; ret")
/* --- what the caller passed does not remain --- */
FUNCTION(first_argument, AT "shr $3,%edi; je 1f; nop; 1: ret")
FUNCTION(part_of_third, AT "mov $1,%dl; push %rbx; ret")
FUNCTION(stack_pointer, AT "sub $8,%rsp; call code_elsewhere; "
    "ret")
FUNCTION(stores, AT "mov %rdi,-8(%rsp); push %rbx; ret")
FUNCTION(adds, AT "addq $1,(%rsi); push %rbx; ret")
/* --- it may end, or go elsewhere, before --- */
FUNCTION(returns, AT "mov %edi,%eax; ret; push %rbx")
FUNCTION(short_on_count, AT "mov %edi,%ecx; jrcxz 1f; "
    "push %rbx; 1: ret")
FUNCTION(traps, AT "test %rdi,%rdi; ud2; push %rbx; ret")
FUNCTION(calls_system, AT "mov %edi,%eax; syscall; push %rbx; "
    "ret")
FUNCTION(tests_far, AT ".rept 40; test %rdi,%rdi; .endr; push %rbx; "
    "ret")
/* --- it is reached otherwise, too --- */
FUNCTION(loops, AT "test %rdi,%rdi; 2: je 1f; dec %eax; jmp 2b; 1: ret")
FUNCTION(loops_between, AT "mov %rdi,%rax; 2: test %rax,%rax; "
    "push %rbx; dec %eax; jne 2b; ret")
FUNCTION(loops_far, AT "test %rdi,%rdi; 2: je 1f; .skip 300, 0x90; "
    "jmp 2b; 1: ret")
FUNCTION(loops_elsewhere, AT "test %rdi,%rdi; "
    ".Lback_here: je 1f; dec %eax; jmp part_elsewhere; 1: ret")
FUNCTION(address_taken, AT "test %rdi,%rdi; 2: je 1f; "
    "lea 2b(%rip),%rax; push %rax; 1: ret")
FUNCTION(computed, AT "test %rdi,%rdi; je 1f; jmp *%rax; 1: ret")
FUNCTION(computed_by_table, AT "test %rdi,%rdi; je 1f; "
    "jmp *code_table(,%rax,8); 1: ret")
FUNCTION(computed_elsewhere, AT "test %rdi,%rdi; je 1f; "
    "jmp part_that_computes; 1: ret")
FUNCTION(holds_another, AT "test %rdi,%rdi; "
    ".type another, @function; another: je 1f; nop; 1: ret; "
    ".size another, . - another")
__asm__(".pushsection .text\n"
    "	.type code_elsewhere, @function\n"
    "code_elsewhere:	ret\n	ud2\n"
    ".size code_elsewhere, . - code_elsewhere\n"
    "	.type part_elsewhere, @function\n"
    "part_elsewhere:	nop\n	jmp .Lback_here\n	ud2\n"
    ".size part_elsewhere, . - part_elsewhere\n"
    "	.type part_that_computes, @function\n"
    "part_that_computes:	notrack jmp *%rdx\n	ud2\n"
    ".size part_that_computes, . - part_that_computes\n"
    ".set code_table, 0x1000\n"
    "	.popsection");

#define ROW(name) { #name, name, &name##_at }

static const struct {
	const char *name;
	const uint8_t *start;
	const uint64_t *at;
} rows[] = {
	ROW(is_push), ROW(is_jump), ROW(test_je), ROW(far_je), ROW(marked),
	ROW(loads), ROW(long_nop), ROW(through_slot),
	ROW(is_entered_by_its_start), ROW(called), ROW(first_argument),
	ROW(part_of_third), ROW(stack_pointer), ROW(stores), ROW(adds),
	ROW(returns), ROW(short_on_count), ROW(traps), ROW(calls_system),
	ROW(tests_far), ROW(loops), ROW(loops_between), ROW(loops_far),
	ROW(loops_elsewhere), ROW(address_taken), ROW(computed),
	ROW(computed_by_table), ROW(computed_elsewhere), ROW(holds_another),
};

static int
setup(void **state)
{
	return own_code_open(state, is_push);
}

/* Four bytes anywhere in this program that would lead there, if they were the
   offset of a jump, are a reason to stay at the start; there may be such. */
enum { COINCIDENCES = 2 };

TEST(emulated_and_surely_executed_once)
{
	const struct own_code *f = *state;
	unsigned stays = 0;

	for (size_t i = 0; i < COUNT(rows); i++) {
		const uint64_t start = (uint64_t)(uintptr_t)rows[i].start -
		    f->base;
		const uint64_t at = ex_uprobe_place(f->module, start) - start;

		stays += at == 0 && *rows[i].at != 0;
		if (at != *rows[i].at && (at != 0 || stays > COINCIDENCES))
			fail_msg("%s: +%llu, not +%llu", rows[i].name,
			    (unsigned long long)at,
			    (unsigned long long)*rows[i].at);
	}
}

TEST(only_at_a_function)
{
	const struct own_code *f = *state;
	const uint64_t inside = (uint64_t)(uintptr_t)test_je + test_je_at -
	    f->base;

	assert_int_equal(ex_uprobe_place(f->module, inside), inside);
}

/* Each nop is where an instruction begins, and each byte of 0x06 is not: that
   is data, or in the middle of one. */
FUNCTION(begins, AT "nop; je 1f; nop; mov $0x06060606,%eax; ret; "
    ".byte 0x06; 1: nop; nop; jmp *%rax; .byte 0x06, 0x06")
FUNCTION(begins_in_another, AT "je 1f+1; 1: .byte 0xb8, 0x06, 0x06, 0x06, 6; "
    "ret")

TEST(where_instructions_begin)
{
	const struct own_code *f = *state;
	const uint8_t *functions[] = {begins, begins_in_another};

	for (size_t i = 0; i < COUNT(functions); i++)
		for (const uint8_t *at = functions[i]; *at != 0x0f; at++) {
			const bool fits = ex_uprobe_fits(f->module,
			    (uint64_t)(uintptr_t)at - f->base);

			if (*at == 0x90 && !fits)
				fail_msg("%zu: not at +%td", i,
				    at - functions[i]);
			if (*at == 0x06 && fits)
				fail_msg("%zu: at +%td", i,
				    at - functions[i]);
		}
}

RUN_TESTS(.before_all = setup, .after_all = own_code_close)
