/*
 * line: the source position of an address, and which jumps of a function are
 * calls, by DWARF.
 *
 * Compilation units are found by the ranges that they give themselves, as not
 * every compiler writes .debug_aranges.  A unit that is asked about is turned
 * into a table of its functions once; a function's inlined calls are followed
 * down from it each time.  Of a unit that was split, ranges and lines are in
 * the file itself, and the functions in what was split off.
 */
#include "symbol/line.h"

#include <dwarf.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "debug/debug_info.h"
#include "debug/die.h"
#include "module/module_private.h"
#include "module/range.h"
#include "symbol/source_path.h"
#include "symbol/symbol.h"
#include "base/table.h"

/* A compilation unit. */
struct unit {
	Dwarf_Die die;		/* has its ranges and lines */
	struct ex_ranges code;	/* what: unused */
	Dwarf_Die tree;		/* has its functions; set when scanned */
	bool scanned;
	bool lacks;	/* its functions were split off, and are missing */
	struct ex_ranges functions;	/* what: offset of the function's DIE */
	struct ex_table sources;	/* paths, by address of libdw's name */
};

struct lines {
	struct ex_module *module;
	bool usable;		/* there is debug information */
	uint64_t bias;		/* DWARF address minus vaddr */
	struct ex_table units;	/* those known, by offset */
	bool complete;		/* all are known, and code has been filled */
	struct ex_ranges code;	/* of all units; what: the unit */
};

static void
unit_free(void *arg)
{
	struct unit *unit = arg;

	ex_ranges_free(&unit->code);
	ex_ranges_free(&unit->functions);
	ex_table_free(&unit->sources, free);
	free(unit);
}

static void
lines_release(void *arg)
{
	struct lines *lines = arg;

	ex_table_free(&lines->units, unit_free);
	ex_ranges_free(&lines->code);
}

/* Add the ranges of a unit or function.  Code discarded by the linker remains
   in DWARF at address 0 or close to it, so only ranges in executable segments
   count. */
static bool
add_ranges(const struct lines *lines, Dwarf_Die *die, uint64_t what,
    struct ex_ranges *to)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		uint64_t vaddr = start - lines->bias;
		const struct ex_segment *s =
		    ex_module_segment(lines->module, vaddr);

		if (s == NULL || (s->flags & PF_X) == 0 || vaddr == 0)
			continue;
		if (!ex_ranges_add(to, vaddr, end - lines->bias, what))
			return false;
	}
	return true;
}

/* The debug information of the module, or NULL. */
static struct lines *
lines_of(struct ex_module *m)
{
	bool is_new;
	struct lines *lines = ex_module_cache(m, EX_CACHE_LINES,
	    sizeof(*lines), lines_release, &is_new);

	if (lines == NULL)
		return NULL;
	if (is_new) {
		lines->module = m;
		lines->usable = ex_module_dwarf(m, &lines->bias) != NULL;
	}
	return lines->usable ? lines : NULL;
}

/* A unit at this offset.  NULL if there is no memory. */
static struct unit *
unit_new(struct lines *lines, uint64_t offset, const Dwarf_Die *die)
{
	struct unit *unit = calloc(1, sizeof(*unit));

	if (unit == NULL || !ex_table_reserve(&lines->units, 1)) {
		free(unit);
		return NULL;
	}
	unit->die = *die;
	(void)add_ranges(lines, &unit->die, 0, &unit->code);
	ex_ranges_sort(&unit->code);
	ex_table_put(&lines->units, offset, unit);
	return unit;
}

/* The unit that starts at this offset, or NULL. */
static struct unit *
unit_begins(struct lines *lines, uint64_t offset)
{
	struct unit *unit = ex_table_get(&lines->units, offset);
	Dwarf_Die die;

	return unit != NULL || !ex_unit_at(lines->module, offset, &die) ?
	    unit : unit_new(lines, offset, &die);
}

