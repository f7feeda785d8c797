/* jump_x86_64: jmp and jcc, near or short. */
#include <string.h>

#include "insn/jump.h"
#include "insn/sweep.h"

bool
ex_jump_looks_like(const uint8_t *code, size_t len, uint64_t vaddr,
    struct ex_jump *out)
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
ex_jump_is_code(struct ex_module *m, const struct ex_jump *jump)
{
	ZydisDecoder decoder;

	return ex_sweep_decoder(ex_module_is_narrow(m), &decoder) &&
	    ex_sweep_before(m, &decoder, jump->end).len ==
	    jump->end - jump->at;
}
