/*
 * debugreg_aarch64: a traced thread's program counter, system call and debug
 * registers.  There are two sets of these, for data and for execution; in each
 * the slots of that kind take the first ones.
 */
#include <elf.h>
#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/uio.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>

#include "os/operand.h"
#include "ptrace/ptrace.h"

#ifdef __aarch64__	/* static checkers also read it on other processors */
#include <asm/ptrace.h>

#ifndef NT_ARM_SYSTEM_CALL
#define NT_ARM_SYSTEM_CALL 0x404
#endif

enum {
	PC = 32,		/* in the order of a sample's registers */
	CODE_LEN = 4,
	ENABLED = 1, OF_USER = 2 << 1,	/* bits of DBGWCR and DBGBCR */
	LOADS = 1 << 3, STORES = 2 << 3,
	WORD = 8,	/* a register selects bytes of a word of this size */
};

static int
get_regs(pid_t tid, struct user_regs_struct *regs)
{
	ssize_t n = wp_trace_regset(tid, NT_PRSTATUS, regs, sizeof(*regs));

	return n == (ssize_t)sizeof(*regs) ? 0 : n < 0 ? (int)n : -ENOTSUP;
}

uint64_t
wp_trace_pc(pid_t tid)
{
	enum { NARROW_PC = 15, NARROW_REGS = 18 };  /* of a 32-bit program */
	union {
		struct user_regs_struct r;
		uint32_t narrow[NARROW_REGS];
	} regs;
	const ssize_t len = wp_trace_regset(tid, NT_PRSTATUS, &regs,
	    sizeof(regs));

	return len == (ssize_t)sizeof(regs.r) ? regs.r.pc :
	    len == (ssize_t)sizeof(regs.narrow) ? regs.narrow[NARROW_PC] : 0;
}

uint64_t
wp_trace_thread_block(pid_t tid)
{
	uint64_t at[2] = {0};		/* newer kernels have a second one */

	return wp_trace_regset(tid, NT_ARM_TLS, at, sizeof(at)) < 0 ? 0 : at[0];
}

int
wp_trace_call(pid_t tid, int64_t *result)
{
	struct user_regs_struct regs;
	int call;

	if (wp_trace_regset(tid, NT_ARM_SYSTEM_CALL, &call, sizeof(call)) !=
	    (ssize_t)sizeof(call) || call < 0 || get_regs(tid, &regs) < 0)
		return -1;
	*result = (int64_t)regs.regs[0];
	return call;
}

/* --- debug registers --- */

static bool
executes(const struct wp_slot *slot)
{
	return slot->type == HW_BREAKPOINT_X;
}

/* The value of DBGWCR or DBGBCR for a slot. */
static uint32_t
control_of(const struct wp_slot *slot, bool on)
{
	const uint32_t bytes = (1u << slot->len) - 1;
	uint32_t control = OF_USER | (on ? ENABLED : 0);

	if (executes(slot))
		return control | bytes << 5;
	if ((slot->type & HW_BREAKPOINT_R) != 0)
		control |= LOADS;
	if ((slot->type & HW_BREAKPOINT_W) != 0)
		control |= STORES;
	return control | (bytes << slot->addr % WORD) << 5;
}

/* The values for the registers of a kind.  Returns how many are needed. */
static unsigned
make_state(const struct wp_slot slot[WP_DEBUG_REGISTERS], unsigned on,
    bool execution, struct user_hwdebug_state *state)
{
	unsigned k = 0;

	memset(state, 0, sizeof(*state));
	for (unsigned n = 0; n < WP_DEBUG_REGISTERS; n++) {
		if (slot[n].len == 0 || executes(&slot[n]) != execution)
			continue;
		state->dbg_regs[k].addr = slot[n].addr -
		    (execution ? 0 : slot[n].addr % WORD);
		state->dbg_regs[k++].ctrl = control_of(&slot[n], on >> n & 1);
	}
	return k;
}

static unsigned
set_of(bool execution)
{
	return execution ? NT_ARM_HW_BREAK : NT_ARM_HW_WATCH;
}

/* The number of registers of a kind that have ever been set.  Returns 0 or
   -errno. */
static int
get_state(pid_t tid, bool execution, struct user_hwdebug_state *state,
    unsigned *used)
{
	ssize_t len;

	memset(state, 0, sizeof(*state));
	len = wp_trace_regset(tid, set_of(execution), state, sizeof(*state));
	if (len < 0)
		return len == -EINVAL ? -ENOTSUP : (int)len;
	*used = 0;
	for (unsigned i = 0; i < WP_DEBUG_REGISTERS; i++)
		if (state->dbg_regs[i].addr != 0 ||
		    (state->dbg_regs[i].ctrl & ENABLED) != 0)
			*used = i + 1;
	return 0;
}

/* Registers that are not written stay free for others. */
static int
set_state(pid_t tid, bool execution, const struct user_hwdebug_state *state,
    unsigned n)
{
	struct iovec io = {(void *)(uintptr_t)state,
	    offsetof(struct user_hwdebug_state, dbg_regs) +
	    n * sizeof(state->dbg_regs[0])};

	if (n == 0)
		return 0;
	return ptrace(PTRACE_SETREGSET, tid,
	    (void *)(uintptr_t)set_of(execution), &io) == 0 ? 0 :
	    errno == EINVAL ? -ENOSPC : -errno;
}

