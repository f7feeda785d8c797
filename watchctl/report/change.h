/*
 * change: what a hit made of the bytes that it touched, for reports: numbers,
 * and values of the program's own types.
 */
#ifndef CHANGE_H
#define CHANGE_H

#include <stdbool.h>

#include "util/buffer.h"
#include "hit/hit.h"

struct change {
	bool has_old, has_new;	/* all bytes that were touched are known */
	const char *type, *path;	/* of the object that they are, or are a
					   part of; NULL: not known */
	/* values of the object, as the program's; "": not known, or of a type
	   that has no such text.  From the target. */
	char old_text[256], new_text[256];
};

void change_of(const struct ex_hit *, struct change *);

/* Append the touched bytes of the hit's old or new value, which are known, as
   a number: for a program, 0x and digits; for a reader, small ones decimal. */
void change_put_hex(struct buffer *, const struct ex_hit *,
    const struct ex_value *);
void change_put_number(struct buffer *, const struct ex_hit *,
    const struct ex_value *);

#endif
