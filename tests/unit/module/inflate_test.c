/* inflate: what zlib has packed, in every way that it has, and what is damaged. */
#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "module/inflate.h"

enum { SIZE = 300000 };

static struct ex_inflate z;
static uint8_t plain[SIZE], packed[SIZE + SIZE / 8 + 1000];
static unsigned seed = 1;

static unsigned
below(unsigned n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

/* Bytes of a kind; result: how many. */
static size_t
make_plain(unsigned kind)
{
	const size_t size = kind % 4 == 3 ? below(400) : 1 + below(SIZE);
	const unsigned letters = kind % 5 == 0 ? 256 : 1 + below(40);
	size_t i = 0;

	while (i < size) {
		size_t len = 1 + below(kind % 3 == 0 ? 600 : 20);
		const size_t back = i == 0 ? 0 : 1 + below(i < 40000 ?
		    (unsigned)i : 40000);

		len = len < size - i ? len : size - i;
		for (; len > 0; len--, i++)
			plain[i] = back > 0 && kind % 7 != 0 && len % 2 == 0 ?
			    plain[i - back] : (uint8_t)below(letters);
	}
	return size;
}

/* Pack them; result: into how many. */
static size_t
pack(size_t size, unsigned kind)
{
	static const int strategies[] = {Z_DEFAULT_STRATEGY, Z_FILTERED,
	    Z_HUFFMAN_ONLY, Z_RLE, Z_FIXED};
	z_stream s = {0};

	assert_int_equal(deflateInit2(&s, (int)(kind / 5 % 10), Z_DEFLATED,
	    -MAX_WBITS, 1 + (int)below(9), strategies[kind % 5]), Z_OK);
	s.next_in = plain;
	s.next_out = packed;
	s.avail_out = sizeof(packed);
	/* blocks of all sizes, some of which are empty */
	while (s.avail_in + s.total_in < size) {
		s.avail_in = 1 + below((unsigned)(size - s.total_in));
		assert_int_equal(deflate(&s, kind % 2 == 0 ? Z_NO_FLUSH :
		    kind % 3 == 0 ? Z_BLOCK : Z_FULL_FLUSH), Z_OK);
	}
	assert_int_equal(deflate(&s, Z_FINISH), Z_STREAM_END);
	(void)deflateEnd(&s);
	return s.total_out;
}

/* Unpack into a place that is exactly so large, in pieces of at most `piece'
   bytes; from: of those before, with what stands for them in `packed'. */
static enum ex_inflated
unpack(uint8_t *to, size_t size, unsigned piece)
{
	uint8_t *const end = to + size;
	enum ex_inflated result;

	do {
		const size_t room = (size_t)(end - to);
		const size_t len = piece < room ? 1 + below(piece) : room;

		result = ex_inflate(&z, to, to + len);
		assert_true(z.out >= to && z.out <= to + len);
		assert_true(result != EX_INFLATE_FULL || z.out == to + len);
		to = z.out;
	} while (result == EX_INFLATE_BLOCK ||
	    (result == EX_INFLATE_FULL && to < end));
	return result;
}

TEST(unpacks_what_zlib_packs)
{
	for (unsigned kind = 0; kind < 400; kind++) {
		const size_t size = make_plain(kind), n = pack(size, kind);
		uint8_t *exact = malloc(n), *out = malloc(size + 1);
		unsigned bits;

		assert_non_null(memcpy(exact, packed, n));
		assert_true(ex_inflate_begin(&z, exact, n, 0, 0, NULL, 0));
		/* one more than there are, so that it finds the end */
		assert_int_equal(unpack(out, size + 1, kind % 3 == 0 ?
		    UINT32_MAX : 1 + below(2000)), EX_INFLATE_END);
		assert_true(z.out == out + size);
		assert_memory_equal(out, plain, size);
		assert_int_equal(ex_inflate_place(&z, &bits), n);
		free(out);
		free(exact);
	}
}

/* From a place between two blocks it goes on with the bytes before it, and with no
   others. */
TEST(goes_on_between_blocks)
{
	unsigned places = 0;

	for (unsigned kind = 1; kind < 120; kind += 2) {
		const size_t size = make_plain(kind), n = pack(size, kind);
		uint8_t *out = malloc(size + 1);
		enum ex_inflated result = EX_INFLATE_BLOCK;

		assert_true(ex_inflate_begin(&z, packed, n, 0, 0, NULL, 0));
		while (result == EX_INFLATE_BLOCK) {
			const size_t have = z.out != NULL ?
			    (size_t)(z.out - out) : 0;
			const size_t before = have < EX_INFLATE_WINDOW ? have :
			    EX_INFLATE_WINDOW;
			unsigned bits;
			const size_t place = ex_inflate_place(&z, &bits);

			assert_true(ex_inflate_begin(&z, packed, n, place,
			    bits, out + have - before, before));
			memset(out + have, 0, size + 1 - have);
			result = ex_inflate(&z, out + have, out + size + 1);
			places++;
		}
		assert_int_equal(result, EX_INFLATE_END);
		assert_true(z.out == out + size);
		assert_memory_equal(out, plain, size);
		free(out);
	}
	assert_true(places > 500);
	assert_false(ex_inflate_begin(&z, packed, 5, 6, 0, NULL, 0));
	assert_false(ex_inflate_begin(&z, packed, 5, 0, 1, NULL, 0));
	assert_false(ex_inflate_begin(&z, packed, 5, 5, 8, NULL, 0));
}

/* What comes may go anywhere, some of it where it is overwritten. */
TEST(is_moved)
{
	static uint8_t other[70000];

	for (unsigned kind = 0; kind < 60; kind++) {
		const size_t size = make_plain(kind), n = pack(size, kind);
		size_t at = 0;

		assert_true(ex_inflate_begin(&z, packed, n, 0, 0, NULL, 0));
		while (at < size) {
			size_t len = 1 + below(kind % 2 == 0 ? 300 :
			    sizeof(other));

			len = len < size - at ? len : size - at;
			(void)unpack(other, len, UINT32_MAX);
			assert_memory_equal(other, plain + at, len);
			at += len;
		}
	}
}

/* What zlib makes of bytes, and how many. */
static bool
zlib_unpacks(const uint8_t *bytes, size_t n, uint8_t *out, size_t size,
    size_t *made)
{
	z_stream s = {0};
	int result;

	assert_int_equal(inflateInit2(&s, -MAX_WBITS), Z_OK);
	s.next_in = (Bytef *)(uintptr_t)bytes;
	s.avail_in = (uInt)n;
	s.next_out = out;
	s.avail_out = (uInt)size;
	result = inflate(&s, Z_FINISH);
	*made = s.total_out;
	(void)inflateEnd(&s);
	return result == Z_STREAM_END ||
	    (result == Z_BUF_ERROR && *made == size);
}

/* Damaged streams are what zlib takes them for. */
TEST(survives_damage)
{
	static uint8_t theirs[5000];
	unsigned good = 0;

	for (unsigned i = 0; i < 60000; i++) {
		static size_t size, n;
		uint8_t *exact, *out = malloc(sizeof(theirs));
		size_t len, made, ours;
		bool is;

		if (i % 20 == 0) {
			size = make_plain(i / 20 * 4 + 3);
			n = pack(size, i / 20);
		}
		len = i % 3 == 0 ? below((unsigned)n + 1) : n;
		assert_non_null(exact = malloc(len + 1));
		memcpy(exact, packed, len);
		for (unsigned k = below(4); k > 0 && len > 0; k--)
			exact[below(i % 2 == 0 && len > 60 ? 60 :
			    (unsigned)len)] ^= (uint8_t)(1U << below(8));
		exact = realloc(exact, len > 0 ? len : 1);
		is = zlib_unpacks(exact, len, theirs, sizeof(theirs), &made);
		assert_true(ex_inflate_begin(&z, exact, len, 0, 0, NULL, 0));
		if ((unpack(out, sizeof(theirs), i % 2 == 0 ? UINT32_MAX :
		    100) != EX_INFLATE_DAMAGED) != is)
			fail_msg("%u: zlib says %d", i, is);
		ours = (size_t)(z.out - out);
		if (is)
			assert_int_equal(ours, made);
		assert_memory_equal(out, theirs, ours < made ? ours : made);
		good += is;
		free(exact);
		free(out);
	}
	assert_true(good > 1000 && good < 59000);
}

/* Any bytes at all. */
TEST(survives_anything)
{
	uint8_t *out = malloc(2000);

	for (unsigned i = 0; i < 100000; i++) {
		const size_t len = below(80);
		uint8_t *bytes = malloc(len + 1);

		for (size_t k = 0; k < len; k++)
			bytes[k] = (uint8_t)below(256);
		/* of a kind that is possible */
		if (len > 0)
			bytes[0] = (uint8_t)((bytes[0] & ~6) | below(3) << 1);
		bytes = realloc(bytes, len > 0 ? len : 1);
		assert_true(ex_inflate_begin(&z, bytes, len, 0, 0, NULL, 0));
		(void)unpack(out, 2000, 1 + below(2000));
		free(bytes);
	}
	free(out);
}

RUN_TESTS()
