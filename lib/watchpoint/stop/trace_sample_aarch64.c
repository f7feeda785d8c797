/* trace_sample_aarch64: registers of a traced thread, in perf's order. */
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/user.h>

#include "os/perf_event.h"
#include "ptrace/ptrace.h"
#include "stop/trace_sample.h"

int
wp_trace_regs(pid_t tid, struct wp_trace_regs *regs)
{
	struct user_regs_struct r;
	ssize_t n = wp_trace_regset(tid, NT_PRSTATUS, &r, sizeof(r));

	if (n != (ssize_t)sizeof(r))
		return n < 0 ? (int)n : -ENOTSUP;
	/* PERF_REG_ARM64_*: x0 to x30, sp, pc */
	memcpy(regs->reg, r.regs, sizeof(r.regs));
	regs->reg[31] = regs->sp = r.sp;
	regs->reg[32] = regs->pc = r.pc;
	regs->n = 33;
	regs->abi = PERF_SAMPLE_REGS_ABI_64;
	return 0;
}
