/* trace_sample_x86_64: registers of a traced thread, in the order of perf's. */
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/user.h>

#include "os/perf_event.h"
#include "ptrace/ptrace.h"
#include "stop/trace_sample.h"

/* The registers of a 32-bit program as the kernel orders them. */
struct regs32 {
	uint32_t bx, cx, dx, si, di, bp, ax, ds, es, fs, gs, orig_ax, ip, cs,
	    flags, sp, ss;
};

union set {
	struct user_regs_struct r;
	struct regs32 r32;
};

static void
widen(struct user_regs_struct *r, const struct regs32 *r32)
{
	*r = (struct user_regs_struct){
		.rax = r32->ax, .rbx = r32->bx, .rcx = r32->cx,
		.rdx = r32->dx, .rsi = r32->si, .rdi = r32->di,
		.rbp = r32->bp, .rsp = r32->sp, .rip = r32->ip,
		.eflags = r32->flags, .cs = r32->cs, .ss = r32->ss,
	};
}

int
wp_trace_regs(pid_t tid, struct wp_trace_regs *regs)
{
	union set set;
	struct user_regs_struct r;
	ssize_t n = wp_trace_regset(tid, NT_PRSTATUS, &set, sizeof(set));

	if (n != (ssize_t)sizeof(set.r) && n != (ssize_t)sizeof(set.r32))
		return n < 0 ? (int)n : -ENOTSUP;
	regs->abi = n == (ssize_t)sizeof(set.r) ? PERF_SAMPLE_REGS_ABI_64 :
	    PERF_SAMPLE_REGS_ABI_32;
	if (regs->abi == PERF_SAMPLE_REGS_ABI_64)
		r = set.r;
	else
		widen(&r, &set.r32);
	/* PERF_REG_X86_*, except for the segment registers */
	const uint64_t all[] = {
		r.rax, r.rbx, r.rcx, r.rdx, r.rsi, r.rdi, r.rbp, r.rsp, r.rip,
		r.eflags, r.cs, r.ss, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13,
		r.r14, r.r15,
	};
	memcpy(regs->reg, all, sizeof(all));
	regs->n = sizeof(all) / sizeof(all[0]);
	regs->pc = r.rip;
	regs->sp = r.rsp;
	return 0;
}
