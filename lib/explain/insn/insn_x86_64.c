/*
 * insn_x86_64: which x86 instruction made an access.
 *
 * Overview: the trap comes after the access, so the sampled pc is where the
 * thread was to go on.  There are few ways to get there, and each names an
 * instruction, a candidate:
 *
 *	before	the instruction that ends at pc went on to pc
 *	rep	the one at pc is a string instruction that is not done yet, or
 *		a gather or scatter
 *	call	the one before the return address at the top of the stack called
 *		pc: it wrote that address, and maybe read its target from memory
 *
 * A jump or a return can also have read its target from the watch; where that
 * instruction was, nothing shows.  But a jump changes no register: whether one
 * of the function's can have done it is known.
 *
 * A candidate's memory operands are computed again from the sampled registers
 * (code.h).  One then touches the watch, or does not, or that is not known.
 * The answer is exact when one candidate touches and all others are ruled out.
 */
#include <asm/perf_regs.h>
#include <string.h>

#include "insn/code.h"
#include "insn/insn.h"
#include "space/space.h"
#include "symbol/symbol.h"
#include "unwind/regs.h"

/* The candidates that have not been ruled out. */
struct candidates {
	struct ex_code code[2];	/* the best so far, and the current one */
	unsigned kept;		/* index of the best: 0 or 1 */
	struct ex_finding best;	/* of the best; EX_TOUCH_NO if there is none */
	unsigned n;	/* their number, including those that cannot be named */
	uint64_t jump;		/* one of those is a jump whose target was in
				   these bytes, which the best candidate
				   wrote; 0 if there is none, or it may have
				   read others */
};

/* Decode the instruction at an address of the process. */
static bool
decode(const struct ex_query *q, uint64_t pc, struct ex_code *c)
{
	struct ex_module *module;
	uint64_t vaddr;

	module = ex_process_module(q->process, pc, &vaddr);
	if (module == NULL)
		return false;
	c->decoded = ex_sweep_at(module, &q->decoder, vaddr);
	if (c->decoded == NULL)
		return false;
	c->pc = pc;
	c->base = pc - vaddr;
	c->certain = true;
	c->last = false;
	c->jumps = NULL;
	c->insn = &c->decoded->insn;
	c->op = c->decoded->op;
	return true;
}

bool
ex_code_before(const struct ex_query *q, uint64_t pc, struct ex_code *c)
{
	struct ex_module *module;
	struct ex_sweep before;
	uint64_t vaddr;

	c->certain = false;
	module = ex_process_module(q->process, pc - 1, &vaddr);
	if (module == NULL)
		return false;
	before = ex_sweep_before(module, &q->decoder, vaddr + 1);
	if (before.len == 0 || !decode(q, pc - before.len, c))
		return false;
	c->certain = before.certain;
	c->last = before.last;
	c->jumps = before.jumps;
	return c->insn->length == before.len;
}

static bool
is_function_start(const struct ex_query *q, uint64_t pc)
{
	struct ex_module *module;
	uint64_t vaddr, start;

	module = ex_process_module(q->process, pc, &vaddr);
	return module != NULL &&
	    ex_symbol_function_start(module, vaddr, &start) && start == vaddr;
}

/* The place for the next candidate. */
static struct ex_code *
next(struct candidates *all)
{
	return &all->code[all->kept ^ 1];
}

static void
add(struct candidates *all, struct ex_finding found)
{
	if (found.touch == EX_TOUCH_NO)
		return;
	all->n++;
	if (found.touch > all->best.touch) {
		all->best = found;
		all->kept ^= 1;
	}
}

/* The remaining repetitions of a rep instruction. */
static bool
rep_left(const struct ex_query *q, const struct ex_code *c, uint64_t *left)
{
	if (!ex_query_reg(q, EX_CX, left))
		return false;
	if (c->insn->address_width == 32)
		*left = (uint32_t)*left;
	return true;
}

/* Whether the instruction that ends at pc can have been completed there. */
static bool
goes_on(const struct ex_query *q, const struct ex_code *c)
{
	uint64_t left;

	switch (c->insn->meta.category) {
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_UNCOND_BR:
		return false;
	default:
		/* movs and similar ones are complete when nothing is left; cmps
		   and scas may end earlier */
		return !ex_code_is_rep(c) ||
		    (c->insn->attributes & ZYDIS_ATTRIB_HAS_REP) == 0 ||
		    !rep_left(q, c, &left) || left == 0;
	}
}

/* Whether a jump read its target from the bytes that the instruction wrote. */
static bool
reads_same(const struct ex_finding *jump, const struct ex_finding *found)
{
	return jump->touch == EX_TOUCH_YES && found->touch == EX_TOUCH_YES &&
	    found->writes && jump->addr == found->addr &&
	    jump->size == sizeof(uint64_t) && found->size == jump->size;
}

/* Whether a jump that read its target from the watch may have led to pc, to
   which the code also continues from another instruction.  It would have
   changed no register.  *from is set to where it read the target if the other
   instruction wrote there, else to 0. */
