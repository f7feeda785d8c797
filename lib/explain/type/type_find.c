/*
 * type_find: types, enumerators, optimized-out variables and inlined functions of
 * a module, by name.
 *
 * The units are read in which the name's string is, or a reference to it, up
 * to the first that has what is asked for.
 */
#include <dwarf.h>
#include <string.h>

#include "debug/debug_info.h"
#include "debug/die.h"
#include "symbol/line.h"
#include "module/module_private.h"
#include "type/declaration.h"
#include "type/qualified.h"
#include "type/subobject.h"

enum {
	UNITS_MAX = 256,	/* units that have the name, and something
				   else as well */
	ENTRIES_MAX = 1 << 23,	/* entries examined */
};

struct type_search {
	struct ex_module *module;
	const char *name;	/* qualified */
	char last[256];		/* its last part, */
	size_t len;		/* up to template arguments */
	bool least;		/* leaves out default arguments */
	bool enumerator;
	bool variable;	/* a variable without a location */
	bool function;	/* a function that is inlined */
	enum ex_tag tag;
	unsigned left;		/* entries left to examine */
	Dwarf_Die found, holder;  /* holder: enumeration of an enumerator */
};

static bool
is_tag(Dwarf_Die *die, enum ex_tag tag)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
		return tag == EX_TAG_ANY || tag == EX_TAG_STRUCT;
	case DW_TAG_union_type:
		return tag == EX_TAG_ANY || tag == EX_TAG_UNION;
	case DW_TAG_enumeration_type:
		return tag == EX_TAG_ANY || tag == EX_TAG_ENUM;
	case DW_TAG_typedef:
	case DW_TAG_template_alias:
	case DW_TAG_base_type:
	case DW_TAG_pointer_type:	/* Rust's pointer types have names */
		return tag == EX_TAG_ANY;
	default:
		return false;
	}
}

static bool
is_unplaced(Dwarf_Die *die)
{
	return dwarf_tag(die) == DW_TAG_variable &&
	    !dwarf_hasattr_integrate(die, DW_AT_location);
}

static bool
is_inlined(Dwarf_Die *die)
{
	uint64_t inlined;

	return dwarf_tag(die) == DW_TAG_subprogram &&
	    ex_die_number(die, DW_AT_inline, &inlined) &&
	    (inlined == DW_INL_inlined || inlined == DW_INL_declared_inlined);
}

static bool
holds_types(Dwarf_Die *die)
{
	return dwarf_tag(die) == DW_TAG_namespace ||
	    dwarf_tag(die) == DW_TAG_module || ex_die_is_class(die);
}

static bool
holds_enumerators(Dwarf_Die *die)
{
	return holds_types(die) || dwarf_tag(die) == DW_TAG_enumeration_type;
}

/* Remove the last argument of a template's name.  Returns false if it has at
   most one. */
static bool
drop_argument(char *name)
{
	char *comma = NULL;
	int depth = 0;

	for (char *p = name; *p != '\0'; p++) {
		if (strchr("<({", *p) != NULL)
			depth++;
		else if (strchr(">)}", *p) != NULL)
			depth--;
		else if (*p == ',' && depth == 1)
			comma = p;
	}
	if (comma != NULL)
		(void)stpcpy(comma, ">");
	return comma != NULL;
}

/* The number of trailing template arguments that are defaults. */
static unsigned
defaults_of(Dwarf_Die *die)
{
	Dwarf_Die at;
	unsigned n = 0;
	bool more = dwarf_child(die, &at) == 0;

	for (; more; more = ex_die_next(&at)) {
		const int tag = dwarf_tag(&at);

		if (tag == DW_TAG_template_type_parameter ||
		    tag == DW_TAG_template_value_parameter)
			n = dwarf_hasattr(&at, DW_AT_default_value) ? n + 1 : 0;
	}
	return n;
}

/* Whether it has the name in question, apart from its scopes. */
static bool
has_name(const struct type_search *s, Dwarf_Die *die, const char *name)
{
	char text[512];
	unsigned n;

	if (ex_qualified_same(name, s->last, false))
		return true;
	if (!s->least || s->last[s->len] != '<' || strlen(name) >= sizeof(text))
		return false;
	(void)stpcpy(text, name);
	for (n = defaults_of(die); n > 0 && drop_argument(text); n--)
		if (ex_qualified_same(text, s->last, false))
			return true;
	return false;
}

/* Whether it is what is searched for.  above: what contains it; NULL: its
   unit. */
