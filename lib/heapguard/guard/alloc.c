/*
 * alloc: blocks, from their allocation until they are given back to the
 * allocator.
 *
 *	none -> live -> freeing -> freed (in quarantine) -> none
 */
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>

#include "guard/block.h"
#include "guard/malloc.h"
#include "guard/next.h"
#include "guard/report.h"
#include "guard/watch.h"

/* realloc(3) always moves blocks smaller than this into a new one, if the old
   one is kept: a write to the old address is noticed then. */
enum { MOVE_BELOW = 64 << 10 };

/* The frames beyond the caller's that belong to the key of a site
   (hg_callers_of). */
enum { FRAMES = 2 };

static void *
raw_of(const struct hg_entry *e, uint64_t block)
{
	return (void *)(uintptr_t)(block - ((uint64_t)1 << e->pad));
}

static unsigned
log2_of(size_t n)
{
	return (unsigned)__builtin_ctzl(n);
}

/* Make a guarded block of memory from the allocator.  If the ledger is full,
   the block stays unguarded. */
static inline __attribute__((always_inline)) void *
adopt(char *raw, size_t size, size_t pad, enum hg_family family,
    const struct hg_record *from, bool fresh)
{
	struct hg_thread *t = hg_thread();
	const uint32_t number = t == NULL ? 0 : hg_ledger_take(t);
	const uint64_t block = (uintptr_t)raw + pad;
	uint32_t callers, nth, in_thread;
	struct hg_entry *e;

	if (number == 0) {
		atomic_store(&hg_state.exhausted, true);
		return raw;
	}
	e = &hg_ledger.all[number];
	hg_entry_set_size(e, size);
	e->family = family & 3;
	e->pad = log2_of(pad) & 63;
	e->flags = 0;
	callers = hg_callers_of(t, from, FRAMES);
	nth = hg_callers_count(callers);
	e->alloc = (uint16_t)callers;
	e->number = nth;
	in_thread = hg_callers_count_in(t, callers);
	if (atomic_load_explicit(&hg_state.several, memory_order_relaxed))
		hg_ledger.in_thread[number] = in_thread;
	hg_block_seal(block, size, number, fresh);
	atomic_store_explicit(&e->block, block, memory_order_release);
	if (hg_callers_are_due(callers, nth))
		hg_watch_allocated(e, block);
	atomic_store_explicit(&e->state, HG_LIVE, memory_order_release);
	return (void *)(uintptr_t)block;
}

static void *
refuse(void)
{
	errno = ENOMEM;
	return NULL;
}

static __attribute__((noinline)) void *
alloc_aligned(size_t size, size_t align, enum hg_family family,
    const struct hg_record *from)
{
	const size_t room = hg_block_room(size, align);
	void *raw;

	if (room == 0 || (align & (align - 1)) != 0)
		return refuse();
	raw = hg_next.memalign(align, room);
	return raw == NULL ? NULL : adopt(raw, size, align, family, from,
	    true);
}

void *
hg_alloc(size_t size, size_t align, enum hg_family family,
    const struct hg_record *from)
{
	const size_t room = hg_block_room(size, HG_HEAD);
	void *raw;

	if (align > HG_HEAD)
		return alloc_aligned(size, align, family, from);
	if (room == 0)
		return refuse();
	raw = hg_next.malloc(room);
	return raw == NULL ? NULL : adopt(raw, size, HG_HEAD, family, from,
	    true);
}

void *
hg_zeroed(size_t size, const struct hg_record *from)
{
	const size_t room = hg_block_room(size, HG_HEAD);
	void *raw = room == 0 ? NULL : hg_next.calloc(1, room), *block;

	if (raw == NULL)
		return refuse();
	block = adopt(raw, size, HG_HEAD, HG_MALLOC, from, false);
	if (atomic_load_explicit(&hg_state.exhausted, memory_order_relaxed) &&
	    block != NULL)
		memset(block, 0, size);
	return block;
}

/* --- freeing --- */

/* No block is given back to the allocator while a sweep checks all blocks. */
static inline void
begin_busy(struct hg_thread *t)
{
	for (;;) {
		atomic_store_explicit(&t->busy, true, memory_order_relaxed);
		atomic_signal_fence(memory_order_seq_cst);
		if (atomic_load_explicit(&hg_state.sweeper,
		    memory_order_acquire) == 0)
			return;
		atomic_store(&t->busy, false);
		(void)sched_yield();
	}
}

