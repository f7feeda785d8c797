/*
 * ledger: every guarded block, outside of the heap.
 *
 * A block has its entry's number in front of it, which is believed only if the
 * entry points back: so what is no block is told from one exactly, and a write
 * in front of a block takes nothing of what is known of it.
 */
#ifndef HG_LEDGER_H
#define HG_LEDGER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "guard/state.h"

/* What becomes of a block.  The state is changed last: another thread's fork
   may copy it at any time. */
enum hg_block_state { HG_NONE, HG_LIVE, HG_FREEING, HG_FREED };

/* What else is known of it. */
enum { HG_TOLD = 1, HG_WANTED = 2 };

struct hg_entry {
	_Atomic uint64_t block;		/* its address; 0: no block */
	uint64_t size : 48;		/* asked for */
	uint64_t family : 2;		/* enum hg_family */
	uint64_t freed_by : 2;		/* enum hg_family */
	uint64_t pad : 6;		/* log2 of what is in front of it */
	uint64_t flags : 6;
	_Atomic uint32_t state;		/* enum hg_block_state */
	uint32_t number, in_thread;	/* as of struct hg_identity */
	uint16_t alloc, free;		/* callers */
};
_Static_assert(sizeof(struct hg_entry) == 32, "what a block costs");

/* Reserve it.  0 or -ENOMEM. */
int hg_ledger_begin(void);

/* An entry that is free; 0: none is.  And one that becomes so. */
uint32_t hg_ledger_take(struct hg_thread *);
void hg_ledger_give(struct hg_thread *, uint32_t);

/* Its own: read by what follows. */
extern struct hg_ledger {
	struct hg_entry *all;	/* the first is nobody's */
	_Atomic uint32_t used;
} hg_ledger __attribute__((visibility("hidden")));

/* By number, from 1; NULL: there is no such one. */
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

/* One will be read or written soon. */
static inline void
hg_ledger_fetch(uint32_t number)
{
	__builtin_prefetch(&hg_ledger.all[number], 1);
}

/* The entry of a block whose own number is not to be believed, by looking at
   all; and the one of the block that ends last before an address.  NULL:
   none. */
struct hg_entry *hg_ledger_search(uint64_t block);
struct hg_entry *hg_ledger_before(uint64_t address);

/* How many entries have been in use. */
uint32_t hg_ledger_used(void);

/* In the child of a fork. */
void hg_ledger_forked(void);

#endif