static bool
may_be_jump(const struct ex_query *q, const struct ex_code *before,
    const struct ex_finding *found, uint64_t *from)
{
	bool may = before->last;	/* from another function to the start
					   of this one */
	struct ex_code c;

	*from = may ? 0 : found->addr;
	for (size_t i = 0; before->jumps != NULL && i < before->jumps->n; i++) {
		struct ex_finding jump;

		if (!decode(q, before->base + before->jumps->vaddr[i], &c))
			continue;
		jump = ex_code_touch(q, &c);
		may |= jump.touch != EX_TOUCH_NO;
		if (jump.touch != EX_TOUCH_NO && !reads_same(&jump, found))
			*from = 0;
	}
	if (!may)
		*from = 0;
	return may;
}

static void
add_before(const struct ex_query *q, struct candidates *all)
{
	struct ex_code *c = next(all);
	struct ex_finding found = { .touch = EX_TOUCH_NO };
	bool known = ex_code_before(q, q->pc, c);
	uint64_t sp;

	if (known && goes_on(q, c))
		found = ex_code_touch(q, c);
	add(all, found);
	if (found.touch != EX_TOUCH_NO) {
		all->n += q->reads_too && may_be_jump(q, c, &found, &all->jump);
		return;
	}
	/* If the code was misread, it may be another instruction.  But the
	   start of a function is not reached from whatever precedes it. */
	if ((!known || !c->certain) && !is_function_start(q, q->pc))
		all->n++;
	/* After a call, a return may have led here, which reads its target. */
	if (known && c->insn->meta.category == ZYDIS_CATEGORY_CALL &&
	    q->reads_too && ex_query_reg(q, EX_SP, &sp) &&
	    ex_query_overlaps(q, sp - q->word, q->word))
		all->n++;
}

static void
add_unfinished(const struct ex_query *q, struct candidates *all)
{
	struct ex_code *c = next(all);
	struct ex_finding found;
	uint64_t left;
	bool known;

	if (!decode(q, q->pc, c))
		return;
	if (ex_code_is_resumed(c)) {
		add(all, ex_code_touch(q, c));
		return;
	}
	if (!ex_code_is_rep(c))
		return;
	known = rep_left(q, c, &left);
	if (known && left == 0)
		return;
	found = ex_code_touch(q, c);
	if (!known && found.touch == EX_TOUCH_YES)
		found.touch = EX_TOUCH_MAYBE;
	add(all, found);
}

