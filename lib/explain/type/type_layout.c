/* type_layout: types reduced to what their values need. */
#include "type/type_layout.h"

#include <dwarf.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "debug/die.h"
#include "type/definition.h"
#include "base/array.h"

enum {
	NAMES_MAX = 64,		/* nested typedefs and qualifiers */
	NESTED_MAX = 16,	/* arrays of arrays */
	CHILDREN_MAX = 1 << 16,	/* members or enumerators */
};

struct ex_layout_cache {
	void *tree;		/* of search.h, by type and dimension */
	struct ex_definitions *definitions;
};

static const struct ex_layout opaque = {.kind = EX_OPAQUE, .filled = true};

static int
layout_compare(const void *pa, const void *pb)
{
	const struct ex_layout *a = pa, *b = pb;
	uintptr_t x = (uintptr_t)a->type.addr, y = (uintptr_t)b->type.addr;

	if (x != y)
		return x < y ? -1 : 1;
	return (a->dimension > b->dimension) - (a->dimension < b->dimension);
}

static void
layout_free(void *p)
{
	struct ex_layout *layout = p;

	free(layout->member);
	free(layout->enumerator);
	free(layout);
}

struct ex_layout_cache *
ex_layout_cache_new(struct ex_module *m)
{
	struct ex_layout_cache *layouts = calloc(1, sizeof(*layouts));

	if (layouts == NULL)
		return NULL;
	if ((layouts->definitions = ex_definitions_new(m)) == NULL) {
		free(layouts);
		return NULL;
	}
	return layouts;
}

void
ex_layout_cache_free(struct ex_layout_cache *layouts)
{
	if (layouts == NULL)
		return;
	tdestroy(layouts->tree, layout_free);
	ex_definitions_free(layouts->definitions);
	free(layouts);
}

/* Follow typedefs, qualifiers and declarations to the type itself.  Returns
   false if there is none. */
static bool
strip(Dwarf_Die *type)
{
	for (int i = 0; i < NAMES_MAX; i++) {
		Dwarf_Die next;

		switch (dwarf_tag(type)) {
		case DW_TAG_typedef:
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
		case DW_TAG_restrict_type:
		case DW_TAG_atomic_type:
		case DW_TAG_immutable_type:
		case DW_TAG_packed_type:
		case DW_TAG_shared_type:
		case DW_TAG_subrange_type:
		case DW_TAG_template_alias:
			if (!ex_die_ref(type, DW_AT_type, &next))
				return false;
			break;
		default:
			if (!ex_die_ref(type, DW_AT_signature, &next))
				return true;
			break;
		}
		*type = next;
	}
	return false;
}

static uint64_t
byte_size(Dwarf_Die *type)
{
	uint64_t size;

	return ex_die_number(type, DW_AT_byte_size, &size) ? size : 0;
}

static void
base_layout(struct ex_layout *layout)
{
	uint64_t encoding, order;
	bool number;

	layout->name = dwarf_diename(&layout->type);
	layout->size = byte_size(&layout->type);
	number = layout->size >= 1 && layout->size <= 8;
	if (!ex_die_number(&layout->type, DW_AT_encoding, &encoding) ||
	    (ex_die_number(&layout->type, DW_AT_endianity, &order) &&
	    order == DW_END_big))
		return;
	switch (encoding) {
	case DW_ATE_signed_char:
	case DW_ATE_unsigned_char:
		layout->is_signed = encoding == DW_ATE_signed_char;
		if (layout->size == 1) {
			layout->kind = EX_CHAR;
			break;
		}
		/* FALLTHROUGH */
	case DW_ATE_signed:
	case DW_ATE_unsigned:
		layout->is_signed |= encoding == DW_ATE_signed;
		if (number || layout->size == 16)
			layout->kind = layout->is_signed ? EX_SIGNED :
			    EX_UNSIGNED;
		break;
	case DW_ATE_boolean:
		if (number)
			layout->kind = EX_BOOL;
		break;
	case DW_ATE_UTF:
		if (number)
			layout->kind = EX_UTF;
		break;
	case DW_ATE_float:
	case DW_ATE_imaginary_float:
		layout->kind = EX_FLOAT;
		break;
	case DW_ATE_complex_float:
		layout->kind = EX_COMPLEX;
		break;
	default:
		break;
	}
}

