/*
 * debug_info: a module's debug information, unit by unit.
 *
 * It is in the module's file, or in a separate one.  libdwfl has both; but it
 * has them unpacked as a whole.  A file that is packed is opened here instead.
 */
#include "debug/debug_info.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "debug/aranges.h"
#include "debug/debug_info_private.h"
#include "debug/die.h"
#include "debug/index.h"
#include "debug/unpacked.h"
#include "module/debug_file.h"
#include "module/module_private.h"
#include "module/section.h"

#define IN_TYPES (UINT64_C(1) << 63)	/* marks an offset in .debug_types */
#define UNITS_MAX ((size_t)1 << 22)

#define KEEP_MIN (UINT64_C(1) << 20)	/* nothing is kept if .debug_info is
					   smaller than this, because it is
					   read quickly */

enum { KEY_MIN = 16 };		/* digits of a build id */

/* --- what is kept for the next time --- */

/* Whether the file has a name under which an index can be kept. */
static bool
has_key(const struct debug_info *d)
{
	return d->st.st_ino != 0 && strlen(d->module->build_id) >= KEY_MIN;
}

/* Take over what the previous run found out. */
static void
recall(struct debug_info *d, const struct stat *st)
{
	const struct ex_index_sought *sought;
	const struct ex_index_code *code;

	d->st = *st;
	if (!has_key(d) || !ex_index_read(&d->known, d->module->build_id, st))
		return;
	sought = d->known.sought.at;
	for (size_t i = 0; i < d->known.sought.n; i++)
		(void)ex_index_add(&d->found.sought, &sought[i],
		    sizeof(*sought));
	code = d->known.code.at;
	for (size_t i = 0; i < d->known.code.n; i++) {
		(void)ex_index_add(&d->found.code, &code[i], sizeof(*code));
		(void)ex_ranges_add(&d->code, code[i].start, code[i].end,
		    code[i].unit);
	}
	ex_ranges_sort(&d->code);
	d->found.all_code = d->known.all_code;
}

static void
keep_units(struct debug_info *d)
{
	for (size_t i = 0; i < d->n; i++) {
		struct ex_index_unit unit = {
			.at = d->at[i].offset,
			.end = i + 1 < d->n ? d->at[i + 1].offset : d->next,
		};
		const uint64_t len = unit.end - unit.at;

		memcpy(unit.head, (const uint8_t *)d->info->d_buf + unit.at,
		    len < sizeof(unit.head) ? len : sizeof(unit.head));
		if (!ex_index_add(&d->found.units, &unit, sizeof(unit)))
			return;
	}
}

void
ex_debug_info_note(struct debug_info *d)
{
	if (d->news || !has_key(d) || d->info == NULL ||
	    (d->unpacked != NULL ? d->info_size : d->info->d_size) < KEEP_MIN)
		return;
	d->news = true;
	ex_index_note();
}

static void
keep(struct debug_info *d)
{
	if (!d->news)
		return;
	if (d->unpacked != NULL) {
		keep_units(d);
		ex_unpacked_keep(d->unpacked, &d->found);
	}
	ex_index_write(&d->found, d->module->build_id, &d->st);
}

static void
debug_info_release(void *arg)
{
	struct debug_info *d = arg;

	keep(d);
	ex_index_free(&d->found);
	ex_ranges_free(&d->code);
	ex_aranges_free(&d->aranges);
	free(d->at);
	if (d->unpacked != NULL)
		(void)dwarf_end(d->dwarf);
	ex_unpacked_free(d->unpacked);
	(void)elf_end(d->elf);
	ex_index_free(&d->known);
}

/* --- opening --- */

Elf_Data *
ex_debug_info_section_header(Elf *elf, const char *wanted)
{
	GElf_Shdr sh;
	Elf_Scn *scn = ex_section_find(elf, wanted, &sh);

	return scn != NULL && (sh.sh_flags & SHF_COMPRESSED) == 0 ?
	    elf_getdata(scn, NULL) : NULL;
}

