/*
 * block: a guarded block, and whether it is whole.
 *
 *	... [number 4][check 4][front canary 8][size bytes][tail canary 8-23]
 *	                                       ^ what the program gets
 *
 * A freed block is filled, up to HG_FILL bytes.  Canary and fill are one byte
 * repeated, which differs from block to block and is neither 0 nor text.
 */
#ifndef HG_BLOCK_H
#define HG_BLOCK_H

#include <stdbool.h>

#include "guard/ledger.h"

enum { HG_HEAD = 16, HG_FILL = 64 };

/* What to ask the allocator for, of a block with so much in front; 0: it is too
   large. */
size_t hg_block_room(size_t size, size_t pad);

/* Write number and canaries. */
void hg_block_seal(uint64_t block, size_t size, uint32_t number);

/* Fill one that is freed. */
void hg_block_fill(const struct hg_entry *, uint64_t block);

/* The entry of what the program says is a block; NULL: it is none, or its
   number was overwritten. */
static inline struct hg_entry *
hg_block_entry(const void *p)
{
	const uint64_t block = (uintptr_t)p;
	struct hg_entry *e;

	if (block % 16 != 0)
		return NULL;
	e = hg_ledger_at(*(const uint32_t *)(uintptr_t)(block - HG_HEAD));
	return e != NULL && atomic_load_explicit(&e->block,
	    memory_order_relaxed) == block ? e : NULL;
}

/* Whether canaries, and the fill of a freed one, are as they were written. */
bool hg_block_is_whole(const struct hg_entry *, uint64_t block);

/* What is not: from which byte on, from the block's start, and how many; copied
   up to most.  False: nothing. */
struct hg_damage {
	int64_t offset;
	uint64_t len;
	enum hg_kind kind;
};
bool hg_block_damage(const struct hg_entry *, uint64_t block,
    struct hg_damage *);

#endif
