/*
 * operand_aarch64: loads and stores by their code (Arm Architecture Reference
 * Manual, "Loads and Stores").  Those of scalable vectors, of memory tags and
 * with authenticated pointers are not known.
 */
#include "os/operand.h"

enum { SP = 31, PC = 32 };	/* in a sample; in code 31 is sp as a base, and
				   else the zero register */

static uint32_t
bits(uint32_t code, unsigned low, unsigned n)
{
	return code >> low & ((1u << n) - 1);
}

static int64_t
signed_bits(uint32_t code, unsigned low, unsigned n)
{
	return (int64_t)((uint64_t)bits(code, low, n) << (64 - n)) >> (64 - n);
}

static bool
is(uint32_t code, uint32_t mask, uint32_t value)
{
	return (code & mask) == value;
}

static uint64_t
base(uint32_t code, const uint64_t *reg)
{
	return reg[bits(code, 5, 5)];
}

/* Set an access of so many bytes at addr; bit 22 of the code says whether it is
   a load. */
static bool
put(struct wp_operand *operand, uint32_t code, uint64_t addr, unsigned size)
{
	const bool loads = bits(code, 22, 1) != 0;

	*operand = (struct wp_operand){addr, size, loads, !loads};
	return true;
}

static bool
put_both(struct wp_operand *operand, uint64_t addr, unsigned size)
{
	*operand = (struct wp_operand){addr, size, true, true};
	return true;
}

bool
wp_operand_is_exclusive(uint32_t code)
{
	return is(code, 0x3fa00000, 0x08000000) ||	/* ldxr, stxr */
	    is(code, 0xbfa00000, 0x88200000);		/* ldxp, stxp */
}

/* ldxr, ldar, cas, and so on. */
static bool
ordered(uint32_t code, const uint64_t *reg, struct wp_operand *operand)
{
	const uint64_t addr = base(code, reg);
	const unsigned size = 1u << bits(code, 30, 2);

	if (is(code, 0xbfa00000, 0x88200000))
		return put(operand, code, addr, 2 * size);
	if (is(code, 0xbfa00000, 0x08200000))		/* casp */
		return put_both(operand, addr, 8u << bits(code, 30, 1));
	if (is(code, 0x3fa00000, 0x08a00000))		/* cas */
		return put_both(operand, addr, size);
	return put(operand, code, addr, size);
}

static bool
literal(uint32_t code, const uint64_t *reg, struct wp_operand *operand)
{
	const uint32_t opc = bits(code, 30, 2);
	const bool vector = bits(code, 26, 1) != 0;

	if (!vector && opc == 3)			/* prfm */
		return false;
	*operand = (struct wp_operand){
		.addr = reg[PC] + (uint64_t)(signed_bits(code, 5, 19) * 4),
		.size = vector ? 4u << opc : opc == 1 ? 8 : 4, .reads = true,
	};
	return true;
}

static bool
pair(uint32_t code, const uint64_t *reg, struct wp_operand *operand)
{
	const uint32_t opc = bits(code, 30, 2), mode = bits(code, 23, 2);
	const bool vector = bits(code, 26, 1) != 0;
	const unsigned each = vector ? 4u << opc : opc == 2 ? 8 : 4;
	uint64_t addr = base(code, reg);

	if (opc == 3 || (!vector && opc == 1 && bits(code, 22, 1) == 0))
		return false;				/* stgp */
	if (mode != 1)					/* post-indexed */
		addr += (uint64_t)(signed_bits(code, 15, 7) * each);
	return put(operand, code, addr, 2 * each);
}

/* The index register, extended and shifted as the code says. */
static uint64_t
offset(uint32_t code, const uint64_t *reg, unsigned scale)
{
	const uint32_t n = bits(code, 16, 5), option = bits(code, 13, 3);
	uint64_t index = n == SP ? 0 : reg[n];

	if (option == 2)				/* uxtw */
		index = (uint32_t)index;
	else if (option == 6)				/* sxtw */
		index = (uint64_t)(int64_t)(int32_t)(uint32_t)index;
	return index << (bits(code, 12, 1) != 0 ? scale : 0);
}