static bool
is_it(struct type_search *s, Dwarf_Die *die, Dwarf_Die *above)
{
	const char *name;
	Dwarf_Die scoped = *die;

	if (s->enumerator ? dwarf_tag(die) != DW_TAG_enumerator :
	    s->variable ? !is_unplaced(die) : s->function ? !is_inlined(die) :
	    !is_tag(die, s->tag))
		return false;
	if (dwarf_hasattr(die, DW_AT_declaration) ||
	    (name = dwarf_diename(die)) == NULL ||
	    strncmp(name, s->last, s->len) != 0 || !has_name(s, die, name))
		return false;
	/* an enumerator of enum { A } or of enum class E { A } */
	if (s->enumerator && above != NULL) {
		bool has_scope = dwarf_hasattr(above, DW_AT_enum_class);

		s->holder = *above;
		if (!has_scope)
			scoped = *above;
		name = ex_die_qualified(s->module, &scoped, name);
		if (has_scope && dwarf_diename(above) != NULL) {
			/* the enumeration is a scope without a mark */
			const char *own = ex_qualified_last(s->name);
			char outer[512];
			size_t len = (size_t)(own - s->name);

			if (len < 2 || len - 2 >= sizeof(outer))
				return false;
			memcpy(outer, s->name, len - 2);
			outer[len - 2] = '\0';
			return strcmp(own, dwarf_diename(die)) == 0 &&
			    ex_qualified_same(outer, ex_die_qualified(
			    s->module, above, dwarf_diename(above)), false);
		}
		return ex_qualified_same(name, s->name, false);
	}
	return ex_qualified_same((s->least ? ex_die_short : ex_die_qualified)(
	    s->module, die, s->last), s->name, false);
}

static bool
search_unit(struct type_search *s, Dwarf_Die *unit)
{
	struct ex_die_walk walk;
	Dwarf_Die *die;

	for (die = ex_die_walk(&walk, unit); die != NULL && s->left > 0;
	    die = ex_die_walk_on(&walk, s->enumerator ? holds_enumerators :
	    holds_types)) {
		s->left--;
		if (is_it(s, die, walk.depth > 0 ? die - 1 : NULL)) {
			s->found = *die;
			return true;
		}
	}
	return false;
}

/* Search the units that the index does not find. */
static bool
search_all(struct type_search *s)
{
	Dwarf_Die unit;
	uint64_t at = 0;
	bool types;

	while (s->left > 0 && ex_unit_next(s->module, &at, &unit, &types))
		if (search_unit(s, &unit))
			return true;
	return false;
}

static bool
search(struct type_search *s, struct ex_module *m, const char *name)
{
	const char *last = ex_qualified_last(name);
	struct ex_unit_names names = {.name = s->last};
	uint64_t offset, next;
	unsigned units = 0;
	Dwarf_Die unit;
	bool types;

	s->module = m;
	s->name = name;
	s->left = ENTRIES_MAX;
	s->len = strcspn(last, "< ");
	if (s->len == 0 || strlen(last) >= sizeof(s->last) ||
	    !ex_declaration_known(m))
		return false;
	(void)stpcpy(s->last, last);
	while (units++ < UNITS_MAX && ex_unit_named(m, &names, &offset)) {
		next = offset;
		if (ex_unit_next(m, &next, &unit, &types) &&
		    search_unit(s, &unit)) {
			ex_unit_use(m, &unit);
			return true;
		}
	}
	/* blanks in template names may differ */
	return (names.all || units > UNITS_MAX || last[s->len] != '\0') &&
	    search_all(s);
}

static bool
take(struct ex_module *m, Dwarf_Die *die, struct ex_type *type)
{
	const struct ex_module_types *types = ex_module_types(m);
	struct ex_declared language = {.name = NULL};

	if (types == NULL)
		return false;
	ex_declared_language(&language, die);
	*type = (struct ex_type){
		.module = m, .layout = ex_layout_of(types->layouts, die),
		.die = *die, .tags = language.tags,
		.columns = language.columns,
	};
	return true;
}

bool
ex_type_of(struct ex_module *m, Dwarf_Die *declared, struct ex_type *type)
{
	Dwarf_Attribute attr;
	Dwarf_Die die;

	return dwarf_formref_die(dwarf_attr_integrate(declared, DW_AT_type,
	    &attr), &die) != NULL && take(m, &die, type);
}

bool
ex_type_of_result(struct ex_module *m, uint64_t vaddr, struct ex_type *type)
{
	uint64_t start, bias;
	Dwarf_Die function;

	return ex_line_function(m, vaddr, &function, &start, &bias) &&
	    start == vaddr && ex_type_of(m, &function, type);
}

bool
ex_type_find(struct ex_module *m, const char *name, enum ex_tag tag,
    struct ex_type *type)
{
	struct type_search s = {.tag = tag};
	bool found = search(&s, m, name);

	s.least = true;
	if (!found && strpbrk(name, ":<") != NULL)
		found = search(&s, m, name);
	return found && take(m, &s.found, type);
}

bool
ex_type_enumerator(struct ex_module *m, const char *name, uint64_t *value,
    struct ex_type *type)
{
	struct type_search s = {.enumerator = true};

	return search(&s, m, name) && take(m, &s.holder, type) &&
	    ex_type_kind(type) == EX_ENUM && ex_layout_enumerator(type->layout,
	    ex_qualified_last(name), value);
}

bool
ex_variable_optimized_out(struct ex_module *m, const char *name)
{
	struct type_search s = {.variable = true};

	return search(&s, m, name);
}

bool
ex_function_inlined(struct ex_module *m, const char *name)
{
	struct type_search s = {.function = true};

	return search(&s, m, name);
}
