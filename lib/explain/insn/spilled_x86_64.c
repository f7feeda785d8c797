/* spilled_x86_64: what a function's beginning has put into its frame. */
#include "insn/spilled.h"

#include <Zydis/Zydis.h>

enum { CODE_MAX = 1024 };	/* bytes */

struct spill {
	int64_t offset;		/* from the frame pointer */
	uint64_t size;
	ZydisRegister reg;	/* that holds it; NONE: none does */
};

static ZydisRegister
whole(ZydisRegister reg)
{
	return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64,
	    reg);
}

/* Whether it writes the register, or another by which that is known. */
static bool
overwrites(const struct spill *s, const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_REGISTER &&
	    (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0 &&
	    (whole(op->reg.value) == s->reg ||
	    whole(op->reg.value) == ZYDIS_REGISTER_RBP);
}

/* Whether it writes the frame there, as far as is known: what is written by
   another register than the frame and stack pointers is no part of it. */
static bool
writes_there(const struct spill *s, const ZydisDecodedOperand *op)
{
	const int64_t disp = op->mem.disp.value;

	if (op->type != ZYDIS_OPERAND_TYPE_MEMORY ||
	    (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) == 0)
		return false;
	return op->mem.base != ZYDIS_REGISTER_RBP ||
	    op->mem.index != ZYDIS_REGISTER_NONE ||
	    (disp < s->offset + (int64_t)s->size &&
	    s->offset < disp + op->size / 8);
}

static bool
is_general(ZydisRegister reg)
{
	return ZydisRegisterGetClass(whole(reg)) == ZYDIS_REGCLASS_GPR64 &&
	    reg != ZYDIS_REGISTER_AH && reg != ZYDIS_REGISTER_BH &&
	    reg != ZYDIS_REGISTER_CH && reg != ZYDIS_REGISTER_DH;
}

/* Whether it stores a register there. */
static bool
stores(const struct spill *s, const ZydisDecodedInstruction *insn,
    const ZydisDecodedOperand *op)
{
	return insn->mnemonic == ZYDIS_MNEMONIC_MOV &&
	    op[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
	    op[0].mem.base == ZYDIS_REGISTER_RBP &&
	    op[0].mem.index == ZYDIS_REGISTER_NONE &&
	    op[0].mem.segment != ZYDIS_REGISTER_FS &&
	    op[0].mem.segment != ZYDIS_REGISTER_GS &&
	    op[0].mem.disp.value == s->offset && op[0].size / 8 >= s->size &&
	    op[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	    is_general(op[1].reg.value);
}

/* False: it may lead elsewhere. */
static bool
step(struct spill *s, const ZydisDecodedInstruction *insn,
    const ZydisDecodedOperand *op)
{
	switch (insn->meta.category) {
	case ZYDIS_CATEGORY_COND_BR:
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_SYSCALL:
		return false;
	default:
		break;
	}
	for (unsigned i = 0; i < insn->operand_count; i++)
		if (s->reg != ZYDIS_REGISTER_NONE && (overwrites(s, &op[i]) ||
		    (writes_there(s, &op[i]) &&
		    insn->mnemonic != ZYDIS_MNEMONIC_PUSH)))
			s->reg = ZYDIS_REGISTER_NONE;
	if (stores(s, insn, op))
		s->reg = whole(op[1].reg.value);
	return true;
}

/* x86's encoding numbers some of them differently. */
static unsigned
dwarf_number(ZydisRegister reg)
{
	static const uint8_t number[] = {0, 2, 1, 3, 7, 6, 4, 5};
	const unsigned id = (unsigned)ZydisRegisterGetId(reg);

	return id < sizeof(number) ? number[id] : id;
}

bool
ex_spilled(struct ex_module *m, uint64_t start, uint64_t end, int64_t offset,
    uint64_t size, unsigned *reg)
{
	struct spill s = {offset, size, ZYDIS_REGISTER_NONE};
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction insn;
	ZydisDecoder decoder;
	uint8_t code[CODE_MAX];
	const size_t len = (size_t)(end - start);

	if (end <= start || len > sizeof(code) ||
	    ex_module_bytes(m, start, code, len) != len ||
	    ZYAN_FAILED(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64,
	    ZYDIS_STACK_WIDTH_64)))
		return false;
	for (size_t at = 0; at < len; at += insn.length)
		if (ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, code + at,
		    len - at, &insn, op)) ||
		    !step(&s, &insn, op))
			return false;
	if (s.reg == ZYDIS_REGISTER_NONE)
		return false;
	*reg = dwarf_number(s.reg);
	return true;
}
