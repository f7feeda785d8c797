/*
 * inflate: DEFLATE streams, unpacked up to where somebody asks.
 *
 * An entry of a table: what the code stands for, in the upper half; what kind it
 * is, and how many more bits belong to it; and the bits of the code, or in a
 * table behind the first, those that are left of it.  All of a stream is checked
 * symbol by symbol, but where input and output reach for any: there, several are
 * taken at once.
 */
#include "module/inflate.h"

#include <string.h>

#include "base/bytes.h"

enum { BITS_MAX = 15, LITERALS = 288, DISTANCES = 32, LENGTH_CODES = 19 };
enum { BLOCK_END = 256, LITERALS_VALID = 286, DISTANCES_VALID = 30 };
enum { MODE_HEADER, MODE_STORED, MODE_CODES, MODE_END, MODE_DAMAGED };
enum { LONGEST = 258 };			/* bytes of a copy */
enum { SPARE = 3 + LONGEST + 8 };	/* that one round may write */

/* Of an entry. */
#define LITERAL UINT32_C(0x8000)
#define TABLE UINT32_C(0x4000)
#define END UINT32_C(0x2000)
#define INVALID UINT32_C(0x1000)
#define EXTRA(e) ((e) >> 8 & 15)
#define LEN(e) ((e) & 0xff)
#define VALUE(e) ((e) >> 16)

static uint64_t
low(uint64_t bits, unsigned n)
{
	return bits & ((UINT64_C(1) << n) - 1);
}

/* --- codes --- */

static uint32_t
entry(unsigned value, unsigned extra)
{
	return (uint32_t)value << 16 | (uint32_t)extra << 8;
}

static uint32_t
literal_entry(unsigned symbol)
{
	static const uint16_t base[] = {
		3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35,
		43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258,
	};
	static const uint8_t extra[] = {
		0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4,
		4, 4, 4, 5, 5, 5, 5, 0,
	};

	if (symbol < BLOCK_END)
		return entry(symbol, 0) | LITERAL;
	if (symbol == BLOCK_END)
		return END;
	if (symbol >= LITERALS_VALID)
		return INVALID;
	return entry(base[symbol - BLOCK_END - 1],
	    extra[symbol - BLOCK_END - 1]);
}

static uint32_t
distance_entry(unsigned symbol)
{
	const unsigned extra = symbol < 4 ? 0 : symbol / 2 - 1;

	if (symbol >= DISTANCES_VALID)
		return INVALID;
	return entry(symbol < 4 ? symbol + 1 :
	    ((2 + symbol % 2) << extra) + 1, extra);
}

static uint32_t
length_entry(unsigned symbol)
{
	return entry(symbol, 0);
}

/* The next code of a length, in the order of codes; its first bit is the lowest. */
static unsigned
next_code(unsigned code, unsigned len)
{
	unsigned bit = 1U << (len - 1);

	while ((code & bit) != 0)
		bit >>= 1;
	return bit == 0 ? 0 : (code & (bit - 1)) + bit;
}

/* The bits that a table for all codes of these lengths needs which begin like one of
   len. */
static unsigned
table_bits(const struct ex_inflate_codes *codes,
    const unsigned count[BITS_MAX + 1], unsigned len, unsigned max)
{
	unsigned bits = len - codes->bits;
	long left = 1L << bits;

	for (; bits + codes->bits < max; bits++, left *= 2) {
		left -= (long)count[bits + codes->bits];
		if (left <= 0)
			break;
	}
	return bits;
}

/* Count codes by their lengths.  False: there are too many, or some are missing
   though more than one is used. */
static bool
count_lengths(const uint8_t *len, unsigned n, unsigned count[BITS_MAX + 1],
    unsigned *max)
{
	long left = 1;

	memset(count, 0, (BITS_MAX + 1) * sizeof(*count));
	for (unsigned i = 0; i < n; i++)
		count[len[i]]++;
	count[0] = 0;
	*max = 0;
	for (unsigned i = 1; i <= BITS_MAX; i++) {
		if ((left = left * 2 - (long)count[i]) < 0)
			return false;
		if (count[i] > 0)
			*max = i;
	}
	return left == 0 || *max <= 1;
}

