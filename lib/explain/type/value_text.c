/*
 * value_text: values as the source would write them.
 *
 * A structure that contains itself, or a union of unions, cannot make this take
 * long: the depth is limited, and it ends when the text is full.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "module/module_private.h"
#include "space/space.h"
#include "symbol/symbol.h"
#include "type/declared_object.h"
#include "type/subobject.h"

enum {
	NESTED_MAX = 8,		/* structures in each other */
	BYTES_MAX = 32,		/* of a structure or array with a text */
};

struct writer {
	struct ex_process *process;
	char *text;
	size_t size, len;	/* len < size */
	bool full;
};

static bool put_layout(struct writer *, const struct ex_layout *,
    const uint8_t *bytes, uint64_t size, unsigned nested);

/* --- text; without printf, as this is done for every hit --- */

static void
put_chars(struct writer *w, const char *text, size_t len)
{
	size_t room = w->size - 1 - w->len;

	if (len > room) {
		w->full = true;
		len = room;
	}
	memcpy(w->text + w->len, text, len);
	w->len += len;
	w->text[w->len] = '\0';
}

static void
put(struct writer *w, const char *text)
{
	put_chars(w, text, strlen(text));
}

static void
put_dec(struct writer *w, uint64_t value)
{
	char digits[24];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value != 0);
	put_chars(w, digits + at, sizeof(digits) - at);
}

static void
put_hex(struct writer *w, uint64_t value)
{
	char digits[24];
	size_t at = sizeof(digits);

	do {
		digits[--at] = "0123456789abcdef"[value % 16];
		value /= 16;
	} while (value != 0);
	digits[--at] = 'x';
	digits[--at] = '0';
	put_chars(w, digits + at, sizeof(digits) - at);
}

/* --- numbers --- */

static void
put_number(struct writer *w, bool is_signed, uint64_t value, unsigned bits)
{
	uint64_t sign = UINT64_C(1) << (bits - 1);

	if (is_signed && (value & sign) != 0) {
		put(w, "-");
		value = sign - (value ^ sign);
	}
	put_dec(w, value);
}

static void
put_wide(struct writer *w, const struct ex_layout *layout, const uint8_t *bytes)
{
	unsigned __int128 value;
	char digits[40];
	size_t at = sizeof(digits);

	memcpy(&value, bytes, sizeof(value));
	if (layout->is_signed && value >> 127 != 0) {
		put(w, "-");
		value = 0 - value;
	}
	do {
		digits[--at] = "0123456789"[value % 10];
		value /= 10;
	} while (value != 0);
	put_chars(w, digits + at, sizeof(digits) - at);
}

/* The short form in which C writes a character; NULL: it has none. */
static const char *
escaped(uint64_t value, char quote, char room[3])
{
	static const char names[] = "\aa\bb\tt\nn\vv\ff\rr";
	const char *name;

	if (value == 0 || value >= 0x7f)
		return NULL;
	room[0] = '\\';
	room[1] = (char)value;
	room[2] = '\0';
	if (value == (uint64_t)quote || value == '\\')
		return room;
	if (isprint((int)value))
		return room + 1;
	if ((name = strchr(names, (int)value)) == NULL)
		return NULL;
	room[1] = name[1];
	return room;
}

/* Put a character in quotes.  False: it has no short form. */
static bool
put_quoted(struct writer *w, uint64_t value)
{
	char room[3];
	const char *text = value == 0 ? "\\0" : escaped(value, '\'', room);

	if (text == NULL)
		return false;
	put(w, "'");
	put(w, text);
	put(w, "'");
	return true;
}

/* The char types that programs also use for small numbers are shown as
   characters only if these are printable. */
static void
put_char(struct writer *w, const struct ex_layout *layout, uint64_t value,
    unsigned bits)
{
	bool plain = layout->name != NULL && strcmp(layout->name, "char") == 0;
	bool quoted = (plain || (value < 0x7f && isprint((int)value))) &&
	    put_quoted(w, value);

	if (quoted)
		put(w, " (");
	put_number(w, layout->is_signed, value, bits);
	if (quoted)
		put(w, ")");
}

