/*
 * expr: evaluates DWARF expressions, as call frame information uses them (PLT
 * stubs, signal frames, realigned stacks), and types of arrays.
 *
 * Expressions come from untrusted files: their stack, steps and memory are
 * bounded.
 */
#ifndef EX_EXPR_H
#define EX_EXPR_H

#include <elfutils/libdw.h>

#include "unwind/regs.h"

/* The inputs of an expression. */
struct ex_expr_env {
	const struct ex_regs *regs;
	const uint64_t *cfa;	/* DW_OP_call_frame_cfa; NULL: not known yet */
	const uint64_t *object;	/* DW_OP_push_object_address; NULL: none */
	uint64_t base;		/* added to the addresses of DW_OP_addr */
	/* Copies len bytes of the program's memory; false: it cannot be
	   read. */
	bool (*read)(void *arg, uint64_t addr, void *to, size_t len);
	void *arg;		/* for read */
	uint64_t *used;		/* bit n is set if register n is used; may be
				   NULL */
};

/*
 * Evaluate n operations to the value on top of the stack.  Register locations
 * are not supported.  0; -EINVAL: no valid expression, or it takes too long;
 * -ENODATA: it needs a register that is not known; -EFAULT: memory that cannot
 * be read.
 */
int ex_expr_eval(const Dwarf_Op *, size_t n, const struct ex_expr_env *,
    uint64_t *value);

#endif
