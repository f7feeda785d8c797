/*
 * effect: the results of read-modify-write instructions agree with those of the
 * processor.
 */
#include "test.h"

#include <string.h>

#include "insn/effect.h"

enum { ROUNDS = 20000 };

/* What the processor makes of *value and an operand; the flags after it. */
#define RUN(instruction, suffix)					\
static uint64_t								\
instruction##suffix(uint64_t *value, uint64_t operand, bool carry)	\
{									\
	uint64_t ax = carry;						\
									\
	__asm__ volatile("btl $0,%k0\n\t"				\
	    OPERATION_##suffix(#instruction)				\
	    "\n\tlahf\n\tseto %%al"					\
	    : "+&a"(ax), "+m"(*value) : "c"(operand) : "memory", "cc");	\
	return (ax >> 8 & 0xff) | (ax & 1) << 11;			\
}

#define OPERATION_q(name) name "q %%rcx,%1"
#define OPERATION_l(name) name "l %%ecx,%k1"
#define OPERATION_w(name) name "w %%cx,%w1"
#define OPERATION_b(name) name "b %%cl,%b1"
#define OPERATION_q1(name) name "q %1"
#define OPERATION_l1(name) name "l %k1"
#define OPERATION_w1(name) name "w %w1"
#define OPERATION_b1(name) name "b %b1"
#define OPERATION_qc(name) name "q %%cl,%1"
#define OPERATION_lc(name) name "l %%cl,%k1"
#define OPERATION_wc(name) name "w %%cl,%w1"
#define OPERATION_bc(name) name "b %%cl,%b1"

#define BINARY(name) RUN(name, q) RUN(name, l) RUN(name, w) RUN(name, b)
#define UNARY(name) RUN(name, q1) RUN(name, l1) RUN(name, w1) RUN(name, b1)
#define SHIFT(name) RUN(name, qc) RUN(name, lc) RUN(name, wc) RUN(name, bc)
BINARY(add) BINARY(adc) BINARY(sub) BINARY(sbb) BINARY(and) BINARY(or)
BINARY(xor)
UNARY(inc) UNARY(dec) UNARY(neg) UNARY(not)
SHIFT(shl) SHIFT(shr) SHIFT(sar) SHIFT(rol) SHIFT(ror)

/* Of bits, the operand's number is within the value. */
RUN(bts, q) RUN(btr, q) RUN(btc, q) RUN(bts, l) RUN(btr, l) RUN(btc, l)

