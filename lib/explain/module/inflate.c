/*
 * inflate: a zlib stream unpacked in place.
 *
 * What is hostile in a stream: codes that are not complete or have too many
 * members, symbols that mean nothing, distances to before the beginning, an end
 * that is missing.  Each ends it.  Nothing is read behind in_end, and nothing
 * written behind the room that there is.
 */
#include "module/inflate.h"

#include <string.h>

enum {
	LENGTH_MAX = 15,	/* bits of a code */
	END = 256,		/* the symbol at the end of a block */
	LENGTHS = 29, DISTANCES = 30,	/* symbols for them */
	COPY_MAX = 258,
	ORDER = 19,		/* codes for the lengths of codes */
	READ_AHEAD = 16,	/* bytes that are read at once, and more */
};

/*
 * An entry of a table says how many bits a code has, what follows it, and what
 * it means:
 *
 *	bits 0-3 length; 4-7 extra bits; 8-10 kind; 16-31 value
 */
enum kind {
	LONG,			/* the code is longer */
	LITERAL, COPY, STOP, WRONG
};

#define ENTRY(length, extra, kind, value)				\
	((uint32_t)(length) | (uint32_t)(extra) << 4 |			\
	(uint32_t)(kind) << 8 | (uint32_t)(value) << 16)
#define ENTRY_LENGTH(e) ((e) & 15)
#define ENTRY_EXTRA(e) ((e) >> 4 & 15)
#define ENTRY_KIND(e) ((enum kind)((e) >> 8 & 7))
#define ENTRY_VALUE(e) ((e) >> 16)

static const uint16_t length_base[LENGTHS] = {3, 4, 5, 6, 7, 8, 9, 10, 11, 13,
    15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227,
    258};
static const uint8_t length_extra[LENGTHS] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1,
    1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
static const uint16_t distance_base[DISTANCES] = {1, 2, 3, 4, 5, 7, 9, 13, 17,
    25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073,
    4097, 6145, 8193, 12289, 16385, 24577};
static const uint8_t distance_extra[DISTANCES] = {0, 0, 0, 0, 1, 1, 2, 2, 3, 3,
    4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13};

static void
damaged(struct ex_inflate *s)
{
	s->damaged = true;
	s->state = EX_INFLATE_ENDED;
}

/* --- bits --- */

/* Have this many bits, up to 32, if there are so many. */
static bool
need(struct ex_inflate *s, unsigned n)
{
	while (s->nbits < n && s->in < s->in_end) {
		s->bits |= (uint64_t)*s->in++ << s->nbits;
		s->nbits += 8;
	}
	return s->nbits >= n;
}

static void
drop(struct ex_inflate *s, unsigned n)
{
	s->bits >>= n;
	s->nbits -= n;
}

/* The next bits; 0, and it is damaged, if they are not there. */
static uint32_t
take(struct ex_inflate *s, unsigned n)
{
	uint32_t value;

	if (!need(s, n)) {
		damaged(s);
		return 0;
	}
	value = (uint32_t)(s->bits & ((UINT64_C(1) << n) - 1));
	drop(s, n);
	return value;
}

/* --- codes --- */

static uint32_t
literal_entry(unsigned symbol, unsigned length)
{
	if (symbol < END)
		return ENTRY(length, 0, LITERAL, symbol);
	if (symbol == END)
		return ENTRY(length, 0, STOP, 0);
	symbol -= END + 1;
	return symbol >= LENGTHS ? ENTRY(length, 0, WRONG, 0) :
	    ENTRY(length, length_extra[symbol], COPY, length_base[symbol]);
}

static uint32_t
distance_entry(unsigned symbol, unsigned length)
{
	return symbol >= DISTANCES ? ENTRY(length, 0, WRONG, 0) :
	    ENTRY(length, distance_extra[symbol], COPY, distance_base[symbol]);
}

/* Codes for the lengths of others. */
static uint32_t
plain_entry(unsigned symbol, unsigned length)
{
	return ENTRY(length, 0, LITERAL, symbol);
}

typedef uint32_t entry_fn(unsigned symbol, unsigned length);

static unsigned
reversed(unsigned code, unsigned length)
{
	unsigned out = 0;

	for (unsigned i = 0; i < length; i++)
		out |= (code >> i & 1) << (length - 1 - i);
	return out;
}

