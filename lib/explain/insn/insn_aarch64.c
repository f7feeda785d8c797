/*
 * insn_aarch64: which 64-bit Arm instruction made an access.
 *
 * A watch traps before the access: the sampled pc is that of the instruction,
 * and the registers are those that it is about to use.  So its place is
 * certain, what it is going to store is in them, and only what it loads is not
 * there yet.
 */
#include <asm/perf_regs.h>
#include <capstone/capstone.h>
#include <stdio.h>
#include <string.h>

#include "insn/insn.h"
#include "module/module.h"
#include "space/space.h"

#ifdef __aarch64__	/* static checkers also read it on other processors */

enum { CODE_LEN = 4, REGS_MAX = 4 };

/* What an instruction does at its memory operand. */
enum kind {
	KIND_NONE,		/* it has no memory operand */
	KIND_LOAD,
	KIND_STORE,
	KIND_STORE_EXCLUSIVE,	/* only if the monitor is still held */
	KIND_ATOMIC,		/* load, compute and store */
	KIND_ZERO,		/* dc zva clears a whole block */
};

static const struct atomic {
	const char *name;	/* the beginning of the mnemonic */
	enum ex_operation operation;
	bool inverted;		/* the operand is inverted first */
} atomics[] = {
	{"ldadd", EX_OP_ADD, false}, {"stadd", EX_OP_ADD, false},
	{"ldclr", EX_OP_AND, true}, {"stclr", EX_OP_AND, true},
	{"ldeor", EX_OP_XOR, false}, {"steor", EX_OP_XOR, false},
	{"ldset", EX_OP_OR, false}, {"stset", EX_OP_OR, false},
	{"swp", EX_OP_STORE, false},
	{"ldsmax", EX_OP_UNKNOWN, false}, {"stsmax", EX_OP_UNKNOWN, false},
	{"ldsmin", EX_OP_UNKNOWN, false}, {"stsmin", EX_OP_UNKNOWN, false},
	{"ldumax", EX_OP_UNKNOWN, false}, {"stumax", EX_OP_UNKNOWN, false},
	{"ldumin", EX_OP_UNKNOWN, false}, {"stumin", EX_OP_UNKNOWN, false},
	{"cas", EX_OP_UNKNOWN, false},
};

/* An instruction and its memory operand. */
struct access {
	const struct ex_sample *sample;
	const cs_insn *insn;
	const cs_arm64 *detail;
	const cs_arm64_op *memory;	/* NULL if there is none, or it has
					   no base register */
	enum kind kind;
	const struct atomic *atomic;
	arm64_reg data[REGS_MAX];  /* registers that are stored or loaded */
	unsigned ndata, each;	/* each: bytes of each; 0 if not known */
};

static bool
begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* The number of x0 to x30 or sp in samples; the zero register has none. */
static bool
number_of(arm64_reg reg, unsigned *number)
{
	if (reg >= ARM64_REG_X0 && reg <= ARM64_REG_X28)
		*number = reg - ARM64_REG_X0;
	else if (reg >= ARM64_REG_W0 && reg <= ARM64_REG_W30)
		*number = reg - ARM64_REG_W0;
	else if (reg == ARM64_REG_X29 || reg == ARM64_REG_X30)
		*number = reg == ARM64_REG_X29 ? 29 : 30;
	else if (reg == ARM64_REG_SP || reg == ARM64_REG_WSP)
		*number = PERF_REG_ARM64_SP;
	else
		return false;
	return true;
}

static bool
value_of(const struct access *a, arm64_reg reg, uint64_t *value)
{
	unsigned number;

	*value = 0;
	return reg == ARM64_REG_XZR || reg == ARM64_REG_WZR ||
	    (number_of(reg, &number) &&
	    ex_regs_get(&a->sample->user, number, value));
}

/* The size of a vector register's elements in bytes, or 0 if not known. */
static unsigned
vector_bytes(const cs_arm64_op *op)
{
	static const unsigned element[] = {
		[ARM64_VESS_B] = 1, [ARM64_VESS_H] = 2, [ARM64_VESS_S] = 4,
		[ARM64_VESS_D] = 8,
	};

	if (op->vector_index >= 0)
		return op->vess <= ARM64_VESS_D ? element[op->vess] : 0;
	switch (op->vas) {
	case ARM64_VAS_8B:
	case ARM64_VAS_4H:
	case ARM64_VAS_2S:
	case ARM64_VAS_1D:
		return 8;
	case ARM64_VAS_16B:
	case ARM64_VAS_8H:
	case ARM64_VAS_4S:
	case ARM64_VAS_2D:
	case ARM64_VAS_1Q:
		return 16;
	default:
		return 0;
	}
}

