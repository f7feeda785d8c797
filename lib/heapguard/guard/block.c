/* block: a guarded block.  See block.h. */
#include "guard/block.h"

#include <string.h>

/* Most blocks are filled by a few stores, without a call. */
void
hg_block_fill(const struct hg_entry *e, uint64_t block)
{
	const int byte = (int)(hg_block_canary(block) & 0xff);
	void *p = (void *)(uintptr_t)block;

	if (e->size < HG_FILL)
		memset(p, byte, e->size);
	else
		memset(p, byte, HG_FILL);
}

/* All is one byte then, from the front canary on, to the end of what is filled
   and, of a short block, of the tail: so each is as the one 8 bytes before. */
static bool
is_fill_whole(const struct hg_entry *e, uint64_t block)
{
	const void *front = (void *)(uintptr_t)(block - 8),
	    *p = (void *)(uintptr_t)block;

	return e->size < HG_FILL ? memcmp(front, p, hg_block_end(e->size)) ==
	    0 : memcmp(front, p, HG_FILL) == 0;
}

bool
hg_block_is_whole(const struct hg_entry *e, uint64_t block)
{
	return hg_block_has_canaries(e, block) &&
	    (atomic_load(&e->state) != HG_FREED || is_fill_whole(e, block));
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
	const uint64_t header = hg_block_header(block, e->size,
	    hg_ledger_number(e));
	const uint8_t byte = (uint8_t)hg_block_canary(block);
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
	const int64_t filled = size < HG_FILL ? size : HG_FILL;

	*d = (struct hg_damage){0};
	d->kind = HG_USE_AFTER_FREE;
	if (freed && find(e, block, 0, filled, d))
		return true;
	d->kind = freed ? HG_USE_AFTER_FREE : HG_OVERFLOW;
	if (find(e, block, size, (int64_t)hg_block_end(e->size), d))
		return true;
	d->kind = freed ? HG_USE_AFTER_FREE : HG_UNDERFLOW;
	return find(e, block, -16, 0, d);
}
