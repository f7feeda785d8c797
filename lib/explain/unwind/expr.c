/*
 * expr: a stack machine for DWARF expressions (DWARF 5, section 2.5), the
 * operations that are allowed in call frame information.
 */
#include "unwind/expr.h"

#include <dwarf.h>
#include <errno.h>
#include <string.h>

#define STACK_MAX 64
#define STEPS_MAX 1024

struct expr_machine {
	const struct ex_expr_env *env;
	uint64_t stack[STACK_MAX];
	unsigned depth;			/* entries on the stack */
};

/* Values of 32-bit code are kept sign-extended on the stack, which most
   operations need; the others remove the extension. */
static uint64_t
as_signed(const struct expr_machine *m, uint64_t value)
{
	return m->env->regs->narrow ? (uint64_t)(int64_t)(int32_t)value : value;
}

static uint64_t
as_unsigned(const struct expr_machine *m, uint64_t value)
{
	return m->env->regs->narrow ? (uint32_t)value : value;
}

static int
push(struct expr_machine *m, uint64_t value)
{
	if (m->depth == STACK_MAX)
		return -EINVAL;
	m->stack[m->depth++] = value;
	return 0;
}

static int
push_register(struct expr_machine *m, uint64_t reg, uint64_t offset)
{
	const unsigned number = ex_regs_number(m->env->regs->narrow, reg);

	if (!ex_regs_known(m->env->regs, number))
		return -ENODATA;
	if (m->env->used != NULL)
		*m->env->used |= UINT64_C(1) << number;
	return push(m, m->env->regs->value[number] + offset);
}

/* Push a copy of the n-th entry from the top. */
static int
push_copy(struct expr_machine *m, uint64_t n)
{
	if (n >= m->depth)
		return -EINVAL;
	return push(m, m->stack[m->depth - 1 - n]);
}

static int
drop(struct expr_machine *m)
{
	if (m->depth == 0)
		return -EINVAL;
	m->depth--;
	return 0;
}

/* Move the top entry below the n - 1 entries under it. */
static int
rotate(struct expr_machine *m, unsigned n)
{
	uint64_t *low, top;

	if (m->depth < n)
		return -EINVAL;
	low = &m->stack[m->depth - n];
	top = low[n - 1];
	memmove(low + 1, low, (n - 1) * sizeof(*low));
	low[0] = top;
	return 0;
}

static int
dereference(struct expr_machine *m, uint64_t size)
{
	uint64_t *top, value = 0;

	if (m->depth == 0 || size == 0 || size > sizeof(value))
		return -EINVAL;
	top = &m->stack[m->depth - 1];
	if (!m->env->read(m->env->arg, as_unsigned(m, *top), &value,
	    (size_t)size))
		return -EFAULT;
	*top = value;
	return 0;
}

static int
unary(struct expr_machine *m, const Dwarf_Op *op)
{
	uint64_t *top;

	if (m->depth == 0)
		return -EINVAL;
	top = &m->stack[m->depth - 1];
	switch (op->atom) {
	case DW_OP_abs:
		if (*top >> 63 != 0)
			*top = -*top;
		return 0;
	case DW_OP_neg:
		*top = -*top;
		return 0;
	case DW_OP_not:
		*top = ~*top;
		return 0;
	default:			/* DW_OP_plus_uconst */
		*top += op->number;
		return 0;
	}
}

/* A shift by the width of a word or more leaves only the sign. */
static uint64_t
shift(uint8_t atom, uint64_t a, uint64_t by)
{
	uint64_t sign;

	if (atom == DW_OP_shl)
		return by < 64 ? a << by : 0;
	if (atom == DW_OP_shr)
		return by < 64 ? a >> by : 0;
	sign = a >> 63 != 0 ? UINT64_MAX : 0;
	if (by >= 64)
		return sign;
	return by == 0 ? a : a >> by | sign << (64 - by);
}

static int
divide(uint8_t atom, uint64_t a, uint64_t b, uint64_t *result)
{
	if (b == 0)
		return -EINVAL;
	if (atom == DW_OP_mod)
		*result = a % b;
	else if (b == UINT64_MAX)	/* INT64_MIN / -1 overflows */
		*result = -a;
	else
		*result = (uint64_t)((int64_t)a / (int64_t)b);
	return 0;
}

static bool
compare(uint8_t atom, int64_t a, int64_t b)
{
	switch (atom) {
	case DW_OP_eq:
		return a == b;
	case DW_OP_ne:
		return a != b;
	case DW_OP_lt:
		return a < b;
	case DW_OP_le:
		return a <= b;
	case DW_OP_gt:
		return a > b;
	default:			/* DW_OP_ge */
		return a >= b;
	}
}

