/*
 * flow: which instructions of a function can be reached, in code of this
 * program that never runs.
 */
#include "test.h"

#include <string.h>

#include "insn/flow.h"
#include "own_code.h"

#define CODE(name, text)						\
	extern const uint8_t name[], name##_end[];			\
	__asm__(".pushsection .text\n" #name ":\n	" text "\n"	\
	    #name "_end:	ret\n	.popsection");

/* A nop ends each piece that is asked about. */
CODE(straight, "push %rbp; mov %rsp,%rbp; nop")
CODE(conditional, "je 1f; nop; ret; 1: nop; ret; nop")
CODE(loop, "jmp 2f; 1: nop; 2: dec %eax; jne 1b; nop")
CODE(called, "call *%rax; nop; call code_elsewhere; nop; ret; nop")
CODE(pushed, "call 1f; nop; 1: nop; ret")
CODE(stopped, "ud2; nop")
CODE(broken, "je 1f; .byte 0x06; nop; 1: nop")
CODE(overlapping, "je 1f+1; 1: lock incl (%rdi); nop")
CODE(outside, "jmp code_elsewhere; nop")
CODE(indirect, "jmp *%rax; nop")
CODE(aborts, "xabort $1; nop")
CODE(code_elsewhere, "nop")
CODE(falls, "dec %eax; je code_elsewhere; nop")
CODE(ends, "call *%rax; nop; nopl 0(%rax)")
CODE(jumps, "nop; nop; jmp *(%rax); jmp *(%rcx); jmp *%rdx; nop")

struct piece {
	const char *name;
	const uint8_t *start, *end;
	const char *nops;	/* each nop: '+' reached, '-' not */
};

#define PIECE(name, nops) { #name, name, name##_end, nops }

static const struct piece pieces[] = {
	PIECE(straight, "+"), PIECE(conditional, "++-"), PIECE(loop, "++"),
	PIECE(called, "++-"), PIECE(pushed, "-+"), PIECE(stopped, "-"),
	PIECE(broken, "-+"), PIECE(overlapping, "+"), PIECE(outside, "-"),
	PIECE(indirect, "-"), PIECE(aborts, "+"),
};

static int
setup(void **state)
{
	return own_code_open(state, straight);
}

static struct ex_flow *
flow_of(const struct own_code *f, const uint8_t *start, const uint8_t *end)
{
	return ex_flow_new(f->module, &f->decoder,
	    (uint64_t)(uintptr_t)start - f->base,
	    (uint64_t)(uintptr_t)end - f->base);
}

static uint64_t
vaddr_of(const struct own_code *f, const uint8_t *at)
{
	return (uint64_t)(uintptr_t)at - f->base;
}

TEST(reaches)
{
	const struct own_code *f = *state;

	for (size_t i = 0; i < COUNT(pieces); i++) {
		const struct piece *p = &pieces[i];
		struct ex_flow *flow = flow_of(f, p->start, p->end);
		char nops[8] = "";
		unsigned n, k = 0;

		assert_non_null(flow);
		for (const uint8_t *at = p->start; at < p->end; at++) {
			if (*at != 0x90)
				continue;
			nops[k++] = ex_flow_before(flow, vaddr_of(f, at + 1),
			    &n) == 1 && n == 1 ? '+' : '-';
		}
		if (strcmp(nops, p->nops) != 0)
			fail_msg("%s: %s, not %s", p->name, nops, p->nops);
		ex_flow_free(flow);
	}
}

TEST(knows_several_that_end_together)
{
	const struct own_code *f = *state;
	struct ex_flow *flow = flow_of(f, overlapping, overlapping_end);
	unsigned n;

	assert_int_equal(ex_flow_before(flow,
	    vaddr_of(f, overlapping_end) - 1, &n), 3);
	assert_int_equal(n, 2);
	ex_flow_free(flow);
}

TEST(knows_where_it_was_last_seen)
{
	const struct own_code *f = *state;
	struct ex_flow *flow = flow_of(f, indirect, indirect_end);
	const uint64_t start = vaddr_of(f, indirect);

	assert_int_equal(ex_flow_last(flow, start), start);
	assert_int_equal(ex_flow_last(flow, start + 1), start + 2);
	assert_int_equal(ex_flow_last(flow, start + 3), start + 2);
	assert_int_equal(ex_flow_last(flow, UINT64_MAX), start + 2);
	assert_true(ex_flow_is(flow, &f->decoder, start));
	assert_false(ex_flow_is(flow, &f->decoder, start + 2));
	ex_flow_free(flow);
}

TEST(finds_jumps_through_memory)
{
	const struct own_code *f = *state;
	struct ex_flow *flow = flow_of(f, jumps, jumps_end);
	const uint32_t *offset;

	/* one is reached, one is not, one is through a register */
	assert_int_equal(ex_flow_jumps(flow, &offset), 2);
	assert_int_equal(offset[0], 2);
	assert_int_equal(offset[1], 4);
	ex_flow_free(flow);
	flow = flow_of(f, straight, straight_end);
	assert_int_equal(ex_flow_jumps(flow, &offset), 0);
	ex_flow_free(flow);
}

/* How a piece is left: the jumps that do, and whether it goes on behind. */
TEST(finds_its_exits)
{
	static const struct {
		const uint8_t *start, *end;
		unsigned exits;
		bool falls;
	} cases[] = {
		{straight, straight_end, 0, true},
		{loop, loop_end, 0, true},
		{outside, outside_end, 1, false},
		{indirect, indirect_end, 1, false},
		{jumps, jumps_end, 3, false},
		{falls, falls_end, 1, true},
		{ends, ends_end, 0, false},	/* maybe nobody comes back */
		{stopped, stopped_end, 0, false},
	};
	const struct own_code *f = *state;
	const uint32_t *offset;

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ex_flow *flow = flow_of(f, cases[i].start, cases[i].end);

		assert_non_null(flow);
		if (ex_flow_exits(flow, &offset) != cases[i].exits ||
		    ex_flow_falls(flow) != cases[i].falls)
			fail_msg("case %zu: %zu exits%s", i,
			    ex_flow_exits(flow, &offset),
			    ex_flow_falls(flow) ? ", falls" : "");
		ex_flow_free(flow);
	}
}

TEST(finds_nothing_where_nothing_is)
{
	const struct own_code *f = *state;
	unsigned n;
	struct ex_flow *flow = flow_of(f, straight, straight_end);

	assert_int_equal(ex_flow_before(flow, 0, &n), 0);
	assert_int_equal(ex_flow_before(flow, UINT64_MAX, &n), 0);
	ex_flow_free(flow);
	assert_null(flow_of(f, straight, straight));
	assert_null(flow_of(f, straight_end, straight));
	assert_null(ex_flow_new(f->module, &f->decoder, UINT64_C(1) << 40,
	    (UINT64_C(1) << 40) + 100));
}

RUN_TESTS(.before_all = setup, .after_all = own_code_close)