/* Find all units and their code. */
static void
learn_all(struct lines *lines)
{
	uint64_t offset = 0;
	struct unit *unit;

	while ((unit = unit_begins(lines, offset)) != NULL) {
		for (size_t i = 0; i < unit->code.n; i++) {
			const struct ex_range *code = &unit->code.at[i];

			(void)ex_ranges_add(&lines->code, code->start,
			    code->end, (uintptr_t)unit);
			ex_unit_code(lines->module, code->start, code->end,
			    offset);
		}
		offset = ex_unit_behind(lines->module, offset);
	}
	ex_ranges_sort(&lines->code);
	ex_unit_code_end(lines->module);
	lines->complete = true;
}

/* Whether functions may be found inside. */
static bool
holds_functions(Dwarf_Die *die)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_subprogram:
	case DW_TAG_lexical_block:
		return true;
	default:
		return false;
	}
}

/* Make the table of the unit's functions. */
static void
unit_scan(const struct lines *lines, struct unit *unit)
{
	struct ex_die_walk walk;
	Dwarf_Die *die;

	if (unit->scanned)
		return;
	unit->scanned = true;
	unit->tree = unit->die;
	ex_unit_use(lines->module, &unit->die);
	unit->lacks = !ex_die_whole_unit(lines->module, &unit->tree);
	for (die = ex_die_walk(&walk, &unit->tree); die != NULL;
	    die = ex_die_walk_on(&walk, holds_functions)) {
		if (dwarf_tag(die) == DW_TAG_subprogram && !add_ranges(lines,
		    die, dwarf_dieoffset(die), &unit->functions))
			break;
	}
	ex_ranges_sort(&unit->functions);
}

/* Whether it is a scope within a function. */
static bool
is_scope(Dwarf_Die *die)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_lexical_block:
	case DW_TAG_inlined_subroutine:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
		return true;
	default:
		return false;
	}
}

/* Replace *die by the scope directly inside it that contains the address. */
static bool
scope_inside(Dwarf_Die *die, Dwarf_Addr addr)
{
	Dwarf_Die child;

	if (dwarf_child(die, &child) != 0)
		return false;
	do {
		if (is_scope(&child) && dwarf_haspc(&child, addr) > 0) {
			*die = child;
			return true;
		}
	} while (ex_die_next(&child));
	return false;
}

/* The inlined calls at an address of a function, outermost first. */
static unsigned
inlined_at(const Dwarf_Die *function, Dwarf_Addr addr,
    Dwarf_Die out[EX_LINES_MAX - 1])
{
	Dwarf_Die scope = *function;
	unsigned n = 0;

	for (unsigned i = 0; i < 4 * EX_DIE_DEPTH && n < EX_LINES_MAX - 1 &&
	    scope_inside(&scope, addr); i++) {
		if (dwarf_tag(&scope) == DW_TAG_inlined_subroutine)
			out[n++] = scope;
	}
	return n;
}

static const char *
attr_string(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attr;

	return dwarf_formstring(dwarf_attr_integrate(die, name, &attr));
}

/* The linkage name of a function, or else its qualified name. */
static const char *
function_name(struct ex_module *m, Dwarf_Die *die)
{
	const char *name = attr_string(die, DW_AT_linkage_name);

	if (name == NULL)
		name = attr_string(die, DW_AT_MIPS_linkage_name);
	if (name == NULL && (name = attr_string(die, DW_AT_name)) != NULL)
		name = ex_die_qualified(m, die, name);
	return name;
}

/* The value of an attribute; 0 if missing or too large. */
static int
attr_number(Dwarf_Die *die, unsigned name)
{
	uint64_t value;

	return ex_die_number(die, name, &value) && value <= INT_MAX ?
	    (int)value : 0;
}

/* The path of a source file.  libdw's name is relative to the compilation
   directory, or absolute.  NULL if not known. */
static const char *
source_of(struct unit *unit, const char *name)
{
	const uint64_t key = (uintptr_t)name;
	Dwarf_Attribute directory;
	char *path = ex_table_get(&unit->sources, key);

	/* libdw's name for an unknown file */
	if (path != NULL || name == NULL || strcmp(name, "???") == 0)
		return path;
	path = ex_source_path(dwarf_formstring(dwarf_attr(&unit->die,
	    DW_AT_comp_dir, &directory)), name);
	if (path == NULL || !ex_table_reserve(&unit->sources, 1)) {
		free(path);
		return name;
	}
	ex_table_put(&unit->sources, key, path);
	return path;
}

