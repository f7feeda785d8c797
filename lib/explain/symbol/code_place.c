/* code_place: lines and functions' beginnings as addresses, by DWARF. */
#include "symbol/code_place.h"

#include <dwarf.h>
#include <string.h>

#include "debug/debug_info.h"
#include "debug/die.h"
#include "symbol/line.h"
#include "module/module_private.h"

enum { PROLOGUE_MAX = 1024 };	/* bytes of code */

/* --- functions --- */

/* Whether the frame base is the CFA, which is valid from the first instruction
   on; otherwise it is a register that has to be set first. */
static bool
has_cfa_base(Dwarf_Die *frame)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;

	return dwarf_getlocation(dwarf_attr_integrate(frame, DW_AT_frame_base,
	    &attr), &ops, &n) == 0 && n == 1 &&
	    ops[0].atom == DW_OP_call_frame_cfa;
}

bool
ex_code_is_put(Dwarf_Die *frame, const Dwarf_Op *ops, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (ops[i].atom == DW_OP_fbreg &&
		    ((int64_t)ops[i].number < 0 || !has_cfa_base(frame)))
			return true;
	return false;
}

/* Whether an argument has one location for the whole function, which the
   prologue has to fill first. */
static bool
puts_arguments(Dwarf_Die *function)
{
	Dwarf_Die child;
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;

	if (dwarf_child(function, &child) != 0)
		return false;
	do {
		if (dwarf_tag(&child) == DW_TAG_formal_parameter &&
		    dwarf_getlocation(dwarf_attr(&child, DW_AT_location,
		    &attr), &ops, &n) == 0 && ex_code_is_put(function, ops, n))
			return true;
	} while (ex_die_next(&child));
	return false;
}

/* Whether a row marks the end of the code. */
static bool
is_end(Dwarf_Line *row)
{
	bool end = false;

	(void)dwarf_lineendsequence(row, &end);
	return end;
}

/* The first row at an address, or n if there is none. */
static size_t
row_at(Dwarf_Lines *lines, size_t n, Dwarf_Addr addr)
{
	Dwarf_Addr at;
	size_t i;

	for (i = 0; i < n; i++) {
		Dwarf_Line *row = dwarf_onesrcline(lines, i);

		/* an end row may belong to preceding code in another section */
		if (dwarf_lineaddr(row, &at) == 0 && at == addr && !is_end(row))
			break;
	}
	return i;
}

/* The address after the prologue, as marked by the compiler, or else where the
   second line begins. */
static Dwarf_Addr
behind_prologue(Dwarf_Lines *lines, size_t n, size_t first, Dwarf_Addr start)
{
	Dwarf_Addr second = start, at;

	for (size_t i = first; i < n; i++) {
		Dwarf_Line *row = dwarf_onesrcline(lines, i);
		bool marked = false, begins = false;

		(void)dwarf_lineprologueend(row, &marked);
		(void)dwarf_linebeginstatement(row, &begins);
		if (is_end(row) || dwarf_lineaddr(row, &at) != 0 ||
		    at - start > PROLOGUE_MAX)
			break;
		if (marked)
			return at;
		if (second == start && at > start && begins)
			second = at;
	}
	return second;
}

uint64_t
ex_code_entry(struct ex_module *m, uint64_t start)
{
	Dwarf_Die function, unit;
	Dwarf_Lines *lines;
	Dwarf_Addr entry;
	uint64_t begin, bias;
	size_t n, first;

	if (!ex_line_function(m, start, &function, &begin, &bias) ||
	    begin != start || !puts_arguments(&function) ||
	    !ex_line_unit(m, start, &unit, &bias) ||
	    dwarf_getsrclines(&unit, &lines, &n) != 0)
		return start;
	first = row_at(lines, n, start + bias);
	entry = behind_prologue(lines, n, first, start + bias) - bias;
	/* it must be in the same function */
	return ex_line_function(m, entry, &function, &begin, &bias) &&
	    begin == start ? entry : start;
}

/* --- lines --- */

/* Whether the path ends in this one. */
static bool
is_called(const char *path, const char *file)
{
	const size_t len = path == NULL ? 0 : strlen(path);
	const size_t own = strlen(file);

	return path != NULL && len >= own &&
	    strcmp(path + len - own, file) == 0 &&
	    (len == own || *file == '/' || path[len - own - 1] == '/');
}

struct line_search {
	struct ex_module *module;
	const char *file;
	int line;
	void (*fn)(void *arg, uint64_t vaddr);
	void *arg;
	int *near;
	uint64_t bias;
	bool found;		/* the file was found */
};

/* Code discarded by the linker is at address 0 or close to it. */
static bool
is_code(const struct line_search *s, uint64_t vaddr)
{
	const struct ex_segment *segment = ex_module_segment(s->module, vaddr);

	return segment != NULL && (segment->flags & PF_X) != 0 && vaddr != 0;
}

static void
note_near(const struct line_search *s, int line)
{
	if (line > s->line && (*s->near == 0 || line < *s->near))
		*s->near = line;
}

/* Collect the rows of the file, each with the line before it. */
static void
search_rows(struct line_search *s, Dwarf_Lines *lines, size_t n)
{
	const char *before = NULL, *src;
	Dwarf_Addr addr;
	int last = 0, line;

	for (size_t i = 0; i < n; i++) {
		Dwarf_Line *row = dwarf_onesrcline(lines, i);
		bool begins = false;

		(void)dwarf_linebeginstatement(row, &begins);
		src = dwarf_linesrc(row, NULL, NULL);
		if (is_end(row) || src == NULL ||
		    dwarf_lineno(row, &line) != 0 ||
		    dwarf_lineaddr(row, &addr) != 0) {
			last = 0;
			continue;
		}
		if (begins && is_called(src, s->file) &&
		    is_code(s, addr - s->bias)) {
			s->found = true;
			if (line == s->line && (last != line || src != before))
				s->fn(s->arg, addr - s->bias);
			else if (line != s->line)
				note_near(s, line);
		}
		last = line;
		before = src;
	}
}

/* Whether a unit has the file; own: as its main one. */
static bool
has_file(Dwarf_Die *unit, const char *file, bool own)
{
	Dwarf_Files *files;
	size_t n;

	if (own)
		return is_called(dwarf_diename(unit), file);
	if (dwarf_getsrcfiles(unit, &files, &n) != 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (is_called(dwarf_filesrc(files, i, NULL, NULL), file))
			return true;
	return false;
}

static void
search_units(struct line_search *s, bool own)
{
	Dwarf_Die unit;
	Dwarf_Lines *lines;
	size_t n;

	for (uint64_t at = 0; ex_unit_at(s->module, at, &unit);
	    at = ex_unit_behind(s->module, at))
		if (has_file(&unit, s->file, own) &&
		    dwarf_getsrclines(&unit, &lines, &n) == 0)
			search_rows(s, lines, n);
}

bool
ex_code_lines(struct ex_module *m, const char *file, int line,
    void (*fn)(void *arg, uint64_t vaddr), void *arg, int *near)
{
	struct line_search s = {
		.module = m, .file = file, .line = line, .fn = fn, .arg = arg,
		.near = near,
	};

	if (ex_module_dwarf(m, &s.bias) == NULL)
		return false;
	search_units(&s, true);
	/* the code of a header may be in any unit */
	if (!s.found)
		search_units(&s, false);
	return s.found;
}