/* Replace the two top entries, a below b, by the operation's result. */
static int
binary(struct expr_machine *m, uint8_t atom)
{
	uint64_t a, b, *result;

	if (m->depth < 2)
		return -EINVAL;
	b = m->stack[--m->depth];
	result = &m->stack[m->depth - 1];
	a = *result;
	switch (atom) {
	case DW_OP_and:
		*result = a & b;
		return 0;
	case DW_OP_or:
		*result = a | b;
		return 0;
	case DW_OP_xor:
		*result = a ^ b;
		return 0;
	case DW_OP_plus:
		*result = a + b;
		return 0;
	case DW_OP_minus:
		*result = a - b;
		return 0;
	case DW_OP_mul:
		*result = a * b;
		return 0;
	case DW_OP_div:
		return divide(atom, a, b, result);
	case DW_OP_mod:
		return divide(atom, as_unsigned(m, a), as_unsigned(m, b),
		    result);
	case DW_OP_shr:
		*result = shift(atom, as_unsigned(m, a), b);
		return 0;
	case DW_OP_shl:
	case DW_OP_shra:
		*result = shift(atom, a, b);
		return 0;
	default:
		*result = compare(atom, (int64_t)a, (int64_t)b);
		return 0;
	}
}

/* All operations that do not change the flow of control. */
static int
operate(struct expr_machine *m, const Dwarf_Op *op)
{
	switch (op->atom) {
	case DW_OP_lit0 ... DW_OP_lit31:
		return push(m, op->atom - DW_OP_lit0);
	case DW_OP_const1u ... DW_OP_consts:
		return push(m, op->number);
	case DW_OP_addr:
		return push(m, op->number + m->env->base);
	case DW_OP_breg0 ... DW_OP_breg31:
		return push_register(m, op->atom - DW_OP_breg0, op->number);
	case DW_OP_bregx:
		return push_register(m, op->number, op->number2);
	case DW_OP_call_frame_cfa:
		return m->env->cfa != NULL ? push(m, *m->env->cfa) : -EINVAL;
	case DW_OP_push_object_address:
		return m->env->object != NULL ? push(m, *m->env->object) :
		    -EINVAL;
	case DW_OP_dup:
		return push_copy(m, 0);
	case DW_OP_over:
		return push_copy(m, 1);
	case DW_OP_pick:
		return push_copy(m, op->number);
	case DW_OP_drop:
		return drop(m);
	case DW_OP_swap:
		return rotate(m, 2);
	case DW_OP_rot:
		return rotate(m, 3);
	case DW_OP_deref:
		return dereference(m, ex_regs_word(m->env->regs));
	case DW_OP_deref_size:
		return dereference(m, op->number);
	case DW_OP_abs:
	case DW_OP_neg:
	case DW_OP_not:
	case DW_OP_plus_uconst:
		return unary(m, op);
	case DW_OP_and:
	case DW_OP_div ... DW_OP_mul:
	case DW_OP_or ... DW_OP_plus:
	case DW_OP_shl ... DW_OP_xor:
	case DW_OP_eq ... DW_OP_ne:
		return binary(m, op->atom);
	case DW_OP_nop:
		return 0;
	default:
		return -EINVAL;
	}
}

/* Extend the result on top of the stack like any other value. */
static int
finish(struct expr_machine *m, int err)
{
	if (m->depth > 0)
		m->stack[m->depth - 1] = as_signed(m, m->stack[m->depth - 1]);
	return err;
}

/*
 * Returns the index of the operation that a branch leads to.  Its operand
 * counts bytes from the end of the branch.  n stands for the end of the
 * expression, -1 for a target in the middle of an operation.
 */
static ssize_t
target(const Dwarf_Op *ops, size_t n, const Dwarf_Op *op)
{
	const uint64_t offset = op->offset + 3 + op->number;
	size_t i;

	for (i = 0; i < n; i++)
		if (ops[i].offset == offset)
			return (ssize_t)i;
	return (int64_t)offset > (int64_t)ops[n - 1].offset ? (ssize_t)n : -1;
}

/* Execute the operation at *i and advance *i. */
static int
step(struct expr_machine *m, const Dwarf_Op *ops, size_t n, size_t *i)
{
	const Dwarf_Op *op = &ops[*i];
	ssize_t to = (ssize_t)*i + 1;

	switch (op->atom) {
	case DW_OP_stack_value:
		to = (ssize_t)n;
		break;
	case DW_OP_skip:
		to = target(ops, n, op);
		break;
	case DW_OP_bra:
		if (m->depth == 0)
			return -EINVAL;
		if (m->stack[--m->depth] != 0)
			to = target(ops, n, op);
		break;
	default:
		*i = (size_t)to;
		return finish(m, operate(m, op));
	}
	if (to < 0)
		return -EINVAL;
	*i = (size_t)to;
	return 0;
}

int
ex_expr_eval(const Dwarf_Op *ops, size_t n, const struct ex_expr_env *env,
    uint64_t *value)
{
	struct expr_machine m;
	unsigned steps = 0;
	size_t i = 0;
	int err;

	m.env = env;
	m.depth = 0;
	while (i < n) {
		if (steps++ == STEPS_MAX)
			return -EINVAL;
		err = step(&m, ops, n, &i);
		if (err != 0)
			return err;
	}
	if (m.depth == 0)
		return -EINVAL;
	*value = as_unsigned(&m, m.stack[m.depth - 1]);
	return 0;
}
