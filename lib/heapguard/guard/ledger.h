/*
 * ledger: every guarded block, outside of the heap.
 *
 * The number of a block's entry is stored in front of the block, and believed
 * only if the entry points back.  So an address that is no block is always
 * recognized, and a write in front of a block destroys nothing that is known
 * about it.
 */
#ifndef HG_LEDGER_H
#define HG_LEDGER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "guard/state.h"

/* A block's life.  The state is changed last, because another thread's fork may
   copy the entry at any time. */
enum hg_block_state { HG_NONE, HG_LIVE, HG_FREEING, HG_FREED };

/* Flags of an entry. */
enum { HG_REPORTED = 1, HG_WANTED = 2 };

struct hg_entry {
	_Atomic uint64_t block;		/* its address; 0: no block */
	uint32_t size_low;		/* its size, as requested */
	uint32_t number;		/* as of struct hg_identity */
	uint16_t alloc, free;		/* callers */
	uint16_t size_high : 14;	/* the other bits of the size */
	uint16_t flags : 2;
	_Atomic uint8_t state;		/* enum hg_block_state */
	uint8_t family : 2;		/* enum hg_family */
	uint8_t pad : 6;		/* log2 of the bytes in front of it */
};
_Static_assert(sizeof(struct hg_entry) == 24, "what a block costs");

/* More than any block's size. */
#define HG_SIZE_MAX (UINT64_C(1) << 46)

static inline uint64_t
hg_entry_size(const struct hg_entry *e)
{
	return e->size_low | (uint64_t)e->size_high << 32;
}

static inline void
hg_entry_set_size(struct hg_entry *e, uint64_t size)
{
	e->size_low = (uint32_t)size;
	e->size_high = size >> 32 & 0x3fff;
}

/* Reserve the memory.  0 or -ENOMEM. */
int hg_ledger_begin(void);

/* For the inline functions below only. */
extern struct hg_ledger {
	struct hg_entry *all;	/* entry 0 is unused */
	uint32_t *in_thread;	/* of each entry, as of struct hg_identity;
				   written only after there was more than one
				   thread: until then it is the same as the
				   number, and takes no memory */
	_Atomic uint32_t used;
} hg_ledger __attribute__((visibility("hidden")));

/* The entry of a number, from 1; NULL: there is none. */
static inline struct hg_entry *
hg_ledger_at(uint32_t number)
{
	return number == 0 || number >= atomic_load_explicit(&hg_ledger.used,
	    memory_order_relaxed) ? NULL : &hg_ledger.all[number];
}

static inline uint32_t
hg_ledger_number(const struct hg_entry *entry)
{
	return (uint32_t)(entry - hg_ledger.all);
}

static inline uint32_t
hg_ledger_in_thread(const struct hg_entry *entry)
{
	const uint32_t n = hg_ledger.in_thread[hg_ledger_number(entry)];

	return n != 0 ? n : entry->number;
}

/* Prefetch an entry. */
static inline void
hg_ledger_fetch(uint32_t number)
{
	__builtin_prefetch(&hg_ledger.all[number], 1);
}

/* Get more free entries for a thread, and make room for one. */
void hg_ledger_refill(struct hg_thread *);
void hg_ledger_drain(struct hg_thread *);

enum { HG_AHEAD = 6 };		/* entries that are prefetched */

/* Take a free entry (0: there is none), and give one back. */
static inline uint32_t
hg_ledger_take(struct hg_thread *t)
{
	if (t->nspare == 0)
		hg_ledger_refill(t);
	if (t->nspare == 0)
		return 0;
	hg_ledger_fetch(t->spare[(t->nspare - HG_AHEAD) % HG_SPARE]);
	return t->spare[--t->nspare];
}

static inline void
hg_ledger_give(struct hg_thread *t, uint32_t number)
{
	if (t->nspare == HG_SPARE)
		hg_ledger_drain(t);
	t->spare[t->nspare++] = number;
}

/* Search all entries for that of a block whose number cannot be believed; and
   for those of the block that begins last before an address, and of the block
   that the address lies in.  NULL: none. */
struct hg_entry *hg_ledger_search(uint64_t block);
struct hg_entry *hg_ledger_before(uint64_t address);
struct hg_entry *hg_ledger_around(uint64_t address);

/* The number of entries that were ever used. */
uint32_t hg_ledger_used(void);

/* Call this in a forked child. */
void hg_ledger_forked(void);

#endif
