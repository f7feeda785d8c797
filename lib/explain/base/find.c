/* find: searches much memory for a few bytes. */
#include "base/find.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
	BLOCK = 256,		/* positions that are tested together */
	PROBES = 3,		/* bytes compared at each */
};

struct probe {
	size_t at;
	uint8_t byte;
};

/* How rare a byte is in debug information. */
static int
rarity(uint8_t byte)
{
	return byte == 0 ? 0 : byte < ' ' || byte == UINT8_MAX ? 1 : 2;
}

/* Choose the rarest bytes; if there are too few, repeat the first one. */
static void
choose(const uint8_t *bytes, size_t len, struct probe probe[PROBES])
{
	size_t n = 0;

	for (size_t i = 0; i < PROBES; i++)
		probe[i] = (struct probe){0, bytes[0]};
	for (int rare = 2; rare >= 0; rare--)
		for (size_t i = 0; i < len && n < PROBES; i++)
			if (rarity(bytes[i]) == rare)
				probe[n++] = (struct probe){i, bytes[i]};
}

/* Whether all probes match at one of the positions of a block.  Without
   branches, so that compilers vectorize it. */
static bool
may_hold(const uint8_t *block, const struct probe probe[PROBES])
{
	const uint8_t *a = block + probe[0].at, *b = block + probe[1].at,
	    *c = block + probe[2].at;
	const uint8_t x = probe[0].byte, y = probe[1].byte, z = probe[2].byte;
	uint8_t any = 0;

	for (size_t i = 0; i < BLOCK; i++)
		any |= (uint8_t)((a[i] == x) & (b[i] == y) & (c[i] == z));
	return any != 0;
}

const void *
ex_find(const void *in, size_t size, const void *bytes, size_t len)
{
	const uint8_t *at = in;
	struct probe probe[PROBES];
	const void *hit;

	choose(bytes, len, probe);
	for (; size >= BLOCK + len - 1; at += BLOCK, size -= BLOCK) {
		if (may_hold(at, probe) && (hit = memmem(at, BLOCK + len - 1,
		    bytes, len)) != NULL)
			return hit;
	}
	return memmem(at, size, bytes, len);
}