Elf_Data *
ex_debug_info_section(Dwarf *dwarf, const char *wanted)
{
	return ex_debug_info_section_header(dwarf_getelf(dwarf), wanted);
}

/* Open a compressed file.  Returns false if it is not one. */
static bool
open_packed(struct debug_info *d, Elf *elf)
{
	if ((d->unpacked = ex_unpacked_new(elf,
	    &d->known)) == NULL)
		return false;
	d->dwarf = dwarf_begin_elf(ex_unpacked_elf(d->unpacked), DWARF_C_READ,
	    NULL);
	d->info = d->dwarf != NULL ? ex_debug_info_section(d->dwarf,
	    ".debug_info") : NULL;
	if (d->info != NULL) {
		d->info_size = d->info->d_size;
		d->info->d_size = 0;
		return true;
	}
	(void)dwarf_end(d->dwarf);
	ex_unpacked_free(d->unpacked);
	d->unpacked = NULL;
	d->dwarf = NULL;
	return false;
}

/* The first loaded address, rounded down to a page. */
static uint64_t
first_vaddr(Elf *elf)
{
	GElf_Phdr ph;
	size_t n;

	if (elf_getphdrnum(elf, &n) != 0)
		return 0;
	for (size_t i = 0; i < n; i++) {
		if (gelf_getphdr(elf, (int)i, &ph) != NULL &&
		    ph.p_type == PT_LOAD)
			return ph.p_align == 0 ? ph.p_vaddr :
			    ph.p_vaddr & -ph.p_align;
	}
	return 0;
}

/* Open the separate file if it is compressed. */
static bool
open_separate(struct debug_info *d)
{
	struct ex_module *m = d->module;
	const struct ex_file_image *file = ex_debug_file(m);

	if (file == NULL)
		return false;
	recall(d, &file->st);
	d->elf = elf_memory((char *)file->at, file->size);
	if (d->elf != NULL && open_packed(d, d->elf)) {
		d->bias = first_vaddr(d->elf) - first_vaddr(m->elf);
		return true;
	}
	return false;
}

/* Whether the module's own file has any section that libdw uses. */
static bool
has_own(const struct ex_module *m)
{
	static const char *const any[] = {
		".debug_info", ".debug_line", ".debug_frame", ".zdebug_info",
		".zdebug_line", ".zdebug_frame",
	};
	GElf_Shdr sh;

	for (size_t i = 0; i < sizeof(any) / sizeof(any[0]); i++) {
		if (ex_section_find(m->elf, any[i], &sh) != NULL)
			return true;
	}
	return false;
}

static void
open_any(struct debug_info *d)
{
	struct ex_module *m = d->module;
	const bool own = has_own(m);
	Dwarf_Addr bias;

	if (own)
		recall(d, &m->image.st);
	if (own ? open_packed(d, m->elf) : open_separate(d))
		return;
	d->dwarf = dwfl_module_getdwarf(m->dwfl_module, &bias);
	if (d->dwarf == NULL)
		return;
	d->info = ex_debug_info_section(d->dwarf, ".debug_info");
	d->bias = m->bias - bias;
}

/* --- units --- */

/* Set how much of the unpacked section libdw may see; never a part of a
   unit. */
static void
show(struct debug_info *d, uint64_t size)
{
	if (d->unpacked != NULL)
		d->info->d_size = size;
}

bool
ex_debug_info_reads_in_part(const struct debug_info *d)
{
	return d->abbrevs_good && !d->abbrevs.references;
}

/* The next unit as known from an earlier run, if it can be read in part;
   otherwise NULL. */
static const struct ex_index_unit *
known_unit(const struct debug_info *d)
{
	const struct ex_index_unit *known = d->known.units.at;

	if (d->unpacked == NULL || !ex_debug_info_reads_in_part(d) ||
	    d->n >= d->known.units.n)
		return NULL;
	known += d->n;
	return known->at == d->next && known->end <= d->info_size ? known :
	    NULL;
}

