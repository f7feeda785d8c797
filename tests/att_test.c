/*
 * att: instructions as text, against a table and against objdump.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "att.h"

#define LINES 100000		/* of objdump's, compared at most */

static const struct {
	const char *bytes, *text;
} rows[] = {
	{ "48893d692d0000", "mov %rdi,0x2d69(%rip)" },
	{ "48893d97d2ffff", "mov %rdi,-0x2d69(%rip)" },
	{ "488945f8", "mov %rax,-0x8(%rbp)" },
	{ "c60000", "movb $0x0,(%rax)" },
	{ "66c740083412", "movw $0x1234,0x8(%rax)" },
	{ "c7042500104000ffffffff", "movl $0xffffffff,0x401000" },
	{ "48c700ffffffff", "movq $0xffffffffffffffff,(%rax)" },
	{ "48b88877665544332211", "movabs $0x1122334455667788,%rax" },
	{ "8304b8ff", "addl $0xffffffff,(%rax,%rdi,4)" },
	{ "ff04fd10000000", "incl 0x10(,%rdi,8)" },
	{ "64488b042528000000", "mov %fs:0x28,%rax" },
	{ "0fb607", "movzbl (%rdi),%eax" },
	{ "4c0fbec0", "movsbq %al,%r8" },
	{ "486307", "movslq (%rdi),%rax" },
	{ "f048ff07", "lock incq (%rdi)" },
	{ "f00fb10f", "lock cmpxchg %ecx,(%rdi)" },
	{ "8707", "xchg %eax,(%rdi)" },
	{ "d127", "shll (%rdi)" },
	{ "48d32f", "shrq %cl,(%rdi)" },
	{ "c12f04", "shrl $0x4,(%rdi)" },
	{ "0f9407", "sete (%rdi)" },
	{ "480f4607", "cmovbe (%rdi),%rax" },
	{ "55", "push %rbp" },
	{ "ff35eacf1a00", "push 0x1acfea(%rip)" },
	{ "6aff", "push $0xffffffffffffffff" },
	{ "9c", "pushf" },
	{ "c3", "ret" },
	{ "f3c3", "repz ret" },
	{ "c9", "leave" },
	{ "c8100002", "enter $0x10,$0x2" },
	{ "e8fbffffff", "call 0x1000" },
	{ "74fe", "je 0x1000" },
	{ "ff15e22e0000", "call *0x2ee2(%rip)" },
	{ "ffd0", "call *%rax" },
	{ "3effe0", "notrack jmp *%rax" },
	{ "f348ab", "rep stos %rax,%es:(%rdi)" },
	{ "f3a5", "rep movsl %ds:(%rsi),%es:(%rdi)" },
	{ "f3a6", "repz cmpsb %es:(%rdi),%ds:(%rsi)" },
	{ "f2ae", "repnz scas %es:(%rdi),%al" },
	{ "ac", "lods %ds:(%rsi),%al" },
	{ "dd07", "fldl (%rdi)" },
	{ "db3f", "fstpt (%rdi)" },
	{ "df2f", "fildll (%rdi)" },
	{ "de07", "fiadds (%rdi)" },
	{ "d93f", "fnstcw (%rdi)" },
	{ "d8c1", "fadd %st(1),%st" },
	{ "dee9", "fsubrp %st,%st(1)" },
	{ "0f1107", "movups %xmm0,(%rdi)" },
	{ "f20f1107", "movsd %xmm0,(%rdi)" },
	{ "f2480f2a07", "cvtsi2sdq (%rdi),%xmm0" },
	{ "c5fdc20701", "vcmpltpd (%rdi),%ymm0,%ymm0" },
	{ "62f1fec97f07", "(bad)" },
	{ "62f1fe497f07", "vmovdqu64 %zmm0,(%rdi){%k1}" },
	{ "62f17cd95807", "vaddps (%rdi){1to16},%zmm0,%zmm0{%k1}{z}" },
	{ "62f37d203f0700", "vpcmpeqb (%rdi),%ymm16,%k0" },
	{ "90", "nop" },
	{ "6690", "xchg %ax,%ax" },
	{ "66662e0f1f840000000000", "data16 cs nopw 0x0(%rax,%rax,1)" },
	{ "f30f1efa", "endbr64" },
};

static void
decoder_init(ZydisDecoder *decoder)
{
	assert_true(ZYAN_SUCCESS(ZydisDecoderInit(decoder,
	    ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)));
}

