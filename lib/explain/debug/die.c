/* die: walks over DWARF's entries, references between them, their names. */
#include "debug/die.h"

#include <ctype.h>
#include <dwarf.h>
#include <string.h>

#include "module/module_private.h"
#include "debug/dwp.h"

#define REFERENCES_MAX 8  /* followed from an instance to its declaration */
#define QUALIFIED_MAX 16384	/* characters of a name with its scopes */

bool
ex_die_next(Dwarf_Die *die)
{
	Dwarf_Off before = dwarf_dieoffset(die);

	return dwarf_siblingof(die, die) == 0 && dwarf_dieoffset(die) > before;
}

bool
ex_die_is_class(Dwarf_Die *die)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
		return true;
	default:
		return false;
	}
}

bool
ex_die_whole_unit(struct ex_module *m, Dwarf_Die *unit)
{
	Dwarf_Die split;
	uint64_t id;
	uint8_t type;
	bool there;

	if (dwarf_cu_info(unit->cu, NULL, &type, NULL, NULL, &id, NULL,
	    NULL) != 0 || type != DW_UT_skeleton)
		return true;
	ex_open_instead(ex_dwp_unit(m, id));
	there = dwarf_cu_info(unit->cu, NULL, NULL, NULL, &split, NULL, NULL,
	    NULL) == 0 && dwarf_tag(&split) != DW_TAG_invalid;
	ex_open_instead(NULL);
	if (there)
		*unit = split;
	return there;
}

Dwarf_Die *
ex_die_walk(struct ex_die_walk *walk, Dwarf_Die *below)
{
	walk->depth = 0;
	return dwarf_child(below, &walk->path[0]) == 0 ? &walk->path[0] : NULL;
}

Dwarf_Die *
ex_die_walk_on(struct ex_die_walk *walk, bool (*enter)(Dwarf_Die *))
{
	Dwarf_Die *at = &walk->path[walk->depth];
	Dwarf_Off seen = dwarf_dieoffset(at);

	if (walk->depth + 1 < EX_DIE_DEPTH && enter(at) &&
	    dwarf_child(at, at + 1) == 0) {
		walk->depth++;
		return at + 1;
	}
	/* take a sibling only after all that was seen, as damaged trees may
	   contain themselves */
	while (!ex_die_next(at) || dwarf_dieoffset(at) <= seen) {
		if (walk->depth-- == 0)
			return NULL;
		at--;
	}
	return at;
}

bool
ex_die_ref(Dwarf_Die *die, unsigned name, Dwarf_Die *out)
{
	Dwarf_Attribute attr;

	return dwarf_formref_die(dwarf_attr(die, name, &attr), out) != NULL;
}

bool
ex_die_number(Dwarf_Die *die, unsigned name, uint64_t *out)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	if (dwarf_formudata(dwarf_attr(die, name, &attr), &value) != 0)
		return false;
	*out = value;
	return true;
}

uint64_t
ex_die_lower_bound(Dwarf_Die *range)
{
	Dwarf_Sword usual;
	Dwarf_Die unit;
	uint64_t first;

	if (ex_die_number(range, DW_AT_lower_bound, &first))
		return first;
	return dwarf_diecu(range, &unit, NULL, NULL) != NULL &&
	    dwarf_default_lower_bound(dwarf_srclang(&unit), &usual) == 0 ?
	    (uint64_t)usual : 0;
}

bool
ex_die_reserved(const char *name)
{
	return name[0] == '_' &&
	    (name[1] == '_' || isupper((unsigned char)name[1]));
}

/* The declaration, in its namespace or class, that an inlined or defined
   instance refers to. */
static Dwarf_Die
declaration_of(Dwarf_Die die)
{
	for (int i = 0; i < REFERENCES_MAX; i++) {
		Dwarf_Die next;

		if (!ex_die_ref(&die, DW_AT_abstract_origin, &next) &&
		    !ex_die_ref(&die, DW_AT_specification, &next))
			break;
		die = next;
	}
	return die;
}

