/* block: a guarded block.  See block.h. */
#include "guard/block.h"

#include "guard/next.h"

size_t hg_block_odd = 8;

void
hg_block_begin(void)
{
	void *p = hg_next.usable_size == NULL ? NULL : hg_next.malloc(40);

	if (p == NULL)
		return;
	hg_block_odd = hg_next.usable_size(p) % 16 == 0 ? 0 : 8;
	hg_next.free(p);
}

static uint8_t
byte_at(uint64_t at)
{
	return *(uint8_t *)(uintptr_t)at;
}

/* Find the first and the last damaged byte in [from, to).  False: none. */
static bool
find(const struct hg_entry *e, uint64_t block, int64_t from, int64_t to,
    struct hg_damage *d)
{
	const uint64_t header = hg_block_header(block, hg_entry_size(e),
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
	const int64_t size = (int64_t)hg_entry_size(e);
	const int64_t filled = size < HG_FILL ? size : HG_FILL;

	*d = (struct hg_damage){0};
	d->kind = HG_USE_AFTER_FREE;
	if (freed && find(e, block, 0, filled, d))
		return true;
	d->kind = freed ? HG_USE_AFTER_FREE : HG_OVERFLOW;
	if (find(e, block, size, (int64_t)hg_block_end(hg_entry_size(e)), d))
		return true;
	d->kind = freed ? HG_USE_AFTER_FREE : HG_UNDERFLOW;
	return find(e, block, -16, 0, d);
}
