/*
 * sweep: where an x86 instruction begins, given where it ends; and a cache of
 * decoded instructions.
 *
 * x86 code cannot be read backwards: most bytes end more than one possible
 * instruction.  It is decoded forward from its function's start instead, once
 * per address; the answer is kept in the module.
 */
#ifndef EX_SWEEP_H
#define EX_SWEEP_H

#include <Zydis/Zydis.h>

#include "module/module.h"

/* A function's jumps through memory. */
struct ex_jumps {
	struct ex_jumps *next;	/* another function's */
	uint64_t start;		/* of this function */
	size_t n;
	uint64_t vaddr[];
};

struct ex_sweep {
	uint8_t len;		/* bytes of the instruction; 0: none is known */
	bool certain;		/* it was met on the way from its function's
				   start, and nothing seen on that way
				   disagrees */
	bool last;		/* its function ends where it does, as far as is
				   known: what comes next is another's start */
	const struct ex_jumps *jumps;	/* its function's; NULL: it has none */
};

/* Set up a decoder of 64-bit code, or of a 32-bit program's (narrow).  False:
   it cannot be. */
bool ex_sweep_decoder(bool narrow, ZydisDecoder *);

/* The instruction of a module that ends where vaddr begins. */
struct ex_sweep ex_sweep_before(struct ex_module *, const ZydisDecoder *,
    uint64_t vaddr);

/* What a register that an instruction overwrote held before (prior_value.h). */
struct ex_prior_value {
	enum {
		EX_PRIOR_UNKNOWN,	/* not looked at yet */
		EX_PRIOR_NOT,		/* it cannot be known */
		EX_PRIOR_CONSTANT,
		EX_PRIOR_REGISTER,	/* what another one still holds */
	} kind;
	bool narrow;		/* the low 32 bits; the others were zero */
	uint8_t number;		/* REGISTER */
	uint8_t len;		/* bytes of code that say so, up to the
				   instruction's end */
	uint64_t value;		/* CONSTANT */
};

/* An instruction, decoded; kept in its module, and living as long. */
struct ex_decoded {
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	struct ex_prior_value held;	/* by its register that it also loads */
	uint64_t text_pc;	/* the pc that text was made for; 0: none yet */
	char text[96];		/* AT&T syntax */
};

/* The instruction of a module at vaddr; NULL: none there, or out of memory. */
struct ex_decoded *ex_sweep_at(struct ex_module *, const ZydisDecoder *,
    uint64_t vaddr);

#endif
