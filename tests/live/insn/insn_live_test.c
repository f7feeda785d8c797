/*
 * insn: one instruction of each form is executed under a hardware watchpoint,
 * and the kernel's sample of it is explained.  The instruction, its bytes and
 * its effect must be correct, and so must the confidence; also in a 32-bit
 * program.  truth_live_test.c does the same with real programs.
 */
#include "test.h"

#include <asm/perf_regs.h>
#include <cpuid.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "capture.h"
#include "command.h"
#include "insn/insn.h"
#include "shot.h"
#include "space/space.h"
#include "symbol/symbol.h"

#define AREA	4096		/* bytes that the forms act on */
#define STACK	2048		/* in there: the stack of forms that have one */
#define ANY	UINT_MAX
#define NONE	(UINT_MAX - 1)

enum need {
	ALWAYS, AVX, AVX2, XSAVEC, CMPXCHG16B, CLZERO, MOVDIRI, MOVDIR64B,
	AVX512F,
};

struct form {
	const char *name;
	void (*run)(uint8_t *area);
	const uint8_t *insn, *after;
	unsigned at, len;	/* the watch, in the area; len 0: 8 */
	char access;		/* 0: 'w' */
	enum need need;

	const uint8_t *pointer;	/* code's address, put where the watch is */
	bool own;		/* the watch is on the thread's own word */

	enum ex_confidence is;	/* of every sample */
	unsigned samples;	/* 0: 1; NONE; ANY: one or more; else at most:
				   there are processors that stop a repeated one
				   later, and then which bytes it touched is not
				   known */
	bool reads, writes;
	unsigned first, size;	/* bytes touched, in the area; of repeated ones
				   the first sample's, the others follow */
	bool down;		/* downwards */
	const char *text;	/* NULL: not looked at */
};

static _Alignas(4096) uint8_t area[AREA];
extern __thread uint64_t insn_live_own;
__thread uint64_t insn_live_own;

extern const uint8_t insn_live_callee[];
__asm__(".pushsection .text\n"
    "	.type insn_live_callee, @function\n"
    "insn_live_callee:\n	ret\n"
    "	.size insn_live_callee, . - insn_live_callee\n	.popsection");

/* X(name, code before, the instruction, code after, what is expected).  In rdi
   is the area; rbx and rbp are kept, and rsp in rbx. */
#define STACK_IS "mov %rsp,%rbx; lea 2048(%rdi),%rsp;"
#define FORMS(X)							\
X(store, "", "mov %rdi,64(%rdi)", "",					\
	.at = 64, .is = EX_EXACT, .writes = true, .first = 64, .size = 8, \
	.text = "mov %rdi, 0x40(%rdi)")					\
X(store_same, "", "movl $0,64(%rdi)", "",				\
	.at = 64, .len = 2, .is = EX_EXACT, .writes = true, .first = 64, \
	.size = 4)							\
X(store_own, "", "mov %rdi,%fs:insn_live_own@tpoff", "",		\
	.own = true, .is = EX_ADDRESS_UNVERIFIED, .writes = true,	\
	.size = 8)							\
X(store_below, "", "mov %rdi,61(%rdi)", "",				\
	.at = 68, .len = 4, .is = EX_EXACT, .writes = true, .first = 61, \
	.size = 8)							\
X(store_part, "", "movb $7,67(%rdi)", "",				\
	.at = 64, .is = EX_EXACT, .writes = true, .first = 67, .size = 1) \
X(store_nontemporal, "", "movnti %rax,64(%rdi)", "sfence",		\
	.at = 64, .is = EX_EXACT, .writes = true, .first = 64, .size = 8) \
X(vector_below, "", "movups %xmm0,56(%rdi)", "",			\
	.at = 64, .is = EX_EXACT, .writes = true, .first = 56, .size = 16, \
	.text = "movups %xmm0, 0x38(%rdi)")				\
