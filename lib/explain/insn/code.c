/*
 * code: what an x86 instruction did to a watch.
 */
#include "insn/code.h"

#include <asm/perf_regs.h>

/* A rep string instruction may be stopped after a group of steps rather than
   after the step that touched the watch.  This is the largest distance in
   bytes. */
#define REP_GROUP	64

/* The size of an XSAVE area depends on the processor; none is larger (AMX needs
   11 KB). */
#define XSAVE_MAX	(16U << 10)

/* Bytes of the 512-byte FXSAVE area that are saved in 64-bit code, and with the
   eight registers of 32-bit code.  The rest is reserved. */
#define FXSAVE_USED	416
#define FXSAVE_USED_32	288

#define CLZERO_LINE	64	/* bytes that clzero clears */

static const uint8_t sampled[16] = {
	PERF_REG_X86_AX, PERF_REG_X86_CX, PERF_REG_X86_DX, PERF_REG_X86_BX,
	PERF_REG_X86_SP, PERF_REG_X86_BP, PERF_REG_X86_SI, PERF_REG_X86_DI,
	PERF_REG_X86_R8, PERF_REG_X86_R9, PERF_REG_X86_R10, PERF_REG_X86_R11,
	PERF_REG_X86_R12, PERF_REG_X86_R13, PERF_REG_X86_R14, PERF_REG_X86_R15,
};

bool
ex_query_reg(const struct ex_query *q, unsigned number, uint64_t *value)
{
	if (number >= sizeof(sampled) ||
	    !ex_regs_get(&q->sample->user, sampled[number], value))
		return false;
	if (q->word == 4)
		*value = (uint32_t)*value;
	return true;
}

uint8_t
ex_code_sampled(unsigned number)
{
	return sampled[number % sizeof(sampled)];
}

bool
ex_query_flags(const struct ex_query *q, uint64_t *flags)
{
	return ex_regs_get(&q->sample->user, PERF_REG_X86_FLAGS, flags);
}

bool
ex_query_number(const struct ex_query *q, ZydisRegister reg, unsigned *number)
{
	reg = ZydisRegisterGetLargestEnclosing(q->decoder.machine_mode, reg);
	switch (ZydisRegisterGetClass(reg)) {
	case ZYDIS_REGCLASS_GPR32:
	case ZYDIS_REGCLASS_GPR64:
		*number = (unsigned)ZydisRegisterGetId(reg);
		return true;
	default:
		return false;
	}
}

static bool
is_memory(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_MEMORY;
}

