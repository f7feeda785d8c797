/*
 * regs_aarch64: registers, calls and signal frames of 64-bit Arm.
 */
#include <asm/perf_regs.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>

#include "unwind/cfi.h"

#ifdef __aarch64__	/* static checkers also read it on other processors */

/* perf numbers x0 to x30 and sp as DWARF does; the pc follows. */
_Static_assert(PERF_REG_ARM64_X29 == EX_REG_FP &&
    PERF_REG_ARM64_SP == EX_REG_SP && PERF_REG_ARM64_PC == EX_REG_PC,
    "one numbering");

/* 32-bit code is not unwound here. */
unsigned
ex_regs_number(bool narrow, uint64_t dwarf)
{
	return !narrow && dwarf < EX_REG_PC ? (unsigned)dwarf : EX_NREGS;
}

bool
ex_regs_read(const struct ex_perf_regs *from, struct ex_regs *regs)
{
	const uint8_t *at = from->values;

	memset(regs, 0, sizeof(*regs));
	if (from->abi != PERF_SAMPLE_REGS_ABI_64 || at == NULL)
		return false;
	for (uint64_t mask = from->mask; mask != 0; mask &= mask - 1) {
		const int number = __builtin_ctzll(mask);
		const uint32_t place = (uint32_t)(at - from->values);

		if (number < EX_NREGS) {
			memcpy(&regs->value[number], at, sizeof(uint64_t));
			regs->known |= UINT64_C(1) << number;
			regs->place[number] = EX_READ_REG | place;
		}
		at += sizeof(uint64_t);
	}
	return regs->known != 0;
}

bool
ex_regs_frame(const struct ex_perf_regs *from, uint64_t *pc, uint64_t *sp)
{
	return from->abi == PERF_SAMPLE_REGS_ABI_64 &&
	    ex_regs_get(from, PERF_REG_ARM64_PC, pc) &&
	    ex_regs_get(from, PERF_REG_ARM64_SP, sp);
}

bool
ex_regs_pc(const struct ex_perf_regs *from, uint64_t *pc)
{
	return from->abi != PERF_SAMPLE_REGS_ABI_NONE &&
	    ex_regs_get(from, PERF_REG_ARM64_PC, pc);
}

/* Addresses have 48 bits unless a program asks for more; the bits above hold
   the signature (Documentation/arch/arm64/pointer-authentication.rst). */
uint64_t
ex_regs_unsigned(uint64_t pc)
{
	return pc & ((UINT64_C(1) << 48) - 1);
}

/* bl, blr, and the forms of blr that check a signature. */
bool
ex_regs_after_call(const uint8_t *code, size_t len)
{
	uint32_t insn;

	if (len < sizeof(insn))
		return false;
	memcpy(&insn, code + len - sizeof(insn), sizeof(insn));
	return (insn & 0xfc000000) == 0x94000000 ||
	    (insn & 0xfffffc1f) == 0xd63f0000 ||
	    (insn & 0xfefff800) == 0xd63f0800;
}

/* No register shows it: x0 holds an argument until the call returns. */
bool
ex_regs_in_call(const struct ex_regs *regs, const uint8_t code[EX_REGS_CALL])
{
	(void)regs;
	(void)code;
	return false;
}

/*
 * When a handler returns, sp points to the siginfo_t, which the ucontext_t
 * follows (struct rt_sigframe in arch/arm64/kernel/signal.c).
 */
#define IN_UCONTEXT(member)						\
	((int64_t)(sizeof(siginfo_t) +					\
	offsetof(ucontext_t, uc_mcontext.member)))
#define SAVED(reg, member) \
	{ reg, EX_CFI_AT, EX_REG_SP, { IN_UCONTEXT(member) } }
#define X(n)	SAVED(n, regs[n])

static const struct ex_cfi_rule sigframe_rules[] = {
	X(0), X(1), X(2), X(3), X(4), X(5), X(6), X(7), X(8), X(9), X(10),
	X(11), X(12), X(13), X(14), X(15), X(16), X(17), X(18), X(19), X(20),
	X(21), X(22), X(23), X(24), X(25), X(26), X(27), X(28), X(29), X(30),
};

static const struct ex_cfi_row sigframe_row = {
	.cfa = SAVED(EX_REG_SP, sp),
	.pc = SAVED(EX_REG_PC, pc),
	.rule = sigframe_rules,
	.n = sizeof(sigframe_rules) / sizeof(sigframe_rules[0]),
	.signal = true,
};

/* mov x8, #__NR_rt_sigreturn; svc #0 */
const struct ex_cfi_row *
ex_regs_sigreturn(const uint8_t *code, size_t len)
{
	static const uint8_t trampoline[] = {
		0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4,
	};

	return len >= sizeof(trampoline) &&
	    memcmp(code, trampoline, sizeof(trampoline)) == 0 ?
	    &sigframe_row : NULL;
}

#endif