/* The place of an inlined call.  A split unit may have a file table of its
   own. */
static void
call_place(struct unit *unit, Dwarf_Die *inlined, struct ex_line *out)
{
	Dwarf_Attribute attr;
	Dwarf_Files *files;
	Dwarf_Word file;
	size_t n;

	out->line = attr_number(inlined, DW_AT_call_line);
	out->column = attr_number(inlined, DW_AT_call_column);
	if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attr),
	    &file) == 0 && (dwarf_getsrcfiles(&unit->tree, &files, &n) == 0 ||
	    dwarf_getsrcfiles(&unit->die, &files, &n) == 0) && file < n)
		out->file = source_of(unit, dwarf_filesrc(files, file, NULL,
		    NULL));
}

static void
line_place(struct unit *unit, Dwarf_Addr addr, struct ex_line *out)
{
	Dwarf_Line *line = dwarf_getsrc_die(&unit->die, addr);

	if (line == NULL)
		return;
	out->file = source_of(unit, dwarf_linesrc(line, NULL, NULL));
	(void)dwarf_lineno(line, &out->line);
	(void)dwarf_linecol(line, &out->column);
}

/* Find the unit by the name of the function at vaddr.  NULL if not known;
   *none: no unit has it. */
static struct unit *
unit_named(struct lines *lines, uint64_t vaddr, bool *none)
{
	struct ex_symbol symbol;
	struct unit *unit;
	uint64_t offset;
	size_t at = 0;

	*none = false;
	if (!ex_symbol_at(lines->module, vaddr, &symbol))
		return NULL;
	while (ex_unit_function(lines->module, symbol.name, &at, &offset)) {
		unit = unit_begins(lines, offset);
		if (unit != NULL && ex_ranges_find(&unit->code, vaddr) != NULL)
			return unit;
	}
	*none = symbol.function && ex_unit_no_function(lines->module,
	    symbol.name);
	return NULL;
}

/* The unit whose code contains vaddr, or NULL. */
static struct unit *
unit_find(struct lines *lines, uint64_t vaddr)
{
	const struct ex_range *range;
	struct unit *unit;
	uint64_t offset;
	bool none;

	switch (ex_unit_of_code(lines->module, vaddr, &offset)) {
	case EX_CODE_UNIT:
		unit = unit_begins(lines, offset);
		if (unit != NULL && ex_ranges_find(&unit->code, vaddr) != NULL)
			return unit;
		break;
	case EX_CODE_NONE:
		return NULL;
	case EX_CODE_UNKNOWN:
		break;
	}
	if (!lines->complete) {
		unit = unit_named(lines, vaddr, &none);
		if (unit != NULL || none)
			return unit;
		learn_all(lines);
	}
	range = ex_ranges_find(&lines->code, vaddr);
	return range != NULL ? (struct unit *)(uintptr_t)range->what : NULL;
}

/* The same with its functions scanned. */
static struct unit *
unit_at(struct lines *lines, uint64_t vaddr)
{
	struct unit *unit = lines != NULL ? unit_find(lines, vaddr) : NULL;

	if (unit != NULL)
		unit_scan(lines, unit);
	return unit;
}

/* The function that contains vaddr, and its start.  Returns false if there is
   none. */
static bool
function_at(const struct unit *unit, uint64_t vaddr, Dwarf_Die *function,
    uint64_t *start)
{
	const struct ex_range *range = ex_ranges_find(&unit->functions, vaddr);

	if (range == NULL || dwarf_offdie(dwarf_cu_getdwarf(unit->tree.cu),
	    range->what, function) == NULL)
		return false;
	*start = range->start;
	return true;
}

unsigned
ex_lines_at(struct ex_module *m, uint64_t vaddr,
    struct ex_line out[EX_LINES_MAX])
{
	struct lines *lines = lines_of(m);
	struct unit *unit = unit_at(lines, vaddr);
	Dwarf_Die function, inlined[EX_LINES_MAX - 1];
	uint64_t start;
	unsigned n, i;

