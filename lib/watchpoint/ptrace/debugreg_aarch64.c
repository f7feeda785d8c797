/*
 * debugreg_aarch64: a traced thread's program counter.  Its debug registers are
 * not set.
 */
#include <elf.h>
#include <errno.h>
#include <sys/user.h>

#include "ptrace/ptrace.h"

#ifdef __aarch64__	/* static checks see it elsewhere, too */

uint64_t
wp_trace_pc(pid_t tid)
{
	struct user_regs_struct regs;

	return wp_trace_regset(tid, NT_PRSTATUS, &regs, sizeof(regs)) ==
	    (ssize_t)sizeof(regs) ? regs.pc : 0;
}

uint64_t
wp_trace_thread_block(pid_t tid)
{
	(void)tid;
	return 0;
}

int
wp_trace_call(pid_t tid, int64_t *result)
{
	(void)tid;
	(void)result;
	return -1;
}

int
wp_trace_registers(pid_t tid, const struct wp_slot slot[WP_DEBUG_REGISTERS],
    unsigned on)
{
	(void)tid;
	(void)slot;
	(void)on;
	return -ENOTSUP;
}

int
wp_trace_registers_hold(pid_t tid,
    const struct wp_slot slot[WP_DEBUG_REGISTERS], unsigned on)
{
	(void)tid;
	(void)slot;
	(void)on;
	return -ENOTSUP;
}

unsigned
wp_trace_registers_hit(pid_t tid)
{
	(void)tid;
	return 0;
}

#endif
