/*
 * debugreg_x86_64: a traced thread's program counter, system call and debug
 * registers.
 */
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <linux/hw_breakpoint.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/user.h>

#include "ptrace/ptrace.h"

#ifdef __x86_64__	/* static checkers also read it on other processors */
#include <asm/ldt.h>

/* Returns 0 if it cannot be read. */
static uint64_t
peek_user(pid_t tid, size_t at)
{
	long value;

	errno = 0;
	value = ptrace(PTRACE_PEEKUSER, tid, (void *)at, NULL);
	return errno != 0 ? 0 : (uint64_t)value;
}

uint64_t
wp_trace_pc(pid_t tid)
{
	return peek_user(tid, offsetof(struct user, regs.rip));
}

/* The base of a 32-bit thread's segment with this selector. */
static uint64_t
segment_base(pid_t tid, uint64_t selector)
{
	struct user_desc segment;
	const uintptr_t entry = (selector & 0xffff) >> 3;

	return ptrace(PTRACE_GET_THREAD_AREA, tid, (void *)entry,
	    &segment) != 0 ? 0 : segment.base_addr;
}

/* The thread's fs base, or gs base in a 32-bit program. */
uint64_t
wp_trace_thread_block(pid_t tid)
{
	enum { CODE_32 = 0x23 };	/* cs of 32-bit code */

	if ((peek_user(tid, offsetof(struct user, regs.cs)) & 0xffff) !=
	    CODE_32)
		return peek_user(tid, offsetof(struct user, regs.fs_base));
	return segment_base(tid,
	    peek_user(tid, offsetof(struct user, regs.gs)));
}

int
wp_trace_call(pid_t tid, int64_t *result)
{
	/* a 32-bit program has: bx cx dx si di bp ax ds es fs gs orig_ax ... */
	enum { NARROW_AX = 6, NARROW_ORIG_AX = 11, NARROW_REGS = 17 };
	union {
		struct user_regs_struct r;
		int32_t narrow[NARROW_REGS];
	} regs;
	const ssize_t len = wp_trace_regset(tid, NT_PRSTATUS, &regs,
	    sizeof(regs));

	if (len == (ssize_t)sizeof(regs.narrow)) {
		*result = regs.narrow[NARROW_AX];
		return regs.narrow[NARROW_ORIG_AX] < 0 ? -1 :
		    regs.narrow[NARROW_ORIG_AX];
	}
	if (len != (ssize_t)sizeof(regs.r) || (int64_t)regs.r.orig_rax < 0 ||
	    regs.r.orig_rax > INT_MAX)
		return -1;
	*result = (int64_t)regs.r.rax;
	return (int)regs.r.orig_rax;
}

static int
poke_register(pid_t tid, unsigned n, unsigned long value)
{
	const size_t base = offsetof(struct user, u_debugreg);

	return ptrace(PTRACE_POKEUSER, tid, (void *)(base + n * sizeof(value)),
	    (void *)value) != 0 ? -errno : 0;
}

static bool
fits_register(uint64_t len)
{
	return len == 1 || len == 2 || len == 4 || len == 8;
}

/* DR7 has for each register a local enable bit and four condition bits: the
   lower two are 0 for execution, 1 for writes, 3 for reads and writes; the
   upper two are the length, 0 for execution (Intel SDM vol.  3, 17.2.4). */
static unsigned long
slot_control(unsigned n, const struct wp_slot *slot)
{
	static const unsigned char code[] = {
		[1] = 0, [2] = 1, [4] = 3, [8] = 2,
	};
	unsigned long condition = 0;

	if (slot->type != HW_BREAKPOINT_X)
		condition = (slot->type == HW_BREAKPOINT_W ? 1ul : 3ul) |
		    (unsigned long)code[slot->len] << 2;
	return 1ul << (2 * n) | condition << (16 + 4 * n);
}

static int
peek_register(pid_t tid, unsigned n, unsigned long *value)
{
	const size_t base = offsetof(struct user, u_debugreg);

	errno = 0;
	*value = (unsigned long)ptrace(PTRACE_PEEKUSER, tid,
	    (void *)(base + n * sizeof(*value)), 0);
	return -errno;
}

/* The value of DR7 for the slots that are on. */
static unsigned long
control_of(const struct wp_slot slot[WP_DEBUG_REGISTERS], unsigned on)
{
	unsigned long control = 0;

	for (unsigned n = 0; n < WP_DEBUG_REGISTERS; n++)
		if (slot[n].len != 0 && (on >> n & 1) != 0)
			control |= slot_control(n, &slot[n]);
	return control;
}

/* An address can be changed freely while no register is enabled. */
int
wp_trace_registers(pid_t tid, const struct wp_slot slot[WP_DEBUG_REGISTERS],
    unsigned on)
{
	unsigned long control;
	int err = poke_register(tid, 7, 0);

	for (unsigned n = 0; n < WP_DEBUG_REGISTERS && err == 0; n++) {
		if (slot[n].len == 0)
			continue;
		if (!fits_register(slot[n].len))
			return -EINVAL;
		err = poke_register(tid, n, slot[n].addr);
	}
	if (err == 0 && (control = control_of(slot, on)) != 0 &&
	    (err = poke_register(tid, 7, control)) < 0)
		(void)poke_register(tid, 7, 0);
	return err;
}

int
wp_trace_registers_hold(pid_t tid,
    const struct wp_slot slot[WP_DEBUG_REGISTERS], unsigned on)
{
	unsigned long value;
	int err = peek_register(tid, 7, &value);

	if (err < 0 || value != control_of(slot, on))
		return err;
	for (unsigned n = 0; n < WP_DEBUG_REGISTERS; n++) {
		if ((on >> n & 1) == 0)
			continue;
		if ((err = peek_register(tid, n, &value)) < 0 ||
		    value != slot[n].addr)
			return err;
	}
	return 1;
}

/* The kernel sets DR6 anew for each trap. */
unsigned
wp_trace_registers_hit(pid_t tid,
    const struct wp_slot slot[WP_DEBUG_REGISTERS], unsigned on)
{
	unsigned long status;

	(void)slot;
	return peek_register(tid, 6, &status) < 0 ? 0 : (unsigned)status & on;
}

uint32_t
wp_trace_code(pid_t tid)
{
	(void)tid;
	return 0;
}

#endif
