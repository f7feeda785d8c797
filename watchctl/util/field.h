/*
 * field: appends members of JSON objects.
 *
 * Names are nearly always constants, so their lengths are, too; therefore
 * functions called for every hit are inline.
 */
#ifndef FIELD_H
#define FIELD_H

#include "util/buffer.h"
#include "util/visible.h"

/* Append a name, after a comma unless it is the first in its object; its value
   must follow. */
static inline void
field(struct buffer *b, const char *name)
{
	const size_t len = strlen(name);
	char *to;

	if (!buffer_room(b, len + sizeof(",\"\":") - 1))
		return;
	to = b->bytes + b->len;
	if (b->len == 0 || to[-1] != '{')
		*to++ = ',';
	*to++ = '"';
	memcpy(to, name, len);
	memcpy(to + len, "\":", 2);
	b->len = (size_t)(to + len + 2 - b->bytes);
}

/* The same with a value: a number; a number as a hexadecimal string; any text;
   a truth value. */
static inline void
field_dec(struct buffer *b, const char *name, uint64_t value)
{
	field(b, name);
	buffer_dec(b, value);
}

static inline void
field_hex(struct buffer *b, const char *name, uint64_t value)
{
	field(b, name);
	buffer_put(b, "\"", 1);
	buffer_hex(b, value);
	buffer_put(b, "\"", 1);
}

/* A 64-bit identifier, such as a backtrace's: all digits, without 0x. */
static inline void
field_id(struct buffer *b, const char *name, uint64_t id)
{
	field(b, name);
	buffer_put(b, "\"", 1);
	buffer_hex_digits(b, id, 16);
	buffer_put(b, "\"", 1);
}

/* Seconds, from ns. */
static inline void
field_seconds(struct buffer *b, const char *name, uint64_t ns)
{
	field(b, name);
	buffer_fixed(b, ns, 9);
}

static inline void
field_text(struct buffer *b, const char *name, const char *text)
{
	field(b, name);
	visible_put_json(b, text);
}

static inline void
field_bool(struct buffer *b, const char *name, bool value)
{
	field(b, name);
	buffer_puts(b, value ? "true" : "false");
}

/* Write the field only if it is true. */
static inline void
field_flag(struct buffer *b, const char *name, bool value)
{
	if (value)
		field_bool(b, name, true);
}

#endif
