/* tail_code_x86_64: where x86 code jumps to, and whom it calls. */
#include <string.h>

#include "insn/tail_graph.h"
#include "insn/flow.h"
#include "insn/jump_table.h"
#include "insn/sweep.h"
#include "module/plt.h"
#include "symbol/line.h"
#include "symbol/symbol.h"

/* --- instructions --- */

/* One for 64-bit code, and one for a 32-bit program's. */
static const ZydisDecoder *
decoder_of(struct ex_module *module)
{
	static ZydisDecoder decoder[2];
	static bool ready[2];
	const bool narrow = ex_module_is_narrow(module);

	ready[narrow] = ready[narrow] ||
	    ex_sweep_decoder(narrow, &decoder[narrow]);
	return ready[narrow] ? &decoder[narrow] : NULL;
}

static struct ex_decoded *
decode(const struct ex_tail_place *place)
{
	const ZydisDecoder *decoder = decoder_of(place->module);

	return decoder == NULL ? NULL :
	    ex_sweep_at(place->module, decoder, place->vaddr);
}

/* Step over the mark of a jump's target. */
static struct ex_decoded *
decode_entry(struct ex_tail_place *place)
{
	struct ex_decoded *code = decode(place);

	if (code != NULL && (code->insn.mnemonic == ZYDIS_MNEMONIC_ENDBR64 ||
	    code->insn.mnemonic == ZYDIS_MNEMONIC_ENDBR32)) {
		place->vaddr += code->insn.length;
		code = decode(place);
	}
	return code;
}

/* push $n; jmp */
bool
ex_tail_is_unbound(const struct ex_tail_place *place)
{
	struct ex_tail_place at = *place;
	const struct ex_decoded *code = decode_entry(&at);

	return code != NULL && code->insn.mnemonic == ZYDIS_MNEMONIC_PUSH &&
	    code->op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
}

/* --- stubs --- */

/* Whether code is a stub's, which has the table's address in ebx. */
static bool
is_stub(const struct ex_tail_place *place)
{
	struct ex_symbol symbol;
	size_t len;

	return ex_symbol_at(place->module, place->vaddr, &symbol) &&
	    (len = strlen(symbol.name)) > 4 &&
	    strcmp(symbol.name + len - 4, "@plt") == 0;
}

/* The slot that 32-bit code jumps through: an address or, in a stub, an offset
   from ebx. */
static bool
narrow_slot(const ZydisDecodedOperand *op, const struct ex_tail_place *at,
    uint64_t *vaddr)
{
	*vaddr = 0;
	if (op->mem.base != ZYDIS_REGISTER_NONE &&
	    (op->mem.base != ZYDIS_REGISTER_EBX || !is_stub(at) ||
	    !ex_plt_base(at->module, vaddr)))
		return false;
	*vaddr = (uint32_t)(*vaddr + (uint64_t)op->mem.disp.value);
	return true;
}

/* The slot that an instruction takes its target from: op *slot(%rip), or in
   32-bit code op *slot, op *offset(%ebx).  NULL: none, or the program may
   change the slot. */
static const char *
slot_of(const struct ex_decoded *code, const struct ex_tail_place *at,
    struct ex_tail_place *slot)
{
	const ZydisDecodedOperand *op = &code->op[0];

	if (op->type != ZYDIS_OPERAND_TYPE_MEMORY ||
	    op->mem.index != ZYDIS_REGISTER_NONE)
		return NULL;
	*slot = *at;
	if (op->mem.base == ZYDIS_REGISTER_RIP)
		slot->vaddr += code->insn.length + (uint64_t)op->mem.disp.value;
	else if (!ex_module_is_narrow(at->module) ||
	    !narrow_slot(op, at, &slot->vaddr))
		return NULL;
	return ex_plt_slot(slot->module, slot->vaddr);
}

bool
ex_tail_follow_stub(struct ex_tail_graph *g, struct ex_tail_place *place)
{
	struct ex_tail_place at = *place, slot;
	const struct ex_decoded *code = decode_entry(&at);
	const char *name;

	if (code == NULL ||
	    code->insn.meta.category != ZYDIS_CATEGORY_UNCOND_BR ||
	    (name = slot_of(code, &at, &slot)) == NULL)
		return true;
	return ex_tail_slot_target(g, &slot, name, place);
}

/* --- jumps --- */

