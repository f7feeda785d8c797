/*
 * regs_x86_64: registers, calls and signal frames of x86-64.
 */
#include <asm/perf_regs.h>
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "unwind/cfi.h"

#define NONE EX_NREGS

/* DWARF's number of each register of perf. */
static const uint8_t dwarf_reg[PERF_REG_X86_64_MAX] = {
	[PERF_REG_X86_AX] = 0, [PERF_REG_X86_BX] = 3, [PERF_REG_X86_CX] = 2,
	[PERF_REG_X86_DX] = 1, [PERF_REG_X86_SI] = 4, [PERF_REG_X86_DI] = 5,
	[PERF_REG_X86_BP] = EX_REG_FP, [PERF_REG_X86_SP] = EX_REG_SP,
	[PERF_REG_X86_IP] = EX_REG_PC, [PERF_REG_X86_FLAGS] = NONE,
	[PERF_REG_X86_CS] = NONE, [PERF_REG_X86_SS] = NONE,
	[PERF_REG_X86_DS] = NONE, [PERF_REG_X86_ES] = NONE,
	[PERF_REG_X86_FS] = NONE, [PERF_REG_X86_GS] = NONE,
	[PERF_REG_X86_R8] = 8, [PERF_REG_X86_R9] = 9, [PERF_REG_X86_R10] = 10,
	[PERF_REG_X86_R11] = 11, [PERF_REG_X86_R12] = 12,
	[PERF_REG_X86_R13] = 13, [PERF_REG_X86_R14] = 14,
	[PERF_REG_X86_R15] = 15,
};

/* i386 numbers the registers differently (System V ABI, Intel386, table
   2.14). */
unsigned
ex_regs_number(bool narrow, uint64_t dwarf)
{
	static const uint8_t wide[] = {
		0, 2, 1, 3, EX_REG_SP, EX_REG_FP, 4, 5, EX_REG_PC,
	};

	if (!narrow)
		return dwarf < EX_NREGS ? (unsigned)dwarf : EX_NREGS;
	return dwarf < sizeof(wide) ? wide[dwarf] : EX_NREGS;
}

static void
read_regs(const struct ex_perf_regs *from, struct ex_regs *regs)
{
	const uint8_t *at = from->values;
	uint64_t mask, value;

	memset(regs, 0, sizeof(*regs));
	regs->narrow = from->abi == PERF_SAMPLE_REGS_ABI_32;
	if (at == NULL || from->abi == PERF_SAMPLE_REGS_ABI_NONE)
		return;
	for (mask = from->mask; mask != 0; mask &= mask - 1) {
		const int number = __builtin_ctzll(mask);

		const uint32_t place = (uint32_t)(at - from->values);

		memcpy(&value, at, sizeof(value));
		at += sizeof(value);
		if (number >= PERF_REG_X86_64_MAX || dwarf_reg[number] == NONE)
			continue;
		/* in a system call the kernel does not have ebx */
		if (regs->narrow && value == UINT64_MAX)
			continue;
		regs->value[dwarf_reg[number]] = regs->narrow ?
		    (uint32_t)value : value;
		regs->known |= UINT64_C(1) << dwarf_reg[number];
		regs->place[dwarf_reg[number]] = EX_READ_REG | place;
	}
}

bool
ex_regs_read(const struct ex_perf_regs *from, struct ex_regs *regs)
{
	read_regs(from, regs);
	return regs->known != 0;
}

bool
ex_regs_frame(const struct ex_perf_regs *from, uint64_t *pc, uint64_t *sp)
{
	return from->abi != PERF_SAMPLE_REGS_ABI_NONE &&
	    ex_regs_get(from, PERF_REG_X86_IP, pc) &&
	    ex_regs_get(from, PERF_REG_X86_SP, sp);
}