/* "48 89 07" or "488907"; ends at what is neither a digit nor a single space.
   Result: how many bytes. */
static size_t
read_bytes(const char *from, uint8_t bytes[32])
{
	size_t n = 0;
	unsigned byte;

	while (n < 32 && isxdigit((unsigned char)from[0]) &&
	    sscanf(from, "%2x", &byte) == 1) {
		bytes[n++] = (uint8_t)byte;
		from += 2;
		if (*from == ' ')
			from++;
	}
	return n;
}

/* The text of what stands at pc; false: that is not one whole instruction. */
static bool
text_of(const ZydisDecoder *decoder, const char *hex, uint64_t pc, char *to,
    size_t size)
{
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	uint8_t bytes[32];
	size_t n = read_bytes(hex, bytes);

	if (ZYAN_FAILED(ZydisDecoderDecodeFull(decoder, bytes, n, &insn, op)) ||
	    insn.length != n)
		return false;
	ex_att_text(&insn, op, pc, to, size);
	return true;
}

static void
prints_as_binutils_do(void **state)
{
	ZydisDecoder decoder;
	char text[96];

	(void)state;
	decoder_init(&decoder);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!text_of(&decoder, rows[i].bytes, 0x1000, text,
		    sizeof(text)))
			strcpy(text, "(bad)");
		assert_string_equal(text, rows[i].text);
	}
}

static void
cuts_off_what_is_too_long(void **state)
{
	const char whole[] = "mov %rdi,0x2d69(%rip)";
	ZydisDecoder decoder;
	char text[sizeof(whole) + 1];

	(void)state;
	decoder_init(&decoder);
	for (size_t size = 1; size <= sizeof(whole); size++) {
		memset(text, '#', sizeof(text));
		assert_true(text_of(&decoder, "48893d692d0000", 0, text, size));
		assert_int_equal(strlen(text), size - 1);
		assert_memory_equal(text, whole, size - 1);
		assert_int_equal(text[size], '#');
	}
}

/* objdump's text as this prints it: single spaces, no comment, no symbol, 0x
   before the target of a branch. */
static void
normalize(char *from, char *to, size_t size)
{
	size_t n = 0;

	from[strcspn(from, "#<\n")] = '\0';
	for (; *from != '\0' && n < size - 3; from++) {
		if (from[0] == ' ' && (from[1] == ' ' || from[1] == '\0'))
			continue;
		to[n++] = *from;
		/* all that follows is a number: where a branch goes */
		if (from[0] == ' ' && strspn(from + 1, "0123456789abcdef ") ==
		    strlen(from + 1)) {
			to[n++] = '0';
			to[n++] = 'x';
		}
	}
	to[n] = '\0';
}

static void
agrees_with_objdump(void **state)
{
	ZydisDecoder decoder;
	Dl_info libc;
	char command[512], line[1024], text[96], theirs[1024];
	unsigned same = 0, all = 0;
	FILE *objdump;

	(void)state;
	decoder_init(&decoder);
	assert_true(dladdr(dlsym(RTLD_DEFAULT, "printf"), &libc) != 0);
	(void)snprintf(command, sizeof(command),
	    "objdump -d -w '%s' 2>/dev/null", libc.dli_fname);
	objdump = popen(command, "r");
	assert_non_null(objdump);
	while (all < LINES && fgets(line, sizeof(line), objdump) != NULL) {
		/* "   26000:\t55 48 ...   \tpush   %rbp" */
		char *bytes = strchr(line, '\t');
		char *asm_text = bytes == NULL ? NULL : strchr(bytes + 1, '\t');

		if (asm_text == NULL)
			continue;
		normalize(asm_text + 1, theirs, sizeof(theirs));
		all++;
		if (text_of(&decoder, bytes + 1, strtoull(line, NULL, 16),
		    text, sizeof(text)) && strcmp(text, theirs) == 0)
			same++;
		else if (all - same < 20)
			print_message("%s is not %s\n", text, theirs);
	}
	(void)pclose(objdump);
	if (all == 0) {
		print_message("no objdump here\n");
		skip();
	}
	print_message("%u of %u the same\n", same, all);
	assert_true(same >= all / 100 * 95);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prints_as_binutils_do),
		cmocka_unit_test(cuts_off_what_is_too_long),
		cmocka_unit_test(agrees_with_objdump),
	};

	return cmocka_run_group_tests_name("att", tests, NULL, NULL);
}
