/*
 * att: an x86 instruction as text, in AT&T syntax.
 */
#include "att.h"

#include <stdbool.h>
#include <string.h>

typedef ZydisDecodedInstruction insn_t;
typedef ZydisDecodedOperand operand_t;

struct text {
	char *at;		/* where the next byte goes */
	size_t room;		/* bytes from there, the NUL included */
};

static void
put_bytes(struct text *t, const char *from, size_t n)
{
	if (n >= t->room)
		n = t->room - 1;
	memcpy(t->at, from, n);
	t->at += n;
	t->room -= n;
	*t->at = '\0';
}

static void
put(struct text *t, const char *from)
{
	put_bytes(t, from, strlen(from));
}

static void
put_char(struct text *t, char c)
{
	put_bytes(t, &c, 1);
}

static void
put_hex(struct text *t, uint64_t value)
{
	char digits[16];
	size_t n = 0;

	do
		digits[sizeof(digits) - ++n] = "0123456789abcdef"[value & 15];
	while ((value >>= 4) != 0);
	put(t, "0x");
	put_bytes(t, digits + sizeof(digits) - n, n);
}

/* A name of Intel's, and binutils' for the same. */
struct alias {
	const char *intel, *att;
};

static const struct alias conditions[] = {
	{ "z", "e" }, { "nz", "ne" }, { "nb", "ae" }, { "nbe", "a" },
	{ "nl", "ge" }, { "nle", "g" }, { NULL, NULL },
};

static const struct alias strings[] = {
	{ "stosb", "stos" }, { "stosw", "stos" }, { "stosd", "stos" },
	{ "stosq", "stos" }, { "lodsb", "lods" }, { "lodsw", "lods" },
	{ "lodsd", "lods" }, { "lodsq", "lods" }, { "scasb", "scas" },
	{ "scasw", "scas" }, { "scasd", "scas" }, { "scasq", "scas" },
	{ "movsd", "movsl" }, { "cmpsd", "cmpsl" }, { NULL, NULL },
};

static const struct alias others[] = {
	{ "cbw", "cbtw" }, { "cwde", "cwtl" }, { "cdqe", "cltq" },
	{ "cwd", "cwtd" }, { "cdq", "cltd" }, { "cqo", "cqto" },
	{ "pushfq", "pushf" }, { "popfq", "popf" }, { "iretd", "iret" },
	{ "movsx", "movs" }, { "movsxd", "movs" }, { "movzx", "movz" },
	{ NULL, NULL },
};

/* AT&T's assembler took these two by mistake for each other where the first
   operand is %st, and so does everything since. */
static const struct alias reversed[] = {
	{ "fsub", "fsubr" }, { "fsubr", "fsub" }, { "fsubp", "fsubrp" },
	{ "fsubrp", "fsubp" }, { "fdiv", "fdivr" }, { "fdivr", "fdiv" },
	{ "fdivp", "fdivrp" }, { "fdivrp", "fdivp" }, { NULL, NULL },
};

static const char *const predicates[8] = {
	"eq", "lt", "le", "unord", "neq", "nlt", "nle", "ord",
};

static const char *
att_name(const struct alias *alias, const char *intel)
{
	for (; alias->intel != NULL; alias++)
		if (strcmp(alias->intel, intel) == 0)
			return alias->att;
	return intel;
}

static char
size_letter(unsigned bits)
{
	return bits == 8 ? 'b' : bits == 16 ? 'w' : bits == 32 ? 'l' : 'q';
}