static void
enum_layout(struct ex_layout *layout)
{
	Dwarf_Die base;
	uint64_t encoding;

	layout->size = byte_size(&layout->type);
	if (ex_die_ref(&layout->type, DW_AT_type, &base) && strip(&base)) {
		if (layout->size == 0)
			layout->size = byte_size(&base);
		layout->is_signed = ex_die_number(&base, DW_AT_encoding,
		    &encoding) && (encoding == DW_ATE_signed ||
		    encoding == DW_ATE_signed_char);
	}
	if (layout->size >= 1 && layout->size <= 8)
		layout->kind = EX_ENUM;
}

static void
pointer_layout(struct ex_layout *layout)
{
	Dwarf_Die unit;
	uint8_t size = 0;

	layout->size = byte_size(&layout->type);
	if (layout->size == 0 &&
	    dwarf_diecu(&layout->type, &unit, &size, NULL) != NULL)
		layout->size = size;
	if (layout->size >= 1 && layout->size <= 8)
		layout->kind = EX_POINTER;
}

static const struct ex_layout *layout_get(struct ex_layout_cache *,
    Dwarf_Die type,
    unsigned dimension, unsigned nested);

/* Read one dimension of an array: its lower bound and its length, if given. */
static void
array_bounds(struct ex_layout *layout, Dwarf_Die *range)
{
	uint64_t last;

	layout->open = true;
	layout->count = 0;
	if (dwarf_tag(range) != DW_TAG_subrange_type)
		return;
	layout->first = ex_die_lower_bound(range);
	if (ex_die_number(range, DW_AT_count, &layout->count))
		layout->open = layout->count == 0;
	else if (ex_die_number(range, DW_AT_upper_bound, &last) &&
	    last >= layout->first && last - layout->first < INT64_MAX) {
		layout->count = last - layout->first + 1;
		layout->open = false;
	}
}

/* Read the dimension of this layout; *more: there are further ones. */
static bool
array_dimension(struct ex_layout *layout, bool *more)
{
	unsigned dimension = 0;
	Dwarf_Die child;
	bool found = false;

	*more = false;
	if (dwarf_child(&layout->type, &child) != 0)
		return false;
	do {
		unsigned tag = (unsigned)dwarf_tag(&child);

		if (tag != DW_TAG_subrange_type &&
		    tag != DW_TAG_enumeration_type)
			continue;
		if (dimension == layout->dimension) {
			array_bounds(layout, &child);
			found = true;
		} else if (dimension > layout->dimension)
			*more = true;
		dimension++;
	} while (!*more && ex_die_next(&child));
	return found;
}

static void
array_layout(struct ex_layout *layout, unsigned nested)
{
	uint64_t size;
	Dwarf_Die of;
	bool more;

	/* the elements of Fortran's arrays may lie elsewhere */
	if (nested >= NESTED_MAX ||
	    dwarf_hasattr(&layout->type, DW_AT_data_location) ||
	    !array_dimension(layout, &more) ||
	    !ex_die_ref(&layout->type, DW_AT_type, &of))
		return;
	layout->element = more ? layout_get(layout->layouts, layout->type,
	    layout->dimension + 1, nested + 1) :
	    layout_get(layout->layouts, of, 0, nested + 1);
	if (layout->element->size == 0 || __builtin_mul_overflow(
	    layout->element->size, layout->count, &size))
		return;
	layout->size = size;
	layout->kind = EX_ARRAY;
}

static void
layout_make(struct ex_layout *layout, unsigned nested)
{
	switch (dwarf_tag(&layout->type)) {
	case DW_TAG_base_type:
		base_layout(layout);
		break;
	case DW_TAG_enumeration_type:
		enum_layout(layout);
		break;
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		pointer_layout(layout);
		break;
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
		if ((layout->size = byte_size(&layout->type)) > 0)
			layout->kind = EX_STRUCT;
		layout->is_union =
		    dwarf_tag(&layout->type) == DW_TAG_union_type;
		break;
	case DW_TAG_array_type:
		array_layout(layout, nested);
		break;
	case DW_TAG_string_type:
		layout->size = byte_size(&layout->type);
		if (!dwarf_hasattr(&layout->type, DW_AT_string_length))
			layout->kind = EX_STRING;
		break;
	default:
		layout->size = byte_size(&layout->type);
		break;
	}
}

/* The layout is put into the tree before it is filled, so an array of itself
   has elements of size 0. */
