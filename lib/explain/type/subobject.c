/* subobject: from a variable down to the bytes asked for. */
#include "type/subobject.h"

#include <dwarf.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "debug/die.h"
#include "module/module_private.h"
#include "symbol/symbol.h"

enum {
	STEPS_MAX = 64,		/* nested members and elements */
	NAME_SHOWN = 256,	/* characters kept of a name that is too long */
	TRIALS_MAX = 1 << 16,	/* members examined to find the best one */
};

/* The state of the walk: the bytes from off on in the part found so far. */
struct walk {
	struct ex_subobject *sub;
	uint64_t off, len;	/* of the bytes in question */
	unsigned trials;	/* trials left */
	bool columns;
	bool inner;  /* the last name of the path is a library's internal one */
	size_t wrapped;		/* length of the path up to an object that
				   consists of what follows; */
	Dwarf_Die wrapper;	/* its type; 0 if there is none */
};

/* --- variables --- */

void
ex_declared_language(struct ex_declared *declared, Dwarf_Die *die)
{
	Dwarf_Die unit;

	if (dwarf_diecu(die, &unit, NULL, NULL) == NULL)
		return;
	switch (dwarf_srclang(&unit)) {
	case DW_LANG_C:
	case DW_LANG_C89:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_ObjC:
		declared->tags = true;
		break;
	case DW_LANG_Fortran77:
	case DW_LANG_Fortran90:
	case DW_LANG_Fortran95:
	case DW_LANG_Fortran03:
	case DW_LANG_Fortran08:
		declared->columns = true;
		break;
	default:
		break;
	}
}

/* Whether the type ends in an array of unspecified length. */
static bool
is_open(const struct ex_layout *layout)
{
	for (int i = 0; i < STEPS_MAX && layout->kind == EX_STRUCT; i++) {
		const struct ex_member *member;
		size_t n = ex_layout_members(layout, &member);

		if (n == 0)
			break;
		layout = member[n - 1].layout;
	}
	return layout->size == 0 || (layout->kind == EX_ARRAY && layout->open);
}

static struct ex_declared *
declare(struct ex_module *m, struct ex_layout_cache *layouts,
    const struct ex_variable *variable)
{
	struct ex_declared *declared = calloc(1, sizeof(*declared));
	Dwarf_Die die = variable->die;
	struct ex_symbol symbol;
	Dwarf_Attribute attr;
	const char *name;

	if (declared == NULL)
		return NULL;
	name = dwarf_formstring(dwarf_attr_integrate(&die, DW_AT_name, &attr));
	if (name == NULL || dwarf_formref_die(dwarf_attr_integrate(&die,
	    DW_AT_type, &attr), &declared->type) == NULL)
		return declared;
	declared->name = ex_die_qualified(m, &die, name);
	if (declared->name != name)
		declared->least = ex_die_short(m, &die, name);
	declared->layout = ex_layout_of(layouts, &declared->type);
	declared->size = declared->layout->size;
	if (is_open(declared->layout) &&
	    ex_symbol_at(m, variable->vaddr, &symbol) &&
	    symbol.value == variable->vaddr && symbol.size > declared->size)
		declared->size = symbol.size;
	ex_declared_language(declared, &die);
	return declared;
}

/* --- inside of them --- */

static bool
holds(uint64_t start, uint64_t size, uint64_t off, uint64_t len)
{
	return off >= start && off - start <= size &&
	    len <= size - (off - start);
}

static bool
overlap(uint64_t a, uint64_t alen, uint64_t b, uint64_t blen)
{
	return a < b ? b - a < alen : a - b < blen;
}

uint64_t
ex_member_size(const struct ex_member *member, uint64_t size)
{
	const struct ex_layout *layout = member->layout;

	return layout->kind == EX_ARRAY && layout->open &&
	    size > member->offset ?
	    size - member->offset : layout->size;
}

static bool is_exact(const struct ex_layout *, uint64_t size, uint64_t off,
    uint64_t len, unsigned depth, unsigned *trials);
static bool is_used(const struct ex_layout *, uint64_t off, uint64_t len,
    unsigned depth, unsigned *trials);

