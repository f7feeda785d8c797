/* unit_find: finds the unit that contains an address, or defines a name. */
#include "debug/debug_info_private.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/find.h"
#include "debug/aranges.h"
#include "debug/debug_names.h"
#include "debug/gdb_index.h"
#include "debug/index.h"
#include "debug/unpacked.h"
#include "module/module_private.h"

#define STEP (UINT64_C(1) << 20)	/* bytes searched at a time */
#define SOUGHT_MAX 256			/* searches that are kept */
enum {
	NAMED_MAX = 64,		/* units examined for one name */
	STRINGS_MAX = 8,	/* strings that end in the name and are
				   searched for */
};

/* --- finding them --- */

/* How far .debug_info is available from a place on, at least to `upto' if it is
   so long.  It is kept, as it may be searched again. */
static uint64_t
info_upto(struct debug_info *d, uint64_t from, uint64_t upto)
{
	return d->unpacked != NULL ?
	    ex_unpacked_info(d->unpacked, from, upto) : d->info->d_size;
}

/* The first unit at or after a place that contains these bytes, or NULL. */
static const struct unit_start *
seek(struct debug_info *d, uint64_t at, const void *bytes, size_t len)
{
	const uint8_t *hit = NULL, *info = d->info->d_buf;
	uint64_t have;

	while ((have = info_upto(d, at, at + STEP)) >= at + len &&
	    (hit = ex_find(info + at, have - at, bytes, len)) == NULL)
		at = have - len + 1;
	return hit != NULL ? ex_debug_info_unit_upto(d,
	    (uint64_t)(hit - info)) : NULL;
}

/* The same without keeping what is unpacked: writing it to new memory would
   take almost as long as unpacking. */
static const struct unit_start *
seek_passing(struct debug_info *d, uint64_t at, const void *bytes, size_t len)
{
	const uint8_t *have, *hit;
	size_t n = EX_UNPACKED_PEEK;

	d->passed = true;
	while ((have = ex_unpacked_peek(d->unpacked, at, &n)) != NULL &&
	    n >= len) {
		if ((hit = ex_find(have, n, bytes, len)) != NULL)
			return ex_debug_info_unit_upto(d,
			    at + (uint64_t)(hit - have));
		/* their headers are still available */
		(void)ex_debug_info_unit_upto(d, at + n - 1);
		at += n - len + 1;
		n = EX_UNPACKED_PEEK;
	}
	return NULL;
}

/* The result of an earlier search, or NULL. */
static const struct ex_index_sought *
sought_before(const struct debug_info *d, uint64_t at, const void *bytes,
    size_t len)
{
	const struct ex_index_sought *sought = d->found.sought.at;

	for (size_t i = 0; i < d->found.sought.n; i++, sought++) {
		if (sought->from == at && sought->len == len &&
		    memcmp(sought->bytes, bytes, len) == 0)
			return sought;
	}
	return NULL;
}

static void
remember_sought(struct debug_info *d, const struct ex_index_sought *sought)
{
	if (d->found.sought.n < SOUGHT_MAX &&
	    ex_index_add(&d->found.sought, sought, sizeof(*sought)))
		ex_debug_info_note(d);
}

/* Whether the first search of a file may remain the only one. */
static bool
may_pass(const struct debug_info *d)
{
	return d->unpacked != NULL && ex_debug_info_reads_in_part(d) &&
	    !d->passed;
}

static bool
search(struct debug_info *d, uint64_t *at, const void *bytes, size_t len,
    bool passing, uint64_t *unit)
{
	struct ex_index_sought sought = {.from = *at, .len = len};
	const struct ex_index_sought *before;
	const struct unit_start *found;

	if (len > sizeof(sought.bytes))
		return false;
	if ((before = sought_before(d, *at, bytes, len)) != NULL) {
		sought = *before;
	} else {
		memcpy(sought.bytes, bytes, len);
		found = passing ? seek_passing(d, *at, bytes, len) :
		    seek(d, *at, bytes, len);
		if (found != NULL) {
			sought.unit = found->offset;
			sought.end = ex_debug_info_unit_end(d, found);
		}
		remember_sought(d, &sought);
	}
	if (sought.end <= *at)
		return false;
	*unit = sought.unit;
	*at = sought.end;
	return true;
}