static const struct ex_layout *
layout_get(struct ex_layout_cache *layouts, Dwarf_Die type, unsigned dimension,
    unsigned nested)
{
	struct ex_layout key, *layout, **found;
	Dwarf_Die definition;

	if (!strip(&type))
		return &opaque;
	if (ex_definition_find(layouts->definitions, &type, &definition))
		type = definition;
	key = (struct ex_layout){.type = type, .dimension = dimension};
	if ((found = tfind(&key, &layouts->tree, layout_compare)) != NULL)
		return *found;
	if ((layout = malloc(sizeof(*layout))) == NULL)
		return &opaque;
	*layout = key;
	layout->layouts = layouts;
	if (tsearch(layout, &layouts->tree, layout_compare) == NULL) {
		free(layout);
		return &opaque;
	}
	layout_make(layout, nested);
	return layout;
}

const struct ex_layout *
ex_layout_of(struct ex_layout_cache *layouts, const Dwarf_Die *type)
{
	return layout_get(layouts, *type, 0, 0);
}

const struct ex_layout *
ex_layout_target(const struct ex_layout *layout)
{
	Dwarf_Die pointer = layout->type, target;

	/* searching for a definition may take too long for a hit */
	return pointer.addr != NULL &&
	    ex_die_ref(&pointer, DW_AT_type, &target) && strip(&target) &&
	    !dwarf_hasattr(&target, DW_AT_declaration) ?
	    ex_layout_of(layout->layouts, &target) : &opaque;
}

/* --- what is inside --- */

/* The byte offset of a member.  Returns false if only the running program knows
   it, as with virtual base classes. */
static bool
member_offset(Dwarf_Die *die, uint64_t *offset)
{
	Dwarf_Attribute attr;
	Dwarf_Op *op;
	size_t n;

	*offset = 0;
	if (dwarf_attr(die, DW_AT_data_member_location, &attr) == NULL ||
	    ex_die_number(die, DW_AT_data_member_location, offset))
		return true;
	if (dwarf_getlocation(&attr, &op, &n) != 0 || n != 1 ||
	    op->atom != DW_OP_plus_uconst)
		return false;
	*offset = op->number;
	return true;
}

/*
 * The position of a bit-field is that of its lowest bit from the start of its
 * holder. In DWARF 3 it is the number of bits in its storage unit above the
 * highest one, which is negative if it extends beyond the unit (clang, packed).
 */
static bool
member_bits(Dwarf_Die *die, struct ex_member *member)
{
	uint64_t bits, above, unit, at;

	if (!ex_die_number(die, DW_AT_bit_size, &bits))
		return true;
	if (bits == 0 || bits > 128 || member->offset > UINT64_MAX / 16)
		return false;
	if (ex_die_number(die, DW_AT_bit_offset, &above)) {
		if (!ex_die_number(die, DW_AT_byte_size, &unit))
			unit = member->layout->size;
		if (unit > 16 || (above > unit * 8 && above + unit * 8 > above))
			return false;
		at = unit * 8 - above - bits;
		if (at > unit * 16)
			return false;
	} else if (!ex_die_number(die, DW_AT_data_bit_offset, &at) ||
	    at > UINT64_MAX / 2)
		return false;
	member->bit = member->offset * 8 + at;
	member->offset = member->bit / 8;
	member->bits = (unsigned)bits;
	return true;
}

/* Whether a member lies within its holder. */
static bool
member_inside(const struct ex_layout *holder, const struct ex_member *member)
{
	uint64_t size = member->layout->size;

	if (member->bits != 0)
		return member->bit <= holder->size * 8 &&
		    member->bits <= holder->size * 8 - member->bit;
	return member->offset <= holder->size &&
	    size <= holder->size - member->offset;
}

/* Static members are variables of their own. */
static bool
is_static(Dwarf_Die *die)
{
	return dwarf_hasattr(die, DW_AT_external) ||
	    dwarf_hasattr(die, DW_AT_declaration);
}

static bool
member_make(struct ex_layout *holder, Dwarf_Die *die, struct ex_member *member)
{
	*member = (struct ex_member){.name = NULL};
	if (dwarf_tag(die) == DW_TAG_member)
		member->name = dwarf_diename(die);
	if (!ex_die_ref(die, DW_AT_type, &member->type) ||
	    !member_offset(die, &member->offset))
		return false;
	member->layout = ex_layout_of(holder->layouts, &member->type);
	return holder->size <= UINT64_MAX / 8 && member_bits(die, member) &&
	    member_inside(holder, member);
}

