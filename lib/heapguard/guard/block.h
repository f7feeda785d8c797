/*
 * block: a guarded block, and whether it is intact.
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
#include <string.h>

#include "guard/ledger.h"

enum { HG_HEAD = 16, HG_FILL = 64 };

/* How many bytes more than a multiple of 16 the allocator's blocks have: 8 in
   glibc, and 0 in those whose blocks have nothing in between. */
extern size_t hg_block_odd __attribute__((visibility("hidden")));

/* Ask the allocator for that, before there is any block. */
void hg_block_begin(void);

/* The end of the tail, from the start of the block: as the allocator would
   round up a block with 8 bytes of tail. */
static inline size_t
hg_block_end(size_t size)
{
	return ((size + 23 - hg_block_odd) & ~(size_t)15) + hg_block_odd;
}

/* The size to ask the allocator for, with pad bytes in front of the block; 0:
   it is too large. */
static inline size_t
hg_block_room(size_t size, size_t pad)
{
	if (size >= HG_SIZE_MAX)
		return 0;
	return pad + hg_block_end(size);
}

/* The entry of what the program passes as a block; NULL: it is no block, or its
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

static inline uint64_t
hg_block_get(uint64_t at)
{
	uint64_t word;

	memcpy(&word, (void *)(uintptr_t)at, sizeof(word));
	return word;
}

static inline void
hg_block_put(uint64_t at, uint64_t word)
{
	memcpy((void *)(uintptr_t)at, &word, sizeof(word));
}

/* The canary: a block's byte, repeated. */
static inline uint64_t
hg_block_canary(uint64_t block)
{
	return (0x80 | (block * UINT64_C(0x9e3779b97f4a7c15)) >> 57) *
	    UINT64_C(0x0101010101010101);
}

/* A block's number and its check, which also covers the size. */
static inline uint64_t
hg_block_header(uint64_t block, size_t size, uint32_t number)
{
	const uint32_t check = (uint32_t)(block >> 4) ^ number ^
	    (uint32_t)size ^ UINT32_C(0xa5c3f00f);

	return number | (uint64_t)check << 32;
}

/*
 * The tail, in aligned words, because a processor stalls when one load reads
 * what several stores have written.  The first word may have the block's last
 * bytes in it, and they may be the same one.
 */
struct hg_tail {
	uint64_t first, middle, last;	/* their addresses */
	uint64_t mask;			/* of the first word: its canary
					   bytes */
};

static inline struct hg_tail
hg_block_tail(uint64_t block, size_t size)
{
	const uint64_t first = (block + size) & ~(uint64_t)7;
	const uint64_t last = block + hg_block_end(size) - 8;

	return (struct hg_tail){first, last - 8 > first ? last - 8 : last,
		last, UINT64_MAX << size % 8 * 8};
}

/* Write a block's number and canaries.  Where the block holds nothing yet, its
   last bytes may be overwritten: to read them would take long. */
static inline void
hg_block_seal(uint64_t block, size_t size, uint32_t number, bool fresh)
{
	const uint64_t word = hg_block_canary(block);
	const struct hg_tail t = hg_block_tail(block, size);

	hg_block_put(block - HG_HEAD, hg_block_header(block, size, number));
	hg_block_put(block - 8, word);
	hg_block_put(t.first, fresh ? word :
	    (hg_block_get(t.first) & ~t.mask) | (word & t.mask));
	hg_block_put(t.middle, word);
	hg_block_put(t.last, word);
}

/* Prefetch a block's end while its entry is read, by what is in front of the
   block, which may be overwritten.  Result: the lower half of the block's size,
   according to that. */
static inline __attribute__((always_inline)) uint32_t
hg_block_fetch(uint64_t block)
{
	const uint64_t header = hg_block_get(block - HG_HEAD) ^
	    hg_block_header(block, 0, 0);
	const uint32_t size = (uint32_t)(header ^ header >> 32);

	__builtin_prefetch((void *)(uintptr_t)(block + size), 1);
	return size;
}

/*
 * The fill of a freed block, in aligned pairs of words, of which a short
 * block's last ones are the same: no processor predicts how many there are.
 * They may reach into the tail's canary, which is the same byte.
 */
typedef uint64_t hg_pair __attribute__((vector_size(16), may_alias));

struct hg_fill {
	hg_pair *first, *second, *third, *last;
};

static inline struct hg_fill
hg_block_fill_of(uint64_t block, size_t size)
{
	const size_t end = (size - 1) & ~(size_t)15;
	const size_t last = end < HG_FILL - 16 ? end : HG_FILL - 16;
	const size_t second = last < 16 ? last : 16;
	const size_t third = last < 32 ? last : 32;

	return (struct hg_fill){
		(hg_pair *)(uintptr_t)block,
		(hg_pair *)(uintptr_t)(block + second),
		(hg_pair *)(uintptr_t)(block + third),
		(hg_pair *)(uintptr_t)(block + last),
	};
}

/* Fill a freed block. */
static inline void
hg_block_fill(const struct hg_entry *e, uint64_t block)
{
	const uint64_t word = hg_block_canary(block);
	const struct hg_fill f = hg_block_fill_of(block, hg_entry_size(e));

	if (hg_entry_size(e) != 0)
		*f.first = *f.second = *f.third = *f.last =
		    (hg_pair){word, word};
}

static inline bool
hg_block_is_filled(const struct hg_entry *e, uint64_t block)
{
	const uint64_t word = hg_block_canary(block);
	const struct hg_fill f = hg_block_fill_of(block, hg_entry_size(e));
	hg_pair other;

	if (hg_entry_size(e) == 0)
		return true;
	other = (*f.first ^ word) | (*f.second ^ word) | (*f.third ^ word) |
	    (*f.last ^ word);
	return (other[0] | other[1]) == 0;
}

/* Whether the canaries are intact; with the number in front of them; and, of a
   freed block, also the fill. */
static inline bool
hg_block_has_canaries(uint64_t block, size_t size)
{
	const uint64_t word = hg_block_canary(block);
	const struct hg_tail t = hg_block_tail(block, size);

	return ((hg_block_get(block - 8) ^ word) |
	    ((hg_block_get(t.first) ^ word) & t.mask) |
	    (hg_block_get(t.middle) ^ word) |
	    (hg_block_get(t.last) ^ word)) == 0;
}

static inline bool
hg_block_is_sealed(const struct hg_entry *e, uint64_t block)
{
	return hg_block_get(block - HG_HEAD) == hg_block_header(block,
	    hg_entry_size(e), hg_ledger_number(e)) &&
	    hg_block_has_canaries(block, hg_entry_size(e));
}

static inline bool
hg_block_is_whole(const struct hg_entry *e, uint64_t block)
{
	return hg_block_is_sealed(e, block) &&
	    (atomic_load(&e->state) != HG_FREED ||
	    hg_block_is_filled(e, block));
}

/* The damaged bytes: the offset of the first from the block's start, and how
   many.  False: none. */
struct hg_damage {
	int64_t offset;
	uint64_t len;
	enum hg_kind kind;
};
bool hg_block_damage(const struct hg_entry *, uint64_t block,
    struct hg_damage *);

#endif
