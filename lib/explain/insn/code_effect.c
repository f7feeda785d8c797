/*
 * code_effect: what an x86 instruction did to the memory it touched, by the
 * registers sampled after it.
 */
#include <string.h>

#include "insn/code.h"
#include "insn/prior_value.h"

/* ah, ch, dh, bh */
static bool
is_high(ZydisRegister reg)
{
	return reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH;
}

/* The value of a general register or of a part of one. */
static bool
register_value(const struct ex_query *q, ZydisRegister reg, uint64_t *value)
{
	unsigned number;

	if (is_high(reg)) {
		if (!ex_query_reg(q, (unsigned)(reg - ZYDIS_REGISTER_AH),
		    value))
			return false;
		*value >>= 8;
		return true;
	}
	switch (ZydisRegisterGetClass(reg)) {
	case ZYDIS_REGCLASS_GPR8:
	case ZYDIS_REGCLASS_GPR16:
	case ZYDIS_REGCLASS_GPR32:
	case ZYDIS_REGCLASS_GPR64:
		return ex_query_number(q, reg, &number) &&
		    ex_query_reg(q, number, value);
	default:
		return false;
	}
}

static bool
source_value(const struct ex_query *q, const ZydisDecodedOperand *op,
    uint64_t *value)
{
	switch (op->type) {
	case ZYDIS_OPERAND_TYPE_IMMEDIATE:
		*value = op->imm.value.u;
		return true;
	case ZYDIS_OPERAND_TYPE_REGISTER:
		return register_value(q, op->reg.value, value);
	default:
		return false;
	}
}

/* The condition of setcc: the low four bits of its opcode. */
static bool
condition(unsigned code, uint64_t flags)
{
	const bool cf = flags & EX_FLAG_CF, zf = flags & EX_FLAG_ZF;
	const bool less = !(flags & EX_FLAG_SF) != !(flags & EX_FLAG_OF);
	const bool of8[8] = {
		flags & EX_FLAG_OF, cf, zf, cf || zf,
		flags & EX_FLAG_SF, flags & EX_FLAG_PF, less, zf || less,
	};

	return of8[code >> 1 & 7] != (code & 1);
}

static bool
is_memory(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_MEMORY;
}

/* Bytes in the order of memory, least significant first. */
static void
put_bytes(uint8_t to[EX_EFFECT_MAX], uint64_t low, uint64_t high)
{
	memcpy(to, &low, sizeof(low));
	memcpy(to + sizeof(low), &high, sizeof(high));
}

static void
store(struct ex_effect *effect, uint64_t value)
{
	effect->operation = EX_OP_STORE;
	put_bytes(effect->stored, value, 0);
}

static void
load(struct ex_effect *effect, uint64_t value)
{
	effect->has_loaded = true;
	put_bytes(effect->loaded, value, 0);
}

static uint64_t
swapped(uint64_t value, unsigned size)
{
	return size > 8 ? value : __builtin_bswap64(value) >> (64 - 8 * size);
}

/* mov and push: the source is a register or a constant. */
static void
store_source(const struct ex_query *q, const ZydisDecodedOperand *op,
    struct ex_effect *effect)
{
	uint64_t value;

	if (!source_value(q, op, &value))
		return;
	effect->immediate = op->type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
	store(effect, value);
}

static void
push(const struct ex_query *q, const struct ex_code *c,
    struct ex_effect *effect)
{
	unsigned number;
	uint64_t value;

	if (!source_value(q, &c->op[0], &value))
		return;
	if (c->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	    ex_query_number(q, c->op[0].reg.value, &number) &&
	    number == EX_SP)
		value += c->insn->operand_width / 8;
	effect->immediate = c->op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
	store(effect, value);
}

/* If ZF is set, it stored the register over the value in ax; otherwise it
   loaded ax from memory and wrote the value back. */
static void
compare_exchange(const struct ex_query *q, const struct ex_code *c,
    struct ex_effect *effect)
{
	uint64_t flags, loaded, value;

	if (!ex_query_flags(q, &flags) || !ex_query_reg(q, EX_AX, &loaded))
		return;
	load(effect, loaded);
	value = loaded;
	if ((flags & EX_FLAG_ZF) == 0 || source_value(q, &c->op[1], &value))
		store(effect, value);
}

/* The same with register pairs: dx:ax and cx:bx. */
static void
compare_exchange_pair(const struct ex_query *q, unsigned size,
    struct ex_effect *effect)
{
	uint64_t flags, ax, dx, bx, cx;

