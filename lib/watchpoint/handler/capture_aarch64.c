/* capture_aarch64: registers of a signal frame, in the order of perf's. */
#include "handler/capture.h"

#ifdef __aarch64__	/* static checkers also read it on other processors */

/* x0 to x29, lr, sp, pc */
unsigned
wp_cpu_regs(const ucontext_t *context, uint64_t out[WP_CPU_REGS_MAX])
{
	unsigned n = 0;

	for (; n < 31; n++)
		out[n] = context->uc_mcontext.regs[n];
	out[n++] = context->uc_mcontext.sp;
	out[n++] = context->uc_mcontext.pc;
	return n;
}

uint64_t
wp_cpu_pc(const ucontext_t *context)
{
	return context->uc_mcontext.pc;
}

uint64_t
wp_cpu_sp(const ucontext_t *context)
{
	return context->uc_mcontext.sp;
}

uint64_t
wp_cpu_fp(const ucontext_t *context)
{
	return context->uc_mcontext.regs[29];
}

uint64_t
wp_cpu_argument(const ucontext_t *context)
{
	return context->uc_mcontext.regs[0];
}

/* svc #0 */
bool
wp_cpu_after_syscall(const ucontext_t *context)
{
	uint32_t code;

	return wp_peek(&code, wp_cpu_pc(context) - sizeof(code),
	    sizeof(code)) == sizeof(code) && code == 0xd4000001;
}

#endif
