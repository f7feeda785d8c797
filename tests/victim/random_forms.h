/*
 * random_forms: instructions that access memory, each in a function of its own.
 *
 * FORM(name, p, q, flags, before, instruction, after): p and q say which bytes
 * the instruction accesses from the pointers rsi (p) and rdi (q) on:
 *
 *	AT(mode, offset, bytes, alignment)	mode: 'r', 'w', 'm' (both)
 *
 * rax, rcx and rdx hold random numbers, r12 points to 128 random bytes, and r8
 * to r11, rbx and all vector registers are free.  `before` and `after` touch
 * nothing else.
 */
#ifndef RANDOM_FORMS_H
#define RANDOM_FORMS_H

#include <stdint.h>

struct operands {
	uint8_t *p, *q;
	uint64_t a, c, d;
	const uint8_t *v;
	uint64_t pc, end;	/* out */
};

struct bytes {
	char mode;		/* 0: none */
	int16_t offset;
	uint16_t len, align;
};

enum {
	FORM_REPEATED = 2,	/* the same as RANDOM_... */
	FORM_COMPARES = 16,	/* rax, rdx: often what memory holds */
	FORM_MASK_C = 32,	/* of p those elements whose bits are set in
				   rcx */
	FORM_MASK_V = 64,	/* ... whose highest bit in r12's bytes is
				   set */
	FORM_CONTENDS = 128,	/* by one 8-byte operation that cannot be
				   torn */
	FORM_UNIT_SHIFT = 8,	/* bytes of an element, with one of MASK */
	FORM_AVX = 1 << 16,	/* which the processor must have */
	FORM_AVX2 = 1 << 17,
	FORM_AVX512 = 1 << 18,
	FORM_SSE4 = 1 << 19,
	FORM_MOVBE = 1 << 20,
	FORM_CLZERO = 1 << 21,
	FORM_F16C = 1 << 22,
};

struct form {
	const char *name;
	void (*run)(struct operands *);
	struct bytes p, q;
	uint32_t flags;
};

#define AT(mode, offset, len, align) {mode, offset, len, align}
#define W(n) AT('w', 0, n, 1)
#define R(n) AT('r', 0, n, 1)
#define M(n) AT('m', 0, n, 1)
#define NO AT(0, 0, 0, 1)
#define UNIT(n) ((n) << FORM_UNIT_SHIFT)

#define FORM(name_, p_, q_, flags_, before, instruction, after_)	\
	FORM_ENDING(name_, FORM_P p_, FORM_P q_, flags_, before,	\
	    instruction "\n772:", after_)
#define FORM_P(...) __VA_ARGS__

/* One that goes on elsewhere than behind itself: it has label 772. */
#define FORM_ENDING(name_, p_, q_, flags_, before, instruction, after_)	\
	static __attribute__((noinline, noclone)) void			\
	run_##name_(struct operands *x)					\
	{								\
		uint64_t a = x->a, c = x->c, d = x->d;			\
		uint8_t *p = x->p, *q = x->q;				\
		register uint64_t end __asm__("r15");			\
		register uint64_t pc __asm__("r14");			\
		register const uint8_t *v __asm__("r12") = x->v;	\
									\
		__asm__ volatile("leaq 771f(%%rip),%%r14\n\t"		\
		    "leaq 772f(%%rip),%%r15\n\t" before "\n771:\t"	\
		    instruction "\n\t" after_				\
		    : "=r"(pc), "=r"(end), "+a"(a), "+c"(c), "+d"(d),	\
		    "+S"(p), "+D"(q), "+r"(v) : : "rbx", "r8", "r9",	\
		    "r10", "r11", "r13", "xmm0", "xmm1", "xmm2", "xmm3", \
		    "st", "memory", "cc");				\
		x->a = a;						\
		x->c = c;						\
		x->d = d;						\
		x->pc = pc;						\
		x->end = end;						\
	}								\
	static const struct form form_##name_ = {			\
		#name_, run_##name_, p_, q_, flags_,			\
	};								\
	static const struct form *const in_forms_##name_		\
	    __attribute__((section("forms"), used)) = &form_##name_;

