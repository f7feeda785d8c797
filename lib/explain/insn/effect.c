/*
 * effect: the arithmetic of x86's read-modify-write instructions, flags
 * included.
 */
#include "insn/effect.h"

/* Bits of the flags register, in the order of eflags. */
enum {
	CF = 1 << 0,
	PF = 1 << 2,
	AF = 1 << 4,
	ZF = 1 << 6,
	SF = 1 << 7,
	OF = 1 << 11,
};

/* The result of a computation, and the flags that it defines. */
struct result {
	unsigned bits;		/* 8, 16, 32 or 64 */
	uint64_t mask;		/* all bits of that width */
	uint64_t value;
	uint32_t flags;		/* those of `defined' that are set */
	uint32_t defined;
};

static bool
top_bit(const struct result *r, uint64_t value)
{
	return (value & (r->mask ^ r->mask >> 1)) != 0;
}

static void
define(struct result *r, uint32_t flag, bool set)
{
	r->defined |= flag;
	r->flags |= set ? flag : 0;
}

/* Flags that depend on the value alone. */
static void
define_value(struct result *r)
{
	define(r, ZF, r->value == 0);
	define(r, SF, top_bit(r, r->value));
	define(r, PF, (__builtin_popcount(r->value & 0xff) & 1) == 0);
}

static void
add(struct result *r, uint64_t a, uint64_t b, uint64_t carry)
{
	r->value = (a + b + carry) & r->mask;
	define_value(r);
	define(r, AF, ((a ^ b ^ r->value) >> 4 & 1) != 0);
	define(r, CF, top_bit(r, (a & b) | ((a | b) & ~r->value)));
	define(r, OF, top_bit(r, (a ^ r->value) & (b ^ r->value)));
}

static void
sub(struct result *r, uint64_t a, uint64_t b, uint64_t borrow)
{
	r->value = (a - b - borrow) & r->mask;
	define_value(r);
	define(r, AF, ((a ^ b ^ r->value) >> 4 & 1) != 0);
	define(r, CF, top_bit(r, (~a & b) | ((~a | b) & r->value)));
	define(r, OF, top_bit(r, (a ^ b) & (a ^ r->value)));
}

static void
logic(struct result *r, uint64_t value)
{
	r->value = value;
	define_value(r);
	define(r, CF | OF, false);
}

/* inc and dec do not change the carry. */
static void
forget_carry(struct result *r)
{
	r->defined &= ~(uint32_t)CF;
	r->flags &= ~(uint32_t)CF;
}

/* A shift or rotation by 0 changes nothing. */
static unsigned
count_of(const struct result *r, uint64_t operand)
{
	return (unsigned)(operand & (r->bits == 64 ? 63 : 31));
}

static void
shift_left(struct result *r, uint64_t a, unsigned count)
{
	r->value = count < r->bits ? a << count & r->mask : 0;
	define_value(r);
	if (count <= r->bits)
		define(r, CF, (a >> (r->bits - count) & 1) != 0);
	if (count == 1)
		define(r, OF, top_bit(r, a) != top_bit(r, r->value));
}

static void
shift_right(struct result *r, uint64_t a, unsigned count)
{
	r->value = count < r->bits ? a >> count : 0;
	define_value(r);
	if (count <= r->bits)
		define(r, CF, (a >> (count - 1) & 1) != 0);
	if (count == 1)
		define(r, OF, top_bit(r, a));
}

static void
shift_signed(struct result *r, uint64_t a, unsigned count)
{
	const uint64_t sign = top_bit(r, a) ? ~r->mask : 0;
	const uint64_t wide = a | sign;		/* extended to 64 bits */
	const uint64_t fill = top_bit(r, a) ? ~UINT64_C(0) : 0;

	r->value = ((wide >> count) | (fill << 1 << (63 - count))) & r->mask;
	define_value(r);
	define(r, CF, (wide >> (count - 1) & 1) != 0);
	if (count == 1)
		define(r, OF, false);
}

static void
rotate(struct result *r, uint64_t a, unsigned left)
{
	left %= r->bits;
	r->value = left == 0 ? a :
	    (a << left | a >> (r->bits - left)) & r->mask;
}

static void
shift(struct result *r, enum ex_operation operation, uint64_t a,
    uint64_t operand)
{
	const unsigned count = count_of(r, operand);

	r->value = a;
	if (count == 0)
		return;
	switch (operation) {
	case EX_OP_SHL:
		shift_left(r, a, count);
		break;
	case EX_OP_SHR:
		shift_right(r, a, count);
		break;
	case EX_OP_SAR:
		shift_signed(r, a, count);
		break;
	case EX_OP_ROL:
		rotate(r, a, count);
		define(r, CF, (r->value & 1) != 0);
		break;
	default:
		rotate(r, a, r->bits - count % r->bits);
		define(r, CF, top_bit(r, r->value));
	}
}

