/* definition: the classes of a module, by name. */
#include "type/definition.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "debug/debug_info.h"
#include "debug/die.h"
#include "module/module_private.h"
#include "base/array.h"

enum {
	CLASSES_MAX = 1 << 20,
	WALK_MAX = 1 << 23,	/* entries examined */
	TRIALS_MAX = 1024,	/* classes with one name in different scopes */
};

struct definition {
	const char *name;	/* without its scopes */
	Dwarf_Die die;
};

struct ex_definitions {
	struct ex_module *module;
	struct definition *at;	/* sorted by name once read */
	size_t n, cap;
	bool read;
};

struct ex_definitions *
ex_definitions_new(struct ex_module *m)
{
	struct ex_definitions *definitions = calloc(1, sizeof(*definitions));

	if (definitions != NULL)
		definitions->module = m;
	return definitions;
}

void
ex_definitions_free(struct ex_definitions *definitions)
{
	if (definitions == NULL)
		return;
	free(definitions->at);
	free(definitions);
}

/* Whether named classes may be found inside. */
static bool
holds_classes(Dwarf_Die *die)
{
	return dwarf_tag(die) == DW_TAG_namespace || ex_die_is_class(die);
}

static bool
is_cxx(Dwarf_Die *die)
{
	Dwarf_Die unit;

	if (dwarf_diecu(die, &unit, NULL, NULL) == NULL)
		return false;
	switch (dwarf_srclang(&unit)) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
		return true;
	default:
		return false;
	}
}

/* Returns false if there is no room. */
static bool
add_class(struct ex_definitions *definitions, Dwarf_Die *die)
{
	const char *name;
	uint64_t size;

	if (!ex_die_is_class(die) || (name = dwarf_diename(die)) == NULL ||
	    dwarf_hasattr(die, DW_AT_declaration) ||
	    !ex_die_number(die, DW_AT_byte_size, &size))
		return true;
	if (!EX_ARRAY_ROOM(definitions, at, CLASSES_MAX))
		return false;
	definitions->at[definitions->n++] = (struct definition){name, *die};
	return true;
}

static int
compare(const void *pa, const void *pb)
{
	const struct definition *a = pa, *b = pb;

	return strcmp(a->name, b->name);
}

static void
read_units(struct ex_definitions *definitions)
{
	struct ex_die_walk walk;
	Dwarf_Die unit, *die;
	uint64_t at = 0;
	bool types, room = true;
	unsigned left = WALK_MAX;

	while (room && ex_unit_next(definitions->module, &at, &unit, &types)) {
		if (!is_cxx(&unit))
			continue;
		for (die = ex_die_walk(&walk, &unit); die != NULL && room;
		    die = ex_die_walk_on(&walk, holds_classes))
			room = left-- > 0 && add_class(definitions, die);
	}
	if (definitions->n > 0)
		qsort(definitions->at, definitions->n,
		    sizeof(*definitions->at), compare);
	definitions->read = true;
}

/* The first definition with a name, or n. */
static size_t
first_of(const struct ex_definitions *definitions, const char *name)
{
	size_t low = 0, high = definitions->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (strcmp(definitions->at[mid].name, name) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

bool
ex_definition_find(struct ex_definitions *definitions, Dwarf_Die *declaration,
    Dwarf_Die *out)
{
	const char *name = dwarf_diename(declaration);
	uint64_t size = 0, other;

	if (!ex_die_is_class(declaration) || name == NULL ||
	    !dwarf_hasattr(declaration, DW_AT_declaration) ||
	    !is_cxx(declaration))
		return false;
	if (!definitions->read)
		read_units(definitions);
	for (size_t i = first_of(definitions, name), trials = 0;
	    i < definitions->n && trials < TRIALS_MAX &&
	    strcmp(definitions->at[i].name, name) == 0; i++, trials++) {
		Dwarf_Die *die = &definitions->at[i].die;

		if (!ex_die_same_scopes(declaration, die) ||
		    !ex_die_number(die, DW_AT_byte_size, &other))
			continue;
		if (size != 0 && other != size)
			return false;
		size = other;
		*out = *die;
	}
	return size != 0;
}
