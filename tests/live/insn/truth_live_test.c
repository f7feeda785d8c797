/*
 * truth: real programs are single-stepped, so that the instruction of each
 * access is known, with registers and memory before it, and a hardware
 * watchpoint shows whether the access took place.  What is explained from the
 * sample taken after the access must agree.
 */
#include "test.h"

#include <Zydis/Zydis.h>
#include <cpuid.h>
#include <elf.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "capture.h"
#include "command.h"
#include "insn/insn.h"
#include "probe/probe.h"
#include "space/space.h"

#define STEPS		60000	/* at most, in one program */
#define WANTED		5000	/* accesses compared in one program, */
#define VARIETY		500	/* of so many instructions at least */
#define WANTED_32	1000	/* the same in the one of 32 bits */
#define VARIETY_32	100
#define PER_PC		8	/* accesses of one instruction */
#define EXACT_WRITES	90	/* percent, of what watches of writes find, */
#define EXACT_ANY	75	/* and of any access, that must be exact */
#define PLACES		65536	/* instructions kept apart: a power of two */
#define OPERANDS	4	/* in memory, of one instruction: at most */
#define MASKED		2000	/* accesses under masks that are compared */
#define VECTOR_MAX	64	/* bytes of the largest operand under a mask */

typedef struct user_regs_struct regs_t;

/* Bytes that an instruction touches. */
struct touched {
	uint64_t addr;
	uint32_t size;
	bool reads, writes;
	uint8_t before[VECTOR_MAX];	/* what they held, before it */
	bool known;		/* that could be read: not of the vvar page */
	uint32_t unit;		/* a mask decides which elements of so many
				   bytes */
	uint64_t mask;		/* it touches, a bit for each; 0: all */
};

/* What the next instruction does. */
struct truth {
	uint64_t pc;
	struct touched at[OPERANDS];
	unsigned n;
	bool jump;		/* where it stood is lost with it */
	bool partial;		/* may leave some of the bytes alone */
	bool masked;		/* under a mask, known unless partial */
};

struct watch {
	uint64_t addr;		/* the region */
	uint32_t len;
	uint64_t slot;		/* the part that the processor watches */
	uint32_t slot_len;
	char access;		/* 'w' or 'a' */
};

struct stepper {
	pid_t pid;
	struct ex_space *space;
	struct ex_process *process;
	bool narrow;		/* 32-bit code */
	ZydisDecoder decoder;
	struct capture capture;
	unsigned random;
	struct {
		uint64_t pc;
		unsigned n;
	} seen[PLACES];
	unsigned places;	/* instructions met */
	unsigned per_pc;	/* accesses of one that are looked at */
	unsigned writes, any;	/* watches: of writes, of any access */
	unsigned count[2][EX_EXACT + 1];	/* answers: 0 to those, 1 to
						   these */
	unsigned jumps;		/* in any: that cannot be named */
	unsigned values;	/* answers with a value */
	unsigned untouched;	/* no watchpoint triggered, where one must */
	unsigned masked;	/* under a mask: accesses looked at, */
	unsigned unnamed;	/* answers that do not name the instruction, */
	unsigned quiet;		/* where none triggered, nor had to; */
	unsigned changed;	/* bytes that they changed */
	unsigned wrong;
};

static unsigned
next_random(struct stepper *s)
{
	s->random = s->random * 1103515245 + 12345;
	return s->random >> 16;
}

/* --- the truth, from what is known before the step --- */

/* A register; the test's own way, so that a mistake of the library's is not
   made twice. */
static uint64_t
value_of(const regs_t *r, ZydisRegister reg, uint64_t next)
{
	const unsigned long long value[16] = {
		r->rax, r->rcx, r->rdx, r->rbx, r->rsp, r->rbp, r->rsi, r->rdi,
		r->r8, r->r9, r->r10, r->r11, r->r12, r->r13, r->r14, r->r15,
	};

	if (reg == ZYDIS_REGISTER_NONE)
		return 0;
	if (reg == ZYDIS_REGISTER_RIP)
		return next;
	return value[ZydisRegisterGetId(reg) & 15];
}