X(vector_wide_below, "", "vmovups %ymm0,40(%rdi)", "vzeroupper",	\
	.at = 64, .need = AVX, .is = EX_EXACT, .writes = true,		\
	.first = 40, .size = 32)					\
X(vector_wider_below, "", "vmovups %zmm0,8(%rdi)", "vzeroupper",	\
	.at = 64, .need = AVX512F, .is = EX_EXACT, .writes = true,	\
	.first = 8, .size = 64)						\
X(vector_half, "", "movhps %xmm0,64(%rdi)", "",				\
	.at = 64, .is = EX_EXACT, .writes = true, .first = 64, .size = 8) \
X(vector_load, "", "movdqu 57(%rdi),%xmm0", "",				\
	.at = 64, .access = 'a', .is = EX_EXACT, .reads = true,		\
	.first = 57, .size = 16)					\
X(setcc, "cmp %eax,%eax", "sete 64(%rdi)", "",				\
	.at = 64, .len = 1, .is = EX_EXACT, .writes = true, .first = 64, \
	.size = 1)							\
X(increment, "", "incq 64(%rdi)", "",					\
	.at = 64, .is = EX_EXACT, .reads = true, .writes = true,	\
	.first = 64, .size = 8)						\
X(increment_any, "", "lock incl 64(%rdi)", "",				\
	.at = 64, .access = 'a', .is = EX_EXACT, .reads = true,		\
	.writes = true, .first = 64, .size = 4)				\
X(bit_far_away, "mov $515,%eax", "btsl %eax,(%rdi)", "",		\
	.at = 64, .is = EX_EXACT, .reads = true, .writes = true,	\
	.first = 64, .size = 4)						\
X(xchg, "", "xchg %rax,64(%rdi)", "",					\
	.at = 64, .is = EX_EXACT, .reads = true, .writes = true,	\
	.first = 64, .size = 8)						\
X(xadd, "", "lock xadd %eax,64(%rdi)", "",				\
	.at = 64, .is = EX_EXACT, .reads = true, .writes = true,	\
	.first = 64, .size = 4)						\
X(cmpxchg, "mov 64(%rdi),%rax", "lock cmpxchg %rcx,64(%rdi)", "",	\
	.at = 64, .is = EX_EXACT, .reads = true, .writes = true,	\
	.first = 64, .size = 8)						\
X(cmpxchg_fails, "mov 64(%rdi),%rax; inc %rax",				\
	"lock cmpxchg %rcx,64(%rdi)", "",				\
	.at = 64, .is = EX_EXACT, .reads = true, .writes = true,	\
	.first = 64, .size = 8)						\
X(cmpxchg_pair, "mov %rbx,%r8", "lock cmpxchg16b 64(%rdi)",		\
	"mov %r8,%rbx",							\
	.at = 72, .need = CMPXCHG16B, .is = EX_EXACT, .reads = true,	\
	.writes = true, .first = 64, .size = 16)			\
X(base_loaded, "lea 64(%rdi),%rax", "mov (%rax),%rax", "",		\
	.at = 64, .access = 'a', .is = EX_ADDRESS_UNVERIFIED,		\
	.reads = true, .size = 8)					\
X(base_exchanged, "lea 64(%rdi),%rax", "xchg %rax,(%rax)", "",		\
	.at = 64, .is = EX_ADDRESS_UNVERIFIED, .reads = true,		\
	.writes = true, .size = 8)					\
X(index_loaded, "mov $64,%eax", "mov (%rdi,%rax),%al", "",		\
	.at = 64, .access = 'a', .is = EX_ADDRESS_UNVERIFIED,		\
	.reads = true, .size = 1)					\
X(translated, "mov %rbx,%r8; lea 60(%rdi),%rbx; mov $4,%eax", "xlat",	\
	"mov %r8,%rbx",							\
	.at = 64, .access = 'a', .is = EX_ADDRESS_UNVERIFIED,		\
	.reads = true, .size = 1)					\
