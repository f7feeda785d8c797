/*
 * debug_names: finds units with a variable or function of a given name by
 * .debug_names.
 *
 * A table of it; offsets are of 4 bytes, or of 8 if the length is:
 *
 *	length; u16 version = 5; u16; u32 numbers of: units, type units, type
 *	units of other files, buckets, names, bytes of abbreviations, bytes of
 *	what follows: who has written it
 *	units: offsets; type units: offsets; those of other files: u64
 *	buckets: u32, the first name of each, from 1 on; 0: none
 *	names: u32 their hashes, if there are buckets; offsets of their texts in
 *	.debug_str; offsets of their entries in the pool
 *	abbreviations: code, tag, pairs of what it is and its form, 0 0
 *	the pool: of a name all entries, 0; an entry is a code, and values
 */
#include "debug/debug_names.h"

#include <ctype.h>
#include <dwarf.h>
#include <stdbool.h>
#include <string.h>

#include "record/cursor.h"

enum { TABLE_VERSION = 5, IDX_COMPILE_UNIT = 1, IDX_TYPE_UNIT = 2 };

/* Most entries and abbreviations read for one name, whatever the tables
   contain. */
#define STEPS_MAX (1U << 20)

/* A search and its results. */
struct index_search {
	const struct ex_debug_names *names;
	const char *name;
	uint32_t hash;
	unsigned tag;
	uint64_t *unit;
	size_t n, max;
	unsigned steps;		/* steps left */
};

struct name_table {
	size_t offset;		/* size of an offset in bytes */
	uint32_t nunits, nbuckets, nnames;
	bool llvm;		/* written by LLVM */
	const uint8_t *units, *buckets, *hashes, *texts, *entries;
	struct cursor abbrevs, pool;
};

/* Element i of an array of offsets. */
static uint64_t
offset_at(const struct name_table *t, const uint8_t *array, uint32_t i)
{
	return t->offset == 8 ? ex_u64(array + (size_t)8 * i) :
	    ex_u32(array + (size_t)4 * i);
}

/* --- tables --- */

static struct cursor
take_part(struct cursor *c, uint64_t size)
{
	const uint8_t *p = take(c, size, 1);

	return (struct cursor){.p = p, .left = p != NULL ? (size_t)size : 0};
}

/* Take a table.  Returns false if the rest cannot be read. */
static bool
take_table(struct cursor *section, struct name_table *t)
{
	uint64_t length = take32(section);
	uint32_t ntypes, nforeign, abbrevs, writer;
	const uint8_t *text;
	struct cursor c;

	*t = (struct name_table){.offset = length == UINT32_MAX ? 8 : 4};
	if (t->offset == 8)
		length = take64(section);
	c = take_part(section, length);
	if (take16(&c) != TABLE_VERSION)
		return false;
	(void)take16(&c);
	t->nunits = take32(&c);
	ntypes = take32(&c);
	nforeign = take32(&c);
	t->nbuckets = take32(&c);
	t->nnames = take32(&c);
	abbrevs = take32(&c);
	writer = take32(&c);
	text = take(&c, (uint64_t)writer + (-writer & 3), 1);
	t->llvm = text != NULL && writer >= 4 && memcmp(text, "LLVM", 4) == 0;
	t->units = take(&c, t->nunits, t->offset);
	(void)take(&c, ntypes, t->offset);
	(void)take(&c, nforeign, sizeof(uint64_t));
	t->buckets = take(&c, t->nbuckets, sizeof(uint32_t));
	t->hashes = take(&c, t->nbuckets > 0 ? t->nnames : 0,
	    sizeof(uint32_t));
	t->texts = take(&c, t->nnames, t->offset);
	t->entries = take(&c, t->nnames, t->offset);
	t->abbrevs = take_part(&c, abbrevs);
	t->pool = c;
	return !c.bad;
}

/* --- entries --- */

/* Returns false when the limit is reached. */
static bool
step(struct index_search *s)
{
	return s->steps > 0 && s->steps-- > 0;
}

/* Skip the attributes of an abbreviation. */
static void
skip_abbrev(struct index_search *s, struct cursor *c)
{
	uint64_t is, form;

	do {
		is = take_leb128(c);
		form = take_leb128(c);
	} while ((is != 0 || form != 0) && step(s));
}

/* Move the cursor to the attributes of an abbreviation.  Returns false if there
   is none. */
static bool
find_abbrev(struct index_search *s, struct cursor *c, uint64_t code,
    uint64_t *tag)
{
	uint64_t is;

	while (step(s) && (is = take_leb128(c)) != 0) {
		*tag = take_leb128(c);
		if (is == code)
			return !c->bad;
		skip_abbrev(s, c);
	}
	return false;
}