	if (!ex_query_flags(q, &flags) || !ex_query_reg(q, EX_AX, &ax) ||
	    !ex_query_reg(q, EX_DX, &dx) || !ex_query_reg(q, EX_BX, &bx) ||
	    !ex_query_reg(q, EX_CX, &cx))
		return;
	if (size == 8) {
		ax = (uint32_t)ax | dx << 32;
		bx = (uint32_t)bx | cx << 32;
	}
	effect->has_loaded = true;
	put_bytes(effect->loaded, ax, dx);
	effect->operation = EX_OP_STORE;
	if (flags & EX_FLAG_ZF)
		put_bytes(effect->stored, bx, cx);
	else
		put_bytes(effect->stored, ax, dx);
}

/* The value was loaded into a register that still holds it. */
static void
load_register(const struct ex_query *q, const ZydisDecodedOperand *op,
    struct ex_effect *effect)
{
	uint64_t value;

	if (op->type == ZYDIS_OPERAND_TYPE_REGISTER &&
	    register_value(q, op->reg.value, &value))
		load(effect, value);
}

/* xchg and xadd: the register now holds the value that was in memory; it held
   what they stored or added. */
static void
exchange(const struct ex_query *q, const struct ex_code *c,
    struct ex_effect *effect)
{
	const ZydisDecodedOperand *op = &c->op[is_memory(&c->op[0]) ? 1 : 0];
	unsigned number;
	uint64_t value;

	load_register(q, op, effect);
	effect->added = c->insn->mnemonic == ZYDIS_MNEMONIC_XADD;
	if (!effect->has_loaded || is_high(op->reg.value) ||
	    !ex_query_number(q, op->reg.value, &number) ||
	    !ex_prior_value(q, c, number, &value))
		return;
	if (c->insn->mnemonic == ZYDIS_MNEMONIC_XCHG) {
		store(effect, value);
	} else {
		effect->operation = EX_OP_ADD;
		effect->operand = value;
		effect->added = false;
	}
}

static enum ex_operation
operation_of(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_ADD:
		return EX_OP_ADD;
	case ZYDIS_MNEMONIC_ADC:
		return EX_OP_ADC;
	case ZYDIS_MNEMONIC_SUB:
		return EX_OP_SUB;
	case ZYDIS_MNEMONIC_SBB:
		return EX_OP_SBB;
	case ZYDIS_MNEMONIC_AND:
		return EX_OP_AND;
	case ZYDIS_MNEMONIC_OR:
		return EX_OP_OR;
	case ZYDIS_MNEMONIC_XOR:
		return EX_OP_XOR;
	case ZYDIS_MNEMONIC_INC:
		return EX_OP_INC;
	case ZYDIS_MNEMONIC_DEC:
		return EX_OP_DEC;
	case ZYDIS_MNEMONIC_NEG:
		return EX_OP_NEG;
	case ZYDIS_MNEMONIC_NOT:
		return EX_OP_NOT;
	case ZYDIS_MNEMONIC_SHL:
		return EX_OP_SHL;
	case ZYDIS_MNEMONIC_SHR:
		return EX_OP_SHR;
	case ZYDIS_MNEMONIC_SAR:
		return EX_OP_SAR;
	case ZYDIS_MNEMONIC_ROL:
		return EX_OP_ROL;
	case ZYDIS_MNEMONIC_ROR:
		return EX_OP_ROR;
	case ZYDIS_MNEMONIC_BTS:
		return EX_OP_BTS;
	case ZYDIS_MNEMONIC_BTR:
		return EX_OP_BTR;
	case ZYDIS_MNEMONIC_BTC:
		return EX_OP_BTC;
	default:
		return EX_OP_UNKNOWN;
	}
}

/* Instructions that compute from memory and at most one other operand. */
static void
compute(const struct ex_query *q, const struct ex_code *c,
    struct ex_effect *effect)
{
	const enum ex_operation operation = operation_of(c->insn->mnemonic);
	const bool alone = operation == EX_OP_INC || operation == EX_OP_DEC ||
	    operation == EX_OP_NEG || operation == EX_OP_NOT;

	if (operation == EX_OP_UNKNOWN || !is_memory(&c->op[0]) ||
	    (!alone && !source_value(q, &c->op[1], &effect->operand)))
		return;
	effect->operation = operation;
}

/* Add a register that an address consists of.  Returns false if its value may
   be different at another hit. */
