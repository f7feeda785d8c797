/*
 * cfi: from elfutils' call frame information to compact rows, cached.
 *
 * Rows are kept in the module, by vaddr and by whether that is a pc or the byte
 * before a return address.  That there is no row is kept too.  A table that
 * would grow beyond ROWS_MAX (a recording made to exhaust us) starts anew.
 */
#include "unwind/cfi.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "debug/debug_info.h"
#include "module/module_private.h"
#include "base/table.h"

#define ROWS_MAX (1U << 20)

/* The row of one pc, kept in the module. */
struct kept_row {
	const struct ex_cfi_row *row;	/* own, or a fixed one; NULL if the
					   file has none */
	struct ex_cfi_row own;
	struct ex_cfi_rule rule[];	/* the rules of own */
};

/* A row as elfutils returns it, and what is needed to translate it. */
struct frame_row {
	Dwarf_Frame *frame;
	bool narrow;  /* of 32-bit code, which numbers registers differently */
};

static void
rule_free(const struct ex_cfi_rule *rule)
{
	if (rule->how == EX_CFI_EXPR_VALUE || rule->how == EX_CFI_EXPR_AT)
		free((void *)(uintptr_t)rule->expr);
}

static void
row_free(const struct ex_cfi_row *row)
{
	unsigned i;

	rule_free(&row->cfa);
	rule_free(&row->pc);
	for (i = 0; i < row->n; i++)
		rule_free(&row->rule[i]);
}

/* Keep an expression that no simple rule can express. */
static bool
rule_expression(struct ex_cfi_rule *rule, const Dwarf_Op *ops, size_t n,
    bool value)
{
	struct ex_cfi_expr *expr;

	expr = malloc(sizeof(*expr) + n * sizeof(*ops));
	if (expr == NULL)
		return false;
	expr->n = n;
	memcpy(expr->op, ops, n * sizeof(*ops));
	rule->how = value ? EX_CFI_EXPR_VALUE : EX_CFI_EXPR_AT;
	rule->expr = expr;
	return true;
}

static void
rule_simple(struct ex_cfi_rule *rule, enum ex_cfi_how how, uint8_t base,
    uint64_t offset)
{
	rule->how = (uint8_t)how;
	rule->base = base;
	rule->offset = (int64_t)offset;
}

/* Whether the operation is a register of ours plus an offset. */
static bool
is_breg(const struct frame_row *s, const Dwarf_Op *op, uint8_t *reg,
    uint64_t *offset)
{
	const bool any = op->atom == DW_OP_bregx;

	if (!any && (op->atom < DW_OP_breg0 || op->atom > DW_OP_breg31))
		return false;
	*reg = (uint8_t)ex_regs_number(s->narrow, any ? op->number :
	    (uint64_t)op->atom - DW_OP_breg0);
	*offset = any ? op->number2 : op->number;
	return *reg < EX_NREGS;
}

static bool
reduce_cfa(const struct frame_row *s, struct ex_cfi_rule *rule)
{
	uint64_t offset;
	uint8_t reg;
	Dwarf_Op *ops;
	size_t n;

	if (dwarf_frame_cfa(s->frame, &ops, &n) != 0 || n == 0)
		return false;
	if (is_breg(s, &ops[0], &reg, &offset)) {
		if (n == 1) {
			rule_simple(rule, EX_CFI_VALUE, reg, offset);
			return true;
		}
		if (n == 2 && ops[1].atom == DW_OP_deref) {
			rule_simple(rule, EX_CFI_AT, reg, offset);
			return true;
		}
	}
	return rule_expression(rule, ops, n, true);
}

/*
 * Reduce an expression to a rule: of a location, or of a value if `value' is
 * set. libdw starts every register's expression with DW_OP_call_frame_cfa; ops
 * are the ones after that.
 */
static bool
reduce_after_cfa(const struct frame_row *s, const Dwarf_Op *ops, size_t n,
    bool value, struct ex_cfi_rule *rule)
{
	const enum ex_cfi_how how = value ? EX_CFI_VALUE : EX_CFI_AT;
	uint64_t offset;
	uint8_t reg;

	if (n == 1) {
		rule_simple(rule, how, EX_CFI_CFA, 0);
		return true;
	}
	if (n == 2 && ops[1].atom == DW_OP_plus_uconst) {
		rule_simple(rule, how, EX_CFI_CFA, ops[1].number);
		return true;
	}
	if (n == 2 && is_breg(s, &ops[1], &reg, &offset)) {
		rule_simple(rule, how, reg, offset);
		return true;
	}
	return rule_expression(rule, ops, n, value);
}

/* Set the rule of the register with this number in the section. */
static bool
reduce_register(const struct frame_row *s, unsigned number,
    struct ex_cfi_rule *rule)
{
	Dwarf_Op mem[3], *ops;
	unsigned other;
	size_t n;
	bool value;

	rule->reg = (uint8_t)ex_regs_number(s->narrow, number);
	if (dwarf_frame_register(s->frame, (int)number, mem, &ops, &n) != 0)
		return false;
	if (n == 0) {
		rule->how = ops == NULL ? EX_CFI_SAME : EX_CFI_UNDEFINED;
		return true;
	}
	if (n == 1 && ops[0].atom == DW_OP_regx) {
		other = ex_regs_number(s->narrow, ops[0].number);
		rule_simple(rule, EX_CFI_VALUE, (uint8_t)other, 0);
		return other < EX_NREGS;
	}
	value = ops[n - 1].atom == DW_OP_stack_value;
	if (value)
		n--;
	if (n == 0 || ops[0].atom != DW_OP_call_frame_cfa)
		return false;
	return reduce_after_cfa(s, ops, n, value, rule);
}

