/*
 * flow: where the instructions of a function begin.
 */
#include "insn/flow.h"

#include <stdlib.h>

#include "base/array.h"

/* Offsets in the function. */
struct offsets {
	uint32_t *at;
	size_t n, cap;
};

struct ex_flow {
	uint64_t start;		/* vaddr */
	ZydisMachineMode mode;
	uint32_t size;		/* bytes of code */
	uint8_t *code;
	uint8_t *len;		/* of the instruction at this byte, if it is
				   reached; else 0 */
	struct offsets left;	/* still to be followed */
	struct offsets jumps;	/* jumps through memory */
	struct offsets exits;	/* to other code, as far as is known */
	bool falls;		/* continues beyond its end */
};

void
ex_flow_free(struct ex_flow *flow)
{
	if (flow == NULL)
		return;
	free(flow->left.at);
	free(flow->jumps.at);
	free(flow->exits.at);
	free(flow->len);
	free(flow->code);
	free(flow);
}

static bool
add_offset(struct offsets *offsets, uint64_t offset)
{
	if (!EX_ARRAY_ROOM(offsets, at, SIZE_MAX))
		return false;
	offsets->at[offsets->n++] = (uint32_t)offset;
	return true;
}

static bool
follow_later(struct ex_flow *flow, uint64_t offset)
{
	return offset >= flow->size || flow->len[offset] != 0 ||
	    add_offset(&flow->left, offset);
}

/* jmp *MEMORY is ff /4. */
static bool
is_memory_jump(const ZydisDecodedInstruction *insn)
{
	return insn->meta.category == ZYDIS_CATEGORY_UNCOND_BR &&
	    insn->opcode == 0xff && insn->raw.modrm.mod != 3;
}

/* Note an instruction at which the code may be left. */
static bool
note_jump(struct ex_flow *flow, const ZydisDecodedInstruction *insn,
    uint64_t at)
{
	const bool relative = insn->raw.imm[0].is_relative;
	const uint64_t target = at + insn->length + insn->raw.imm[0].value.u;

	if (is_memory_jump(insn) && !add_offset(&flow->jumps, at))
		return false;
	if (insn->meta.category != ZYDIS_CATEGORY_UNCOND_BR &&
	    insn->meta.category != ZYDIS_CATEGORY_COND_BR)
		return true;
	return (relative ? target < flow->size :
	    insn->meta.branch_type == ZYDIS_BRANCH_TYPE_NONE) ||
	    add_offset(&flow->exits, at);
}

/*
 * Whether the code continues after an instruction that may branch.  A call
 * returns, but one into the middle of its own function is a way to push an
 * address: what follows may be data.
 */
static bool
goes_on(const struct ex_flow *flow, const ZydisDecodedInstruction *insn,
    uint64_t target)
{
	switch (insn->meta.category) {
	case ZYDIS_CATEGORY_CALL:
		return !insn->raw.imm[0].is_relative || target == 0 ||
		    target >= flow->size;
	case ZYDIS_CATEGORY_UNCOND_BR:
		return insn->meta.branch_type == ZYDIS_BRANCH_TYPE_NONE;
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_SYSRET:
		return false;
	default:
		break;
	}
	switch (insn->mnemonic) {
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
		return false;
	default:
		return true;
	}
}

static bool
is_padding(const ZydisDecodedInstruction *insn)
{
	return insn->meta.category == ZYDIS_CATEGORY_NOP ||
	    insn->meta.category == ZYDIS_CATEGORY_WIDENOP ||
	    (insn->mnemonic == ZYDIS_MNEMONIC_XCHG && insn->length <= 2);
}

/* Follow the code from an offset until it meets code that is known. */
static bool
follow(struct ex_flow *flow, const ZydisDecoder *decoder, uint64_t at)
{
	ZydisDecodedInstruction insn;
	bool called = false;	/* the call may not return, if only padding
				   follows */
	uint64_t target;

	while (at < flow->size && flow->len[at] == 0) {
		if (ZYAN_FAILED(ZydisDecoderDecodeInstruction(decoder, NULL,
		    flow->code + at, flow->size - at, &insn)))
			return true;
		flow->len[at] = insn.length;
		if (!note_jump(flow, &insn, at))
			return false;
		at += insn.length;
		target = at + insn.raw.imm[0].value.u;
		if (insn.raw.imm[0].is_relative && !follow_later(flow, target))
			return false;
		if (!goes_on(flow, &insn, target))
			return true;
		called = insn.meta.category == ZYDIS_CATEGORY_CALL ||
		    (called && is_padding(&insn));
		flow->falls |= at >= flow->size && !called;
	}
	return true;
}

