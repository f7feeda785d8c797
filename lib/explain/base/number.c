/* number: C's arithmetic. */
#include "base/number.h"

enum { INT = sizeof(int) };

static bool
is_negative(const struct ex_number *n)
{
	return n->is_signed && (int64_t)n->bits < 0;
}

struct ex_number
ex_number_integer(uint64_t bits, unsigned size, bool is_signed)
{
	struct ex_number n = {.is_signed = is_signed, .size = size};
	const unsigned spare = 64 - 8 * size;

	n.bits = bits << spare;
	n.bits = is_signed ? (uint64_t)((int64_t)n.bits >> spare) :
	    n.bits >> spare;
	return n;
}

struct ex_number
ex_number_int(int value)
{
	return ex_number_integer((uint64_t)(int64_t)value, INT, true);
}

static struct ex_number
number_float(long double real, unsigned size)
{
	struct ex_number n = {.is_float = true, .is_signed = true,
	    .size = size, .real = real};

	if (size == sizeof(float))
		n.real = (long double)(float)real;
	else if (size == sizeof(double))
		n.real = (long double)(double)real;
	return n;
}

bool
ex_number_truth(const struct ex_number *n)
{
	return n->is_float ? n->real != 0 : n->bits != 0;
}

struct ex_number
ex_number_promote(const struct ex_number *n)
{
	return n->is_float || n->size >= INT ? *n :
	    ex_number_integer(n->bits, INT, true);
}

static long double
real_of(const struct ex_number *n)
{
	return n->is_float ? n->real : is_negative(n) ?
	    (long double)(int64_t)n->bits : (long double)n->bits;
}

static unsigned
float_size(const struct ex_number *n)
{
	return n->is_float ? n->size : 0;
}

void
ex_number_balance(struct ex_number *a, struct ex_number *b)
{
	unsigned size = float_size(a);
	bool is_signed;

	if (float_size(b) > size)
		size = float_size(b);
	if (size > 0) {
		*a = number_float(real_of(a), size);
		*b = number_float(real_of(b), size);
		return;
	}
	*a = ex_number_promote(a);
	*b = ex_number_promote(b);
	size = a->size > b->size ? a->size : b->size;
	/* the sign of the wider one; of two with the same size, unsigned
	   wins */
	is_signed = a->size == b->size ? a->is_signed && b->is_signed :
	    a->size > b->size ? a->is_signed : b->is_signed;
	*a = ex_number_integer(a->bits, size, is_signed);
	*b = ex_number_integer(b->bits, size, is_signed);
}

/* Whether the integer part fits this type. */
static bool
fits(long double real, unsigned size, bool is_signed)
{
	const unsigned bits = 8 * size - is_signed;
	const long double end = 2 * (long double)(UINT64_C(1) << (bits - 1));

	return real < end && real > (is_signed ? -end - 1 : -1);
}

bool
ex_number_cast(const struct ex_number *n, const struct ex_number *type,
    struct ex_number *out)
{
	if (type->is_float)
		*out = number_float(real_of(n), type->size);
	else if (!n->is_float)
		*out = ex_number_integer(n->bits, type->size, type->is_signed);
	else if (!fits(n->real, type->size, type->is_signed))
		return false;
	else
		*out = ex_number_integer(n->real < 0 ?
		    (uint64_t)(int64_t)n->real : (uint64_t)n->real,
		    type->size, type->is_signed);
	return true;
}

struct ex_number
ex_number_bool(const struct ex_number *n)
{
	return ex_number_integer(ex_number_truth(n), 1, false);
}

static bool
shift(enum ex_operator operator, const struct ex_number *left,
    const struct ex_number *right, struct ex_number *out)
{
	const struct ex_number n = ex_number_promote(left);
	const uint64_t by = right->bits;

	if (is_negative(right) || by >= 8 * n.size)
		return false;
	*out = ex_number_integer(operator == EX_SHIFT_LEFT ? n.bits << by :
	    n.is_signed ? (uint64_t)((int64_t)n.bits >> by) : n.bits >> by,
	    n.size, n.is_signed);
	return true;
}