static bool
add_member(struct ex_layout *layout, Dwarf_Die *die)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_member:
		if (is_static(die))
			return true;
		break;
	case DW_TAG_inheritance:
		break;
	case DW_TAG_variant_part:
		layout->partial = true;
		return true;
	default:
		return true;
	}
	if (!EX_ARRAY_ROOM(layout, member, CHILDREN_MAX))
		return false;
	if (member_make(layout, die, &layout->member[layout->n]))
		layout->n++;
	else
		layout->partial = true;
	return true;
}

static uint64_t
cut(uint64_t value, uint64_t size)
{
	return size >= 8 ? value : value & ((UINT64_C(1) << (size * 8)) - 1);
}

static bool
add_enumerator(struct ex_layout *layout, Dwarf_Die *die)
{
	struct ex_enumerator *e;

	if (dwarf_tag(die) != DW_TAG_enumerator)
		return true;
	if (!EX_ARRAY_ROOM(layout, enumerator, CHILDREN_MAX))
		return false;
	e = &layout->enumerator[layout->n];
	if ((e->name = dwarf_diename(die)) == NULL ||
	    !ex_die_number(die, DW_AT_const_value, &e->value))
		return true;
	e->value = cut(e->value, layout->size);
	layout->n++;
	return true;
}

/*
 * Whether values may combine several enumerators, because each of those has
 * bits of its own (or a mask of neighbouring bits).  Enumerations with only 0,
 * 1, 2 or 1, 2 count as numbers: there has to be a higher bit.
 */
static bool
is_flags(const struct ex_layout *layout)
{
	uint64_t seen = 0;

	for (size_t i = 0; i < layout->n; i++) {
		uint64_t v = layout->enumerator[i].value;
		uint64_t low = v & (0 - v);

		if ((v & seen) != 0 || (v & (v + low)) != 0)
			return false;
		seen |= v;
	}
	return seen > 3;
}

static void
fill(struct ex_layout *layout)
{
	bool (*add)(struct ex_layout *, Dwarf_Die *) =
	    layout->kind == EX_ENUM ? add_enumerator : add_member;
	Dwarf_Die child;

	layout->filled = true;
	if (dwarf_child(&layout->type, &child) != 0)
		return;
	do {
		if (!add(layout, &child)) {
			layout->partial = true;
			break;
		}
	} while (ex_die_next(&child));
	layout->flags = layout->kind == EX_ENUM && is_flags(layout);
}

size_t
ex_layout_members(const struct ex_layout *layout, const struct ex_member **out)
{
	if (!layout->filled)	/* the caller sees no change */
		fill((struct ex_layout *)(uintptr_t)layout);
	*out = layout->member;
	return layout->n;
}

/* Bounds of a walk through base classes. */
enum { BASES_DEEP = 16, BASES_MAX = 4096 };

static bool
is_whole(const struct ex_layout *layout, unsigned depth, unsigned *trials)
{
	const struct ex_member *member;
	size_t n;

	if (layout->kind != EX_STRUCT)
		return true;
	n = ex_layout_members(layout, &member);
	if (layout->partial || depth == BASES_DEEP)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (member[i].name != NULL)
			continue;
		if (*trials == 0)
			return false;
		--*trials;
		if (!is_whole(member[i].layout, depth + 1, trials))
			return false;
	}
	return true;
}

bool
ex_layout_is_whole(const struct ex_layout *layout)
{
	unsigned trials = BASES_MAX;

	return is_whole(layout, 0, &trials);
}

size_t
ex_layout_enumerators(const struct ex_layout *layout,
    const struct ex_enumerator **out)
{
	if (!layout->filled)
		fill((struct ex_layout *)(uintptr_t)layout);
	*out = layout->enumerator;
	return layout->n;
}

bool
ex_layout_enumerator(const struct ex_layout *layout, const char *name,
    uint64_t *value)
{
	const struct ex_enumerator *e;
	const size_t n = ex_layout_enumerators(layout, &e);

	for (size_t i = 0; i < n; i++) {
		if (strcmp(e[i].name, name) == 0) {
			*value = e[i].value;
			return true;
		}
	}
	return false;
}
