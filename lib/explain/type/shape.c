/* shape: types reduced to what their values need. */
#include "type/shape.h"

#include <dwarf.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "module/die.h"
#include "type/definition.h"
#include "base/array.h"

enum {
	NAMES_MAX = 64,		/* typedefs and qualifiers of each other */
	NESTED_MAX = 16,	/* arrays of arrays */
	CHILDREN_MAX = 1 << 16,	/* members or enumerators */
};

struct ex_shapes {
	void *tree;		/* of search.h, by type and dimension */
	struct ex_definitions *definitions;
};

static const struct ex_shape opaque = {.kind = EX_OPAQUE, .filled = true};

static int
shape_compare(const void *pa, const void *pb)
{
	const struct ex_shape *a = pa, *b = pb;
	uintptr_t x = (uintptr_t)a->type.addr, y = (uintptr_t)b->type.addr;

	if (x != y)
		return x < y ? -1 : 1;
	return (a->dimension > b->dimension) - (a->dimension < b->dimension);
}

static void
shape_free(void *p)
{
	struct ex_shape *shape = p;

	free(shape->member);
	free(shape->enumerator);
	free(shape);
}

struct ex_shapes *
ex_shapes_new(struct ex_module *m)
{
	struct ex_shapes *shapes = calloc(1, sizeof(*shapes));

	if (shapes == NULL)
		return NULL;
	if ((shapes->definitions = ex_definitions_new(m)) == NULL) {
		free(shapes);
		return NULL;
	}
	return shapes;
}

void
ex_shapes_free(struct ex_shapes *shapes)
{
	if (shapes == NULL)
		return;
	tdestroy(shapes->tree, shape_free);
	ex_definitions_free(shapes->definitions);
	free(shapes);
}

/* Step from names for a type, and from a declaration of it, to the type.
   False: there is nothing behind them. */
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
base_shape(struct ex_shape *shape)
{
	uint64_t encoding, order;
	bool number;

	shape->name = dwarf_diename(&shape->type);
	shape->size = byte_size(&shape->type);
	number = shape->size >= 1 && shape->size <= 8;
	if (!ex_die_number(&shape->type, DW_AT_encoding, &encoding) ||
	    (ex_die_number(&shape->type, DW_AT_endianity, &order) &&
	    order == DW_END_big))
		return;
	switch (encoding) {
	case DW_ATE_signed_char:
	case DW_ATE_unsigned_char:
		shape->is_signed = encoding == DW_ATE_signed_char;
		if (shape->size == 1) {
			shape->kind = EX_CHAR;
			break;
		}
		/* FALLTHROUGH */
	case DW_ATE_signed:
	case DW_ATE_unsigned:
		shape->is_signed |= encoding == DW_ATE_signed;
		if (number || shape->size == 16)
			shape->kind = shape->is_signed ? EX_SIGNED :
			    EX_UNSIGNED;
		break;
	case DW_ATE_boolean:
		if (number)
			shape->kind = EX_BOOL;
		break;
	case DW_ATE_UTF:
		if (number)
			shape->kind = EX_UTF;
		break;
	case DW_ATE_float:
	case DW_ATE_imaginary_float:
		shape->kind = EX_FLOAT;
		break;
	case DW_ATE_complex_float:
		shape->kind = EX_COMPLEX;
		break;
	default:
		break;
	}
}

static void
enum_shape(struct ex_shape *shape)
{
	Dwarf_Die base;
	uint64_t encoding;

	shape->size = byte_size(&shape->type);
	if (ex_die_ref(&shape->type, DW_AT_type, &base) && strip(&base)) {
		if (shape->size == 0)
			shape->size = byte_size(&base);
		shape->is_signed = ex_die_number(&base, DW_AT_encoding,
		    &encoding) && (encoding == DW_ATE_signed ||
		    encoding == DW_ATE_signed_char);
	}
	if (shape->size >= 1 && shape->size <= 8)
		shape->kind = EX_ENUM;
}

static void
pointer_shape(struct ex_shape *shape)
{
	Dwarf_Die unit;
	uint8_t size = 0;

	shape->size = byte_size(&shape->type);
	if (shape->size == 0 &&
	    dwarf_diecu(&shape->type, &unit, &size, NULL) != NULL)
		shape->size = size;
	if (shape->size >= 1 && shape->size <= 8)
		shape->kind = EX_POINTER;
}

static const struct ex_shape *shape_get(struct ex_shapes *, Dwarf_Die type,
    unsigned dimension, unsigned nested);

/* Read one dimension of an array: its first index, and how many it has, if it
   says so. */