/* What an operand lists apart from what is part of the name or implied. */
static bool
is_shown(const insn_t *insn, const operand_t *op)
{
	if (op->encoding == ZYDIS_OPERAND_ENCODING_MASK)
		return false;
	switch (insn->meta.category) {
	case ZYDIS_CATEGORY_WIDENOP:
		return op->id == 0;
	case ZYDIS_CATEGORY_CLZERO:
		return false;
	case ZYDIS_CATEGORY_STRINGOP:
		return op->type == ZYDIS_OPERAND_TYPE_MEMORY ||
		    (op->type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    ZydisRegisterGetId(op->reg.value) == 0);
	case ZYDIS_CATEGORY_SHIFT:
	case ZYDIS_CATEGORY_ROTATE:
		if (op->type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
			return op->visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT;
		break;
	default:
		break;
	}
	return op->visibility != ZYDIS_OPERAND_VISIBILITY_HIDDEN ||
	    (insn->mnemonic == ZYDIS_MNEMONIC_XLAT &&
	    op->type == ZYDIS_OPERAND_TYPE_MEMORY);
}

static bool
is_prefix_ignored(const insn_t *insn, uint8_t value)
{
	for (unsigned i = 0; i < insn->raw.prefix_count; i++)
		if (insn->raw.prefixes[i].value == value &&
		    insn->raw.prefixes[i].type == ZYDIS_PREFIX_TYPE_IGNORED)
			return true;
	return false;
}

static void
put_prefixes(struct text *t, const insn_t *insn)
{
	static const struct {
		ZydisInstructionAttributes attribute;
		const char *text;
	} prefix[] = {
		{ ZYDIS_ATTRIB_HAS_NOTRACK, "notrack " },
		{ ZYDIS_ATTRIB_HAS_BND, "bnd " },
		{ ZYDIS_ATTRIB_HAS_XACQUIRE, "xacquire " },
		{ ZYDIS_ATTRIB_HAS_XRELEASE, "xrelease " },
		{ ZYDIS_ATTRIB_HAS_LOCK, "lock " },
		{ ZYDIS_ATTRIB_HAS_REP, "rep " },
		{ ZYDIS_ATTRIB_HAS_REPE, "repz " },
		{ ZYDIS_ATTRIB_HAS_REPNE, "repnz " },
	};

	for (size_t i = 0; i < sizeof(prefix) / sizeof(prefix[0]); i++)
		if (insn->attributes & prefix[i].attribute)
			put(t, prefix[i].text);
	if (insn->meta.category == ZYDIS_CATEGORY_RET &&
	    is_prefix_ignored(insn, 0xf3))
		put(t, "repz ");
	for (unsigned i = 0; i < insn->raw.prefix_count; i++)
		if (insn->raw.prefixes[i].value == 0x66 &&
		    insn->raw.prefixes[i].type == ZYDIS_PREFIX_TYPE_IGNORED)
			put(t, "data16 ");
	if (is_prefix_ignored(insn, 0x2e))
		put(t, "cs ");
}

/* cmpps $1 is called cmpltps.  Result: is the immediate part of the name? */
static bool
put_predicate(struct text *t, const insn_t *insn, const operand_t *op)
{
	const char *name = ZydisMnemonicGetString(insn->mnemonic);
	size_t stem = strncmp(name, "vp", 2) == 0 ? 5 : *name == 'v' ? 4 : 3;
	const operand_t *last = &op[insn->operand_count_visible - 1];

	if (strncmp(name + stem - 3, "cmp", 3) != 0 ||
	    insn->meta.category == ZYDIS_CATEGORY_STRINGOP ||
	    insn->operand_count_visible < 3 ||
	    last->type != ZYDIS_OPERAND_TYPE_IMMEDIATE ||
	    last->imm.value.u > 7 ||
	    (stem == 5 && (last->imm.value.u & 3) == 3))
		return false;
	put_bytes(t, name, stem);
	put(t, predicates[last->imm.value.u]);
	put(t, name + stem);
	return true;
}

/* The size of memory that no register tells: b, w, l, q; 0: not needed. */
static char
size_suffix(const insn_t *insn, const operand_t *op)
{
	const operand_t *memory = NULL;

	for (unsigned i = 0; i < insn->operand_count_visible; i++) {
		if (op[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
			memory = &op[i];
		else if (op[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    op[i].visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT &&
		    insn->meta.category != ZYDIS_CATEGORY_WIDENOP &&
		    insn->meta.category != ZYDIS_CATEGORY_CONVERT)
			return 0;
	}
	if (memory == NULL)
		return 0;
	switch (insn->meta.category) {
	case ZYDIS_CATEGORY_BINARY:
	case ZYDIS_CATEGORY_LOGICAL:
	case ZYDIS_CATEGORY_SHIFT:
	case ZYDIS_CATEGORY_ROTATE:
	case ZYDIS_CATEGORY_BITBYTE:
	case ZYDIS_CATEGORY_DATAXFER:
	case ZYDIS_CATEGORY_WIDENOP:
		return size_letter(memory->size);
	case ZYDIS_CATEGORY_CONVERT:
		return strstr(ZydisMnemonicGetString(insn->mnemonic), "si2") ?
		    size_letter(memory->size) : 0;
	default:
		return 0;
	}
}

/* flds, fldl, fldt; filds, fildl, fildll. */
static const char *
x87_suffix(const insn_t *insn, const operand_t *op)
{
	const char *name = ZydisMnemonicGetString(insn->mnemonic);
	bool integer = name[1] == 'i';

	if (insn->operand_count_visible == 0 || name[1] == 'n' ||
	    strstr(name, "env") != NULL || strstr(name, "cw") != NULL ||
	    strstr(name, "rstor") != NULL)
		return "";
	for (unsigned i = 0; i < insn->operand_count_visible; i++) {
		if (op[i].type != ZYDIS_OPERAND_TYPE_MEMORY)
			continue;
		switch (op[i].size) {
		case 16:
			return "s";
		case 32:
			return integer ? "l" : "s";
		case 64:
			return integer ? "ll" : "l";
		default:
			return name[2] == 'b' || name[1] == 'b' ? "" : "t";
		}
	}
	return "";
}

/* Names that follow their category's rule. */
static void
put_other_name(struct text *t, const insn_t *insn, const operand_t *op)
{
	const char *name = ZydisMnemonicGetString(insn->mnemonic);
	size_t stem = 0;
	char suffix;

	switch (insn->meta.category) {
	case ZYDIS_CATEGORY_COND_BR:
		stem = *name == 'j' ? 1 : 0;
		break;
	case ZYDIS_CATEGORY_SETCC:
		stem = 3;
		break;
	case ZYDIS_CATEGORY_CMOV:
		stem = 4;
		break;
	case ZYDIS_CATEGORY_STRINGOP:
		put(t, att_name(strings, name));
		return;
	case ZYDIS_CATEGORY_X87_ALU:
		if ((insn->opcode == 0xdc || insn->opcode == 0xde) &&
		    insn->raw.modrm.mod == 3)
			name = att_name(reversed, name);
		put(t, name);
		put(t, x87_suffix(insn, op));
		return;
	default:
		if (insn->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR &&
		    insn->mnemonic != ZYDIS_MNEMONIC_IRETQ)
			put(t, "l");
		put(t, att_name(others, name));
		if ((suffix = size_suffix(insn, op)) != 0)
			put_char(t, suffix);
		return;
	}
	put_bytes(t, name, stem);
	put(t, stem != 0 ? att_name(conditions, name + stem) : name);
}

static void
put_name(struct text *t, const insn_t *insn, const operand_t *op)
{
	const char *name = ZydisMnemonicGetString(insn->mnemonic);

	switch (insn->mnemonic) {
	case ZYDIS_MNEMONIC_NOP:
		if (insn->operand_width == 16 && insn->length == 2) {
			put(t, "xchg %ax,%ax");
			return;
		}
		break;
	case ZYDIS_MNEMONIC_MOVSX:
	case ZYDIS_MNEMONIC_MOVSXD:
	case ZYDIS_MNEMONIC_MOVZX:
		put(t, att_name(others, name));
		put_char(t, size_letter(op[1].size));
		put_char(t, size_letter(op[0].size));
		return;
	case ZYDIS_MNEMONIC_MOV:
		if (insn->raw.imm[0].size == 64 || insn->raw.disp.size == 64) {
			put(t, "movabs");
			return;
		}
		break;
	case ZYDIS_MNEMONIC_CRC32:
		put(t, name);
		put_char(t, size_letter(op[1].size));
		return;
	case ZYDIS_MNEMONIC_PUSH:
	case ZYDIS_MNEMONIC_POP:
		put(t, name);
		put(t, insn->operand_width == 16 ? "w" : "");
		return;
	default:
		break;
	}
	put_other_name(t, insn, op);
}

static void
put_name_of(struct text *t, ZydisRegister reg)
{
	put_char(t, '%');
	put(t, ZydisRegisterGetString(reg));
}

static void
put_register(struct text *t, const operand_t *op)
{
	ZydisRegister reg = op->reg.value;

	if (ZydisRegisterGetClass(reg) != ZYDIS_REGCLASS_X87) {
		put_name_of(t, reg);
		return;
	}
	put(t, "%st");
	if (op->visibility != ZYDIS_OPERAND_VISIBILITY_IMPLICIT) {
		put_char(t, '(');
		put_char(t, (char)('0' + ZydisRegisterGetId(reg)));
		put_char(t, ')');
	}
}

static void
put_memory(struct text *t, const insn_t *insn, const operand_t *op)
{
	const ZydisDecodedOperandMem *m = &op->mem;
	bool based = m->base != ZYDIS_REGISTER_NONE;
	bool indexed = m->index != ZYDIS_REGISTER_NONE;
	uint64_t disp = (uint64_t)m->disp.value;

	if (m->segment == ZYDIS_REGISTER_FS ||
	    m->segment == ZYDIS_REGISTER_GS ||
	    op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN) {
		put_name_of(t, m->segment);
		put_char(t, ':');
	}
	if (!based && !indexed) {
		put_hex(t, insn->address_width == 32 ? (uint32_t)disp : disp);
		return;
	}
	if (m->disp.has_displacement) {
		put(t, m->disp.value < 0 ? "-" : "");
		put_hex(t, m->disp.value < 0 ? -disp : disp);
	}
	put_char(t, '(');
	if (based)
		put_name_of(t, m->base);
	if (indexed) {
		put_char(t, ',');
		put_name_of(t, m->index);
		put_char(t, ',');
		put_char(t, (char)('0' + m->scale));
	}
	put_char(t, ')');
}

/* An immediate is as wide as what it is combined with. */
static void
put_immediate(struct text *t, const insn_t *insn, const operand_t *op,
    uint64_t pc)
{
	unsigned width = insn->operand_width;
	uint64_t value = op->imm.value.u;

	if (op->imm.is_relative) {
		put_hex(t, pc + insn->length + value);
		return;
	}
	if (!op->imm.is_signed)
		width = op->size;
	if (width < 64)
		value &= (UINT64_C(1) << width) - 1;
	put_char(t, '$');
	put_hex(t, value);
}

static void
put_operand(struct text *t, const insn_t *insn, const operand_t *op,
    uint64_t pc)
{
	bool branch = insn->meta.category == ZYDIS_CATEGORY_CALL ||
	    insn->meta.category == ZYDIS_CATEGORY_UNCOND_BR;

	switch (op->type) {
	case ZYDIS_OPERAND_TYPE_REGISTER:
		put(t, branch ? "*" : "");
		put_register(t, op);
		break;
	case ZYDIS_OPERAND_TYPE_MEMORY:
		put(t, branch ? "*" : "");
		put_memory(t, insn, op);
		break;
	case ZYDIS_OPERAND_TYPE_IMMEDIATE:
		put_immediate(t, insn, op, pc);
		break;
	default:
		put_char(t, '$');
		put_hex(t, op->ptr.segment);
		put(t, ",$");
		put_hex(t, op->ptr.offset);
	}
}

static const char *
broadcast_text(unsigned vector, unsigned element)
{
	switch (element != 0 ? vector / element : 0) {
	case 2:
		return "{1to2}";
	case 4:
		return "{1to4}";
	case 8:
		return "{1to8}";
	case 16:
		return "{1to16}";
	case 32:
		return "{1to32}";
	default:
		return "";
	}
}

/* What AVX-512 adds to an operand: {%k1}{z} to the destination, {1to8} to
   memory. */
static void
put_decorations(struct text *t, const insn_t *insn, const operand_t *op)
{
	ZydisRegister mask = insn->avx.mask.reg;

	if (op->type == ZYDIS_OPERAND_TYPE_MEMORY &&
	    insn->avx.broadcast.mode != ZYDIS_BROADCAST_MODE_INVALID &&
	    !insn->avx.broadcast.is_static)
		put(t, broadcast_text(insn->avx.vector_length, op->size));
	if (op->id != 0 || mask == ZYDIS_REGISTER_NONE ||
	    mask == ZYDIS_REGISTER_K0)
		return;
	put_char(t, '{');
	put_name_of(t, mask);
	put(t, insn->raw.evex.z ? "}{z}" : "}");
}

void
ex_att_text(const insn_t *insn, const operand_t *op, uint64_t pc, char *to,
    size_t size)
{
	struct text t = { to, size };
	unsigned n = insn->operand_count, shown = 0;
	bool forward = insn->mnemonic == ZYDIS_MNEMONIC_ENTER;

	if (size == 0)
		return;
	*to = '\0';
	put_prefixes(&t, insn);
	if (put_predicate(&t, insn, op))
		n = insn->operand_count_visible - 1;
	else
		put_name(&t, insn, op);
	for (unsigned i = 0; i < n; i++) {
		const operand_t *next = &op[forward ? i : n - 1 - i];

		if (!is_shown(insn, next))
			continue;
		put(&t, shown++ == 0 ? " " : ",");
		put_operand(&t, insn, next, pc);
		put_decorations(&t, insn, next);
	}
}
