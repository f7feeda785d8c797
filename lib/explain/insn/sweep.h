/*
 * sweep: finds the beginning of an x86 instruction by its end; and caches
 * decoded instructions.
 *
 * x86 code cannot be decoded backwards, because most byte sequences end in more
 * than one possible instruction.  So it is decoded forward from its function's
 * start, once per address; the answer is kept in the module.
 */
#ifndef EX_SWEEP_H
#define EX_SWEEP_H

#include <Zydis/Zydis.h>

#include "module/module.h"

/* A function's jumps through memory. */
struct ex_jumps {
	struct ex_jumps *next;	/* another function's */
	uint64_t start;		/* start of the function */
	size_t n;
	uint64_t vaddr[];
};

struct ex_sweep {
	uint8_t len;		/* bytes of the instruction; 0: none is known */
	bool certain;		/* it was reached by decoding from its
				   function's start, and nothing on the way
				   contradicts it */
	bool last;		/* as far as is known, it is the last one of its
				   function */
	const struct ex_jumps *jumps;	/* the jumps of its function; NULL:
					   none */
};

/* Set up a decoder of 64-bit code, or of a 32-bit program's (narrow).  False:
   it failed. */
bool ex_sweep_decoder(bool narrow, ZydisDecoder *);

/* The instruction of a module that ends at vaddr. */
struct ex_sweep ex_sweep_before(struct ex_module *, const ZydisDecoder *,
    uint64_t vaddr);

/* What a register that an instruction overwrote held before (prior_value.h). */
struct ex_prior_value {
	enum {
		EX_PRIOR_UNKNOWN,	/* not determined yet */
		EX_PRIOR_NOT,		/* it is unknown */
		EX_PRIOR_CONSTANT,
		EX_PRIOR_REGISTER,	/* another register still holds it */
	} kind;
	bool narrow;		/* the low 32 bits; the others were zero */
	uint8_t number;		/* REGISTER */
	uint8_t len;		/* bytes of code that show it, up to the
				   instruction's end */
	uint64_t value;		/* CONSTANT */
};

/* A decoded instruction; lives as long as its module. */
struct ex_decoded {
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	struct ex_prior_value held;	/* by the register that it overwrote */
	uint64_t text_pc;	/* the pc that text was made for; 0: none yet */
	char text[96];		/* AT&T syntax */
};

/* The instruction of a module at vaddr; NULL: none there, or out of memory. */
struct ex_decoded *ex_sweep_at(struct ex_module *, const ZydisDecoder *,
    uint64_t vaddr);

#endif
