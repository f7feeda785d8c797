/*
 * change: the bytes that a hit touched, as text and as numbers.
 */
#ifndef CHANGE_H
#define CHANGE_H

#include "hit/hit.h"
#include "util/buffer.h"

/* Append what a hit's values are of, when that is a part of its watch:
   "conn.state: ". */
void change_put_path(struct buffer *, const struct ex_hit *);

/* Whether its values are those of a part of the watch, which has a path. */
bool change_is_part(const struct ex_hit *);

/* Append what a hit made of what it touched, some of which is known: "41 ->
   42", "-> 42 (value read later)", "42 (unchanged)"; of a read: "42".  As the
   program's own type has it, or as a number. */
void change_put(struct buffer *, const struct ex_hit *);

/* Append the touched bytes of the hit's old or new value, which are known, as
   a number: for a program, 0x and digits; for a reader, small ones decimal. */
void change_put_hex(struct buffer *, const struct ex_hit *,
    const struct ex_value *);
void change_put_number(struct buffer *, const struct ex_hit *,
    const struct ex_value *);

/* The same for so many bytes, the first the lowest, at most EX_VALUE_MAX. */
void change_put_hex_bytes(struct buffer *, const uint8_t *bytes, unsigned len);
void change_put_number_bytes(struct buffer *, const uint8_t *bytes,
    unsigned len);

#endif