bool
ex_regs_pc(const struct ex_perf_regs *from, uint64_t *pc)
{
	struct ex_regs regs;

	read_regs(from, &regs);
	*pc = regs.value[EX_REG_PC];
	return ex_regs_known(&regs, EX_REG_PC);
}

uint64_t
ex_regs_unsigned(uint64_t pc)
{
	return pc;
}

/* The length of `call *' (opcode ff /2) from its ModRM byte on, or 0 if this is
   not one.  avail bytes of code can be read. */
static size_t
indirect_call_len(const uint8_t *modrm, size_t avail)
{
	const unsigned mod = modrm[0] >> 6, rm = modrm[0] & 7;
	size_t len = 1;
	bool disp32 = mod == 2 || (mod == 0 && rm == 5);

	if ((modrm[0] >> 3 & 7) != 2)
		return 0;
	if (mod != 3 && rm == 4) {
		if (avail < ++len)
			return 0;
		disp32 |= mod == 0 && (modrm[1] & 7) == 5;
	}
	return len + (disp32 ? 4 : mod == 1);
}

bool
ex_regs_after_call(const uint8_t *code, size_t len)
{
	size_t n;

	if (len >= 5 && code[len - 5] == 0xe8)
		return true;
	for (n = 1; n <= 6 && n < len; n++)
		if (code[len - n - 1] == 0xff &&
		    indirect_call_len(code + len - n, n) == n)
			return true;
	return false;
}

/* During a system call rax holds -ENOSYS. */
bool
ex_regs_in_call(const struct ex_regs *regs, const uint8_t code[EX_REGS_CALL])
{
	static const uint8_t syscall[EX_REGS_CALL] = { 0x0f, 0x05 };
	static const uint8_t int80[EX_REGS_CALL] = { 0xcd, 0x80 };

	return memcmp(code, regs->narrow ? int80 : syscall, EX_REGS_CALL) ==
	    0 && ex_regs_known(regs, 0) && regs->value[0] ==
	    (regs->narrow ? (uint32_t)-ENOSYS : (uint64_t)-ENOSYS);
}

/*
 * When a handler returns to the trampoline, sp points to a ucontext_t.  The
 * code of the trampoline is fixed: mov $__NR_rt_sigreturn,%rax (or %eax);
 * syscall.
 */
#define IN_UCONTEXT(reg) \
	((int64_t)offsetof(ucontext_t, uc_mcontext.gregs[(reg)]))
#define SAVED(dwarf, reg) \
	{ dwarf, EX_CFI_AT, EX_REG_SP, { IN_UCONTEXT(reg) } }

static const struct ex_cfi_rule sigframe_rules[] = {
	SAVED(0, REG_RAX), SAVED(1, REG_RDX), SAVED(2, REG_RCX),
	SAVED(3, REG_RBX), SAVED(4, REG_RSI), SAVED(5, REG_RDI),
	SAVED(6, REG_RBP), SAVED(8, REG_R8), SAVED(9, REG_R9),
	SAVED(10, REG_R10), SAVED(11, REG_R11), SAVED(12, REG_R12),
	SAVED(13, REG_R13), SAVED(14, REG_R14), SAVED(15, REG_R15),
};

static const struct ex_cfi_row sigframe_row = {
	.cfa = SAVED(EX_REG_SP, REG_RSP),
	.pc = SAVED(EX_REG_PC, REG_RIP),
	.rule = sigframe_rules,
	.n = sizeof(sigframe_rules) / sizeof(sigframe_rules[0]),
	.signal = true,
};

const struct ex_cfi_row *
ex_regs_sigreturn(const uint8_t *code, size_t len)
{
	static const uint8_t rax[] = {
		0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05
	};
	static const uint8_t eax[] = { 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05 };

	if ((len >= sizeof(rax) && memcmp(code, rax, sizeof(rax)) == 0) ||
	    (len >= sizeof(eax) && memcmp(code, eax, sizeof(eax)) == 0))
		return &sigframe_row;
	return NULL;
}