extern const struct form *const __start_forms[], *const __stop_forms[];

#define CARRY "btq $0,%%rcx"
#define ON_STACK "movq %%rsp,%%r13\n\tmovq %%rsi,%%rsp"	/* at p */
#define OFF_STACK "movq %%r13,%%rsp"
#define X0 "movdqu (%%r12),%%xmm0"
#define Y0 "vmovdqu (%%r12),%%ymm0"
#define Z0 "vmovdqu64 (%%r12),%%zmm0"
#define K1 "kmovq %%rcx,%%k1"
#define VZ "vzeroupper"
#define AVX FORM_AVX
#define AVX2 FORM_AVX2
#define AVX512 FORM_AVX512
#define MASKED(n) FORM_AVX512 | FORM_MASK_C | UNIT(n)

/*
 * Stores.
 */

FORM(movb, (W(1)), (NO), 0, "", "movb %%cl,(%%rsi)", "")
FORM(movb_high, (W(1)), (NO), 0, "", "movb %%ch,(%%rsi)", "")
FORM(movw, (W(2)), (NO), 0, "", "movw %%cx,(%%rsi)", "")
FORM(movl, (W(4)), (NO), 0, "", "movl %%ecx,(%%rsi)", "")
FORM(movq, (W(8)), (NO), FORM_CONTENDS, "", "movq %%rcx,(%%rsi)", "")
FORM(movb_i, (W(1)), (NO), 0, "", "movb $0x85,(%%rsi)", "")
FORM(movw_i, (W(2)), (NO), 0, "", "movw $0x1234,(%%rsi)", "")
FORM(movl_i, (W(4)), (NO), 0, "", "movl $0xdeadbeef,(%%rsi)", "")
FORM(movq_i, (W(8)), (NO), 0, "", "movq $-2,(%%rsi)", "")
FORM(movq_indexed, (W(8)), (NO), 0, "movq $-3,%%r8",
    "movq %%rcx,24(%%rsi,%%r8,8)", "")
FORM(movnti, (W(8)), (NO), 0, "", "movnti %%rcx,(%%rsi)", "sfence")
FORM(movnti_l, (W(4)), (NO), 0, "", "movnti %%ecx,(%%rsi)", "sfence")
FORM(movbe_w, (W(2)), (NO), FORM_MOVBE, "", "movbe %%cx,(%%rsi)", "")
FORM(movbe_l, (W(4)), (NO), FORM_MOVBE, "", "movbe %%ecx,(%%rsi)", "")
FORM(movbe_q, (W(8)), (NO), FORM_MOVBE, "", "movbe %%rcx,(%%rsi)", "")
FORM(sete, (W(1)), (NO), 0, "testb $1,%%cl", "sete (%%rsi)", "")
FORM(setg, (W(1)), (NO), 0, "cmpq %%rcx,%%rdx", "setg (%%rsi)", "")
FORM(setb, (W(1)), (NO), 0, CARRY, "setb (%%rsi)", "")
FORM(setnp, (W(1)), (NO), 0, "testb %%cl,%%cl", "setnp (%%rsi)", "")
#define TO_P "movq %%rsi,%%rdi"
FORM(stosb, (W(1)), (NO), 0, TO_P, "stosb", "")
FORM(stosw, (W(2)), (NO), 0, TO_P, "stosw", "")
FORM(stosl, (W(4)), (NO), 0, TO_P, "stosl", "")
FORM(stosq, (W(8)), (NO), 0, TO_P, "stosq", "")
FORM(stosl_down, (W(4)), (NO), 0, TO_P "\n\tstd", "stosl", "cld")

/* to p, from q */
#define P_FROM_Q "xchgq %%rsi,%%rdi"
FORM(movsb, (W(1)), (R(1)), 0, P_FROM_Q, "movsb", "")
FORM(movsw, (W(2)), (R(2)), 0, P_FROM_Q, "movsw", "")
FORM(movsl, (W(4)), (R(4)), 0, P_FROM_Q, "movsl", "")
FORM(movsq, (W(8)), (R(8)), 0, P_FROM_Q, "movsq", "")
#define REP(n) "movl $" #n ",%%ecx"
FORM(rep_stosb, (W(13)), (NO), FORM_REPEATED, TO_P "\n\t" REP(13),
    "rep stosb", "")
