/*
 * unwind: the callers of a sampled pc, by call frame information.
 *
 * Overview: a frame is its registers.  The row for its pc (cfi.h) says how the
 * caller's are found: the CFA, which is the caller's sp, the return address,
 * and the registers that the function saved, in the sample's copy of the stack:
 *
 *	   copy + len  +---------------+
 *		       |      ...      |
 *	          CFA  +---------------+  caller's sp
 *		       |   caller's pc |
 *		       |   saved rbp   |
 *		       |      ...      |
 *		   sp  +---------------+  copy: the sampled sp
 *
 * Where there is no row (code made at run time, assembly) frame pointers are
 * followed, but only as long as they can be seen to lead to a return address.
 *
 * A value of the sample is a read (reads.h) once something depends on it: what
 * address is looked at next, or which caller is found.  The rules of rows that
 * are no expressions add constants to addresses, and compare addresses only
 * with each other, so where the stack is makes no difference to them.  What a
 * frame saved of its caller's registers is carried along with its place until
 * then.
 *
 * Every frame lies above the one before, so a stack that makes no sense cannot
 * make a loop.  Only what a signal interrupted may be on another stack.
 */
#include "unwind/unwind.h"

#include <errno.h>
#include <string.h>

#include "module/module_private.h"
#include "space/space.h"
#include "symbol/symbol.h"
#include "unwind/cfi.h"
#include "unwind/expr.h"

#define CHAIN_MAX 64		/* frame pointers followed in search of a
				   return address that is in a module */
#define ENTRY_MAX 128		/* bytes of code at the entry of a program */
#define PC_MIN 4096	/* no code is below: the page of a null pointer */

struct frame_walk {
	struct ex_process *process;
	struct ex_regs regs;	/* of the current frame */
	uint64_t cut;		/* registers that are not known because they
				   were saved beyond the end of the copy */
	bool exact;		/* the pc in regs is not a return address */
	bool switched;		/* a signal frame was passed, so regs may
				   belong to another stack than the copy */
	const uint8_t *copy;	/* of the stack from start on */
	uint64_t start, len;	/* address and length of the copy */
	bool whole;		/* the copy reaches the end of the stack */
	struct ex_reads *reads;	/* NULL if not wanted */
};

/* The registers of the caller according to a row; bit n stands for register
   n. */
struct caller_regs {
	uint64_t value[EX_NREGS];	/* of the registers in set */
	uint32_t place[EX_NREGS];	/* of the same, as in struct ex_regs */
	uint64_t set;		/* those with a new value */
	uint64_t lost;		/* those no longer known */
	uint64_t cut;		/* the part of lost that is cut as in struct
				   frame_walk */
};

const char *
ex_end_text(enum ex_end end)
{
	switch (end) {
	case EX_END_OUTERMOST:
		return NULL;
	case EX_END_STACK:
		return "stack truncated: the callers are beyond the part of "
		    "the stack that was copied";
	case EX_END_NO_CFI:
		return "stack truncated: no unwind information for the last "
		    "function";
	case EX_END_NO_MODULE:
		return "stack truncated: the last address is in no known "
		    "module";
	case EX_END_BAD:
		return "stack truncated: the stack or its unwind information "
		    "makes no sense from here";
	case EX_END_DEPTH:
		return "stack truncated: more frames than are shown";
	case EX_END_NO_REGS:
		break;
	}
	return "stack uncertain: no registers were sampled to unwind from";
}

/* Note that the result depends on the content of this place; kind:
   EX_READ_ADDRESS, or 0. */
static void
add_read(const struct frame_walk *w, uint32_t place, uint32_t kind)
{
	struct ex_reads *reads = w->reads;

	if (reads == NULL || place == EX_READ_NONE)
		return;
	if (reads->n < EX_READS_MAX)
		reads->place[reads->n] = place | kind;
	reads->n++;
}

/* Note that the result is another where the stack is elsewhere. */
static void
use_sp(const struct frame_walk *w)
{
	if (w->reads != NULL)
		w->reads->by_sp = true;
}

/* Note that the result depends on a register, of this kind. */
static void
use_reg(struct frame_walk *w, unsigned reg, uint32_t kind)
{
	if (!ex_regs_known(&w->regs, reg))
		return;
	add_read(w, w->regs.place[reg], kind);
	w->regs.place[reg] = EX_READ_NONE;
}