/* Fill the table with the entries of those codes that are short enough. */
static void
fill_table(struct ex_inflate_code *code, entry_fn *entry)
{
	unsigned next = 0, symbol = 0;

	memset(code->table, 0, sizeof(code->table));
	for (unsigned length = 1; length <= EX_INFLATE_BITS; length++) {
		for (unsigned i = 0; i < code->count[length]; i++) {
			uint32_t what = entry(code->symbol[symbol++], length);

			for (unsigned at = reversed(next++, length);
			    at < 1 << EX_INFLATE_BITS; at += 1u << length)
				code->table[at] = what;
		}
		next <<= 1;
	}
}

/* Make a code from the lengths of its members; 0: it is none.  A code of one
   member may be incomplete, and so may that of distances without any. */
static bool
make_code(struct ex_inflate_code *code, const uint8_t *lengths, unsigned n,
    entry_fn *entry)
{
	uint16_t place[LENGTH_MAX + 2] = {0};
	int left = 1;

	memset(code->count, 0, sizeof(code->count));
	for (unsigned i = 0; i < n; i++)
		code->count[lengths[i]]++;
	code->count[0] = 0;
	for (unsigned length = 1; length <= LENGTH_MAX; length++) {
		left = left * 2 - code->count[length];
		if (left < 0)
			return false;
		place[length + 1] = (uint16_t)(place[length] +
		    code->count[length]);
	}
	if (left > 0 && (entry == plain_entry ||
	    place[LENGTH_MAX + 1] > code->count[1]))
		return false;
	for (unsigned i = 0; i < n; i++) {
		if (lengths[i] != 0)
			code->symbol[place[lengths[i]]++] = (uint16_t)i;
	}
	fill_table(code, entry);
	return true;
}

/* The next code, bit by bit: it is long, or near the end of what there is.  Its
   bits are used up.  Result: its entry; 0: there is none. */
static uint32_t
find_code(struct ex_inflate *s, const struct ex_inflate_code *code,
    entry_fn *entry)
{
	unsigned at = 0, first = 0, value = 0;

	for (unsigned length = 1; length <= LENGTH_MAX; length++) {
		if (!need(s, 1))
			break;
		value = value << 1 | (unsigned)(s->bits & 1);
		drop(s, 1);
		if (value - first < code->count[length])
			return entry(code->symbol[at + value - first], length);
		at += code->count[length];
		first = (first + code->count[length]) << 1;
	}
	return 0;
}

/* --- blocks --- */

/* Codes that are always the same. */
static bool
begin_fixed(struct ex_inflate *s)
{
	uint8_t lengths[EX_INFLATE_CODES];

	memset(lengths, 8, 144);
	memset(lengths + 144, 9, 256 - 144);
	memset(lengths + 256, 7, 280 - 256);
	memset(lengths + 280, 8, 288 - 280);
	if (!make_code(&s->literal, lengths, 288, literal_entry))
		return false;
	memset(lengths, 5, 32);
	return make_code(&s->distance, lengths, 32, distance_entry);
}

/* How often a length comes again, and which. */
static unsigned
repeated(struct ex_inflate *s, unsigned symbol, uint8_t before, uint8_t *length)
{
	*length = symbol < 16 ? (uint8_t)symbol : symbol == 16 ? before : 0;
	switch (symbol) {
	case 16:
		return 3 + take(s, 2);
	case 17:
		return 3 + take(s, 3);
	case 18:
		return 11 + take(s, 7);
	default:
		return 1;
	}
}

/* The lengths of the codes of a block, by a code of their own. */
static bool
read_lengths(struct ex_inflate *s, uint8_t *lengths, unsigned n)
{
	for (unsigned i = 0; i < n;) {
		uint32_t e = find_code(s, &s->literal, plain_entry);
		uint8_t length;
		unsigned times;

		if (e == 0 || (i == 0 && ENTRY_VALUE(e) == 16))
			return false;
		times = repeated(s, ENTRY_VALUE(e), i > 0 ? lengths[i - 1] : 0,
		    &length);
		if (s->damaged || times > n - i)
			return false;
		memset(lengths + i, length, times);
		i += times;
	}
	return true;
}

