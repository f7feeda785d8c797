/*
 * number: does C's arithmetic on numbers of any of its types, as a program's
 * compiler would do it on x86-64.
 *
 * What C leaves undefined has no result: an integer division by zero, a shift
 * by too many bits, the conversion of a floating-point number that does not
 * fit.  Only signed overflow wraps around.  Pure.
 */
#ifndef EX_NUMBER_H
#define EX_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

struct ex_number {
	bool is_float, is_signed;
	unsigned size;		/* bytes: 1, 2, 4, 8; FLOAT: 4, 8, 16 */
	uint64_t bits;		/* extended by its sign, or zero */
	long double real;	/* FLOAT */
};

enum ex_operator {
	EX_MULTIPLY, EX_DIVIDE, EX_REMAINDER, EX_ADD, EX_SUBTRACT,
	EX_SHIFT_LEFT, EX_SHIFT_RIGHT,
	EX_LESS, EX_NOT_ABOVE, EX_ABOVE, EX_NOT_LESS, EX_EQUAL, EX_UNEQUAL,
	EX_BIT_AND, EX_BIT_XOR, EX_BIT_OR,
};

/* An int. */
struct ex_number ex_number_int(int);

/* An integer of size bytes: the lowest of these bits. */
struct ex_number ex_number_integer(uint64_t bits, unsigned size,
    bool is_signed);

/* Whether it is not zero. */
bool ex_number_truth(const struct ex_number *);

/* The integer promotions; nothing for a floating-point number. */
struct ex_number ex_number_promote(const struct ex_number *);

/* The usual arithmetic conversions, as before an addition: *a, *b. */
void ex_number_balance(struct ex_number *a, struct ex_number *b);

/* Convert to the type of a number, or to bool.  False: undefined. */
bool ex_number_cast(const struct ex_number *, const struct ex_number *type,
    struct ex_number *);
struct ex_number ex_number_bool(const struct ex_number *);

/* left OPERATOR right; comparisons give an int, 0 or 1.  False: undefined, or
   not an operator for floating-point numbers. */
bool ex_number_apply(enum ex_operator, const struct ex_number *left,
    const struct ex_number *right, struct ex_number *);

/* The order of two numbers of one type.  NaN has none. */
enum ex_order {
	EX_ORDER_LESS, EX_ORDER_EQUAL, EX_ORDER_ABOVE, EX_ORDER_NONE,
};
static inline enum ex_order
ex_number_order(const struct ex_number *a, const struct ex_number *b)
{
	const bool less = a->is_float ? a->real < b->real : a->is_signed ?
	    (int64_t)a->bits < (int64_t)b->bits : a->bits < b->bits;
	const bool equal = a->is_float ? a->real == b->real :
	    a->bits == b->bits;

	return less ? EX_ORDER_LESS : equal ? EX_ORDER_EQUAL :
	    a->is_float && !(a->real > b->real) ? EX_ORDER_NONE :
	    EX_ORDER_ABOVE;
}

/* -x, and ~x.  False: floating-point numbers have no ~. */
struct ex_number ex_number_negate(const struct ex_number *);
bool ex_number_complement(const struct ex_number *, struct ex_number *);

#endif
