/* expr: each operation of the stack machine, and what must not be evaluated. */
#include "test.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/expr.h"

#define CFA UINT64_C(0x7ffd0000)
#define MEMORY UINT64_C(0x1000)

static const uint8_t memory[16] = {
	0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f,
};

static bool
read_memory(void *arg, uint64_t addr, void *to, size_t len)
{
	(void)arg;
	if (addr < MEMORY || addr - MEMORY > sizeof(memory) - len)
		return false;
	memcpy(to, memory + (addr - MEMORY), len);
	return true;
}

static int
eval(const Dwarf_Op *ops, size_t n, bool narrow, uint64_t *value)
{
	static const uint64_t cfa = CFA, object = 0x5000;
	const struct ex_regs regs = {
		.value = { [3] = 300, [7] = 0x7000, [16] = 0x40101b },
		.known = 1 << 3 | 1 << 7 | 1 << 16, .narrow = narrow,
	};
	const struct ex_expr_env env = {
		.regs = &regs, .cfa = &cfa, .object = &object, .base = 0x10000,
		.read = read_memory,
	};

	return ex_expr_eval(ops, n, &env, value);
}

#define OPS_MAX 12

struct scenario {
	const char *name;
	int err;
	uint64_t value;
	Dwarf_Op op[OPS_MAX];	/* up to the first that is all zero */
};