static bool
op_reads(const ZydisDecodedOperand *op)
{
	return (op->actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
}

static bool
op_writes(const ZydisDecodedOperand *op)
{
	return (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
}

static bool
is_string(const struct ex_code *c)
{
	return c->insn->meta.category == ZYDIS_CATEGORY_STRINGOP ||
	    c->insn->meta.category == ZYDIS_CATEGORY_IOSTRINGOP;
}

bool
ex_code_is_rep(const struct ex_code *c)
{
	return is_string(c) &&
	    (c->insn->attributes & (ZYDIS_ATTRIB_HAS_REP |
	    ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE)) != 0;
}

bool
ex_code_is_resumed(const struct ex_code *c)
{
	switch (c->insn->meta.category) {
	case ZYDIS_CATEGORY_GATHER:
	case ZYDIS_CATEGORY_AVX2GATHER:
	case ZYDIS_CATEGORY_SCATTER:
	case ZYDIS_CATEGORY_AMX_TILE:
	case ZYDIS_CATEGORY_PADLOCK:
		return true;
	default:
		return false;
	}
}

/* Instructions that name memory without accessing it. */
static bool
is_hint(const struct ex_code *c)
{
	switch (c->insn->meta.category) {
	case ZYDIS_CATEGORY_NOP:
	case ZYDIS_CATEGORY_WIDENOP:
	case ZYDIS_CATEGORY_PREFETCH:
	case ZYDIS_CATEGORY_PREFETCHWT1:
	case ZYDIS_CATEGORY_CLDEMOTE:
		return true;
	default:
		return false;
	}
}

/* The number of bytes, from its address on, that an operand may touch if that
   depends on more than the registers in the sample; otherwise 0. */
static uint32_t
vague_size(const struct ex_code *c, const ZydisDecodedOperand *op)
{
	switch (c->insn->meta.category) {
	case ZYDIS_CATEGORY_XSAVE:
	case ZYDIS_CATEGORY_XSAVEOPT:
		return XSAVE_MAX;
	case ZYDIS_CATEGORY_CLFLUSHOPT:
	case ZYDIS_CATEGORY_CLWB:
		return op->size / 8;
	default:
		break;
	}
	switch (c->insn->mnemonic) {
	case ZYDIS_MNEMONIC_CLFLUSH:
	case ZYDIS_MNEMONIC_MASKMOVQ:
	case ZYDIS_MNEMONIC_MASKMOVDQU:
	case ZYDIS_MNEMONIC_VMASKMOVDQU:
	case ZYDIS_MNEMONIC_VMASKMOVPS:
	case ZYDIS_MNEMONIC_VMASKMOVPD:
	case ZYDIS_MNEMONIC_VPMASKMOVD:
	case ZYDIS_MNEMONIC_VPMASKMOVQ:
		return op->size / 8;
	default:
		break;
	}
	if (c->insn->avx.mask.reg != ZYDIS_REGISTER_NONE &&
	    c->insn->avx.mask.reg != ZYDIS_REGISTER_K0)
		return op->size / 8;
	return 0;
}

/* The number of bytes, from its address on, that an operand certainly
   touches. */
static uint32_t
sure_size(const struct ex_query *q, const struct ex_code *c,
    const ZydisDecodedOperand *op)
{
	switch (c->insn->mnemonic) {
	case ZYDIS_MNEMONIC_FXSAVE:
	case ZYDIS_MNEMONIC_FXSAVE64:
	case ZYDIS_MNEMONIC_FXRSTOR:
	case ZYDIS_MNEMONIC_FXRSTOR64:
		return q->word == 4 ? FXSAVE_USED_32 : FXSAVE_USED;
	default:
		return op->size / 8;
	}
}

/* Whether it moves the stack pointer, and accesses memory there implicitly. */
static bool
is_stack(const struct ex_code *c)
{
	return c->insn->meta.category == ZYDIS_CATEGORY_PUSH ||
	    c->insn->meta.category == ZYDIS_CATEGORY_POP ||
	    c->insn->meta.category == ZYDIS_CATEGORY_CALL ||
	    c->insn->mnemonic == ZYDIS_MNEMONIC_ENTER ||
	    c->insn->mnemonic == ZYDIS_MNEMONIC_LEAVE;
}

static bool
is_hidden(const ZydisDecodedOperand *op)
{
	return op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN;
}

/* The address of that memory, computed from the stack pointer after the
   instruction. */
static bool
stack_address(const struct ex_query *q, const struct ex_code *c,
    const ZydisDecodedOperand *op, uint64_t *addr)
{
	const bool pop = c->insn->meta.category == ZYDIS_CATEGORY_POP;
	unsigned number;

	if (c->insn->mnemonic == ZYDIS_MNEMONIC_ENTER)
		return c->op[1].imm.value.u % 32 == 0 &&
		    ex_query_reg(q, EX_BP, addr);
	if (!pop && c->insn->mnemonic != ZYDIS_MNEMONIC_LEAVE)
		return ex_query_reg(q, EX_SP, addr);
	if (pop && c->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	    !is_hidden(&c->op[0]) &&
	    ex_query_number(q, c->op[0].reg.value, &number) && number == EX_SP)
		return false;
	if (!ex_query_reg(q, EX_SP, addr))
		return false;
	*addr -= op->size / 8;
	return true;
}

/* The element of a string instruction's last step. */
static bool
string_address(const struct ex_query *q, const ZydisDecodedOperand *op,
    uint64_t *addr)
{
	unsigned number;
	uint64_t flags;

	if (!ex_query_number(q, op->mem.base, &number) ||
	    !ex_query_reg(q, number, addr) || !ex_query_flags(q, &flags))
		return false;
	if (flags & EX_FLAG_DF)
		*addr += op->size / 8;
	else
		*addr -= op->size / 8;
	return true;
}

/* The value of a register when the instruction computed an address. */
static bool
register_before(const struct ex_query *q, const struct ex_code *c,
    ZydisRegister reg, uint64_t *value)
{
	unsigned number, written;

	if (!ex_query_number(q, reg, &number) ||
	    !ex_query_reg(q, number, value))
		return false;
	for (unsigned i = 0; i < c->insn->operand_count; i++) {
		const ZydisDecodedOperand *op = &c->op[i];

		if (number == EX_SP && is_stack(c)) {
			/* push and call computed the address before they
			   decremented the stack pointer, pop after it
			   incremented it */
			if (is_memory(op) && is_hidden(op) && op_writes(op))
				*value += op->size / 8;
		} else if (op->type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    op_writes(op) &&
		    ex_query_number(q, op->reg.value, &written) &&
		    written == number) {
			return false;
		}
	}
	return true;
}

/* bt, bts, btr and btc with a register operand may reach beyond the memory
   operand: the register holds a signed bit number. */
static bool
add_bit_offset(const struct ex_query *q, const struct ex_code *c,
    uint64_t *addr)
{
	const unsigned width = c->insn->operand_width;
	unsigned number;
	uint64_t bit;
	int64_t value;

	if (c->insn->meta.category != ZYDIS_CATEGORY_BITBYTE ||
	    c->op[1].type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    !is_memory(&c->op[0]))
		return true;
	if (!ex_query_number(q, c->op[1].reg.value, &number) ||
	    !ex_query_reg(q, number, &bit))
		return false;
	value = width == 16 ? (int16_t)bit : width == 32 ? (int32_t)bit :
	    (int64_t)bit;
	*addr += (uint64_t)((value >> 3) & -(int64_t)(width / 8));
	return true;
}

/* The base of a segment.  All are 0 except two, one of which is that of the
   thread control block.  Returns false if it is not known. */
static bool
segment_base(const struct ex_query *q, ZydisRegister segment, uint64_t *base)
{
	const ZydisRegister own = q->word == 8 ? ZYDIS_REGISTER_FS :
	    ZYDIS_REGISTER_GS;

	*base = segment == own ? q->sample->block : 0;
	return *base != 0 || (segment != ZYDIS_REGISTER_FS &&
	    segment != ZYDIS_REGISTER_GS);
}

/* The address of a memory operand.  Returns false if the sample does not have
   all registers. */
static bool
operand_address(const struct ex_query *q, const struct ex_code *c,
    const ZydisDecodedOperand *op, uint64_t *addr)
{
	const ZydisDecodedOperandMem *m = &op->mem;
	uint64_t value, base;

	*addr = 0;
	if (m->type != ZYDIS_MEMOP_TYPE_MEM || op->size == 0 ||
	    !segment_base(q, m->segment, &base) ||
	    c->insn->address_width < 32 ||
	    c->insn->meta.category == ZYDIS_CATEGORY_AMX_TILE ||
	    c->insn->mnemonic == ZYDIS_MNEMONIC_XLAT)
		return false;
	if (is_stack(c) && is_hidden(op))
		return stack_address(q, c, op, addr);
	if (is_string(c)) {
		if (!string_address(q, op, addr))
			return false;
	} else {
		if (m->base == ZYDIS_REGISTER_RIP ||
		    m->base == ZYDIS_REGISTER_EIP)
			*addr = c->pc + c->insn->length;
		else if (m->base != ZYDIS_REGISTER_NONE &&
		    !register_before(q, c, m->base, addr))
			return false;
		if (m->index != ZYDIS_REGISTER_NONE) {
			if (!register_before(q, c, m->index, &value))
				return false;
			*addr += value * m->scale;
		}
		*addr += (uint64_t)m->disp.value;
		if (!add_bit_offset(q, c, addr))
			return false;
	}
	if (c->insn->address_width == 32)
		*addr = (uint32_t)*addr;
	*addr += base;
	if (q->word == 4)
		*addr = (uint32_t)*addr;
	return true;
}

bool
ex_query_overlaps(const struct ex_query *q, uint64_t addr, uint64_t size)
{
	return addr - q->addr < q->len || q->addr - addr < size;
}

/* Step back from the last element to the one that touched the watch.  If that
   was not the last one, the stop came late, and it is not known which others
   were touched since the previous stop: *addr and *size become 0. */
static bool
rep_overlaps(const struct ex_query *q, uint64_t *addr, uint32_t *size)
{
	const uint32_t element = *size;
	uint64_t flags, at = *addr, step = element;

	if (ex_query_flags(q, &flags) && (flags & EX_FLAG_DF) == 0)
		step = -step;
	for (unsigned gone = 0; gone <= REP_GROUP; gone += element) {
		if (ex_query_overlaps(q, at, element)) {
			if (gone != 0)
				*addr = *size = 0;
			return true;
		}
		at += step;
	}
	return false;
}

/* The operand may touch some of these bytes. */
static enum ex_touch
touches_some(const struct ex_query *q, uint64_t addr, uint32_t size,
    struct ex_finding *f)
{
	if (!ex_query_overlaps(q, addr, size))
		return EX_TOUCH_NO;
	f->size = 0;
	f->within = addr;
	f->within_size = size;
	return EX_TOUCH_MAYBE;
}

/* Whether an operand touches the watch. */
static enum ex_touch
touches(const struct ex_query *q, const struct ex_code *c,
    const ZydisDecodedOperand *op, struct ex_finding *f)
{
	const uint32_t vague = vague_size(c, op);

	if (!is_memory(op) || is_hint(c) || !(op_writes(op) ||
	    (op_reads(op) && q->reads_too)))
		return EX_TOUCH_NO;
	f->size = vague != 0 || ex_code_is_resumed(c) ? 0 :
	    sure_size(q, c, op);
	if (!operand_address(q, c, op, &f->addr))
		return EX_TOUCH_MAYBE;
	if (vague != 0)
		return touches_some(q, f->addr, vague, f);
	if (ex_code_is_rep(c))
		return rep_overlaps(q, &f->addr, &f->size) ? EX_TOUCH_YES :
		    EX_TOUCH_NO;
	if (ex_query_overlaps(q, f->addr, f->size))
		return EX_TOUCH_YES;
	return f->size == op->size / 8 ? EX_TOUCH_NO :
	    touches_some(q, f->addr, op->size / 8, f);
}

/* clzero has no operand: it clears the cache line at the address in rax. */
static struct ex_finding
clzero_touch(const struct ex_query *q, const struct ex_code *c)
{
	struct ex_finding found = { .touch = EX_TOUCH_MAYBE,
	    .size = CLZERO_LINE, .stores = true, .writes = true };
	uint64_t addr;

	if (!ex_query_reg(q, EX_AX, &addr))
		return found;
	if (c->insn->address_width == 32)
		addr = (uint32_t)addr;
	found.addr = addr & -(uint64_t)CLZERO_LINE;
	found.touch = ex_query_overlaps(q, found.addr, CLZERO_LINE) ?
	    EX_TOUCH_YES : EX_TOUCH_NO;
	return found;
}

/* Combine two operands that both touch the watch, or may touch it. */
static struct ex_finding
both(const struct ex_finding *a, const struct ex_finding *b)
{
	struct ex_finding f = a->stores ? *a : *b;
	const struct ex_finding *other = a->stores ? b : a;

	f.other = other->addr;
	f.other_size = other->size;
	f.reads = a->reads || b->reads;
	f.writes = a->writes || b->writes;
	f.stores = a->stores || b->stores;
	/* if the stop came late, one may have touched it without the other */
	if (f.touch == EX_TOUCH_YES && (a->size == 0 || b->size == 0))
		f.touch = EX_TOUCH_MAYBE;
	if (f.touch == EX_TOUCH_MAYBE) {
		f.size = f.other_size = f.within_size = 0;
		if (a->reads != b->reads || a->writes != b->writes)
			f.reads = f.writes = false;	/* not known which */
	}
	return f;
}

struct ex_finding
ex_code_touch(const struct ex_query *q, const struct ex_code *c)
{
	struct ex_finding found = { .touch = EX_TOUCH_NO };

	if (c->insn->mnemonic == ZYDIS_MNEMONIC_CLZERO)
		return clzero_touch(q, c);
	for (unsigned i = 0; i < c->insn->operand_count; i++) {
		const ZydisDecodedOperand *op = &c->op[i];
		struct ex_finding f = { .stores = op_writes(op) };

		f.touch = touches(q, c, op, &f);
		if (f.touch == EX_TOUCH_NO || f.touch < found.touch)
			continue;
		f.reads = op_reads(op);
		f.writes = op_writes(op);
		found = f.touch == found.touch ? both(&found, &f) : f;
	}
	return found;
}