/* A jump through a register or memory. */
static void
add_indirect(struct ex_tail_graph *g, int from, const struct ex_tail_place *at,
    const struct ex_decoded *code)
{
	struct ex_tail_place slot, to;
	const char *name = slot_of(code, at, &slot);

	if (name != NULL && ex_tail_slot_target(g, &slot, name, &to)) {
		ex_tail_add_jump(g, from, to, at->vaddr);
		return;
	}
	switch (ex_line_jump(at->module, at->vaddr, code->insn.length)) {
	case EX_JUMP_INSIDE:
		return;
	case EX_JUMP_CALL:
		break;
	case EX_JUMP_UNKNOWN:
		if (ex_jump_is_table(at->module, decoder_of(at->module),
		    at->vaddr, code))
			return;
		break;
	}
	ex_tail_add_edge(g, from, ANYWHERE, at->vaddr);
}

static void
add_exit(struct ex_tail_graph *g, int from, const struct ex_tail_place *at)
{
	const struct ex_decoded *code = decode(at);
	struct ex_tail_place to = *at;

	if (code == NULL)
		return;
	if (!code->insn.raw.imm[0].is_relative) {
		add_indirect(g, from, at, code);
		return;
	}
	to.vaddr += code->insn.length + code->insn.raw.imm[0].value.u;
	ex_tail_add_jump(g, from, to, at->vaddr);
}

bool
ex_tail_add_exits(struct ex_tail_graph *g, int from)
{
	const struct ex_tail_node *node = &g->node[from];
	struct ex_tail_place at = node->entry;
	const uint64_t start = node->start, end = node->end;
	const uint32_t *offsets;
	struct ex_flow *flow;
	size_t n;

	flow = ex_flow_new(at.module, decoder_of(at.module), start, end);
	if (flow == NULL)
		return false;
	n = ex_flow_exits(flow, &offsets);
	for (size_t i = 0; i < n && !g->full; i++) {
		at.vaddr = start + offsets[i];
		add_exit(g, from, &at);
	}
	at.vaddr = end;
	if (ex_flow_falls(flow))
		ex_tail_add_jump(g, from, at, 0);
	ex_flow_free(flow);
	return true;
}

/* --- calls --- */

/* The target of the instruction before back. */
static bool
target_of(struct ex_tail_graph *g, uint64_t back, struct ex_tail_place *called)
{
	uint8_t bytes[6];
	struct ex_tail_place at, slot;
	const struct ex_decoded *code;
	const char *name;
	unsigned len;

	if (!ex_tail_place_at(g->process, back - 1, &at) ||
	    at.vaddr < sizeof(bytes))
		return false;
	at.vaddr++;
	if (ex_module_bytes(at.module, at.vaddr - sizeof(bytes), bytes,
	    sizeof(bytes)) != sizeof(bytes))
		return false;
	len = bytes[1] == 0xe8 ? 5 : bytes[0] == 0xff && bytes[1] == 0x15 ? 6 :
	    0;
	at.vaddr -= len;
	if (len == 0 || (code = decode(&at)) == NULL ||
	    code->insn.length != len ||
	    code->insn.meta.category != ZYDIS_CATEGORY_CALL)
		return false;
	*called = at;
	called->vaddr += len + code->insn.raw.imm[0].value.u;
	if (len == 5)
		return ex_tail_follow_stub(g, called);
	return (name = slot_of(code, &at, &slot)) != NULL &&
	    ex_tail_slot_target(g, &slot, name, called);
}

/* Functions that make a call through a register in the caller's place. */
static bool
is_thunk(const struct ex_tail_place *place)
{
	struct ex_symbol symbol;

	return ex_symbol_at(place->module, place->vaddr, &symbol) &&
	    (strncmp(symbol.name, "__x86_indirect_thunk", 20) == 0 ||
	    strncmp(symbol.name, "__llvm_retpoline", 16) == 0 ||
	    strncmp(symbol.name, "__llvm_lvi_thunk", 16) == 0);
}

bool
ex_tail_called_by(struct ex_tail_graph *g, uint64_t back,
    struct ex_tail_place *called)
{
	return target_of(g, back, called) && !is_thunk(called);
}

unsigned
ex_tail_call_len(struct ex_tail_graph *g, uint64_t back)
{
	struct ex_tail_place at;
	struct ex_sweep before;

	if (!ex_tail_place_at(g->process, back - 1, &at))
		return 0;
	before = ex_sweep_before(at.module, decoder_of(at.module), at.vaddr + 1);
	return before.certain && (before.len == 5 || before.len == 6) ?
	    before.len : 0;
}