/* Set the registers of a kind.  All are disabled first, so that an old address
   is never combined with a new length. */
static int
set_kind(pid_t tid, const struct wp_slot slot[WP_DEBUG_REGISTERS], unsigned on,
    bool execution)
{
	struct user_hwdebug_state is, want;
	const unsigned n = make_state(slot, on, execution, &want);
	unsigned used = 0;
	int err = get_state(tid, execution, &is, &used);

	if (err < 0)
		return n == 0 && err == -ENOTSUP ? 0 : err;
	for (unsigned i = 0; i < used; i++)
		is.dbg_regs[i].ctrl &= ~(uint32_t)ENABLED;
	if ((err = set_state(tid, execution, &is, used)) < 0)
		return err;
	for (unsigned i = n; i < used; i++)
		want.dbg_regs[i] = is.dbg_regs[i];
	return set_state(tid, execution, &want, n < used ? used : n);
}

int
wp_trace_registers(pid_t tid, const struct wp_slot slot[WP_DEBUG_REGISTERS],
    unsigned on)
{
	static const struct wp_slot none[WP_DEBUG_REGISTERS];
	int err = set_kind(tid, slot, on, false);

	if (err == 0)
		err = set_kind(tid, slot, on, true);
	if (err < 0) {
		(void)set_kind(tid, none, 0, false);
		(void)set_kind(tid, none, 0, true);
	}
	return err;
}

static int
holds(pid_t tid, const struct wp_slot slot[WP_DEBUG_REGISTERS], unsigned on,
    bool execution)
{
	struct user_hwdebug_state is, want;
	const unsigned n = make_state(slot, on, execution, &want);
	unsigned used;
	int err = get_state(tid, execution, &is, &used);

	if (err < 0)
		return n == 0 && err == -ENOTSUP ? 1 : err;
	for (unsigned i = 0; i < WP_DEBUG_REGISTERS; i++) {
		const bool wanted = (want.dbg_regs[i].ctrl & ENABLED) != 0;

		if (wanted != ((is.dbg_regs[i].ctrl & ENABLED) != 0) ||
		    (wanted && (is.dbg_regs[i].addr != want.dbg_regs[i].addr ||
		    is.dbg_regs[i].ctrl != want.dbg_regs[i].ctrl)))
			return 0;
	}
	return 1;
}

int
wp_trace_registers_hold(pid_t tid,
    const struct wp_slot slot[WP_DEBUG_REGISTERS], unsigned on)
{
	const int data = holds(tid, slot, on, false);

	return data == 1 ? holds(tid, slot, on, true) : data;
}

/* --- hits --- */

/* The slot closest to the address that the trap reports; 0 if there is none. */
static unsigned
nearest(const struct wp_slot slot[WP_DEBUG_REGISTERS], unsigned on,
    uint64_t addr)
{
	uint64_t best = UINT64_MAX;
	unsigned hit = 0;

	for (unsigned n = 0; n < WP_DEBUG_REGISTERS; n++) {
		const uint64_t first = slot[n].addr,
		    last = first + slot[n].len - 1;
		const uint64_t away = addr < first ? first - addr :
		    addr > last ? addr - last : 0;

		if ((on >> n & 1) == 0 || executes(&slot[n]) || away >= best)
			continue;
		best = away;
		hit = 1u << n;
	}
	return hit;
}

uint32_t
wp_trace_code(pid_t tid)
{
	const uint64_t pc = wp_trace_pc(tid);
	long word;

	errno = 0;
	word = ptrace(PTRACE_PEEKTEXT, tid, (void *)(pc & ~7ull), NULL);
	return errno != 0 ? 0 : (uint32_t)((uint64_t)word >> (pc & 4) * 8);
}

/* The trap reports one address, but an instruction may touch several slots. */
unsigned
wp_trace_registers_hit(pid_t tid,
    const struct wp_slot slot[WP_DEBUG_REGISTERS], unsigned on)
{
	struct user_regs_struct regs;
	struct wp_operand operand;
	siginfo_t info;
	uint64_t reg[PC + 1];
	unsigned hit = 0;

	if (wp_trace_get_signal(tid, &info) < 0 || get_regs(tid, &regs) < 0)
		return 0;
	for (unsigned n = 0; n < WP_DEBUG_REGISTERS; n++)
		if ((on >> n & 1) != 0 && executes(&slot[n]) &&
		    slot[n].addr == regs.pc &&
		    (uintptr_t)info.si_addr == regs.pc)
			hit |= 1u << n;
	if (hit != 0)
		return hit;
	memcpy(reg, regs.regs, sizeof(regs.regs));
	reg[PC - 1] = regs.sp;
	reg[PC] = regs.pc;
	if (wp_operand(wp_trace_code(tid), reg, &operand))
		for (unsigned n = 0; n < WP_DEBUG_REGISTERS; n++)
			if ((on >> n & 1) != 0 && !executes(&slot[n]) &&
			    wp_operand_hits(&operand, &slot[n]))
				hit |= 1u << n;
	return hit != 0 ? hit : nearest(slot, on, (uintptr_t)info.si_addr);
}

#endif