/* The scopes that contain a DIE, outermost first, without the unit. */
static size_t
scopes_of(Dwarf_Die *die, Dwarf_Die path[EX_DIE_DEPTH])
{
	Dwarf_Off target = dwarf_dieoffset(die);
	Dwarf_Die at;
	size_t n = 0;

	if (dwarf_diecu(die, &path[0], NULL, NULL) == NULL ||
	    dwarf_child(&path[0], &at) != 0)
		return 0;
	while (n < EX_DIE_DEPTH && dwarf_dieoffset(&at) < target) {
		Dwarf_Die next = at;

		while (ex_die_next(&next) && dwarf_dieoffset(&next) <= target)
			at = next;
		if (dwarf_dieoffset(&at) == target)
			break;
		path[n++] = at;
		if (dwarf_child(&path[n - 1], &at) != 0)
			return 0;
	}
	return dwarf_dieoffset(&at) == target ? n : 0;
}

/* Each unit has its own unnamed namespace. */
static const char unnamed[] = "(anonymous namespace)";

/* The name that a scope contributes, or NULL.  least: only where it has to be
   named. */
static const char *
scope_name(Dwarf_Die *scope, bool least)
{
	const char *name = dwarf_diename(scope);

	switch (dwarf_tag(scope)) {
	case DW_TAG_namespace:
		if (least && (name == NULL || dwarf_hasattr(scope,
		    DW_AT_export_symbols)))
			return NULL;
		return name != NULL ? name : unnamed;
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_subprogram:
	case DW_TAG_common_block:
		return name;
	default:
		return NULL;
	}
}

/* The scopes of a function's code are not those of its name, if it is declared
   elsewhere. */
static bool
is_elsewhere(Dwarf_Die *scope)
{
	return dwarf_tag(scope) == DW_TAG_subprogram &&
	    (dwarf_hasattr(scope, DW_AT_specification) ||
	    dwarf_hasattr(scope, DW_AT_abstract_origin));
}

/* The names of a DIE's scopes, outermost first, at most max; NULL for those
   without one.  Returns their number. */
static size_t
scope_names(Dwarf_Die die, const char **names, size_t max, int references,
    bool least)
{
	Dwarf_Die path[EX_DIE_DEPTH], at = declaration_of(die);
	size_t n = scopes_of(&at, path), from = 0, done = 0;

	for (size_t i = n; i-- > 0 && references > 0; ) {
		if (is_elsewhere(&path[i])) {
			done = scope_names(path[i], names, max, references - 1,
			    least);
			from = i;
			break;
		}
	}
	for (size_t i = from; i < n && done < max; i++)
		names[done++] = scope_name(&path[i], least);
	return done;
}

/* The next name that is not NULL, or NULL. */
static const char *
next_name(const char *const *names, size_t n, size_t *i)
{
	while (*i < n && names[*i] == NULL)
		++*i;
	return *i < n ? names[(*i)++] : NULL;
}

bool
ex_die_same_scopes(Dwarf_Die *a, Dwarf_Die *b)
{
	const char *x[EX_DIE_DEPTH], *y[EX_DIE_DEPTH], *name, *other;
	size_t nx = scope_names(*a, x, EX_DIE_DEPTH, REFERENCES_MAX, false);
	size_t ny = scope_names(*b, y, EX_DIE_DEPTH, REFERENCES_MAX, false);
	size_t ix = 0, iy = 0;

	do {
		name = next_name(x, nx, &ix);
		other = next_name(y, ny, &iy);
		if (name == NULL || other == NULL)
			return name == other;
	} while (name != unnamed && strcmp(name, other) == 0);
	return false;
}

static const char *
qualified(struct ex_module *m, Dwarf_Die *die, const char *name, bool least)
{
	const char *names[EX_DIE_DEPTH];
	size_t n = scope_names(*die, names, EX_DIE_DEPTH, REFERENCES_MAX,
	    least);
	size_t len = strlen(name);
	char *text, *end;

	for (size_t i = 0; i < n; i++) {
		if (names[i] != NULL)
			len += strlen(names[i]) + 2;
	}
	if (len == strlen(name) || len > QUALIFIED_MAX ||
	    (text = ex_module_text(m, len)) == NULL)
		return name;
	end = text;
	for (size_t i = 0; i < n; i++) {
		if (names[i] != NULL)
			end = stpcpy(stpcpy(end, names[i]), "::");
	}
	(void)stpcpy(end, name);
	return text;
}

const char *
ex_die_qualified(struct ex_module *m, Dwarf_Die *die, const char *name)
{
	return qualified(m, die, name, false);
}

const char *
ex_die_short(struct ex_module *m, Dwarf_Die *die, const char *name)
{
	return qualified(m, die, name, true);
}