/* Note that the result depends on each of these registers, in any way. */
static void
use_regs(struct frame_walk *w, uint64_t set)
{
	use_sp(w);
	for (; set != 0; set &= set - 1)
		use_reg(w, (unsigned)__builtin_ctzll(set), 0);
}

/* The place of the word at this offset in the copy. */
static uint32_t
stack_place(const struct frame_walk *w, uint64_t offset)
{
	return (uint32_t)offset | (w->regs.narrow ? EX_READ_NARROW : 0);
}

/* Note that the result depends on these bytes of the copied stack, of this
   kind. */
static void
use_stack(const struct frame_walk *w, uint64_t addr, size_t len, uint32_t kind)
{
	const uint64_t word = ex_regs_word(&w->regs);
	const uint64_t end = addr - w->start + len;

	if (w->reads != NULL && w->len < word)	/* too small for any word */
		w->reads->n = EX_READS_MAX + 1;
	for (uint64_t at = addr - w->start; at < end && w->len >= word;
	    at += word)
		add_read(w, stack_place(w, at < w->len - word ? at :
		    w->len - word), kind);
}

/* Read from the copy of the stack. */
static bool
read_stack(const struct frame_walk *w, uint64_t addr, void *to, size_t len)
{
	if (addr < w->start || len > w->len || addr - w->start > w->len - len)
		return false;
	memcpy(to, w->copy + (addr - w->start), len);
	return true;
}

/* Read n words from the copy of the stack. */
static bool
read_words(const struct frame_walk *w, uint64_t addr, uint64_t *to, size_t n)
{
	const size_t word = ex_regs_word(&w->regs);

	for (size_t i = 0; i < n; i++) {
		to[i] = 0;
		if (!read_stack(w, addr + i * word, &to[i], word))
			return false;
	}
	return true;
}

/* Cut a value to the size of an address. */
static uint64_t
as_address(const struct frame_walk *w, uint64_t value)
{
	return w->regs.narrow ? (uint32_t)value : value;
}

/* Read from the copy of the stack, or from a read-only segment of a module. */
static bool
read_memory(void *arg, uint64_t addr, void *to, size_t len)
{
	const struct frame_walk *w = arg;
	const struct ex_segment *segment;
	struct ex_module *module;
	uint64_t vaddr;

	if (read_stack(w, addr, to, len)) {
		use_stack(w, addr, len, 0);
		return true;
	}
	module = ex_process_module(w->process, addr, &vaddr);
	if (module == NULL)
		return false;
	segment = ex_module_segment(module, vaddr);
	return segment != NULL && (segment->flags & PF_W) == 0 &&
	    ex_module_bytes(module, vaddr, to, len) == len;
}

/* Why memory or a register that a frame needs is missing. */
static enum ex_end
missing(const struct frame_walk *w)
{
	return w->whole && !w->switched ? EX_END_BAD : EX_END_STACK;
}

static int
rule_base(struct frame_walk *w, const struct ex_cfi_rule *rule,
    const uint64_t *cfa, uint64_t *base)
{
	if (rule->base == EX_CFI_CFA) {
		if (cfa == NULL)
			return -EINVAL;
		*base = *cfa;
		return 0;
	}
	if (!ex_regs_known(&w->regs, rule->base))
		return (w->cut >> rule->base & 1) != 0 ? -EFAULT : -ENODATA;
	if (rule->base == EX_REG_PC)	/* an address, but not in the stack */
		use_sp(w);
	use_reg(w, rule->base, EX_READ_ADDRESS);
	*base = w->regs.value[rule->base];
	return 0;
}

static int
rule_expression(struct frame_walk *w, const struct ex_cfi_rule *rule,
    const uint64_t *cfa, uint64_t base, uint64_t *value)
{
	uint64_t used = 0;
	const struct ex_expr_env env = {
		.regs = &w->regs, .cfa = cfa, .base = base,
		.read = read_memory, .arg = w, .used = &used,
	};
	const int err = ex_expr_eval(rule->expr->op, rule->expr->n, &env,
	    value);

	use_regs(w, used);	/* and perhaps on the CFA */
	return err;
}

