/*
 * cfi: reduces rows of call frame information to a few words each.
 *
 * A row says, for one pc, how to find the caller's registers. elfutils reads it
 * from .eh_frame or .debug_frame.  The reduced row is kept in a hash table of
 * its module, so a known pc costs one look-up.
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

/* The location of a value.  The base is a register or the CFA. */
enum ex_cfi_how {
	EX_CFI_SAME,		/* unchanged */
	EX_CFI_UNDEFINED,	/* undefined */
	EX_CFI_VALUE,		/* base + offset */
	EX_CFI_AT,		/* in memory at base + offset */
	EX_CFI_EXPR_VALUE,	/* the value of the expression */
	EX_CFI_EXPR_AT,		/* in memory at the value of the expression */
};

#define EX_CFI_CFA 255		/* the CFA as a base */

struct ex_cfi_rule {
	uint8_t reg;		/* the register with this value; unused for the
				   CFA */
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
	const struct ex_cfi_rule *rule;	/* rules of registers that change; sp is
					   the CFA unless listed */
	unsigned n;		/* number of rules */
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
