/*
 * insn: scenarios of code, registers and a watch, with the instruction that
 * must be found for each.  The code belongs to this program and never runs.
 */
#include "test.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "insn/insn.h"
#include "space/space.h"

enum {
	AX = PERF_REG_X86_AX, BX = PERF_REG_X86_BX, CX = PERF_REG_X86_CX,
	DX = PERF_REG_X86_DX, SI = PERF_REG_X86_SI, DI = PERF_REG_X86_DI,
	BP = PERF_REG_X86_BP, SP = PERF_REG_X86_SP, R8 = PERF_REG_X86_R8,
	FLAGS = PERF_REG_X86_FLAGS,
};

enum { CF = 1 << 0, ZF = 1 << 6, SF = 1 << 7, DF = 1 << 10, OF = 1 << 11 };

struct scenario {
	const char *name;
	const uint8_t *insn, *after;	/* the instruction, what follows it */
	bool rep;		/* sampled at the instruction, not after it */
	const uint8_t *at;	/* sampled here instead */
	uint64_t reg[PERF_REG_X86_64_MAX];
	const uint8_t *top;	/* what the stack pointer points to */
	bool no_stack;		/* no stack was copied */
	bool no_regs;		/* no registers were sampled */
	uint64_t addr;		/* the watch */
	const void *data;	/* or: it is on this */
	uint32_t len;		/* 0: 8 */
	char access;		/* 0: 'w' */

	enum ex_confidence is;	/* what must be found */
	const char *text;	/* NULL: not looked at */
	bool reads, writes;
	uint64_t first;		/* byte touched; 0: the watch's */
	uint32_t size;		/* 0: not looked at */
	bool late;		/* which bytes cannot be known */
	bool jump;		/* only a jump through them is against it */
	bool known, immediate;	/* the watched bytes' new value */
	uint64_t value;
};

__attribute__((used))
static const uint64_t datum[4];

#define STACK		0x7ffe00001000

/* X(name, code before, the instruction, code after, scenario) */
#define SCENARIOS(X)							\
/* stores, and what they stored */					\
X(store, "nop", "mov %rdi,0x10(%rsi)", "ret",				\
	.reg = { [SI] = 0x1000, [DI] = 0x1122334455667788 },		\
	.addr = 0x1010, .is = EX_EXACT, .text = "mov %rdi, 0x10(%rsi)",	\
	.writes = true, .size = 8,					\
	.known = true, .value = 0x1122334455667788)			\
X(store_scaled, "nop", "movw $0xbeef,-0x8(%rsi,%rcx,4)", "ret",		\
	.reg = { [SI] = 0x1000, [CX] = 4 }, .addr = 0x1008, .len = 2,	\
	.is = EX_EXACT, .text = "movw $-0x4111, -0x8(%rsi,%rcx,4)",	\
	.writes = true, .size = 2,					\
	.known = true, .immediate = true, .value = 0xbeef)		\
X(store_negative, "nop", "movq $-2,(%rsi)", "ret",			\
	.reg = { [SI] = 0x1000 }, .addr = 0x1000, .is = EX_EXACT,	\
	.text = "movq $-0x2, (%rsi)", .writes = true,	\
	.size = 8, .known = true, .immediate = true,			\
	.value = 0xfffffffffffffffe)					\
X(store_rip, "nop", "mov %eax,datum+4(%rip)", "ret",			\
	.reg = { [AX] = 7 }, .data = (const char *)datum + 4, .len = 4,	\
	.is = EX_EXACT, .writes = true, .size = 4,			\
	.known = true, .value = 7)					\
X(store_high_byte, "nop", "mov %ah,(%rsi)", "ret",			\
	.reg = { [SI] = 0x1003, [AX] = 0x1234 }, .addr = 0x1003,	\
	.len = 1, .is = EX_EXACT, .text = "mov %ah, (%rsi)",		\
	.writes = true, .size = 1, .known = true, .value = 0x12)	\
X(store_begins_below, "nop", "mov %rax,(%rsi)", "ret",			\
	.reg = { [SI] = 0x1000, [AX] = 0x1122334455667788 },		\
	.addr = 0x1006, .len = 2, .is = EX_EXACT, .writes = true,	\
	.first = 0x1000, .size = 8, .known = true, .value = 0x1122)	\
X(store_begins_above, "nop", "mov %eax,(%rsi)", "ret",			\
	.reg = { [SI] = 0x1006 }, .addr = 0x1000, .is = EX_EXACT,	\
	.writes = true, .first = 0x1006, .size = 4)			\
X(store_part, "nop", "mov %al,(%rsi)", "ret",				\
	.reg = { [SI] = 0x1003 }, .addr = 0x1000, .is = EX_EXACT,	\
	.writes = true, .first = 0x1003, .size = 1)			\
X(store_vector, "nop", "movups %xmm0,(%rsi)", "ret",			\
	.reg = { [SI] = 0x0ff8 }, .addr = 0x1000, .is = EX_EXACT,	\
	.text = "movups %xmm0, (%rsi)", .writes = true,			\
	.first = 0xff8, .size = 16)					\
X(store_masked, "nop", "vpmaskmovd %ymm0,%ymm1,(%rsi)", "ret",		\
	.reg = { [SI] = 0x1000 }, .addr = 0x1010,			\
	.is = EX_ADDRESS_UNVERIFIED, .writes = true)			\