bool
ex_unit_search(struct ex_module *m, uint64_t *at, const void *bytes,
    size_t len, uint64_t *unit)
{
	struct debug_info *d = ex_debug_info_of(m);

	return d != NULL && d->info != NULL &&
	    search(d, at, bytes, len, may_pass(d), unit);
}

/* The next string of .debug_str that is the name or ends in it, since linkers
   merge such strings.  Returns false if there is none. */
static bool
next_string(const Elf_Data *strings, const char *name, uint64_t *at)
{
	const size_t len = strlen(name) + 1;
	const uint8_t *hit;

	if (strings == NULL || strings->d_buf == NULL ||
	    *at >= strings->d_size || (hit = ex_find((const uint8_t *)
	    strings->d_buf + *at, strings->d_size - *at, name, len)) == NULL)
		return false;
	*at = (uint64_t)(hit - (const uint8_t *)strings->d_buf);
	return true;
}

/* Units may refer to strings by index, or have types in other sections. */
static bool
has_other_names(const struct debug_info *d)
{
	return ex_debug_info_section(d->dwarf, ".debug_str_offsets") != NULL ||
	    ex_debug_info_section(d->dwarf, ".debug_types") != NULL ||
	    ex_debug_info_section(d->dwarf, ".debug_str") == NULL ||
	    ex_debug_info_section(d->dwarf, ".debug_addr") != NULL;
}

enum { IN_STRINGS, IN_PLACE, NAMES_END };

bool
ex_unit_named(struct ex_module *m, struct ex_unit_names *names, uint64_t *unit)
{
	struct debug_info *d = ex_debug_info_of(m);
	const size_t len = strlen(names->name) + 1;
	const size_t part = len < EX_INDEX_SOUGHT ? len : EX_INDEX_SOUGHT;
	const Elf_Data *strings;
	uint32_t place;

	if (d == NULL || d->info == NULL)
		return false;
	strings = ex_debug_info_section(d->dwarf, ".debug_str");
	while (names->phase == IN_STRINGS) {
		if (names->strings == STRINGS_MAX || !next_string(strings,
		    names->name, &names->string)) {
			names->phase = IN_PLACE;
			names->at = 0;
			break;
		}
		place = (uint32_t)names->string;
		if (search(d, &names->at, &place, sizeof(place), false, unit))
			return true;
		names->strings++;
		names->string++;
		names->at = 0;
	}
	if (names->phase == IN_PLACE && search(d, &names->at,
	    names->name + len - part, part, false, unit))
		return true;
	names->phase = NAMES_END;
	names->all = has_other_names(d);
	return false;
}

/* Whether no two units share a table of abbreviations.  Compressed units that
   are not known yet might: with whole-program optimization clang makes one
   table for all of them.  But each unit has a line table of its own. */
static bool
shares_no_table(struct debug_info *d)
{
	const Elf_Data *lines;

	if (!d->abbrevs_good)
		return false;
	if (d->unpacked == NULL || !ex_debug_info_reads_in_part(d)) {
		while (d->ordered && ex_debug_info_learn(d))
			;
	} else if (!d->counted) {
		d->counted = true;
		lines = ex_debug_info_section(d->dwarf, ".debug_line");
		d->as_many_lines = lines != NULL && lines->d_buf != NULL &&
		    ex_line_tables(lines->d_buf, lines->d_size) ==
		    d->abbrevs.units;
	}
	return d->ordered && (!d->counted || d->as_many_lines);
}

/* Whether .debug_aranges covers all units with code: there are as many as
   tables of abbreviations for such units, and no two units share a table. */
static bool
has_all_code(struct debug_info *d)
{
	return d->aranges.units != 0 &&
	    d->aranges.units == d->abbrevs.coded && shares_no_table(d);
}

/* .gdb_index is never compressed, nor is it in the image that libdw gets of a
   compressed file. */
static void
open_gdb_index(struct debug_info *d)
{
	Elf *elf = d->unpacked == NULL ? dwarf_getelf(d->dwarf) :
	    d->elf != NULL ? d->elf : d->module->elf;
	const Elf_Data *data;

	if ((data = ex_debug_info_section_header(elf, ".gdb_index")) != NULL &&
	    data->d_buf != NULL)
		(void)ex_gdb_index_open(&d->gdb, data->d_buf, data->d_size);
}

/* The index is complete if it has as many units as there are tables of
   abbreviations for units with code, provided that no two units share a
   table. */
