/*
 * forms: one thread writes a word in each way that x86 has, and logs what it
 * found before and after each:
 *
 *	form NAME|OLD|NEW
 *
 * in the order of the writes.  The word is the middle one of three; the others
 * are what wide stores write too.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct words {
	uint64_t low, word, high, more;
} words __attribute__((aligned(32)));

static uint64_t out[64][2];
static const char *name[64];
static unsigned n;

/* A write, with any of its operands in a, c and d, and the words' address. */
#define FORM(text, instruction, a_, c_, d_) do {			\
	uint64_t a = (a_), c = (c_), d = (d_);				\
	struct words *p = &words;					\
	out[n][0] = words.word;						\
	__asm__ volatile(instruction : "+a"(a), "+c"(c), "+d"(d) :	\
	    "S"(p) : "rbx", "rdi", "r8", "xmm0", "memory", "cc");	\
	out[n][1] = words.word;						\
	name[n++] = (text);						\
} while (0)

static void
stores(void)
{
	FORM("mov", "movq %%rcx,8(%%rsi)", 0, 0x1122334455667788, 0);
	FORM("mov imm", "movq $-2,8(%%rsi)", 0, 0, 0);
	FORM("mov imm again", "movq $-2,8(%%rsi)", 0, 0, 0);
	FORM("movl", "movl %%ecx,12(%%rsi)", 0, 0xdeadbeef, 0);
	FORM("movw", "movw %%cx,10(%%rsi)", 0, 0x1234, 0);
	FORM("movb high", "movb %%ch,9(%%rsi)", 0, 0x5600, 0);
	FORM("mov from below", "movq %%rcx,4(%%rsi)", 0, 0xaabbccddeeff0011, 0);
	FORM("mov over the end", "movq %%rcx,12(%%rsi)", 0,
	    0x0102030405060708, 0);
	FORM("movbe", "movq %%rcx,%%r8\n\tbswapq %%r8\n\tmovq %%r8,8(%%rsi)",
	    0, 0x1020304050607080, 0);
	FORM("movnti", "movnti %%rcx,8(%%rsi)\n\tsfence", 0, 77, 0);
	FORM("sete", "cmpq %%rax,%%rcx\n\tsete 8(%%rsi)", 3, 3, 0);
	FORM("setb", "cmpq %%rax,%%rcx\n\tsetb 11(%%rsi)", 4, 3, 0);
	FORM("stosq", "leaq 8(%%rsi),%%rdi\n\tstosq", 0x77777, 0, 0);
	FORM("movups", "movq %%rcx,%%xmm0\n\tpunpcklqdq %%xmm0,%%xmm0\n\t"
	    "movups %%xmm0,(%%rsi)", 0, 0x4242424242424242, 0);
	FORM("mov", "movq %%rcx,8(%%rsi)", 0, 1000, 0);
}

static void
computed(void)
{
	FORM("add", "addq %%rcx,8(%%rsi)", 0, 5, 0);
	FORM("addl imm", "addl $-7,8(%%rsi)", 0, 0, 0);
	FORM("adc set", "stc\n\tadcq %%rcx,8(%%rsi)", 0, 15, 0);
	FORM("mov", "movq %%rcx,8(%%rsi)", 0, 998, 0);
	FORM("adc clear", "clc\n\tadcq %%rcx,8(%%rsi)", 0, 16, 0);
	FORM("mov", "movq %%rcx,8(%%rsi)", 0, 1030, 0);
	FORM("sub", "subq $3,8(%%rsi)", 0, 0, 0);
	FORM("sbb set", "stc\n\tsbbl %%ecx,8(%%rsi)", 0, 15, 0);
	FORM("mov", "movq %%rcx,8(%%rsi)", 0, 1011, 0);
	FORM("inc", "incq 8(%%rsi)", 0, 0, 0);
	FORM("dec", "decb 8(%%rsi)", 0, 0, 0);
	FORM("and", "andl $0xffff,8(%%rsi)", 0, 0, 0);
	FORM("or", "orq %%rcx,8(%%rsi)", 0, 0xf0f0000, 0);
	FORM("xor", "xorw $0x55aa,8(%%rsi)", 0, 0, 0);
	FORM("neg", "negq 8(%%rsi)", 0, 0, 0);
	FORM("not", "notq 8(%%rsi)", 0, 0, 0);
	FORM("shl", "shlq $3,8(%%rsi)", 0, 0, 0);
	FORM("shl cl", "shll %%cl,8(%%rsi)", 0, 5, 0);
	FORM("shr", "shrq 8(%%rsi)", 0, 0, 0);
	FORM("sar", "sarq $2,8(%%rsi)", 0, 0, 0);
	FORM("rol", "rolq $9,8(%%rsi)", 0, 0, 0);
	FORM("ror", "rorw $3,8(%%rsi)", 0, 0, 0);
	FORM("bts", "btsq $40,8(%%rsi)", 0, 0, 0);
	FORM("btr", "btrq %%rcx,8(%%rsi)", 0, 40, 0);
	FORM("btc", "btcl $3,8(%%rsi)", 0, 0, 0);
	FORM("lock add", "lock addq $1,8(%%rsi)", 0, 0, 0);
	FORM("lock or", "lock orl $2,8(%%rsi)", 0, 0, 0);
	FORM("add to unchanged", "addq $0,8(%%rsi)", 0, 0, 0);
}

static void
exchanged(void)
{
	FORM("mov", "movq %%rcx,8(%%rsi)", 0, 500, 0);
	FORM("cmpxchg", "lock cmpxchgq %%rcx,8(%%rsi)", 500, 600, 0);
	FORM("cmpxchg failing", "lock cmpxchgq %%rcx,8(%%rsi)", 500, 700, 0);
	FORM("cmpxchg16b", "movq $7,%%rbx\n\tmovq (%%rsi),%%rax\n\t"
	    "movq 8(%%rsi),%%rdx\n\tlock cmpxchg16b (%%rsi)", 0, 900, 0);
	FORM("xchg", "xchgq %%rcx,8(%%rsi)", 0, 800, 0);
	FORM("mov", "movq %%rcx,8(%%rsi)", 0, 10, 0);
	FORM("xadd", "lock xaddq %%rcx,8(%%rsi)", 0, 11, 0);
	FORM("mov", "movq %%rcx,8(%%rsi)", 0, 12, 0);
}

int
main(void)
{
	words.word = 40;
	stores();
	computed();
	exchanged();
	for (unsigned i = 0; i < n; i++)
		printf("form %s|%#llx|%#llx\n", name[i],
		    (unsigned long long)out[i][0],
		    (unsigned long long)out[i][1]);
	return 0;
}