/* Evaluate a rule other than SAME and UNDEFINED.  cfa is NULL for the rule of
   the CFA itself; base is the module's.  Returns 0 or an error of ex_expr_eval;
   if a rule AT fails with -EFAULT, *value is the address it should be read
   from.  *place is set to where in the stack the value was read. */
static int
rule_value(struct frame_walk *w, const struct ex_cfi_rule *rule,
    const uint64_t *cfa, uint64_t base, uint64_t *value, uint32_t *place)
{
	uint64_t at;
	int err;

	*place = EX_READ_NONE;
	switch (rule->how) {
	case EX_CFI_VALUE:
	case EX_CFI_AT:
		err = rule_base(w, rule, cfa, value);
		*value = as_address(w, *value + (uint64_t)rule->offset);
		break;
	case EX_CFI_EXPR_VALUE:
	case EX_CFI_EXPR_AT:
		err = rule_expression(w, rule, cfa, base, value);
		break;
	default:
		return -EINVAL;
	}
	if (err != 0 || rule->how == EX_CFI_VALUE ||
	    rule->how == EX_CFI_EXPR_VALUE)
		return err;
	at = *value;
	if (!read_words(w, at, value, 1)) {
		*value = at;
		return -EFAULT;
	}
	*place = stack_place(w, at - w->start);
	return 0;
}

/* The same, for a value of this kind that the result depends on. */
static int
use_value(struct frame_walk *w, const struct ex_cfi_rule *rule,
    const uint64_t *cfa, uint64_t base, uint64_t *value, uint32_t kind)
{
	uint32_t place;
	const int err = rule_value(w, rule, cfa, base, value, &place);

	if (kind != EX_READ_ADDRESS && place == EX_READ_NONE)
		use_sp(w);	/* it was computed from an address */
	add_read(w, place, kind);
	return err;
}

/*
 * Whether a register has its caller's value again because the epilogue has
 * popped it, which rows do not say.  The popped word is below sp, where the
 * copy begins, so it could not be read.
 */
static bool
is_popped(const struct frame_walk *w, const struct ex_cfi_rule *rule,
    uint64_t place)
{
	return w->exact && rule->how == EX_CFI_AT &&
	    place < w->regs.value[EX_REG_SP];
}

/* Find the caller's registers except its pc. */
static void
find_caller(struct frame_walk *w, const struct ex_cfi_row *row, uint64_t cfa,
    uint64_t base, struct caller_regs *caller)
{
	unsigned i;

	caller->value[EX_REG_SP] = cfa;
	caller->place[EX_REG_SP] = EX_READ_NONE;
	caller->set = UINT64_C(1) << EX_REG_SP;
	caller->lost = caller->cut = 0;
	for (i = 0; i < row->n; i++) {
		const struct ex_cfi_rule *rule = &row->rule[i];
		const uint64_t bit = UINT64_C(1) << rule->reg;
		uint64_t value = 0;
		uint32_t place;
		int err = rule_value(w, rule, &cfa, base, &value, &place);

		if (err == -EFAULT && is_popped(w, rule, value))
			continue;
		caller->value[rule->reg] = value;
		caller->place[rule->reg] = place;
		if (err == 0) {
			caller->set |= bit;
			continue;
		}
		caller->set &= ~bit;
		caller->lost |= bit;
		if (err == -EFAULT)
			caller->cut |= bit;
	}
	add_read(w, caller->place[EX_REG_SP], EX_READ_ADDRESS);
	caller->place[EX_REG_SP] = EX_READ_NONE;
}

/* Make the caller the current frame. */
static void
enter_caller(struct frame_walk *w, const struct caller_regs *caller)
{
	uint64_t set = caller->set;

	w->regs.known = (w->regs.known | set) & ~caller->lost;
	w->cut = (w->cut & ~set & ~caller->lost) | caller->cut;
	for (; set != 0; set &= set - 1) {
		const int reg = __builtin_ctzll(set);

		w->regs.value[reg] = caller->value[reg];
		w->regs.place[reg] = caller->place[reg];
	}
}

