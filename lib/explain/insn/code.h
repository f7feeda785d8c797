/*
 * code: one decoded x86 instruction, and its effect on a watch, as far as the
 * registers sampled after it show it.
 *
 * Registers that an instruction overwrote are lost, except for the fixed steps
 * of the stack pointer and of string instructions.
 */
#ifndef EX_CODE_H
#define EX_CODE_H

#include <Zydis/Zydis.h>

#include "insn/effect.h"
#include "insn/sweep.h"
#include "record/record.h"

struct ex_process;

/* General registers by their numbers in x86's encoding. */
enum {
	EX_AX = 0,
	EX_CX = 1,
	EX_DX = 2,
	EX_BX = 3,
	EX_SP = 4,
	EX_BP = 5,
};

/* Bits of the flags register. */
enum {
	EX_FLAG_CF = 1 << 0,
	EX_FLAG_PF = 1 << 2,
	EX_FLAG_ZF = 1 << 6,
	EX_FLAG_SF = 1 << 7,
	EX_FLAG_DF = 1 << 10,
	EX_FLAG_OF = 1 << 11,
};

/* A sample of a watch, and its context. */
struct ex_query {
	struct ex_process *process;
	const struct ex_sample *sample;
	ZydisDecoder decoder;
	unsigned word;		/* bytes of an address: 8, or 4 in 32-bit
				   code */
	uint64_t pc;		/* sampled */
	uint64_t addr;		/* the watch */
	uint32_t len;
	bool reads_too;		/* the watch is on reads as well as writes */
};

/* A decoded instruction. */
struct ex_code {
	uint64_t pc;		/* its address in the process */
	uint64_t base;		/* that less its vaddr */
	bool certain;		/* see struct ex_sweep, also for these two: */
	bool last;
	const struct ex_jumps *jumps;
	struct ex_decoded *decoded;	/* insn and op are parts of it */
	const ZydisDecodedInstruction *insn;
	const ZydisDecodedOperand *op;
};

/* Whether an operand, or any operand of an instruction, touches the watch. */
enum ex_touch {
	EX_TOUCH_NO,
	EX_TOUCH_MAYBE,
	EX_TOUCH_YES,
};

/* The same, with details. */
struct ex_finding {
	enum ex_touch touch;
	uint64_t addr;		/* EX_TOUCH_YES: first byte touched */
	uint32_t size;		/* bytes touched; 0: unknown, and with
				   EX_TOUCH_YES addr is, too */
	uint64_t within;	/* EX_TOUCH_MAYBE: the touched bytes, if any,
				   are */
	uint32_t within_size;	/* among these; 0: not known */
	uint64_t other;		/* EX_TOUCH_YES: addr and size of a second
				   operand */
	uint32_t other_size;	/* that touches the watch; 0: none */
	bool stores;		/* the first operand is written */
	bool reads, writes;	/* what all operands together do there */
};

/* Decode the instruction that ends where pc begins; false: none is known. */
bool ex_code_before(const struct ex_query *, uint64_t pc, struct ex_code *);

/* A sampled general register by its number; the flags. */
bool ex_query_reg(const struct ex_query *, unsigned number, uint64_t *value);

/* The number in samples of a general register, which is one of x86's
   sixteen. */
uint8_t ex_code_sampled(unsigned number);

bool ex_query_flags(const struct ex_query *, uint64_t *flags);

/* The number of the general register that reg is, or is a part of. */
bool ex_query_number(const struct ex_query *, ZydisRegister reg,
    unsigned *number);

/* Do size bytes at addr touch the watch? */
bool ex_query_overlaps(const struct ex_query *, uint64_t addr, uint64_t size);

/* A string instruction that is repeated. */
bool ex_code_is_rep(const struct ex_code *);

/* Another instruction that the processor may interrupt between its accesses,
   and resumes when it is executed again (gather, scatter). */
bool ex_code_is_resumed(const struct ex_code *);

/* Whether and how the instruction touched the watch, if it was the last one
   before the sample (or, if repeated, is not done yet). */
struct ex_finding ex_code_touch(const struct ex_query *,
    const struct ex_code *);

/* What the instruction, which touched the watch as found, did to the memory
   there.  Always fills *effect. */
void ex_code_effect(const struct ex_query *, const struct ex_code *,
    const struct ex_finding *found, struct ex_effect *effect);

#endif
