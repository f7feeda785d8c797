/* syscall_number_x86_64: the number that the instruction before a system call
   sets. */
#include "syscall/syscall_number.h"

#include <Zydis/Zydis.h>
#include <limits.h>
#include <string.h>

#include "insn/sweep.h"
#include "insn/tail_call.h"
#include "module/module_private.h"
#include "space/space.h"
#include "symbol/symbol.h"
#include "unwind/cfi.h"

enum {
	CALL_LEN = 2,		/* of syscall */
	MOV_LEN = 5,		/* of mov $number,%eax */
	XOR_LEN = 2,		/* of xor %eax,%eax */
	FUNCTION_MAX = 8192,	/* bytes: no others are looked through */
	BACK_MAX = 16,		/* instructions gone back over */
};

/* Where a jump leads to; 0: it is none, or its target is not in the code. */
static uint64_t
target_of(const ZydisDecodedInstruction *insn, uint64_t vaddr)
{
	if ((insn->meta.category != ZYDIS_CATEGORY_COND_BR &&
	    insn->meta.category != ZYDIS_CATEGORY_UNCOND_BR) ||
	    !insn->raw.imm[0].is_relative)
		return 0;
	return vaddr + insn->length + (uint64_t)insn->raw.imm[0].value.s;
}

/* Whether the only way to a call leads through the instruction before: that is
   one of its function's, and none of its function's jumps leads to the call. */
static bool
is_only_way(const uint8_t *code, size_t len, uint64_t start, uint64_t before,
    uint64_t call, const ZydisDecoder *decoder)
{
	ZydisDecodedInstruction insn;
	bool met = false;

	for (size_t at = 0; at < len; at += insn.length) {
		if (ZYAN_FAILED(ZydisDecoderDecodeInstruction(decoder, NULL,
		    code + at, len - at, &insn)) ||
		    target_of(&insn, start + at) == call)
			return false;
		met = met || start + at == before;
	}
	return met;
}

/* What the instruction before a call, which ends at end, sets the number to; 0:
   nothing, else its length. */
static size_t
number_before(const uint8_t *end, size_t avail, int *number)
{
	uint32_t value = 0;
	size_t len = 0;

	if (avail >= MOV_LEN && end[-MOV_LEN] == 0xb8) {
		memcpy(&value, end - sizeof(value), sizeof(value));
		len = MOV_LEN;
	} else if (avail >= XOR_LEN && end[-2] == 0x31 && end[-1] == 0xc0) {
		len = XOR_LEN;
	}
	*number = (int)(value & INT_MAX);
	return value <= INT_MAX ? len : 0;
}

/* A call: where its instruction is and what esp is there. */
struct made_call {
	struct ex_module *module;
	uint64_t vaddr;		/* of the instruction */
	uint32_t sp;
};

static bool
stack_get(const struct ex_sample *s, const struct ex_regs *regs, uint64_t addr,
    void *to, size_t size)
{
	const uint64_t offset = addr - regs->value[EX_REG_SP];

	if (s->stack == NULL || offset > s->stack_len ||
	    s->stack_len - offset < size)
		return false;
	memcpy(to, s->stack + offset, size);
	return true;
}

static bool
stack_word(const struct ex_sample *s, const struct ex_regs *regs, uint32_t addr,
    uint32_t *value)
{
	return stack_get(s, regs, addr, value, sizeof(*value));
}

/* From the vDSO's code, which makes it, to what called that: call *%gs:0x10. */
static bool
leave_vdso(struct ex_process *process, const struct ex_sample *s,
    const struct ex_regs *regs, struct made_call *call)
{
	static const uint8_t usual[] = { 0x65, 0xff, 0x15, 0x10, 0, 0, 0 };
	const struct ex_cfi_row *row = ex_cfi_row(call->module, call->vaddr,
	    true);
	uint8_t code[sizeof(usual)];
	uint32_t back;

	if (row == NULL || row->signal || row->cfa.how != EX_CFI_VALUE ||
	    row->cfa.base != EX_REG_SP)
		return false;
	call->sp = (uint32_t)(regs->value[EX_REG_SP] +
	    (uint64_t)row->cfa.offset);
	if (!stack_word(s, regs, call->sp - (uint32_t)sizeof(back), &back) ||
	    (call->module = ex_process_module(process, back - sizeof(usual),
	    &call->vaddr)) == NULL)
		return false;
	return ex_module_bytes(call->module, call->vaddr, code, sizeof(code)) ==
	    sizeof(code) && memcmp(code, usual, sizeof(code)) == 0;
}