/* Codes that a block brings. */
static bool
begin_coded(struct ex_inflate *s)
{
	static const uint8_t order[ORDER] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5,
	    11, 4, 12, 3, 13, 2, 14, 1, 15};
	uint8_t lengths[288 + 32] = {0}, own[ORDER] = {0};
	const unsigned literals = take(s, 5) + 257, distances = take(s, 5) + 1;
	const unsigned n = take(s, 4) + 4;

	for (unsigned i = 0; i < n; i++)
		own[order[i]] = (uint8_t)take(s, 3);
	return !s->damaged && literals <= 286 && distances <= DISTANCES &&
	    make_code(&s->literal, own, ORDER, plain_entry) &&
	    read_lengths(s, lengths, literals + distances) &&
	    lengths[END] != 0 &&
	    make_code(&s->literal, lengths, literals, literal_entry) &&
	    make_code(&s->distance, lengths + literals, distances,
	    distance_entry);
}

/* What is not packed begins at a byte. */
static bool
begin_stored(struct ex_inflate *s)
{
	uint32_t length, check;

	drop(s, s->nbits % 8);
	length = take(s, 16);
	check = take(s, 16);
	/* what was read ahead and is not counted will be copied, not read */
	s->bits &= (UINT64_C(1) << s->nbits) - 1;
	s->stored = length;
	return !s->damaged && (length ^ check) == 0xffff;
}

static void
begin_block(struct ex_inflate *s)
{
	bool begun = false;

	if (s->last) {
		s->state = EX_INFLATE_ENDED;
		return;
	}
	s->last = take(s, 1) != 0;
	switch (take(s, 2)) {
	case 0:
		s->state = EX_INFLATE_STORED;
		begun = begin_stored(s);
		break;
	case 1:
		s->state = EX_INFLATE_CODED;
		begun = begin_fixed(s);
		break;
	case 2:
		s->state = EX_INFLATE_CODED;
		begun = begin_coded(s);
		break;
	default:
		break;
	}
	if (!begun || s->damaged)
		damaged(s);
}

/* --- what is in them --- */

static void
copy_stored(struct ex_inflate *s, uint64_t upto)
{
	while (s->stored > 0 && s->done < upto) {
		uint64_t n = upto - s->done < s->stored ? upto - s->done :
		    s->stored;

		if (s->nbits >= 8) {	/* what was read ahead */
			s->out[s->done++] = (uint8_t)take(s, 8);
			s->stored--;
			continue;
		}
		if (n > (uint64_t)(s->in_end - s->in))
			n = (uint64_t)(s->in_end - s->in);
		if (n == 0) {
			damaged(s);
			return;
		}
		memcpy(s->out + s->done, s->in, n);
		s->in += n;
		s->done += n;
		s->stored -= (uint32_t)n;
	}
	if (s->stored == 0)
		s->state = EX_INFLATE_BLOCK;
}

static void
copy(struct ex_inflate *s, uint32_t distance, uint32_t n)
{
	for (; n > 0; n--, s->done++)
		s->out[s->done] = s->out[s->done - distance];
}

/* The next symbol, at the ends of what there is to read and to write. */
static void
unpack_slowly(struct ex_inflate *s, uint64_t room)
{
	uint32_t e = find_code(s, &s->literal, literal_entry), n, distance;

	if (e == 0 || ENTRY_KIND(e) == WRONG) {
		damaged(s);
	} else if (ENTRY_KIND(e) == LITERAL) {
		s->out[s->done++] = (uint8_t)ENTRY_VALUE(e);
	} else if (ENTRY_KIND(e) == STOP) {
		s->state = EX_INFLATE_BLOCK;
	} else {
		n = ENTRY_VALUE(e) + take(s, ENTRY_EXTRA(e));
		e = find_code(s, &s->distance, distance_entry);
		distance = ENTRY_VALUE(e) + take(s, ENTRY_EXTRA(e));
		if (s->damaged || ENTRY_KIND(e) != COPY ||
		    distance > s->done || n > room - s->done)
			damaged(s);
		else
			copy(s, distance, n);
	}
}

/* Where reading and writing are, in registers. */
struct at {
	const uint8_t *in;
	uint64_t bits;
	unsigned nbits;
};

/* Have at least 56 bits; there are eight bytes to read. */
static inline void
refill(struct at *at)
{
	uint64_t word;

	memcpy(&word, at->in, sizeof(word));
	at->bits |= word << at->nbits;
	at->in += (63 - at->nbits) >> 3;
	at->nbits |= 56;
}

static inline uint32_t
next_bits(struct at *at, unsigned n)
{
	uint32_t value = (uint32_t)(at->bits & ((UINT64_C(1) << n) - 1));

	at->bits >>= n;
	at->nbits -= n;
	return value;
}

