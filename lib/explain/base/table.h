/*
 * table: hash tables of pointers, by 64-bit keys.
 *
 * A key is a number that the caller chooses, or the hash of something longer:
 * then several items may have the same key, and the caller compares them.
 */
#ifndef EX_TABLE_H
#define EX_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ex_table {		/* all zero: empty */
	struct ex_table_slot {
		uint64_t key;
		void *item;	/* NULL: free */
	} *slot;		/* open addressing */
	size_t n;		/* items */
	size_t size;		/* slots: 0, or a power of two */
};

/* The next item with this key; *i is 0 at first.  NULL: no more. */
void *ex_table_next(const struct ex_table *, uint64_t key, size_t *i);

/* The item with this key, NULL: none. */
void *ex_table_get(const struct ex_table *, uint64_t key);

/* Make room for more items, so that putting them cannot fail.  False: out of
   memory. */
bool ex_table_reserve(struct ex_table *, size_t more);

/* Add an item, not NULL, for which there is room. */
void ex_table_put(struct ex_table *, uint64_t key, void *item);

/* The next of all items; *i is 0 at first.  NULL: no more. */
void *ex_table_each(const struct ex_table *, size_t *i);

/* Empty the table; free_item, unless NULL, is called for each item. */
void ex_table_free(struct ex_table *, void (*free_item)(void *));

/* Extend a hash by one word. */
static inline uint64_t
ex_hash(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 32;
}

/* Extend a hash by bytes. */
uint64_t ex_hash_bytes(uint64_t hash, const void *bytes, size_t len);

#endif