/* Whether the caller's frame is at a possible place relative to this one. */
static bool
is_progress(const struct frame_walk *w, const struct ex_cfi_row *row,
    const struct caller_regs *caller)
{
	const uint64_t sp = w->regs.value[EX_REG_SP];
	const uint64_t next = caller->value[EX_REG_SP];

	if ((caller->set >> EX_REG_SP & 1) == 0)
		return true;
	if (next >= EX_USER_END)
		return false;
	if (row->signal)  /* on another stack, or further up on the same */
		return next > sp || next < w->start;
	/* a leaf function that keeps its return address in a register may have
	   the same sp as its caller */
	return next > sp || (next == sp && w->exact);
}

static void
set_reg(struct ex_regs *regs, unsigned reg, uint64_t value)
{
	regs->value[reg] = value;
	regs->known |= UINT64_C(1) << reg;
	regs->place[reg] = EX_READ_NONE;
}

/* Continue with the caller, which has this pc.  Returns false if that cannot be
   a caller. */
static bool
go_on(struct frame_walk *w, uint64_t pc, bool exact, enum ex_end *end)
{
	if (pc < PC_MIN || pc >= EX_USER_END) {
		*end = pc == 0 ? EX_END_OUTERMOST : EX_END_BAD;
		return false;
	}
	set_reg(&w->regs, EX_REG_PC, pc);
	w->exact = exact;
	return true;
}

/* Step to the caller of a frame that has a row. */
static bool
step_row(struct frame_walk *w, const struct ex_cfi_row *row, uint64_t base,
    enum ex_end *end)
{
	struct caller_regs caller;
	uint64_t cfa = 0, pc = 0;
	int err;

	if (row->pc.how == EX_CFI_UNDEFINED) {
		*end = EX_END_OUTERMOST;
		return false;
	}
	err = use_value(w, &row->cfa, NULL, base, &cfa, EX_READ_ADDRESS);
	if (err == 0) {
		find_caller(w, row, cfa, base, &caller);
		if (!is_progress(w, row, &caller))
			err = -EINVAL;
		else
			err = use_value(w, &row->pc, &cfa, base, &pc, 0);
		pc = ex_regs_unsigned(pc);
	}
	if (err != 0) {
		*end = err == -EFAULT ? missing(w) : EX_END_BAD;
		return false;
	}
	enter_caller(w, &caller);
	w->switched |= row->signal;
	return go_on(w, pc, row->signal, end);
}

/* Whether pc can be a return address.  *known is set if it is in a module. */
static bool
is_return_address(struct frame_walk *w, uint64_t pc, bool *known)
{
	uint8_t code[EX_REGS_CODE];
	const struct ex_segment *segment;
	struct ex_module *module;
	uint64_t vaddr;

	*known = false;
	if (pc < PC_MIN || pc >= EX_USER_END)
		return false;
	module = ex_process_module(w->process, pc - 1, &vaddr);
	if (module == NULL)
		return true;
	*known = true;
	segment = ex_module_segment(module, vaddr);
	vaddr++;
	return segment != NULL && (segment->flags & PF_X) != 0 &&
	    vaddr - segment->vaddr >= sizeof(code) &&
	    ex_module_bytes(module, vaddr - sizeof(code), code,
	    sizeof(code)) == sizeof(code) &&
	    ex_regs_after_call(code, sizeof(code));
}

/* Whether the chain of frame pointers starting at fp leads to a return address
   in a module, and on the way only through code that may have been generated at
   run time. */
static bool
is_frame_chain(struct frame_walk *w, uint64_t fp)
{
	const size_t word = ex_regs_word(&w->regs);
	uint64_t low = w->regs.value[EX_REG_SP], frame[2];
	bool known;
	unsigned i;

	for (i = 0; i < CHAIN_MAX; i++) {
		if (fp < low || fp % word != 0 ||
		    !read_words(w, fp, frame, 2))
			return false;
		use_stack(w, fp, word, EX_READ_ADDRESS);
		use_stack(w, fp + word, word, 0);
		if (!is_return_address(w, ex_regs_unsigned(frame[1]), &known))
			return false;
		if (known)
			return true;
		low = fp + 2 * word;
		fp = frame[0];
	}
	return false;
}

/* Step to the caller of a frame without a row, provided that there seems to be
   a frame pointer. */