X(store_opmask, "nop", "vmovdqu64 %zmm0,(%rsi){%k1}", "ret",		\
	.reg = { [SI] = 0x1000 }, .addr = 0x1010,			\
	.is = EX_ADDRESS_UNVERIFIED, .writes = true)			\
X(store_address32, "nop", "mov %eax,-1(%esi)", "ret",			\
	.reg = { [SI] = 0xffff00001001, [AX] = 5 }, .addr = 0x1000,	\
	.len = 1, .is = EX_EXACT, .text = "mov %eax, -0x1(%esi)",	\
	.writes = true, .size = 4, .known = true, .value = 5)		\
X(store_absolute, "nop", "movabs %al,0x123456789abc", "ret",		\
	.addr = 0x123456789abc, .len = 1, .is = EX_EXACT,		\
	.text = "mov %al, 0x123456789abc", .writes = true, .size = 1,	\
	.known = true)							\
X(setcc, "nop", "setle (%rsi)", "ret",					\
	.reg = { [SI] = 0x1000, [FLAGS] = OF }, .addr = 0x1000,		\
	.len = 1, .is = EX_EXACT, .text = "setle (%rsi)",		\
	.writes = true, .size = 1, .known = true, .value = 1)		\
X(setcc_not, "nop", "setae (%rsi)", "ret",				\
	.reg = { [SI] = 0x1000, [FLAGS] = CF }, .addr = 0x1000,		\
	.len = 1, .is = EX_EXACT, .text = "setnb (%rsi)",		\
	.writes = true, .size = 1, .known = true, .value = 0)		\
X(xsave, "nop", "xsavec 0x40(%rsp)", "ret",				\
	.reg = { [SP] = STACK }, .addr = STACK + 0x240,			\
	.is = EX_ADDRESS_UNVERIFIED, .text = "xsavec 0x40(%rsp)",	\
	.writes = true)							\
X(fxsave, "nop", "fxsave (%rsi)", "ret",				\
	.reg = { [SI] = 0x1000 }, .addr = 0x1100, .is = EX_EXACT,	\
	.writes = true, .first = 0x1000, .size = 416)			\
X(fxsave_reserved, "nop", "fxsave (%rsi)", "ret",			\
	.reg = { [SI] = 0x1000 }, .addr = 0x11f8,			\
	.is = EX_ADDRESS_UNVERIFIED, .writes = true)			\
X(clear_line, "nop", "clzero", "ret",					\
	.reg = { [AX] = 0x1008 }, .addr = 0x1030, .is = EX_EXACT,	\
	.text = "clzero %rax", .writes = true, .first = 0x1000,		\
	.size = 64)							\
X(store_line, "nop", "movdir64b (%rsi),%rdi", "ret",			\
	.reg = { [SI] = 0x2000, [DI] = 0x1000 }, .addr = 0x1030,	\
	.is = EX_EXACT, .text = "movdir64bz (%rsi), %rdi",		\
	.writes = true, .first = 0x1000, .size = 64)			\
X(scatter, "nop", "vscatterdps %zmm1,(%rsi,%zmm0,4){%k1}", "ret",	\
	.reg = { [SI] = 0x1000 }, .addr = 0x1000,			\
	.is = EX_ADDRESS_UNVERIFIED, .writes = true)			\
/* read and written */							\
X(increment, "nop", "incl (%rsi)", "ret",				\
	.reg = { [SI] = 0x1000 }, .addr = 0x1000, .len = 4,		\
	.is = EX_EXACT, .text = "incl (%rsi)", .reads = true,		\
	.writes = true, .size = 4)					\
X(xchg, "nop", "xchg %rax,(%rsi)", "ret",				\
	.reg = { [SI] = 0x1000, [AX] = 1 }, .addr = 0x1000,		\
	.is = EX_EXACT, .text = "xchg %rax, (%rsi)", .reads = true,	\
	.writes = true, .size = 8)					\
X(xchg_base, "nop", "xchg %rax,(%rax)", "ret",				\
	.reg = { [AX] = 0x1000 }, .addr = 0x1000,			\
	.is = EX_ADDRESS_UNVERIFIED, .reads = true, .writes = true,	\
	.size = 8)							\
X(xadd, "nop", "lock xadd %eax,(%rsi)", "ret",				\
	.reg = { [SI] = 0x1000, [AX] = 1 }, .addr = 0x1000,		\
	.len = 4, .is = EX_EXACT, .text = "lock xadd %eax, (%rsi)",	\
	.reads = true, .writes = true, .size = 4)			\
/* what an exchange stored was in the register that it loaded */	\
X(xchg_constant, "mov $7,%eax", "xchg %rax,(%rsi)", "ret",		\
	.reg = { [SI] = 0x1000, [AX] = 1 }, .addr = 0x1000,		\
	.is = EX_EXACT, .reads = true, .writes = true, .size = 8,	\
	.known = true, .value = 7)					\
X(xchg_negative, "mov $-7,%rax", "xchg %rax,(%rsi)", "ret",		\
	.reg = { [SI] = 0x1000 }, .addr = 0x1000, .is = EX_EXACT,	\
	.reads = true, .writes = true, .size = 8, .known = true,	\
	.value = 0xfffffffffffffff9)					\
X(xchg_zero, "xor %eax,%eax", "xchg %rax,(%rsi)", "ret",		\
	.reg = { [SI] = 0x1000, [AX] = 1 }, .addr = 0x1000,		\
	.is = EX_EXACT, .reads = true, .writes = true, .size = 8,	\
	.known = true, .value = 0)					\
