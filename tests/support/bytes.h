/*
 * bytes: assembles records, and files of them.
 */
#ifndef BYTES_H
#define BYTES_H

#include <string.h>

struct bytes {
	uint8_t b[1 << 16];
	size_t len;
};

static inline void
put(struct bytes *b, const void *p, size_t n)
{
	assert_true(b->len + n <= sizeof(b->b));
	memcpy(b->b + b->len, p, n);
	b->len += n;
}

static inline void
put64(struct bytes *b, uint64_t v)
{
	put(b, &v, sizeof(v));
}

static inline void
put32(struct bytes *b, uint32_t v)
{
	put(b, &v, sizeof(v));
}

/* Append a string, padded with NULs to 8 bytes as the kernel does. */
static inline void
put_string(struct bytes *b, const char *s)
{
	static const char pad[8];
	size_t n = strlen(s) + 1;

	put(b, s, n);
	put(b, pad, -n & 7);
}

#endif
