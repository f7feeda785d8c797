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

/* What is known of a place. */
struct kept_row {
	const struct ex_cfi_row *row;	/* own, or another's; NULL: none
					   there */
	struct ex_cfi_row own;
	struct ex_cfi_rule rule[];	/* of own */
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

/* Keep an expression that no simple rule can replace. */
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

/* An operation that gives a register of ours plus an offset. */
static bool
is_breg(const Dwarf_Op *op, uint8_t *reg, uint64_t *offset)
{
	if (op->atom >= DW_OP_breg0 && op->atom < DW_OP_breg0 + EX_NREGS) {
		*reg = op->atom - DW_OP_breg0;
		*offset = op->number;
		return true;
	}
	if (op->atom == DW_OP_bregx && op->number < EX_NREGS) {
		*reg = (uint8_t)op->number;
		*offset = op->number2;
		return true;
	}
	return false;
}

static bool
reduce_cfa(Dwarf_Frame *frame, struct ex_cfi_rule *rule)
{
	uint64_t offset;
	uint8_t reg;
	Dwarf_Op *ops;
	size_t n;

	if (dwarf_frame_cfa(frame, &ops, &n) != 0 || n == 0)
		return false;
	if (is_breg(&ops[0], &reg, &offset)) {
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
 * A location, or with value a value, made of what follows the CFA that libdw
 * puts before every register's expression.
 */
static bool
reduce_after_cfa(const Dwarf_Op *ops, size_t n, bool value,
    struct ex_cfi_rule *rule)
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
	if (n == 2 && is_breg(&ops[1], &reg, &offset)) {
		rule_simple(rule, how, reg, offset);
		return true;
	}
	return rule_expression(rule, ops, n, value);
}

static bool
reduce_register(Dwarf_Frame *frame, unsigned reg, struct ex_cfi_rule *rule)
{
	Dwarf_Op mem[3], *ops;
	size_t n;
	bool value;

	rule->reg = (uint8_t)reg;
	if (dwarf_frame_register(frame, (int)reg, mem, &ops, &n) != 0)
		return false;
	if (n == 0) {
		rule->how = ops == NULL ? EX_CFI_SAME : EX_CFI_UNDEFINED;
		return true;
	}
	if (n == 1 && ops[0].atom == DW_OP_regx) {
		if (ops[0].number >= EX_NREGS)
			return false;
		rule_simple(rule, EX_CFI_VALUE, (uint8_t)ops[0].number, 0);
		return true;
	}
	value = ops[n - 1].atom == DW_OP_stack_value;
	if (value)
		n--;
	if (n == 0 || ops[0].atom != DW_OP_call_frame_cfa)
		return false;
	return reduce_after_cfa(ops, n, value, rule);
}

/*
 * A register that a row does not mention keeps its value, as for gdb and
 * libgcc.  libdw calls most of those undefined (rbx too, which its defaults for
 * x86-64 number wrongly), and that cannot be distinguished from registers that
 * the row calls so.
 */
static bool
is_unchanged(const struct ex_cfi_rule *rule)
{
	return rule->how == EX_CFI_SAME || rule->how == EX_CFI_UNDEFINED;
}

/* The return address.  A row may have it in a column of its own, which is then
   a register that holds it until the row says where it was saved. */
static bool
reduce_pc(Dwarf_Frame *frame, struct ex_cfi_rule *rule, bool *signal)
{
	const int column = dwarf_frame_info(frame, NULL, NULL, signal);

	if (column < 0 || column >= EX_NREGS ||
	    !reduce_register(frame, (unsigned)column, rule))
		return false;
	if (column != EX_REG_PC && is_unchanged(rule))
		rule_simple(rule, EX_CFI_VALUE, (uint8_t)column, 0);
	return true;
}

/* Whether a rule says more than the default. */
static bool
is_default(const struct ex_cfi_rule *rule)
{
	if (rule->reg == EX_REG_SP && rule->how == EX_CFI_VALUE)
		return rule->base == EX_CFI_CFA && rule->offset == 0;
	return is_unchanged(rule);
}

/* Fill a row that starts out empty, and its rules.  False: no sense in it, or
   no memory; what is there is to be freed all the same. */
static bool
reduce(Dwarf_Frame *frame, struct ex_cfi_row *row, struct ex_cfi_rule *rules)
{
	unsigned reg;

	row->rule = rules;
	if (!reduce_cfa(frame, &row->cfa) ||
	    !reduce_pc(frame, &row->pc, &row->signal))
		return false;
	for (reg = 0; reg < EX_REG_PC; reg++) {
		struct ex_cfi_rule *rule = &rules[row->n];

		if (!reduce_register(frame, reg, rule))
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

/* The row that one section of a module has for vaddr, or NULL. */
static struct kept_row *
section_row(struct ex_module *module, bool debug_frame, uint64_t vaddr)
{
	struct ex_cfi_rule rules[EX_NREGS] = { 0 };
	struct ex_cfi_row row = { 0 };
	struct kept_row *kept = NULL;
	Dwarf_Frame *frame;
	Dwarf_CFI *cfi;
	uint64_t bias;

	cfi = debug_frame ? ex_module_debug_frame(module, &bias) :
	    ex_module_eh_frame(module, &bias);
	if (cfi == NULL || dwarf_cfi_addrframe(cfi, vaddr + bias, &frame) != 0)
		return NULL;
	if (reduce(frame, &row, rules))
		kept = keep(&row);
	if (kept == NULL)
		row_free(&row);
	free(frame);
	return kept;
}

/* The row of a return trampoline that has none in the file, or NULL. */
static const struct ex_cfi_row *
trampoline_row(struct ex_module *module, uint64_t pc)
{
	uint8_t code[EX_REGS_CODE];

	return ex_regs_sigreturn(code,
	    ex_module_bytes(module, pc, code, sizeof(code)));
}

/* The kernel's return address for a signal handler is where the trampoline
   begins: the byte before it may be another function's.  NULL: out of
   memory. */
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
