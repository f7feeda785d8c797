/*
 * cfi: the rows of functions that use every directive, and the cache that keeps
 * them.
 */
#include "test.h"

#include <dwarf.h>
#include <stdlib.h>

#include "capture.h"
#include "space/space.h"
#include "unwind/cfi.h"

/* Each row begins at a label of its own, row_NAME. */
#define ROW(name, directives) \
	"	" directives "\n" \
	"	.globl row_" name "\n" \
	"	.hidden row_" name "\n" \
	"row_" name ":\n" \
	"	nop\n	nop\n"

__asm__(
    ".text\n"
    "	.type rows, @function\n"
    "rows:\n"
    "	.cfi_startproc\n"
    ROW("entry", "")
    ROW("pushed", ".cfi_adjust_cfa_offset 8; .cfi_rel_offset rbx, 0")
    ROW("frame", ".cfi_def_cfa rbp, 16; .cfi_offset rbp, -16")
    ROW("same", ".cfi_same_value rbx")
    ROW("restored", ".cfi_restore rbx; .cfi_restore rbp")
    /* r12 is CFA - 24, rsp is CFA + 8 */
    ROW("value", ".cfi_escape 0x14, 12, 3; .cfi_escape 0x15, 7, 0x7f")
    ROW("register", ".cfi_register r13, rax; .cfi_register rip, rcx")
    ROW("undefined", ".cfi_undefined r12; .cfi_undefined rip")
    "	.cfi_endproc\n"
    "	.size rows, . - rows\n"

    "	.type expressions, @function\n"
    "expressions:\n"
    "	.cfi_startproc\n"
    /* CFA = *(rbp - 8), as of a realigned stack */
    ROW("cfa_at", ".cfi_escape 0x0f, 3, 0x76, 0x78, 0x06")
    /* CFA = rsp + 24, by an expression */
    ROW("cfa_breg", ".cfi_escape 0x0f, 2, 0x77, 24")
    /* CFA = rsp + 8 + (1 << 3) */
    ROW("cfa_expression",
	".cfi_escape 0x0f, 6, 0x77, 8, 0x31, 0x33, 0x24, 0x22")
    /* rbx at rsp + 40, rbp is rsp + 48, as of a signal frame */
    ROW("at_breg", ".cfi_escape 0x10, 3, 2, 0x77, 40; "
	".cfi_escape 0x16, 6, 2, 0x77, 48")
    /* r12 at CFA + *(rsp); r13 is CFA + 1 */
    ROW("at_expression", ".cfi_escape 0x10, 12, 4, 0x77, 0, 0x06, 0x22; "
	".cfi_escape 0x16, 13, 2, 0x31, 0x22")
    /* rbx by a register that there is not */
    ROW("breg_unknown", ".cfi_escape 0x10, 3, 3, 0x92, 50, 0")
    "	.cfi_endproc\n"
    "	.size expressions, . - expressions\n"

    "	.type signal, @function\n"
    "signal:\n"
    "	.cfi_startproc\n"
    "	.cfi_signal_frame\n"
    ROW("signal", "")
    "	.cfi_endproc\n"
    "	.size signal, . - signal\n"

    "	.type column, @function\n"
    "column:\n"
    "	.cfi_startproc simple\n"
    "	.cfi_return_column r11\n"
    ROW("column", ".cfi_def_cfa rsp, 0")
    "	.cfi_endproc\n"
    "	.size column, . - column\n"

    "	.type none, @function\n"
    "none:\n"
    ROW("none", "")
    "	.size none, . - none\n"

    "	.type trampoline, @function\n"
    "trampoline:\n"
    ROW("before", "")
    "	.globl row_trampoline\n"
    "	.hidden row_trampoline\n"
    "row_trampoline:\n"
    "	mov $15,%rax\n"
    "	syscall\n"
    "	.size trampoline, . - trampoline\n");

enum { RBX = 3, RBP = 6, RSP = 7, R11 = 11, R12 = 12, R13 = 13, RIP = 16 };

extern const char row_entry[], row_pushed[], row_frame[], row_same[],
    row_restored[], row_value[], row_register[], row_undefined[],
    row_cfa_at[], row_cfa_breg[], row_cfa_expression[], row_at_breg[],
    row_at_expression[], row_breg_unknown[], row_signal[], row_column[],
    row_none[], row_before[], row_trampoline[];

