/*
 * json_text: parses untrusted JSON in place.
 *
 * A line is checked to be one complete object by RFC 8259.  Values of its
 * members are pieces of the line, which are only parsed on request.  Nothing is
 * allocated, and the depth is bounded, because the text is not trusted.
 */
#ifndef JSON_TEXT_H
#define JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/buffer.h"

/* A value, from its first character to its last: a string with its quotes. */
struct json_text {
	const char *at;		/* NULL: there is none */
	size_t len;
};

/* A member of an object: its name, without quotes and with escapes, and its
   value. */
typedef void json_text_member(void *arg, const char *name, size_t len,
    struct json_text value);

/* Whether a text is one complete object; member, if not NULL, is called for
   each of its members, even if an error follows. */
bool json_text_object(struct json_text, json_text_member *, void *arg);

/* Iterate over the values of an array that was checked: take the next value
   from *array.  False: there is none. */
bool json_text_next(struct json_text *array, struct json_text *value);

/* Convert a value, if it is of that kind: a number without sign or fraction;
   seconds, to ns; a string of at most size - 1 bytes, with U+FFFD for a NUL; a
   string of hexadecimal digits, with or without 0x. */
bool json_text_uint(struct json_text, uint64_t *);
bool json_text_seconds(struct json_text, int64_t *ns);
bool json_text_string(struct json_text, char *to, size_t size);
bool json_text_hex(struct json_text, uint64_t *);

/* Append a checked value, with its strings written as visible_put_json() does,
   and without members of objects that have this name. */
void json_text_put(struct buffer *, struct json_text, const char *without);

#endif
