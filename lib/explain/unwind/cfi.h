/*
 * cfi: rows of call frame information, in a few words each.
 *
 * A row says, for one pc, how to find the caller's registers.  elfutils reads
 * it from .eh_frame or .debug_frame; it is reduced once and kept in a hash
 * table of its module, so that a pc seen before costs one look-up.
 */
#ifndef EX_CFI_H
#define EX_CFI_H

#include <elfutils/libdw.h>

#include "module/module.h"
#include "unwind/regs.h"

/* An expression's operations. */
struct ex_cfi_expr {
	size_t n;
	Dwarf_Op op[];
};

/* How a value is found.  The base is a register or the CFA. */
enum ex_cfi_how {
	EX_CFI_SAME,		/* it is what it was */
	EX_CFI_UNDEFINED,	/* there is none */
	EX_CFI_VALUE,		/* base + offset */
	EX_CFI_AT,		/* in memory at base + offset */
	EX_CFI_EXPR_VALUE,	/* what the expression gives */
	EX_CFI_EXPR_AT,		/* in memory at what the expression gives */
};

#define EX_CFI_CFA 255		/* as a base */

struct ex_cfi_rule {
	uint8_t reg;		/* whose value this is; unused for the CFA */
	uint8_t how;		/* enum ex_cfi_how */
	uint8_t base;		/* register, or EX_CFI_CFA */
	union {
		int64_t offset;
		const struct ex_cfi_expr *expr;
	};
};

struct ex_cfi_row {
	struct ex_cfi_rule cfa;	/* VALUE or AT of a register, or EXPR_VALUE */
	struct ex_cfi_rule pc;	/* the return address */
	const struct ex_cfi_rule *rule;	/* registers that are not the same; sp
					   is the CFA unless among them */
	unsigned n;		/* how many */
	bool signal;		/* a signal frame: its caller was interrupted */
};

/*
 * The row for a pc that lies at this vaddr of the module (exact), or for a
 * return address of which vaddr is the byte before.  NULL: there is none.
 * Valid until the next call for the same module.
 */
const struct ex_cfi_row *ex_cfi_row(struct ex_module *, uint64_t vaddr,
    bool exact);

#endif