#define OP(name) { .atom = DW_OP_##name }
#define OP1(name, n) { .atom = DW_OP_##name, .number = (Dwarf_Word)(n) }
#define OP2(name, a, b) \
	{ .atom = DW_OP_##name, .number = (a), .number2 = (Dwarf_Word)(b) }
#define AT(at, name, n) \
	{ .atom = DW_OP_##name, .number = (Dwarf_Word)(n), .offset = (at) }
#define NEG(n) ((uint64_t)-(n))
#define BINARY(a, b, name, result) \
	{ #name, 0, result, { OP1(consts, a), OP1(consts, b), OP(name) } }

static const struct scenario scenarios[] = {
	{ "lit0", 0, 0, { OP(lit0) } },
	{ "lit31", 0, 31, { OP(lit31) } },
	{ "const1u", 0, 200, { OP1(const1u, 200) } },
	{ "const1s", 0, NEG(3), { OP1(const1s, -3) } },
	{ "const2u", 0, 65535, { OP1(const2u, 65535) } },
	{ "const2s", 0, NEG(300), { OP1(const2s, -300) } },
	{ "const4u", 0, 1U << 31, { OP1(const4u, 1U << 31) } },
	{ "const4s", 0, NEG(70000), { OP1(const4s, -70000) } },
	{ "const8u", 0, UINT64_MAX, { OP1(const8u, UINT64_MAX) } },
	{ "const8s", 0, NEG(1), { OP1(const8s, -1) } },
	{ "constu", 0, 77, { OP1(constu, 77) } },
	{ "addr", 0, 0x10020, { OP1(addr, 0x20) } },
	{ "breg3", 0, 292, { OP1(breg3, -8) } },
	{ "bregx", 0, 0x40101b + 5, { OP2(bregx, 16, 5) } },
	{ "push_object_address", 0, 0x5000, { OP(push_object_address) } },
	{ "call_frame_cfa", 0, CFA, { OP(call_frame_cfa) } },
	{ "dup", 0, 10, { OP(lit5), OP(dup), OP(plus) } },
	{ "drop", 0, 5, { OP(lit5), OP(lit6), OP(drop) } },
	{ "over", 0, 5, { OP(lit5), OP(lit6), OP(over) } },
	{ "pick", 0, 4, { OP(lit4), OP(lit5), OP(lit6), OP1(pick, 2) } },
	{ "swap", 0, 1, { OP(lit5), OP(lit6), OP(swap), OP(minus) } },
	{ "rot, top", 0, 2, { OP(lit1), OP(lit2), OP(lit3), OP(rot) } },
	{ "rot, second", 0, 1,
	    { OP(lit1), OP(lit2), OP(lit3), OP(rot), OP(drop) } },
	{ "rot, third", 0, 3,
	    { OP(lit1), OP(lit2), OP(lit3), OP(rot), OP(drop), OP(drop) } },
	{ "deref", 0, UINT64_C(0x1122334455667788),
	    { OP1(constu, MEMORY), OP(deref) } },
	{ "deref_size", 0, 0x667788,
	    { OP1(constu, MEMORY), OP1(deref_size, 3) } },
	{ "abs", 0, 9, { OP1(consts, -9), OP(abs) } },
	{ "abs of a positive", 0, 9, { OP(lit9), OP(abs) } },
	{ "abs of the least", 0, UINT64_C(1) << 63,
	    { OP1(constu, UINT64_C(1) << 63), OP(abs) } },
	{ "neg", 0, NEG(9), { OP(lit9), OP(neg) } },
	{ "not", 0, ~UINT64_C(9), { OP(lit9), OP(not) } },
	{ "plus_uconst", 0, 1009, { OP(lit9), OP1(plus_uconst, 1000) } },
	{ "nop", 0, 9, { OP(lit9), OP(nop) } },
	{ "stack_value ends", 0, 9, { OP(lit9), OP(stack_value), OP(drop) } },
	BINARY(12, 10, and, 8),
	BINARY(12, 10, or, 14),
	BINARY(12, 10, xor, 6),
	BINARY(-12, 10, plus, NEG(2)),
	BINARY(10, 12, minus, NEG(2)),
	BINARY(-3, 4, mul, NEG(12)),
	BINARY(-13, 4, div, NEG(3)),
	BINARY(INT64_MIN, -1, div, UINT64_C(1) << 63),
	BINARY(13, 4, mod, 1),
	BINARY(-1, 10, mod, UINT64_MAX % 10),
	BINARY(3, 4, shl, 48),
	BINARY(3, 64, shl, 0),
	BINARY(-1, 60, shr, 15),
	BINARY(-1, 64, shr, 0),
	BINARY(-16, 2, shra, NEG(4)),
	BINARY(-16, 0, shra, NEG(16)),
	BINARY(-16, 99, shra, NEG(1)),
	BINARY(16, 99, shra, 0),
	BINARY(-1, 1, lt, 1),
	BINARY(1, 1, lt, 0),
	BINARY(1, 1, le, 1),
	BINARY(1, -1, le, 0),
	BINARY(1, -1, gt, 1),
	BINARY(1, 1, gt, 0),
	BINARY(1, 1, ge, 1),
	BINARY(-1, 1, ge, 0),
	BINARY(1, 1, eq, 1),
	BINARY(1, 2, eq, 0),
	BINARY(1, 2, ne, 1),
	BINARY(1, 1, ne, 0),
	{ "skip", 0, 1,
	    { AT(0, lit1, 0), AT(1, skip, 1), AT(4, drop, 0), AT(5, nop, 0) } },
	{ "skip to the end", 0, 1,
	    { AT(0, lit1, 0), AT(1, skip, 1), AT(4, drop, 0) } },
	{ "bra taken", 0, 3, { AT(0, lit3, 0), AT(1, lit1, 0), AT(2, bra, 1),
	    AT(5, lit7, 0), AT(6, nop, 0) } },
	{ "bra not taken", 0, 7, { AT(0, lit3, 0), AT(1, lit0, 0),
	    AT(2, bra, 1), AT(5, lit7, 0), AT(6, nop, 0) } },
	/* what linkers write for a PLT entry: rip % 16 >= 11, so 8 more */
	{ "PLT stub", 0, 0x7000 + 16,
	    { OP1(breg7, 8), OP1(breg16, 0), OP(lit15), OP(and), OP(lit11),
	    OP(ge), OP(lit3), OP(shl), OP(plus) } },

	{ "nothing left", -EINVAL, 0, { OP(lit1), OP(drop) } },
	{ "drop of nothing", -EINVAL, 0, { OP(drop) } },
	{ "dup of nothing", -EINVAL, 0, { OP(dup) } },
	{ "over one", -EINVAL, 0, { OP(lit1), OP(over) } },
	{ "pick too deep", -EINVAL, 0, { OP(lit1), OP1(pick, 1) } },
	{ "swap of one", -EINVAL, 0, { OP(lit1), OP(swap) } },
	{ "rot of two", -EINVAL, 0, { OP(lit1), OP(lit1), OP(rot) } },
	{ "deref of nothing", -EINVAL, 0, { OP(deref) } },
	{ "abs of nothing", -EINVAL, 0, { OP(abs) } },
	{ "plus of one", -EINVAL, 0, { OP(lit1), OP(plus) } },
	{ "division by zero", -EINVAL, 0, { OP(lit1), OP(lit0), OP(div) } },
	{ "modulo zero", -EINVAL, 0, { OP(lit1), OP(lit0), OP(mod) } },
	{ "deref_size 0", -EINVAL, 0,
	    { OP1(constu, MEMORY), OP1(deref_size, 0) } },
	{ "deref_size 9", -EINVAL, 0,
	    { OP1(constu, MEMORY), OP1(deref_size, 9) } },
	{ "unmapped", -EFAULT, 0, { OP(lit1), OP(deref) } },
	{ "half unmapped", -EFAULT, 0,
	    { OP1(constu, MEMORY + 12), OP(deref) } },
	{ "register not sampled", -ENODATA, 0, { OP1(breg0, 0) } },
	{ "register of another kind", -ENODATA, 0, { OP1(breg17, 0) } },
	{ "bregx far away", -ENODATA, 0,
	    { OP2(bregx, UINT64_C(1) << 32 | 3, 0) } },
	{ "bra of nothing", -EINVAL, 0, { AT(0, bra, 0), AT(3, lit1, 0) } },
	{ "skip into an operation", -EINVAL, 0, { AT(0, lit1, 0),
	    AT(1, skip, 2), AT(4, const2u, 0), AT(7, nop, 0) } },
	{ "skip before the start", -EINVAL, 0,
	    { AT(0, lit1, 0), AT(1, skip, -9) } },
	{ "endless loop", -EINVAL, 0, { AT(0, lit1, 0), AT(1, skip, -3) } },
	{ "a loop that pushes", -EINVAL, 0,
	    { AT(0, lit1, 0), AT(1, skip, -4) } },
	{ "a register's location", -EINVAL, 0, { OP(reg3) } },
	{ "another address space", -EINVAL, 0,
	    { OP(lit1), OP(lit1), OP(xderef) } },
	{ "an operation of the future", -EINVAL, 0, { { .atom = 0xff } } },
};

/* Of a 32-bit program: its numbers have 4 bytes, and esp is register 4. */
static const struct scenario narrow_scenarios[] = {
	{ "breg4", 0, 0x6ff8, { OP1(breg4, -8) } },
	{ "breg7, which is edi", -ENODATA, 0, { OP1(breg7, 0) } },
	{ "breg3", 0, 300, { OP1(breg3, 0) } },
	{ "breg8, the pc", 0, 0x40101b, { OP1(breg8, 0) } },
	{ "breg9", -ENODATA, 0, { OP1(breg9, 0) } },
	{ "below 0", 0, UINT32_MAX - 9, { OP1(consts, -10) } },
	{ "beyond", 0, 4, { OP1(constu, UINT32_MAX), OP(lit5), OP(plus) } },
	{ "const8u", 0, UINT32_MAX, { OP1(const8u, UINT64_MAX) } },
	{ "deref", 0, 0x55667788, { OP1(constu, MEMORY), OP(deref) } },
	{ "deref beyond", 0, 0x55667788,
	    { OP1(constu, MEMORY | UINT64_C(1) << 32), OP(deref) } },
	BINARY(-1, 28, shr, 15),
	BINARY(-1, 32, shr, 0),
	BINARY(1, 32, shl, 0),
	BINARY(-16, 2, shra, UINT32_MAX - 3),
	BINARY(0x80000000, 31, shra, UINT32_MAX),
	BINARY(0x80000000, 1, lt, 1),
	BINARY(-13, 4, div, UINT32_MAX - 2),
	BINARY(-1, 10, mod, UINT32_MAX % 10),
	{ "abs", 0, 9, { OP1(constu, UINT32_MAX - 8), OP(abs) } },
	{ "not", 0, UINT32_MAX - 9, { OP(lit9), OP(not) } },
};

static void
evaluate_all(const struct scenario *scenario, size_t count, bool narrow)
{
	size_t i;

	for (i = 0; i < count; i++) {
		const struct scenario *s = &scenario[i];
		uint64_t value = 0;
		size_t n = 0;
		int err;

		while (n < OPS_MAX && s->op[n].atom != 0)
			n++;
		err = eval(s->op, n, narrow, &value);
		if (err != s->err || (err == 0 && value != s->value))
			fail_msg("%s: %d, %#llx", s->name, err,
			    (unsigned long long)value);
	}
}

TEST(evaluates)
{
	evaluate_all(scenarios, COUNT(scenarios), false);
}

TEST(evaluates_of_32_bit_programs)
{
	evaluate_all(narrow_scenarios, COUNT(narrow_scenarios), true);
}

TEST(needs_a_cfa_and_an_object)
{
	const Dwarf_Op ops[] = { OP(call_frame_cfa), OP(push_object_address) };
	const struct ex_regs regs = { .known = 0 };
	const struct ex_expr_env env = {
		.regs = &regs, .read = read_memory,
	};
	uint64_t value;

	for (size_t i = 0; i < COUNT(ops); i++)
		assert_int_equal(ex_expr_eval(&ops[i], 1, &env, &value),
		    -EINVAL);
}

TEST(survives_any_program)
{
	Dwarf_Op op[16];
	unsigned round, seed = 1;
	uint64_t value;
	size_t i;

	for (round = 0; round < 100000; round++) {
		for (i = 0; i < 16; i++) {
			op[i].atom = (uint8_t)rand_r(&seed);
			op[i].number = (Dwarf_Word)(rand_r(&seed) % 32 - 16);
			op[i].number2 = (Dwarf_Word)rand_r(&seed);
			op[i].offset = i * 3;
		}
		(void)eval(op, 16, op[0].atom % 2 != 0, &value);
	}
}

RUN_TESTS()