/* Symbols in the order of their codes. */
static unsigned
sort_symbols(const uint8_t *len, unsigned n,
    const unsigned count[BITS_MAX + 1], uint16_t sorted[LITERALS])
{
	unsigned place[BITS_MAX + 2] = {0};

	for (unsigned i = 1; i <= BITS_MAX; i++)
		place[i + 1] = place[i] + count[i];
	for (unsigned i = 0; i < n; i++) {
		if (len[i] != 0)
			sorted[place[len[i]]++] = (uint16_t)i;
	}
	return place[BITS_MAX];
}

static void
fill(uint32_t *at, size_t size, size_t first, size_t step, uint32_t with)
{
	for (size_t i = first; i < size; i += step)
		at[i] = with;
}

/* Have a table be asked about codes that begin like this. */
static void
begin_table(const struct ex_inflate_codes *codes, unsigned prefix,
    size_t table, unsigned bits)
{
	fill(codes->at + table, (size_t)1 << bits, 0, 1, INVALID);
	codes->at[prefix] = entry((unsigned)table, bits) | TABLE |
	    codes->bits;
}

/* Make the tables of a code, by the lengths of its symbols. */
static bool
make_codes(struct ex_inflate_codes *codes, const uint8_t *len, unsigned n,
    uint32_t (*entry_of)(unsigned symbol))
{
	const size_t first = (size_t)1 << codes->bits;
	unsigned count[BITS_MAX + 1], max, code = 0, bits = 0;
	uint16_t sorted[LITERALS];
	size_t table = 0, next = first;
	unsigned used, prefix = UINT32_MAX;

	if (!count_lengths(len, n, count, &max))
		return false;
	used = sort_symbols(len, n, count, sorted);
	fill(codes->at, first, 0, 1, INVALID);
	for (unsigned i = 0; i < used; i++) {
		const unsigned l = len[sorted[i]];
		const uint32_t e = entry_of(sorted[i]);

		if (l <= codes->bits) {
			fill(codes->at, first, code, (size_t)1 << l, e | l);
		} else {
			if (low(code, codes->bits) != prefix) {
				prefix = (unsigned)low(code, codes->bits);
				bits = table_bits(codes, count, l, max);
				table = next;
				next += (size_t)1 << bits;
				if (next > codes->size)
					return false;
				begin_table(codes, prefix, table, bits);
			}
			fill(codes->at + table, (size_t)1 << bits,
			    code >> codes->bits,
			    (size_t)1 << (l - codes->bits),
			    e | (l - codes->bits));
		}
		count[l]--;
		code = next_code(code, l);
	}
	return true;
}

static struct ex_inflate_codes
literals_of(struct ex_inflate *z)
{
	return (struct ex_inflate_codes){z->literals, EX_INFLATE_LONG,
	    sizeof(z->literals) / sizeof(z->literals[0])};
}

static struct ex_inflate_codes
distances_of(struct ex_inflate *z)
{
	return (struct ex_inflate_codes){z->distances, EX_INFLATE_SHORT,
	    sizeof(z->distances) / sizeof(z->distances[0])};
}

/* --- bits --- */

/* Have n bits be there, at most 48.  False: the stream ends before. */
static bool
need(struct ex_inflate *z, unsigned n)
{
	while (z->nbits < n) {
		if (z->in == z->end)
			return false;
		z->bits = low(z->bits, z->nbits) |
		    (uint64_t)*z->in++ << z->nbits;
		z->nbits += 8;
	}
	return true;
}

static unsigned
take_bits(struct ex_inflate *z, unsigned n)
{
	const unsigned value = (unsigned)low(z->bits, n);

	z->bits >>= n;
	z->nbits -= n;
	return value;
}

/* Take n bits.  False: the stream ends before. */
static bool
read_bits(struct ex_inflate *z, unsigned n, unsigned *value)
{
	if (!need(z, n))
		return false;
	*value = take_bits(z, n);
	return true;
}

/* Take a symbol's code, which may be the last thing in the stream. */
static bool
read_symbol(struct ex_inflate *z, const struct ex_inflate_codes *codes,
    uint32_t *e)
{
	unsigned len;

	(void)need(z, BITS_MAX);
	*e = codes->at[low(z->bits, codes->bits)];
	len = LEN(*e);
	if ((*e & TABLE) != 0) {
		*e = codes->at[VALUE(*e) + low(z->bits >> codes->bits,
		    EXTRA(*e))];
		len += LEN(*e);
	}
	if ((*e & INVALID) != 0 || len > z->nbits)
		return false;
	(void)take_bits(z, len);
	return true;
}

