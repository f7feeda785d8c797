/*
 * field: members of JSON objects.
 */
#ifndef FIELD_H
#define FIELD_H

#include "util/buffer.h"

/* Append a name, behind a comma unless it is the first of its object; its value
   is to follow. */
void field(struct buffer *, const char *name);

/* The same with a value: a number; one as a string in hexadecimal; a text,
   which may be anything; a truth value. */
void field_dec(struct buffer *, const char *name, uint64_t value);
void field_hex(struct buffer *, const char *name, uint64_t value);
void field_text(struct buffer *, const char *name, const char *text);
void field_bool(struct buffer *, const char *name, bool value);

#endif
