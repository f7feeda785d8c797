/* uprobe_guard: checks that a uprobe's program was run by a hit that counts. */
#include "bpf/uprobe_guard.h"

#include <asm/ptrace.h>
#include <errno.h>
#include <stddef.h>

#include "bpf/bpf.h"
#include "bpf/code.h"

#if defined(__x86_64__)
#define PC offsetof(struct pt_regs, rip)
#else
#define PC offsetof(struct user_pt_regs, pc)
#endif

enum { CHECKS = 4 };

/* The process id follows the thread id. */
enum { IDS = -8, PID = -4 };

/* R7 becomes the entry of the process in the map. */
static void
find_guarded(struct code *c, const struct wp_uprobe_guard *guard)
{
	set_wide(c, BPF_REG_7, BPF_PSEUDO_MAP_VALUE, (uint32_t)guard->map);
	c->insn[c->n - 1].imm = (int)(guard->index *
	    sizeof(struct wp_guarded));
}

void
wp_code_unless_process(struct code *c, pid_t pid, unsigned other[2])
{
	other[0] = wp_code_thread_ids(c, IDS);
	load(c, BPF_W, BPF_REG_1, FP, PID);
	other[1] = jump(c, BPF_JNE, BPF_REG_1, pid);
}

void
wp_code_guard(struct code *c, const struct wp_uprobe_guard *guard)
{
	unsigned other[CHECKS], go;

	load(c, BPF_DW, BPF_REG_1, BPF_REG_6, (int)PC);
	set_wide(c, BPF_REG_2, 0, guard->addr);
	other[0] = c->n;
	emit(c, BPF_JMP | BPF_JNE | BPF_X, BPF_REG_1, BPF_REG_2, 0, 0);
	find_guarded(c, guard);
	load(c, BPF_DW, BPF_REG_1, BPF_REG_7, offsetof(struct wp_guarded, on));
	other[1] = jump(c, BPF_JEQ, BPF_REG_1, 0);
	if (guard->pid != 0)
		wp_code_unless_process(c, guard->pid, other + 2);
	else
		other[2] = other[3] = wp_code_thread_ids(c, IDS);
	set(c, BPF_REG_1, 1);
	emit(c, BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_7, BPF_REG_1,
	    offsetof(struct wp_guarded, count), BPF_ADD);
	go = jump_always(c);
	for (unsigned i = 0; i < CHECKS; i++)
		land(c, other[i]);
	return_zero(c);
	land(c, go);
}

int
wp_uprobe_guard_programs(const struct wp_uprobe_guard *guard, unsigned n)
{
	struct code c = {.n = 0};
	unsigned other[2];

	if (n * sizeof(struct wp_guarded) > INT16_MAX)
		return -E2BIG;
	find_guarded(&c, guard);
	wp_code_unless_process(&c, guard->pid, other);
	for (unsigned i = 0; i < n; i++)
		emit(&c, BPF_ST | BPF_MEM | BPF_DW, BPF_REG_7, 0,
		    (int)(i * sizeof(struct wp_guarded) +
		    offsetof(struct wp_guarded, on)), 0);
	land(&c, other[0]);
	land(&c, other[1]);
	return_zero(&c);
	return is_full(&c) ? -E2BIG :
	    wp_bpf_trace("sched_process_exec", c.insn, c.n);
}