FORM(rep_stosq, (W(32)), (NO), FORM_REPEATED, TO_P "\n\t" REP(4),
    "rep stosq", "")
FORM(rep_movsb, (W(11)), (R(11)), FORM_REPEATED, P_FROM_Q "\n\t" REP(11),
    "rep movsb", "")
FORM(rep_movsq, (W(24)), (R(24)), FORM_REPEATED, P_FROM_Q "\n\t" REP(3),
    "rep movsq", "")

FORM(movups, (W(16)), (NO), 0, X0, "movups %%xmm0,(%%rsi)", "")
FORM(movupd, (W(16)), (NO), 0, X0, "movupd %%xmm0,(%%rsi)", "")
FORM(movdqu, (W(16)), (NO), 0, X0, "movdqu %%xmm0,(%%rsi)", "")
FORM(movaps, (AT('w', 0, 16, 16)), (NO), 0, X0, "movaps %%xmm0,(%%rsi)", "")
FORM(movdqa, (AT('w', 0, 16, 16)), (NO), 0, X0, "movdqa %%xmm0,(%%rsi)", "")
FORM(movntps, (AT('w', 0, 16, 16)), (NO), 0, X0, "movntps %%xmm0,(%%rsi)",
    "sfence")
FORM(movd, (W(4)), (NO), 0, X0, "movd %%xmm0,(%%rsi)", "")
FORM(movq_x, (W(8)), (NO), 0, X0, "movq %%xmm0,(%%rsi)", "")
FORM(movss, (W(4)), (NO), 0, X0, "movss %%xmm0,(%%rsi)", "")
FORM(movsd, (W(8)), (NO), 0, X0, "movsd %%xmm0,(%%rsi)", "")
FORM(movlps, (W(8)), (NO), 0, X0, "movlps %%xmm0,(%%rsi)", "")
FORM(movhps, (W(8)), (NO), 0, X0, "movhps %%xmm0,(%%rsi)", "")
FORM(pextrb, (W(1)), (NO), FORM_SSE4, X0, "pextrb $3,%%xmm0,(%%rsi)", "")
FORM(pextrw, (W(2)), (NO), FORM_SSE4, X0, "pextrw $3,%%xmm0,(%%rsi)", "")
FORM(pextrd, (W(4)), (NO), FORM_SSE4, X0, "pextrd $3,%%xmm0,(%%rsi)", "")
FORM(pextrq, (W(8)), (NO), FORM_SSE4, X0, "pextrq $1,%%xmm0,(%%rsi)", "")
FORM(extractps, (W(4)), (NO), FORM_SSE4, X0, "extractps $2,%%xmm0,(%%rsi)",
    "")
FORM(maskmovdqu, (W(16)), (NO), FORM_MASK_V | UNIT(1),
    TO_P "\n\t" X0 "\n\tmovdqu 64(%%r12),%%xmm1", "maskmovdqu %%xmm1,%%xmm0",
    "sfence")
FORM(vmovups, (W(32)), (NO), AVX, Y0, "vmovups %%ymm0,(%%rsi)", VZ)
FORM(vmovdqu, (W(32)), (NO), AVX, Y0, "vmovdqu %%ymm0,(%%rsi)", VZ)
FORM(vmovdqa, (AT('w', 0, 32, 32)), (NO), AVX, Y0,
    "vmovdqa %%ymm0,(%%rsi)", VZ)
FORM(vextractf128, (W(16)), (NO), AVX, Y0,
    "vextractf128 $1,%%ymm0,(%%rsi)", VZ)
FORM(vmaskmovps, (W(32)), (NO), AVX | FORM_MASK_V | UNIT(4),
    Y0 "\n\tvmovdqu 64(%%r12),%%ymm1", "vmaskmovps %%ymm0,%%ymm1,(%%rsi)",
    VZ)
