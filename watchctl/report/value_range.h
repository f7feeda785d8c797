/*
 * value_range: the values that the hits of a backtrace left: the first, the
 * last, the smallest and the largest, as far as they are proved.
 *
 * Each may be unknown: the first and the last if that hit's value is; the
 * smallest and the largest if any hit's value is, or if hits touched different
 * bytes, or bytes that are not a number.  Bytes without a type are compared as
 * unsigned numbers.
 */
#ifndef VALUE_RANGE_H
#define VALUE_RANGE_H

#include "base/number.h"
#include "attach/target.h"
#include "hit/hit.h"
#include "util/buffer.h"

struct range_value {
	bool known;
	bool comparable;	/* the value is a number: */
	struct ex_number number;
	unsigned from, len;	/* the bytes of the watch that it is of */
	uint8_t byte[EX_VALUE_MAX];	/* len of them */
	char text[40];		/* as the program's type has it, untrusted; "":
				   none */
};

struct value_range {
	struct range_value first, last;
	struct range_value least, largest;	/* of all hits */
};

/* Take the value that a hit left in the bytes that it touched, or that a read
   found, if it is proved. */
void value_range_take(struct range_value *, const struct ex_hit *);

/* Add a hit; alone: its row has no other. */
void value_range_add(struct value_range *, const struct ex_hit *, bool alone);

/* The same for a hit that was made before the last one. */
void value_range_add_late(struct value_range *, const struct ex_hit *);

/* Add hits like this one that BPF programs counted; alone: the row has no
   others; and which of the row's first and last hits are among them. */
enum value_range_ends { VALUE_RANGE_FIRST = 1, VALUE_RANGE_LAST = 2 };
void value_range_tally(struct value_range *, const struct ex_hit *,
    const struct wp_target_tally *, bool alone, enum value_range_ends);

/* Append a known value: in hexadecimal for programs; for readers, as the
   program's type has it, or as a number. */
void value_range_put_hex(struct buffer *, const struct range_value *);
void value_range_put(struct buffer *, const struct range_value *);

#endif