/* Make the header of the next unit available. */
static void
show_header(struct debug_info *d, const struct ex_index_unit *known)
{
	size_t len = EX_INDEX_HEAD;
	const uint8_t *head;

	if (known != NULL) {
		ex_unpacked_head(d->unpacked, known->at, known->head,
		    known->end - known->at < sizeof(known->head) ?
		    known->end - known->at : sizeof(known->head));
		show(d, known->end);
	} else if (d->unpacked != NULL) {
		head = ex_unpacked_peek(d->unpacked, d->next, &len);
		ex_unpacked_head(d->unpacked, d->next, head, len);
		show(d, d->next + len);
	}
}

/* Whether a part of .debug_info is available, or can be made so. */
static bool
is_there(const struct debug_info *d, uint64_t from, uint64_t end)
{
	return d->unpacked == NULL ||
	    ex_unpacked_info(d->unpacked, from, end) >= end;
}

/* Whether the next unit is plausible: it has to be available as a whole if its
   parts are not enough. */
static bool
is_plausible(const struct debug_info *d, const struct ex_index_unit *known,
    uint64_t next)
{
	if (known != NULL)
		return next == known->end;
	return d->unpacked != NULL && ex_debug_info_reads_in_part(d) ?
	    next <= d->info_size : is_there(d, d->next, next);
}

bool
ex_debug_info_learn(struct debug_info *d)
{
	const struct ex_index_unit *known = known_unit(d);
	struct unit_start *unit;
	Dwarf_Off next = 0;
	bool is;

	if (!EX_ARRAY_ROOM(d, at, UNITS_MAX))
		return false;
	unit = &d->at[d->n];
	show_header(d, known);
	is = dwarf_next_unit(d->dwarf, d->next, &next, &unit->header, NULL,
	    &unit->abbrevs, NULL, NULL, NULL, NULL) == 0 && next > d->next &&
	    is_plausible(d, known, next);
	show(d, is ? next : d->next);
	if (!is)
		return false;
	unit->offset = d->next;
	d->ordered &= d->n == 0 || unit->abbrevs > unit[-1].abbrevs;
	d->next = next;
	d->n++;
	if (known == NULL && d->unpacked != NULL)
		ex_debug_info_note(d);
	return true;
}

const struct unit_start *
ex_debug_info_unit_upto(struct debug_info *d, uint64_t offset)
{
	size_t n;

	while (d->next <= offset && ex_debug_info_learn(d))
		;
	n = EX_ARRAY_UPTO(d->at, d->n, offset, offset);
	return n == 0 || d->next <= offset ? NULL : &d->at[n - 1];
}

/* Unpack what libdw would read anyway: units refer to any other units. */
static void
read_abbrevs(struct debug_info *d)
{
	const Elf_Data *data = ex_debug_info_section(d->dwarf, ".debug_abbrev");

	d->abbrevs_good = data != NULL && ex_abbrevs_read(&d->abbrevs,
	    data->d_buf, data->d_size);
	if (d->unpacked != NULL && !ex_debug_info_reads_in_part(d)) {
		while (ex_debug_info_learn(d))
			;
	}
}

struct debug_info *
ex_debug_info_of(struct ex_module *m)
{
	bool is_new;
	struct debug_info *d = ex_module_cache(m, EX_CACHE_DEBUG_INFO,
	    sizeof(*d), debug_info_release, &is_new);

	if (d == NULL)
		return NULL;
	if (is_new && ex_module_open(m)) {
		d->module = m;
		d->ordered = true;
		open_any(d);
		ex_index_close(&d->known);
		if (d->dwarf != NULL)
			read_abbrevs(d);
	}
	return d->dwarf != NULL ? d : NULL;
}

Dwarf *
ex_module_dwarf(struct ex_module *m, uint64_t *bias)
{
	struct debug_info *d = ex_debug_info_of(m);

	if (d == NULL)
		return NULL;
	ex_module_memory_handle(d->dwarf);
	*bias = d->bias;
	return d->dwarf;
}

bool
ex_unit_locations(struct ex_module *m)
{
	struct debug_info *d = ex_debug_info_of(m);

	return d != NULL && (d->unpacked == NULL ||
	    ex_unpacked_locations(d->unpacked));
}

