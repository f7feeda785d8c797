/*
 * table: hash tables, arrays that grow, sorting, and searching in sorted ones.
 */
#include "test.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/table.h"

#define MANY 1000

struct numbers {
	uint64_t *at;
	size_t n, cap;
};

TEST(finds_every_item)
{
	static char item[MANY];
	struct ex_table table = {0};
	size_t i = 0, seen = 0;

	assert_null(ex_table_get(&table, 0));
	assert_null(ex_table_each(&table, &i));
	/* keys that differ in high bits alone, 0 among them */
	for (uint64_t k = 0; k < MANY; k++) {
		assert_true(ex_table_reserve(&table, 1));
		ex_table_put(&table, k << 52 | k, &item[k]);
	}
	assert_int_equal(table.n, MANY);
	for (uint64_t k = 0; k < MANY; k++)
		assert_ptr_equal(ex_table_get(&table, k << 52 | k), &item[k]);
	assert_null(ex_table_get(&table, MANY));
	while (ex_table_each(&table, &i) != NULL)
		seen++;
	assert_int_equal(seen, MANY);
	ex_table_free(&table, NULL);
	assert_null(ex_table_get(&table, 0));
}

TEST(gives_all_items_of_a_key)
{
	char item[5];
	struct ex_table table = {0};
	size_t i = 0, n = 0;

	assert_true(ex_table_reserve(&table, sizeof(item)));
	for (size_t k = 0; k < sizeof(item); k++)
		ex_table_put(&table, k < 3 ? 7 : 8, &item[k]);
	for (char *p; (p = ex_table_next(&table, 7, &i)) != NULL; n++)
		assert_ptr_equal(p, &item[n]);
	assert_int_equal(n, 3);
	ex_table_free(&table, NULL);
}

TEST(frees_items_with_itself)
{
	struct ex_table table = {0};

	for (uint64_t k = 0; k < 100; k++) {
		assert_true(ex_table_reserve(&table, 1));
		ex_table_put(&table, k, malloc(16));
	}
	ex_table_free(&table, free);	/* a leak checker sees what is left */
	assert_int_equal(table.size, 0);
	assert_false(ex_table_reserve(&table, SIZE_MAX));
}

TEST(grows_to_its_limit)
{
	struct numbers a = {0};

	for (size_t i = 0; i < MANY; i++) {
		assert_true(EX_ARRAY_ROOM(&a, at, MANY));
		a.at[a.n++] = i;
	}
	assert_false(EX_ARRAY_ROOM(&a, at, MANY));
	for (size_t i = 0; i < MANY; i++)
		assert_int_equal(a.at[i], i);
	assert_true(ex_array_room(&a.at, a.n, 5 * MANY, &a.cap, sizeof(*a.at),
	    SIZE_MAX));
	assert_true(a.cap >= 6 * MANY);
	assert_false(ex_array_room(&a.at, a.n, 8 * MANY, &a.cap,
	    sizeof(*a.at), 8 * MANY));
	assert_false(ex_array_room(&a.at, a.n, SIZE_MAX, &a.cap,
	    sizeof(*a.at), 8 * MANY));
	assert_int_equal(a.at[MANY - 1], MANY - 1);
	free(a.at);
}

TEST(counts_what_is_at_most)
{
	static const struct {
		char other;
		uint64_t key;
	} a[] = {{0, 1}, {0, 3}, {0, 3}, {0, UINT64_MAX}};

	assert_int_equal(EX_ARRAY_UPTO(a, 0, key, 5), 0);
	assert_int_equal(EX_ARRAY_UPTO(a, 4, key, 0), 0);
	assert_int_equal(EX_ARRAY_UPTO(a, 4, key, 1), 1);
	assert_int_equal(EX_ARRAY_UPTO(a, 4, key, 3), 3);
	assert_int_equal(EX_ARRAY_UPTO(a, 4, key, UINT64_MAX - 1), 3);
	assert_int_equal(EX_ARRAY_UPTO(a, 4, key, UINT64_MAX), 4);
}

/* An element whose number is not at its start. */
struct numbered {
	uint16_t order;
	uint64_t number;
};

TEST(sorts_and_keeps_the_order_of_equals)
{
	static struct numbered at[MANY];
	uint64_t random = 1;

	assert_true(EX_ARRAY_SORT(at, 0, number));
	/* by which bits they differ, and how many are the same */
	for (unsigned shift = 0; shift < 64; shift += 3) {
		for (unsigned i = 0; i < MANY; i++) {
			random = random * UINT64_C(6364136223846793005) + 1;
			at[i] = (struct numbered){(uint16_t)i,
			    random >> 33 >> shift % 31 << shift};
		}
		assert_true(EX_ARRAY_SORT(at, MANY, number));
		for (unsigned i = 1; i < MANY; i++)
			assert_true(at[i - 1].number < at[i].number ||
			    (at[i - 1].number == at[i].number &&
			    at[i - 1].order < at[i].order));
	}
}

/* Each byte, how many there are, and what came before them counts. */
TEST(hashes_of_bytes)
{
	char bytes[20] = {0};
	const uint64_t hash = ex_hash_bytes(0, bytes, sizeof(bytes));

	assert_true(hash == ex_hash_bytes(0, bytes, sizeof(bytes)));
	assert_true(hash != ex_hash_bytes(1, bytes, sizeof(bytes)));
	for (size_t i = 0; i < sizeof(bytes); i++) {
		assert_true(hash != ex_hash_bytes(0, bytes, i));
		bytes[i] = 1;
		assert_true(hash != ex_hash_bytes(0, bytes, sizeof(bytes)));
		bytes[i] = 0;
	}
}

RUN_TESTS()
