/*
 * capture: makes samples of a stopped thread, in the form of the kernel's, and
 * records of a process's mappings.
 */
#ifndef CAPTURE_H
#define CAPTURE_H

#include <asm/perf_regs.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <ucontext.h>
#include <unistd.h>

#include "module/module.h"
#include "space/space.h"

#define CAPTURE_STACK 32768

struct capture {
	struct ex_sample sample;
	uint64_t regs[PERF_REG_X86_64_MAX];
	uint8_t stack[CAPTURE_STACK];
};

/* Read memory of a process, which may be this one, as far as it is mapped. */
static inline size_t
capture_read(pid_t pid, uint64_t addr, void *to, size_t len)
{
	const struct iovec local = { to, len };
	const struct iovec remote = { (void *)(uintptr_t)addr, len };
	const ssize_t n = process_vm_readv(pid, &local, 1, &remote, 1, 0);

	return n > 0 ? (size_t)n : 0;
}

/* Take the registers, and up to max bytes of the stack. */
static inline void
capture_take(struct capture *c, pid_t pid, const struct user_regs_struct *r,
    size_t max)
{
	const uint64_t regs[PERF_REG_X86_64_MAX] = {
		[PERF_REG_X86_AX] = r->rax, [PERF_REG_X86_BX] = r->rbx,
		[PERF_REG_X86_CX] = r->rcx, [PERF_REG_X86_DX] = r->rdx,
		[PERF_REG_X86_SI] = r->rsi, [PERF_REG_X86_DI] = r->rdi,
		[PERF_REG_X86_BP] = r->rbp, [PERF_REG_X86_SP] = r->rsp,
		[PERF_REG_X86_IP] = r->rip, [PERF_REG_X86_R8] = r->r8,
		[PERF_REG_X86_R9] = r->r9, [PERF_REG_X86_R10] = r->r10,
		[PERF_REG_X86_R11] = r->r11, [PERF_REG_X86_R12] = r->r12,
		[PERF_REG_X86_R13] = r->r13, [PERF_REG_X86_R14] = r->r14,
		[PERF_REG_X86_R15] = r->r15,
	};

	memcpy(c->regs, regs, sizeof(regs));
	memset(&c->sample, 0, sizeof(c->sample));
	c->sample.ip = r->rip;
	c->sample.user.abi = PERF_SAMPLE_REGS_ABI_64;
	c->sample.user.mask = (UINT64_C(1) << PERF_REG_X86_64_MAX) - 1;
	c->sample.user.values = (const uint8_t *)c->regs;
	c->sample.stack = c->stack;
	c->sample.stack_asked = max;
	c->sample.stack_len = capture_read(pid, r->rsp, c->stack, max);
}

/* The registers that our signal handler was given. */
static inline struct user_regs_struct
capture_regs(const ucontext_t *uc)
{
	const greg_t *g = uc->uc_mcontext.gregs;

	return (struct user_regs_struct){
		.rax = (uint64_t)g[REG_RAX], .rbx = (uint64_t)g[REG_RBX],
		.rcx = (uint64_t)g[REG_RCX], .rdx = (uint64_t)g[REG_RDX],
		.rsi = (uint64_t)g[REG_RSI], .rdi = (uint64_t)g[REG_RDI],
		.rbp = (uint64_t)g[REG_RBP], .rsp = (uint64_t)g[REG_RSP],
		.rip = (uint64_t)g[REG_RIP], .r8 = (uint64_t)g[REG_R8],
		.r9 = (uint64_t)g[REG_R9], .r10 = (uint64_t)g[REG_R10],
		.r11 = (uint64_t)g[REG_R11], .r12 = (uint64_t)g[REG_R12],
		.r13 = (uint64_t)g[REG_R13], .r14 = (uint64_t)g[REG_R14],
		.r15 = (uint64_t)g[REG_R15],
	};
}

/* Where capture_on_trap() takes a sample, and how much of the stack. */
static struct capture *capture_trapped;
static size_t capture_max;

static inline void
capture_on_trap(int sig, siginfo_t *info, void *context)
{
	const struct user_regs_struct regs = capture_regs(context);

	(void)sig;
	(void)info;
	capture_take(capture_trapped, getpid(), &regs, capture_max);
}

/* Call a function, and take a sample at the int3 that it executes. */
static inline void
capture_call(struct capture *c, size_t max, void (*fn)(long), long arg)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO }, old;

	capture_trapped = c;
	capture_max = max;
	action.sa_sigaction = capture_on_trap;
	(void)sigaction(SIGTRAP, &action, &old);
	fn(arg);
	(void)sigaction(SIGTRAP, &old, NULL);
}

/* Let a space learn what a process has mapped executable. */
static inline void
capture_maps(struct ex_space *space, pid_t pid)
{
	char name[64], line[4608], path[4096], prot[8];
	unsigned long start, end, offset, ino;
	unsigned maj, min;
	FILE *maps;

	(void)snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
	maps = fopen(name, "r");
	while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
		struct ex_record record = {
			.type = PERF_RECORD_MMAP2, .pid = pid, .tid = pid,
			.mmap = { .prot = PROT_READ | PROT_EXEC },
		};

		if (sscanf(line, "%lx-%lx %7s %lx %x:%x %lu %4095[^\n]",
		    &start, &end, prot, &offset, &maj, &min, &ino, path) != 8 ||
		    prot[2] != 'x')
			continue;
		record.mmap.start = start;
		record.mmap.len = end - start;
		record.mmap.pgoff = offset;
		record.mmap.maj = maj;
		record.mmap.min = min;
		record.mmap.ino = ino;
		record.mmap.path = path;
		ex_space_learn(space, &record);
	}
	if (maps != NULL)
		(void)fclose(maps);
}

/* Create a space that knows this process.  NULL: no memory. */
static inline struct ex_process *
capture_self(struct ex_space **space)
{
	if ((*space = ex_space_new(EX_LIVE)) == NULL)
		return NULL;
	capture_maps(*space, getpid());
	return ex_space_process(*space, getpid());
}

#endif