/* the stack */								\
X(push, STACK_IS, "push %rdi", "mov %rbx,%rsp",				\
	.at = STACK - 8, .is = EX_EXACT, .writes = true,		\
	.first = STACK - 8, .size = 8)					\
X(push16, STACK_IS, "pushw $3", "mov %rbx,%rsp",			\
	.at = STACK - 8, .is = EX_EXACT, .writes = true,		\
	.first = STACK - 2, .size = 2)					\
X(push_flags, STACK_IS, "pushf", "mov %rbx,%rsp",			\
	.at = STACK - 8, .is = EX_EXACT, .writes = true,		\
	.first = STACK - 8, .size = 8)					\
X(push_memory, STACK_IS, "pushq 64(%rdi)", "mov %rbx,%rsp",		\
	.at = 64, .access = 'a', .is = EX_EXACT, .reads = true,		\
	.first = 64, .size = 8)						\
X(pop, STACK_IS, "pop %rax", "mov %rbx,%rsp",				\
	.at = STACK, .access = 'a', .is = EX_EXACT, .reads = true,	\
	.first = STACK, .size = 8)					\
X(pop_memory, STACK_IS, "popq 8(%rsp)", "mov %rbx,%rsp",		\
	.at = STACK + 16, .is = EX_EXACT, .writes = true,		\
	.first = STACK + 16, .size = 8)					\
X(pop_stack_pointer, STACK_IS, "pop %rsp", "mov %rbx,%rsp",		\
	.at = STACK, .access = 'a', .is = EX_ADDRESS_UNVERIFIED,	\
	.reads = true, .size = 8)					\
X(enter, STACK_IS "mov %rbp,%r8", "enter $64,$0",			\
	"mov %r8,%rbp; mov %rbx,%rsp",					\
	.at = STACK - 8, .is = EX_EXACT, .writes = true,		\
	.first = STACK - 8, .size = 8)					\
X(leave, STACK_IS "mov %rbp,%r8; mov %rsp,%rbp; sub $64,%rsp",		\
	"leave", "mov %r8,%rbp; mov %rbx,%rsp",				\
	.at = STACK, .access = 'a', .is = EX_EXACT, .reads = true,	\
	.first = STACK, .size = 8)					\
/* calls, jumps, returns */						\
X(call, STACK_IS, "call insn_live_callee", "mov %rbx,%rsp",		\
	.at = STACK - 8, .is = EX_EXACT, .writes = true,		\
	.first = STACK - 8, .size = 8)					\
X(call_next, STACK_IS, "call call_next_after", "mov %rbx,%rsp",		\
	.at = STACK - 8, .is = EX_EXACT, .writes = true,		\
	.first = STACK - 8, .size = 8)					\
X(call_register, STACK_IS "lea insn_live_callee(%rip),%rax",		\
	"call *%rax", "mov %rbx,%rsp",					\
	.at = STACK - 4, .len = 4, .is = EX_EXACT, .writes = true,	\
	.first = STACK - 8, .size = 8)					\
X(call_memory, STACK_IS, "call *64(%rdi)", "mov %rbx,%rsp",		\
	.at = 64, .pointer = insn_live_callee, .access = 'a',		\
	.is = EX_EXACT, .reads = true, .first = 64, .size = 8)		\
X(jump_memory, "", "jmp *64(%rdi)", "",					\
	.at = 64, .pointer = jump_memory_after, .access = 'a',		\
	.is = EX_UNKNOWN)						\
X(return_from, STACK_IS, "ret", "mov %rbx,%rsp",			\
	.at = STACK, .pointer = return_from_after, .access = 'a',	\
	.is = EX_UNKNOWN)						\
/* strings: a sample for each element in the watch */			\
X(rep_movs, "mov %rdi,%rsi; add $512,%rdi; mov $100,%ecx",		\
	"rep movsb", "",						\
	.at = 576, .is = EX_EXACT, .samples = 8, .writes = true,	\
	.first = 576, .size = 1)					\
