/*
 * reads: records the parts of a sample that an unwinding read.
 *
 * The result of unwinding depends on the process and its generation, on how
 * much of the stack was copied, on which registers were sampled, and on some
 * values: those of the registers and words of the stack that locate a frame or
 * a caller.  These are the reads.  A saved register that locates no frame is
 * not one of them.
 */
#ifndef EX_READS_H
#define EX_READS_H

#include <stdbool.h>
#include <string.h>

#include "record/record.h"

#define EX_READS_MAX 256

/* A place is 8 bytes, given by their offset in the copied stack or in the
   values of the registers; or 4 bytes of a 32-bit program's stack.  Of an
   address, only its distance from sp matters: the result depends on what lies
   there. */
#define EX_READ_REG UINT32_C(0x80000000)
#define EX_READ_NARROW UINT32_C(0x40000000)
#define EX_READ_ADDRESS UINT32_C(0x20000000)
#define EX_READ_NONE UINT32_MAX

struct ex_reads {
	unsigned n;		/* more than EX_READS_MAX: the list is
				   incomplete */
	bool by_sp;		/* the result depends on sp, and on addresses,
				   in another way too */
	uint32_t place[EX_READS_MAX];	/* may contain one twice */
};

/* The bytes at a place that was read from this sample, or from another one with
   as many registers and as much stack. */
static inline uint64_t
ex_read_value(const struct ex_sample *sample, uint32_t place)
{
	uint32_t narrow;
	uint64_t value;

	place &= ~EX_READ_ADDRESS;
	if ((place & EX_READ_REG) == 0 && (place & EX_READ_NARROW) != 0) {
		memcpy(&narrow, sample->stack + (place & ~EX_READ_NARROW),
		    sizeof(narrow));
		return narrow;
	}
	memcpy(&value, (place & EX_READ_REG) != 0 ?
	    sample->user.values + (place & ~EX_READ_REG) :
	    sample->stack + place, sizeof(value));
	return value;
}

#endif