/* Take the value of a form; an unknown form is an error. */
static uint64_t
take_value(struct cursor *c, uint64_t form, size_t offset)
{
	switch (form) {
	case DW_FORM_flag_present:
		return 1;
	case DW_FORM_data1:
	case DW_FORM_ref1:
	case DW_FORM_flag:
		return take8(c);
	case DW_FORM_data2:
	case DW_FORM_ref2:
		return take16(c);
	case DW_FORM_data4:
	case DW_FORM_ref4:
		return take32(c);
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
		return take64(c);
	case DW_FORM_udata:
	case DW_FORM_sdata:
	case DW_FORM_ref_udata:
		return take_leb128(c);
	case DW_FORM_strp:
	case DW_FORM_sec_offset:
		return take_offset(c, offset);
	default:
		cursor_fail(c);
		return 0;
	}
}

static void
add_unit(struct index_search *s, const struct name_table *t, uint64_t number)
{
	uint64_t unit;

	if (number >= t->nunits)
		return;
	unit = offset_at(t, t->units, (uint32_t)number);
	for (size_t i = 0; i < s->n; i++) {
		if (s->unit[i] == unit)
			return;
	}
	if (s->n < s->max)
		s->unit[s->n++] = unit;
}

/* Read an entry.  Returns false after the last one. */
static bool
read_entry(struct index_search *s, const struct name_table *t,
    struct cursor *pool)
{
	struct cursor abbrev = t->abbrevs;
	const uint64_t code = take_leb128(pool);
	uint64_t tag, is, form, number = 0;
	bool of_type = false;

	if (code == 0 || !find_abbrev(s, &abbrev, code, &tag))
		return false;
	while (step(s)) {
		uint64_t value;

		is = take_leb128(&abbrev);
		form = take_leb128(&abbrev);
		if (is == 0 && form == 0)
			break;
		value = take_value(pool, form, t->offset);
		if (is == IDX_COMPILE_UNIT)
			number = value;
		of_type |= is == IDX_TYPE_UNIT;
	}
	if (pool->bad || abbrev.bad)
		return false;
	if (tag == s->tag && !of_type)
		add_unit(s, t, number);
	return true;
}

/* --- names --- */

/* The programs that write these tables agree only on the hash of ASCII
   names. */
static uint32_t
hash_of(const char *name)
{
	uint32_t hash = 5381;

	for (; *name != '\0'; name++)
		hash = hash * 33 + (uint32_t)tolower((unsigned char)*name);
	return hash;
}

static bool
is_name(const struct index_search *s, const struct name_table *t, uint32_t i)
{
	const uint64_t at = offset_at(t, t->texts, i);
	const size_t size = strlen(s->name) + 1;

	return at < s->names->strings_size &&
	    s->names->strings_size - at >= size &&
	    memcmp(s->names->strings + at, s->name, size) == 0;
}

/* Read the entries of a name, if it is the one searched for. */
static void
read_name(struct index_search *s, const struct name_table *t, uint32_t i)
{
	struct cursor pool = t->pool;

	if (!is_name(s, t, i))
		return;
	(void)take(&pool, offset_at(t, t->entries, i), 1);
	while (s->n < s->max && read_entry(s, t, &pool))
		;
}

/* Search a table. */
static void
search_table(struct index_search *s, const struct name_table *t)
{
	uint32_t i, bucket;

	if (t->nnames == 0)
		return;
	if (t->nbuckets == 0) {
		for (i = 0; i < t->nnames; i++)
			read_name(s, t, i);
		return;
	}
	bucket = s->hash % t->nbuckets;
	i = ex_u32(t->buckets + (size_t)4 * bucket);
	for (; i > 0 && i <= t->nnames; i++) {
		const uint32_t hash = ex_u32(t->hashes + (size_t)4 * (i - 1));

		if (hash % t->nbuckets != bucket)
			break;
		if (hash == s->hash)
			read_name(s, t, i - 1);
	}
}

size_t
ex_debug_names_find(const struct ex_debug_names *names, const char *name,
    unsigned tag, uint64_t *unit, size_t max)
{
	struct cursor section = {.p = names->bytes, .left = names->size};
	struct index_search s = {
		.names = names, .name = name, .hash = hash_of(name),
		.tag = tag, .unit = unit, .max = max, .steps = STEPS_MAX,
	};
	struct name_table t;

	while (section.left > 0 && s.n < max && take_table(&section, &t))
		search_table(&s, &t);
	return s.n;
}

/* Whether a table has functions. */
static bool
has_functions(const struct name_table *t)
{
	struct index_search s = {.steps = STEPS_MAX};
	struct cursor c = t->abbrevs;

	while (step(&s) && take_leb128(&c) != 0) {
		if (take_leb128(&c) == DW_TAG_subprogram)
			return true;
		skip_abbrev(&s, &c);
	}
	return false;
}

size_t
ex_debug_names_whole(const struct ex_debug_names *names)
{
	struct cursor section = {.p = names->bytes, .left = names->size};
	struct name_table t;
	size_t n = 0;

	while (section.left > 0) {
		if (!take_table(&section, &t) || !t.llvm || t.nunits != 1)
			return 0;
		n += has_functions(&t);
	}
	return n;
}