X(xchg_register, "mov %rdx,%rax; mov %r8,%rcx", "xchg %rax,(%rsi)",	\
	"ret", .reg = { [SI] = 0x1000, [AX] = 1, [DX] = 9 },		\
	.addr = 0x1000, .is = EX_EXACT, .reads = true, .writes = true,	\
	.size = 8, .known = true, .value = 9)				\
X(xchg_half, "mov %edx,%eax", "xchg %rax,(%rsi)", "ret",		\
	.reg = { [SI] = 0x1000, [DX] = 0x700000009 }, .addr = 0x1000,	\
	.is = EX_EXACT, .reads = true, .writes = true, .size = 8,	\
	.known = true, .value = 9)					\
X(xchg_byte, "mov $0x1107,%eax", "xchg %al,(%rsi)", "ret",		\
	.reg = { [SI] = 0x1000, [AX] = 1 }, .addr = 0x1000, .len = 1,	\
	.is = EX_EXACT, .reads = true, .writes = true, .size = 1,	\
	.known = true, .value = 7)					\
X(xchg_lost, "mov %rdx,%rax; mov %r8,%rdx", "xchg %rax,(%rsi)",		\
	"ret", .reg = { [SI] = 0x1000, [AX] = 1, [DX] = 9 },		\
	.addr = 0x1000, .is = EX_EXACT, .reads = true, .writes = true,	\
	.size = 8)							\
X(xchg_part, "mov $7,%eax; mov $8,%al", "xchg %rax,(%rsi)", "ret",	\
	.reg = { [SI] = 0x1000 }, .addr = 0x1000, .is = EX_EXACT,	\
	.reads = true, .writes = true, .size = 8)			\
X(xchg_met, "mov $7,%eax; .Lmet: nop", "xchg %rax,(%rsi)",		\
	"test %edx,%edx; jne .Lmet; ret", .reg = { [SI] = 0x1000 },	\
	.addr = 0x1000, .is = EX_EXACT, .reads = true, .writes = true,	\
	.size = 8)							\
X(xchg_called, "mov $7,%eax; .Lcalled: nop", "xchg %rax,(%rsi)",	\
	"ret; .skip 4000,0x90; call .Lcalled; ret",			\
	.reg = { [SI] = 0x1000 }, .addr = 0x1000, .is = EX_EXACT,	\
	.reads = true, .writes = true, .size = 8)			\
X(xchg_switched, "jmp *%rcx; mov $7,%eax", "xchg %rax,(%rsi)", "ret",	\
	.reg = { [SI] = 0x1000 }, .addr = 0x1000, .is = EX_EXACT, \
	.reads = true, .writes = true, .size = 8)			\
X(xchg_after_call, "mov $7,%eax; call .Lcallee", "xchg %rax,(%rsi)",	\
	"ret; .Lcallee: ret", .reg = { [SI] = 0x1000 }, .addr = 0x1000,	\
	.is = EX_EXACT, .reads = true, .writes = true, .size = 8)	\
X(cmpxchg, "nop", "lock cmpxchg %rcx,(%rsi)", "ret",			\
	.reg = { [SI] = 0x1000, [AX] = 1, [CX] = 2, [FLAGS] = ZF },	\
	.addr = 0x1000, .is = EX_EXACT,					\
	.text = "lock cmpxchg %rcx, (%rsi)", .reads = true,		\
	.writes = true, .size = 8, .known = true, .value = 2)		\
X(cmpxchg_fails, "nop", "lock cmpxchg %rcx,(%rsi)", "ret",		\
	.reg = { [SI] = 0x1000, [AX] = 1, [CX] = 2 },			\
	.addr = 0x1000, .is = EX_EXACT, .reads = true, .writes = true,	\
	.size = 8, .known = true, .value = 1)				\
X(bit_far_away, "nop", "btsq %rax,(%rsi)", "ret",			\
	.reg = { [SI] = 0x1000, [AX] = (uint64_t)-65 },			\
	.addr = 0xff0, .is = EX_EXACT, .text = "bts %rax, (%rsi)",	\
	.reads = true, .writes = true, .size = 8)			\
/* the base is gone */							\
X(base_loaded, "nop", "mov 8(%rax),%rax", "ret",			\
	.reg = { [AX] = 0x1000 }, .addr = 0x1008, .access = 'a',	\
	.is = EX_ADDRESS_UNVERIFIED, .text = "mov 0x8(%rax), %rax",	\
	.reads = true, .size = 8)					\
X(base_part_loaded, "nop", "movb (%rax),%al", "ret",			\
	.reg = { [AX] = 0x1000 }, .addr = 0x1000, .access = 'a',	\
	.is = EX_ADDRESS_UNVERIFIED, .reads = true, .size = 1)		\
X(index_multiplied, "nop", "mulq (%rsi,%rdx)", "ret",			\
	.reg = { [SI] = 0x1000 }, .addr = 0x1000, .access = 'a',	\
	.is = EX_ADDRESS_UNVERIFIED, .reads = true, .size = 8)		\
X(thread_local, "nop", "mov %eax,%fs:-4", "ret",			\
	.addr = 0x1000, .is = EX_ADDRESS_UNVERIFIED,			\
	.text = "mov %eax, %fs:0xfffffffffffffffc", .writes = true,	\
	.size = 4)							\
X(gather, "nop", "vpgatherdd %ymm2,(%rsi,%ymm1,4),%ymm0", "ret",	\
	.reg = { [SI] = 0x1000 }, .addr = 0x1000, .access = 'a',	\
	.is = EX_ADDRESS_UNVERIFIED, .reads = true)			\