X(rep_movs_ends, "mov %rdi,%rsi; add $512,%rdi; mov $72,%ecx",		\
	"rep movsb", "",						\
	.at = 576, .is = EX_EXACT, .samples = 8, .writes = true,	\
	.first = 576, .size = 1)					\
X(rep_movs_source, "mov %rdi,%rsi; add $512,%rdi; mov $100,%ecx",	\
	"rep movsb", "",						\
	.at = 64, .access = 'a', .is = EX_EXACT, .samples = 8,		\
	.reads = true, .first = 64, .size = 1)				\
X(rep_movs_words, "lea 4(%rdi),%rsi; add $508,%rdi; mov $20,%ecx",	\
	"rep movsq", "",						\
	.at = 576, .is = EX_EXACT, .samples = 2, .writes = true,	\
	.first = 572, .size = 8)					\
X(rep_stos, "mov $20,%ecx", "rep stosq", "",				\
	.at = 64, .is = EX_EXACT, .writes = true, .first = 64, .size = 8, \
	.text = "rep stosq")				\
X(rep_stos_half, "mov $20,%ecx", "rep stosl", "",			\
	.at = 64, .is = EX_EXACT, .samples = 2, .writes = true,		\
	.first = 64, .size = 4)						\
X(rep_stos_ends, "mov $18,%ecx", "rep stosl", "",			\
	.at = 64, .is = EX_EXACT, .samples = 2, .writes = true,		\
	.first = 64, .size = 4)						\
X(rep_stos_down, "std; add $124,%rdi; mov $30,%ecx", "rep stosl", "cld", \
	.at = 64, .is = EX_EXACT, .samples = 2, .writes = true,		\
	.first = 68, .size = 4, .down = true)				\
X(repe_cmps, "lea 512(%rdi),%rsi; mov $100,%ecx", "repe cmpsb", "",	\
	.at = 64, .access = 'a', .is = EX_EXACT, .samples = 8,		\
	.reads = true, .first = 64, .size = 1)				\
X(repne_scas, "mov $77,%eax; mov $100,%ecx", "repne scasw", "",		\
	.at = 64, .access = 'a', .is = EX_EXACT, .samples = 4,		\
	.reads = true, .first = 64, .size = 2)				\
X(lods, "lea 64(%rdi),%rsi", "lodsq", "",				\
	.at = 64, .access = 'a', .is = EX_EXACT, .reads = true,		\
	.first = 64, .size = 8)						\
X(movs, "lea 64(%rdi),%rsi", "movsl", "",				\
	.at = 64, .access = 'a', .is = EX_EXACT, .reads = true,		\
	.first = 64, .size = 4)						\
/* what the registers sampled do not show in full */			\
X(masked, "pcmpeqd %xmm1,%xmm1; psrldq $15,%xmm1; add $64,%rdi",	\
	"maskmovdqu %xmm1,%xmm0", "sfence",				\
	.at = 64, .is = EX_ADDRESS_UNVERIFIED, .writes = true)		\
X(masked_vector, "vpcmpeqd %ymm1,%ymm1,%ymm1",				\
	"vmaskmovps %ymm0,%ymm1,40(%rdi)", "vzeroupper",		\
	.at = 64, .need = AVX, .is = EX_ADDRESS_UNVERIFIED,		\
	.writes = true)							\
X(gather, "mov $16,%eax; vmovd %eax,%xmm1; vpbroadcastd %xmm1,%ymm1;"	\
	"vpcmpeqd %ymm2,%ymm2,%ymm2",					\
	"vpgatherdd %ymm2,(%rdi,%ymm1,4),%ymm0", "vzeroupper",		\
	.at = 64, .access = 'a', .need = AVX2, .samples = ANY,		\
	.is = EX_ADDRESS_UNVERIFIED, .reads = true)			\