/* The next code, as the table has it; its bits are not used up. */
static inline uint32_t
look(const struct ex_inflate_code *code, const struct at *at)
{
	return code->table[at->bits & ((1 << EX_INFLATE_BITS) - 1)];
}

/* Up to three literals; the entry of the code behind them. */
static inline uint32_t
unpack_literals(const struct ex_inflate_code *code, struct at *at, uint8_t **to)
{
	uint32_t e = look(code, at);

	for (unsigned i = 0; i < 3 && ENTRY_KIND(e) == LITERAL; i++) {
		(void)next_bits(at, ENTRY_LENGTH(e));
		*(*to)++ = (uint8_t)ENTRY_VALUE(e);
		e = look(code, at);
	}
	return e;
}

/* Copy what is a distance behind; a few bytes more may be written. */
static inline void
copy_fast(uint8_t *to, uint32_t distance, uint32_t n)
{
	const uint8_t *from = to - distance;
	const uint8_t *end = to + n;

	if (distance < 8) {
		while (to < end)
			*to++ = *from++;
		return;
	}
	/* most are short: a loop that ends here or there takes longer */
	memcpy(to, from, 8);
	memcpy(to + 8, from + 8, 8);
	for (to += 16, from += 16; to < end; to += 8, from += 8)
		memcpy(to, from, 8);
}

/* A copy, whose entry is the next: at most 48 bits.  Result: how long it is; 0:
   it is none for us, and nothing was done. */
static inline uint32_t
unpack_copy(const struct ex_inflate *s, struct at *now, uint8_t *to, uint32_t e)
{
	struct at at = *now;
	uint32_t n, distance;

	(void)next_bits(&at, ENTRY_LENGTH(e));
	n = ENTRY_VALUE(e) + next_bits(&at, ENTRY_EXTRA(e));
	e = look(&s->distance, &at);
	(void)next_bits(&at, ENTRY_LENGTH(e));
	distance = ENTRY_VALUE(e) + next_bits(&at, ENTRY_EXTRA(e));
	if (ENTRY_KIND(e) != COPY || distance > (uint64_t)(to - s->out))
		return 0;
	copy_fast(to, distance, n);
	*now = at;
	return n;
}

/* Symbols that the tables have, as long as neither end is near. */
static void
unpack_fast(struct ex_inflate *s, uint64_t upto, uint64_t room)
{
	struct at at = {s->in, s->bits, s->nbits};
	uint8_t *to = s->out + s->done, *stop;
	uint32_t e, n;

	if (s->in_end - s->in < READ_AHEAD || room < EX_INFLATE_SLACK)
		return;
	stop = s->out + (upto < room - EX_INFLATE_SLACK ? upto :
	    room - EX_INFLATE_SLACK);
	while (to < stop && s->in_end - at.in >= READ_AHEAD) {
		refill(&at);
		e = unpack_literals(&s->literal, &at, &to);
		if (ENTRY_KIND(e) == LITERAL)
			continue;
		refill(&at);
		if (ENTRY_KIND(e) != COPY ||
		    (n = unpack_copy(s, &at, to, e)) == 0)
			break;
		to += n;
	}
	s->in = at.in;
	s->bits = at.bits;
	s->nbits = at.nbits;
	s->done = (uint64_t)(to - s->out);
}

bool
ex_inflate_begin(struct ex_inflate *s, const uint8_t *in, size_t len,
    uint8_t *out)
{
	s->in = in + 2;
	s->in_end = in + len;
	s->bits = s->done = 0;
	s->nbits = 0;
	s->out = out;
	s->state = EX_INFLATE_BLOCK;
	s->last = s->damaged = false;
	return len >= 2 && (in[0] & 15) == 8 && in[0] >> 4 <= 7 &&
	    (in[0] * 256u + in[1]) % 31 == 0 && (in[1] & 0x20) == 0;
}

void
ex_inflate_upto(struct ex_inflate *s, uint64_t upto, uint64_t room)
{
	while (s->state != EX_INFLATE_ENDED && s->done < upto) {
		switch (s->state) {
		case EX_INFLATE_BLOCK:
			begin_block(s);
			break;
		case EX_INFLATE_STORED:
			copy_stored(s, upto);
			break;
		default:
			unpack_fast(s, upto, room);
			if (s->state == EX_INFLATE_CODED && s->done < upto)
				unpack_slowly(s, room);
			break;
		}
	}
}
