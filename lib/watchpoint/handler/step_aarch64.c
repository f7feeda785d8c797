/* step_aarch64: where an instruction leads to, by its code (Arm Architecture
   Reference Manual, "Branches, Exception Generating and System
   instructions"). */
#include "handler/step.h"

#include "handler/capture.h"

#ifdef __aarch64__	/* static checkers also read it on other processors */

/* The signed field of n bits, counted in instructions, whose lowest bit is
   low. */
static int64_t
words(uint32_t code, unsigned low, unsigned n)
{
	uint64_t field = (uint64_t)(code >> low) << (64 - n);

	return ((int64_t)field >> (64 - n)) * 4;
}

/* Register 31 is xzr here. */
static uint64_t
reg(const ucontext_t *context, uint32_t n)
{
	n &= 31;
	return n == 31 ? 0 : context->uc_mcontext.regs[n];
}

/* Whether the condition of a b.cond is true. */
static bool
holds(const ucontext_t *context, uint32_t condition)
{
	const uint64_t flags = context->uc_mcontext.pstate;
	const bool n = flags >> 31 & 1, z = flags >> 30 & 1,
	    c = flags >> 29 & 1, v = flags >> 28 & 1;
	const bool is[] = {
		z, c, n, v, c && !z, n == v, n == v && !z, true,
	};

	return is[condition >> 1 & 7] !=
	    ((condition & 1) != 0 && condition != 15);
}

/* Whether this instruction is a branch that is taken; *offset is set to its
   offset. */
static bool
branches(const ucontext_t *context, uint32_t code, int64_t *offset)
{
	uint64_t value = reg(context, code);
	bool set = code >> 24 & 1;	/* cbnz, tbnz */

	*offset = words(code, 5, 19);
	if ((code & 0xff000000) == 0x54000000)		/* b.cond, bc.cond */
		return holds(context, code & 15);
	if ((code & 0x7e000000) == 0x34000000) {	/* cbz, cbnz */
		if (code >> 31 == 0)
			value = (uint32_t)value;
		return (value != 0) == set;
	}
	if ((code & 0x7e000000) == 0x36000000) {	/* tbz, tbnz */
		*offset = words(code, 5, 14);
		return (value >> ((code >> 26 & 32) | (code >> 19 & 31)) & 1)
		    == set;
	}
	*offset = words(code, 0, 26);
	return (code & 0x7c000000) == 0x14000000;	/* b, bl */
}

/* Pointer authentication keeps its code in the upper half of an address. */
static uint64_t
strip(uint64_t addr)
{
	return addr & ((1ull << 48) - 1);
}

uint64_t
wp_cpu_next(const ucontext_t *context)
{
	const uint64_t pc = wp_cpu_pc(context);
	uint32_t code;
	int64_t offset;

	if (wp_peek(&code, pc, sizeof(code)) != sizeof(code))
		return pc + sizeof(code);
	/* br, blr, ret, and their variants with authentication */
	if ((code & 0xfe1ff000) == 0xd61f0000)
		return strip(reg(context, (code & 0xfffff800) == 0xd65f0800 ?
		    30 : code >> 5));
	return branches(context, code, &offset) ? pc + (uint64_t)offset :
	    pc + sizeof(code);
}

/* svc #0 */
bool
wp_cpu_at_syscall(const ucontext_t *context)
{
	uint32_t code;

	return wp_peek(&code, wp_cpu_pc(context), sizeof(code)) ==
	    sizeof(code) && code == 0xd4000001;
}

#endif