X(gather_on_its_way, "nop", "vpgatherdd %ymm2,(%rsi,%ymm1,4),%ymm0",	\
	"ret", .rep = true, .reg = { [SI] = 0x1000 }, .addr = 0x1000,	\
	.access = 'a', .is = EX_ADDRESS_UNVERIFIED, .reads = true)	\
X(load_before_gather, "nop", "mov (%rsi),%eax",				\
	"vpgatherdd %ymm2,(%rsi,%ymm1,4),%ymm0", .addr = 0x1000,	\
	.reg = { [SI] = 0x1000 }, .access = 'a', .is = EX_AMBIGUOUS,	\
	.reads = true)							\
X(translate, "nop", "xlat", "ret",					\
	.reg = { [BX] = 0x1000 }, .addr = 0x1000, .access = 'a',	\
	.is = EX_ADDRESS_UNVERIFIED, .text = "xlat",		\
	.reads = true)							\
/* the stack */								\
X(push, "nop", "push %rbx", "nop",					\
	.reg = { [SP] = STACK, [BX] = 9 }, .top = NULL, .addr = STACK,	\
	.is = EX_EXACT, .text = "push %rbx", .writes = true,		\
	.size = 8, .known = true, .value = 9)				\
X(push_immediate, "nop", "push $-1", "nop",				\
	.reg = { [SP] = STACK }, .addr = STACK + 4, .len = 4,		\
	.is = EX_EXACT, .text = "push $-0x1",		\
	.writes = true, .first = STACK, .size = 8, .known = true,	\
	.immediate = true, .value = 0xffffffff)				\
X(push_stack_pointer, "nop", "push %rsp", "nop",			\
	.reg = { [SP] = STACK }, .addr = STACK, .is = EX_EXACT,		\
	.writes = true, .size = 8, .known = true, .value = STACK + 8)	\
X(push_from_stack, "nop", "push 0x10(%rsp)", "nop",			\
	.reg = { [SP] = STACK }, .addr = STACK + 0x18, .access = 'a',	\
	.is = EX_EXACT, .text = "push 0x10(%rsp)", .reads = true,	\
	.size = 8)							\
X(push_no_copy, "nop", "push %rbx", "nop",				\
	.reg = { [SP] = STACK, [BX] = 9 }, .addr = STACK,		\
	.no_stack = true, .is = EX_AMBIGUOUS, .writes = true)		\
X(push16, "nop", "pushw $0x1234", "nop",				\
	.reg = { [SP] = STACK + 6 }, .addr = STACK, .is = EX_EXACT,	\
	.text = "push $0x1234", .writes = true, .first = STACK + 6,	\
	.size = 2)							\
X(push_flags, "nop", "pushf", "nop",					\
	.reg = { [SP] = STACK }, .addr = STACK, .is = EX_EXACT,		\
	.text = "pushfq", .writes = true, .size = 8)			\
X(pop, "nop", "pop %rbx", "nop",					\
	.reg = { [SP] = STACK + 8 }, .addr = STACK, .access = 'a',	\
	.is = EX_EXACT, .text = "pop %rbx", .reads = true, .size = 8)	\
X(pop_to_memory, "nop", "pop (%rsp)", "nop",				\
	.reg = { [SP] = STACK + 8 }, .addr = STACK + 8,			\
	.is = EX_EXACT, .text = "pop (%rsp)", .writes = true,		\
	.size = 8)							\
X(pop_stack_pointer, "nop", "pop %rsp", "nop",				\
	.reg = { [SP] = STACK + 8 }, .addr = STACK, .access = 'a',	\
	.is = EX_ADDRESS_UNVERIFIED, .reads = true)			\
X(leave, "nop", "leave", "ret",						\
	.reg = { [SP] = STACK + 8 }, .addr = STACK, .access = 'a',	\
	.is = EX_EXACT, .text = "leave", .reads = true, .size = 8)	\
X(enter, "nop", "enter $0x20,$0", "nop",				\
	.reg = { [SP] = STACK - 0x20, [BP] = STACK }, .addr = STACK,	\
	.is = EX_EXACT, .text = "enter $0x0, $0x20", .writes = true,	\
	.size = 8)							\
X(enter_nested, "nop", "enter $0x20,$1", "nop",				\
	.reg = { [SP] = STACK - 0x28, [BP] = STACK }, .addr = STACK,	\
	.is = EX_ADDRESS_UNVERIFIED, .writes = true)			\
/* calls: the pc is where they went */					\
X(call, "nop", "call code_callee", "nop",				\
	.at = code_callee, .reg = { [SP] = STACK }, .top = call_after,	\
	.addr = STACK, .is = EX_EXACT, .writes = true, .size = 8,	\
	.known = true, .immediate = true,				\
	.value = (uint64_t)call_after)					\
X(call_elsewhere, "nop", "call code_store", "nop",			\
	.at = code_callee, .reg = { [SP] = STACK },			\
	.top = call_elsewhere_after, .addr = STACK, .is = EX_UNKNOWN)	\
X(call_register, "nop", "call *%rax", "nop",				\
	.at = code_callee, .top = call_register_after,			\
	.reg = { [SP] = STACK, [AX] = (uint64_t)code_callee },		\
	.addr = STACK, .is = EX_EXACT, .text = "call %rax",		\
	.writes = true, .size = 8, .known = true, .immediate = true,	\
	.value = (uint64_t)call_register_after)				\
