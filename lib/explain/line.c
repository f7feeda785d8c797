/*
 * line: where in the source an address lies, by DWARF.
 *
 * Compilation units are found by the ranges that they give themselves, as not
 * every compiler writes .debug_aranges.  A unit that is asked about is turned
 * into a table of its functions once; a function's inlined calls are followed
 * down from it each time.  Nothing in the file is trusted: trees are walked
 * without recursion, to a bounded depth, and only ever forward.
 */
#include "line.h"

#include <dwarf.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "module_private.h"
#include "range.h"

#define DEPTH_MAX 64	/* of scopes in each other */

/* A compilation unit. */
struct unit {
	Dwarf_Die die;
	bool scanned;
	struct ex_ranges functions;	/* what: the function's DIE offset */
};

struct ex_lines {
	Dwarf *dwarf;		/* NULL: no debug information */
	uint64_t bias;		/* DWARF's address less vaddr */
	struct unit *unit;
	size_t nunits, cap;
	struct ex_ranges code;	/* of the units; what: index in unit */
};

void
ex_lines_free(struct ex_lines *lines)
{
	if (lines == NULL)
		return;
	for (size_t i = 0; i < lines->nunits; i++)
		ex_ranges_free(&lines->unit[i].functions);
	ex_ranges_free(&lines->code);
	free(lines->unit);
	free(lines);
}

/* Add the ranges of a unit or function.  Code that the linker threw away
   remains in DWARF, at address 0 or thereabouts: only what lies in an
   executable segment counts. */
static bool
add_ranges(struct ex_module *m, Dwarf_Die *die, uint64_t what,
    struct ex_ranges *to)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		uint64_t vaddr = start - m->lines->bias;
		const struct ex_segment *s = ex_module_segment(m, vaddr);

		if (s == NULL || (s->flags & PF_X) == 0 || vaddr == 0)
			continue;
		if (!ex_ranges_add(to, vaddr, end - m->lines->bias, what))
			return false;
	}
	return true;
}

static bool
add_unit(struct ex_module *m, const Dwarf_Die *die)
{
	struct ex_lines *lines = m->lines;

	if (lines->nunits == lines->cap) {
		size_t cap = lines->cap * 2 + 16;
		struct unit *unit = realloc(lines->unit, cap * sizeof(*unit));

		if (unit == NULL)
			return false;
		lines->unit = unit;
		lines->cap = cap;
	}
	lines->unit[lines->nunits] = (struct unit){.die = *die};
	return add_ranges(m, &lines->unit[lines->nunits].die, lines->nunits,
	    &lines->code);
}

/* The module's debug information; NULL: out of memory. */
static struct ex_lines *
lines_of(struct ex_module *m)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;

	if (m->lines != NULL)
		return m->lines;
	if ((m->lines = calloc(1, sizeof(*m->lines))) == NULL)
		return NULL;
	m->lines->dwarf = ex_module_dwarf(m, &m->lines->bias);
	if (m->lines->dwarf == NULL)
		return m->lines;
	while (dwarf_get_units(m->lines->dwarf, cu, &cu, NULL, NULL, &die,
	    NULL) == 0) {
		size_t before = m->lines->code.n;

		if (!add_unit(m, &die))
			break;
		if (m->lines->code.n > before)
			m->lines->nunits++;
	}
	ex_ranges_sort(&m->lines->code);
	return m->lines;
}

/* Step to the next DIE at the same level; false: there is none, or the file
   would lead us in circles. */