static const struct form {
	const char *name;
	enum ex_operation operation;
	uint8_t size;
	uint64_t (*run)(uint64_t *, uint64_t, bool);
	uint64_t operands;	/* a mask of what is given */
} forms[] = {
#define FORMS(name, operation, s8, s4, s2, s1, mask)			\
	{#name "q", operation, 8, name##s8, mask},			\
	{#name "l", operation, 4, name##s4, mask},			\
	{#name "w", operation, 2, name##s2, mask},			\
	{#name "b", operation, 1, name##s1, mask},
#define BINARIES(name, operation) FORMS(name, operation, q, l, w, b, UINT64_MAX)
#define UNARIES(name, operation) FORMS(name, operation, q1, l1, w1, b1, 0)
#define SHIFTS(name, operation) FORMS(name, operation, qc, lc, wc, bc, 0xff)
	BINARIES(add, EX_OP_ADD) BINARIES(adc, EX_OP_ADC)
	BINARIES(sub, EX_OP_SUB) BINARIES(sbb, EX_OP_SBB)
	BINARIES(and, EX_OP_AND) BINARIES(or, EX_OP_OR)
	BINARIES(xor, EX_OP_XOR)
	UNARIES(inc, EX_OP_INC) UNARIES(dec, EX_OP_DEC)
	UNARIES(neg, EX_OP_NEG) UNARIES(not, EX_OP_NOT)
	SHIFTS(shl, EX_OP_SHL) SHIFTS(shr, EX_OP_SHR) SHIFTS(sar, EX_OP_SAR)
	SHIFTS(rol, EX_OP_ROL) SHIFTS(ror, EX_OP_ROR)
	{"btsq", EX_OP_BTS, 8, btsq, 63}, {"btsl", EX_OP_BTS, 4, btsl, 31},
	{"btrq", EX_OP_BTR, 8, btrq, 63}, {"btrl", EX_OP_BTR, 4, btrl, 31},
	{"btcq", EX_OP_BTC, 8, btcq, 63}, {"btcl", EX_OP_BTC, 4, btcl, 31},
};

static uint64_t
next_random(uint64_t *x)
{
	*x = *x * UINT64_C(6364136223846793005) + 1442695040888963407;
	return *x >> 33;
}

/* Values of all kinds: few bits, many, the ends of ranges. */
static uint64_t
next_value(uint64_t *x)
{
	const uint64_t wide = next_random(x) << 40 ^ next_random(x) << 20 ^
	    next_random(x);

	switch (next_random(x) % 4) {
	case 0:
		return next_random(x) % 4;
	case 1:
		return UINT64_C(1) << next_random(x) % 64;
	case 2:
		return ~(next_random(x) % 4);
	default:
		return wide;
	}
}

static uint64_t
masked(uint64_t value, unsigned size)
{
	return value & (~UINT64_C(0) >> (64 - 8 * size));
}

/* Derive it: found, and with flags that show another old value. */
static void
check(const struct form *form, uint64_t old, uint64_t operand, bool carry,
    unsigned *derivations)
{
	struct ex_effect effect = {.operation = form->operation,
	    .size = form->size, .operand = operand, .has_flags = true};
	uint64_t value = old, got = 0;
	enum ex_derived derived;

	effect.flags = form->run(&value, operand, carry);
	if (ex_effect_invert(&effect, masked(value, form->size), &got) &&
	    got != masked(old, form->size))
		fail_msg("%s: %#llx from %#llx, not from %#llx", form->name,
		    (unsigned long long)value, (unsigned long long)got,
		    (unsigned long long)old);
	derived = ex_effect_derive(&effect, masked(old, form->size), &got);
	if (derived == EX_CONTRADICTED || (derived == EX_DERIVED &&
	    got != masked(value, form->size)))
		fail_msg("%s: %#llx, %#llx: %s %#llx, not %#llx", form->name,
		    (unsigned long long)old, (unsigned long long)operand,
		    derived == EX_DERIVED ? "gives" : "contradicts",
		    (unsigned long long)got,
		    (unsigned long long)masked(value, form->size));
	*derivations += derived == EX_DERIVED;
}

TEST(computes_as_the_processor_does)
{
	uint64_t x = 1;

	for (size_t i = 0; i < COUNT(forms); i++) {
		const struct form *form = &forms[i];
		const bool with_carry = form->operation == EX_OP_ADC ||
		    form->operation == EX_OP_SBB;
		unsigned derivations = 0;

		for (unsigned n = 0; n < ROUNDS; n++)
			check(form, next_value(&x),
			    next_value(&x) & form->operands, n % 2 != 0,
			    &derivations);
		/* the carry that went in does not always show */
		if (with_carry ? derivations < ROUNDS / 4 :
		    derivations != ROUNDS)
			fail_msg("%s: only %u told", form->name, derivations);
	}
}

/* An old value that was another shows more often than not. */
TEST(sees_by_the_flags)
{
	static const enum ex_operation operations[] = {
		EX_OP_ADD, EX_OP_SUB, EX_OP_XOR, EX_OP_INC, EX_OP_NEG,
	};
	uint64_t x = 2, value;

	for (size_t i = 0; i < COUNT(operations); i++) {
		const enum ex_operation op = operations[i];
		unsigned seen = 0;

		for (unsigned n = 0; n < 1000; n++) {
			uint64_t truth = next_random(&x), got;
			struct ex_effect effect = {.operation = op,
			    .size = 8, .operand = 3, .has_flags = true};

			value = truth;
			effect.flags = op == EX_OP_ADD ?
			    addq(&value, 3, false) : op == EX_OP_SUB ?
			    subq(&value, 3, false) : op == EX_OP_XOR ?
			    xorq(&value, 3, false) : op == EX_OP_INC ?
			    incq1(&value, 3, false) :
			    negq1(&value, 3, false);
			seen += ex_effect_derive(&effect, next_random(&x),
			    &got) == EX_CONTRADICTED;
		}
		if (seen < 400 || seen == 1000)
			fail_msg("operation %d: seen %u times", (int)op, seen);
	}
}

TEST(does_not_guess)
{
	static const struct ex_effect cases[] = {
		{.operation = EX_OP_UNKNOWN, .size = 8},
		{.operation = EX_OP_NONE, .size = 8},
		{.operation = EX_OP_STORE, .size = 8},
		{.operation = EX_OP_ADD, .size = 0},
		{.operation = EX_OP_ADD, .size = 16},
		{.operation = EX_OP_ADD, .size = 3},
		{.operation = EX_OP_ADC, .size = 8},	/* no flags */
	};
	uint64_t value;

	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(ex_effect_derive(&cases[i], 1, &value),
		    EX_NOT_DERIVED);
	/* without flags there is nothing to contradict */
	assert_int_equal(ex_effect_derive(&(struct ex_effect){
	    .operation = EX_OP_ADD, .size = 1, .operand = 2}, 0xff, &value),
	    EX_DERIVED);
	assert_int_equal(value, 1);
}

/* What was there before, where no other value leads to the new one. */
TEST(goes_back)
{
	static const struct {
		enum ex_operation operation;
		bool back;
	} cases[] = {
		{EX_OP_ADD, true}, {EX_OP_SUB, true}, {EX_OP_INC, true},
		{EX_OP_DEC, true}, {EX_OP_XOR, true}, {EX_OP_NEG, true},
		{EX_OP_NOT, true}, {EX_OP_BTC, true}, {EX_OP_AND, false},
		{EX_OP_OR, false}, {EX_OP_SHL, false}, {EX_OP_BTS, false},
		{EX_OP_STORE, false}, {EX_OP_NONE, false},
		{EX_OP_UNKNOWN, false},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ex_effect effect = {.operation = cases[i].operation,
		    .size = 4, .operand = 5};
		uint64_t value = 0, old;

		(void)ex_effect_derive(&effect, 0xfffffffe, &value);
		assert_int_equal(ex_effect_invert(&effect, value, &old),
		    cases[i].back);
		if (cases[i].back)
			assert_int_equal(old, 0xfffffffe);
		/* which no addition of 5 left so */
		effect.has_flags = true;
		effect.flags = 1 << 6;
		if (cases[i].operation == EX_OP_ADD)
			assert_false(ex_effect_invert(&effect, value, &old));
	}
}

/* The flags of every addition of bytes fit what it left, and seldom others. */
TEST(flags_of_an_addition_of_something)
{
	unsigned others = 0;

	for (unsigned i = 0; i < 1u << 16; i++) {
		uint64_t value = i & 0xff;
		struct ex_effect effect = {
			.size = 1, .added = true, .has_flags = true,
		};

		effect.flags = addb(&value, i >> 8, false);
		assert_true(ex_effect_may_add(&effect, i & 0xff, value));
		others += ex_effect_may_add(&effect, i & 0xff, value ^ 0x18);
		effect.has_flags = false;
		assert_true(ex_effect_may_add(&effect, i & 0xff, value ^ 1));
	}
	assert_true(others < 1u << 15);
}

RUN_TESTS()
