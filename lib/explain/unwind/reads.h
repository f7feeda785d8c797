/*
 * reads: what an unwinding read of a sample.
 *
 * The callers that are found depend on the process, in its generation, on how
 * much of the stack was copied, on which registers there are, and on the values
 * of some: of registers and words of the stack that say where a frame or a
 * caller is.  These are the reads.  A word that was merely saved (a register
 * that no frame above is found by) is none.
 */
#ifndef EX_READS_H
#define EX_READS_H

#include <string.h>

#include "record/record.h"

#define EX_READS_MAX 256

/* Places are of 8 bytes: an offset in the copied stack, or in the values of the
   registers. */
#define EX_READ_REG UINT32_C(0x80000000)
#define EX_READ_NONE UINT32_MAX

struct ex_reads {
	unsigned n;		/* more than EX_READS_MAX: not all are here */
	uint32_t place[EX_READS_MAX];	/* may name one twice */
};

/* The 8 bytes at a place that was read of a sample, or of one that has as many
   registers and as much stack. */
static inline uint64_t
ex_read_value(const struct ex_sample *sample, uint32_t place)
{
	uint64_t value;

	memcpy(&value, (place & EX_READ_REG) != 0 ?
	    sample->user.values + (place & ~EX_READ_REG) :
	    sample->stack + place, sizeof(value));
	return value;
}

#endif