static bool
step_frame_pointer(struct frame_walk *w, enum ex_end *end)
{
	uint64_t fp = w->regs.value[EX_REG_FP], frame[2];

	use_reg(w, EX_REG_FP, EX_READ_ADDRESS);
	if (!ex_regs_known(&w->regs, EX_REG_FP) || !is_frame_chain(w, fp) ||
	    !read_words(w, fp, frame, 2))
		return false;
	w->regs.known = 0;
	w->cut = 0;
	set_reg(&w->regs, EX_REG_FP, frame[0]);
	set_reg(&w->regs, EX_REG_SP, fp + 2 * ex_regs_word(&w->regs));
	return go_on(w, ex_regs_unsigned(frame[1]), false, end);
}

/* Compilers omit frame pointers in 32-bit code.  ebp then belongs to one of the
   callers, and the frames up to that one would be left out.  So the function
   must be seen to set it; those of the vDSO do. */
static bool
may_have_frame(const struct frame_walk *w, struct ex_module *module,
    uint64_t vaddr)
{
	static const uint8_t set[] = { 0x55, 0x89, 0xe5 };
	static const uint8_t mark[] = { 0xf3, 0x0f, 0x1e, 0xfb };
	uint8_t code[sizeof(mark) + sizeof(set)];
	uint64_t start, skip;

	if (!w->regs.narrow || module == NULL ||
	    strcmp(ex_module_name(module), "[vdso]") == 0)
		return true;
	if (!ex_symbol_function_start(module, vaddr, &start) ||
	    ex_module_bytes(module, start, code, sizeof(code)) != sizeof(code))
		return false;
	skip = memcmp(code, mark, sizeof(mark)) == 0 ? sizeof(mark) : 0;
	return memcmp(code + skip, set, sizeof(set)) == 0 &&
	    vaddr >= start + skip + sizeof(set);
}

/* The code of clone(2) has no row after the system call, because a child
   continues there without callers.  The thread here is the parent, whose call
   has not returned yet, so the row of the code before the call applies. */
static const struct ex_cfi_row *
row_of_call(struct frame_walk *w, struct ex_module *module,
    uint64_t vaddr)
{
	uint8_t code[EX_REGS_CALL];

	if (!w->exact || ex_module_bytes(module, vaddr - sizeof(code), code,
	    sizeof(code)) != sizeof(code))
		return NULL;
	use_regs(w, w->regs.known);
	if (!ex_regs_in_call(&w->regs, code))
		return NULL;
	return ex_cfi_row(module, vaddr - sizeof(code) - 1, true);
}

/* Whether this code without unwind information is the entry of a program or of
   the dynamic loader, which goes on to call constructors: nothing called it.
   If the loader has no symbols, anything close to its entry counts. */
static bool
is_entry(struct ex_module *module, uint64_t vaddr)
{
	Elf *elf = ex_module_elf(module);
	struct ex_symbol symbol;
	GElf_Ehdr eh;

	if (elf == NULL || gelf_getehdr(elf, &eh) == NULL ||
	    vaddr < eh.e_entry || vaddr - eh.e_entry >= ENTRY_MAX)
		return false;
	if (ex_symbol_at(module, vaddr, &symbol))
		return symbol.value == eh.e_entry ||
		    strcmp(symbol.name, "_dl_start_user") == 0;
	return strncmp(ex_module_name(module), "ld", 2) == 0;
}

/* Step to the caller.  Returns false if there is none, with the reason in *end.
   *signal is set if the frame is a signal frame. */
static bool
step(struct frame_walk *w, bool *signal, enum ex_end *end)
{
	const uint64_t pc = w->regs.value[EX_REG_PC] - !w->exact;
	const struct ex_cfi_row *row = NULL;
	struct ex_module *module;
	uint64_t vaddr;

	if (!ex_regs_known(&w->regs, EX_REG_SP)) {
		*end = (w->cut >> EX_REG_SP & 1) != 0 ? missing(w) : EX_END_BAD;
		return false;
	}
	module = ex_process_module(w->process, pc, &vaddr);
	if (module != NULL)
		row = ex_cfi_row(module, vaddr, w->exact);
	if (module != NULL && row == NULL)
		row = row_of_call(w, module, vaddr);
	if (row == NULL && module != NULL && is_entry(module, vaddr)) {
		*end = EX_END_OUTERMOST;
		return false;
	}
	if (row == NULL) {
		*end = module == NULL ? EX_END_NO_MODULE : EX_END_NO_CFI;
		return may_have_frame(w, module, vaddr) &&
		    step_frame_pointer(w, end);
	}
	*signal = row->signal;
	return step_row(w, row, pc - vaddr, end);
}

