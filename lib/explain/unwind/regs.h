/*
 * regs: the registers that unwinding needs, by their DWARF numbers.  Those of a
 * 32-bit program have the numbers of the 64-bit registers that contain them.
 *
 * Parts that depend on the processor are in regs_x86_64.c and regs_aarch64.c:
 * the numbers of a sample's registers, the form of a call, the place where a
 * signal frame saves the interrupted registers.
 */
#ifndef EX_REGS_H
#define EX_REGS_H

#include "unwind/reads.h"

/* Registers that unwinding must know by name (x86-64 psABI, figure 3.36; DWARF
   for the Arm 64-bit Architecture, 4.1). */
enum {
#if defined(__aarch64__)
	EX_REG_FP = 29,
	EX_REG_SP = 31,
	EX_REG_PC = 32,		/* without a DWARF column */
	EX_REG_LINK = 30,	/* holds the return address after a call */
#else
	EX_REG_FP = 6,		/* rbp */
	EX_REG_SP = 7,		/* rsp */
	EX_REG_PC = 16,		/* the return address column */
	EX_REG_LINK = 255,	/* none: it is on the stack */
#endif
	EX_NREGS = EX_REG_PC + 1,
};

/* The upper bound of user addresses (57-bit addressing). */
#define EX_USER_END (UINT64_C(1) << 56)

struct ex_cfi_row;

struct ex_regs {
	uint64_t value[EX_NREGS];
	uint64_t known;		/* bit n: value[n] is known */
	bool narrow;		/* 32-bit code: registers and stack words have 4
				   bytes */
	uint32_t place[EX_NREGS];	/* of known registers: the place in the
					   sample that the value is from, if it
					   has not been used yet; else
					   EX_READ_NONE */
};

static inline bool
ex_regs_known(const struct ex_regs *regs, unsigned reg)
{
	return reg < EX_NREGS && (regs->known >> reg & 1) != 0;
}

/* Bytes of an address, and of a word on the stack. */
static inline size_t
ex_regs_word(const struct ex_regs *regs)
{
	return regs->narrow ? sizeof(uint32_t) : sizeof(uint64_t);
}

/* A register by the number that it has in debug information of 64-bit code, or
   of 32-bit code (narrow); EX_NREGS: it is none of ours. */
unsigned ex_regs_number(bool narrow, uint64_t dwarf);

/* The registers of a sample.  False, and nothing known: it has none. */
bool ex_regs_read(const struct ex_perf_regs *, struct ex_regs *);

/* The pc and sp of a sample; false as for ex_regs_read. */
bool ex_regs_frame(const struct ex_perf_regs *, uint64_t *pc, uint64_t *sp);

/* The pc of a sample's registers; false: none. */
bool ex_regs_pc(const struct ex_perf_regs *, uint64_t *pc);

/* A return address without the signature that the processor has put into its
   upper bits. */
uint64_t ex_regs_unsigned(uint64_t pc);

/* The most bytes of code that the two functions below examine. */
#define EX_REGS_CODE 16

/* Whether the len bytes of code before an address end in a call. */
bool ex_regs_after_call(const uint8_t *code, size_t len);

/* The length of a system call instruction; and whether a thread with this code
   before its pc is in a system call. */
#if defined(__aarch64__)
#define EX_REGS_CALL 4
#else
#define EX_REGS_CALL 2
#endif
bool ex_regs_in_call(const struct ex_regs *, const uint8_t code[EX_REGS_CALL]);

/* The row of a signal frame whose return trampoline is the len bytes of code,
   for trampolines without unwind information; NULL: it is no trampoline. */
const struct ex_cfi_row *ex_regs_sigreturn(const uint8_t *code, size_t len);

#endif