static void
array_bounds(struct ex_shape *shape, Dwarf_Die *range)
{
	uint64_t last;

	shape->open = true;
	shape->count = 0;
	if (dwarf_tag(range) != DW_TAG_subrange_type)
		return;
	shape->first = ex_die_lower_bound(range);
	if (ex_die_number(range, DW_AT_count, &shape->count))
		shape->open = shape->count == 0;
	else if (ex_die_number(range, DW_AT_upper_bound, &last) &&
	    last >= shape->first && last - shape->first < INT64_MAX) {
		shape->count = last - shape->first + 1;
		shape->open = false;
	}
}

/* The dimension that this shape is of, and whether there are more. */
static bool
array_dimension(struct ex_shape *shape, bool *more)
{
	unsigned dimension = 0;
	Dwarf_Die child;
	bool found = false;

	*more = false;
	if (dwarf_child(&shape->type, &child) != 0)
		return false;
	do {
		unsigned tag = (unsigned)dwarf_tag(&child);

		if (tag != DW_TAG_subrange_type &&
		    tag != DW_TAG_enumeration_type)
			continue;
		if (dimension == shape->dimension) {
			array_bounds(shape, &child);
			found = true;
		} else if (dimension > shape->dimension)
			*more = true;
		dimension++;
	} while (!*more && ex_die_next(&child));
	return found;
}

static void
array_shape(struct ex_shape *shape, unsigned nested)
{
	uint64_t size;
	Dwarf_Die of;
	bool more;

	/* Fortran: its elements may lie elsewhere */
	if (nested >= NESTED_MAX ||
	    dwarf_hasattr(&shape->type, DW_AT_data_location) ||
	    !array_dimension(shape, &more) ||
	    !ex_die_ref(&shape->type, DW_AT_type, &of))
		return;
	shape->element = more ? shape_get(shape->shapes, shape->type,
	    shape->dimension + 1, nested + 1) :
	    shape_get(shape->shapes, of, 0, nested + 1);
	if (shape->element->size == 0 || __builtin_mul_overflow(
	    shape->element->size, shape->count, &size))
		return;
	shape->size = size;
	shape->kind = EX_ARRAY;
}

static void
shape_make(struct ex_shape *shape, unsigned nested)
{
	switch (dwarf_tag(&shape->type)) {
	case DW_TAG_base_type:
		base_shape(shape);
		break;
	case DW_TAG_enumeration_type:
		enum_shape(shape);
		break;
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		pointer_shape(shape);
		break;
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
		if ((shape->size = byte_size(&shape->type)) > 0)
			shape->kind = EX_STRUCT;
		shape->is_union =
		    dwarf_tag(&shape->type) == DW_TAG_union_type;
		break;
	case DW_TAG_array_type:
		array_shape(shape, nested);
		break;
	case DW_TAG_string_type:
		shape->size = byte_size(&shape->type);
		if (!dwarf_hasattr(&shape->type, DW_AT_string_length))
			shape->kind = EX_STRING;
		break;
	default:
		shape->size = byte_size(&shape->type);
		break;
	}
}

/* It is put into the tree before it is made: an array of itself then has
   elements of no size. */
static const struct ex_shape *
shape_get(struct ex_shapes *shapes, Dwarf_Die type, unsigned dimension,
    unsigned nested)
{
	struct ex_shape key, *shape, **found;
	Dwarf_Die definition;

	if (!strip(&type))
		return &opaque;
	if (ex_definition_find(shapes->definitions, &type, &definition))
		type = definition;
	key = (struct ex_shape){.type = type, .dimension = dimension};
	if ((found = tfind(&key, &shapes->tree, shape_compare)) != NULL)
		return *found;
	if ((shape = malloc(sizeof(*shape))) == NULL)
		return &opaque;
	*shape = key;
	shape->shapes = shapes;
	if (tsearch(shape, &shapes->tree, shape_compare) == NULL) {
		free(shape);
		return &opaque;
	}
	shape_make(shape, nested);
	return shape;
}

const struct ex_shape *
ex_shape_of(struct ex_shapes *shapes, const Dwarf_Die *type)
{
	return shape_get(shapes, *type, 0, 0);
}

const struct ex_shape *
ex_shape_target(const struct ex_shape *shape)
{
	Dwarf_Die pointer = shape->type, target;

	/* looking for a definition may take too long for a hit */
	return ex_die_ref(&pointer, DW_AT_type, &target) && strip(&target) &&
	    !dwarf_hasattr(&target, DW_AT_declaration) ?
	    ex_shape_of(shape->shapes, &target) : &opaque;
}