static unsigned
from_stack(struct frame_walk *w, struct ex_pc *out, unsigned max,
    enum ex_end *end)
{
	unsigned n = 0;
	bool more;

	do {
		out[n].pc = w->regs.value[EX_REG_PC];
		out[n].exact = w->exact;
		out[n].signal = false;
		more = step(w, &out[n].signal, end);
		n++;
	} while (more && n < max);
	if (more)
		*end = EX_END_DEPTH;
	return n;
}

/* The pcs of the callchain between this marker (PERF_CONTEXT_*) and the
   next. */
static unsigned
from_callchain(const struct ex_sample *sample, uint64_t marker,
    struct ex_pc *out, unsigned max)
{
	bool inside = false;
	unsigned n = 0;
	uint64_t i, pc;

	if (sample->callchain == NULL)
		return 0;
	for (i = 0; i < sample->callchain_len && n < max; i++) {
		memcpy(&pc, sample->callchain + i * sizeof(pc), sizeof(pc));
		if (pc >= PERF_CONTEXT_MAX) {
			inside = pc == marker;
			continue;
		}
		if (!inside)
			continue;
		out[n].pc = pc;
		out[n].exact = n == 0;
		out[n].signal = false;
		n++;
	}
	return n;
}

static bool
is_kernel_address(uint64_t addr)
{
	return addr >> 63 != 0;
}

/* Return a pc without callers. */
static unsigned
lone_pc(uint64_t pc, struct ex_pc *out, unsigned max)
{
	if (max == 0)
		return 0;
	out[0].pc = pc;
	out[0].exact = true;
	out[0].signal = false;
	return 1;
}

/* What can be reported without registers to start unwinding from. */
static unsigned
without_regs(const struct ex_sample *sample, struct ex_pc *out, unsigned max,
    enum ex_end *end)
{
	uint64_t pc;

	*end = EX_END_NO_CFI;
	if (ex_regs_pc(&sample->user, &pc))
		return lone_pc(pc, out, max);
	*end = EX_END_NO_REGS;
	if (sample->ip != 0 && !is_kernel_address(sample->ip))
		return lone_pc(sample->ip, out, max);
	return 0;
}

unsigned
ex_unwind_reads(struct ex_process *process, const struct ex_sample *sample,
    struct ex_pc *out, unsigned max, enum ex_end *end, struct ex_reads *reads)
{
	struct frame_walk w = {
		.process = process, .exact = true, .reads = reads,
	};
	unsigned n;
	bool regs;

	if (reads != NULL) {
		reads->n = EX_READS_MAX + 1;
		reads->by_sp = false;
	}
	*end = EX_END_DEPTH;
	if (max == 0)
		return 0;
	regs = ex_regs_read(&sample->user, &w.regs) &&
	    ex_regs_known(&w.regs, EX_REG_PC) &&
	    ex_regs_known(&w.regs, EX_REG_SP);
	if (!regs || sample->stack == NULL) {
		n = from_callchain(sample, PERF_CONTEXT_USER, out, max);
		*end = EX_END_NO_REGS;
		if (n > 0)
			return n;
	}
	if (!regs)
		return without_regs(sample, out, max, end);
	w.copy = sample->stack;
	w.start = w.regs.value[EX_REG_SP];
	w.len = sample->stack != NULL ? sample->stack_len : 0;
	w.whole = w.len < sample->stack_asked;
	if (reads != NULL && sample->stack != NULL)
		reads->n = 0;
	use_reg(&w, EX_REG_PC, 0);
	use_reg(&w, EX_REG_SP, EX_READ_ADDRESS);
	return from_stack(&w, out, max, end);
}

unsigned
ex_unwind(struct ex_process *process, const struct ex_sample *sample,
    struct ex_pc *out, unsigned max, enum ex_end *end)
{
	return ex_unwind_reads(process, sample, out, max, end, NULL);
}

unsigned
ex_unwind_kernel(const struct ex_sample *sample, struct ex_pc *out,
    unsigned max)
{
	unsigned n = from_callchain(sample, PERF_CONTEXT_KERNEL, out, max);

	if (n == 0 && is_kernel_address(sample->ip))
		return lone_pc(sample->ip, out, max);
	return n;
}
