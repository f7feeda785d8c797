/*
 * gdb_index: finds units with the code at an address, or a variable of a given
 * name, by .gdb_index.
 *
 *	u32 version; u32 where each of these begins, in this order:
 *	units: u64 offset, u64 length; type units; code: u64 start, u64 end,
 *	u32 unit; names, hashed: u32 name, u32 units, both in the pool;
 *	from version 9 on: what the program begins with; the pool
 *
 * In the pool a list of units is u32 length, and u32 for each: the number of a
 * unit, and what the name stands for there.
 */
#include "debug/gdb_index.h"

#include <ctype.h>
#include <string.h>

#include "base/bytes.h"

enum {
	OLDEST = 5, NEWEST = 9,	/* versions with the same hash function */
	UNIT = 16, CODE = 20, NAME = 8,	/* sizes of entries */
	VARIABLE = 2,			/* kind of a symbol */
};

bool
ex_gdb_index_open(struct ex_gdb_index *index, const uint8_t *bytes,
    size_t size)
{
	enum { UNITS, TYPES, CODES, NAMES, POOL, PARTS };
	size_t at[PARTS + 1] = {0}, n = 0;
	uint32_t version;

	*index = (struct ex_gdb_index){0};
	if (size < 4 * (PARTS + 2) || (version = ex_u32(bytes)) < OLDEST ||
	    version > NEWEST)
		return false;
	for (unsigned i = 1; i <= PARTS + (version == NEWEST); i++) {
		const size_t part = ex_u32(bytes + (size_t)4 * i);

		if (part > size || (n > 0 && part < at[n - 1]))
			return false;
		at[n++] = part;
	}
	*index = (struct ex_gdb_index){
		.units = bytes + at[UNITS], .code = bytes + at[CODES],
		.names = bytes + at[NAMES], .pool = bytes + at[n - 1],
		.nunits = (at[TYPES] - at[UNITS]) / UNIT,
		.ncode = (at[NAMES] - at[CODES]) / CODE,
		.nnames = (at[POOL] - at[NAMES]) / NAME,
		.pool_size = size - at[n - 1],
	};
	if ((index->nnames & (index->nnames - 1)) != 0)
		index->nnames = 0;
	return true;
}

/* The offset of a unit, by its number. */
static bool
unit_begins(const struct ex_gdb_index *index, uint32_t number, uint64_t *unit)
{
	if (number >= index->nunits)
		return false;
	*unit = ex_u64(index->units + (size_t)number * UNIT);
	return true;
}

bool
ex_gdb_index_code(const struct ex_gdb_index *index, struct ex_ranges *code)
{
	const uint8_t *at = index->code;
	uint64_t unit;

	for (size_t i = 0; i < index->ncode; i++, at += CODE) {
		if (ex_u64(at) != 0 &&
		    unit_begins(index, ex_u32(at + 16), &unit) &&
		    !ex_ranges_add(code, ex_u64(at), ex_u64(at + 8), unit))
			return false;
	}
	return true;
}

static uint32_t
hash_of(const char *name)
{
	uint32_t hash = 0;

	for (; *name != '\0'; name++)
		hash = hash * 67 + (uint32_t)tolower((unsigned char)*name) -
		    113;
	return hash;
}

/* Whether the string at this place in the pool is the name. */
static bool
is_name(const struct ex_gdb_index *index, uint32_t at, const char *name)
{
	const size_t size = strlen(name) + 1;

	return at < index->pool_size && index->pool_size - at >= size &&
	    memcmp(index->pool + at, name, size) == 0;
}

/* The list of a name's units, or NULL. */
static const uint8_t *
find_name(const struct ex_gdb_index *index, const char *name, uint32_t *n)
{
	const uint32_t hash = hash_of(name);
	const size_t mask = index->nnames - 1, step = (hash * 17 & mask) | 1;
	size_t slot = hash & mask;

	for (size_t i = 0; i < index->nnames;
	    i++, slot = (slot + step) & mask) {
		const uint8_t *entry = index->names + slot * NAME;
		const uint32_t text = ex_u32(entry), units = ex_u32(entry + 4);

		if (text == 0 && units == 0)
			return NULL;
		if (!is_name(index, text, name) ||
		    units > index->pool_size || index->pool_size - units < 4)
			continue;
		*n = ex_u32(index->pool + units);
		return *n <= (index->pool_size - units - 4) / 4 ?
		    index->pool + units + 4 : NULL;
	}
	return NULL;
}

bool
ex_gdb_index_variable(const struct ex_gdb_index *index, const char *name,
    size_t *at, uint64_t *unit)
{
	uint32_t n = 0;
	const uint8_t *units = find_name(index, name, &n);

	while (units != NULL && *at < n) {
		const uint32_t entry = ex_u32(units + 4 * (*at)++);

		if ((entry >> 28 & 7) == VARIABLE &&
		    unit_begins(index, entry & 0xffffff, unit))
			return true;
	}
	return false;
}