FORM(vpmaskmovq, (W(32)), (NO), AVX2 | FORM_MASK_V | UNIT(8),
    Y0 "\n\tvmovdqu 64(%%r12),%%ymm1", "vpmaskmovq %%ymm0,%%ymm1,(%%rsi)",
    VZ)
FORM(vcvtps2ph, (W(16)), (NO), FORM_F16C, Y0,
    "vcvtps2ph $0,%%ymm0,(%%rsi)", VZ)
FORM(vmovdqu64, (W(64)), (NO), AVX512, Z0, "vmovdqu64 %%zmm0,(%%rsi)", VZ)
FORM(vmovdqu8_y, (W(32)), (NO), AVX512, Z0, "vmovdqu8 %%ymm0,(%%rsi)", VZ)
FORM(vmovdqu8_kx, (W(16)), (NO), MASKED(1), Z0 "\n\t" K1,
    "vmovdqu8 %%xmm0,(%%rsi)%{%%k1%}", VZ)
FORM(vmovdqu8_ky, (W(32)), (NO), MASKED(1), Z0 "\n\t" K1,
    "vmovdqu8 %%ymm0,(%%rsi)%{%%k1%}", VZ)
FORM(vmovdqu8_kz, (W(64)), (NO), MASKED(1), Z0 "\n\t" K1,
    "vmovdqu8 %%zmm0,(%%rsi)%{%%k1%}", VZ)
FORM(vmovdqu16_ky, (W(32)), (NO), MASKED(2), Z0 "\n\t" K1,
    "vmovdqu16 %%ymm0,(%%rsi)%{%%k1%}", VZ)
FORM(vmovups_kz, (W(64)), (NO), MASKED(4), Z0 "\n\t" K1,
    "vmovups %%zmm0,(%%rsi)%{%%k1%}", VZ)
FORM(vmovdqu64_ky, (W(32)), (NO), MASKED(8), Z0 "\n\t" K1,
    "vmovdqu64 %%ymm0,(%%rsi)%{%%k1%}", VZ)
FORM(vpmovqb, (W(8)), (NO), AVX512, Z0, "vpmovqb %%zmm0,(%%rsi)", VZ)
FORM(vpmovdw, (W(32)), (NO), AVX512, Z0, "vpmovdw %%zmm0,(%%rsi)", VZ)

#define FLOAT "fninit\n\tfldl (%%r12)"
FORM(fstps, (W(4)), (NO), 0, FLOAT, "fstps (%%rsi)", "")
FORM(fstpl, (W(8)), (NO), 0, FLOAT, "fstpl (%%rsi)", "")
FORM(fsts, (W(4)), (NO), 0, FLOAT, "fsts (%%rsi)", "fninit")
FORM(fstpt, (W(10)), (NO), 0, FLOAT, "fstpt (%%rsi)", "")
FORM(fistps, (W(2)), (NO), 0, FLOAT, "fistps (%%rsi)", "")
FORM(fistpl, (W(4)), (NO), 0, FLOAT, "fistpl (%%rsi)", "")
FORM(fistpq, (W(8)), (NO), 0, FLOAT, "fistpq (%%rsi)", "")
FORM(fbstp, (W(10)), (NO), 0, FLOAT, "fbstp (%%rsi)", "")
FORM(fnstcw, (W(2)), (NO), 0, "", "fnstcw (%%rsi)", "")
FORM(fnstsw, (W(2)), (NO), 0, "fninit", "fnstsw (%%rsi)", "")
FORM(stmxcsr, (W(4)), (NO), 0, "", "stmxcsr (%%rsi)", "")
FORM(clzero, (AT('w', 0, 64, 64)), (NO), FORM_CLZERO, "movq %%rsi,%%rax",
    "clzero", "")

/* the stack pointer is p */
FORM(push, (AT('w', -8, 8, 8)), (NO), 0, ON_STACK, "pushq %%rcx", OFF_STACK)
FORM(push_w, (AT('w', -2, 2, 2)), (NO), 0, ON_STACK, "pushw %%cx", OFF_STACK)
FORM(push_i, (AT('w', -8, 8, 8)), (NO), 0, ON_STACK, "pushq $-77", OFF_STACK)
FORM(push_m, (AT('w', -8, 8, 8)), (R(8)), 0, ON_STACK, "pushq (%%rdi)",
    OFF_STACK)
