/*
 * change: writes the bytes that a hit touched, as text and as numbers.
 */
#ifndef CHANGE_H
#define CHANGE_H

#include "hit/hit.h"
#include "util/buffer.h"

/* Append the path of the part of the watch that a hit's values are of:
   "conn.state: ". */
void change_put_path(struct buffer *, const struct ex_hit *);

/* Whether a hit's values are of a part of the watch, which has a path. */
bool change_is_part(const struct ex_hit *);

/* Append the change that a hit made, some of which is known: "41 -> 42", "-> 42
   (value read later)", "42 (unchanged)"; for a read "42".  Values are written
   as the program's type has them, or as numbers. */
void change_put(struct buffer *, const struct ex_hit *);

/* Append the touched bytes of the hit's old or new value, which are known, as a
   number: in hexadecimal for programs; for readers, small ones in decimal. */
void change_put_hex(struct buffer *, const struct ex_hit *,
    const struct ex_value *);
void change_put_number(struct buffer *, const struct ex_hit *,
    const struct ex_value *);

/* The same for len bytes, at most EX_VALUE_MAX, the lowest first. */
void change_put_hex_bytes(struct buffer *, const uint8_t *bytes, unsigned len);
void change_put_number_bytes(struct buffer *, const uint8_t *bytes,
    unsigned len);

#endif