X(call_register_elsewhere, "nop", "call *%rax", "nop",			\
	.at = code_callee, .top = call_register_elsewhere_after,	\
	.reg = { [SP] = STACK, [AX] = 1 }, .addr = STACK,		\
	.is = EX_UNKNOWN)						\
X(call_pointer, "nop", "call *0x10(%rax)", "nop",			\
	.at = code_callee, .top = call_pointer_after,			\
	.reg = { [SP] = STACK, [AX] = 0x1000 }, .addr = 0x1010,		\
	.access = 'a', .is = EX_EXACT, .text = "call 0x10(%rax)",	\
	.reads = true, .size = 8)					\
X(call_pointer_on_stack, "nop", "call *0x10(%rsp)", "nop",		\
	.at = code_callee, .top = call_pointer_on_stack_after,		\
	.reg = { [SP] = STACK }, .addr = STACK + 0x18, .access = 'a',	\
	.is = EX_EXACT, .reads = true, .size = 8)			\
X(call_into_function, "nop", "call *(%rax)", "nop",			\
	.at = callee_after, .top = call_into_function_after,		\
	.reg = { [SP] = STACK, [AX] = 0x2000 }, .addr = STACK,		\
	.is = EX_ADDRESS_UNVERIFIED, .writes = true, .size = 8)		\
X(call_next, "nop", "call call_next_after", "pop %rax",			\
	.reg = { [SP] = STACK }, .top = call_next_after,		\
	.addr = STACK, .is = EX_EXACT, .writes = true, .size = 8,	\
	.known = true, .immediate = true,				\
	.value = (uint64_t)call_next_after)				\
X(call_after_push, "nop", "push %rbx", "nop",				\
	.reg = { [SP] = STACK, [BX] = 3 }, .top = call_after,		\
	.addr = STACK, .is = EX_EXACT, .text = "push %rbx",		\
	.writes = true, .size = 8, .known = true, .value = 3)		\
X(returned, "nop", "call code_callee", "nop",				\
	.reg = { [SP] = STACK + 8 }, .addr = STACK, .access = 'a',	\
	.is = EX_UNKNOWN)						\
X(returned_to_rep, "call code_callee", "rep stosb", "nop", .rep = true,	\
	.reg = { [SP] = STACK + 8, [DI] = STACK + 8, [CX] = 5 },	\
	.addr = STACK, .access = 'a', .is = EX_AMBIGUOUS,		\
	.writes = true)							\
X(callee, "", "nop", "nop", .addr = 0x1000, .is = EX_UNKNOWN)		\
/* not the instruction before */					\
X(after_jump, "nop", "jmp *(%rsi)", "nop",				\
	.reg = { [SI] = 0x1000 }, .addr = 0x1000, .access = 'a',	\
	.is = EX_UNKNOWN)						\
X(store_before_jump, "nop", "mov %rax,(%rdx)", "jmp *(%rdx)",		\
	.reg = { [DX] = 0x1000, [AX] = 5 }, .addr = 0x1000,		\
	.access = 'a', .is = EX_AMBIGUOUS, .writes = true,		\
	.jump = true, .known = true, .value = 5)			\
X(store_before_jumps, "jmp *4(%rdx)", "mov %rax,(%rdx)", "jmp *(%rdx)",	\
	.reg = { [DX] = 0x1000 }, .addr = 0x1000, .access = 'a',	\
	.is = EX_AMBIGUOUS, .writes = true)				\
X(load_before_jump, "nop", "cmp %rax,(%rdx)", "jmp *(%rdx)",		\
	.reg = { [DX] = 0x1000 }, .addr = 0x1000, .access = 'a',	\
	.is = EX_AMBIGUOUS, .reads = true)				\
X(part_before_jump, "nop", "mov %eax,(%rdx)", "jmp *(%rdx)",		\
	.reg = { [DX] = 0x1000 }, .addr = 0x1000, .access = 'a',	\
	.is = EX_AMBIGUOUS, .writes = true)				\
X(after_return, "nop", "ret", "nop",					\
	.reg = { [SP] = STACK + 8 }, .addr = STACK, .access = 'a',	\
	.is = EX_UNKNOWN)						\
X(elsewhere, "nop", "mov %eax,(%rsi)", "ret",				\
	.reg = { [SI] = 0x1004 }, .addr = 0x1000, .len = 4,		\
	.is = EX_UNKNOWN)						\
X(loads, "nop", "mov (%rsi),%eax", "ret",				\
	.reg = { [SI] = 0x1000 }, .addr = 0x1000, .is = EX_UNKNOWN)	\
X(loads_watched, "nop", "mov (%rsi),%eax", "ret",			\
	.reg = { [SI] = 0x1000 }, .addr = 0x1000, .access = 'r',	\
	.is = EX_EXACT, .text = "mov (%rsi), %eax", .reads = true,	\
	.size = 4)							\
X(long_nop, "nop", "nopl 8(%rsi)", "ret",				\
	.reg = { [SI] = 0x1000 }, .addr = 0x1008, .access = 'a',	\
	.is = EX_UNKNOWN)						\
X(prefetch, "nop", "prefetcht0 (%rsi)", "ret",				\
	.reg = { [SI] = 0x1000 }, .addr = 0x1000, .access = 'a',	\
	.is = EX_UNKNOWN)						\
