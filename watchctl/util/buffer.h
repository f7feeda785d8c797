/*
 * buffer: growing buffers, for lines that are written in one piece.
 *
 * A buffer that is all zero is empty.  When memory runs out, it accepts nothing
 * more and remembers the failure, so that only the end of a line has to check.
 */
#ifndef BUFFER_H
#define BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct buffer {
	char *bytes;		/* malloc'd, no NUL at the end; NULL: none */
	size_t len, cap;
	bool failed;		/* out of memory: something is missing */
	size_t written;		/* bytes that the last buffer_write wrote */
};

void buffer_free(struct buffer *);

/* Make room for len more bytes.  False, and failed, without memory. */
bool buffer_grow(struct buffer *, size_t len);

/* The same, inline. */
static inline bool
buffer_room(struct buffer *b, size_t len)
{
	return (len <= b->cap - b->len || buffer_grow(b, len)) && !b->failed;
}

/* Append bytes, a string, a formatted string. */
static inline void
buffer_put(struct buffer *b, const void *bytes, size_t len)
{
	if (len == 0 || !buffer_room(b, len))
		return;
	memcpy(b->bytes + b->len, bytes, len);
	b->len += len;
}

void buffer_printf(struct buffer *, const char *, ...)
    __attribute__((format(printf, 2, 3)));

static inline void
buffer_puts(struct buffer *b, const char *text)
{
	buffer_put(b, text, strlen(text));
}

/* Append a character n times. */
void buffer_fill(struct buffer *, char, size_t n);

/* Append a number: decimal, hex with 0x, and both with at least this many
   digits, at most 16 of hex. */
void buffer_dec(struct buffer *, uint64_t);
void buffer_hex(struct buffer *, uint64_t);
void buffer_digits(struct buffer *, uint64_t, unsigned digits);
void buffer_hex_digits(struct buffer *, uint64_t, unsigned digits);

/* Append n / 10^digits as a decimal fraction with this many digits, at most 19,
   and a point in every locale. */
void buffer_fixed(struct buffer *, uint64_t n, unsigned digits);

/*
 * Complete what was begun at start: 0, or -ENOMEM when something is missing
 * from it, and then it is removed completely.
 */
int buffer_commit(struct buffer *, size_t start);

/* The contents as a string, valid until the next call; "" without memory. */
const char *buffer_text(struct buffer *);

/* Write the contents to the stream, flush it, and empty the buffer.  0 or
   -errno: -EINTR: there is no reader, and a signal for watchctl is pending. */
int buffer_write(struct buffer *, FILE *);

/* The same, but wait for a reader at most ms milliseconds (-1: no limit): then
   -EAGAIN, and the rest stays in the buffer. */
int buffer_write_for(struct buffer *, FILE *, int ms);

#endif
