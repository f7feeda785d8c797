/* prior_value: the previous value of a register that an instruction has
   overwritten. */
#include "insn/prior_value.h"

#include <string.h>

#include "module/module_private.h"
#include "space/space.h"
#include "symbol/symbol.h"

enum {
	STEPS = 4,		/* instructions that are gone back over */
	REACH = 48,		/* bytes */
	FUNCTION_MAX = 16384,	/* bytes: no others are looked through */
	PIECE = 4096,		/* of a module's code, searched at a time */
	CODE_MAX = 64 << 20,	/* bytes: no others are looked through */
};

/* --- the only way --- */

/* The bytes of a function that code may not be led into but by going on. */
struct straight {
	uint64_t first, last;	/* where instructions begin, vaddrs */
};

static bool
is_within(const struct straight *s, uint64_t target)
{
	return target - s->first <= s->last - s->first;
}

/* Whether a byte may be the opcode of a jump with a displacement of a byte. */
static bool
is_short_jump(uint8_t opcode)
{
	return (opcode & 0xf0) == 0x70 || opcode == 0xeb ||
	    (opcode & 0xfc) == 0xe0;
}

/* Whether bytes, wherever instructions begin there, may be a jump or a call to
   the straight ones; four more follow those that are counted. */
static bool
may_lead(const struct straight *s, const uint8_t *bytes, size_t n,
    uint64_t vaddr)
{
	for (size_t i = 0; i < n; i++) {
		int32_t far;

		memcpy(&far, bytes + i, sizeof(far));
		if (is_within(s, vaddr + i + 4 + (uint64_t)(int64_t)far))
			return true;
		if (is_short_jump(bytes[i]) && is_within(s, vaddr + i + 2 +
		    (uint64_t)(int64_t)(int8_t)bytes[i + 1]))
			return true;
	}
	return false;
}

static bool
segment_leads(struct ex_module *m, const struct ex_segment *segment,
    const struct straight *s)
{
	uint8_t piece[PIECE + 8];

	for (uint64_t at = 0; at < segment->filesz; at += PIECE) {
		const uint64_t left = segment->filesz - at;
		const size_t n = left < PIECE ? (size_t)left : PIECE;
		const size_t all = left < sizeof(piece) ? (size_t)left :
		    sizeof(piece);

		memset(piece, 0, sizeof(piece));
		if (ex_module_bytes(m, segment->vaddr + at, piece,
		    all) != all ||
		    may_lead(s, piece, n, segment->vaddr + at))
			return true;
	}
	return false;
}

/* Whether any code of the module may lead there. */
static bool
module_leads(struct ex_module *m, const struct straight *s)
{
	for (unsigned i = 0; i < m->nsegments; i++) {
		const struct ex_segment *segment = &m->segment[i];

		if ((segment->flags & PF_X) != 0 &&
		    (segment->filesz > CODE_MAX ||
		    segment_leads(m, segment, s)))
			return true;
	}
	return false;
}

/* Whether one of a function's instructions jumps to where no code says. */
static bool
jumps_away(const ZydisDecoder *decoder, const uint8_t *code, size_t len)
{
	ZydisDecodedInstruction insn;

	for (size_t at = 0; at < len; at += insn.length)
		if (ZYAN_FAILED(ZydisDecoderDecodeInstruction(decoder, NULL,
		    code + at, len - at, &insn)) ||
		    (insn.meta.category == ZYDIS_CATEGORY_UNCOND_BR &&
		    !insn.raw.imm[0].is_relative))
			return true;
	return false;
}

static bool
is_only_way(const struct ex_query *q, struct ex_module *m,
    const struct straight *s)
{
	uint8_t code[FUNCTION_MAX];
	struct ex_function f;
	size_t len;

	if (!ex_symbol_function(m, s->last, &f) || !f.sized ||
	    s->first <= f.start || s->last >= f.end ||
	    f.end - f.start > sizeof(code))
		return false;
	len = f.end - f.start;
	return ex_module_bytes(m, f.start, code, len) == len &&
	    !jumps_away(&q->decoder, code, len) && !module_leads(m, s);
}

/* --- what was put there --- */

