/*
 * insn: finds the instruction that made an access, and what it touches.
 *
 * A data watchpoint on x86 reports the instruction after the access.  So the
 * code is decoded forward from its function's start to that pc, and the last
 * instruction before it is taken, unless it cannot be the one (a call, a jump,
 * a return, a rep string).  Results are cached per (module, pc).  On 64-bit Arm
 * the trap comes before the access, at the instruction itself.
 */
#ifndef EX_INSN_H
#define EX_INSN_H

#include "insn/effect.h"
#include "record/record.h"
#include "watchpoint.h"

struct ex_process;

/* The certainty of the answer. */
enum ex_confidence {
	EX_UNKNOWN,		/* no instruction could be named */
	EX_AMBIGUOUS,		/* one of several */
	EX_ADDRESS_UNVERIFIED,	/* this one, but its operand's address could not
				   be computed again from the registers */
	EX_EXACT,		/* this one, and its operand covers the watch */
};

/* "unknown", "ambiguous", "address-unverified", "exact". */
const char *ex_confidence_text(enum ex_confidence);

struct ex_insn {
	enum ex_confidence confidence;
	uint64_t pc;		/* its address in the process; 0 when unknown */
	uint8_t len;		/* bytes */
	char text[96];		/* on x86 AT&T syntax, as Zydis prints it;
				   on 64-bit Arm as Capstone does */
	bool reads, writes;	/* memory at the watch; both:
				   read-modify-write */
	uint64_t addr;		/* exact: first byte touched, if size is known;
				   else 0 */
	uint32_t size;		/* bytes touched; 0: unknown */
	uint64_t within;	/* address-unverified: the touched bytes are
				   among the within_size bytes here */
	uint32_t within_size;	/* 0: not known */
	uint64_t other;		/* exact: addr and size of a second operand that
				   touched the watch in the way it asks for */
	uint32_t other_size;	/* 0: there is none */
	struct ex_effect effect;	/* exact: what it did to those bytes */
	uint64_t jump;		/* ambiguous only because a jump through the
				   8 bytes at this address may have led here
				   instead: if other bytes were there, it is
				   exact, and effect holds; else 0 */
};

/* Note that no such jump was made. */
void ex_insn_no_jump(struct ex_insn *);

/*
 * Explain a sample taken in user mode in this process, of a watch of len bytes
 * at addr.  access is what the watch asked for; WP_READ counts as WP_ACCESS,
 * since x86 has no watch of reads alone.  Always fills *out.
 */
void ex_insn_explain(struct ex_process *, const struct ex_sample *,
    uint64_t addr, uint32_t len, enum wp_access access,
    struct ex_insn *out);

#endif
