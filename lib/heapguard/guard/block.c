/* block: a guarded block.  See block.h. */
#include "guard/block.h"

#include <string.h>

static uint8_t
canary(uint64_t block)
{
	return (uint8_t)(0x80 | (block * UINT64_C(0x9e3779b97f4a7c15)) >> 57);
}

static uint64_t
repeated(uint8_t byte)
{
	return byte * UINT64_C(0x0101010101010101);
}

/* A block's number, and the check of it. */
static uint64_t
header_of(uint64_t block, uint32_t number)
{
	const uint32_t check = (uint32_t)(block >> 4) ^ number ^
	    UINT32_C(0xa5c3f00f);

	return number | (uint64_t)check << 32;
}

static void
put(uint64_t at, uint64_t word)
{
	memcpy((void *)(uintptr_t)at, &word, sizeof(word));
}

static uint64_t
get(uint64_t at)
{
	uint64_t word;

	memcpy(&word, (void *)(uintptr_t)at, sizeof(word));
	return word;
}

/* Bytes behind a block, as glibc's usable sizes: 8 more than a multiple of
   16. */
static size_t
tail_of(size_t size)
{
	return ((size + 8 + 7) & ~(size_t)15) + 8 - size;
}

size_t
hg_block_room(size_t size, size_t pad)
{
	if (size > (size_t)1 << 47)
		return 0;
	return pad + size + tail_of(size);
}

/*
 * The tail, in words that are aligned: a processor waits where it reads at once
 * what several stores have written.  The first word may have the block's last
 * bytes in it, and they may be the same one.
 */
struct tail {
	uint64_t first, middle, last;	/* their addresses */
	uint64_t mask;			/* of the first one */
};

static struct tail
find_tail(uint64_t block, size_t size)
{
	const uint64_t first = (block + size) & ~(uint64_t)7;
	const uint64_t last = block + size + tail_of(size) - 8;

	return (struct tail){first, ((first + last + 8) / 2) & ~(uint64_t)7,
		last, UINT64_MAX << size % 8 * 8};
}

void
hg_block_seal(uint64_t block, size_t size, uint32_t number)
{
	const uint64_t word = repeated(canary(block));
	const struct tail t = find_tail(block, size);

	put(block - 16, header_of(block, number));
	put(block - 8, word);
	put(t.first, (get(t.first) & ~t.mask) | (word & t.mask));
	put(t.middle, word);
	put(t.last, word);
}

static size_t
filled(const struct hg_entry *e)
{
	return e->size < HG_FILL ? e->size : HG_FILL;
}

/* Most blocks are filled by a few stores, without a call. */
void
hg_block_fill(const struct hg_entry *e, uint64_t block)
{
	void *p = (void *)(uintptr_t)block;

	if (hg_state.quarantine == 0)
		return;
	if (e->size < HG_FILL)
		memset(p, canary(block), e->size);
	else
		memset(p, canary(block), HG_FILL);
}

static bool
is_fill_whole(const struct hg_entry *e, uint64_t block, uint64_t word)
{
	const size_t n = filled(e);
	size_t i;
	uint64_t bad = 0;

	if (hg_state.quarantine == 0)
		return true;
	for (i = 0; i + 8 <= n; i += 8)
		bad |= get(block + i) ^ word;
	for (; i < n; i++)
		bad |= *(uint8_t *)(uintptr_t)(block + i) ^ (word & 0xff);
	return bad == 0;
}

bool
hg_block_is_whole(const struct hg_entry *e, uint64_t block)
{
	const uint64_t word = repeated(canary(block));
	const struct tail t = find_tail(block, e->size);

	return ((get(block - 8) ^ word) | ((get(t.first) ^ word) & t.mask) |
	    (get(t.middle) ^ word) | (get(t.last) ^ word) |
	    (get(block - 16) ^ header_of(block, hg_ledger_number(e)))) == 0 &&
	    (atomic_load(&e->state) != HG_FREED ||
	    is_fill_whole(e, block, word));
}

static uint8_t
byte_at(uint64_t at)
{
	return *(uint8_t *)(uintptr_t)at;
}

/* The bytes of [from, to) that are not as they were written: first and last.
   False: none. */
static bool
find(const struct hg_entry *e, uint64_t block, int64_t from, int64_t to,
    struct hg_damage *d)
{
	const uint64_t header = header_of(block, hg_ledger_number(e));
	const uint8_t byte = canary(block);
	int64_t last = from;
	bool any = false;

	for (int64_t i = from; i < to; i++) {
		if (byte_at(block + (uint64_t)i) ==
		    (i < -8 ? (uint8_t)(header >> 8 * (i + 16)) : byte))
			continue;
		if (!any)
			d->offset = i;
		any = true;
		last = i;
	}
	d->len = (uint64_t)(last + 1 - d->offset);
	return any;
}

bool
hg_block_damage(const struct hg_entry *e, uint64_t block, struct hg_damage *d)
{
	const bool freed = atomic_load(&e->state) == HG_FREED;
	const int64_t size = (int64_t)e->size;

	*d = (struct hg_damage){0};
	d->kind = HG_USE_AFTER_FREE;
	if (freed && hg_state.quarantine > 0 &&
	    find(e, block, 0, (int64_t)filled(e), d))
		return true;
	d->kind = freed ? HG_USE_AFTER_FREE : HG_OVERFLOW;
	if (find(e, block, size, size + (int64_t)tail_of(e->size), d))
		return true;
	d->kind = freed ? HG_USE_AFTER_FREE : HG_UNDERFLOW;
	return find(e, block, -16, 0, d);
}