/* Does it name memory that it does not touch? */
static bool
is_hint(const ZydisDecodedInstruction *insn)
{
	return insn->meta.category == ZYDIS_CATEGORY_NOP ||
	    insn->meta.category == ZYDIS_CATEGORY_WIDENOP ||
	    insn->meta.category == ZYDIS_CATEGORY_PREFETCH;
}

/* Under a mask that is in a vector? */
static bool
is_masked_by_vector(const ZydisDecodedInstruction *insn)
{
	switch (insn->mnemonic) {
	case ZYDIS_MNEMONIC_MASKMOVQ:
	case ZYDIS_MNEMONIC_MASKMOVDQU:
	case ZYDIS_MNEMONIC_VMASKMOVDQU:
	case ZYDIS_MNEMONIC_VMASKMOVPS:
	case ZYDIS_MNEMONIC_VMASKMOVPD:
	case ZYDIS_MNEMONIC_VPMASKMOVD:
	case ZYDIS_MNEMONIC_VPMASKMOVQ:
		return true;
	default:
		return false;
	}
}

/* Does it touch some of its operand only, or, repeated, nothing at all? */
static bool
is_partial(const ZydisDecodedInstruction *insn, const regs_t *r)
{
	return insn->meta.category == ZYDIS_CATEGORY_XSAVE ||
	    insn->meta.category == ZYDIS_CATEGORY_XSAVEOPT ||
	    is_masked_by_vector(insn) ||
	    (insn->meta.category == ZYDIS_CATEGORY_STRINGOP && r->rcx == 0);
}

static bool
is_masked(const ZydisDecodedInstruction *insn)
{
	return insn->avx.mask.reg != ZYDIS_REGISTER_NONE &&
	    insn->avx.mask.reg != ZYDIS_REGISTER_K0;
}

/* A register of masks, as the program has it; false: it cannot be asked for. */
static bool
mask_register(pid_t pid, ZydisRegister reg, uint64_t *mask)
{
	enum { OPMASK = 5, LEAF = 0xd };
	static uint8_t state[16384];
	struct iovec all = {state, sizeof(state)};
	unsigned size, offset, c, d;
	const unsigned at = (unsigned)(reg - ZYDIS_REGISTER_K0) * sizeof(*mask);

	if (!__get_cpuid_count(LEAF, OPMASK, &size, &offset, &c, &d) ||
	    at + sizeof(*mask) > size ||
	    ptrace(PTRACE_GETREGSET, pid, NT_X86_XSTATE, &all) != 0 ||
	    offset + size > all.iov_len)
		return false;
	memcpy(mask, state + offset + at, sizeof(*mask));
	return true;
}

/* Which elements of its operand in memory it touches; false: not to be
   known. */
static bool
take_mask(const struct stepper *s, const ZydisDecodedInstruction *insn,
    const ZydisDecodedOperand *op, struct touched *t)
{
	switch (insn->meta.category) {
	case ZYDIS_CATEGORY_COMPRESS:
	case ZYDIS_CATEGORY_EXPAND:
		return false;
	default:
		t->unit = op->element_size / 8u;
		return t->unit != 0 && insn->avx.broadcast.mode ==
		    ZYDIS_BROADCAST_MODE_INVALID &&
		    mask_register(s->pid, insn->avx.mask.reg, &t->mask);
	}
}