/* The carry is the previous value of the bit. */
static void
bit(struct result *r, enum ex_operation operation, uint64_t a,
    uint64_t operand)
{
	const uint64_t one = UINT64_C(1) << operand % r->bits;

	define(r, CF, (a & one) != 0);
	r->value = operation == EX_OP_BTS ? a | one :
	    operation == EX_OP_BTR ? a & ~one : a ^ one;
}

/* Returns false if the operation is not a computation. */
static bool
compute(struct result *r, enum ex_operation operation, uint64_t a, uint64_t b,
    unsigned carry)
{
	switch (operation) {
	case EX_OP_ADD:
	case EX_OP_ADC:
		add(r, a, b, carry);
		return true;
	case EX_OP_SUB:
	case EX_OP_SBB:
		sub(r, a, b, carry);
		return true;
	case EX_OP_INC:
		add(r, a, 1, 0);
		forget_carry(r);
		return true;
	case EX_OP_DEC:
		sub(r, a, 1, 0);
		forget_carry(r);
		return true;
	case EX_OP_NEG:
		sub(r, 0, a, 0);
		return true;
	case EX_OP_NOT:
		r->value = ~a & r->mask;
		return true;
	case EX_OP_AND:
		logic(r, a & b);
		return true;
	case EX_OP_OR:
		logic(r, a | b);
		return true;
	case EX_OP_XOR:
		logic(r, a ^ b);
		return true;
	case EX_OP_SHL:
	case EX_OP_SHR:
	case EX_OP_SAR:
	case EX_OP_ROL:
	case EX_OP_ROR:
		shift(r, operation, a, b);
		return true;
	case EX_OP_BTS:
	case EX_OP_BTR:
	case EX_OP_BTC:
		bit(r, operation, a, b);
		return true;
	default:
		return false;
	}
}

enum ex_derived
ex_effect_derive(const struct ex_effect *e, uint64_t old, uint64_t *value)
{
	const bool with_carry = e->operation == EX_OP_ADC ||
	    e->operation == EX_OP_SBB;
	const unsigned bits = e->size * 8u;
	unsigned fit = 0;

	if (e->size == 0 || e->size > 8 || (e->size & (e->size - 1)) != 0 ||
	    (with_carry && !e->has_flags))
		return EX_NOT_DERIVED;
	/* the carry that was added is lost, but the flags may show which it
	   was */
	for (unsigned carry = 0; carry < (with_carry ? 2 : 1); carry++) {
		struct result r = { .bits = bits,
		    .mask = ~UINT64_C(0) >> (64 - bits) };

		if (!compute(&r, e->operation, old & r.mask,
		    e->operand & r.mask, carry))
			return EX_NOT_DERIVED;
		if (e->has_flags && ((e->flags ^ r.flags) & r.defined) != 0)
			continue;
		*value = r.value;
		fit++;
	}
	return fit == 1 ? EX_DERIVED :
	    fit == 0 ? EX_CONTRADICTED : EX_NOT_DERIVED;
}

bool
ex_effect_may_add(const struct ex_effect *e, uint64_t old, uint64_t value)
{
	struct result r = {.bits = e->size * 8u};

	if (!e->has_flags || e->size == 0 || e->size > 8)
		return true;
	r.mask = ~UINT64_C(0) >> (64 - r.bits);
	add(&r, old & r.mask, (value - old) & r.mask, 0);
	return ((e->flags ^ r.flags) & r.defined) == 0;
}

bool
ex_effect_invert(const struct ex_effect *e, uint64_t value, uint64_t *old)
{
	struct ex_effect back = *e;
	uint64_t again;

	back.has_flags = false;
	switch (e->operation) {
	case EX_OP_ADD:
		back.operation = EX_OP_SUB;
		break;
	case EX_OP_SUB:
		back.operation = EX_OP_ADD;
		break;
	case EX_OP_INC:
		back.operation = EX_OP_DEC;
		break;
	case EX_OP_DEC:
		back.operation = EX_OP_INC;
		break;
	case EX_OP_XOR:
	case EX_OP_NEG:
	case EX_OP_NOT:
	case EX_OP_BTC:
		break;
	default:
		return false;
	}
	/* the flags contradict: value is not what it left */
	return ex_effect_derive(&back, value, old) == EX_DERIVED &&
	    ex_effect_derive(e, *old, &again) == EX_DERIVED && again == value;
}