/* The bytes that a register contributes in this instruction, or 0 if not
   known. */
static unsigned
register_bytes(const struct access *a, const cs_arm64_op *op)
{
	static const struct {
		arm64_reg first;
		unsigned bytes;
	} vectors[] = {
		{ARM64_REG_B0, 1}, {ARM64_REG_D0, 8}, {ARM64_REG_H0, 2},
		{ARM64_REG_Q0, 16}, {ARM64_REG_S0, 4},
	};
	const char *name = a->insn->mnemonic;
	const size_t len = strlen(name);
	unsigned number;

	if (op->reg >= ARM64_REG_V0 && op->reg <= ARM64_REG_V31)
		return vector_bytes(op);
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
		if (op->reg >= vectors[i].first &&
		    op->reg < vectors[i].first + 32)
			return vectors[i].bytes;
	if (op->reg != ARM64_REG_XZR && op->reg != ARM64_REG_WZR &&
	    !number_of(op->reg, &number))
		return 0;
	if (len > 3 && name[len - 1] == 'b')
		return 1;
	if (len > 3 && name[len - 1] == 'h')
		return 2;
	if (len > 4 && strcmp(name + len - 2, "sw") == 0)
		return 4;
	return op->reg == ARM64_REG_WZR ||
	    (op->reg >= ARM64_REG_W0 && op->reg <= ARM64_REG_W30) ? 4 : 8;
}

static void
find_kind(struct access *a)
{
	const char *name = a->insn->mnemonic;

	for (size_t i = 0; i < sizeof(atomics) / sizeof(atomics[0]); i++)
		if (begins(name, atomics[i].name)) {
			a->kind = KIND_ATOMIC;
			a->atomic = &atomics[i];
			return;
		}
	if (begins(name, "stx") || begins(name, "stlx"))
		a->kind = KIND_STORE_EXCLUSIVE;
	else if (begins(name, "st"))
		a->kind = KIND_STORE;
	else if (begins(name, "ld"))
		a->kind = KIND_LOAD;
	else if (a->insn->id == ARM64_INS_DC &&
	    strstr(a->insn->op_str, "zva") != NULL)
		a->kind = KIND_ZERO;
}

/* Find the registers before the memory operand.  The first one of an exclusive
   store is its status; of an atomic operation only the operand counts. */
static void
find_data(struct access *a)
{
	const unsigned skipped = a->kind == KIND_STORE_EXCLUSIVE;
	unsigned seen = 0, n = REGS_MAX;

	if (a->kind == KIND_ATOMIC)
		n = begins(a->insn->mnemonic, "casp") ? 2 : 1;
	for (unsigned i = 0; i < a->detail->op_count; i++) {
		const cs_arm64_op *op = &a->detail->operands[i];

		if (op->type == ARM64_OP_MEM) {
			a->memory = op;
			break;
		}
		if (op->type != ARM64_OP_REG || seen++ < skipped ||
		    a->ndata >= n)
			continue;
		a->each = a->ndata == 0 || a->each == register_bytes(a, op) ?
		    register_bytes(a, op) : 0;
		a->data[a->ndata++] = op->reg;
	}
}

/* The first byte touched.  Returns false if it cannot be computed. */
static bool
address_of(const struct access *a, uint64_t *addr)
{
	const arm64_op_mem *m = &a->memory->mem;
	/* post-indexed: the offset is added after the access */
	const bool post = strstr(a->insn->op_str, "], ") != NULL;
	uint64_t index = 0;

	if (!value_of(a, m->base, addr))
		return false;
	if (post)
		return true;
	if (m->index != ARM64_REG_INVALID && !value_of(a, m->index, &index))
		return false;
	if (a->memory->ext == ARM64_EXT_UXTW)
		index = (uint32_t)index;
	else if (a->memory->ext == ARM64_EXT_SXTW)
		index = (uint64_t)(int64_t)(int32_t)(uint32_t)index;
	*addr += (index << (a->memory->shift.value & 7)) +
	    (uint64_t)(int64_t)m->disp;
	return true;
}

