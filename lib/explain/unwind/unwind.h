/*
 * unwind: finds the callers' pcs from sampled registers and a copy of the
 * stack, by DWARF call frame information, without frame pointers.
 *
 * A CFI row is looked up once per pc, reduced to a few words and cached in its
 * module; a frame then costs nanoseconds.  DWARF expressions (PLT stubs, signal
 * frames, realigned stacks) are evaluated here too.
 */
#ifndef EX_UNWIND_H
#define EX_UNWIND_H

#include "unwind/reads.h"

struct ex_process;

/* Why a backtrace ends where it does. */
enum ex_end {
	EX_END_OUTERMOST,	/* the first function of the thread: complete */
	EX_END_STACK,		/* the copy of the stack ended */
	EX_END_NO_CFI,		/* no unwind information for the last pc */
	EX_END_NO_MODULE,	/* the last pc lies in no known module */
	EX_END_BAD,		/* unwind information or stack makes no sense */
	EX_END_DEPTH,		/* more frames than asked for */
	EX_END_NO_REGS,		/* the sample holds no user registers */
};

/* The same in words for a reader ("stack truncated: ..."); NULL for
   OUTERMOST. */
const char *ex_end_text(enum ex_end);

/* One caller. */
struct ex_pc {
	uint64_t pc;	/* address in the process */
	bool exact;	/* pc itself is the instruction (interrupted there, or
			   called by the kernel): look it up as it is;
			   otherwise it is a return address: look up pc - 1 */
	bool signal;	/* pc is a signal frame's return trampoline */
};

/*
 * Unwind a sample taken in this process into at most max pcs, innermost first.
 * The first is the sampled user pc; for a sample in the kernel, the point where
 * the program entered it.  Result: their number; *end is the reason of the
 * end.  A sample without registers or without a copy of the stack gives its
 * user callchain if it has one; otherwise, without registers, its ip, if that
 * is in user space.
 */
unsigned ex_unwind(struct ex_process *, const struct ex_sample *,
    struct ex_pc *out, unsigned max, enum ex_end *end);

/*
 * The same, and records what it read of the sample.  As long as the process is
 * in the same generation, another sample of it gives the same result if it has
 * the same registers (abi and mask), as much of the stack, copied and asked
 * for, and the same values in these places. reads->n is more than EX_READS_MAX
 * if there are not enough places, or if the sample has no registers or stack to
 * unwind by.
 */
unsigned ex_unwind_reads(struct ex_process *, const struct ex_sample *,
    struct ex_pc *out, unsigned max, enum ex_end *end, struct ex_reads *);

/*
 * The kernel's part of a sample, innermost first: from its callchain or,
 * without one, its ip if that is in the kernel.  Result: their number, at most
 * max.
 */
unsigned ex_unwind_kernel(const struct ex_sample *, struct ex_pc *out,
    unsigned max);

#endif