static bool
find_call(struct ex_process *process, const struct ex_sample *s,
    const struct ex_regs *regs, struct made_call *call)
{
	static const uint8_t usual[CALL_LEN] = { 0x0f, 0x05 };
	static const uint8_t narrow[CALL_LEN] = { 0xcd, 0x80 };
	uint8_t code[CALL_LEN];

	call->module = ex_process_module(process, regs->value[EX_REG_PC],
	    &call->vaddr);
	if (call->module == NULL)
		return false;
	if (regs->narrow &&
	    strcmp(ex_module_name(call->module), "[vdso]") == 0)
		return leave_vdso(process, s, regs, call);
	call->vaddr -= sizeof(code);
	call->sp = (uint32_t)regs->value[EX_REG_SP];
	return ex_module_bytes(call->module, call->vaddr, code,
	    sizeof(code)) == sizeof(code) &&
	    memcmp(code, regs->narrow ? narrow : usual, sizeof(code)) == 0;
}

/* The function that makes a call, of the system or of a function, and its
   code. */
struct calling_code {
	struct made_call call;
	struct ex_regs regs;	/* of the system call */
	struct ex_function f;
	ZydisDecoder decoder;
	size_t len;
	uint8_t code[FUNCTION_MAX];
};

static bool
read_code(struct calling_code *c)
{
	if (!ex_symbol_function(c->call.module, c->call.vaddr, &c->f) ||
	    c->f.end <= c->call.vaddr ||
	    c->f.end - c->f.start > sizeof(c->code) ||
	    !ex_sweep_decoder(c->regs.narrow, &c->decoder))
		return false;
	c->len = c->f.end - c->f.start;
	return ex_module_bytes(c->call.module, c->f.start, c->code, c->len) ==
	    c->len;
}

static bool
find_caller(struct ex_process *process, const struct ex_sample *sample,
    struct calling_code *c)
{
	return ex_regs_read(&sample->user, &c->regs) &&
	    ex_regs_known(&c->regs, EX_REG_PC) &&
	    (!c->regs.narrow || ex_regs_known(&c->regs, EX_REG_SP)) &&
	    find_call(process, sample, &c->regs, &c->call) && read_code(c);
}

/* --- registers of a call --- */

/* A function's instructions up to a call; the last of them. */
struct lead {
	uint64_t at[BACK_MAX];	/* the n-th is at [n % BACK_MAX] */
	size_t n;
};

/* Read a function.  False: the call is none of its instructions, or its jumps
   may lead anywhere.  *latest: the last place at or before the call that a jump
   leads to. */
static bool
read_function(const struct ex_function *f, const uint8_t *code,
    const ZydisDecoder *decoder, uint64_t call, struct lead *lead,
    uint64_t *latest)
{
	ZydisDecodedInstruction insn;
	bool met = false;

	*latest = f->start;
	for (uint64_t at = f->start; at < f->end; at += insn.length) {
		uint64_t target;

		if (ZYAN_FAILED(ZydisDecoderDecodeInstruction(decoder, NULL,
		    code + (at - f->start), f->end - at, &insn)))
			return false;
		if (insn.meta.category == ZYDIS_CATEGORY_UNCOND_BR &&
		    !insn.raw.imm[0].is_relative)
			return false;
		target = target_of(&insn, at);
		if (target <= call && target > *latest)
			*latest = target;
		if (at < call)
			lead->at[lead->n++ % BACK_MAX] = at;
		met |= at == call;
	}
	return met;
}

static bool
is_esp(ZydisRegister reg)
{
	return reg == ZYDIS_REGISTER_ESP || reg == ZYDIS_REGISTER_SP;
}

/* How a register was set: mov $number,%reg, or xor %reg,%reg, or, in 32-bit
   code, mov disp(%esp),%reg. */