/* What a store or an atomic operation does to the bytes. */
static void
find_effect(const struct access *a, struct ex_effect *effect)
{
	const unsigned size = a->ndata * a->each;
	uint64_t value;

	if (a->kind == KIND_LOAD) {
		effect->operation = EX_OP_NONE;
		effect->size = (uint8_t)size;
		return;
	}
	if ((a->kind != KIND_STORE && a->kind != KIND_ATOMIC) || size == 0 ||
	    size > EX_EFFECT_MAX)
		return;
	effect->size = (uint8_t)size;
	effect->atomic = a->kind == KIND_ATOMIC;
	effect->immediate = true;
	for (unsigned i = 0; i < a->ndata; i++) {
		if (a->each > sizeof(value) || !value_of(a, a->data[i], &value))
			return;
		memcpy(effect->stored + i * a->each, &value, a->each);
		effect->immediate &= a->data[i] == ARM64_REG_XZR ||
		    a->data[i] == ARM64_REG_WZR;
	}
	effect->operation = EX_OP_STORE;
	if (a->kind != KIND_ATOMIC || a->atomic->operation == EX_OP_STORE)
		return;
	effect->immediate = false;
	effect->operation = a->atomic->operation;
	effect->operand = a->atomic->inverted ? ~value : value;
}

static void
find_access(const struct access *a, uint64_t addr, uint32_t len,
    struct ex_insn *out)
{
	const unsigned size = a->ndata * a->each;
	uint64_t first;

	out->reads = a->kind == KIND_LOAD || a->kind == KIND_ATOMIC;
	out->writes = a->kind != KIND_NONE && a->kind != KIND_LOAD;
	out->confidence = EX_ADDRESS_UNVERIFIED;
	if (a->memory == NULL || !address_of(a, &first))
		return;
	if (size == 0) {
		out->within = first;
		out->within_size = 64;	/* four vector registers */
		return;
	}
	if (first >= addr + len || addr >= first + size)
		return;
	out->confidence = EX_EXACT;
	out->addr = first;
	out->size = size;
	find_effect(a, &out->effect);
}

/* Read the code at this pc, if it is the same as in its module. */
static bool
read_code(struct ex_process *process, uint64_t pc, uint8_t code[CODE_LEN])
{
	struct ex_module *module;
	uint64_t vaddr;

	module = ex_process_module(process, pc, &vaddr);
	return module != NULL && ex_module_bytes(module, vaddr, code,
	    CODE_LEN) == CODE_LEN &&
	    ex_process_is_original(process, pc + CODE_LEN);
}

/* Opened once, because it allocates memory and is needed for each hit. */
static bool
decoder(csh *handle)
{
	static csh opened;

	if (opened == 0 && (cs_open(CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN,
	    &opened) != CS_ERR_OK ||
	    cs_option(opened, CS_OPT_DETAIL, CS_OPT_ON) != CS_ERR_OK))
		return false;
	*handle = opened;
	return true;
}

void
ex_insn_explain(struct ex_process *process, const struct ex_sample *sample,
    uint64_t addr, uint32_t len, enum wp_access access,
    struct ex_insn *out)
{
	struct access a = {.sample = sample};
	uint8_t code[CODE_LEN];
	uint64_t pc = sample->ip;
	cs_insn *insn;
	csh handle;

	memset(out, 0, sizeof(*out));
	(void)ex_regs_get(&sample->user, PERF_REG_ARM64_PC, &pc);
	if (access == WP_EXEC) {
		out->confidence = EX_EXACT;
		out->pc = pc;
	}
	if (sample->user.abi == PERF_SAMPLE_REGS_ABI_32 ||
	    !read_code(process, pc, code) || !decoder(&handle) ||
	    cs_disasm(handle, code, sizeof(code), pc, 1, &insn) != 1)
		return;
	out->pc = pc;
	out->len = CODE_LEN;
	(void)snprintf(out->text, sizeof(out->text), "%s %s", insn->mnemonic,
	    insn->op_str);
	if (access != WP_EXEC) {
		a.insn = insn;
		a.detail = &insn->detail->arm64;
		find_kind(&a);
		find_data(&a);
		if (a.kind != KIND_NONE)
			find_access(&a, addr, len, out);
	}
	cs_free(insn, 1);
}

#endif