static inline __attribute__((always_inline)) void
release(struct hg_thread *t, struct hg_entry *e)
{
	const uint64_t block = atomic_load_explicit(&e->block,
	    memory_order_relaxed);
	void *raw = raw_of(e, block);

	if ((e->flags & HG_WANTED) != 0)
		hg_watch_end(e);
	begin_busy(t);
	atomic_store_explicit(&e->state, HG_NONE, memory_order_relaxed);
	atomic_store_explicit(&e->block, 0, memory_order_relaxed);
	hg_block_put(block - HG_HEAD, 0);
	hg_ledger_give(t, hg_ledger_number(e));
	hg_next.free(raw);
	atomic_store_explicit(&t->busy, false, memory_order_release);
}

/* Prefetch the blocks that leave the quarantine next.  They were freed long ago
   and are in no near cache.  First an entry is fetched, and some blocks later
   what it points to.  Beyond the last one the ring also contains numbers of
   entries. */
static void
fetch(const struct hg_thread *t)
{
	const struct hg_entry *e = &hg_ledger.all[t->ring[(t->first + 3) %
	    HG_RING]];
	uint64_t block;

	hg_ledger_fetch(t->ring[(t->first + 6) % HG_RING]);
	block = atomic_load_explicit(&e->block, memory_order_relaxed);
	__builtin_prefetch((void *)(uintptr_t)(block - HG_HEAD), 1);
	__builtin_prefetch((void *)(uintptr_t)(block + hg_entry_size(e)), 1);
}

static void
pop(struct hg_thread *t)
{
	struct hg_entry *e = &hg_ledger.all[t->ring[t->first++ % HG_RING]];
	const uint64_t block = atomic_load_explicit(&e->block,
	    memory_order_relaxed);

	fetch(t);
	if (!hg_block_is_whole(e, block))
		hg_report_block(e, block, HG_AT_REUSE, NULL);
	t->held -= hg_entry_size(e);
	release(t, e);
}

/* When the quarantine is full, several blocks leave it at once.  Where sizes
   differ, a new block displaces sometimes one block and sometimes none, and no
   processor predicts which.  More than this would not fit in the allocator's
   cache of free blocks of each size (7 in glibc), so it would merge them and
   have to split them again. */
enum { AT_ONCE = 4 };

static void
keep(struct hg_thread *t, struct hg_entry *e)
{
	const size_t most = atomic_load_explicit(&hg_state.share,
	    memory_order_relaxed);

	if (hg_entry_size(e) > most) {
		release(t, e);
		return;
	}
	if (t->held + hg_entry_size(e) > most)
		for (int n = 0; t->first != t->last && (n < AT_ONCE ||
		    t->held + hg_entry_size(e) > most); n++)
			pop(t);
	else if (t->last - t->first == HG_RING)
		pop(t);
	t->ring[t->last++ % HG_RING] = hg_ledger_number(e);
	t->held += hg_entry_size(e);
}

bool
hg_is_unguarded(uint64_t block)
{
	return atomic_load(&hg_state.exhausted) || hg_early_has(block) ||
	    (atomic_load(&hg_state.shared) && block % 16 == 0 &&
	    hg_ledger_around(block) == NULL);
}

static void *
resize_unguarded(void *p, size_t size)
{
	hg_early_forget((uintptr_t)p);
	return hg_early_note(hg_next.realloc(p, size));
}

static void
free_unguarded(void *p)
{
	if (hg_arena_has(p) || !hg_is_unguarded((uintptr_t)p))
		return;
	hg_early_forget((uintptr_t)p);
	hg_next.free(p);
}

/* Find the entry of an address without a valid number in front of it: a write
   in front of the block has overwritten the number, or the address is no
   block. */
static struct hg_entry *
find_lost(uint64_t block, enum hg_family family, const struct hg_record *from)
{
	struct hg_entry *e = block % 16 == 0 ? hg_ledger_search(block) : NULL;

	if (e != NULL)
		return e;
	if (!hg_is_unguarded(block))
		hg_report_free(HG_INVALID_FREE, NULL, block, family, from);
	return NULL;
}

/* Of several frees of a block only one begins.  False: another one has
   begun. */