static void
open_debug_names(struct debug_info *d)
{
	const Elf_Data *names = ex_debug_info_section(d->dwarf, ".debug_names");
	const Elf_Data *strings = ex_debug_info_section(d->dwarf, ".debug_str");
	size_t whole;

	if (names == NULL || strings == NULL || names->d_buf == NULL ||
	    strings->d_buf == NULL)
		return;
	d->names = (struct ex_debug_names){
		names->d_buf, names->d_size, strings->d_buf, strings->d_size,
	};
	whole = ex_debug_names_whole(&d->names);
	d->names_whole = whole != 0 && whole == d->abbrevs.coded;
}

static void
look_for_names(struct debug_info *d)
{
	if (d->looked)
		return;
	d->looked = true;
	open_gdb_index(d);
	open_debug_names(d);
}

/* The next unit that .debug_names has for a name. */
static bool
named_next(const struct debug_info *d, const char *name, unsigned tag,
    size_t *at, uint64_t *unit)
{
	uint64_t units[NAMED_MAX];
	const size_t n = ex_debug_names_find(&d->names, name, tag, units,
	    NAMED_MAX);

	if (*at >= n)
		return false;
	*unit = units[(*at)++];
	return true;
}

bool
ex_unit_variable(struct ex_module *m, const char *name, size_t *at,
    uint64_t *unit)
{
	struct debug_info *d = ex_debug_info_of(m);

	if (d == NULL)
		return false;
	look_for_names(d);
	return d->gdb.nnames > 0 ?
	    ex_gdb_index_variable(&d->gdb, name, at, unit) :
	    named_next(d, name, DW_TAG_variable, at, unit);
}

bool
ex_unit_function(struct ex_module *m, const char *name, size_t *at,
    uint64_t *unit)
{
	struct debug_info *d = ex_debug_info_of(m);
	char *plain;
	bool found;

	if (d == NULL)
		return false;
	look_for_names(d);
	if (d->names.size == 0 ||
	    (plain = strndup(name, strcspn(name, "."))) == NULL)
		return false;
	found = named_next(d, plain, DW_TAG_subprogram, at, unit);
	free(plain);
	return found;
}

bool
ex_unit_no_function(struct ex_module *m, const char *name)
{
	struct debug_info *d = ex_debug_info_of(m);
	uint64_t unit;
	size_t at = 0;

	return !ex_unit_function(m, name, &at, &unit) && d != NULL &&
	    d->names_whole && shares_no_table(d);
}

enum ex_code_unit
ex_unit_of_code(struct ex_module *m, uint64_t vaddr, uint64_t *unit)
{
	struct debug_info *d = ex_debug_info_of(m);
	const struct ex_range *range;
	const Elf_Data *data;

	if (d == NULL)
		return EX_CODE_NONE;
	look_for_names(d);
	if (!d->searched &&
	    (data = ex_debug_info_section(d->dwarf, ".debug_aranges")) != NULL)
		ex_aranges_read(&d->aranges, data->d_buf, data->d_size);
	if (!d->searched && d->gdb.ncode > 0) {
		(void)ex_gdb_index_code(&d->gdb, &d->aranges.code);
		ex_ranges_sort(&d->aranges.code);
	}
	d->searched = true;
	range = ex_ranges_find(&d->aranges.code, vaddr + d->bias);
	if (range != NULL) {
		*unit = range->what;
		return EX_CODE_UNIT;
	}
	if (has_all_code(d))
		return EX_CODE_NONE;
	if (!d->known.all_code)
		return EX_CODE_UNKNOWN;
	range = ex_ranges_find(&d->code, vaddr);
	if (range != NULL)
		*unit = range->what;
	return range != NULL ? EX_CODE_UNIT : EX_CODE_NONE;
}

void
ex_unit_code(struct ex_module *m, uint64_t start, uint64_t end, uint64_t unit)
{
	struct debug_info *d = ex_debug_info_of(m);
	const struct ex_index_code code = {start, end, unit};

	if (d != NULL && !d->found.all_code)
		(void)ex_index_add(&d->found.code, &code, sizeof(code));
}

void
ex_unit_code_end(struct ex_module *m)
{
	struct debug_info *d = ex_debug_info_of(m);

	if (d == NULL || d->found.all_code)
		return;
	d->found.all_code = true;
	ex_debug_info_note(d);
}