static void
put_utf(struct writer *w, uint64_t value)
{
	char text[32];

	if (put_quoted(w, value)) {
		put(w, " (");
		put_dec(w, value);
		put(w, ")");
		return;
	}
	(void)snprintf(text, sizeof(text), "U+%04" PRIX64, value);
	put(w, text);
}

static void
put_enum(struct writer *w, const struct ex_layout *layout, uint64_t value,
    unsigned bits)
{
	const struct ex_enumerator *e;
	size_t n = ex_layout_enumerators(layout, &e);
	uint64_t mask = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
	uint64_t left = value;
	const char *or = "";

	for (size_t i = 0; i < n; i++) {
		if ((e[i].value & mask) == value) {
			put(w, e[i].name);
			return;
		}
	}
	for (size_t i = 0; i < n && layout->flags; i++) {
		if (e[i].value != 0 && (left & e[i].value) == e[i].value) {
			put(w, or);
			put(w, e[i].name);
			left &= ~e[i].value;
			or = " | ";
		}
	}
	if (left == value)
		put_number(w, layout->is_signed, value, bits);
	else if (left != 0) {
		put(w, or);
		put_hex(w, left);
	}
}

/* " <name+4>" */
static void
put_place(struct writer *w, const char *name, uint64_t offset)
{
	put(w, " <");
	put(w, name);
	if (offset != 0) {
		put(w, "+");
		put_dec(w, offset);
	}
	put(w, ">");
}

/* Put the name of what a pointer into a module's code points to. */
static void
put_code(struct writer *w, struct ex_module *m, uint64_t vaddr)
{
	const struct ex_frames *frames = ex_symbol_frames(m, vaddr, vaddr);
	const struct ex_frame *frame;

	if (frames == NULL || frames->n == 0)
		return;
	frame = &frames->frame[frames->n - 1];
	if (frame->function == NULL)
		return;
	put_place(w, frame->function, frame->offset);
}

/* Put the name of what a pointer to a module's data points to: the beginning of
   a symbol, else an object of the size of the pointer's type, else a place
   behind a symbol. */
static void
put_data(struct writer *w, struct ex_module *m, uint64_t vaddr,
    const struct ex_symbol *symbol, uint64_t size)
{
	uint64_t offset = symbol != NULL ? vaddr - symbol->value : 1;
	struct ex_subobject sub;
	char *owned = NULL;

	if (offset != 0 && size != 0 && ex_subobject_find(m, vaddr, size, &sub))
		put_place(w, sub.path, vaddr - sub.vaddr);
	else if (symbol != NULL && (offset == 0 || symbol->size != 0))
		put_place(w, ex_demangle(symbol->name, &owned), offset);
	free(owned);
}

static void
put_pointer(struct writer *w, const struct ex_layout *layout, uint64_t value)
{
	struct ex_module *m;
	struct ex_symbol symbol;
	uint64_t vaddr;
	bool found;

	if (value == 0) {
		put(w, "NULL");
		return;
	}
	put_hex(w, value);
	if ((m = ex_process_module(w->process, value, &vaddr)) == NULL)
		return;
	found = ex_symbol_at(m, vaddr, &symbol);
	if (found ? symbol.function : ex_module_segment(m, vaddr) != NULL &&
	    (ex_module_segment(m, vaddr)->flags & PF_X) != 0)
		put_code(w, m, vaddr);
	else
		put_data(w, m, vaddr, found ? &symbol : NULL,
		    ex_layout_target(layout)->size);
}