#define REG(r, h, b, n) { r, EX_CFI_##h, b, { n } }
#define RA REG(RIP, AT, EX_CFI_CFA, -8)

/* Expressions are compared by their first operation alone. */
static const struct scenario {
	const char *at;
	struct ex_cfi_rule cfa, pc;
	unsigned n;
	struct ex_cfi_rule rule[3];
	uint8_t first_op;	/* of every expression in it */
} scenarios[] = {
	{ row_entry, REG(0, VALUE, RSP, 8), RA, 0, { { 0 } }, 0 },
	{ row_pushed, REG(0, VALUE, RSP, 16), RA, 1,
	    { REG(RBX, AT, EX_CFI_CFA, -16) }, 0 },
	{ row_frame, REG(0, VALUE, RBP, 16), RA, 2,
	    { REG(RBX, AT, EX_CFI_CFA, -16), REG(RBP, AT, EX_CFI_CFA, -16) },
	    0 },
	{ row_same, REG(0, VALUE, RBP, 16), RA, 1,
	    { REG(RBP, AT, EX_CFI_CFA, -16) }, 0 },
	{ row_restored, REG(0, VALUE, RBP, 16), RA, 0, { { 0 } }, 0 },
	{ row_value, REG(0, VALUE, RBP, 16), RA, 2,
	    { REG(RSP, VALUE, EX_CFI_CFA, 8),
	    REG(R12, VALUE, EX_CFI_CFA, -24) }, 0 },
	{ row_register, REG(0, VALUE, RBP, 16), REG(RIP, VALUE, 2, 0), 3,
	    { REG(RSP, VALUE, EX_CFI_CFA, 8),
	    REG(R12, VALUE, EX_CFI_CFA, -24), REG(R13, VALUE, 0, 0) }, 0 },
	{ row_undefined, REG(0, VALUE, RBP, 16), REG(RIP, UNDEFINED, 0, 0), 2,
	    { REG(RSP, VALUE, EX_CFI_CFA, 8), REG(R13, VALUE, 0, 0) }, 0 },
	{ row_cfa_at, REG(0, AT, RBP, -8), RA, 0, { { 0 } }, 0 },
	{ row_cfa_breg, REG(0, VALUE, RSP, 24), RA, 0, { { 0 } }, 0 },
	{ row_cfa_expression, REG(0, EXPR_VALUE, 0, 0), RA, 0, { { 0 } },
	    DW_OP_breg7 },
	{ row_at_breg, REG(0, EXPR_VALUE, 0, 0), RA, 2,
	    { REG(RBX, AT, RSP, 40), REG(RBP, VALUE, RSP, 48) },
	    DW_OP_breg7 },
	{ row_signal, REG(0, VALUE, RSP, 8), RA, 0, { { 0 } }, 0 },
	{ row_column, REG(0, VALUE, RSP, 0), REG(RIP, VALUE, R11, 0), 0,
	    { { 0 } }, 0 },
};

static struct ex_space *space;
static struct ex_process *process;

static struct ex_module *
module_at(const void *at, uint64_t *vaddr)
{
	struct ex_module *module;

	module = ex_process_module(process, (uintptr_t)at, vaddr);
	assert_non_null(module);
	return module;
}

static const struct ex_cfi_row *
row_at(const void *at, bool exact)
{
	uint64_t vaddr;
	struct ex_module *module = module_at(at, &vaddr);

	return ex_cfi_row(module, vaddr, exact);
}

static void
assert_rule(const struct ex_cfi_rule *rule, const struct ex_cfi_rule *want,
    uint8_t first_op)
{
	assert_int_equal(rule->how, want->how);
	switch (rule->how) {
	case EX_CFI_VALUE:
	case EX_CFI_AT:
		assert_int_equal(rule->base, want->base);
		assert_int_equal(rule->offset, want->offset);
		break;
	case EX_CFI_EXPR_VALUE:
	case EX_CFI_EXPR_AT:
		assert_int_equal(rule->expr->op[0].atom, first_op);
		break;
	}
}

