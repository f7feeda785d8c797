/*
 * json_text: parses untrusted JSON in place.
 *
 * A line is checked to be one object, whole, by RFC 8259; its members' values
 * are pieces of the line, which are taken apart only where one asks for it.
 * Nothing is allocated, and depth is bounded: the text is not trusted.
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

/* Whether a text is one whole object; member, if not NULL, is called for each
   of its members, also for those in front of what is wrong. */
bool json_text_object(struct json_text, json_text_member *, void *arg);

/* Take the values of an array that has been checked one by one: true, and the
   first is taken from *array. */
bool json_text_next(struct json_text *array, struct json_text *value);

/* What a value is, if it is that: a number without sign or fraction; seconds as
   ns; a string, of at most size - 1 bytes, with U+FFFD for a NUL; a string of
   hexadecimal digits, with 0x or without. */
bool json_text_uint(struct json_text, uint64_t *);
bool json_text_seconds(struct json_text, int64_t *ns);
bool json_text_string(struct json_text, char *to, size_t size);
bool json_text_hex(struct json_text, uint64_t *);

/* Append a value that has been checked, its strings as visible_put_json() has
   them, without the members of objects that are called so. */
void json_text_put(struct buffer *, struct json_text, const char *without);

#endif
