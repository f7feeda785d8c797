/* trace_sample_aarch64: registers of a traced thread, in perf's order. */
#include <elf.h>
#include <errno.h>
#include <sys/user.h>

#include "ptrace.h"
#include "trace_sample.h"

int
wp_trace_regs(pid_t tid, uint64_t out[WP_TRACE_REGS_MAX], uint64_t *pc,
    uint64_t *sp)
{
	struct user_regs_struct r;
	ssize_t n = wp_trace_regset(tid, NT_PRSTATUS, &r, sizeof(r));

	if (n != (ssize_t)sizeof(r))
		return n < 0 ? (int)n : -ENOTSUP;
	/* PERF_REG_ARM64_*: x0 to x30, sp, pc */
	memcpy(out, r.regs, sizeof(r.regs));
	out[31] = *sp = r.sp;
	out[32] = *pc = r.pc;
	return 33;
}