/* Put a number of some bits.  False: the type is not that of a number. */
static bool
put_scalar(struct writer *w, const struct ex_layout *layout, uint64_t value,
    unsigned bits)
{
	if (bits == 0 || bits > 64)
		return false;
	switch (layout->kind) {
	case EX_SIGNED:
	case EX_UNSIGNED:
		put_number(w, layout->is_signed, value, bits);
		return true;
	case EX_BOOL:
		if (value <= 1)
			put(w, value == 1 ? "true" : "false");
		else
			put_number(w, false, value, bits);
		return true;
	case EX_CHAR:
		put_char(w, layout, value, bits);
		return true;
	case EX_UTF:
		put_utf(w, value);
		return true;
	case EX_ENUM:
		put_enum(w, layout, value, bits);
		return true;
	case EX_POINTER:
		put_pointer(w, layout, value);
		return true;
	default:
		return false;
	}
}

/* --- floating point: the fewest digits that read back as the same --- */

static bool
put_float(struct writer *w, const char *name, const uint8_t *bytes,
    uint64_t size)
{
	char text[64];
	float f;
	double d;
	long double l;
	int digits;

	switch (size) {
	case sizeof(f):
		memcpy(&f, bytes, sizeof(f));
		for (digits = 6; digits <= 9; digits++) {
			(void)snprintf(text, sizeof(text), "%.*g", digits,
			    (double)f);
			if (strtof(text, NULL) == f)
				break;
		}
		break;
	case sizeof(d):
		memcpy(&d, bytes, sizeof(d));
		for (digits = 15; digits <= 17; digits++) {
			(void)snprintf(text, sizeof(text), "%.*g", digits, d);
			if (strtod(text, NULL) == d)
				break;
		}
		break;
	case sizeof(l):
		if (name == NULL || (strstr(name, "long double") == NULL &&
		    strcmp(name, "_Float64x") != 0))
			return false;
		memcpy(&l, bytes, sizeof(l));
		for (digits = 18; digits <= 36; digits++) {
			(void)snprintf(text, sizeof(text), "%.*Lg", digits, l);
			if (strtold(text, NULL) == l)
				break;
		}
		break;
	default:
		return false;
	}
	put(w, text);
	return true;
}

static bool
put_complex(struct writer *w, const struct ex_layout *layout,
    const uint8_t *bytes)
{
	uint64_t half = layout->size / 2;

	if (!put_float(w, layout->name, bytes, half))
		return false;
	put(w, " + ");
	if (!put_float(w, layout->name, bytes + half, half))
		return false;
	put(w, "i");
	return true;
}

/* --- structures and arrays --- */

/* Whether a member's bits lie in these bytes. */
static bool
bits_inside(const struct ex_member *m, uint64_t within, uint64_t size)
{
	return m->bit / 8 >= within &&
	    (m->bit + m->bits - 1) / 8 - within < size;
}

static bool
put_field(struct writer *w, const struct ex_member *m, uint64_t within,
    const uint8_t *bytes, uint64_t size)
{
	return m->bits <= 64 && bits_inside(m, within, size) &&
	    put_scalar(w, m->layout,
	    ex_bits(bytes, m->bit - within * 8, m->bits), m->bits);
}

/* Put a member's name; *comma goes before it, and is set for the next one. */
static void
put_name(struct writer *w, const char **comma, const char *name)
{
	put(w, *comma);
	put(w, name);
	put(w, " = ");
	*comma = ", ";
}

/* Put the members of a structure, including those of base classes and of
   unnamed members. */
static bool
put_members(struct writer *w, const struct ex_layout *layout,
    const uint8_t *bytes, uint64_t size, unsigned nested, const char **comma)
{
	const struct ex_member *member;
	size_t n = ex_layout_members(layout, &member);
	bool known = !layout->partial;

	for (size_t i = 0; i < n && known && !w->full; i++) {
		const struct ex_member *m = &member[i];
		uint64_t len = ex_member_size(m, size);

		if (m->name == NULL && m->bits == 0 &&
		    m->layout->kind == EX_STRUCT && nested < NESTED_MAX) {
			known = put_members(w, m->layout, bytes + m->offset,
			    len, nested + 1, comma);
			continue;
		}
		put_name(w, comma, m->name != NULL ? m->name : "");
		known = m->bits != 0 ? put_field(w, m, 0, bytes, size) :
		    put_layout(w, m->layout, bytes + m->offset, len, nested +
		    1);
	}
	return known;
}

