/*
 * jump_aarch64: b, b.cond, cbz, cbnz, tbz and tbnz (Arm Architecture Reference
 * Manual, "Branches, Exception Generating and System instructions").
 */
#include <string.h>

#include "symbol/line.h"
#include "insn/jump.h"

/* The signed offset in these bits, in bytes. */
static uint64_t
distance(uint32_t insn, unsigned low, unsigned bits)
{
	return (uint64_t)((int64_t)((uint64_t)(insn >> low) << (64 - bits)) >>
	    (62 - bits));
}

bool
ex_jump_looks_like(const uint8_t *code, size_t len, uint64_t vaddr,
    struct ex_direct_jump *out)
{
	uint32_t insn;

	if (len < sizeof(insn) || vaddr % sizeof(insn) != 0)
		return false;
	memcpy(&insn, code, sizeof(insn));
	out->at = vaddr;
	out->end = vaddr + sizeof(insn);
	if ((insn & 0xfc000000) == 0x14000000)		/* b */
		out->target = vaddr + distance(insn, 0, 26);
	else if ((insn & 0xff000000) == 0x54000000 ||	/* b.cond */
	    (insn & 0x7e000000) == 0x34000000)		/* cbz, cbnz */
		out->target = vaddr + distance(insn, 5, 19);
	else if ((insn & 0x7e000000) == 0x36000000)	/* tbz, tbnz */
		out->target = vaddr + distance(insn, 5, 14);
	else
		return false;
	return true;
}

/* All instructions have the same length, so data may be taken for a jump. */
bool
ex_jump_is_code(struct ex_module *m, const struct ex_direct_jump *jump)
{
	(void)m;
	(void)jump;
	return true;
}

/* br */
bool
ex_jump_looks_like_pointer(const uint8_t *code, size_t len, uint64_t vaddr,
    uint64_t *end)
{
	uint32_t insn;

	if (len < sizeof(insn) || vaddr % sizeof(insn) != 0)
		return false;
	memcpy(&insn, code, sizeof(insn));
	*end = vaddr + sizeof(insn);
	return (insn & 0xfffffc1f) == 0xd61f0000;
}

/* A jump through a slot takes two instructions, and is only in stubs. */
const char *
ex_jump_slot(struct ex_module *m, uint64_t end)
{
	(void)m;
	(void)end;
	return NULL;
}

bool
ex_jump_leads_anywhere(struct ex_module *m, uint64_t start, uint64_t end,
    uint64_t *jump)
{
	(void)start;
	*jump = end - sizeof(uint32_t);
	return ex_line_jump(m, *jump, sizeof(uint32_t)) != EX_JUMP_INSIDE;
}

/* An address is made by two instructions, with others possibly in between. */
bool
ex_jump_sees_addresses(struct ex_module *m)
{
	(void)m;
	return false;
}

unsigned
ex_jump_addresses(const uint8_t *code, size_t len, uint64_t vaddr, bool fixed,
    uint64_t out[EX_ADDRESSES])
{
	(void)code, (void)len, (void)vaddr, (void)fixed, (void)out;
	return 0;
}