TEST(reduces_rows)
{
	size_t i, k;

	for (i = 0; i < COUNT(scenarios); i++) {
		const struct scenario *s = &scenarios[i];
		const struct ex_cfi_row *row = row_at(s->at, true);

		assert_non_null(row);
		assert_rule(&row->cfa, &s->cfa, s->first_op);
		assert_rule(&row->pc, &s->pc, s->first_op);
		assert_int_equal(row->n, s->n);
		for (k = 0; k < s->n; k++) {
			assert_int_equal(row->rule[k].reg, s->rule[k].reg);
			assert_rule(&row->rule[k], &s->rule[k], s->first_op);
		}
		assert_int_equal(row->signal, s->at == row_signal);
	}
}

TEST(keeps_expressions)
{
	const struct ex_cfi_row *row = row_at(row_at_expression, true);

	assert_non_null(row);
	assert_int_equal(row->n, 4);
	assert_int_equal(row->rule[2].reg, R12);
	assert_int_equal(row->rule[2].how, EX_CFI_EXPR_AT);
	assert_int_equal(row->rule[2].expr->n, 4);
	assert_int_equal(row->rule[2].expr->op[0].atom, DW_OP_call_frame_cfa);
	assert_int_equal(row->rule[2].expr->op[3].atom, DW_OP_plus);
	assert_int_equal(row->rule[3].how, EX_CFI_EXPR_VALUE);
	/* evaluating it will say that there is no such register */
	row = row_at(row_breg_unknown, true);
	assert_non_null(row);
	assert_int_equal(row->rule[0].reg, RBX);
	assert_int_equal(row->rule[0].how, EX_CFI_EXPR_AT);
}

TEST(gives_the_same_row_again)
{
	const struct ex_cfi_row *row = row_at(row_frame, true);

	assert_ptr_equal(row_at(row_frame, true), row);
	assert_null(row_at(row_none, true));
	assert_null(row_at(row_none, true));
	assert_null(row_at(row_none, false));
}

/* More pcs than the first tables have room for. */
TEST(keeps_many_rows)
{
	uint64_t vaddr;
	struct ex_module *libc = module_at((const void *)(uintptr_t)qsort,
	    &vaddr);
	const unsigned n = 5000;
	const struct ex_cfi_row **row = calloc(n, sizeof(*row));
	unsigned i, there = 0;

	assert_non_null(row);
	for (i = 0; i < n; i++)
		row[i] = ex_cfi_row(libc, vaddr - n / 2 + i, true);
	for (i = 0; i < n; i++) {
		assert_ptr_equal(ex_cfi_row(libc, vaddr - n / 2 + i, true),
		    row[i]);
		there += row[i] != NULL;
	}
	assert_true(there > n / 2);
	free(row);
}

/* A return address may be the first byte of a trampoline, whatever is before;
   an interrupted pc in it is just as good. */
TEST(knows_trampolines)
{
	static const uint8_t *const code = (const uint8_t *)
	    "\x90\x48\xc7\xc0\x0f\0\0\0\x0f\x05\xb8\x0f\0\0\0\x0f\x05";
	const struct ex_cfi_row *row = ex_regs_sigreturn(code + 1, 9);

	assert_non_null(row);
	assert_true(row->signal);
	assert_int_equal(row->cfa.how, EX_CFI_AT);
	assert_int_equal(row->cfa.offset, 160);
	assert_int_equal(row->pc.offset, 168);
	assert_ptr_equal(ex_regs_sigreturn(code + 10, 7), row);
	assert_null(ex_regs_sigreturn(code, 10));
	assert_null(ex_regs_sigreturn(code + 1, 8));
	assert_null(ex_regs_sigreturn(code + 10, 6));
	assert_null(ex_regs_sigreturn(code, 0));

	assert_ptr_equal(row_at(row_before + 1, false), row);
	assert_null(row_at(row_before + 1, true));
	assert_ptr_equal(row_at(row_trampoline, true), row);
	assert_null(row_at(row_trampoline, false));
}

static int
set_up(void **state)
{
	(void)state;
	process = capture_self(&space);
	return process != NULL ? 0 : -1;
}

static int
tear_down(void **state)
{
	(void)state;
	ex_space_free(space);
	return 0;
}

RUN_TESTS(.before_all = set_up, .after_all = tear_down)