X(lea, "nop", "lea (%rsi),%rax", "ret",					\
	.reg = { [SI] = 0x1000 }, .addr = 0x1000, .access = 'a',	\
	.is = EX_UNKNOWN)						\
X(system_call, "nop", "syscall", "ret",					\
	.addr = 0x1000, .is = EX_UNKNOWN)				\
/* strings: the pointers have moved on */				\
X(movs, "nop", "movsq", "ret",						\
	.reg = { [SI] = 0x2008, [DI] = 0x1008 }, .addr = 0x1000,	\
	.is = EX_EXACT, .text = "movsq",		\
	.writes = true, .size = 8)					\
X(movs_source, "nop", "movsq", "ret",					\
	.reg = { [SI] = 0x2008, [DI] = 0x1008 }, .addr = 0x2000,	\
	.access = 'a', .is = EX_EXACT, .reads = true, .size = 8)	\
X(stos_down, "nop", "stosl", "ret",					\
	.reg = { [DI] = 0xffc, [AX] = 6, [FLAGS] = DF },		\
	.addr = 0x1000, .len = 4, .is = EX_EXACT,			\
	.text = "stosd", .writes = true, .size = 4,	\
	.known = true, .value = 6)					\
X(lods_stack_segment, "nop", ".byte 0x36; lodsb", "ret",		\
	.reg = { [SI] = 0x1001, [SP] = 0x1001 }, .addr = 0x1000,	\
	.access = 'a', .is = EX_EXACT, .reads = true, .size = 1)	\
X(scas, "nop", "scasb", "ret",						\
	.reg = { [DI] = 0x1001 }, .addr = 0x1000, .len = 1,		\
	.access = 'a', .is = EX_EXACT,					\
	.text = "scasb", .reads = true, .size = 1)	\
X(cmps_second, "nop", "repz cmpsb", "ret",				\
	.reg = { [SI] = 0x2001, [DI] = 0x1001, [CX] = 3 },		\
	.addr = 0x1000, .len = 1, .access = 'a', .is = EX_EXACT,	\
	.text = "repe cmpsb", .reads = true,	\
	.size = 1)							\
X(rep_on_its_way, "nop", "rep stosq", "ret", .rep = true,		\
	.reg = { [DI] = 0x1008, [CX] = 5, [AX] = 1 }, .addr = 0x1000,	\
	.is = EX_EXACT, .text = "rep stosq",		\
	.writes = true, .size = 8, .known = true, .value = 1)		\
X(rep_part, "nop", "rep stosb", "ret", .rep = true,			\
	.reg = { [DI] = 0x1003, [CX] = 5, [AX] = 1 }, .addr = 0x1000,	\
	.is = EX_EXACT, .writes = true, .first = 0x1002, .size = 1)	\
X(rep_reported_late, "nop", "rep movsb", "ret", .rep = true,		\
	.reg = { [SI] = 0x2012, [DI] = 0x1012, [CX] = 5 },		\
	.addr = 0x1000, .is = EX_EXACT, .writes = true, .late = true)	\
X(rep_both, "nop", "rep movsb", "ret", .rep = true,			\
	.reg = { [SI] = 0x1007, [DI] = 0x1003, [CX] = 5 },		\
	.addr = 0x1000, .access = 'a', .is = EX_EXACT, .reads = true,	\
	.writes = true, .first = 0x1002, .size = 1)			\
X(rep_one_or_both, "nop", "rep movsb", "ret", .rep = true,		\
	.reg = { [SI] = 0x1012, [DI] = 0x1003, [CX] = 5 },		\
	.addr = 0x1000, .access = 'a', .is = EX_ADDRESS_UNVERIFIED)	\
X(rep_done, "nop", "rep movsq", "ret",					\
	.reg = { [SI] = 0x2008, [DI] = 0x1008 }, .addr = 0x1000,	\
	.is = EX_EXACT, .text = "rep movsq",	\
	.writes = true, .size = 8)					\
X(rep_not_done, "nop", "rep movsq", "ret",				\
	.reg = { [SI] = 0x2008, [DI] = 0x1008, [CX] = 1 },		\
	.addr = 0x1000, .is = EX_UNKNOWN)				\
X(rep_ahead, "nop", "rep stosb", "ret", .rep = true,			\
	.reg = { [DI] = 0x1000, [CX] = 5 }, .addr = 0x1000,		\
	.is = EX_UNKNOWN)						\
X(rep_down, "nop", "rep stosb", "ret", .rep = true,			\
	.reg = { [DI] = 0x1005, [CX] = 5, [FLAGS] = DF },		\
	.addr = 0x1000, .is = EX_EXACT, .writes = true,			\
	.first = 0x1006, .size = 1)					\
X(store_before_rep, "nop", "mov %al,-1(%rdi)", "rep stosb",		\
	.reg = { [DI] = 0x1001, [CX] = 5 }, .addr = 0x1000,		\
	.is = EX_AMBIGUOUS, .writes = true)				\
X(store_before_other_rep, "nop", "mov %al,(%rsi)", "rep stosb",		\
	.reg = { [SI] = 0x1000, [DI] = 0x2000, [CX] = 5, [AX] = 4 },	\
	.addr = 0x1000, .len = 1, .is = EX_EXACT, .writes = true,	\
	.size = 1, .known = true, .value = 4)				\
/* code that is not what it seems */					\
X(lock_skipped, "je lock_skipped_insn+1", "lock incl (%rsi)", "ret",	\
	.reg = { [SI] = 0x1000 }, .addr = 0x1000, .len = 4,		\
	.is = EX_AMBIGUOUS, .reads = true, .writes = true)		\
