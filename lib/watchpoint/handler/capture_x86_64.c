/* capture_x86_64: registers of a signal frame, in the order of perf's; of a
   32-bit program (i386), too. */
#include <asm/perf_regs.h>

#include <string.h>

#include "handler/capture.h"

#ifdef __x86_64__
enum { PC = REG_RIP, SP = REG_RSP, FP = REG_RBP };
#else
enum { PC = REG_EIP, SP = REG_ESP, FP = REG_EBP };
#endif

static uint64_t
reg(const ucontext_t *context, unsigned number)
{
	return (unsigned long)context->uc_mcontext.gregs[number];
}

unsigned
wp_cpu_regs(const ucontext_t *context, uint64_t out[WP_CPU_REGS_MAX])
{
	/* the order of PERF_REG_X86_*, but for the segment registers */
	static const uint8_t order[] = {
#ifdef __x86_64__
		REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_RBP,
		REG_RSP, REG_RIP, REG_EFL, REG_CSGSFS, REG_CSGSFS, REG_R8,
		REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
#else
		REG_EAX, REG_EBX, REG_ECX, REG_EDX, REG_ESI, REG_EDI, REG_EBP,
		REG_ESP, REG_EIP, REG_EFL, REG_CS, REG_SS,
#endif
	};
	unsigned n = 0;

	for (; n < sizeof(order); n++)
		out[n] = reg(context, order[n]);
#ifdef __x86_64__
	/* cs, gs, fs, ss: 16 bits each */
	out[PERF_REG_X86_CS] = reg(context, REG_CSGSFS) & 0xffff;
	out[PERF_REG_X86_SS] = reg(context, REG_CSGSFS) >> 48;
#else
	for (; n < PERF_REG_X86_64_MAX - 4; n++)	/* r8 to r15 */
		out[n] = 0;
#endif
	return n;
}

uint64_t
wp_cpu_pc(const ucontext_t *context)
{
	return reg(context, PC);
}

uint64_t
wp_cpu_sp(const ucontext_t *context)
{
	return reg(context, SP);
}

uint64_t
wp_cpu_fp(const ucontext_t *context)
{
	return reg(context, FP);
}

/* A register; of 32-bit code on the stack, behind where it returns to. */
uint64_t
wp_cpu_argument(const ucontext_t *context)
{
#ifdef __x86_64__
	return reg(context, REG_RDI);
#else
	uint32_t argument = 0;

	(void)wp_peek(&argument, reg(context, SP) + sizeof(argument),
	    sizeof(argument));
	return argument;
#endif
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
