/* inflate: against zlib, whatever the stream. */
#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "module/inflate.h"

enum { STREAMS = 1500, BYTES_MAX = 20000 };

static uint64_t seed = 1;

static unsigned
below(unsigned n)
{
	seed = seed * UINT64_C(6364136223846793005) +
	    UINT64_C(1442695040888963407);
	return (unsigned)(seed >> 33) % n;
}

/* Bytes of which some come again, soon or late. */
static void
make_bytes(uint8_t *bytes, size_t n)
{
	const unsigned values = 1 + below(below(3) == 0 ? 256 : 8);
	const unsigned again = below(60);

	for (size_t i = 0; i < n; i++)
		bytes[i] = i > 300 && below(100) < again ?
		    bytes[i - 1 - below(300)] : (uint8_t)below(values);
}

/* Pack them in one way or another; malloc'd, of exactly that size. */
static uint8_t *
pack(uint8_t *bytes, size_t n, size_t *len)
{
	size_t room = 2 * n + 1000;
	uint8_t *out = malloc(room);
	z_stream z = {.next_in = bytes, .avail_in = (uInt)n, .next_out = out,
	    .avail_out = (uInt)room};

	assert_non_null(out);
	assert_int_equal(deflateInit2(&z, (int)below(10), Z_DEFLATED, 15,
	    1 + (int)below(9), (int)below(5)), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	*len = room - z.avail_out;
	assert_int_equal(deflateEnd(&z), Z_OK);
	return realloc(out, *len);
}

/* Damage a few bits of it, and maybe its end.  Result: its length now. */
static size_t
damage(uint8_t **packed, size_t len)
{
	for (unsigned i = 1 + below(3); i > 0; i--)
		(*packed)[below((unsigned)len)] ^= (uint8_t)(1 << below(8));
	if (below(4) == 0) {
		len = 1 + below((unsigned)len);
		*packed = realloc(*packed, len);
		assert_non_null(*packed);
	}
	return len;
}

/* Unpack it by pieces; how much there is. */
static size_t
unpack(struct ex_inflate *s, const uint8_t *packed, size_t len, uint8_t *out,
    size_t n)
{
	if (!ex_inflate_begin(s, packed, len, out))
		return 0;
	while (s->state != EX_INFLATE_ENDED && s->done < n) {
		uint64_t upto = s->done + 1 + below(3000);
		uint64_t room;

		if (upto > n)
			upto = n;
		room = upto + below(2 * EX_INFLATE_SLACK);
		if (room < upto + EX_INFLATE_SLACK)
			room = upto + EX_INFLATE_SLACK;
		if (room > n)
			room = n;
		ex_inflate_upto(s, upto, room);
		assert_true(s->state == EX_INFLATE_ENDED || s->done >= upto);
		assert_true(s->done <= room);
	}
	return s->done;
}

/* The same by zlib. */
static size_t
unpack_by_zlib(uint8_t *packed, size_t len, uint8_t *out, size_t n)
{
	z_stream z = {.next_in = packed, .avail_in = (uInt)len,
	    .next_out = out, .avail_out = (uInt)n};

	assert_int_equal(inflateInit(&z), Z_OK);
	(void)inflate(&z, Z_SYNC_FLUSH);
	(void)inflateEnd(&z);
	return n - z.avail_out;
}

TEST(unpacks_what_zlib_packs)
{
	struct ex_inflate *s = malloc(sizeof(*s));

	assert_non_null(s);
	for (unsigned i = 0; i < STREAMS; i++) {
		size_t n = 1 + below(BYTES_MAX), len;
		uint8_t *bytes = calloc(1, n), *out = malloc(n), *packed;

		assert_true(bytes != NULL && out != NULL);
		if (i % 7 != 0)
			make_bytes(bytes, n);
		assert_non_null(packed = pack(bytes, n, &len));
		assert_int_equal(unpack(s, packed, len, out, n), n);
		assert_false(s->damaged);
		assert_memory_equal(out, bytes, n);
		free(packed);
		free(out);
		free(bytes);
	}
	free(s);
}

/* What is damaged becomes what zlib makes of it, up to a copy that does not fit
   in the room that there is. */
TEST(ends_where_zlib_does)
{
	struct ex_inflate *s = malloc(sizeof(*s));

	assert_non_null(s);
	for (unsigned i = 0; i < STREAMS; i++) {
		size_t n = 1 + below(BYTES_MAX), len, done, theirs;
		uint8_t *bytes = calloc(1, n), *out = calloc(1, n), *packed;

		assert_true(bytes != NULL && out != NULL);
		make_bytes(bytes, n);
		assert_non_null(packed = pack(bytes, n, &len));
		len = damage(&packed, len);
		done = unpack(s, packed, len, out, n);
		theirs = unpack_by_zlib(packed, len, bytes, n);
		if (done != theirs && (theirs != n || done + 258 <= n))
			fail_msg("%zu bytes, zlib %zu of %zu", done, theirs, n);
		assert_memory_equal(out, bytes, done);
		free(packed);
		free(out);
		free(bytes);
	}
	free(s);
}

RUN_TESTS()