struct setting {
	bool constant;
	uint32_t value;		/* constant */
	int64_t disp;		/* else */
};

/* Whether an instruction goes on to the next, and leaves the word of the stack
   that a setting is from where it is: it writes neither that nor esp. */
static bool
leaves(const struct ex_decoded *c, const struct setting *set)
{
	switch (c->insn.meta.category) {
	case ZYDIS_CATEGORY_BINARY:
	case ZYDIS_CATEGORY_DATAXFER:
	case ZYDIS_CATEGORY_LOGICAL:
	case ZYDIS_CATEGORY_MISC:
	case ZYDIS_CATEGORY_NOP:
	case ZYDIS_CATEGORY_PUSH:
	case ZYDIS_CATEGORY_WIDENOP:
		break;
	default:
		return false;
	}
	for (unsigned i = 0; i < c->insn.operand_count && !set->constant; i++) {
		const ZydisDecodedOperand *op = &c->op[i];

		if ((op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) == 0)
			continue;
		if (op->type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    is_esp(op->reg.value))
			return false;
		if (op->type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    (!is_esp(op->mem.base) ||
		    op->mem.index != ZYDIS_REGISTER_NONE ||
		    (op->mem.disp.value < set->disp + 4 &&
		    set->disp < op->mem.disp.value + op->size / 8)))
			return false;
	}
	return true;
}

