/*
 * uprobe_place_x86_64: the instructions that the kernel emulates are those of
 * arch/x86/kernel/uprobes.c, as far as all versions agree: push of a register,
 * nop, and relative jump and call.
 */
#include "insn/uprobe_place.h"

#include <string.h>

#include "insn/flow.h"
#include "insn/jump.h"
#include "insn/sweep.h"
#include "module/module_private.h"
#include "symbol/symbol.h"

enum {
	FAR = 64,		/* bytes behind the start, at most */
	SHORT = 128 + 2,	/* bytes before which a short jump may be */
	LARGE = 1 << 20,	/* bytes of a function that is followed */
	EXITS_MAX = 64,		/* of a function that are followed */
};

/* A search for jumps to addresses after `start', up to `place'. */
struct inner_jumps {
	struct ex_module *module;
	ZydisDecoder decoder;
	uint64_t start, place;
};

static bool
is_emulated(const ZydisDecodedInstruction *insn)
{
	const bool rex = insn->raw.prefix_count == 1 &&
	    (insn->attributes & ZYDIS_ATTRIB_HAS_REX) != 0;

	switch (insn->mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
		return (insn->opcode & 0xf8) == 0x50 &&
		    insn->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
		    (insn->length == 1 || (rex && insn->raw.rex.W == 0));
	case ZYDIS_MNEMONIC_NOP:
		return insn->length == 1;
	case ZYDIS_MNEMONIC_JCXZ:
	case ZYDIS_MNEMONIC_JECXZ:
	case ZYDIS_MNEMONIC_JRCXZ:
	case ZYDIS_MNEMONIC_LOOP:
	case ZYDIS_MNEMONIC_LOOPE:
	case ZYDIS_MNEMONIC_LOOPNE:
		return false;
	default:
		return insn->raw.prefix_count == 0 &&
		    insn->raw.imm[0].is_relative &&
		    insn->mnemonic != ZYDIS_MNEMONIC_XBEGIN;
	}
}

/* Whether it only computes, and has no way but to the next instruction. */
static bool
computes(const ZydisDecodedInstruction *insn)
{
	switch (insn->mnemonic) {
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_AND:
	case ZYDIS_MNEMONIC_CMP:
	case ZYDIS_MNEMONIC_ENDBR64:
	case ZYDIS_MNEMONIC_LEA:
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVSX:
	case ZYDIS_MNEMONIC_MOVSXD:
	case ZYDIS_MNEMONIC_MOVZX:
	case ZYDIS_MNEMONIC_NOP:
	case ZYDIS_MNEMONIC_OR:
	case ZYDIS_MNEMONIC_SAR:
	case ZYDIS_MNEMONIC_SHL:
	case ZYDIS_MNEMONIC_SHR:
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_TEST:
	case ZYDIS_MNEMONIC_XOR:
		return true;
	default:
		return false;
	}
}

/* Whether memory and the registers of a caller that count remain. */
static bool
leaves_arguments(const struct ex_decoded *code)
{
	for (unsigned i = 0; i < code->insn.operand_count; i++) {
		const ZydisDecodedOperand *op = &code->op[i];

		if ((op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) == 0)
			continue;
		if (op->type != ZYDIS_OPERAND_TYPE_REGISTER)
			return false;
		switch (ZydisRegisterGetLargestEnclosing(
		    ZYDIS_MACHINE_MODE_LONG_64, op->reg.value)) {
		case ZYDIS_REGISTER_RDI:
		case ZYDIS_REGISTER_RSI:
		case ZYDIS_REGISTER_RDX:
		case ZYDIS_REGISTER_RSP:
			return false;
		default:
			break;
		}
	}
	return true;
}

/* The first one that is emulated, if what is before it can be skipped. */
static uint64_t
first_emulated(struct ex_module *m, const ZydisDecoder *decoder,
    const struct ex_function *f)
{
	for (uint64_t at = f->start; at < f->end && at - f->start < FAR; ) {
		const struct ex_decoded *code = ex_sweep_at(m, decoder, at);

		if (code == NULL)
			break;
		if (is_emulated(&code->insn))
			return at;
		if (!computes(&code->insn) || !leaves_arguments(code))
			break;
		at += code->insn.length;
	}
	return f->start;
}

/* --- jumps --- */

static bool
is_behind_start(const struct inner_jumps *e, uint64_t vaddr)
{
	return vaddr > e->start && vaddr <= e->place;
}

/* Any offset of 4 bytes there, whatever it is part of. */
static bool
is_led_to_from(const struct inner_jumps *e, const struct ex_segment *s)
{
	const uint8_t *code = e->module->image.at + s->offset;
	int32_t offset;

	for (uint64_t i = 0; i + sizeof(offset) <= s->filesz; i++) {
		memcpy(&offset, code + i, sizeof(offset));
		if (is_behind_start(e, s->vaddr + i + sizeof(offset) +
		    (uint64_t)(int64_t)offset))
			return true;
	}
	return false;
}