/* --- blocks --- */

static bool
begin_stored(struct ex_inflate *z)
{
	unsigned len, not;

	(void)take_bits(z, z->nbits % 8);
	if (!read_bits(z, 16, &len) || !read_bits(z, 16, &not) ||
	    (len ^ not) != 0xffff)
		return false;
	/* what was taken beyond that are whole bytes */
	z->in -= z->nbits / 8;
	z->bits = z->nbits = 0;
	z->left = len;
	z->mode = MODE_STORED;
	return true;
}

static bool
begin_codes(struct ex_inflate *z, const uint8_t *len, unsigned nliterals,
    unsigned ndistances)
{
	struct ex_inflate_codes literals = literals_of(z);
	struct ex_inflate_codes distances = distances_of(z);

	z->left = 0;
	z->mode = MODE_CODES;
	return make_codes(&literals, len, nliterals, literal_entry) &&
	    make_codes(&distances, len + nliterals, ndistances,
	    distance_entry);
}

static bool
begin_fixed(struct ex_inflate *z)
{
	uint8_t len[LITERALS + DISTANCES];

	memset(len, 8, 144);
	memset(len + 144, 9, 112);
	memset(len + 256, 7, 24);
	memset(len + 280, 8, 8);
	memset(len + LITERALS, 5, DISTANCES);
	return begin_codes(z, len, LITERALS, DISTANCES);
}

/* The lengths of n codes, which are coded themselves. */
static bool
read_lengths(struct ex_inflate *z, const struct ex_inflate_codes *codes,
    uint8_t *len, unsigned n)
{
	unsigned i = 0;

	while (i < n) {
		unsigned times, value = 0;
		uint32_t e;

		if (!read_symbol(z, codes, &e))
			return false;
		if (VALUE(e) < 16) {
			len[i++] = (uint8_t)VALUE(e);
			continue;
		}
		if (VALUE(e) == 16) {
			if (i == 0 || !read_bits(z, 2, &times))
				return false;
			value = len[i - 1];
			times += 3;
		} else if (VALUE(e) == 17) {
			if (!read_bits(z, 3, &times))
				return false;
			times += 3;
		} else {
			if (!read_bits(z, 7, &times))
				return false;
			times += 11;
		}
		if (times > n - i)
			return false;
		memset(len + i, (int)value, times);
		i += times;
	}
	return true;
}

static bool
begin_dynamic(struct ex_inflate *z)
{
	static const uint8_t order[LENGTH_CODES] = {
		16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1,
		15,
	};
	uint8_t len[LITERALS + DISTANCES] = {0}, its[LENGTH_CODES] = {0};
	struct ex_inflate_codes codes = distances_of(z);
	unsigned nliterals, ndistances, n, bits, count[BITS_MAX + 1], max;

	if (!read_bits(z, 5, &nliterals) || !read_bits(z, 5, &ndistances) ||
	    !read_bits(z, 4, &n))
		return false;
	nliterals += 257;
	ndistances += 1;
	if (nliterals > LITERALS_VALID || ndistances > DISTANCES_VALID)
		return false;
	for (unsigned i = 0; i < n + 4; i++) {
		if (!read_bits(z, 3, &bits))
			return false;
		its[order[i]] = (uint8_t)bits;
	}
	/* of these, none may be missing */
	if (!count_lengths(its, LENGTH_CODES, count, &max) || max == 0 ||
	    (max == 1 && count[1] != 2))
		return false;
	return make_codes(&codes, its, LENGTH_CODES, length_entry) &&
	    read_lengths(z, &codes, len, nliterals + ndistances) &&
	    len[BLOCK_END] != 0 &&
	    begin_codes(z, len, nliterals, ndistances);
}

static bool
begin_block(struct ex_inflate *z)
{
	unsigned last, type;

	if (!read_bits(z, 1, &last) || !read_bits(z, 2, &type))
		return false;
	z->last = last != 0;
	return type == 0 ? begin_stored(z) : type == 1 ? begin_fixed(z) :
	    type == 2 && begin_dynamic(z);
}