static bool
follow_all(struct ex_flow *flow, const ZydisDecoder *decoder)
{
	if (!follow(flow, decoder, 0))
		return false;
	while (flow->left.n > 0) {
		if (!follow(flow, decoder, flow->left.at[--flow->left.n]))
			return false;
	}
	return true;
}

/* Look for jumps in bytes that were not reached. */
static bool
scan_rest(struct ex_flow *flow, const ZydisDecoder *decoder)
{
	ZydisDecodedInstruction insn;

	for (uint64_t at = 0; at < flow->size; ) {
		if (flow->len[at] != 0) {
			at += flow->len[at];
		} else if (ZYAN_FAILED(ZydisDecoderDecodeInstruction(decoder,
		    NULL, flow->code + at, flow->size - at, &insn))) {
			at++;
		} else {
			if (!note_jump(flow, &insn, at))
				return false;
			at += insn.length;
		}
	}
	return true;
}

struct ex_flow *
ex_flow_new(struct ex_module *module, const ZydisDecoder *decoder,
    uint64_t start, uint64_t end)
{
	struct ex_flow *flow = calloc(1, sizeof(*flow));
	const size_t size = end - start;

	if (flow == NULL || end <= start || size > UINT32_MAX) {
		free(flow);
		return NULL;
	}
	flow->start = start;
	flow->mode = decoder->machine_mode;
	flow->code = malloc(size);
	flow->len = calloc(1, size);
	if (flow->code != NULL && flow->len != NULL) {
		flow->size = (uint32_t)ex_module_bytes(module, start,
		    flow->code, size);
		if (flow->size > 0 && follow_all(flow, decoder) &&
		    scan_rest(flow, decoder)) {
			free(flow->code);
			flow->code = NULL;
			return flow;
		}
	}
	ex_flow_free(flow);
	return NULL;
}

bool
ex_flow_is(const struct ex_flow *flow, const ZydisDecoder *decoder,
    uint64_t start)
{
	return flow->start == start && flow->mode == decoder->machine_mode;
}

unsigned
ex_flow_before(const struct ex_flow *flow, uint64_t vaddr, unsigned *n)
{
	const uint64_t offset = vaddr - flow->start;
	unsigned found = 0;

	*n = 0;
	for (unsigned len = 1; len <= ZYDIS_MAX_INSTRUCTION_LENGTH &&
	    len <= offset; len++) {
		if (offset - len >= flow->size ||
		    flow->len[offset - len] != len)
			continue;
		found = len;
		(*n)++;
	}
	return found;
}

bool
ex_flow_begins(const struct ex_flow *flow, uint64_t vaddr)
{
	const uint64_t offset = vaddr - flow->start;

	if (offset >= flow->size || flow->len[offset] == 0)
		return false;
	for (unsigned i = 1; i < ZYDIS_MAX_INSTRUCTION_LENGTH &&
	    i <= offset; i++)
		if (flow->len[offset - i] > i)
			return false;
	return true;
}

uint64_t
ex_flow_last(const struct ex_flow *flow, uint64_t vaddr)
{
	uint64_t at = vaddr - flow->start;

	if (at > flow->size)
		at = flow->size;
	while (at-- > 0) {
		if (flow->len[at] != 0)
			return flow->start + at + flow->len[at];
	}
	return flow->start;
}

size_t
ex_flow_jumps(const struct ex_flow *flow, const uint32_t **offsets)
{
	*offsets = flow->jumps.at;
	return flow->jumps.n;
}

size_t
ex_flow_exits(const struct ex_flow *flow, const uint32_t **offsets)
{
	*offsets = flow->exits.at;
	return flow->exits.n;
}

bool
ex_flow_falls(const struct ex_flow *flow)
{
	return flow->falls;
}
