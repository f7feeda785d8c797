/*
 * inflate: DEFLATE streams (RFC 1951), unpacked up to where somebody asks.
 *
 * zlib does the same, and takes 1.4 times as long.  All of the packed bytes are
 * there, and what comes of them mostly goes to one place, piece after piece, so
 * that it is its own window.  A stream may go on from any place between two blocks.
 */
#ifndef EX_INFLATE_H
#define EX_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	EX_INFLATE_WINDOW = 32768,
	EX_INFLATE_LONG = 11, EX_INFLATE_SHORT = 8,	/* bits of a code that
					   the first table is asked with */
};

/* A code: what bits stand for.  Those that are longer have tables of their
   own, behind the first one. */
struct ex_inflate_codes {
	uint32_t *at;
	unsigned bits;		/* of the first table */
	size_t size;
};

/* Its members are for inflate.c, apart from out. */
struct ex_inflate {
	uint8_t *out;		/* where the next byte goes */
	const uint8_t *begin, *in, *end;	/* packed: all; what comes next */
	uint64_t bits;		/* taken from them, lowest first */
	unsigned nbits;		/* that count */
	unsigned mode;
	bool last;		/* this block is the last */
	size_t left;		/* of a stored block, or of a copy */
	size_t distance;	/* of that copy */
	uint8_t *start;		/* out has all bytes from here on, */
	size_t nwindow;		/* and so many before them are the last of: */
	uint8_t window[EX_INFLATE_WINDOW];
	uint32_t literals[2400], distances[512];
};

enum ex_inflated {
	EX_INFLATE_FULL,	/* there may be more */
	EX_INFLATE_BLOCK,	/* between two blocks */
	EX_INFLATE_END,
	EX_INFLATE_DAMAGED,	/* what came before is what it would be */
};

/* Begin behind n of the size packed bytes, of the last of which the upper `bits`
   (0 to 7) are still to be read; the last bytes that came before, at most a window
   of them.  False: there is no such place. */
bool ex_inflate_begin(struct ex_inflate *, const uint8_t *packed, size_t size,
    size_t n, unsigned bits, const uint8_t *before, size_t nbefore);

/* Have bytes come, up to `end', which begin at `to'.  What is between out and end
   may be written, whatever comes. */
enum ex_inflated ex_inflate(struct ex_inflate *, uint8_t *to, uint8_t *end);

/* Where it is, as ex_inflate_begin takes it. */
size_t ex_inflate_place(const struct ex_inflate *, unsigned *bits);

#endif