/* Compare two numbers of the same type. */
static bool
compare(enum ex_operator operator, const struct ex_number *a,
    const struct ex_number *b)
{
	const enum ex_order order = ex_number_order(a, b);

	switch (operator) {
	case EX_LESS:
		return order == EX_ORDER_LESS;
	case EX_ABOVE:
		return order == EX_ORDER_ABOVE;
	case EX_NOT_ABOVE:
		return order == EX_ORDER_LESS || order == EX_ORDER_EQUAL;
	case EX_NOT_LESS:
		return order == EX_ORDER_ABOVE || order == EX_ORDER_EQUAL;
	case EX_EQUAL:
		return order == EX_ORDER_EQUAL;
	default:	/* EX_UNEQUAL */
		return order != EX_ORDER_EQUAL;
	}
}

/* Each operation is done in its own type, so that the result is rounded
   once. */
#define IN_ITS_TYPE(a, operator, b)					\
	((a)->size == sizeof(float) ?					\
	    (long double)((float)(a)->real operator (float)(b)->real) :	\
	(a)->size == sizeof(double) ?					\
	    (long double)((double)(a)->real operator (double)(b)->real) : \
	(a)->real operator (b)->real)

static bool
apply_float(enum ex_operator operator, const struct ex_number *a,
    const struct ex_number *b, struct ex_number *out)
{
	long double real;

	switch (operator) {
	case EX_MULTIPLY:
		real = IN_ITS_TYPE(a, *, b);
		break;
	case EX_DIVIDE:
		real = IN_ITS_TYPE(a, /, b);
		break;
	case EX_ADD:
		real = IN_ITS_TYPE(a, +, b);
		break;
	case EX_SUBTRACT:
		real = IN_ITS_TYPE(a, -, b);
		break;
	default:
		return false;
	}
	*out = number_float(real, a->size);
	return true;
}

static bool
divide(enum ex_operator operator, const struct ex_number *a,
    const struct ex_number *b, uint64_t *bits)
{
	const int64_t x = (int64_t)a->bits, y = (int64_t)b->bits;

	if (b->bits == 0 || (a->is_signed && y == -1 &&
	    x == INT64_MIN >> (64 - 8 * a->size)))
		return false;
	if (a->is_signed)
		*bits = (uint64_t)(operator == EX_DIVIDE ? x / y : x % y);
	else
		*bits = operator == EX_DIVIDE ? a->bits / b->bits :
		    a->bits % b->bits;
	return true;
}

static bool
apply_integer(enum ex_operator operator, const struct ex_number *a,
    const struct ex_number *b, struct ex_number *out)
{
	uint64_t bits = 0;

	switch (operator) {
	case EX_MULTIPLY:
		bits = a->bits * b->bits;
		break;
	case EX_DIVIDE:
	case EX_REMAINDER:
		if (!divide(operator, a, b, &bits))
			return false;
		break;
	case EX_ADD:
		bits = a->bits + b->bits;
		break;
	case EX_SUBTRACT:
		bits = a->bits - b->bits;
		break;
	case EX_BIT_AND:
		bits = a->bits & b->bits;
		break;
	case EX_BIT_XOR:
		bits = a->bits ^ b->bits;
		break;
	default:	/* EX_BIT_OR */
		bits = a->bits | b->bits;
		break;
	}
	*out = ex_number_integer(bits, a->size, a->is_signed);
	return true;
}

bool
ex_number_apply(enum ex_operator operator, const struct ex_number *left,
    const struct ex_number *right, struct ex_number *out)
{
	struct ex_number a = *left, b = *right;

	if (operator == EX_SHIFT_LEFT || operator == EX_SHIFT_RIGHT)
		return !a.is_float && !b.is_float &&
		    shift(operator, &a, &b, out);
	ex_number_balance(&a, &b);
	if (operator >= EX_LESS && operator <= EX_UNEQUAL) {
		*out = ex_number_int(compare(operator, &a, &b));
		return true;
	}
	return a.is_float ? apply_float(operator, &a, &b, out) :
	    apply_integer(operator, &a, &b, out);
}

struct ex_number
ex_number_negate(const struct ex_number *n)
{
	const struct ex_number p = ex_number_promote(n);

	return p.is_float ? number_float(-p.real, p.size) :
	    ex_number_integer(0 - p.bits, p.size, p.is_signed);
}

bool
ex_number_complement(const struct ex_number *n, struct ex_number *out)
{
	const struct ex_number p = ex_number_promote(n);

	if (!p.is_float)
		*out = ex_number_integer(~p.bits, p.size, p.is_signed);
	return !p.is_float;
}