static bool
begin_free(struct hg_entry *e)
{
	uint8_t live = HG_LIVE;

	if (atomic_load_explicit(&hg_state.nthreads,
	    memory_order_relaxed) > 1)
		return atomic_compare_exchange_strong_explicit(&e->state,
		    &live, HG_FREEING, memory_order_acquire,
		    memory_order_relaxed);
	if (atomic_load_explicit(&e->state, memory_order_relaxed) != live)
		return false;
	atomic_store_explicit(&e->state, HG_FREEING, memory_order_relaxed);
	return true;
}

void
hg_free(void *p, enum hg_family family, const struct hg_record *from)
{
	const uint64_t block = (uintptr_t)p;
	struct hg_thread *t = hg_thread();
	const uint32_t size = block % 16 == 0 ? hg_block_fetch(block) : 0;
	struct hg_entry *e = hg_block_entry(p);
	const bool is_lost = e == NULL;

	if (is_lost && (hg_arena_has(p) ||
	    (e = find_lost(block, family, from)) == NULL)) {
		free_unguarded(p);
		return;
	}
	if (t == NULL)		/* the block leaks */
		return;
	if (!begin_free(e)) {
		hg_report_free(HG_DOUBLE_FREE, e, block, family, from);
		return;
	}
	if (e->family != family)
		hg_report_free(HG_MISMATCH, e, block, family, from);
	if (is_lost || size != (uint32_t)hg_entry_size(e) ||
	    !hg_block_has_canaries(block, hg_entry_size(e)))
		hg_report_block(e, block, HG_AT_FREE, from);
	if (hg_state.quarantine == 0) {	/* nobody reads who freed it */
		release(t, e);
		return;
	}
	e->free = (uint16_t)hg_callers_of(t, from, 0);
	if ((e->flags & HG_WANTED) != 0)
		hg_watch_end(e);
	hg_block_fill(e, block);
	atomic_store_explicit(&e->state, HG_FREED, memory_order_release);
	if ((e->flags & HG_WANTED) != 0)
		hg_watch_freed(e, block);
	keep(t, e);
}

/* --- sizes --- */

size_t
hg_size(void *p)
{
	const struct hg_entry *e = hg_block_entry(p);

	return e == NULL ? 0 : hg_entry_size(e);
}

/* Resize a block in place, if the allocator can. */
static void *
resize(struct hg_entry *e, uint64_t block, size_t size,
    const struct hg_record *from)
{
	const size_t room = hg_block_room(size, HG_HEAD);
	const enum hg_family family = e->family;
	struct hg_thread *t = hg_thread();
	char *raw;

	if (room == 0 || t == NULL)
		return refuse();
	if ((e->flags & HG_WANTED) != 0)
		hg_watch_end(e);
	begin_busy(t);
	atomic_store(&e->state, HG_FREEING);
	if ((raw = hg_next.realloc(raw_of(e, block), room)) != NULL) {
		atomic_store(&e->block, 0);
		hg_ledger_give(t, hg_ledger_number(e));
	} else {
		atomic_store(&e->state, HG_LIVE);
	}
	atomic_store(&t->busy, false);
	return raw == NULL ? NULL : adopt(raw, size, HG_HEAD, family, from,
	    false);
}

static void *
move(struct hg_entry *e, void *p, size_t size, const struct hg_record *from)
{
	void *to = hg_alloc(size, 0, HG_MALLOC, from);

	if (to == NULL)
		return NULL;
	memcpy(to, p, size < hg_entry_size(e) ? size : hg_entry_size(e));
	hg_free(p, HG_MALLOC, from);
	return to;
}

void *
hg_realloc(void *p, size_t size, const struct hg_record *from)
{
	struct hg_entry *e = hg_block_entry(p);

	if (e == NULL && (e = find_lost((uintptr_t)p, HG_MALLOC,
	    from)) == NULL)
		return hg_is_unguarded((uintptr_t)p) ?
		    resize_unguarded(p, size) : hg_alloc(size, 0, HG_MALLOC,
		    from);
	if (atomic_load(&e->state) != HG_LIVE) {
		hg_report_free(HG_DOUBLE_FREE, e, (uintptr_t)p, HG_MALLOC,
		    from);
		return hg_alloc(size, 0, HG_MALLOC, from);
	}
	if (!hg_block_is_whole(e, (uintptr_t)p))
		hg_report_block(e, (uintptr_t)p, HG_AT_REALLOC, from);
	return (hg_state.quarantine != 0 && hg_entry_size(e) < MOVE_BELOW) ||
	    e->family != HG_MALLOC || e->pad != 4 ?
	    move(e, p, size, from) : resize(e, (uintptr_t)p, size, from);
}
