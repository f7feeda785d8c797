/*
 * stored: what an x86 instruction stored, by the registers sampled after it.
 */
#include "code.h"

/* The value of a general register, or of its part, that was not overwritten. */
static bool
register_value(const struct ex_query *q, ZydisRegister reg, uint64_t *value)
{
	unsigned number;

	if (ZydisRegisterGetClass(reg) == ZYDIS_REGCLASS_GPR8 &&
	    reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH) {
		if (!ex_query_reg(q, (unsigned)(reg - ZYDIS_REGISTER_AH), value))
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

/* setcc's condition, the low four bits of its opcode. */
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

bool
ex_code_stored(const struct ex_query *q, const struct ex_code *c,
    uint64_t *value)
{
	unsigned number;
	uint64_t flags;

	switch (c->insn->meta.category) {
	case ZYDIS_CATEGORY_SETCC:
		if (!ex_query_flags(q, &flags))
			return false;
		*value = condition(c->insn->opcode, flags);
		return true;
	case ZYDIS_CATEGORY_CALL:
		*value = c->pc + c->insn->length;
		return true;
	default:
		break;
	}
	switch (c->insn->mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVNTI:
		return source_value(q, &c->op[1], value);
	case ZYDIS_MNEMONIC_STOSB:
	case ZYDIS_MNEMONIC_STOSW:
	case ZYDIS_MNEMONIC_STOSD:
	case ZYDIS_MNEMONIC_STOSQ:
		return ex_query_reg(q, EX_AX, value);
	case ZYDIS_MNEMONIC_PUSH:
		if (!source_value(q, &c->op[0], value))
			return false;
		if (c->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    ex_query_number(q, c->op[0].reg.value, &number) &&
		    number == EX_SP)
			*value += c->insn->operand_width / 8;
		return true;
	case ZYDIS_MNEMONIC_CMPXCHG:
		/* Either it stored the register, or ax was loaded with what
		   memory holds. */
		if (!ex_query_flags(q, &flags))
			return false;
		return flags & EX_FLAG_ZF ? source_value(q, &c->op[1], value) :
		    ex_query_reg(q, EX_AX, value);
	default:
		return false;
	}
}
