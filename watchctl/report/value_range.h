/*
 * value_range: the values that the hits of a backtrace left, as far as these
 * are proved: the first, the last, the smallest and the largest.
 *
 * Each is left out where it is not known: the first and the last if that hit's
 * is not; the least and the largest if any hit's is not, or if hits touched
 * different bytes, or bytes that are no number.  Bytes without a type are
 * compared as a number without a sign.
 */
#ifndef VALUE_RANGE_H
#define VALUE_RANGE_H

#include "base/number.h"
#include "attach/target.h"
#include "hit/hit.h"
#include "util/buffer.h"

struct range_value {
	bool known;
	bool comparable;	/* it is a number: */
	struct ex_number number;
	unsigned from, len;	/* which bytes of the watch it is */
	uint8_t byte[EX_VALUE_MAX];	/* len of them */
	char text[40];		/* as the program's; "": it has no such text.
				   From the target */
};

struct value_range {
	struct range_value first, last;
	struct range_value least, largest;	/* of all, or not known */
};

/* What the hit left in the bytes that it touched, if that is proved; of a read,
   what it found. */
void value_range_take(struct range_value *, const struct ex_hit *);

/* Add a hit; alone: it is the first of its row. */
void value_range_add(struct value_range *, const struct ex_hit *, bool alone);

/* The same for one that was made before the last one. */
void value_range_add_late(struct value_range *, const struct ex_hit *);

/* Add hits that were only counted, like this one; alone: there are no others;
   and which of the row's ends are among them. */
enum value_range_ends { VALUE_RANGE_FIRST = 1, VALUE_RANGE_LAST = 2 };
void value_range_tally(struct value_range *, const struct ex_hit *,
    const struct wp_target_tally *, bool alone, enum value_range_ends);

/* Append a value that is known: for a program, 0x and digits; for a reader, as
   the program's own, or a number. */
void value_range_put_hex(struct buffer *, const struct range_value *);
void value_range_put(struct buffer *, const struct range_value *);

#endif