/* Whether a member occupies some of these bytes of its holder. */
static bool
is_used_by(const struct ex_member *m, uint64_t off, uint64_t len,
    unsigned depth, unsigned *trials)
{
	uint64_t from = off > m->offset ? off : m->offset;

	if (m->bits != 0)
		return overlap(m->bit, m->bits, off * 8, len * 8);
	return overlap(m->offset, m->layout->size, off, len) &&
	    is_used(m->layout, from - m->offset, len - (from - off), depth,
	    trials);
}

/* Whether anything in an object occupies some of these bytes. */
static bool
is_used(const struct ex_layout *layout, uint64_t off, uint64_t len,
    unsigned depth, unsigned *trials)
{
	const struct ex_member *member;
	size_t n;

	if (layout->kind != EX_STRUCT || depth >= STEPS_MAX)
		return true;
	n = ex_layout_members(layout, &member);
	for (size_t i = 0; i < n && *trials > 0; i++) {
		--*trials;
		if (is_used_by(&member[i], off, len, depth + 1, trials))
			return true;
	}
	return *trials == 0;
}

/* Whether the bytes are padding of a base class, where the derived class may
   have members. */
static bool
is_padding(const struct ex_member *m, uint64_t off, uint64_t len,
    unsigned depth, unsigned *trials)
{
	return m->name == NULL && off >= m->offset &&
	    !is_used(m->layout, off - m->offset, len, depth, trials);
}

/* Whether other members occupy some of these bytes as well: the padding of a
   base class, or of a [[no_unique_address]] member, may hold more members. */
static bool
is_shared(const struct ex_layout *layout, const struct ex_member *m,
    uint64_t off, uint64_t len, unsigned depth, unsigned *trials)
{
	const struct ex_member *member;
	size_t n = ex_layout_members(layout, &member);

	if (layout->is_union || m->layout->kind != EX_STRUCT)
		return false;
	for (size_t i = 0; i < n && *trials > 0; i++) {
		--*trials;
		if (&member[i] != m &&
		    is_used_by(&member[i], off, len, depth, trials))
			return true;
	}
	return false;
}

/* Choose the member to enter.  NULL if none contains all of the bytes. */
static const struct ex_member *
choose(const struct ex_layout *layout, uint64_t size, uint64_t off,
    uint64_t len,
    unsigned depth, unsigned *trials)
{
	const struct ex_member *member, *first = NULL;
	size_t n = ex_layout_members(layout, &member);

	for (size_t i = 0; i < n && *trials > 0; i++) {
		const struct ex_member *m = &member[i];

		--*trials;
		if (m->bits != 0 || !holds(m->offset, ex_member_size(m, size),
		    off, len) || is_padding(m, off, len, depth + 1, trials) ||
		    is_shared(layout, m, off, len, depth + 1, trials))
			continue;
		if (is_exact(m->layout, ex_member_size(m, size),
		    off - m->offset,
		    len, depth + 1, trials))
			return m;
		if (first == NULL)
			first = m;
	}
	return first;
}

/* Whether an object inside has exactly these bytes. */
static bool
is_exact(const struct ex_layout *layout, uint64_t size, uint64_t off,
    uint64_t len, unsigned depth, unsigned *trials)
{
	const struct ex_member *m;

	if (off == 0 && len == size)
		return true;
	if (depth >= STEPS_MAX)
		return false;
	if (layout->kind == EX_ARRAY)
		return is_exact(layout->element, layout->element->size,
		    off % layout->element->size, len, depth + 1, trials);
	if (layout->kind != EX_STRUCT)
		return false;
	m = choose(layout, size, off, len, depth, trials);
	return m != NULL && is_exact(m->layout, ex_member_size(m, size),
	    off - m->offset, len, depth + 1, trials);
}

__attribute__((format(printf, 2, 3)))
static bool
path_add(struct ex_subobject *sub, const char *format, ...)
{
	size_t len = strlen(sub->path);
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(sub->path + len, sizeof(sub->path) - len, format, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(sub->path) - len)
		return true;
	sub->path[len] = '\0';
	return false;
}

/* Enter a part, where the walk continues. */
static bool
enter(struct walk *walk, uint64_t off, uint64_t size,
    const struct ex_layout *layout, const Dwarf_Die *type, unsigned dimension)
{
	struct ex_subobject *sub = walk->sub;

	sub->vaddr += off;
	sub->size = size;
	sub->layout = layout;
	sub->type = *type;
	sub->dimension = dimension;
	walk->off -= off;
	return true;
}

/* The number of bit-fields if the bytes are only those, and one of them;
   otherwise 0. */
