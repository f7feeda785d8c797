/* capture_x86_64: registers of a signal frame, in the order of perf's. */
#include <asm/perf_regs.h>

#include <string.h>

#include "handler/capture.h"

unsigned
wp_cpu_regs(const ucontext_t *context, uint64_t out[WP_CPU_REGS_MAX])
{
	/* the order of PERF_REG_X86_*, except for the segment registers */
	static const uint8_t order[] = {
		REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_RBP,
		REG_RSP, REG_RIP, REG_EFL, REG_CSGSFS, REG_CSGSFS, REG_R8,
		REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
	};
	const greg_t *regs = context->uc_mcontext.gregs;
	unsigned n = 0;

	for (; n < sizeof(order); n++)
		out[n] = (uint64_t)regs[order[n]];
	/* cs, gs, fs, ss: 16 bits each */
	out[PERF_REG_X86_CS] = (uint64_t)regs[REG_CSGSFS] & 0xffff;
	out[PERF_REG_X86_SS] = (uint64_t)regs[REG_CSGSFS] >> 48;
	return n;
}

uint64_t
wp_cpu_pc(const ucontext_t *context)
{
	return (uint64_t)context->uc_mcontext.gregs[REG_RIP];
}

uint64_t
wp_cpu_sp(const ucontext_t *context)
{
	return (uint64_t)context->uc_mcontext.gregs[REG_RSP];
}

uint64_t
wp_cpu_fp(const ucontext_t *context)
{
	return (uint64_t)context->uc_mcontext.gregs[REG_RBP];
}

uint64_t
wp_cpu_argument(const ucontext_t *context)
{
	return (uint64_t)context->uc_mcontext.gregs[REG_RDI];
}

/* syscall or int $0x80 */
bool
wp_cpu_after_syscall(const ucontext_t *context)
{
	const uint64_t pc = wp_cpu_pc(context), from = pc - 2;
	uint8_t code[2];

	/* on the page of the pc, which is readable as it is being executed */
	if (((pc ^ from) & ~(uint64_t)4095) == 0)
		memcpy(code, (const void *)(uintptr_t)from, sizeof(code));
	else if (wp_peek(code, from, sizeof(code)) != sizeof(code))
		return false;
	return ((code[0] == 0x0f && code[1] == 0x05) ||
	    (code[0] == 0xcd && code[1] == 0x80));
}