FORM_ENDING(call, AT('w', -8, 8, 8), NO, 0, ON_STACK,
    "call 772f\n\tud2\n772:", OFF_STACK)
FORM_ENDING(call_r, AT('w', -8, 8, 8), NO, 0, ON_STACK,
    "call *%%r15\n\tud2\n772:", OFF_STACK)

/* from q, which the stack pointer is */
FORM(pop_m, (W(8)), (AT('r', 0, 8, 8)), 0,
    "movq %%rsp,%%r13\n\tmovq %%rdi,%%rsp", "popq (%%rsi)", OFF_STACK)

/*
 * Those that read what they write.
 */

#define COMPUTES(op, s, n, r)						\
	FORM(op##s, (M(n)), (NO), 0, CARRY, #op #s " %%" r ",(%%rsi)", "") \
	FORM(op##s##_i, (M(n)), (NO), 0, CARRY, #op #s " $0x5a,(%%rsi)", "") \
	FORM(lock_##op##s, (M(n)), (NO), 0, CARRY,			\
	    "lock " #op #s " %%" r ",(%%rsi)", "")
#define OF_EACH_SIZE(X, op)						\
	X(op, b, 1, "cl") X(op, w, 2, "cx") X(op, l, 4, "ecx")		\
	X(op, q, 8, "rcx")
OF_EACH_SIZE(COMPUTES, add)
OF_EACH_SIZE(COMPUTES, sub)
OF_EACH_SIZE(COMPUTES, and)
OF_EACH_SIZE(COMPUTES, or)
OF_EACH_SIZE(COMPUTES, xor)
OF_EACH_SIZE(COMPUTES, adc)
OF_EACH_SIZE(COMPUTES, sbb)

#define ALONE(op, s, n, r)						\
	FORM(op##s, (M(n)), (NO), 0, "", #op #s " (%%rsi)", "")
OF_EACH_SIZE(ALONE, inc)
OF_EACH_SIZE(ALONE, dec)
OF_EACH_SIZE(ALONE, neg)
OF_EACH_SIZE(ALONE, not)
FORM(lock_incq, (M(8)), (NO), FORM_CONTENDS, "", "lock incq (%%rsi)", "")

#define SHIFTS(op, s, n, r)						\
	FORM(op##s, (M(n)), (NO), 0, CARRY, #op #s " %%cl,(%%rsi)", "")	\
	FORM(op##s##_i, (M(n)), (NO), 0, CARRY, #op #s " $3,(%%rsi)", "") \
	FORM(op##s##_1, (M(n)), (NO), 0, CARRY, #op #s " (%%rsi)", "")
OF_EACH_SIZE(SHIFTS, shl)
OF_EACH_SIZE(SHIFTS, shr)
OF_EACH_SIZE(SHIFTS, sar)
OF_EACH_SIZE(SHIFTS, rol)
OF_EACH_SIZE(SHIFTS, ror)
OF_EACH_SIZE(SHIFTS, rcl)
OF_EACH_SIZE(SHIFTS, rcr)
FORM(shldq, (M(8)), (NO), 0, "", "shldq $5,%%rdx,(%%rsi)", "")
FORM(shrdl, (M(4)), (NO), 0, "", "shrdl %%cl,%%edx,(%%rsi)", "")

#define BIT_63 "andl $63,%%ecx"
FORM(btsq, (M(8)), (NO), 0, BIT_63, "btsq %%rcx,(%%rsi)", "")
FORM(btrq, (M(8)), (NO), 0, BIT_63, "btrq %%rcx,(%%rsi)", "")
FORM(btcq, (M(8)), (NO), 0, BIT_63, "lock btcq %%rcx,(%%rsi)", "")
FORM(btsl_i, (M(4)), (NO), 0, "", "btsl $17,(%%rsi)", "")
FORM(btcw_i, (M(2)), (NO), 0, "", "btcw $9,(%%rsi)", "")
FORM(btsq_far, (AT('m', 8, 8, 1)), (NO), 0, "movl $70,%%ecx",
    "btsq %%rcx,(%%rsi)", "")
FORM(btcq_back, (AT('m', -8, 8, 1)), (NO), 0, "movq $-3,%%rcx",
    "btcq %%rcx,(%%rsi)", "")

#define EXCHANGES(op, s, n, r)						\
	FORM(xchg##s, (M(n)), (NO), (n) == 8 ? FORM_CONTENDS : 0, "",	\
	    "xchg" #s " %%" r ",(%%rsi)", "")				\
	FORM(xadd##s, (M(n)), (NO), 0, "", "xadd" #s " %%" r ",(%%rsi)", "") \
	FORM(lock_xadd##s, (M(n)), (NO), (n) == 8 ? FORM_CONTENDS : 0, "", \
	    "lock xadd" #s " %%" r ",(%%rsi)", "")			\
	FORM(cmpxchg##s, (M(n)), (NO), FORM_COMPARES, "",		\
	    "cmpxchg" #s " %%" r ",(%%rsi)", "")			\
	FORM(lock_cmpxchg##s, (M(n)), (NO), FORM_COMPARES |		\
	    ((n) == 8 ? FORM_CONTENDS : 0), "",				\
	    "lock cmpxchg" #s " %%" r ",(%%rsi)", "")
OF_EACH_SIZE(EXCHANGES, )
FORM(cmpxchg8b, (M(8)), (NO), FORM_COMPARES,
    "movq %%rax,%%rdx\n\tshrq $32,%%rdx\n\tmovq %%rcx,%%rbx",
    "lock cmpxchg8b (%%rsi)", "")
FORM(cmpxchg16b, (AT('m', 0, 16, 16)), (NO), FORM_COMPARES,
    "movq %%rcx,%%rbx", "lock cmpxchg16b (%%rsi)", "")

/*
 * Loads.
 */

#define LOADS(op, s, n, r)						\
	FORM(load##s, (R(n)), (NO), 0, "", "mov" #s " (%%rsi),%%" r, "") \
	FORM(cmp##s, (R(n)), (NO), 0, "", "cmp" #s " %%" r ",(%%rsi)", "") \
	FORM(test##s##_i, (R(n)), (NO), 0, "", "test" #s " $5,(%%rsi)", "") \
	FORM(from_add##s, (R(n)), (NO), 0, "", "add" #s " (%%rsi),%%" r, "")
OF_EACH_SIZE(LOADS, )
FORM(load_base, (R(8)), (NO), 0, "", "movq (%%rsi),%%rsi", "")
FORM(movzbl, (R(1)), (NO), 0, "", "movzbl (%%rsi),%%ecx", "")
FORM(movzwq, (R(2)), (NO), 0, "", "movzwq (%%rsi),%%rcx", "")
FORM(movsbq, (R(1)), (NO), 0, "", "movsbq (%%rsi),%%rcx", "")
FORM(movswl, (R(2)), (NO), 0, "", "movswl (%%rsi),%%ecx", "")
FORM(movslq, (R(4)), (NO), 0, "", "movslq (%%rsi),%%rcx", "")
FORM(movbe_load, (R(8)), (NO), FORM_MOVBE, "", "movbe (%%rsi),%%rcx", "")
FORM(cmovb, (R(8)), (NO), 0, CARRY, "cmovbq (%%rsi),%%rdx", "")
FORM(imulq, (R(8)), (NO), 0, "", "imulq (%%rsi),%%rdx", "")
FORM(mull, (R(4)), (NO), 0, "", "mull (%%rsi)", "")
FORM(btq, (R(8)), (NO), 0, BIT_63, "btq %%rcx,(%%rsi)", "")
FORM(bsfq, (R(8)), (NO), 0, "", "bsfq (%%rsi),%%rcx", "")
FORM(lodsb, (R(1)), (NO), 0, "", "lodsb", "")
FORM(lodsq, (R(8)), (NO), 0, "", "lodsq", "")
FORM(scasl, (R(4)), (NO), 0, TO_P, "scasl", "")
FORM(cmpsb, (R(1)), (R(1)), 0, "", "cmpsb", "")
FORM(rep_lodsb, (R(6)), (NO), FORM_REPEATED, REP(6), "rep lodsb", "")
FORM(movups_load, (R(16)), (NO), 0, "", "movups (%%rsi),%%xmm0", "")
FORM(movaps_load, (AT('r', 0, 16, 16)), (NO), 0, "",
    "movaps (%%rsi),%%xmm0", "")
FORM(movss_load, (R(4)), (NO), 0, "", "movss (%%rsi),%%xmm0", "")
FORM(movsd_load, (R(8)), (NO), 0, "", "movsd (%%rsi),%%xmm0", "")
FORM(movd_load, (R(4)), (NO), 0, "", "movd (%%rsi),%%xmm0", "")
FORM(cvtsi2sd, (R(4)), (NO), 0, "", "cvtsi2sdl (%%rsi),%%xmm0", "")
FORM(paddb, (AT('r', 0, 16, 16)), (NO), 0, X0, "paddb (%%rsi),%%xmm0", "")
FORM(pinsrb, (R(1)), (NO), FORM_SSE4, X0, "pinsrb $4,(%%rsi),%%xmm0", "")
FORM(crc32, (R(8)), (NO), FORM_SSE4, "", "crc32q (%%rsi),%%rcx", "")
FORM(vmovdqu_load, (R(32)), (NO), AVX, "", "vmovdqu (%%rsi),%%ymm0", VZ)
FORM(vbroadcastss, (R(4)), (NO), AVX, "", "vbroadcastss (%%rsi),%%ymm0", VZ)
FORM(vmaskmovps_load, (R(32)), (NO),
    AVX | FORM_MASK_V | UNIT(4), "vmovdqu 64(%%r12),%%ymm1",
    "vmaskmovps (%%rsi),%%ymm1,%%ymm0", VZ)
FORM(vmovdqu64_load, (R(64)), (NO), AVX512, "", "vmovdqu64 (%%rsi),%%zmm0",
    VZ)
FORM(vmovdqu8_load, (R(32)), (NO), MASKED(1), Z0 "\n\t" K1,
    "vmovdqu8 (%%rsi),%%ymm0%{%%k1%}", VZ)
FORM(vpcmpeqb_load, (R(64)), (NO), AVX512, Z0,
    "vpcmpeqb (%%rsi),%%zmm0,%%k1", VZ)
FORM(flds, (R(4)), (NO), 0, "fninit", "flds (%%rsi)", "fninit")
FORM(fldl, (R(8)), (NO), 0, "fninit", "fldl (%%rsi)", "fninit")
FORM(fldt, (R(10)), (NO), 0, "fninit", "fldt (%%rsi)", "fninit")
FORM(fildl, (R(4)), (NO), 0, "fninit", "fildl (%%rsi)", "fninit")
FORM(fildq, (R(8)), (NO), 0, "fninit", "fildll (%%rsi)", "fninit")
FORM(pop, (AT('r', 0, 8, 8)), (NO), 0, ON_STACK, "popq %%rcx", OFF_STACK)
FORM(leave, (AT('r', 0, 8, 8)), (NO), 0,
    "movq %%rsp,%%r13\n\tmovq %%rbp,%%r11\n\tmovq %%rsi,%%rbp", "leave",
    "movq %%r11,%%rbp\n\t" OFF_STACK)
FORM(xlat, (R(1)), (NO), 0, "movq %%rsi,%%rbx\n\txorl %%eax,%%eax", "xlatb",
    "")

/* What names memory and does not touch it. */
FORM(prefetch, (NO), (NO), 0, "", "prefetcht0 (%%rsi)", "")
FORM(nop, (NO), (NO), 0, "", "nopl (%%rsi)", "")
FORM(lea, (NO), (NO), 0, "", "leaq 8(%%rsi),%%rcx", "")

#endif