/* Put the bit-fields that these bytes of a structure contain. */
static bool
put_fields(struct writer *w, const struct ex_layout *layout, uint64_t within,
    const uint8_t *bytes, uint64_t size)
{
	const struct ex_member *m;
	size_t n = ex_layout_members(layout, &m);
	const char *comma = "{";

	for (size_t i = 0; i < n; i++) {
		if (m[i].bits == 0 || m[i].name == NULL ||
		    !bits_inside(&m[i], within, size))
			continue;
		put_name(w, &comma, m[i].name);
		if (!put_field(w, &m[i], within, bytes, size))
			return false;
	}
	put(w, "}");
	return *comma == ',';
}

/* Put the characters up to the last one that is not NUL. */
static void
put_string(struct writer *w, const uint8_t *bytes, uint64_t size)
{
	while (size > 0 && bytes[size - 1] == '\0')
		size--;
	put(w, "\"");
	for (uint64_t i = 0; i < size; i++) {
		char room[8];
		const char *text = escaped(bytes[i], '"', room);

		if (text == NULL) {
			(void)snprintf(room, sizeof(room), "\\%03o",
			    (unsigned)bytes[i]);
			text = room;
		}
		put(w, text);
	}
	put(w, "\"");
}

static bool
put_array(struct writer *w, const struct ex_layout *layout,
    const uint8_t *bytes,
    uint64_t size, unsigned nested)
{
	const struct ex_layout *element = layout->element;
	const char *comma = "{";

	if (element->kind == EX_CHAR && element->name != NULL &&
	    strcmp(element->name, "char") == 0) {
		put_string(w, bytes, size);
		return true;
	}
	for (uint64_t at = 0; size - at >= element->size && !w->full;
	    at += element->size) {
		put(w, comma);
		comma = ", ";
		if (!put_layout(w, element, bytes + at, element->size,
		    nested + 1))
			return false;
	}
	put(w, *comma == '{' ? "{}" : "}");
	return true;
}

static bool
put_layout(struct writer *w, const struct ex_layout *layout,
    const uint8_t *bytes,
    uint64_t size, unsigned nested)
{
	const char *comma = "";
	bool known;

	if (nested > NESTED_MAX)
		return false;
	switch (layout->kind) {
	case EX_OPAQUE:
		return false;
	case EX_FLOAT:
		return put_float(w, layout->name, bytes, size);
	case EX_COMPLEX:
		return put_complex(w, layout, bytes);
	case EX_STRUCT:
		if (size > BYTES_MAX)
			return false;
		put(w, "{");
		known = put_members(w, layout, bytes, size, nested, &comma);
		put(w, "}");
		return known;
	case EX_ARRAY:
		return size <= BYTES_MAX &&
		    put_array(w, layout, bytes, size, nested);
	case EX_STRING:
		if (size > BYTES_MAX)
			return false;
		put_string(w, bytes, size);
		return true;
	default:
		if (layout->size > sizeof(uint64_t)) {
			put_wide(w, layout, bytes);
			return true;
		}
		return put_scalar(w, layout, ex_bits(bytes, 0,
		    (unsigned)layout->size * 8), (unsigned)layout->size * 8);
	}
}

bool
ex_object_text(struct ex_process *process, const struct ex_object *object,
    const uint8_t *bytes, char *text, size_t size)
{
	static const char more[] = "...";
	struct writer w = {.process = process, .text = text, .size = size};
	bool known;

	if (size < sizeof(more))
		return false;
	if (object->field != NULL)
		known = put_field(&w, object->field, object->within, bytes,
		    object->size);
	else if (object->fields)
		known = put_fields(&w, object->layout, object->within, bytes,
		    object->size);
	else
		known = put_layout(&w, object->layout, bytes, object->size, 0);
	if (known && w.full)
		memcpy(text + size - sizeof(more), more, sizeof(more));
	return known;
}
