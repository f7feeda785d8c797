/* table: a hash table with open addressing, at most half full. */
#include "base/table.h"

#include <stdlib.h>
#include <string.h>

#define FIRST 64		/* slots of a new table */
#define ITEMS_MAX (SIZE_MAX / 64)

void *
ex_table_next(const struct ex_table *table, uint64_t key, size_t *i)
{
	const struct ex_table_slot *slot;

	if (table->size == 0)
		return NULL;
	do {
		slot = &table->slot[(ex_hash(0, key) + (*i)++) &
		    (table->size - 1)];
	} while (slot->item != NULL && slot->key != key);
	return slot->item;
}

void *
ex_table_get(const struct ex_table *table, uint64_t key)
{
	size_t i = 0;

	return ex_table_next(table, key, &i);
}

void
ex_table_put(struct ex_table *table, uint64_t key, void *item)
{
	uint64_t i = ex_hash(0, key);

	while (table->slot[i & (table->size - 1)].item != NULL)
		i++;
	table->slot[i & (table->size - 1)] = (struct ex_table_slot){key, item};
	table->n++;
}

bool
ex_table_reserve(struct ex_table *table, size_t more)
{
	struct ex_table bigger = {
		.size = table->size == 0 ? FIRST : table->size,
	};

	if (more > ITEMS_MAX - table->n)
		return false;
	while (bigger.size / 2 < table->n + more)
		bigger.size *= 2;
	if (bigger.size == table->size)
		return true;
	bigger.slot = calloc(bigger.size, sizeof(*bigger.slot));
	if (bigger.slot == NULL)
		return false;
	for (size_t i = 0; i < table->size; i++)
		if (table->slot[i].item != NULL)
			ex_table_put(&bigger, table->slot[i].key,
			    table->slot[i].item);
	free(table->slot);
	*table = bigger;
	return true;
}

void *
ex_table_each(const struct ex_table *table, size_t *i)
{
	while (*i < table->size && table->slot[*i].item == NULL)
		(*i)++;
	return *i < table->size ? table->slot[(*i)++].item : NULL;
}

void
ex_table_free(struct ex_table *table, void (*free_item)(void *))
{
	size_t i = 0;
	void *item;

	while (free_item != NULL && (item = ex_table_each(table, &i)) != NULL)
		free_item(item);
	free(table->slot);
	*table = (struct ex_table){0};
}

uint64_t
ex_hash_bytes(uint64_t hash, const void *bytes, size_t len)
{
	const unsigned char *at = bytes;
	uint64_t word;

	hash = ex_hash(hash, len);
	for (; len >= sizeof(word); at += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		hash = ex_hash(hash, word);
	}
	word = 0;
	while (len-- > 0)
		word = word << 8 | *at++;
	return ex_hash(hash, word);
}