/* --- bytes --- */

/* Whether there are so many bytes before out. */
static bool
is_before(const struct ex_inflate *z, const uint8_t *out, size_t distance)
{
	return distance <= (size_t)(out - z->start) + z->nwindow;
}

/* Copy len bytes from so far before out, some of which may be in the window. */
static void
copy(const struct ex_inflate *z, uint8_t *out, size_t distance, size_t len)
{
	const size_t have = (size_t)(out - z->start);
	size_t back = distance > have ? distance - have : 0;

	for (; back > 0 && len > 0; back--, len--)
		*out++ = z->window[z->nwindow - back];
	for (; len > 0; len--, out++)
		*out = *(out - distance);
}

/* The same, all of it in out; it may write up to seven bytes more. */
static uint8_t *
copy_fast(uint8_t *out, size_t distance, size_t len)
{
	uint8_t *const end = out + len;
	const uint8_t *from = out - distance;

	if (distance >= 8) {
		do {
			memcpy(out, from, 8);
			out += 8;
			from += 8;
		} while (out < end);
	} else if (distance == 1) {
		memset(out, *from, len);
	} else {
		while (out < end)
			*out++ = *from++;
	}
	return end;
}

/* Copy as much of what is left as fits. */
static void
copy_left(struct ex_inflate *z, const uint8_t *end)
{
	const size_t room = (size_t)(end - z->out);
	const size_t len = z->left < room ? z->left : room;

	copy(z, z->out, z->distance, len);
	z->out += len;
	z->left -= len;
}

/* One symbol, and what belongs to it.  False: damaged; *ends: the block. */
static bool
inflate_one(struct ex_inflate *z, const uint8_t *end, bool *ends)
{
	const struct ex_inflate_codes literals = literals_of(z);
	const struct ex_inflate_codes distances = distances_of(z);
	unsigned len, distance;
	uint32_t e;

	if (!read_symbol(z, &literals, &e))
		return false;
	if ((e & LITERAL) != 0) {
		*z->out++ = (uint8_t)VALUE(e);
		return true;
	}
	if ((*ends = (e & END) != 0))
		return true;
	if (!read_bits(z, EXTRA(e), &len))
		return false;
	len += VALUE(e);
	if (!read_symbol(z, &distances, &e) ||
	    !read_bits(z, EXTRA(e), &distance))
		return false;
	distance += VALUE(e);
	if (!is_before(z, z->out, distance))
		return false;
	z->left = len;
	z->distance = distance;
	copy_left(z, end);
	return true;
}

/* Symbols, as long as there is enough of both that nothing has to be asked.  It
   ends before a symbol that is not usual: inflate_one takes that. */
static void
inflate_fast(struct ex_inflate *z, const uint8_t *end)
{
	const uint32_t *const literals = z->literals;
	const uint32_t *const distances = z->distances;
	const uint8_t *in = z->in;
	uint8_t *out = z->out;
	uint64_t bits = low(z->bits, z->nbits);
	unsigned nbits = z->nbits;

	while (z->end - in >= 8 && end - out >= SPARE) {
		uint64_t ahead;
		size_t len, distance;
		unsigned used;
		uint32_t e;

		/* 56 bits or more */
		bits |= ex_u64(in) << nbits;
		in += (63 - nbits) >> 3;
		nbits |= 56;
		e = literals[low(bits, EX_INFLATE_LONG)];
		for (int i = 0; i < 3 && (e & LITERAL) != 0; i++) {
			*out++ = (uint8_t)VALUE(e);
			bits >>= LEN(e);
			nbits -= LEN(e);
			e = literals[low(bits, EX_INFLATE_LONG)];
		}
		if ((e & LITERAL) != 0 || nbits < 48)
			continue;
		ahead = bits;
		used = LEN(e);
		if ((e & TABLE) != 0) {
			e = literals[VALUE(e) + low(bits >> EX_INFLATE_LONG,
			    EXTRA(e))];
			used += LEN(e);
		}
		if ((e & LITERAL) != 0) {
			*out++ = (uint8_t)VALUE(e);
			bits >>= used;
			nbits -= used;
			continue;
		}
		if ((e & (END | INVALID)) != 0)
			break;
		ahead >>= used;
		len = VALUE(e) + low(ahead, EXTRA(e));
		ahead >>= EXTRA(e);
		used += EXTRA(e);
		e = distances[low(ahead, EX_INFLATE_SHORT)];
		if ((e & TABLE) != 0) {
			ahead >>= EX_INFLATE_SHORT;
			used += EX_INFLATE_SHORT;
			e = distances[VALUE(e) + low(ahead, EXTRA(e))];
		}
		ahead >>= LEN(e);
		distance = VALUE(e) + low(ahead, EXTRA(e));
		used += LEN(e) + EXTRA(e);
		if ((e & INVALID) != 0 || !is_before(z, out, distance))
			break;
		bits >>= used;
		nbits -= used;
		if (distance > (size_t)(out - z->start)) {
			copy(z, out, distance, len);
			out += len;
		} else {
			out = copy_fast(out, distance, len);
		}
	}
	z->in = in;
	z->out = out;
	z->bits = low(bits, nbits);
	z->nbits = nbits;
}

