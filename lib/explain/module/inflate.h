/*
 * inflate: a zlib stream (RFC 1950, 1951) unpacked in place, as far as it is
 * wanted, and on from there.
 *
 * zlib takes half as much time again: it does not know that what it has written
 * stays where it is.  The check sum at the end is not looked at: as a rule the end
 * is not reached.
 */
#ifndef EX_INFLATE_H
#define EX_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	EX_INFLATE_BITS = 11,	/* codes up to this length are in a table */
	EX_INFLATE_CODES = 288,
	EX_INFLATE_SLACK = 320,	/* bytes */
};

/* A Huffman code. */
struct ex_inflate_code {
	uint32_t table[1 << EX_INFLATE_BITS];	/* 0: the code is longer */
	uint16_t count[16];	/* of codes, by length */
	uint16_t symbol[EX_INFLATE_CODES];	/* in the order of their codes */
};

struct ex_inflate {
	const uint8_t *in, *in_end;	/* what is not read yet */
	uint64_t bits;		/* read and not used, the next one lowest */
	unsigned nbits;
	uint8_t *out;		/* all of it, from the beginning */
	uint64_t done;		/* bytes that are there */
	enum { EX_INFLATE_BLOCK, EX_INFLATE_STORED, EX_INFLATE_CODED,
	    EX_INFLATE_ENDED } state;
	bool last;		/* this is the last block */
	bool damaged;
	uint32_t stored;	/* bytes left of a block that is not packed */
	struct ex_inflate_code literal, distance;
};

/* Begin.  False: this is no such stream. */
bool ex_inflate_begin(struct ex_inflate *, const uint8_t *in, size_t len,
    uint8_t *out);

/*
 * Unpack up to this byte, or some further; room is how many there is room for
 * now, at least upto.  With EX_INFLATE_SLACK more it is fast; that much may be
 * written over behind what is done.  It is done when state is EX_INFLATE_ENDED:
 * damaged says why.
 */
void ex_inflate_upto(struct ex_inflate *, uint64_t upto, uint64_t room);

#endif
