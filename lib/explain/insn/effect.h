/*
 * effect: what an instruction did to the memory that it touched, as far as the
 * registers sampled after it show it.
 *
 * Some instructions store bytes that a register or the instruction itself still
 * holds.  Others compute the new value from the old one and an operand (add,
 * xor, shl, ...).  And some leave what they loaded in a register (xchg, xadd,
 * cmpxchg, mov): that is the old value for certain, whatever other threads
 * write there.
 */
#ifndef EX_EFFECT_H
#define EX_EFFECT_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes of the largest operand whose value general registers hold. */
#define EX_EFFECT_MAX 16

enum ex_operation {
	EX_OP_UNKNOWN,		/* any value may be there now */
	EX_OP_NONE,		/* it did not write */
	EX_OP_STORE,		/* `stored' is the new value */
	EX_OP_ADD,		/* from here on the new value is computed from
				   the old one and the operand */
	EX_OP_ADC,
	EX_OP_SUB,
	EX_OP_SBB,
	EX_OP_AND,
	EX_OP_OR,
	EX_OP_XOR,
	EX_OP_INC,
	EX_OP_DEC,
	EX_OP_NEG,
	EX_OP_NOT,
	EX_OP_SHL,
	EX_OP_SHR,
	EX_OP_SAR,
	EX_OP_ROL,
	EX_OP_ROR,
	EX_OP_BTS,
	EX_OP_BTR,
	EX_OP_BTC,
};

/* All zero: nothing is known of it. */
struct ex_effect {
	enum ex_operation operation;
	uint8_t size;		/* bytes of the memory operand; the first is at
				   the instruction's addr */
	bool immediate;		/* STORE: it stored a constant */
	bool plain;		/* STORE: it stored a constant or the low bytes
				   of reg, at an address that depends only on
				   nbases registers, base.  None of these
				   registers has changed; they have their
				   numbers in samples */
	uint8_t reg, nbases, base[2];
	bool repeated;		/* by rep: earlier elements may have been
				   written at the same time */
	bool has_loaded;	/* `loaded' is the old value */
	bool atomic;		/* no other access came in between its loading
				   and its storing */
	bool added;		/* UNKNOWN: it added an operand that is lost to
				   what it loaded */
	bool has_flags;		/* flags were sampled */
	uint8_t stored[EX_EFFECT_MAX];	/* STORE, low byte first */
	uint8_t loaded[EX_EFFECT_MAX];	/* has_loaded, low byte first */
	uint64_t operand;	/* computations: the other operand, or the
				   count, or the number of the bit */
	uint64_t flags;		/* has_flags: the processor's flags
				   afterwards */
};

enum ex_derived {
	EX_DERIVED,		/* this is the new value */
	EX_NOT_DERIVED,		/* it cannot be known */
	EX_CONTRADICTED,	/* the flags show that old was not the old
				   value */
};

/* The new value from the old one, both of size bytes (at most 8). */
enum ex_derived ex_effect_derive(const struct ex_effect *, uint64_t old,
    uint64_t *value);

/* For an addition: whether the sampled flags are those of computing the new
   value from the old one; true if they are not known. */
bool ex_effect_may_add(const struct ex_effect *, uint64_t old, uint64_t value);

/* The old value from the new one, if it is the only one that leads to it;
   false: it cannot be known. */
bool ex_effect_invert(const struct ex_effect *, uint64_t value, uint64_t *old);

#endif