/* Whether this call went to pc. */
static enum ex_touch
called(const struct ex_query *q, const struct ex_code *c)
{
	const ZydisDecodedOperand *target = &c->op[0];
	uint64_t value;
	unsigned number;

	if (c->insn->meta.category != ZYDIS_CATEGORY_CALL ||
	    c->insn->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
		return EX_TOUCH_NO;
	switch (target->type) {
	case ZYDIS_OPERAND_TYPE_IMMEDIATE:
		value = c->pc + c->insn->length + target->imm.value.u;
		if (q->word == 4)
			value = (uint32_t)value;
		return value == q->pc ? EX_TOUCH_YES : EX_TOUCH_NO;
	case ZYDIS_OPERAND_TYPE_REGISTER:
		if (!ex_query_number(q, target->reg.value, &number) ||
		    number == EX_SP || !ex_query_reg(q, number, &value))
			return EX_TOUCH_MAYBE;
		return value == q->pc ? EX_TOUCH_YES : EX_TOUCH_NO;
	default:
		/* Memory held the target, and may hold another one now.  Calls
		   go to starts of functions. */
		return is_function_start(q, q->pc) ? EX_TOUCH_YES :
		    EX_TOUCH_MAYBE;
	}
}

/* Whether the code before an address ends in a call.  This check is cheap, and
   keeps data from being swept. */
static bool
is_after_call(const struct ex_query *q, uint64_t pc)
{
	uint8_t bytes[EX_REGS_CODE];
	struct ex_module *module;
	uint64_t vaddr;
	size_t n;

	module = ex_process_module(q->process, pc - sizeof(bytes), &vaddr);
	if (module == NULL)
		return false;
	n = ex_module_bytes(module, vaddr, bytes, sizeof(bytes));
	return n == sizeof(bytes) && ex_regs_after_call(bytes, n);
}

static void
add_call(const struct ex_query *q, struct candidates *all)
{
	struct ex_code *c = next(all);
	struct ex_finding found;
	enum ex_touch touch;
	uint64_t sp, back = 0;
	bool wrote;

	if (!ex_query_reg(q, EX_SP, &sp))
		return;
	wrote = ex_query_overlaps(q, sp, q->word);
	if (!wrote && (!q->reads_too || all->best.touch == EX_TOUCH_YES))
		return;
	if (q->sample->stack == NULL || q->sample->stack_len < q->word) {
		all->n += wrote;
		return;
	}
	memcpy(&back, q->sample->stack, q->word);
	if (!is_after_call(q, back) || !ex_code_before(q, back, c))
		return;
	found = ex_code_touch(q, c);
	touch = called(q, c);
	if (found.touch > touch)
		found.touch = touch;
	add(all, found);
}

/* Format an instruction as Zydis does in AT&T syntax; a text that is too long
   is cut off.  The size of memory that is the only operand, which Zydis leaves
   out, is added ("inc (%rdi)"). */
static void
format(const struct ex_code *c, char *text, size_t size)
{
	const ZydisInstructionCategory category = c->insn->meta.category;
	const struct {
		ZydisFormatterProperty property;
		ZyanUPointer value;
	} set[] = {
		{ ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE },
		{ ZYDIS_FORMATTER_PROP_FORCE_RELATIVE_RIPREL, ZYAN_TRUE },
		{ ZYDIS_FORMATTER_PROP_FORCE_SIZE,
		    c->insn->operand_count_visible == 1 &&
		    (category == ZYDIS_CATEGORY_BINARY ||
		    category == ZYDIS_CATEGORY_LOGICAL) },
		{ ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE,
		    ZYDIS_PADDING_DISABLED },
		{ ZYDIS_FORMATTER_PROP_DISP_PADDING, ZYDIS_PADDING_DISABLED },
		{ ZYDIS_FORMATTER_PROP_IMM_PADDING, ZYDIS_PADDING_DISABLED },
	};
	ZydisFormatter formatter;

	*text = '\0';
	if (ZYAN_FAILED(ZydisFormatterInit(&formatter,
	    ZYDIS_FORMATTER_STYLE_ATT)))
		return;
	for (size_t i = 0; i < sizeof(set) / sizeof(set[0]); i++)
		(void)ZydisFormatterSetProperty(&formatter, set[i].property,
		    set[i].value);
	(void)ZydisFormatterFormatInstruction(&formatter, c->insn, c->op,
	    c->insn->operand_count_visible, text, size, c->pc, NULL);
}

static void
set_insn(const struct ex_code *c, struct ex_insn *out)
{
	struct ex_decoded *decoded = c->decoded;

	out->pc = c->pc;
	out->len = c->insn->length;
	if (decoded->text_pc != c->pc) {
		format(c, decoded->text, sizeof(decoded->text));
		decoded->text_pc = c->pc;
	}
	memcpy(out->text, decoded->text, sizeof(out->text));
}

/* Whether the decoded code is what was executed; programs can change their
   code. */
static bool
is_original(const struct ex_query *q, const struct ex_code *c)
{
	return ex_process_is_original(q->process, c->pc + c->insn->length);
}

static void
answer(const struct ex_query *q, const struct candidates *all,
    struct ex_insn *out)
{
	const struct ex_code *c = &all->code[all->kept];
	const struct ex_finding *best = &all->best;

	if (best->touch == EX_TOUCH_NO || !is_original(q, c))
		return;
	set_insn(c, out);
	out->reads = best->reads;
	out->writes = best->writes;
	out->size = best->size;
	if (all->n > 1 || !c->certain) {
		out->confidence = EX_AMBIGUOUS;
		if (all->n == 2 && c->certain && all->jump != 0) {
			out->jump = all->jump;
			ex_code_effect(q, c, best, &out->effect);
		}
	} else if (best->touch == EX_TOUCH_MAYBE) {
		out->confidence = EX_ADDRESS_UNVERIFIED;
		out->within = best->within;
		out->within_size = best->within_size;
	} else {
		out->confidence = EX_EXACT;
		out->addr = best->addr;
		out->other = best->other;
		out->other_size = best->other_size;
		ex_code_effect(q, c, best, &out->effect);
	}
}

static bool
query_init(struct ex_query *q, const struct ex_sample *sample)
{
	const bool narrow = sample->user.abi == PERF_SAMPLE_REGS_ABI_32;

	q->sample = sample;
	q->word = narrow ? 4 : 8;
	if (!ex_regs_get(&sample->user, PERF_REG_X86_IP, &q->pc))
		q->pc = sample->ip;
	return ex_sweep_decoder(narrow, &q->decoder);
}

void
ex_insn_explain(struct ex_process *process, const struct ex_sample *sample,
    uint64_t addr, uint32_t len, enum wp_access access,
    struct ex_insn *out)
{
	struct ex_query q = { .process = process, .addr = addr, .len = len,
	    .reads_too = access != WP_WRITE };
	struct candidates all = { .n = 0 };

	memset(out, 0, sizeof(*out));
	if (!query_init(&q, sample))
		return;
	if (access == WP_EXEC) {
		out->confidence = EX_EXACT;
		out->pc = q.pc;
		if (decode(&q, q.pc, &all.code[0]))
			set_insn(&all.code[0], out);
		return;
	}
	add_before(&q, &all);
	add_unfinished(&q, &all);
	add_call(&q, &all);
	answer(&q, &all, out);
}
