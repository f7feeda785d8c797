/* trace_sample_x86_64: registers of a traced thread, in the order of perf's. */
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

	if (n != (ssize_t)sizeof(r))	/* of a 32-bit program they are less */
		return n < 0 ? (int)n : -ENOTSUP;
	/* PERF_REG_X86_*, but for the segment registers */
	const uint64_t all[] = {
		r.rax, r.rbx, r.rcx, r.rdx, r.rsi, r.rdi, r.rbp, r.rsp, r.rip,
		r.eflags, r.cs, r.ss, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13,
		r.r14, r.r15,
	};
	memcpy(out, all, sizeof(all));
	*pc = r.rip;
	*sp = r.rsp;
	return sizeof(all) / sizeof(all[0]);
}
