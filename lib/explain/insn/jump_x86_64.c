/* jump_x86_64: jmp and jcc, near or short; jmp through a register or memory. */
#include <string.h>

#include "symbol/line.h"
#include "insn/jump.h"
#include "insn/jump_table.h"
#include "insn/sweep.h"
#include "module/plt.h"
#include "symbol/symbol.h"

bool
ex_jump_looks_like(const uint8_t *code, size_t len, uint64_t vaddr,
    struct ex_direct_jump *out)
{
	const unsigned opcode = code[0] == 0x0f ? 2 : 1;
	int32_t offset;

	if (code[0] == 0xeb || (code[0] & 0xf0) == 0x70) {
		if (len < 2)
			return false;
		out->end = vaddr + 2;
		offset = (code[1] ^ 0x80) - 0x80;
	} else {
		if (len < opcode + sizeof(offset) || (code[0] != 0xe9 &&
		    (code[0] != 0x0f || (code[1] & 0xf0) != 0x80)))
			return false;
		memcpy(&offset, code + opcode, sizeof(offset));
		out->end = vaddr + opcode + sizeof(offset);
	}
	out->at = vaddr;
	out->target = out->end + (uint64_t)(int64_t)offset;
	return true;
}

bool
ex_jump_is_code(struct ex_module *m, const struct ex_direct_jump *jump)
{
	ZydisDecoder decoder;

	return ex_sweep_decoder(ex_module_is_narrow(m), &decoder) &&
	    ex_sweep_before(m, &decoder, jump->end).len ==
	    jump->end - jump->at;
}

/* --- jumps through pointers --- */

/* ff /4: its prefixes are not counted. */
bool
ex_jump_looks_like_pointer(const uint8_t *code, size_t len, uint64_t vaddr,
    uint64_t *end)
{
	unsigned mod, rm, size = 2;

	if (len < 2 || code[0] != 0xff || (code[1] >> 3 & 7) != 4)
		return false;
	mod = code[1] >> 6;
	rm = code[1] & 7;
	if (mod != 3 && rm == 4) {
		if (len < 3)
			return false;
		size = 3;
		rm = code[2] & 7;
	}
	if (mod == 1)
		size += 1;
	else if (mod == 2 || (mod == 0 && rm == 5))
		size += 4;
	*end = vaddr + size;
	return size <= len;
}

/* Whether it goes through a table of offsets of its own function's places:
   add %rdx,%rax; notrack jmp *%rax. */
static bool
is_offset_table(struct ex_module *m, const ZydisDecoder *decoder,
    uint64_t vaddr, const struct ex_decoded *jump)
{
	const struct ex_sweep before = ex_sweep_before(m, decoder, vaddr);
	const struct ex_decoded *code;

	return before.len != 0 && before.certain &&
	    jump->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	    (code = ex_sweep_at(m, decoder, vaddr - before.len)) != NULL &&
	    code->insn.mnemonic == ZYDIS_MNEMONIC_ADD &&
	    code->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	    code->op[0].reg.value == jump->op[0].reg.value;
}

bool
ex_jump_is_table(struct ex_module *m, const ZydisDecoder *decoder,
    uint64_t vaddr, const struct ex_decoded *jump)
{
	return (jump->insn.attributes & ZYDIS_ATTRIB_HAS_NOTRACK) != 0 ||
	    is_offset_table(m, decoder, vaddr, jump);
}

/* Whether it goes through a table of addresses, jmp *table(,%rax,8), the first
   of which is one of its own function. */
static bool
is_address_table(struct ex_module *m, uint64_t start,
    const ZydisDecodedOperand *op)
{
	uint64_t first;

	return op->type == ZYDIS_OPERAND_TYPE_MEMORY &&
	    op->mem.base == ZYDIS_REGISTER_NONE && op->mem.scale == 8 &&
	    ex_module_bytes(m, (uint64_t)op->mem.disp.value, &first,
	    sizeof(first)) == sizeof(first) && first > start &&
	    ex_symbol_function_start(m, first, &first) && first == start;
}

/* jmp *slot(%rip) */
const char *
ex_jump_slot(struct ex_module *m, uint64_t end)
{
	uint8_t code[6];
	int32_t offset;

	if (end < sizeof(code) || ex_module_bytes(m, end - sizeof(code), code,
	    sizeof(code)) != sizeof(code) || code[0] != 0xff ||
	    code[1] != 0x25 || ex_module_is_narrow(m))
		return NULL;
	memcpy(&offset, code + 2, sizeof(offset));
	return ex_plt_slot(m, end + (uint64_t)(int64_t)offset);
}

/* The jump through a pointer that ends there, by code from its function's start
   on; NULL: there is none. */
static const struct ex_decoded *
pointer_jump(struct ex_module *m, const ZydisDecoder *decoder, uint64_t end,
    uint64_t *jump)
{
	const struct ex_sweep sweep = ex_sweep_before(m, decoder, end);
	const struct ex_decoded *code;

	*jump = end - sweep.len;
	if (sweep.len == 0 ||
	    (code = ex_sweep_at(m, decoder, *jump)) == NULL ||
	    code->insn.length != sweep.len ||
	    code->insn.meta.category != ZYDIS_CATEGORY_UNCOND_BR ||
	    code->insn.raw.imm[0].is_relative)
		return NULL;
	return code;
}

bool
ex_jump_leads_anywhere(struct ex_module *m, uint64_t start, uint64_t end,
    uint64_t *jump)
{
	const struct ex_decoded *code;
	ZydisDecoder decoder;

	if (!ex_sweep_decoder(ex_module_is_narrow(m), &decoder) ||
	    (code = pointer_jump(m, &decoder, end, jump)) == NULL ||
	    ex_jump_slot(m, end) != NULL)
		return false;
	switch (ex_line_jump(m, *jump, code->insn.length)) {
	case EX_JUMP_INSIDE:
		return false;
	case EX_JUMP_CALL:
		return true;
	case EX_JUMP_UNKNOWN:
		break;
	}
	return !ex_jump_is_table(m, &decoder, *jump, code) &&
	    !is_address_table(m, start, &code->op[0]);
}

/* --- addresses --- */

/* Position-independent 32-bit code forms addresses relative to a register, so
   the addresses do not appear in it. */
bool
ex_jump_sees_addresses(struct ex_module *m)
{
	return !ex_module_is_narrow(m);
}

/* lea address(%rip),...; and in code at a fixed place any four bytes. */
unsigned
ex_jump_addresses(const uint8_t *code, size_t len, uint64_t vaddr, bool fixed,
    uint64_t out[EX_ADDRESSES])
{
	uint32_t absolute;
	int32_t offset;
	unsigned n = 0;

	if (len >= 6 && code[0] == 0x8d && (code[1] & 0xc7) == 5) {
		memcpy(&offset, code + 2, sizeof(offset));
		out[n++] = vaddr + 6 + (uint64_t)(int64_t)offset;
	}
	if (fixed && len >= sizeof(absolute)) {
		memcpy(&absolute, code, sizeof(absolute));
		out[n++] = absolute;
	}
	return n;
}