/* Whether an operand is a register, or a part of it. */
static bool
is_part(const struct ex_decoded *c, unsigned i, ZydisRegister reg)
{
	return c->op[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	    ZydisRegisterGetLargestEnclosing(c->insn.machine_mode,
	    c->op[i].reg.value) == reg;
}

static bool
writes(const struct ex_decoded *c, ZydisRegister reg)
{
	for (unsigned i = 0; i < c->insn.operand_count; i++)
		if ((c->op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0 &&
		    is_part(c, i, reg))
			return true;
	return false;
}

static bool
take_setting(const struct ex_decoded *c, ZydisRegister reg, struct setting *set)
{
	const ZydisDecodedOperand *from = &c->op[1];

	if (!is_part(c, 0, reg) || c->op[0].size < 32)
		return false;
	if (c->insn.mnemonic == ZYDIS_MNEMONIC_XOR &&
	    from->type == ZYDIS_OPERAND_TYPE_REGISTER &&
	    from->reg.value == c->op[0].reg.value) {
		*set = (struct setting){.constant = true};
		return true;
	}
	if (c->insn.mnemonic != ZYDIS_MNEMONIC_MOV)
		return false;
	set->constant = from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
	set->value = (uint32_t)from->imm.value.u;
	set->disp = from->mem.disp.value;
	return set->constant || (from->type == ZYDIS_OPERAND_TYPE_MEMORY &&
	    from->mem.base == ZYDIS_REGISTER_ESP &&
	    from->mem.index == ZYDIS_REGISTER_NONE);
}

/* Go back from the call to what sets the register; what lies between leaves it,
   and the word that it was taken from. */
static bool
go_back(const struct calling_code *c, const struct lead *lead, uint64_t latest,
    ZydisRegister reg, struct setting *set)
{
	const struct ex_decoded *code[BACK_MAX];
	size_t n = 0;

	while (n < BACK_MAX && n < lead->n) {
		const uint64_t at = lead->at[(lead->n - 1 - n) % BACK_MAX];

		code[n] = ex_sweep_at(c->call.module, &c->decoder, at);
		/* from elsewhere, one may come in behind it */
		if (code[n] == NULL || at + code[n]->insn.length <= latest)
			return false;
		if (!writes(code[n], reg)) {
			n++;
			continue;
		}
		if (!take_setting(code[n], reg, set))
			return false;
		while (n-- > 0)
			if (!leaves(code[n], set))
				return false;
		return true;
	}
	return false;
}

static bool
find_setting(const struct calling_code *c, ZydisRegister reg,
    struct setting *set)
{
	struct lead lead = { .n = 0 };
	uint64_t latest;

	return c->f.sized && read_function(&c->f, c->code, &c->decoder,
	    c->call.vaddr, &lead, &latest) &&
	    go_back(c, &lead, latest, reg, set);
}

/* --- a number that is passed on --- */

/* Whether a function makes a system call with its first argument as the number,
   as syscall(3) does: it begins with mov %rdi,%rax, and what follows up to the
   call neither jumps nor changes rax. */
static bool
passes_on(const struct calling_code *c)
{
	struct lead lead = { .n = 0 };
	uint64_t latest;
	size_t i = 0;
	const struct ex_decoded *code = NULL;

	if (!c->f.sized || !read_function(&c->f, c->code, &c->decoder,
	    c->call.vaddr, &lead, &latest) || latest > c->f.start ||
	    lead.n == 0 || lead.n > BACK_MAX)
		return false;
	for (; i < lead.n; i++) {
		code = ex_sweep_at(c->call.module, &c->decoder, lead.at[i]);
		if (code == NULL ||
		    code->insn.mnemonic != ZYDIS_MNEMONIC_ENDBR64)
			break;
	}
	if (i == lead.n || code == NULL ||
	    code->insn.mnemonic != ZYDIS_MNEMONIC_MOV ||
	    code->op[0].reg.value != ZYDIS_REGISTER_RAX ||
	    code->op[1].reg.value != ZYDIS_REGISTER_RDI)
		return false;
	while (++i < lead.n) {
		code = ex_sweep_at(c->call.module, &c->decoder, lead.at[i]);
		if (code == NULL || writes(code, ZYDIS_REGISTER_RAX) ||
		    code->insn.meta.category != ZYDIS_CATEGORY_DATAXFER)
			return false;
	}
	return true;
}

/* The code that called the function that made a system call. */
static bool
find_outer(struct ex_process *process, const struct ex_sample *s,
    const struct calling_code *c, struct calling_code *outer)
{
	const uint64_t pc = c->regs.value[EX_REG_PC];
	const struct ex_cfi_row *row = ex_cfi_row(c->call.module,
	    c->call.vaddr, true);
	uint64_t back, call;

	if (row == NULL || row->signal || row->cfa.how != EX_CFI_VALUE ||
	    row->cfa.base != EX_REG_SP || !ex_regs_known(&c->regs, EX_REG_SP) ||
	    !stack_get(s, &c->regs, c->regs.value[EX_REG_SP] +
	    (uint64_t)row->cfa.offset - sizeof(back), &back, sizeof(back)) ||
	    !ex_tail_calls(process, back, pc - CALL_LEN - (c->call.vaddr -
	    c->f.start), &call))
		return false;
	outer->regs = c->regs;
	outer->call.module = ex_process_module(process, call,
	    &outer->call.vaddr);
	return outer->call.module != NULL && read_code(outer);
}

static int
number_passed(struct ex_process *process, const struct ex_sample *sample,
    const struct calling_code *c)
{
	struct calling_code outer;
	struct setting set;

	return passes_on(c) && find_outer(process, sample, c, &outer) &&
	    find_setting(&outer, ZYDIS_REGISTER_RDI, &set) && set.constant &&
	    set.value <= INT_MAX ? (int)set.value : -1;
}

int
ex_syscall_number(struct ex_process *process, const struct ex_sample *sample)
{
	struct calling_code c;
	struct setting set;
	size_t before, at;
	int number;

	if (!find_caller(process, sample, &c))
		return -1;
	if (c.regs.narrow)
		return find_setting(&c, ZYDIS_REGISTER_EAX, &set) &&
		    set.constant && set.value <= INT_MAX ? (int)set.value : -1;
	at = c.call.vaddr - c.f.start;
	before = number_before(c.code + at, at, &number);
	if (before == 0)
		return number_passed(process, sample, &c);
	return is_only_way(c.code, c.len, c.f.start, c.call.vaddr - before,
	    c.call.vaddr, &c.decoder) ? number : -1;
}

bool
ex_syscall_first(struct ex_process *process, const struct ex_sample *sample,
    uint32_t *value)
{
	struct calling_code c;
	struct setting set;

	if (!find_caller(process, sample, &c) || !c.regs.narrow ||
	    !find_setting(&c, ZYDIS_REGISTER_EBX, &set))
		return false;
	*value = set.value;
	return set.constant || stack_word(sample, &c.regs,
	    c.call.sp + (uint32_t)set.disp, value);
}