/* A bit's number, in a register, that may lie anywhere. */
static bool
is_bit_string(const ZydisDecodedInstruction *insn,
    const ZydisDecodedOperand *op)
{
	return insn->meta.category == ZYDIS_CATEGORY_BITBYTE &&
	    op[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
	    op[1].type == ZYDIS_OPERAND_TYPE_REGISTER;
}

/* An operand's bytes; false: not memory that is touched, or not to be known. */
static bool
operand_bytes(const struct stepper *s, const ZydisDecodedInstruction *insn,
    const ZydisDecodedOperand *op, const regs_t *r, struct touched *t)
{
	const ZydisDecodedOperandMem *m = &op->mem;
	const uint64_t next = r->rip + insn->length;
	const ZydisRegister sp = s->narrow ? ZYDIS_REGISTER_ESP :
	    ZYDIS_REGISTER_RSP;

	if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || op->size == 0 ||
	    m->type != ZYDIS_MEMOP_TYPE_MEM)
		return false;
	t->size = insn->mnemonic != ZYDIS_MNEMONIC_FXSAVE ? op->size / 8 :
	    s->narrow ? 288 : 416;	/* the rest is reserved */
	t->reads = (op->actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
	t->writes = (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
	t->addr = value_of(r, m->base, next) +
	    value_of(r, m->index, next) * m->scale + (uint64_t)m->disp.value;
	if (insn->mnemonic == ZYDIS_MNEMONIC_XLAT)
		t->addr += (uint8_t)r->rax;
	if (m->segment == ZYDIS_REGISTER_FS)
		t->addr += r->fs_base;
	if (m->segment == ZYDIS_REGISTER_GS)
		t->addr += r->gs_base;
	if (m->base == sp && t->writes &&
	    op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN)
		t->addr -= t->size;		/* push, call, enter */
	else if (m->base == sp && t->writes &&
	    insn->meta.category == ZYDIS_CATEGORY_POP)
		t->addr += t->size;		/* popped before it is stored */
	if (s->narrow)
		t->addr = (uint32_t)t->addr;
	return true;
}

static bool
truth_of(struct stepper *s, const regs_t *r, struct truth *truth)
{
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	uint8_t code[ZYDIS_MAX_INSTRUCTION_LENGTH];
	size_t n = capture_read(s->pid, r->rip, code, sizeof(code));

	truth->pc = r->rip;
	truth->n = 0;
	if (ZYAN_FAILED(ZydisDecoderDecodeFull(&s->decoder, code, n, &insn,
	    op)) || is_hint(&insn) || is_bit_string(&insn, op))
		return false;
	truth->partial = is_partial(&insn, r);
	truth->masked = is_masked(&insn) || is_masked_by_vector(&insn);
	for (unsigned i = 0; i < insn.operand_count && truth->n < OPERANDS;
	    i++) {
		struct touched *t = &truth->at[truth->n];

		t->unit = 0;
		if (!operand_bytes(s, &insn, &op[i], r, t))
			continue;
		truth->n++;
		if (is_masked(&insn) && !take_mask(s, &insn, &op[i], t))
			truth->partial = true;
	}
	truth->jump = insn.meta.category == ZYDIS_CATEGORY_RET ||
	    insn.meta.category == ZYDIS_CATEGORY_UNCOND_BR;
	return truth->n > 0;
}

/* What it does to the watch, all operands together. */
static void
overlap(const struct truth *truth, const struct watch *w, bool *reads,
    bool *writes)
{
	*reads = *writes = false;
	for (unsigned i = 0; i < truth->n; i++) {
		const struct touched *t = &truth->at[i];

		if (t->addr >= w->addr + w->len || w->addr >= t->addr + t->size)
			continue;
		if (w->access == 'w' && !t->writes)
			continue;
		*reads |= t->reads;
		*writes |= t->writes;
	}
}

/* The operand of these bytes, which lies in the watch; NULL: there is none. */
static const struct touched *
operand_of(const struct truth *truth, const struct watch *w, bool writes,
    uint64_t addr, uint32_t size)
{
	for (unsigned i = 0; i < truth->n; i++) {
		const struct touched *t = &truth->at[i];

		if (t->addr == addr && t->size == size &&
		    t->addr < w->addr + w->len && w->addr < addr + size &&
		    (t->writes || !writes))
			return t;
	}
	return NULL;
}

/* --- a watch on some of it --- */

static bool
poke_debug(pid_t pid, unsigned n, uint64_t value)
{
	return ptrace(PTRACE_POKEUSER, pid,
	    offsetof(struct user, u_debugreg[n]), value) == 0;
}

static bool
plant(pid_t pid, const struct watch *w)
{
	const uint64_t type = w->access == 'w' ? 1 : 3;
	const uint64_t len = w->slot_len == 8 ? 2 : w->slot_len - 1;

	return poke_debug(pid, 7, 0) && poke_debug(pid, 6, 0) &&
	    poke_debug(pid, 0, w->slot) &&
	    poke_debug(pid, 7, 1 | type << 16 | len << 18);
}

static bool
triggered(pid_t pid)
{
	long status = ptrace(PTRACE_PEEKUSER, pid,
	    offsetof(struct user, u_debugreg[6]), NULL);

	return (status & 1) != 0;
}

/* On the first, the last, or any byte of one of its operands; by one slot, or
   a region of several. */
static void
choose_watch(struct stepper *s, const struct truth *truth, struct watch *w)
{
	const struct touched *t = &truth->at[next_random(s) % truth->n];
	const unsigned where = next_random(s) % 4;
	const uint32_t byte = where == 0 ? 0 : where == 1 ? t->size - 1 :
	    next_random(s) % t->size;

	w->slot_len = 1U << next_random(s) % 4;
	w->slot = (t->addr + byte) & ~(uint64_t)(w->slot_len - 1);
	w->addr = w->slot;
	w->len = w->slot_len;
	if (w->len == 8 && next_random(s) % 4 == 0) {
		w->len = 16U << next_random(s) % 2;
		w->addr &= ~(uint64_t)(w->len - 1);
	}
	w->access = t->writes && next_random(s) % 3 != 0 ? 'w' : 'a';
}

/* --- comparing --- */

static void
complain(const struct truth *truth, const struct watch *w,
    const struct ex_insn *insn, const char *what)
{
	print_error("%s: '%c' at %#llx+%u: %s, %s at %#llx touches %#llx+%u "
	    "%s%s; was at %#llx, touching %#llx+%u\n", what, w->access,
	    (unsigned long long)w->addr, w->len,
	    ex_confidence_text(insn->confidence), insn->text,
	    (unsigned long long)insn->pc, (unsigned long long)insn->addr,
	    insn->size, insn->reads ? "r" : "", insn->writes ? "w" : "",
	    (unsigned long long)truth->pc,
	    (unsigned long long)truth->at[0].addr, truth->at[0].size);
}

/* What is wrong with the values that an answer has; NULL: nothing. */
static const char *
wrong_value(const struct stepper *s, const struct touched *t,
    const struct ex_effect *effect)
{
	uint8_t after[VECTOR_MAX];
	uint64_t old = 0, value;

	if (effect->size == 0 || !t->known)
		return NULL;
	if (effect->size != t->size ||
	    capture_read(s->pid, t->addr, after, t->size) != t->size)
		return "size of the value";
	if (effect->has_loaded &&
	    memcmp(effect->loaded, t->before, t->size) != 0)
		return "value loaded";
	switch (effect->operation) {
	case EX_OP_UNKNOWN:
		return NULL;
	case EX_OP_NONE:
		return memcmp(t->before, after, t->size) != 0 ?
		    "changed nothing" : NULL;
	case EX_OP_STORE:
		return memcmp(effect->stored, after, t->size) != 0 ?
		    "value stored" : NULL;
	default:
		break;
	}
	if (t->size > sizeof(old))
		return NULL;
	memcpy(&old, t->before, t->size);
	switch (ex_effect_derive(effect, old, &value)) {
	case EX_DERIVED:
		return memcmp(&value, after, t->size) != 0 ?
		    "value derived" : NULL;
	case EX_CONTRADICTED:
		return "value contradicted";
	default:
		return NULL;
	}
}

/* What is wrong with an answer; NULL: nothing. */
static const char *
mistake(const struct stepper *s, const struct truth *truth,
    const struct watch *w, const struct ex_insn *insn)
{
	const struct touched *t;
	bool reads, writes;

	if (insn->confidence < EX_ADDRESS_UNVERIFIED)
		return NULL;
	overlap(truth, w, &reads, &writes);
	if (insn->pc != truth->pc)
		return "another instruction";
	if (insn->confidence != EX_EXACT)
		return NULL;
	if (insn->reads != reads || insn->writes != writes)
		return "what it did";
	t = operand_of(truth, w, writes, insn->addr, insn->size);
	return t == NULL ? "bytes touched" :
	    wrong_value(s, t, &insn->effect);
}

static void
check(struct stepper *s, const struct truth *truth, const struct watch *w)
{
	const unsigned any = w->access != 'w';
	struct ex_insn insn;
	const char *wrong;

	ex_insn_explain(s->process, &s->capture.sample, w->addr, w->len,
	    w->access, &insn);
	*(any ? &s->any : &s->writes) += 1;
	s->count[any][insn.confidence]++;
	s->jumps += insn.confidence < EX_ADDRESS_UNVERIFIED && truth->jump;
	s->unnamed += truth->masked &&
	    insn.confidence < EX_ADDRESS_UNVERIFIED;
	s->values += insn.effect.operation != EX_OP_UNKNOWN;
	wrong = mistake(s, truth, w, &insn);
	if (wrong == NULL)
		return;
	s->wrong++;
	complain(truth, w, &insn, wrong);
}

/* Has the instruction been looked at often enough? */
static bool
is_known(struct stepper *s, uint64_t pc)
{
	unsigned i = (unsigned)(pc * UINT64_C(0x9e3779b97f4a7c15) >> 48);

	while (s->seen[i % PLACES].pc != 0 && s->seen[i % PLACES].pc != pc)
		i++;
	i %= PLACES;
	if (s->seen[i].pc == 0) {
		if (s->places == PLACES / 4 * 3)
			return true;
		s->seen[i].pc = pc;
		s->places++;
	}
	return s->seen[i].n++ >= s->per_pc;
}

/* Whether an operand touches bytes of the slot for certain. */
static bool
touches(const struct touched *t, const struct watch *w)
{
	const uint32_t unit = t->unit != 0 ? t->unit : t->size;

	for (uint32_t i = 0; i * unit < t->size; i++)
		if ((t->unit == 0 || (t->mask >> i & 1) != 0) &&
		    t->addr + i * unit < w->slot + w->slot_len &&
		    w->slot < t->addr + (i + 1) * unit)
			return true;
	return false;
}

static bool
must_trigger(const struct truth *truth, const struct watch *w)
{
	bool must = false;

	for (unsigned i = 0; i < truth->n && !truth->partial; i++)
		must |= (truth->at[i].writes || w->access != 'w') &&
		    touches(&truth->at[i], w);
	return must;
}

/* A mask that was read right leaves alone what it says. */
static void
check_mask(struct stepper *s, const struct touched *t)
{
	uint8_t after[VECTOR_MAX];

	if (!t->known || t->unit == 0 || !t->writes ||
	    capture_read(s->pid, t->addr, after, t->size) != t->size)
		return;
	for (uint32_t i = 0; i < t->size; i++) {
		const bool changed = after[i] != t->before[i];

		s->changed += changed;
		s->wrong += changed && (t->mask >> i / t->unit & 1) == 0;
	}
}

/* Remember what its operands hold. */
static void
look_before(struct stepper *s, struct truth *truth)
{
	for (unsigned i = 0; i < truth->n; i++) {
		struct touched *t = &truth->at[i];

		t->known = t->size <= sizeof(t->before) &&
		    capture_read(s->pid, t->addr, t->before, t->size) ==
		    t->size;
	}
}

/* One step of the stopped program; false: it is no longer stopped. */
static bool
step(struct stepper *s)
{
	struct watch w = { .len = 0 };
	struct truth truth;
	regs_t r;
	uint64_t vaddr;
	bool watched;
	int status;

	if (ptrace(PTRACE_GETREGS, s->pid, NULL, &r) != 0)
		return false;
	watched = truth_of(s, &r, &truth) && !is_known(s, r.rip);
	if (watched) {
		choose_watch(s, &truth, &w);
		look_before(s, &truth);
		watched = plant(s->pid, &w);
	}
	if (ptrace(PTRACE_SINGLESTEP, s->pid, NULL, NULL) != 0 ||
	    waitpid(s->pid, &status, 0) != s->pid || !WIFSTOPPED(status))
		return false;
	if (!watched || WSTOPSIG(status) != SIGTRAP)
		return true;
	s->masked += truth.masked;
	for (unsigned i = 0; i < truth.n; i++)
		check_mask(s, &truth.at[i]);
	if (!triggered(s->pid)) {
		s->quiet += truth.masked;
		if (must_trigger(&truth, &w)) {
			s->untouched++;
			print_error("%#llx did not touch %#llx+%u\n",
			    (unsigned long long)truth.pc,
			    (unsigned long long)w.slot, w.slot_len);
		}
		return true;
	}
	if (ptrace(PTRACE_GETREGS, s->pid, NULL, &r) != 0)
		return true;
	if (ex_process_module(s->process, r.rip, &vaddr) == NULL)
		capture_maps(s->space, s->pid);
	capture_take(&s->capture, s->pid, &r, 64);
	s->capture.regs[PERF_REG_X86_FLAGS] = r.eflags;
	if (s->narrow)
		s->capture.sample.user.abi = PERF_SAMPLE_REGS_ABI_32;
	check(s, &truth, &w);
	return true;
}

static int
setup(void **state)
{
	struct stepper *s = calloc(1, sizeof(*s));

	*state = s;
	if (s != NULL)
		s->per_pc = PER_PC;
	if (s == NULL || (s->space = ex_space_new(EX_LIVE)) == NULL)
		return -1;
	return 0;
}

static int
teardown(void **state)
{
	struct stepper *s = *state;

	if (s->pid > 0) {
		(void)kill(s->pid, SIGKILL);
		(void)waitpid(s->pid, NULL, 0);
	}
	ex_space_free(s->space);
	free(s);
	return 0;
}

/* Run a program up to where it stops itself. */
static void
begin(struct stepper *s, const char *const argv[])
{
	int status;

	s->pid = fork();
	assert_true(s->pid >= 0);
	if (s->pid == 0) {
		(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		(void)execv(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	for (;;) {
		assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
		assert_true(WIFSTOPPED(status));
		if (WSTOPSIG(status) == SIGSTOP)
			break;
		(void)ptrace(PTRACE_SETOPTIONS, s->pid, NULL,
		    PTRACE_O_EXITKILL);
		assert_int_equal(ptrace(PTRACE_CONT, s->pid, NULL, NULL), 0);
	}
	s->process = ex_space_process(s->space, s->pid);
	assert_non_null(s->process);
	capture_maps(s->space, s->pid);
}

static void
print_share(const char *what, const unsigned count[EX_EXACT + 1], unsigned all)
{
	print_message("  %s: %u, %u.%u%% exact, %u address-unverified, "
	    "%u ambiguous, %u unknown\n", what, all,
	    count[EX_EXACT] * 100 / all, count[EX_EXACT] * 1000 / all % 10,
	    count[EX_ADDRESS_UNVERIFIED], count[EX_AMBIGUOUS],
	    count[EX_UNKNOWN]);
}

/* Step through a program, and see how the answers were. */
static void
agree(void **state, const char *const argv[])
{
	struct stepper *s = *state;
	const unsigned wanted = s->narrow ? WANTED_32 : WANTED;
	unsigned i;

	ZydisDecoderInit(&s->decoder, s->narrow ?
	    ZYDIS_MACHINE_MODE_LONG_COMPAT_32 : ZYDIS_MACHINE_MODE_LONG_64,
	    s->narrow ? ZYDIS_STACK_WIDTH_32 : ZYDIS_STACK_WIDTH_64);
	begin(s, argv);
	for (i = 0; i < STEPS && s->writes + s->any < wanted && step(s); i++)
		;
	print_message("%u steps, %u accesses of %u instructions, %u values\n",
	    i, s->writes + s->any, s->places, s->values);
	print_share("writes", s->count[0], s->writes);
	print_share("any access", s->count[1], s->any);
	print_message("  unknown or ambiguous for being jumps: %u\n", s->jumps);
	assert_int_equal(s->wrong, 0);
	assert_int_equal(s->untouched, 0);
	assert_true(s->writes + s->any >= wanted);
	assert_true(s->places >= (s->narrow ? VARIETY_32 : VARIETY));
	assert_true(s->count[0][EX_EXACT] * 100 >= s->writes * EXACT_WRITES);
	assert_true(s->count[1][EX_EXACT] * 100 >= s->any * EXACT_ANY);
}

TEST(the_c_library)
{
	agree(state, LIST(victim("library")));
}

TEST(cxx)
{
	agree(state, LIST(victim("containers")));
}

TEST(without_symbols)
{
	agree(state, LIST(victim("containers_static")));
}

static const char script[] =
    "import json, os, re, hashlib, struct, zlib\n"
    "class C:\n"
    "    def __init__(self, x): self.x = x\n"
    "    def __lt__(self, o): return self.x < o.x\n"
    "def work(n):\n"
    "    s = json.dumps({'a': [1, 2.5, None, 'x' * n], 'b': {'c': n}})\n"
    "    d = json.loads(s)\n"
    "    re.sub(r'(\\d+)', lambda m: m.group(1) + '!', s)\n"
    "    sorted([C(n * i % 7) for i in range(5)])\n"
    "    hashlib.md5(s.encode()).hexdigest()\n"
    "    zlib.decompress(zlib.compress(s.encode()))\n"
    "    struct.pack('<iqd', n, n, n)\n"
    "    try:\n"
    "        {}[n]\n"
    "    except KeyError as e:\n"
    "        '%s %r %5.2f' % (e, d, n / 3)\n"
    "    return sum(x * x for x in range(n % 10)) + (n ** 20) % 97\n"
    "os.kill(os.getpid(), 19)\n"
    "n = 0\n"
    "while True:\n"
    "    n += 1\n"
    "    work(n)\n";

TEST(an_interpreter)
{
	agree(state, LIST("/usr/bin/python3", "-S", "-c", script));
}

/* A mask is in no sample, so no such access is exact.  Some processors' watches
   trigger by the elements that it leaves alone, too, others' do not. */
TEST(under_masks)
{
	struct stepper *s = *state;

	const bool avx512 = __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512vl");

	if (!__builtin_cpu_supports("avx"))
		return;		/* nor has it masks */
	ZydisDecoderInit(&s->decoder, ZYDIS_MACHINE_MODE_LONG_64,
	    ZYDIS_STACK_WIDTH_64);
	begin(s, LIST(victim("masked")));
	s->per_pc = MASKED;
	for (unsigned i = 0; i < STEPS && s->masked < MASKED && step(s); i++)
		;
	print_message("%u accesses under masks, %u did not trigger, %u bytes "
	    "changed\n", s->masked, s->quiet, s->changed);
	assert_int_equal(s->wrong, 0);
	assert_int_equal(s->untouched, 0);
	assert_true(s->masked >= MASKED);
	assert_true(s->changed >= (avx512 ? MASKED / 2 : 0));
	assert_int_equal(s->unnamed, 0);
}

TEST(of_32_bits)
{
	struct stepper *s = *state;

	skip_unless_narrow_runs(victim("narrow"));
	s->narrow = true;
	agree(state, LIST(victim("narrow")));
}

/* The debug registers that ptrace(2) sets are what tells. */
static bool
registers_fire(void)
{
	struct wp_probe_result found;

	wp_probe_fire(WP_PROBE_PTRACE, &found);
	if (!found.ok)
		print_message("%s: %s\n", found.name, found.detail);
	return found.ok;
}

RUN_TESTS(.before_each = setup, .after_each = teardown,
    .possible = registers_fire)