Dwarf_CFI *
ex_module_debug_frame(struct ex_module *m, uint64_t *bias)
{
	struct debug_info *d = ex_debug_info_of(m);
	Dwarf_Addr cfi_bias;
	Dwarf_CFI *cfi;

	if (d == NULL)
		return NULL;
	if (d->unpacked != NULL) {
		*bias = d->bias;
		return dwarf_getcfi(d->dwarf);
	}
	cfi = dwfl_module_dwarf_cfi(m->dwfl_module, &cfi_bias);
	if (cfi != NULL)
		*bias = m->bias - cfi_bias;
	return cfi;
}

/* The unit that starts at an offset, or NULL. */
static const struct unit_start *
unit_start_at(struct debug_info *d, uint64_t offset)
{
	const struct unit_start *unit = d != NULL ?
	    ex_debug_info_unit_upto(d, offset) : NULL;

	return unit != NULL && unit->offset == offset ? unit : NULL;
}

uint64_t
ex_debug_info_unit_end(const struct debug_info *d,
    const struct unit_start *unit)
{
	return unit + 1 < d->at + d->n ? unit[1].offset : d->next;
}

bool
ex_unit_at(struct ex_module *m, uint64_t offset, Dwarf_Die *die)
{
	struct debug_info *d = ex_debug_info_of(m);
	const struct unit_start *unit = unit_start_at(d, offset);

	return unit != NULL && is_there(d, offset, ex_debug_info_unit_end(d,
	    unit)) &&
	    dwarf_offdie(d->dwarf, offset + unit->header, die) != NULL;
}

uint64_t
ex_unit_behind(struct ex_module *m, uint64_t offset)
{
	struct debug_info *d = ex_debug_info_of(m);
	const struct unit_start *unit = unit_start_at(d, offset);

	return unit != NULL ? ex_debug_info_unit_end(d, unit) : 0;
}

void
ex_unit_use(struct ex_module *m, Dwarf_Die *die)
{
	struct debug_info *d = ex_debug_info_of(m);
	const struct unit_start *unit;
	Dwarf_Die cu;

	if (d == NULL || d->unpacked == NULL ||
	    dwarf_cu_getdwarf(die->cu) != d->dwarf ||
	    dwarf_diecu(die, &cu, NULL, NULL) == NULL ||
	    (unit = ex_debug_info_unit_upto(d, dwarf_dieoffset(&cu))) == NULL)
		return;
	if (ex_unpacked_use(d->unpacked, unit->offset,
	    ex_debug_info_unit_end(d, unit)))
		ex_debug_info_note(d);
}

/* The same for .debug_types, which is never unpacked in part; *next is set to
   the start of the next unit. */
static bool
type_unit_at(const struct debug_info *d, uint64_t offset, uint64_t *next,
    Dwarf_Die *unit)
{
	size_t header;
	uint64_t id;
	Dwarf_Off type;

	return dwarf_next_unit(d->dwarf, offset, next, &header, NULL, NULL,
	    NULL, NULL, &id, &type) == 0 && *next > offset &&
	    dwarf_offdie_types(d->dwarf, offset + header, unit) != NULL;
}

bool
ex_unit_next(struct ex_module *m, uint64_t *at, Dwarf_Die *unit, bool *types)
{
	struct debug_info *d = ex_debug_info_of(m);
	uint64_t next = 0;
	uint8_t type = 0;

	if (d == NULL)
		return false;
	if ((*at & IN_TYPES) == 0 && ex_unit_at(m, *at, unit)) {
		*at = ex_unit_behind(m, *at);
	} else {
		if ((*at & IN_TYPES) == 0)
			*at = IN_TYPES;
		if (!type_unit_at(d, *at & ~IN_TYPES, &next, unit))
			return false;
		*at = next | IN_TYPES;
	}
	(void)dwarf_cu_info(unit->cu, NULL, &type, NULL, NULL, NULL, NULL,
	    NULL);
	*types = type == DW_UT_type || type == DW_UT_split_type;
	(void)ex_die_whole_unit(m, unit);
	return true;
}