/* False: damaged; *ends: the block. */
static bool
inflate_codes(struct ex_inflate *z, const uint8_t *end, bool *ends)
{
	copy_left(z, end);
	while (z->out < end && !*ends) {
		inflate_fast(z, end);
		if (z->out < end && !inflate_one(z, end, ends))
			return false;
	}
	return true;
}

static bool
inflate_stored(struct ex_inflate *z, const uint8_t *end, bool *ends)
{
	size_t n = (size_t)(end - z->out);

	n = z->left < n ? z->left : n;
	if (n > (size_t)(z->end - z->in))
		n = (size_t)(z->end - z->in);
	memcpy(z->out, z->in, n);
	z->out += n;
	z->in += n;
	z->left -= n;
	*ends = z->left == 0;
	return z->left == 0 || z->out == end;
}

/* What comes goes elsewhere from now on: keep the last of what came. */
static void
move(struct ex_inflate *z, uint8_t *to)
{
	const size_t have = (size_t)(z->out - z->start);
	const size_t some = have < sizeof(z->window) ? have :
	    sizeof(z->window);
	size_t keep = sizeof(z->window) - some;

	if (keep > z->nwindow)
		keep = z->nwindow;
	memmove(z->window, z->window + z->nwindow - keep, keep);
	if (some > 0)
		memcpy(z->window + keep, z->out - some, some);
	z->nwindow = keep + some;
	z->out = z->start = to;
}

bool
ex_inflate_begin(struct ex_inflate *z, const uint8_t *packed, size_t size,
    size_t n, unsigned bits, const uint8_t *before, size_t nbefore)
{
	if (n > size || bits > 7 || (n == 0 && bits > 0) ||
	    nbefore > sizeof(z->window))
		return false;
	z->out = z->start = NULL;
	z->begin = packed;
	z->in = packed + n;
	z->end = packed + size;
	z->bits = bits > 0 ? (uint64_t)packed[n - 1] >> (8 - bits) : 0;
	z->nbits = bits;
	z->mode = MODE_HEADER;
	z->last = false;
	z->left = 0;
	z->nwindow = nbefore;
	if (nbefore > 0)
		memcpy(z->window, before, nbefore);
	return true;
}

enum ex_inflated
ex_inflate(struct ex_inflate *z, uint8_t *to, uint8_t *end)
{
	bool ends = false;

	if (to != z->out)
		move(z, to);
	if (z->mode == MODE_END)
		return EX_INFLATE_END;
	if (z->mode == MODE_HEADER && !begin_block(z))
		z->mode = MODE_DAMAGED;
	if (z->mode == MODE_DAMAGED || !(z->mode == MODE_STORED ?
	    inflate_stored(z, end, &ends) : inflate_codes(z, end, &ends))) {
		z->mode = MODE_DAMAGED;
		return EX_INFLATE_DAMAGED;
	}
	if (!ends)
		return EX_INFLATE_FULL;
	z->mode = z->last ? MODE_END : MODE_HEADER;
	return z->last ? EX_INFLATE_END : EX_INFLATE_BLOCK;
}

size_t
ex_inflate_place(const struct ex_inflate *z, unsigned *bits)
{
	*bits = z->nbits % 8;
	return (size_t)(z->in - z->begin) - z->nbits / 8;
}