static bool
add_base(const struct ex_query *q, ZydisRegister reg, struct ex_effect *effect)
{
	unsigned number;

	if (reg == ZYDIS_REGISTER_NONE || reg == ZYDIS_REGISTER_RIP)
		return true;
	if (!ex_query_number(q, reg, &number))
		return false;
	effect->base[effect->nbases++] = ex_code_sampled(number);
	return true;
}

/* Determine whether a store by mov, which changes no register, is a plain
   one. */
static void
find_plain(const struct ex_query *q, const struct ex_code *c,
    struct ex_effect *effect)
{
	const ZydisDecodedOperand *to = &c->op[0], *from = &c->op[1];
	unsigned number = 0;

	if (effect->operation != EX_OP_STORE || q->word != 8 ||
	    !is_memory(to) || to->mem.segment == ZYDIS_REGISTER_FS ||
	    to->mem.segment == ZYDIS_REGISTER_GS ||
	    !add_base(q, to->mem.base, effect) ||
	    !add_base(q, to->mem.index, effect))
		return;
	if (!effect->immediate && (is_high(from->reg.value) ||
	    !ex_query_number(q, from->reg.value, &number)))
		return;
	effect->reg = ex_code_sampled(number);
	effect->plain = true;
}

/* In the order of how often programs use them. */
static void
by_mnemonic(const struct ex_query *q, const struct ex_code *c,
    struct ex_effect *effect)
{
	uint64_t value;

	switch (c->insn->mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVNTI:
	case ZYDIS_MNEMONIC_MOVDIRI:
		store_source(q, &c->op[1], effect);
		find_plain(q, c, effect);
		break;
	case ZYDIS_MNEMONIC_MOVBE:
		if (source_value(q, &c->op[1], &value))
			store(effect, swapped(value, effect->size));
		break;
	case ZYDIS_MNEMONIC_STOSB:
	case ZYDIS_MNEMONIC_STOSW:
	case ZYDIS_MNEMONIC_STOSD:
	case ZYDIS_MNEMONIC_STOSQ:
		if (ex_query_reg(q, EX_AX, &value))
			store(effect, value);
		break;
	case ZYDIS_MNEMONIC_PUSH:
		push(q, c, effect);
		break;
	case ZYDIS_MNEMONIC_CMPXCHG:
		compare_exchange(q, c, effect);
		break;
	case ZYDIS_MNEMONIC_CMPXCHG8B:
	case ZYDIS_MNEMONIC_CMPXCHG16B:
		compare_exchange_pair(q, effect->size, effect);
		break;
	case ZYDIS_MNEMONIC_XCHG:
	case ZYDIS_MNEMONIC_XADD:
		exchange(q, c, effect);
		break;
	default:
		compute(q, c, effect);
	}
}

static void
read_only(const struct ex_query *q, const struct ex_code *c,
    struct ex_effect *effect)
{
	effect->operation = EX_OP_NONE;
	switch (c->insn->mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVZX:
	case ZYDIS_MNEMONIC_MOVSX:
	case ZYDIS_MNEMONIC_MOVSXD:
		if (is_memory(&c->op[1]))
			load_register(q, &c->op[0], effect);
		break;
	default:
		break;
	}
}

/* Whether no access by another processor can have come in between its load and
   its store. */
static bool
is_atomic(const struct ex_code *c, const struct ex_finding *found)
{
	return found->stores &&
	    ((c->insn->attributes & ZYDIS_ATTRIB_HAS_LOCK) != 0 ||
	    c->insn->mnemonic == ZYDIS_MNEMONIC_XCHG);
}

void
ex_code_effect(const struct ex_query *q, const struct ex_code *c,
    const struct ex_finding *found, struct ex_effect *effect)
{
	uint64_t flags;

	memset(effect, 0, sizeof(*effect));
	if (found->size == 0 || found->size > EX_EFFECT_MAX)
		return;
	effect->size = (uint8_t)found->size;
	effect->repeated = ex_code_is_rep(c);
	effect->atomic = is_atomic(c, found);
	effect->has_flags = ex_query_flags(q, &effect->flags);
	if (!found->stores) {
		read_only(q, c, effect);
		return;
	}
	switch (c->insn->meta.category) {
	case ZYDIS_CATEGORY_SETCC:
		if (ex_query_flags(q, &flags))
			store(effect, condition(c->insn->opcode, flags));
		break;
	case ZYDIS_CATEGORY_CALL:
		effect->immediate = true;
		store(effect, c->pc + c->insn->length);
		break;
	default:
		by_mnemonic(q, c, effect);
	}
}