/* --- what is inside --- */

/* Where a member begins, in bytes.  False: only the running program knows, as
   with virtual base classes. */
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
 * A bit-field says where its lowest bit is, counted from its holder's start; or
 * (DWARF 3) how many bits of its storage unit lie above its highest one: less
 * than none where it goes on beyond the unit (clang, packed).
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
			unit = member->shape->size;
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

/* Whether it lies inside of its holder. */
static bool
member_inside(const struct ex_shape *holder, const struct ex_member *member)
{
	uint64_t size = member->shape->size;

	if (member->bits != 0)
		return member->bit <= holder->size * 8 &&
		    member->bits <= holder->size * 8 - member->bit;
	return member->offset <= holder->size &&
	    size <= holder->size - member->offset;
}

/* Static members are variables elsewhere. */
static bool
is_static(Dwarf_Die *die)
{
	return dwarf_hasattr(die, DW_AT_external) ||
	    dwarf_hasattr(die, DW_AT_declaration);
}

static bool
member_make(struct ex_shape *holder, Dwarf_Die *die, struct ex_member *member)
{
	*member = (struct ex_member){.name = NULL};
	if (dwarf_tag(die) == DW_TAG_member)
		member->name = dwarf_diename(die);
	if (!ex_die_ref(die, DW_AT_type, &member->type) ||
	    !member_offset(die, &member->offset))
		return false;
	member->shape = ex_shape_of(holder->shapes, &member->type);
	return holder->size <= UINT64_MAX / 8 && member_bits(die, member) &&
	    member_inside(holder, member);
}

static bool
add_member(struct ex_shape *shape, Dwarf_Die *die)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_member:
		if (is_static(die))
			return true;
		break;
	case DW_TAG_inheritance:
		break;
	case DW_TAG_variant_part:
		shape->partial = true;
		return true;
	default:
		return true;
	}
	if (!EX_ARRAY_ROOM(shape, member, CHILDREN_MAX))
		return false;
	if (member_make(shape, die, &shape->member[shape->n]))
		shape->n++;
	else
		shape->partial = true;
	return true;
}

static uint64_t
cut(uint64_t value, uint64_t size)
{
	return size >= 8 ? value : value & ((UINT64_C(1) << (size * 8)) - 1);
}

static bool
add_enumerator(struct ex_shape *shape, Dwarf_Die *die)
{
	struct ex_enumerator *e;

	if (dwarf_tag(die) != DW_TAG_enumerator)
		return true;
	if (!EX_ARRAY_ROOM(shape, enumerator, CHILDREN_MAX))
		return false;
	e = &shape->enumerator[shape->n];
	if ((e->name = dwarf_diename(die)) == NULL ||
	    !ex_die_number(die, DW_AT_const_value, &e->value))
		return true;
	e->value = cut(e->value, shape->size);
	shape->n++;
	return true;
}

/*
 * Whether values may be several enumerators together: all are bits (or masks of
 * neighbouring bits) of their own.  0, 1, 2 and 1, 2 are, and count as numbers:
 * it takes a bit beyond those.
 */
static bool
is_flags(const struct ex_shape *shape)
{
	uint64_t seen = 0;

	for (size_t i = 0; i < shape->n; i++) {
		uint64_t v = shape->enumerator[i].value;
		uint64_t low = v & (0 - v);

		if ((v & seen) != 0 || (v & (v + low)) != 0)
			return false;
		seen |= v;
	}
	return seen > 3;
}

static void
fill(struct ex_shape *shape)
{
	bool (*add)(struct ex_shape *, Dwarf_Die *) =
	    shape->kind == EX_ENUM ? add_enumerator : add_member;
	Dwarf_Die child;

	shape->filled = true;
	if (dwarf_child(&shape->type, &child) != 0)
		return;
	do {
		if (!add(shape, &child)) {
			shape->partial = true;
			break;
		}
	} while (ex_die_next(&child));
	shape->flags = shape->kind == EX_ENUM && is_flags(shape);
}

size_t
ex_shape_members(const struct ex_shape *shape, const struct ex_member **out)
{
	if (!shape->filled)	/* not a change that a caller could see */
		fill((struct ex_shape *)(uintptr_t)shape);
	*out = shape->member;
	return shape->n;
}

size_t
ex_shape_enumerators(const struct ex_shape *shape,
    const struct ex_enumerator **out)
{
	if (!shape->filled)
		fill((struct ex_shape *)(uintptr_t)shape);
	*out = shape->enumerator;
	return shape->n;
}