X(data_before, "jmp *%rax; .byte 0x06", "mov %eax,(%rsi)",		\
	"ret", .reg = { [SI] = 0x1000 }, .addr = 0x1000, .len = 4,	\
	.is = EX_AMBIGUOUS, .writes = true)				\
X(after_nothing, ".size code_after_nothing, 0; .byte 0x06", "rep stosb", \
	"ret", .rep = true, .reg = { [DI] = 0x1001, [CX] = 5 },		\
	.addr = 0x1000, .is = EX_AMBIGUOUS, .writes = true)		\
/* samples that lack something */					\
X(no_registers, "nop", "mov %eax,datum(%rip)", "ret",			\
	.no_regs = true, .data = datum, .len = 4, .is = EX_EXACT,	\
	.writes = true, .size = 4)					\
X(no_registers_base, "nop", "mov %eax,(%rsi)", "ret",			\
	.no_regs = true, .addr = 0x1000, .is = EX_ADDRESS_UNVERIFIED,	\
	.writes = true, .size = 4)					\
X(end_of_memory, "nop", "mov %rax,-4(%rsi)", "ret",			\
	.addr = 0, .len = 4, .is = EX_EXACT, .writes = true,		\
	.first = (uint64_t)-4, .size = 8, .known = true)		\
/* execution */								\
X(executed, "nop", "mov %eax,(%rsi)", "ret", .rep = true,		\
	.data = executed_insn, .len = 1, .access = 'x',			\
	.is = EX_EXACT, .text = "mov %eax, (%rsi)")

/* Far from the rest of the program, whose bytes could be a jump into it. */
#define APART ".pushsection .apart,\"ax\",@progbits\n"
__asm__(APART "	.skip 1 << 20\n	.popsection");

#define CODE(name, lead, insn, tail, ...)				\
	extern const uint8_t code_##name[], name##_insn[], name##_after[]; \
	__asm__(APART							\
	    "	.type code_" #name ", @function\n"			\
	    "code_" #name ":\n	" lead "\n"				\
	    #name "_insn:\n	" insn "\n"				\
	    #name "_after:\n	" tail "\n"				\
	    "	.size code_" #name ", . - code_" #name "\n"		\
	    "	.popsection");

SCENARIOS(CODE)

#define ROW(title, lead, code, tail, ...)				\
	{ .name = #title, .insn = title##_insn, .after = title##_after,	\
	    __VA_ARGS__ },

static const struct scenario scenarios[] = {
	SCENARIOS(ROW)
};

/* Code of a 32-bit program. */
__asm__(".pushsection .text\n	.code32\n"
    "	.type code_narrow, @function\n"
    "code_narrow:\n	nop\n"
    "narrow_push:\n	push %ebx\n"
    "narrow_store:\n	incl 0x10(%esi)\n"
    "narrow_after:\n	ret\n	.code64\n"
    "	.size code_narrow, . - code_narrow\n	.popsection");

extern const uint8_t narrow_push[], narrow_store[], narrow_after[];

struct fixture {
	struct ex_space *space;
	struct ex_process *process;
	struct capture capture;
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	*state = f;
	return f == NULL || (f->process = capture_self(&f->space)) == NULL ?
	    -1 : 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	ex_space_free(f->space);
	free(f);
	return 0;
}

static const struct ex_sample *
sample_of(struct capture *c, const struct scenario *s)
{
	const uint8_t *pc = s->at ? s->at : s->rep ? s->insn : s->after;
	uint64_t top = (uint64_t)(uintptr_t)s->top;

	memset(&c->sample, 0, sizeof(c->sample));
	c->sample.ip = (uint64_t)(uintptr_t)pc;
	memcpy(c->regs, s->reg, sizeof(c->regs));
	c->regs[PERF_REG_X86_IP] = c->sample.ip;
	if (!s->no_regs) {
		c->sample.user.abi = PERF_SAMPLE_REGS_ABI_64;
		c->sample.user.mask = (UINT64_C(1) << PERF_REG_X86_64_MAX) - 1;
		c->sample.user.values = (const uint8_t *)c->regs;
	}
	memcpy(c->stack, &top, sizeof(top));
	if (!s->no_stack) {
		c->sample.stack = c->stack;
		c->sample.stack_len = sizeof(top);
	}
	return &c->sample;
}

/* The bytes of a watch that an instruction stored, if it stored all. */
static bool
stored(const struct ex_insn *insn, uint64_t addr, uint32_t len,
    uint64_t *value)
{
	const uint64_t skip = addr - (insn->jump != 0 ? insn->jump :
	    insn->addr);

	*value = 0;
	if (insn->effect.operation != EX_OP_STORE || skip >= insn->size ||
	    insn->size - skip < len)
		return false;
	memcpy(value, &insn->effect.stored[skip], len);
	return true;
}

