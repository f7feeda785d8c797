/*
 * value: the bytes of a watch before and after a hit, and the way in which they
 * are known.
 *
 * Each byte is known or not: nothing is guessed.  What an instruction stored is
 * known from the registers sampled after it, in part or in full (effect.h);
 * what it derived from the old value (add, inc, xor, ...), from the old value;
 * otherwise memory is read, while the process is stopped at the hit, or later.
 * The old value is what the previous hit left, if no other writer can have come
 * in between (value_tracker.h); or what the instruction itself loaded (xchg,
 * xadd, cmpxchg); or what it computed a known new value from.
 */
#ifndef EX_VALUE_H
#define EX_VALUE_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes of the largest watch: four slots of eight. */
#define EX_VALUE_MAX 32

/* The bytes of a watch, from its first on. */
struct ex_value {
	uint8_t byte[EX_VALUE_MAX];
	uint32_t known;		/* bit n: byte n is known */
};

/* The way in which the new value is known. */
enum ex_value_source {
	EX_VALUE_UNKNOWN,	/* it is not known */
	EX_VALUE_REGISTER,	/* the instruction stored a register */
	EX_VALUE_IMMEDIATE,	/* or a constant */
	EX_VALUE_DERIVED,	/* it computed it from the old value */
	EX_VALUE_STOP,		/* read while the thread was stopped at the
				   hit, and no other had written */
	EX_VALUE_PROVED,	/* the next access loaded it */
	EX_VALUE_LATER,		/* read later: others may have written since */
};

/* What is no longer known of a watch's bytes. */
enum ex_doubt {
	EX_MISSED,	/* accesses may have been missed: nothing is known */
	EX_UNREAD,	/* others may have accessed it since its bytes were
			   read: values known without reading remain known */
	EX_UNSEEN,	/* others may write them without a hit: from now on
			   only what an instruction shows is known */
	EX_UNMAPPED,	/* in a recording: how they are mapped is not known, so
			   others may write them, unless a record says how, or
			   they belong to a module */
};

/* "register", "immediate", "derived", "stop", "proved", "later"; NULL:
   unknown. */
const char *ex_value_source_text(enum ex_value_source);

/* Whether bytes from to from + len - 1 are all known; and as a number, the
   first the lowest, len at most 8. */
bool ex_value_known(const struct ex_value *, unsigned from, unsigned len);
uint64_t ex_value_number(const struct ex_value *, unsigned from, unsigned len);

#endif