static unsigned
count_fields(const struct ex_layout *layout, uint64_t start, uint64_t len,
    const struct ex_member **field, unsigned *trials)
{
	const struct ex_member *member;
	size_t n = ex_layout_members(layout, &member);
	unsigned count = 0;

	for (size_t i = 0; i < n; i++) {
		const struct ex_member *m = &member[i];

		if (m->bits == 0) {
			if (overlap(m->offset, m->layout->size, start, len) &&
			    !is_padding(m, start, len, 0, trials))
				return 0;
		} else if (overlap(m->bit, m->bits, start * 8, len * 8)) {
			if (count++ == 0)
				*field = m;
		}
	}
	return count;
}

/* If the bytes are in a storage unit that has only bit-fields, extend them to
   the unit.  Returns the number of bit-fields, or 0. */
static unsigned
take_unit(struct walk *walk, const struct ex_member *field, uint64_t *start,
    uint64_t *len)
{
	const struct ex_layout *layout = walk->sub->layout;
	uint64_t unit = field->layout->size;
	uint64_t at = unit == 0 ? 0 : field->offset / unit * unit;
	const struct ex_member *other;
	unsigned n;

	if (!holds(at, unit, *start, *len) ||
	    !holds(0, walk->sub->size, at, unit) ||
	    (n = count_fields(layout, at, unit, &other, &walk->trials)) == 0)
		return 0;
	*start = at;
	*len = unit;
	return n;
}

/* Whether any bit-field is completely within these bytes. */
static bool
has_field(const struct ex_layout *layout, uint64_t start, uint64_t len)
{
	const struct ex_member *m;
	size_t n = ex_layout_members(layout, &m);

	for (size_t i = 0; i < n; i++)
		if (m[i].bits != 0 &&
		    holds(start * 8, len * 8, m[i].bit, m[i].bits))
			return true;
	return false;
}

/* Extend the bytes to all of a bit-field. */
static void
take_field(const struct ex_member *field, uint64_t *start, uint64_t *len)
{
	uint64_t first = field->bit / 8, end = *start + *len;
	uint64_t field_end = (field->bit + field->bits - 1) / 8 + 1;

	*start = first < *start ? first : *start;
	*len = (field_end > end ? field_end : end) - *start;
}

/* The bytes are bit-fields: either a single one, or all of a storage unit,
   which the compiler reads and writes as a whole. */
static void
enter_fields(struct walk *walk)
{
	struct ex_subobject *sub = walk->sub;
	const struct ex_layout *layout = sub->layout;
	const struct ex_member *field;
	uint64_t start = walk->off, len = walk->len;
	unsigned n = count_fields(layout, start, len, &field, &walk->trials);

	if (n == 0 || layout->partial || sub->size > UINT64_MAX / 8)
		return;
	if (n > 1 || !holds(start * 8, len * 8, field->bit, field->bits)) {
		unsigned all = take_unit(walk, field, &start, &len);

		if (all != 0)
			n = all;
		else if (n == 1)
			take_field(field, &start, &len);
		else if (!has_field(layout, start, len))
			return;
	}
	if (n == 1 && field->name != NULL && path_add(sub, ".%s", field->name))
		sub->field = field;
	else
		sub->fields = true;
	sub->within = start;
	walk->wrapped = 0;
	/* a structure with nothing else stands for itself */
	if (start != 0 || len != sub->size || sub->field != NULL)
		(void)enter(walk, start, len, layout, &field->type, 0);
}

/* Note where the path may end if it leads into a library's class, and there to
   a member that is all of it. */
static void
note_wrapper(struct walk *walk, const struct ex_member *m)
{
	const struct ex_subobject *sub = walk->sub;
	bool own = m->name == NULL || ex_die_reserved(m->name);

	if (!own || m->offset != 0 || m->layout->size != sub->size)
		walk->wrapped = 0;
	else if (walk->wrapped == 0 && !walk->inner) {
		walk->wrapped = strlen(sub->path);
		walk->wrapper = sub->type;
	}
	if (m->name != NULL)
		walk->inner = own;
}

static bool
enter_member(struct walk *walk)
{
	struct ex_subobject *sub = walk->sub;
	const struct ex_member *m = choose(sub->layout, sub->size, walk->off,
	    walk->len, 0, &walk->trials);

	if (m == NULL) {
		enter_fields(walk);
		return false;
	}
	note_wrapper(walk, m);
	if (m->name != NULL && !path_add(sub, ".%s", m->name))
		return false;
	return enter(walk, m->offset, ex_member_size(m, sub->size), m->layout,
	    &m->type, 0);
}