/*
 * A register that a row does not mention keeps its value, as in gdb and libgcc.
 * libdw calls most of those undefined (including rbx, as its defaults for
 * x86-64 have a wrong number), so they cannot be told from registers that the
 * row itself makes undefined.
 */
static bool
is_unchanged(const struct ex_cfi_rule *rule)
{
	return rule->how == EX_CFI_SAME || rule->how == EX_CFI_UNDEFINED;
}

/* The rule of the return address.  A row may give it a column of its own.  That
   column is a register which holds the address until the row says where it was
   saved or that there is none; for the link register, libdw adds by itself that
   it keeps its value. */
static bool
reduce_pc(const struct frame_row *s, struct ex_cfi_rule *rule, bool *signal)
{
	const int column = dwarf_frame_info(s->frame, NULL, NULL, signal);

	if (column < 0 ||
	    ex_regs_number(s->narrow, (unsigned)column) == EX_NREGS ||
	    !reduce_register(s, (unsigned)column, rule))
		return false;
	if (rule->reg != EX_REG_PC && is_unchanged(rule) &&
	    (rule->reg != EX_REG_LINK || rule->how == EX_CFI_SAME))
		rule_simple(rule, EX_CFI_VALUE, rule->reg, 0);
	return true;
}

/* Whether a rule need not be kept. */
static bool
is_default(const struct ex_cfi_rule *rule)
{
	if (rule->reg == EX_REG_SP && rule->how == EX_CFI_VALUE)
		return rule->base == EX_CFI_CFA && rule->offset == 0;
	return is_unchanged(rule);
}

/* Fill an empty row and its rules.  Returns false if the section makes no sense
   or there is no memory; the caller frees what has been filled in either
   case. */
static bool
reduce(const struct frame_row *s, struct ex_cfi_row *row,
    struct ex_cfi_rule *rules)
{
	unsigned number;

	row->rule = rules;
	if (!reduce_cfa(s, &row->cfa) || !reduce_pc(s, &row->pc, &row->signal))
		return false;
	for (number = 0; ex_regs_number(s->narrow, number) < EX_REG_PC;
	    number++) {
		struct ex_cfi_rule *rule = &rules[row->n];

		if (!reduce_register(s, number, rule))
			return false;
		if (!is_default(rule))
			row->n++;
	}
	return true;
}

static struct kept_row *
keep(const struct ex_cfi_row *row)
{
	struct kept_row *kept;

	kept = malloc(sizeof(*kept) + row->n * sizeof(row->rule[0]));
	if (kept == NULL)
		return NULL;
	kept->own = *row;
	memcpy(kept->rule, row->rule, row->n * sizeof(row->rule[0]));
	kept->own.rule = kept->rule;
	kept->row = &kept->own;
	return kept;
}

/* Look up the row for vaddr in .debug_frame or .eh_frame.  NULL if there is
   none. */
static struct kept_row *
section_row(struct ex_module *module, bool debug_frame, uint64_t vaddr)
{
	struct ex_cfi_rule rules[EX_NREGS] = { 0 };
	struct ex_cfi_row row = { 0 };
	struct kept_row *kept = NULL;
	struct frame_row s;
	Dwarf_CFI *cfi;
	uint64_t bias;

	cfi = debug_frame ? ex_module_debug_frame(module, &bias) :
	    ex_module_eh_frame(module, &bias);
	if (cfi == NULL ||
	    dwarf_cfi_addrframe(cfi, vaddr + bias, &s.frame) != 0)
		return NULL;
	s.narrow = ex_module_is_narrow(module);
	if (reduce(&s, &row, rules))
		kept = keep(&row);
	if (kept == NULL)
		row_free(&row);
	free(s.frame);
	return kept;
}

/* The fixed row of a signal trampoline, for files without one, or NULL. */
static const struct ex_cfi_row *
trampoline_row(struct ex_module *module, uint64_t pc)
{
	uint8_t code[EX_REGS_CODE];

	return ex_regs_sigreturn(code,
	    ex_module_bytes(module, pc, code, sizeof(code)));
}

/* The return address of a signal handler is the first byte of the trampoline,
   so the byte before it may belong to another function.  Returns NULL if there
   is no memory. */
static struct kept_row *
look_up(struct ex_module *module, uint64_t vaddr, bool exact)
{
	const struct ex_cfi_row *trampoline =
	    trampoline_row(module, exact ? vaddr : vaddr + 1);
	struct kept_row *kept = NULL;

	if (trampoline == NULL) {
		kept = section_row(module, false, vaddr);
		if (kept == NULL)
			kept = section_row(module, true, vaddr);
	}
	if (kept == NULL && (kept = calloc(1, sizeof(*kept))) != NULL)
		kept->row = trampoline;
	return kept;
}

static void
kept_free(void *arg)
{
	struct kept_row *kept = arg;

	if (kept->row == &kept->own)
		row_free(kept->row);
	free(kept);
}

static void
rows_release(void *rows)
{
	ex_table_free(rows, kept_free);
}

const struct ex_cfi_row *
ex_cfi_row(struct ex_module *module, uint64_t vaddr, bool exact)
{
	const uint64_t key = vaddr << 1 | exact;
	bool is_new;
	struct ex_table *rows = ex_module_cache(module, EX_CACHE_CFI,
	    sizeof(*rows), rows_release, &is_new);
	struct kept_row *kept;

	if (rows == NULL)
		return NULL;
	if ((kept = ex_table_get(rows, key)) != NULL)
		return kept->row;
	if (rows->n >= ROWS_MAX)
		rows_release(rows);
	if (!ex_table_reserve(rows, 1) ||
	    (kept = look_up(module, vaddr, exact)) == NULL)
		return NULL;
	ex_table_put(rows, key, kept);
	return kept->row;
}