/* ldadd, swp, and so on; ldapr only loads. */
static bool
atomic(uint32_t code, const uint64_t *reg, struct wp_operand *operand)
{
	(void)put_both(operand, base(code, reg), 1u << bits(code, 30, 2));
	operand->writes = !is(code, 0x3ffffc00, 0x38bfc000);
	return true;
}

static bool
single(uint32_t code, const uint64_t *reg, struct wp_operand *operand)
{
	const bool vector = bits(code, 26, 1) != 0;
	const uint32_t opc = bits(code, 22, 2), mode = bits(code, 10, 2);
	const unsigned scale = bits(code, 30, 2) |
	    (vector ? opc >> 1 << 2 : 0);
	uint64_t addr = base(code, reg);

	if (scale > 4 || (!vector && scale == 3 && opc == 2))	/* prfm */
		return false;
	if (bits(code, 24, 1) != 0)
		addr += (uint64_t)bits(code, 10, 12) << scale;
	else if (bits(code, 21, 1) == 0)
		addr += mode == 1 ? 0 : (uint64_t)signed_bits(code, 12, 9);
	else if (mode == 0)
		return atomic(code, reg, operand);
	else if (mode == 2)
		addr += offset(code, reg, scale);
	else						/* ldraa */
		return false;
	*operand = (struct wp_operand){
		.addr = addr, .size = 1u << scale,
		.reads = vector ? (opc & 1) != 0 : opc != 0,
	};
	operand->writes = !operand->reads;
	return true;
}

/* ldapur, stlur */
static bool
unscaled(uint32_t code, const uint64_t *reg, struct wp_operand *operand)
{
	const bool loads = bits(code, 22, 2) != 0;

	*operand = (struct wp_operand){
		.addr = base(code, reg) + (uint64_t)signed_bits(code, 12, 9),
		.size = 1u << bits(code, 30, 2), .reads = loads,
		.writes = !loads,
	};
	return true;
}

/* ld1 to ld4 and st1 to st4 of whole registers. */
static bool
structures(uint32_t code, const uint64_t *reg, struct wp_operand *operand)
{
	static const unsigned char registers[16] = {
		[0] = 4, [2] = 4, [4] = 3, [6] = 3, [7] = 1, [8] = 2, [10] = 2,
	};

	return put(operand, code, base(code, reg),
	    registers[bits(code, 12, 4)] * (bits(code, 30, 1) != 0 ? 16u : 8u));
}

/* The same of one element of each register, or of one element that is copied to
   all. */
static bool
elements(uint32_t code, const uint64_t *reg, struct wp_operand *operand)
{
	const uint32_t opcode = bits(code, 13, 3), size = bits(code, 10, 2);
	const unsigned n = ((opcode & 1) << 1 | bits(code, 21, 1)) + 1;
	unsigned scale = opcode >> 1;

	if (scale == 3)
		scale = size;
	else if (scale == 2 && (size & 1) != 0)
		scale = 3;
	return put(operand, code, base(code, reg), n << scale);
}

bool
wp_operand(uint32_t code, const uint64_t *reg, struct wp_operand *operand)
{
	enum { BLOCK = 64 };	/* of dc zva, on all processors so far */
	static const struct {
		uint32_t mask, value;
		bool (*decode)(uint32_t, const uint64_t *,
		    struct wp_operand *);
	} kinds[] = {
		{0x3f000000, 0x08000000, ordered},
		{0x3f200c00, 0x19000000, unscaled},
		{0x3b000000, 0x18000000, literal},
		{0x3a000000, 0x28000000, pair},
		{0x3a000000, 0x38000000, single},
		{0xbf200000, 0x0c000000, structures},
		{0xbf000000, 0x0d000000, elements},
	};

	if (is(code, 0xffffffe0, 0xd50b7420)) {
		*operand = (struct wp_operand){.size = BLOCK, .writes = true,
		    .addr = reg[bits(code, 0, 5)] & ~(uint64_t)(BLOCK - 1)};
		return true;
	}
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (is(code, kinds[i].mask, kinds[i].value))
			return kinds[i].decode(code, reg, operand);
	return false;
}
