/* value_number: values as the numbers that C calculates with. */
#include <string.h>

#include "base/bytes.h"
#include "type/declared_object.h"
#include "type/type_layout.h"

static bool
float_number(const struct ex_layout *layout, const uint8_t *bytes,
    struct ex_number *out)
{
	long double l;
	double d;
	float f;

	*out = (struct ex_number){.is_float = true, .is_signed = true,
	    .size = (unsigned)layout->size};
	switch (layout->size) {
	case sizeof(f):
		memcpy(&f, bytes, sizeof(f));
		out->real = (long double)f;
		return true;
	case sizeof(d):
		memcpy(&d, bytes, sizeof(d));
		out->real = (long double)d;
		return true;
	case sizeof(l):
		/* other types of this size have another format */
		if (layout->name == NULL ||
		    strstr(layout->name, "long double") == NULL)
			return false;
		memcpy(&l, bytes, sizeof(l));
		out->real = l;
		return true;
	default:
		return false;
	}
}

/* The size of a number; some debug information omits that of pointers. */
static unsigned
size_of(const struct ex_layout *layout)
{
	const uint64_t size = layout->size;

	return size == 1 || size == 2 || size == 4 || size == 8 ?
	    (unsigned)size : 0;
}

/* A bit-field that fits an int is promoted to int. */
static bool
field_number(const struct ex_object *object, const uint8_t *bytes,
    struct ex_number *out)
{
	const struct ex_member *m = object->field;
	const unsigned bits = m->bits, size = size_of(m->layout);
	const bool is_signed = m->layout->is_signed;
	uint64_t value;

	if (size == 0 || bits == 0 || bits > 64 ||
	    m->bit / 8 < object->within ||
	    (m->bit + bits - 1) / 8 - object->within >= object->size)
		return false;
	value = ex_bits(bytes, m->bit - object->within * 8, bits);
	if (is_signed && bits < 64 && value >> (bits - 1) != 0)
		value |= UINT64_MAX << bits;
	*out = bits < 32 ? ex_number_integer(value, sizeof(int), true) :
	    ex_number_integer(value, size, is_signed);
	return true;
}

static bool
is_integer(const struct ex_layout *layout)
{
	return layout->kind == EX_POINTER || ex_kind_is_integer(layout->kind);
}

bool
ex_object_number(const struct ex_object *object, const uint8_t *bytes,
    struct ex_number *out)
{
	const struct ex_layout *layout = object->layout;

	if (object->field != NULL)
		return is_integer(object->field->layout) &&
		    field_number(object, bytes, out);
	if (object->fields || layout == NULL || layout->size != object->size)
		return false;
	if (layout->kind == EX_FLOAT)
		return float_number(layout, bytes, out);
	if (!is_integer(layout) || size_of(layout) == 0)
		return false;
	*out = ex_number_integer(ex_bits(bytes, 0, 8 * size_of(layout)),
	    size_of(layout), layout->is_signed);
	return true;
}

/* NULL if it has more than one type. */
static const struct ex_layout *
layout_of(const struct ex_object *object)
{
	return object->field != NULL ? object->field->layout :
	    object->fields ? NULL : object->layout;
}

bool
ex_object_is_number(const struct ex_object *object)
{
	const struct ex_layout *layout = layout_of(object);

	return layout != NULL && (is_integer(layout) ||
	    layout->kind == EX_FLOAT);
}

bool
ex_object_enumerator(const struct ex_object *object, const char *name,
    struct ex_number *out)
{
	const struct ex_layout *layout = layout_of(object);
	uint64_t value;

	if (layout == NULL || layout->kind != EX_ENUM || size_of(layout) == 0 ||
	    !ex_layout_enumerator(layout, name, &value))
		return false;
	*out = ex_number_integer(value, size_of(layout), layout->is_signed);
	return true;
}