X(scatter, "mov $16,%eax; vmovd %eax,%xmm1; vpbroadcastd %xmm1,%zmm1;"	\
	"kxnorw %k1,%k1,%k1",						\
	"vpscatterdd %zmm0,(%rdi,%zmm1,4){%k1}", "vzeroupper",		\
	.at = 64, .need = AVX512F, .samples = ANY,			\
	.is = EX_ADDRESS_UNVERIFIED, .writes = true)			\
X(fxsave, "", "fxsave 1024(%rdi)", "",					\
	.at = 1152, .is = EX_EXACT, .writes = true, .first = 1024,	\
	.size = 416)							\
X(fxsave_reserved, "", "fxsave 1024(%rdi)", "",				\
	.at = 1024 + 416, .samples = NONE, .is = EX_UNKNOWN)		\
X(xsave, "xor %edx,%edx; mov $3,%eax", "xsavec 1024(%rdi)", "",		\
	.at = 1024 + 512, .need = XSAVEC, .is = EX_ADDRESS_UNVERIFIED,	\
	.writes = true)							\
X(x87_environment, "", "fnstenv 64(%rdi)", "fldenv 64(%rdi)",		\
	.at = 80, .is = EX_EXACT, .writes = true, .first = 64, .size = 28) \
X(x87_store, "fldz", "fstpt 70(%rdi)", "",				\
	.at = 72, .is = EX_EXACT, .writes = true, .first = 70, .size = 10) \
X(control, "", "stmxcsr 64(%rdi)", "",					\
	.at = 64, .is = EX_EXACT, .writes = true, .first = 64, .size = 4) \
X(clear_line, "lea 70(%rdi),%rax", "clzero", "sfence",			\
	.at = 104, .need = CLZERO, .is = EX_EXACT, .writes = true,	\
	.first = 64, .size = 64)					\
X(direct_store, "", "movdiri %eax,64(%rdi)", "sfence",			\
	.at = 64, .need = MOVDIRI, .is = EX_EXACT, .writes = true,	\
	.first = 64, .size = 4)						\
X(direct_line, "lea 64(%rdi),%rax", "movdir64b 512(%rdi),%rax", "sfence", \
	.at = 104, .need = MOVDIR64B, .is = EX_EXACT, .writes = true,	\
	.first = 64, .size = 64)					\
X(flushed, "", "clflush 64(%rdi)", "",					\
	.at = 64, .access = 'a', .is = EX_ADDRESS_UNVERIFIED,		\
	.reads = true)							\
/* what does not look like what it is */				\
X(island, "lea 64(%rdi),%rax; jmp 2f; .byte 0x48",			\
	"mov %eax,(%rax)", "jmp 3f; .byte 0x48, 0xb8;"			\
	"2: jmp island_insn; 3:",					\
	.at = 64, .len = 4, .is = EX_EXACT, .writes = true, .first = 64, \
	.size = 4)							\
X(table, "lea 3f(%rip),%rax; movslq (%rax),%rdx; add %rdx,%rax;"	\
	"jmp *%rax; .balign 4; 3: .long table_insn - 3b, 4f - 3b",	\
	"movl $5,64(%rdi)", "4:",					\
	.at = 64, .is = EX_AMBIGUOUS)					\
X(resumed, "jmp *64(%rdi)", "mov %rax,64(%rdi)", "",			\
	.at = 64, .pointer = resumed_after, .access = 'a',		\
	.is = EX_AMBIGUOUS)						\
X(resumed_elsewhere, "mov %rax,64(%rdi); jmp *72(%rdi)",		\
	"mov %rax,80(%rdi)", "mov %rax,80(%rdi)",			\
	.at = 72, .pointer = resumed_elsewhere_insn, .access = 'a',	\
	.is = EX_UNKNOWN)						\
X(lock_skipped, "xor %eax,%eax; je lock_skipped_insn + 1",		\
	"lock incl 64(%rdi)", "",					\
	.at = 64, .is = EX_AMBIGUOUS)