static bool
next_sibling(Dwarf_Die *die)
{
	Dwarf_Off before = dwarf_dieoffset(die);

	return dwarf_siblingof(die, die) == 0 && dwarf_dieoffset(die) > before;
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

/*
 * Step to the next DIE of a walk over everything: down, or on, or up and on.
 * path[*depth] is where it stands.  A sibling is taken only beyond all that was
 * seen, as damaged trees may lead back into themselves.
 */
static bool
walk_on(Dwarf_Die path[DEPTH_MAX], size_t *depth)
{
	Dwarf_Off seen = dwarf_dieoffset(&path[*depth]);

	if (*depth + 1 < DEPTH_MAX && holds_functions(&path[*depth]) &&
	    dwarf_child(&path[*depth], &path[*depth + 1]) == 0) {
		++*depth;
		return true;
	}
	while (!next_sibling(&path[*depth]) ||
	    dwarf_dieoffset(&path[*depth]) <= seen) {
		if ((*depth)-- == 0)
			return false;
	}
	return true;
}

/* Make the table of a unit's functions. */
static void
unit_scan(struct ex_module *m, struct unit *unit)
{
	Dwarf_Die path[DEPTH_MAX];
	size_t depth = 0;
	bool more;

	if (unit->scanned)
		return;
	unit->scanned = true;
	more = dwarf_child(&unit->die, &path[0]) == 0;
	while (more) {
		Dwarf_Die *die = &path[depth];

		more = (dwarf_tag(die) != DW_TAG_subprogram || add_ranges(m,
		    die, dwarf_dieoffset(die), &unit->functions)) &&
		    walk_on(path, &depth);
	}
	ex_ranges_sort(&unit->functions);
}

/* The scope directly inside of *die that holds an address, into *die. */
static bool
scope_inside(Dwarf_Die *die, Dwarf_Addr addr)
{
	Dwarf_Die child;

	if (dwarf_child(die, &child) != 0)
		return false;
	do {
		switch (dwarf_tag(&child)) {
		case DW_TAG_lexical_block:
		case DW_TAG_inlined_subroutine:
		case DW_TAG_try_block:
		case DW_TAG_catch_block:
		case DW_TAG_with_stmt:
			if (dwarf_haspc(&child, addr) > 0) {
				*die = child;
				return true;
			}
			break;
		default:
			break;
		}
	} while (next_sibling(&child));
	return false;
}

/* The inlined calls at an address of a function, the outermost first. */
static unsigned
inlined_at(const Dwarf_Die *function, Dwarf_Addr addr,
    Dwarf_Die out[EX_LINES_MAX - 1])
{
	Dwarf_Die scope = *function;
	unsigned n = 0;

	for (unsigned i = 0; i < 4 * DEPTH_MAX && n < EX_LINES_MAX - 1 &&
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

/* Where a function is declared, in its namespace or class: what an inlined or
   defined instance refers to. */
static Dwarf_Die
declaration(Dwarf_Die die)
{
	for (int i = 0; i < 8; i++) {
		Dwarf_Attribute attr;
		Dwarf_Die next;

		if (dwarf_formref_die(dwarf_attr(&die, DW_AT_abstract_origin,
		    &attr), &next) == NULL &&
		    dwarf_formref_die(dwarf_attr(&die, DW_AT_specification,
		    &attr), &next) == NULL)
			break;
		die = next;
	}
	return die;
}

/* The scopes that hold a DIE, the outermost first; the unit itself apart. */
static size_t
scopes_of(Dwarf_Die *die, Dwarf_Die path[DEPTH_MAX])
{
	Dwarf_Off target = dwarf_dieoffset(die);
	Dwarf_Die at;
	size_t n = 0;

	if (dwarf_diecu(die, &path[0], NULL, NULL) == NULL ||
	    dwarf_child(&path[0], &at) != 0)
		return 0;
	while (n < DEPTH_MAX && dwarf_dieoffset(&at) < target) {
		Dwarf_Die next = at;

		while (next_sibling(&next) && dwarf_dieoffset(&next) <= target)
			at = next;
		if (dwarf_dieoffset(&at) == target)
			break;
		path[n++] = at;
		if (dwarf_child(&path[n - 1], &at) != 0)
			return 0;
	}
	return dwarf_dieoffset(&at) == target ? n : 0;
}

/* What a scope adds to the names inside of it; NULL: nothing. */
static const char *
scope_name(Dwarf_Die *scope)
{
	const char *name = dwarf_diename(scope);

	switch (dwarf_tag(scope)) {
	case DW_TAG_namespace:
		return name != NULL ? name : "(anonymous namespace)";
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_subprogram:
		return name;
	default:
		return NULL;
	}
}

/* A plain name with the names of the scopes that it is declared in. */
static const char *
qualified_name(struct ex_module *m, Dwarf_Die *die, const char *name)
{
	Dwarf_Die path[DEPTH_MAX], at = declaration(*die);
	size_t n = scopes_of(&at, path), len = strlen(name);
	const char *scope;
	char *text, *end;

	for (size_t i = 0; i < n; i++) {
		if ((scope = scope_name(&path[i])) != NULL)
			len += strlen(scope) + 2;
	}
	if (len == strlen(name) || (text = ex_module_text(m, len)) == NULL)
		return name;
	end = text;
	for (size_t i = 0; i < n; i++) {
		if ((scope = scope_name(&path[i])) != NULL)
			end = stpcpy(stpcpy(end, scope), "::");
	}
	(void)stpcpy(end, name);
	return text;
}

/* A function's name: its linkage name, else its plain one, qualified. */
static const char *
function_name(struct ex_module *m, Dwarf_Die *die)
{
	const char *name = attr_string(die, DW_AT_linkage_name);

	if (name == NULL)
		name = attr_string(die, DW_AT_MIPS_linkage_name);
	if (name == NULL && (name = attr_string(die, DW_AT_name)) != NULL)
		name = qualified_name(m, die, name);
	return name;
}

/* A number of an attribute; 0: absent, or too large to be one. */
static int
attr_number(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	if (dwarf_formudata(dwarf_attr(die, name, &attr), &value) != 0 ||
	    value > INT_MAX)
		return 0;
	return (int)value;
}

static const char *
file_name(const char *name)
{
	/* libdw's name for no file */
	return name != NULL && strcmp(name, "???") != 0 ? name : NULL;
}

/* Where an inlined function was called. */
static void
call_place(Dwarf_Die *unit, Dwarf_Die *inlined, struct ex_line *out)
{
	Dwarf_Attribute attr;
	Dwarf_Files *files;
	Dwarf_Word file;
	size_t n;

	out->line = attr_number(inlined, DW_AT_call_line);
	out->column = attr_number(inlined, DW_AT_call_column);
	if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attr),
	    &file) == 0 && dwarf_getsrcfiles(unit, &files, &n) == 0 &&
	    file < n)
		out->file = file_name(dwarf_filesrc(files, file, NULL, NULL));
}

