/* syscall_number: the number that the instruction before a system call sets. */
#include "hit/syscall_number.h"

#include <Zydis/Zydis.h>
#include <limits.h>
#include <string.h>

#include "module/module_private.h"
#include "debug/symbol.h"

enum {
	CALL_LEN = 2,		/* of syscall */
	MOV_LEN = 5,		/* of mov $number,%eax */
	XOR_LEN = 2,		/* of xor %eax,%eax */
	FUNCTION_MAX = 8192,	/* bytes: no others are looked through */
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
    uint64_t call)
{
	ZydisDecodedInstruction insn;
	ZydisDecoder decoder;
	bool met = false;

	if (ZYAN_FAILED(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64,
	    ZYDIS_STACK_WIDTH_64)))
		return false;
	for (size_t at = 0; at < len; at += insn.length) {
		if (ZYAN_FAILED(ZydisDecoderDecodeInstruction(&decoder, NULL,
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

int
ex_syscall_number(struct ex_process *process, uint64_t pc)
{
	uint8_t code[FUNCTION_MAX];
	struct ex_function f;
	struct ex_module *m;
	uint64_t vaddr, call;
	size_t len, before, at;
	int number;

	m = ex_process_module(process, pc, &vaddr);
	if (m == NULL || !ex_symbol_function(m, vaddr - 1, &f) ||
	    f.end < vaddr || f.end - f.start > sizeof(code) ||
	    vaddr - f.start < CALL_LEN)
		return -1;
	len = f.end - f.start;
	call = vaddr - CALL_LEN;
	at = call - f.start;
	if (ex_module_bytes(m, f.start, code, len) != len ||
	    code[at] != 0x0f || code[at + 1] != 0x05)
		return -1;
	before = number_before(code + at, at, &number);
	return before > 0 && is_only_way(code, len, f.start, call - before,
	    call) ? number : -1;
}