#define CODE(name, lead, insn, tail, ...)				\
	void run_##name(uint8_t *);					\
	extern const uint8_t name##_insn[], name##_after[];		\
	__asm__(".pushsection .text\n"					\
	    "	.type run_" #name ", @function\n"			\
	    "run_" #name ":\n	push %rbx\n	" lead "\n"		\
	    #name "_insn:\n	" insn "\n"				\
	    #name "_after:\n	" tail "\n"				\
	    "	pop %rbx\n	ret\n"					\
	    "	.size run_" #name ", . - run_" #name "\n"		\
	    "	.popsection");

FORMS(CODE)

#define ROW(title, lead, code, tail, ...)				\
	{ .name = #title, .run = run_##title, .insn = title##_insn,	\
	    .after = title##_after, __VA_ARGS__ },

static const struct form forms[] = {
	FORMS(ROW)
};

static bool
cpuid_bit(unsigned leaf, unsigned reg, unsigned bit)
{
	unsigned r[4] = { 0 };

	return __get_cpuid_count(leaf, leaf == 0xd, &r[0], &r[1], &r[2],
	    &r[3]) != 0 && (r[reg] >> bit & 1) != 0;
}

static bool
is_had(enum need need)
{
	switch (need) {
	case AVX:
		return __builtin_cpu_supports("avx");
	case AVX2:
		return __builtin_cpu_supports("avx2");
	case AVX512F:
		return __builtin_cpu_supports("avx512f");
	case XSAVEC:
		return __builtin_cpu_supports("avx") && cpuid_bit(0xd, 0, 1);
	case CMPXCHG16B:
		return cpuid_bit(1, 2, 13);
	case CLZERO:
		return cpuid_bit(0x80000008, 1, 0);
	case MOVDIRI:
		return cpuid_bit(7, 2, 27);
	case MOVDIR64B:
		return cpuid_bit(7, 2, 28);
	default:
		return true;
	}
}

/* What differs in the n-th sample of a form; NULL: nothing. */
static const char *
difference(const struct form *f, const struct ex_insn *insn, unsigned n)
{
	const unsigned gone = f->size * n;
	const uint64_t first = (uint64_t)(uintptr_t)area + f->first +
	    (f->down ? -(uint64_t)gone : gone);

	if (insn->confidence != f->is)
		return ex_confidence_text(insn->confidence);
	if (f->is < EX_ADDRESS_UNVERIFIED)
		return NULL;
	if (insn->pc != (uint64_t)(uintptr_t)f->insn ||
	    insn->len != f->after - f->insn)
		return "another instruction";
	if (f->text != NULL && strcmp(insn->text, f->text) != 0)
		return insn->text;
	if (insn->reads != f->reads || insn->writes != f->writes)
		return "reads, writes";
	if (f->samples > 1 && f->samples < NONE && insn->size == 0)
		return insn->addr != 0 ? "address" : NULL;
	if (insn->size != f->size)
		return "size";
	return insn->addr != (f->is == EX_EXACT ? first : 0) ? "address" : NULL;
}

static void
run_form(void *arg)
{
	const struct form *f = arg;

	f->run(area);
}

static bool
expects(const struct form *f, unsigned samples)
{
	switch (f->samples) {
	case ANY:
		return samples > 0;
	case NONE:
		return samples == 0;
	case 0:
		return samples == 1;
	default:
		return samples > 0 && samples <= f->samples;
	}
}

/* Run one under a watch, and look at its samples.  Result: how many are
   wrong. */
static unsigned
try_form(struct ex_process *process, const struct form *f)
{
	const char access = f->access != 0 ? f->access : 'w';
	const unsigned len = f->len != 0 ? f->len : 8;
	const void *at = f->own ? (void *)&insn_live_own : &area[f->at];
	const char *wrong = NULL;
	struct ex_insn insn;
	struct shot shot;

	memset(area, 0, sizeof(area));
	if (f->pointer != NULL)
		memcpy(&area[f->at], &f->pointer, sizeof(f->pointer));
	shoot(&shot, attr_of(slot(access == 'w' ? HW_BREAKPOINT_W :
	    HW_BREAKPOINT_RW, at, len), (struct wp_options){ .stack = 64 }),
	    run_form, (void *)(uintptr_t)f);
	if (!expects(f, shot.samples))
		wrong = "samples";
	for (unsigned i = 0; i < shot.kept && wrong == NULL; i++) {
		ex_insn_explain(process, &shot.sample[i].sample,
		    (uint64_t)(uintptr_t)at, len, access, &insn);
		wrong = difference(f, &insn, i);
	}
	if (wrong != NULL)
		print_error("%s: %s, of %u samples\n", f->name, wrong,
		    shot.samples);
	shot_end(&shot);
	return wrong != NULL;
}

TEST(names_every_form)
{
	struct ex_space *space = ex_space_new(EX_LIVE);
	unsigned failed = 0, lacking = 0;
	struct ex_process *process;

	assert_non_null(space);
	capture_maps(space, getpid());
	assert_non_null(process = ex_space_process(space, getpid()));
	for (size_t i = 0; i < COUNT(forms); i++) {
		if (is_had(forms[i].need))
			failed += try_form(process, &forms[i]);
		else
			lacking++;
	}
	print_message("%zu forms, %u of them not of this processor\n",
	    COUNT(forms), lacking);
	ex_space_free(space);
	assert_int_equal(failed, 0);
}

/* --- 32-bit code --- */

static int
take_address(void *arg, const struct ex_symbol *symbol)
{
	*(uint64_t *)arg = symbol->value;
	return 1;
}

/* A victim, up to where it stops itself. */
static pid_t
start_narrow(void)
{
	pid_t pid;
	int status;

	skip_unless_narrow_runs(victim("narrow"));
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)execl(victim("narrow"), "narrow", NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	return pid;
}

/* Its list begins anew, and is inserted into: nothing else writes its head. */
TEST(names_32_bit_code)
{
	const pid_t pid = start_narrow();
	struct ex_space *space = ex_space_new(EX_LIVE);
	struct ex_process *process;
	uint64_t list = 0, vaddr;
	struct ex_module *module;
	struct ex_insn insn;
	struct shot shot;

	assert_non_null(space);
	capture_maps(space, pid);
	assert_non_null(process = ex_space_process(space, pid));
	module = ex_process_module(process, 0x8049000, &vaddr);
	assert_non_null(module);
	assert_int_equal(ex_symbol_find(module, "list", take_address, &list),
	    1);
	shot_begin(&shot);
	shot_arm(&shot, attr_of((struct wp_slot){ list, 4, HW_BREAKPOINT_W },
	    (struct wp_options){ .stack = 64 }), pid);
	(void)kill(pid, SIGCONT);
	for (unsigned ms = 0; ms < COMMAND_PATIENCE_MS &&
	    shot.kept < SHOT_KEPT; ms++) {
		(void)usleep(1000);
		shot_read(&shot);
	}
	assert_int_equal(shot.kept, SHOT_KEPT);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	for (unsigned i = 0; i < shot.kept; i++) {
		const struct ex_sample *sample = &shot.sample[i].sample;
		struct ex_symbol in;

		assert_int_equal(sample->user.abi, PERF_SAMPLE_REGS_ABI_32);
		ex_insn_explain(process, sample, list, 4, 'w', &insn);
		assert_int_equal(insn.confidence, EX_EXACT);
		assert_int_equal(insn.pc + insn.len, sample->ip);
		assert_true(insn.writes && !insn.reads);
		assert_int_equal(insn.addr, list);
		assert_int_equal(insn.size, 4);
		assert_true(ex_symbol_at(module, insn.pc, &in));
		assert_true(strcmp(in.name, "lists") == 0 ||
		    strcmp(in.name, "insert") == 0);
	}
	shot_end(&shot);
	ex_space_free(space);
}

RUN_LIVE_TESTS()