/* What differs from what is expected; NULL: nothing. */
static const char *
difference(const struct scenario *s, const struct ex_insn *insn, uint64_t addr)
{
	const uint64_t first = s->late ? 0 : s->first != 0 ? s->first : addr;
	uint64_t value = 0;

	if (insn->confidence != s->is)
		return ex_confidence_text(insn->confidence);
	if (s->is == EX_UNKNOWN)
		return insn->pc != 0 || insn->text[0] != '\0' ?
		    "unknown, but named" : NULL;
	if (insn->pc != (uint64_t)(uintptr_t)s->insn)
		return "another instruction";
	if (insn->len != s->after - s->insn)
		return "length";
	if (s->text != NULL && strcmp(insn->text, s->text) != 0)
		return insn->text;
	if (insn->reads != s->reads || insn->writes != s->writes)
		return insn->reads ? insn->writes ? "reads and writes" :
		    "reads" : "writes";
	if (s->is == EX_EXACT && s->access != 'x' ? insn->addr != first :
	    insn->addr != 0)
		return "address";
	if (s->size != 0 && insn->size != s->size)
		return "size";
	if (insn->jump != (s->jump ? addr : 0))
		return insn->jump != 0 ? "a jump" : "no jump";
	if (stored(insn, addr, s->len != 0 ? s->len : 8, &value) != s->known ||
	    (s->known && insn->effect.immediate != s->immediate))
		return s->known ? "no value" : "a value";
	return s->known && value != s->value ? "value" : NULL;
}

TEST_WITH(names_the_instruction, setup, teardown)
{
	struct fixture *f = *state;
	const char *wrong;
	unsigned failed = 0;

	for (size_t i = 0; i < COUNT(scenarios); i++) {
		const struct scenario *s = &scenarios[i];
		const uint64_t addr = s->data != NULL ?
		    (uint64_t)(uintptr_t)s->data : s->addr;
		struct ex_insn insn;

		memset(&insn, 0xff, sizeof(insn));
		ex_insn_explain(f->process, sample_of(&f->capture, s), addr,
		    s->len != 0 ? s->len : 8, s->access != 0 ? s->access : 'w',
		    &insn);
		wrong = difference(s, &insn, addr);
		if (wrong == NULL)
			continue;
		print_error("%s: %s\n", s->name, wrong);
		failed++;
	}
	assert_int_equal(failed, 0);
}

TEST_WITH(answers_the_same_again, setup, teardown)
{
	names_the_instruction(state);
	names_the_instruction(state);
}

TEST_WITH(reads_32_bit_code, setup, teardown)
{
	struct fixture *f = *state;
	struct scenario s = { .at = narrow_store, .reg = {
	    [SP] = UINT64_C(0x1ffff1000), [BX] = UINT64_C(0x112345678) } };
	struct ex_insn insn;
	uint64_t value;

	(void)sample_of(&f->capture, &s);
	f->capture.sample.user.abi = PERF_SAMPLE_REGS_ABI_32;
	ex_insn_explain(f->process, &f->capture.sample, 0xffff1000, 4, 'w',
	    &insn);
	assert_int_equal(insn.confidence, EX_EXACT);
	assert_int_equal(insn.pc, (uint64_t)(uintptr_t)narrow_push);
	assert_string_equal(insn.text, "push %ebx");
	assert_int_equal(insn.size, 4);
	assert_true(stored(&insn, 0xffff1000, 4, &value));
	assert_int_equal(value, 0x12345678);

	s.at = narrow_after;
	s.reg[SI] = 0xfffffff8;
	(void)sample_of(&f->capture, &s);
	f->capture.sample.user.abi = PERF_SAMPLE_REGS_ABI_32;
	ex_insn_explain(f->process, &f->capture.sample, 8, 4, 'w', &insn);
	assert_int_equal(insn.confidence, EX_EXACT);
	assert_string_equal(insn.text, "incl 0x10(%esi)");
	assert_true(insn.reads && insn.writes);
}

/* Registers without flags: which way a string went is not known. */
TEST_WITH(does_without_flags, setup, teardown)
{
	struct fixture *f = *state;
	const struct scenario s = { .at = movs_after,
	    .reg = { [DI] = 0x1008, [SI] = 0x2008 } };
	struct ex_insn insn;

	(void)sample_of(&f->capture, &s);
	f->capture.sample.user.mask = UINT64_C(0x1ff);	/* up to IP */
	ex_insn_explain(f->process, &f->capture.sample, 0x1000, 8, 'w', &insn);
	assert_int_equal(insn.confidence, EX_ADDRESS_UNVERIFIED);
	assert_int_equal(insn.pc, (uint64_t)(uintptr_t)movs_insn);
}

TEST_WITH(knows_nothing_outside_modules, setup, teardown)
{
	struct fixture *f = *state;
	const uint8_t data = 0x90;
	const struct scenario s = { .at = &data };	/* on the stack */
	struct ex_insn insn;

	(void)sample_of(&f->capture, &s);
	ex_insn_explain(f->process, &f->capture.sample, 0, 8, 'a', &insn);
	assert_int_equal(insn.confidence, EX_UNKNOWN);
	assert_int_equal(insn.pc, 0);

	/* But where an execution watch fired is known. */
	ex_insn_explain(f->process, &f->capture.sample,
	    (uint64_t)(uintptr_t)s.at, 1, 'x', &insn);
	assert_int_equal(insn.confidence, EX_EXACT);
	assert_int_equal(insn.pc, (uint64_t)(uintptr_t)s.at);
	assert_string_equal(insn.text, "");
}

TEST(names_its_confidence)
{
	assert_string_equal(ex_confidence_text(EX_UNKNOWN), "unknown");
	assert_string_equal(ex_confidence_text(EX_AMBIGUOUS), "ambiguous");
	assert_string_equal(ex_confidence_text(EX_ADDRESS_UNVERIFIED),
	    "address-unverified");
	assert_string_equal(ex_confidence_text(EX_EXACT), "exact");
}

RUN_TESTS()