	if (unit == NULL)
		return 0;
	memset(&out[0], 0, sizeof(out[0]));
	out[0].partial = unit->lacks;
	line_place(unit, vaddr + lines->bias, &out[0]);
	if (!function_at(unit, vaddr, &function, &start))
		return 1;
	n = inlined_at(&function, vaddr + lines->bias, inlined);
	for (i = 0; i < n; i++) {
		Dwarf_Die *call = &inlined[n - 1 - i];

		out[i].function = function_name(m, call);
		out[0].partial |= out[i].function == NULL;
		memset(&out[i + 1], 0, sizeof(out[i + 1]));
		call_place(unit, call, &out[i + 1]);
	}
	out[n].function = function_name(m, &function);
	out[n].start = start;
	return n + 1;
}

bool
ex_line_function(struct ex_module *m, uint64_t vaddr, Dwarf_Die *function,
    uint64_t *start, uint64_t *bias)
{
	struct lines *lines = lines_of(m);
	const struct unit *unit = unit_at(lines, vaddr);

	if (unit == NULL || !function_at(unit, vaddr, function, start))
		return false;
	*bias = lines->bias;
	return true;
}

bool
ex_line_unit(struct ex_module *m, uint64_t vaddr, Dwarf_Die *unit,
    uint64_t *bias)
{
	struct lines *lines = lines_of(m);
	const struct unit *found = lines == NULL ? NULL :
	    unit_find(lines, vaddr);

	if (found == NULL)
		return false;
	*unit = found->die;
	*bias = lines->bias;
	return true;
}

/* --- jumps --- */

static bool
is_set(Dwarf_Attribute *flag)
{
	bool is = false;

	return dwarf_formflag(flag, &is) == 0 && is;
}

/* Whether all tail calls of a function are described. */
static bool
has_all_calls(Dwarf_Die *function)
{
	static const unsigned flags[] = {
		DW_AT_call_all_calls, DW_AT_call_all_tail_calls,
		DW_AT_GNU_all_call_sites, DW_AT_GNU_all_tail_call_sites,
	};
	Dwarf_Attribute attr;

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (is_set(dwarf_attr_integrate(function, flags[i], &attr)))
			return true;
	return false;
}

static bool
is_tail_call(Dwarf_Die *call)
{
	Dwarf_Attribute attr;

	return is_set(dwarf_attr(call, DW_AT_call_tail_call, &attr)) ||
	    is_set(dwarf_attr(call, DW_AT_GNU_tail_call, &attr));
}

/* Whether the address of a call is addr, or its return address is after the len
   bytes there. */
static bool
is_call_at(Dwarf_Die *call, Dwarf_Addr addr, unsigned len)
{
	static const unsigned places[] = {
		DW_AT_call_pc, DW_AT_call_return_pc, DW_AT_low_pc,
	};
	Dwarf_Attribute attr;
	Dwarf_Addr place;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (dwarf_formaddr(dwarf_attr(call, places[i], &attr),
		    &place) == 0 && (place == addr || place == addr + len))
			return true;
	}
	return false;
}

enum ex_jump
ex_line_jump(struct ex_module *m, uint64_t vaddr, unsigned len)
{
	struct lines *lines = lines_of(m);
	const struct unit *unit = unit_at(lines, vaddr);
	struct ex_die_walk walk;
	Dwarf_Die function, *die;
	uint64_t start;

	if (unit == NULL || !function_at(unit, vaddr, &function, &start) ||
	    !has_all_calls(&function))
		return EX_JUMP_UNKNOWN;
	for (die = ex_die_walk(&walk, &function); die != NULL;
	    die = ex_die_walk_on(&walk, is_scope)) {
		if ((dwarf_tag(die) == DW_TAG_call_site ||
		    dwarf_tag(die) == DW_TAG_GNU_call_site) &&
		    is_tail_call(die) &&
		    is_call_at(die, vaddr + lines->bias, len))
			return EX_JUMP_CALL;
	}
	return EX_JUMP_INSIDE;
}