static void
line_place(Dwarf_Die *unit, Dwarf_Addr addr, struct ex_line *out)
{
	Dwarf_Line *line = dwarf_getsrc_die(unit, addr);

	if (line == NULL)
		return;
	out->file = file_name(dwarf_linesrc(line, NULL, NULL));
	(void)dwarf_lineno(line, &out->line);
	(void)dwarf_linecol(line, &out->column);
}

unsigned
ex_lines_at(struct ex_module *m, uint64_t vaddr,
    struct ex_line out[EX_LINES_MAX])
{
	struct ex_lines *lines = lines_of(m);
	Dwarf_Die function, inlined[EX_LINES_MAX - 1];
	const struct ex_range *range;
	struct unit *unit;
	unsigned n, i;

	if (lines == NULL ||
	    (range = ex_ranges_find(&lines->code, vaddr)) == NULL)
		return 0;
	unit = &lines->unit[range->what];
	unit_scan(m, unit);
	memset(&out[0], 0, sizeof(out[0]));
	line_place(&unit->die, vaddr + lines->bias, &out[0]);
	if ((range = ex_ranges_find(&unit->functions, vaddr)) == NULL ||
	    dwarf_offdie(lines->dwarf, range->what, &function) == NULL)
		return 1;
	n = inlined_at(&function, vaddr + lines->bias, inlined);
	for (i = 0; i < n; i++) {
		Dwarf_Die *call = &inlined[n - 1 - i];

		out[i].function = function_name(m, call);
		memset(&out[i + 1], 0, sizeof(out[i + 1]));
		call_place(&unit->die, call, &out[i + 1]);
	}
	out[n].function = function_name(m, &function);
	out[n].start = range->start;
	return n + 1;
}