/* The type of an array's elements as declared. */
static bool
element_type(const struct ex_layout *array, Dwarf_Die *type,
    unsigned *dimension)
{
	Dwarf_Die die = array->type;

	*dimension = 0;
	if (array->element->type.addr != die.addr)
		return ex_die_ref(&die, DW_AT_type, type);
	*type = die;
	*dimension = array->dimension + 1;
	return true;
}

static bool
enter_element(struct walk *walk)
{
	struct ex_subobject *sub = walk->sub;
	const struct ex_layout *array = sub->layout;
	uint64_t each = array->element->size, count = sub->size / each;
	uint64_t from = walk->off / each;
	uint64_t to = (walk->off + walk->len - 1) / each;
	unsigned dimension;
	Dwarf_Die type;

	walk->wrapped = 0;
	if (walk->columns || to >= count || (from == 0 && to == count - 1 &&
	    count > 1) || !element_type(array, &type, &dimension))
		return false;
	if (from == to)
		return path_add(sub, "[%" PRIu64 "]", array->first + from) &&
		    enter(walk, from * each, each, array->element, &type,
		    dimension);
	if (path_add(sub, "[%" PRIu64 "]@%" PRIu64, array->first + from,
	    to - from + 1)) {
		sub->slice = to - from + 1;
		(void)enter(walk, from * each, sub->slice * each, array,
		    &array->type, array->dimension);
	}
	return false;
}

static bool
step(struct walk *walk)
{
	switch (walk->sub->layout->kind) {
	case EX_STRUCT:
		return enter_member(walk);
	case EX_ARRAY:
		return enter_element(walk);
	default:
		return false;
	}
}

static void
types_release(void *arg)
{
	struct ex_module_types *types = arg;

	ex_variables_free(types->variables);
	ex_layout_cache_free(types->layouts);
}

const struct ex_module_types *
ex_module_types(struct ex_module *m)
{
	bool is_new;
	struct ex_module_types *types = ex_module_cache(m, EX_CACHE_TYPES,
	    sizeof(*types), types_release, &is_new);

	if (types != NULL && is_new) {
		types->variables = ex_variables_new(m);
		types->layouts = ex_layout_cache_new(m);
	}
	return types == NULL || types->variables == NULL ||
	    types->layouts == NULL ? NULL : types;
}

const struct ex_declared *
ex_declared_of(struct ex_module *m, struct ex_variable *v)
{
	const struct ex_module_types *types = ex_module_types(m);

	if (v->declared == NULL && types != NULL)
		v->declared = declare(m, types->layouts, v);
	return v->declared;
}

bool
ex_subobject_of(const struct ex_declared *declared, uint64_t start,
    uint64_t addr, uint64_t len, struct ex_subobject *sub)
{
	struct walk walk = {
		.sub = sub, .trials = TRIALS_MAX, .off = addr - start,
		.len = len, .columns = declared->columns,
	};

	if (declared->name == NULL || !holds(start, declared->size, addr, len))
		return false;
	*sub = (struct ex_subobject){
		.vaddr = start, .size = declared->size,
		.layout = declared->layout, .type = declared->type,
		.tags = declared->tags,
	};
	if (!path_add(sub, "%s", declared->name))
		(void)path_add(sub, "%.*s...", NAME_SHOWN, declared->name);
	for (int i = 0; i < STEPS_MAX && step(&walk); i++)
		;
	if (walk.wrapped != 0) {
		sub->path[walk.wrapped] = '\0';
		sub->type = walk.wrapper;
		sub->dimension = 0;
	}
	return true;
}

bool
ex_subobject_find(struct ex_module *m, uint64_t vaddr, uint64_t len,
    struct ex_subobject *sub)
{
	const struct ex_module_types *types = ex_module_types(m);
	const struct ex_declared *declared;
	struct ex_variable *v;

	return types != NULL && len != 0 &&
	    (v = ex_variables_find(types->variables, vaddr)) != NULL &&
	    (declared = ex_declared_of(m, v)) != NULL &&
	    ex_subobject_of(declared, v->vaddr, vaddr, len, sub);
}
