/*
 * cursor: reads untrusted bytes without leaving their bounds.
 *
 * When a part does not fit, the cursor becomes empty and bad, and further parts
 * read as 0; so one check at the end is enough.  Bytes may have any alignment
 * and are in this machine's order.
 */
#ifndef EX_CURSOR_H
#define EX_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"

struct cursor {
	const uint8_t *p;	/* what comes next */
	size_t left;		/* bytes from p on */
	bool bad;		/* something did not fit */
};

static inline void
cursor_fail(struct cursor *c)
{
	c->left = 0;
	c->bad = true;
}

/* count things of size bytes each; NULL: none, or they do not fit. */
static inline const uint8_t *
take(struct cursor *c, uint64_t count, size_t size)
{
	const uint8_t *p = c->p;

	if (count > c->left / size) {
		cursor_fail(c);
		return NULL;
	}
	c->p += count * size;
	c->left -= count * size;
	return count > 0 ? p : NULL;
}

static inline uint64_t
take64(struct cursor *c)
{
	const uint8_t *p = take(c, 1, sizeof(uint64_t));

	return p != NULL ? ex_u64(p) : 0;
}

static inline uint32_t
take32(struct cursor *c)
{
	const uint8_t *p = take(c, 1, sizeof(uint32_t));

	return p != NULL ? ex_u32(p) : 0;
}

static inline uint16_t
take16(struct cursor *c)
{
	const uint8_t *p = take(c, 1, sizeof(uint16_t));
	uint16_t v = 0;

	if (p != NULL)
		memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint8_t
take8(struct cursor *c)
{
	const uint8_t *p = take(c, 1, 1);

	return p != NULL ? *p : 0;
}

/* An offset as in DWARF, of 4 or 8 bytes. */
static inline uint64_t
take_offset(struct cursor *c, size_t size)
{
	return size == 8 ? take64(c) : take32(c);
}

/* A variable-length number as in DWARF (ULEB128). */
static inline uint64_t
take_leb128(struct cursor *c)
{
	uint64_t value = 0;
	unsigned shift = 0;
	const uint8_t *byte;

	while ((byte = take(c, 1, 1)) != NULL) {
		if (shift < 64)
			value |= (uint64_t)(*byte & 0x7f) << shift;
		if ((*byte & 0x80) == 0)
			break;
		shift += 7;
	}
	return value;
}

/* A string with its NUL; "" if the NUL is missing, and then the cursor is
   bad. */
static inline const char *
take_string(struct cursor *c)
{
	const uint8_t *nul = c->left > 0 ? memchr(c->p, '\0', c->left) : NULL;

	if (nul == NULL) {
		cursor_fail(c);
		return "";
	}
	return (const char *)take(c, (size_t)(nul - c->p) + 1, 1);
}

#endif
