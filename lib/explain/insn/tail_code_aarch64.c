/*
 * tail_code_aarch64: where 64-bit Arm code jumps to, and whom it calls.
 *
 * All instructions have the same length, so code is read from its start to its
 * end.  Data in between, which compilers hardly ever put there, may be taken for
 * a jump; one that leads out of the module is none.
 */
#include <string.h>

#include "insn/jump.h"
#include "insn/tail_graph.h"
#include "module/plt.h"
#include "symbol/line.h"

#ifdef __aarch64__	/* static checks see it elsewhere, too */

enum {
	LEN = 4,		/* bytes of an instruction */
	TABLE = 4,		/* instructions before a jump that make its
				   address of a table's offset */
};

/* Instructions, and which of their bits say so. */
#define IS(insn, mask, bits)	(((insn) & (mask)) == (bits))
#define IS_BL(insn)	IS(insn, 0xfc000000, 0x94000000)
#define IS_B(insn)	IS(insn, 0xfc000000, 0x14000000)
#define IS_NOP(insn)	((insn) == 0xd503201f)
#define IS_BTI(insn)	IS(insn, 0xffffff3f, 0xd503241f)
#define IS_ADRP(insn)	IS(insn, 0x9f00001f, 0x90000010)	/* x16 */
#define IS_LDR(insn)	IS(insn, 0xffc003ff, 0xf9400211)	/* x17, [x16] */
#define IS_ADD(insn)	IS(insn, 0x7f000000, 0x0b000000)	/* registers */
/* br, blr, ret, also those that authenticate their register */
#define IS_BRANCH(insn)	IS(insn, 0xfe000000, 0xd6000000)
#define IS_BRK(insn)	IS(insn, 0xffe0001f, 0xd4200000)

static bool
read_at(struct ex_module *module, uint64_t vaddr, uint32_t *insn)
{
	return ex_module_bytes(module, vaddr, (uint8_t *)insn, LEN) == LEN;
}

/* Step over the mark of a jump's target. */
static bool
read_entry(struct ex_tail_place *place, uint32_t *insn)
{
	if (!read_at(place->module, place->vaddr, insn))
		return false;
	if (!IS_BTI(*insn))
		return true;
	place->vaddr += LEN;
	return read_at(place->module, place->vaddr, insn);
}

/* --- stubs --- */

/* stp x16, x30, [sp, -16]! */
bool
ex_tail_is_unbound(const struct ex_tail_place *place)
{
	struct ex_tail_place at = *place;
	uint32_t insn;

	return read_entry(&at, &insn) && insn == 0xa9bf7bf0;
}

/* The slot of a stub: adrp x16, page; ldr x17, [x16, offset]. */
static bool
slot_of(const struct ex_tail_place *stub, struct ex_tail_place *slot)
{
	struct ex_tail_place at = *stub;
	uint32_t adrp, ldr, page;

	if (!read_entry(&at, &adrp) || !IS_ADRP(adrp) ||
	    !read_at(at.module, at.vaddr + LEN, &ldr) || !IS_LDR(ldr))
		return false;
	page = (adrp >> 5 & 0x7ffff) << 2 | (adrp >> 29 & 3);
	*slot = at;
	slot->vaddr = (at.vaddr & ~(uint64_t)0xfff) +
	    ((uint64_t)(int64_t)(int32_t)(page << 11) << 1) +
	    (ldr >> 10 & 0xfff) * 8;
	return true;
}

bool
ex_tail_follow_stub(struct ex_tail_graph *g, struct ex_tail_place *place)
{
	struct ex_tail_place slot;
	const char *name;

	if (!slot_of(place, &slot) ||
	    (name = ex_plt_slot(slot.module, slot.vaddr)) == NULL)
		return true;
	return ex_tail_slot_target(g, &slot, name, place);
}

/* --- jumps --- */

/* Whether the register of a br is the sum of two: of a place in the function
   and an offset in a table. */
static bool
is_table(struct ex_module *module, uint64_t vaddr, uint32_t br)
{
	uint32_t insn;

	for (unsigned i = 1; i <= TABLE; i++) {
		if (!read_at(module, vaddr - (uint64_t)i * LEN, &insn))
			return false;
		if ((insn & 0x1f) == (br >> 5 & 0x1f))
			return IS_ADD(insn);
	}
	return false;
}

static void
add_pointer(struct ex_tail_graph *g, int from, const struct ex_tail_place *at,
    uint32_t insn)
{
	switch (ex_line_jump(at->module, at->vaddr, LEN)) {
	case EX_JUMP_INSIDE:
		return;
	case EX_JUMP_CALL:
		break;
	case EX_JUMP_UNKNOWN:
		if (is_table(at->module, at->vaddr, insn))
			return;
		break;
	}
	ex_tail_add_edge(g, from, ANYWHERE, at->vaddr);
}

static void
add_exit(struct ex_tail_graph *g, int from, const struct ex_tail_place *at,
    uint32_t insn)
{
	const struct ex_tail_node *node = &g->node[from];
	struct ex_tail_place to = *at;
	struct ex_direct_jump jump;
	uint64_t end;

	if (ex_jump_looks_like_pointer((const uint8_t *)&insn, LEN, at->vaddr,
	    &end)) {
		add_pointer(g, from, at, insn);
		return;
	}
	if (!ex_jump_looks_like((const uint8_t *)&insn, LEN, at->vaddr,
	    &jump) || (jump.target >= node->start && jump.target < node->end) ||
	    ex_module_segment(at->module, jump.target) == NULL)
		return;
	to.vaddr = jump.target;
	ex_tail_add_jump(g, from, to, at->vaddr);
}

/* Whether code continues after an instruction.  A call at the end does not
   return. */
static bool
goes_on(uint32_t insn)
{
	return insn != 0 && !IS_B(insn) && !IS_BL(insn) && !IS_BRANCH(insn) &&
	    !IS_BRK(insn);
}

bool
ex_tail_add_exits(struct ex_tail_graph *g, int from)
{
	struct ex_tail_place at = g->node[from].entry;
	const uint64_t end = g->node[from].end;
	uint32_t insn, last = 0;

	for (at.vaddr = g->node[from].start; at.vaddr < end && !g->full;
	    at.vaddr += LEN) {
		if (!read_at(at.module, at.vaddr, &insn))
			return false;
		add_exit(g, from, &at, insn);
		if (!IS_NOP(insn))
			last = insn;
	}
	if (goes_on(last))
		ex_tail_add_jump(g, from, at, 0);
	return true;
}

/* --- calls --- */

bool
ex_tail_called_by(struct ex_tail_graph *g, uint64_t back,
    struct ex_tail_place *called)
{
	uint32_t insn;

	if (!ex_tail_place_at(g->process, back - LEN, called) ||
	    !read_at(called->module, called->vaddr, &insn) || !IS_BL(insn))
		return false;
	called->vaddr += (uint64_t)((int64_t)((uint64_t)insn << 38) >> 36);
	return ex_tail_follow_stub(g, called);
}

/* There is but one way to read what is before it. */
unsigned
ex_tail_call_len(struct ex_tail_graph *g, uint64_t back)
{
	(void)g, (void)back;
	return LEN;
}

#endif