static bool
is_led_to_from_afar(const struct inner_jumps *e)
{
	const struct ex_module *m = e->module;

	for (unsigned i = 0; i < m->nsegments; i++)
		if ((m->segment[i].flags & PF_X) != 0 &&
		    is_led_to_from(e, &m->segment[i]))
			return true;
	return false;
}

/* A jump with an offset of 1 byte: jcc, loop and jrcxz, jmp. */
static bool
is_led_to_from_near(const struct inner_jumps *e)
{
	uint8_t code[SHORT + FAR + SHORT];
	const uint64_t from = e->start > SHORT ? e->start - SHORT : 0;
	const size_t n = ex_module_bytes(e->module, from, code, sizeof(code));

	for (size_t i = 0; i + 2 <= n; i++) {
		const struct ex_direct_jump jump = {
			.at = from + i, .end = from + i + 2,
			.target = from + i + 2 +
			    (uint64_t)(int64_t)(int8_t)code[i + 1],
		};

		if (((code[i] & 0xf0) == 0x70 || (code[i] & 0xfc) == 0xe0 ||
		    code[i] == 0xeb) && is_behind_start(e, jump.target) &&
		    ex_jump_is_code(e->module, &jump))
			return true;
	}
	return false;
}

/* Whether it goes through a register or a table, so that it may lead to any
   place of a function: other pointers are to functions. */
static bool
is_computed(const struct ex_decoded *code)
{
	return code->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER ||
	    (code->op[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
	    code->op[0].mem.index != ZYDIS_REGISTER_NONE);
}

/* Whether a function, or such a part of one that is elsewhere, has a computed
   jump; others are the places that its jumps lead to. */
static bool
may_compute(const struct inner_jumps *e, const struct ex_function *f,
    uint64_t *others, size_t *n)
{
	struct ex_flow *flow = ex_flow_new(e->module, &e->decoder, f->start,
	    f->end);
	const uint32_t *offsets;
	const size_t exits = flow == NULL ? 0 : ex_flow_exits(flow, &offsets);
	bool may = flow == NULL || exits > EXITS_MAX;

	*n = 0;
	for (size_t i = 0; i < exits && !may; i++) {
		const uint64_t at = f->start + offsets[i];
		const struct ex_decoded *code = ex_sweep_at(e->module,
		    &e->decoder, at);

		if (code != NULL && code->insn.raw.imm[0].is_relative)
			others[(*n)++] = at + code->insn.length +
			    code->insn.raw.imm[0].value.u;
		else
			may = code == NULL || is_computed(code);
	}
	ex_flow_free(flow);
	return may;
}

/* A part that is elsewhere is one jump away. */
static bool
may_be_computed(const struct inner_jumps *e, const struct ex_function *f)
{
	uint64_t part[EXITS_MAX], ignored[EXITS_MAX];
	struct ex_function other;
	size_t n, m;

	if (may_compute(e, f, part, &n))
		return true;
	for (size_t i = 0; i < n; i++)
		if (!ex_symbol_function(e->module, part[i], &other) ||
		    may_compute(e, &other, ignored, &m))
			return true;
	return false;
}

/* Whether something else begins between. */
static bool
begins_another(const struct inner_jumps *e)
{
	uint64_t start;

	for (uint64_t at = e->start + 1; at <= e->place; at++)
		if (!ex_symbol_function_start(e->module, at, &start) ||
		    start != e->start)
			return true;
	return false;
}

uint64_t
ex_uprobe_place(struct ex_module *m, uint64_t vaddr)
{
	struct inner_jumps e = {.module = m, .start = vaddr};
	struct ex_function f;

	if (ex_module_is_narrow(m) || !ex_sweep_decoder(false, &e.decoder) ||
	    !ex_symbol_function(m, vaddr, &f) || f.start != vaddr || !f.sized)
		return vaddr;
	e.place = first_emulated(m, &e.decoder, &f);
	return e.place == vaddr || begins_another(&e) ||
	    may_be_computed(&e, &f) || is_led_to_from_near(&e) ||
	    is_led_to_from_afar(&e) ? vaddr : e.place;
}

bool
ex_uprobe_fits(struct ex_module *m, uint64_t vaddr)
{
	ZydisDecoder decoder;
	struct ex_function f;
	struct ex_flow *flow;
	bool fits;

	if (!ex_sweep_decoder(ex_module_is_narrow(m), &decoder) ||
	    !ex_symbol_function(m, vaddr, &f) || f.end - f.start > LARGE)
		return false;
	flow = ex_flow_new(m, &decoder, f.start, f.end);
	fits = flow != NULL && ex_flow_begins(flow, vaddr);
	ex_flow_free(flow);
	return fits;
}