/* Which general registers an instruction writes, a bit for each. */
static unsigned
written_by(const struct ex_query *q, const struct ex_code *c)
{
	unsigned written = 0, number;

	for (unsigned i = 0; i < c->insn->operand_count; i++)
		if (c->op[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    (c->op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0 &&
		    ex_query_number(q, c->op[i].reg.value, &number))
			written |= 1u << number;
	return written;
}

/* Whether control certainly continues at the next instruction, and only the
   registers among the operands change. */
static bool
is_plain(const struct ex_code *c)
{
	switch (c->insn->meta.category) {
	case ZYDIS_CATEGORY_BINARY:
	case ZYDIS_CATEGORY_BITBYTE:
	case ZYDIS_CATEGORY_CMOV:
	case ZYDIS_CATEGORY_DATAXFER:
	case ZYDIS_CATEGORY_LOGICAL:
	case ZYDIS_CATEGORY_MISC:
	case ZYDIS_CATEGORY_NOP:
	case ZYDIS_CATEGORY_SETCC:
	case ZYDIS_CATEGORY_SHIFT:
	case ZYDIS_CATEGORY_WIDENOP:
		return true;
	default:
		return false;
	}
}

static bool
is_whole(ZydisRegister reg)
{
	return ZydisRegisterGetClass(reg) == ZYDIS_REGCLASS_GPR32 ||
	    ZydisRegisterGetClass(reg) == ZYDIS_REGCLASS_GPR64;
}

/* Determine the value that an instruction put into a whole register. */
static void
look_at(const struct ex_query *q, const struct ex_code *c, unsigned changed,
    struct ex_prior_value *held)
{
	const ZydisDecodedOperand *to = &c->op[0], *from = &c->op[1];
	const bool copies = c->insn->mnemonic == ZYDIS_MNEMONIC_MOV;
	const bool clears = c->insn->mnemonic == ZYDIS_MNEMONIC_XOR ||
	    c->insn->mnemonic == ZYDIS_MNEMONIC_SUB;
	unsigned number;

	held->narrow = to->size <= 32;
	if ((!copies && !clears) || to->type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    !is_whole(to->reg.value))
		return;
	if (copies && from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		held->kind = EX_PRIOR_CONSTANT;
		held->value = from->imm.value.u;
	} else if (from->type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    !ex_query_number(q, from->reg.value, &number)) {
		return;
	} else if (clears && from->reg.value == to->reg.value) {
		held->kind = EX_PRIOR_CONSTANT;
		held->value = 0;
	} else if (copies && (changed >> number & 1) == 0) {
		held->kind = EX_PRIOR_REGISTER;
		held->number = (uint8_t)number;
	}
}

/* Go back until one puts something there. */
static void
find(const struct ex_query *q, const struct ex_code *c, unsigned number,
    struct ex_prior_value *held)
{
	unsigned changed = written_by(q, c);
	struct straight straight;
	struct ex_code before = *c;
	struct ex_module *m;
	uint64_t vaddr;

	m = ex_process_module(q->process, c->pc, &vaddr);
	held->kind = EX_PRIOR_NOT;
	straight.last = straight.first = vaddr;
	for (unsigned i = 0; m != NULL && i < STEPS; i++) {
		const uint64_t at = before.pc;

		if (!ex_code_before(q, at, &before) || !before.certain ||
		    !is_plain(&before) || c->pc - before.pc > REACH)
			return;
		straight.first = vaddr - (c->pc - at);
		if ((written_by(q, &before) >> number & 1) == 0) {
			changed |= written_by(q, &before);
			continue;
		}
		look_at(q, &before, changed, held);
		break;
	}
	held->len = (uint8_t)(c->pc + c->insn->length - before.pc);
	if (held->kind != EX_PRIOR_NOT && !is_only_way(q, m, &straight))
		held->kind = EX_PRIOR_NOT;
}

/* Whether the code that was examined is the code that was executed. */
static bool
is_original(const struct ex_query *q, uint64_t end, unsigned len)
{
	for (unsigned back = 0; back < len; back += EX_ORIGINAL)
		if (!ex_process_is_original(q->process, end - back))
			return false;
	return true;
}

bool
ex_prior_value(const struct ex_query *q, const struct ex_code *c,
    unsigned number,
    uint64_t *value)
{
	struct ex_prior_value *held = &c->decoded->held;

	if (held->kind == EX_PRIOR_UNKNOWN)
		find(q, c, number, held);
	if (!is_original(q, c->pc + c->insn->length, held->len))
		return false;
	if (held->kind == EX_PRIOR_REGISTER) {
		if (!ex_query_reg(q, held->number, value))
			return false;
	} else if (held->kind == EX_PRIOR_CONSTANT) {
		*value = held->value;
	} else {
		return false;
	}
	if (held->narrow)
		*value = (uint32_t)*value;
	return true;
}
