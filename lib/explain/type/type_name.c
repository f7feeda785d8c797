/*
 * type_name: C's declarations, without a name in their middle.
 *
 * From a type the way leads over pointers, arrays and functions to what they
 * are made of.  Stars gather on the left, brackets and parameters on the right,
 * and the name at the end of the way goes in front of them.
 */
#include "type/type_name.h"

#include <dwarf.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "debug/die.h"
#include "module/module_private.h"

enum {
	STEPS_MAX = 64,		/* steps to the name */
	PARAMETERS_MAX = 16,	/* of a function */
	NESTED_MAX = 3,		/* nested function parameters */
	SIDE_MAX = 512,		/* characters on each side */
	LONG = 8192,		/* longer names are not shown */
};

struct naming {
	struct ex_module *module;
	bool tags;
	char left[SIDE_MAX + 1];	/* from start on, NUL-terminated */
	size_t start;
	char right[SIDE_MAX + 1];	/* up to end, NUL-terminated */
	size_t end;
	char qualifiers[64];	/* of the next part; each with a space */
	bool full;		/* something did not fit */
};

static const char *name_of(struct ex_module *, Dwarf_Die type,
    unsigned dimension, uint64_t slice, bool tags, unsigned nested);

static void
prepend(struct naming *naming, const char *text)
{
	size_t len = strlen(text);

	if (len > naming->start) {
		naming->full = true;
		return;
	}
	naming->start -= len;
	memcpy(naming->left + naming->start, text, len);
}

static void
append(struct naming *naming, const char *text)
{
	size_t len = strlen(text);

	if (len > SIDE_MAX - naming->end) {
		naming->full = true;
		return;
	}
	memcpy(naming->right + naming->end, text, len + 1);
	naming->end += len;
}

/* A qualifier belongs to the next part of the name; that of an array belongs to
   its elements, too. */
static void
qualify(struct naming *naming, const char *text)
{
	size_t len = strlen(naming->qualifiers), more = strlen(text);
	size_t at = strcmp(text, "const ") == 0 ? 0 : len; /* `const' comes
							      first by
							      convention */

	if (strstr(naming->qualifiers, text) != NULL ||
	    len + more >= sizeof(naming->qualifiers))
		return;
	memmove(naming->qualifiers + at + more, naming->qualifiers + at,
	    len + 1 - at);
	memcpy(naming->qualifiers + at, text, more);
}

/* A pointer or reference, followed by its qualifiers. */
static void
star(struct naming *naming, const char *text)
{
	size_t len = strlen(naming->qualifiers);

	if (len > 0) {
		if (naming->start == SIDE_MAX)	/* no space at the end */
			naming->qualifiers[len - 1] = '\0';
		prepend(naming, naming->qualifiers);
		naming->qualifiers[0] = '\0';
	}
	prepend(naming, text);
}

/* Brackets bind tighter than stars. */
static void
enclose(struct naming *naming)
{
	if (naming->start == SIDE_MAX || naming->left[naming->start] == '(')
		return;
	prepend(naming, "(");
	append(naming, ")");
}

static void
dimension_name(struct naming *naming, Dwarf_Die *range)
{
	uint64_t n;
	char text[32] = "[]";

	if (dwarf_tag(range) != DW_TAG_subrange_type)
		return;
	if (ex_die_number(range, DW_AT_count, &n) ||
	    (ex_die_number(range, DW_AT_upper_bound, &n) &&
	    (n -= ex_die_lower_bound(range) - 1) != 0))
		(void)snprintf(text, sizeof(text), "[%" PRIu64 "]", n);
	append(naming, text);
}

/* Append the dimensions of an array from this one on; a slice has one more. */
static void
array_name(struct naming *naming, Dwarf_Die *type, unsigned dimension,
    uint64_t slice)
{
	Dwarf_Die child;
	unsigned i = 0;
	char text[32];

	enclose(naming);
	if (dwarf_child(type, &child) != 0)
		return;
	do {
		if (i == dimension && slice != 0) {
			(void)snprintf(text, sizeof(text), "[%" PRIu64 "]",
			    slice);
			append(naming, text);
		} else if (i >= dimension)
			dimension_name(naming, &child);
		i++;
	} while (!naming->full && ex_die_next(&child));
}

/* Append a parameter.  Returns false if it is none. */
static bool
parameter_name(struct naming *naming, Dwarf_Die *die, unsigned nested)
{
	const char *name = "...";
	Dwarf_Die type;

	switch (dwarf_tag(die)) {
	case DW_TAG_formal_parameter:
		if (ex_die_ref(die, DW_AT_type, &type))
			name = name_of(naming->module, type, 0, 0,
			    naming->tags, nested + 1);
		break;
	case DW_TAG_unspecified_parameters:
		break;
	default:
		return false;
	}
	if (naming->right[naming->end - 1] != '(')
		append(naming, ", ");
	append(naming, name != NULL ? name : "...");
	return true;
}

static void
function_name(struct naming *naming, Dwarf_Die *type, unsigned nested)
{
	unsigned n = 0;
	Dwarf_Die child;

	enclose(naming);
	append(naming, "(");
	if (nested >= NESTED_MAX)
		append(naming, "...");
	else if (dwarf_child(type, &child) == 0) {
		do {
			n += parameter_name(naming, &child, nested);
		} while (n < PARAMETERS_MAX && !naming->full &&
		    ex_die_next(&child));
	}
	if (n == 0 && nested < NESTED_MAX &&
	    (!naming->tags || dwarf_hasattr(type, DW_AT_prototyped)))
		append(naming, "void");
	append(naming, ")");
}

static void
to_member(struct naming *naming, Dwarf_Die *type)
{
	Dwarf_Die of;
	const char *name = NULL;

	if (ex_die_ref(type, DW_AT_containing_type, &of))
		name = dwarf_diename(&of);
	if (name != NULL)
		name = ex_die_qualified(naming->module, &of, name);
	star(naming, "::*");
	prepend(naming, name != NULL ? name : "?");
}

/* Shorten a number's name, which gcc writes with all words. */
static const char *
short_name(const char *name)
{
	static const char *const names[][2] = {
		{"short int", "short"}, {"long int", "long"},
		{"long long int", "long long"},
		{"short unsigned int", "unsigned short"},
		{"long unsigned int", "unsigned long"},
		{"long long unsigned int", "unsigned long long"},
		{"__int128 unsigned", "unsigned __int128"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(name, names[i][0]) == 0)
			return names[i][1];
	}
	return name;
}

/* A character string of Fortran. */
static const char *
string_name(struct naming *naming, Dwarf_Die *type)
{
	char *text = ex_module_text(naming->module, 32);
	uint64_t size;

	if (text != NULL && !dwarf_hasattr(type, DW_AT_string_length) &&
	    ex_die_number(type, DW_AT_byte_size, &size))
		(void)snprintf(text, 32, "character*%" PRIu64, size);
	else if (text != NULL)
		(void)stpcpy(text, "character");
	return text;
}

/* The name that ends the walk, of a type that has one or should have one. */
static const char *
end_name(struct naming *naming, Dwarf_Die *type)
{
	const char *name, *what = "", *qualified;
	Dwarf_Die whole;
	char *text;

	/* defined in a type unit of its own */
	if (ex_die_ref(type, DW_AT_signature, &whole))
		type = &whole;
	name = dwarf_diename(type);
	if (name != NULL && strnlen(name, LONG) == LONG)
		name = "...";
	switch (dwarf_tag(type)) {
	case DW_TAG_base_type:
		return name != NULL ? short_name(name) : "?";
	case DW_TAG_string_type:
		if (name == NULL)
			return string_name(naming, type);
		break;
	case DW_TAG_structure_type:
		what = "struct ";
		break;
	case DW_TAG_class_type:
		what = "class ";
		break;
	case DW_TAG_union_type:
		what = "union ";
		break;
	case DW_TAG_enumeration_type:
		what = "enum ";
		break;
	default:
		break;
	}
	qualified = name == NULL ? "{...}" :
	    ex_die_qualified(naming->module, type, name);
	if (name != NULL && !naming->tags)
		return qualified;
	text = ex_module_text(naming->module,
	    strlen(what) + strlen(qualified));
	if (text != NULL)
		(void)stpcpy(stpcpy(text, what), qualified);
	return text;
}

/* Take one step.  Returns false at the end. */
static bool
step(struct naming *naming, Dwarf_Die *type, unsigned dimension, uint64_t slice,
    unsigned nested)
{
	const char *name;

	switch (dwarf_tag(type)) {
	case DW_TAG_const_type:
		qualify(naming, "const ");
		return true;
	case DW_TAG_volatile_type:
		qualify(naming, "volatile ");
		return true;
	case DW_TAG_restrict_type:
		qualify(naming, "restrict ");
		return true;
	case DW_TAG_atomic_type:
		qualify(naming, "_Atomic ");
		return true;
	case DW_TAG_pointer_type:
		if (dwarf_diename(type) != NULL)  /* Rust and Go name theirs */
			return false;
		star(naming, "*");
		return true;
	case DW_TAG_reference_type:
		star(naming, "&");
		return true;
	case DW_TAG_rvalue_reference_type:
		star(naming, "&&");
		return true;
	case DW_TAG_ptr_to_member_type:
		to_member(naming, type);
		return true;
	case DW_TAG_typedef:
		/* a library's internal name says nothing, so show what it
		   stands for */
		name = dwarf_diename(type);
		return name == NULL || ex_die_reserved(name);
	case DW_TAG_array_type:
		array_name(naming, type, dimension, slice);
		return true;
	case DW_TAG_subroutine_type:
		function_name(naming, type, nested);
		return true;
	default:
		return false;
	}
}

/* Join both sides.  NULL if there is no memory. */
static const char *
join(struct naming *naming, const char *end)
{
	const char *left = naming->left + naming->start;
	const char *space = *left != '\0' ? " " : "";
	const char *more = naming->full ? "..." : "";
	char *text = ex_module_text(naming->module,
	    strlen(naming->qualifiers) + strlen(end) + strlen(space) +
	    strlen(left) + naming->end + strlen(more));

	if (text != NULL)
		(void)stpcpy(stpcpy(stpcpy(stpcpy(stpcpy(stpcpy(text,
		    naming->qualifiers), end), space), left), naming->right),
		    more);
	return text;
}

static const char *
name_of(struct ex_module *m, Dwarf_Die type, unsigned dimension,
    uint64_t slice, bool tags, unsigned nested)
{
	struct naming naming = {
		.module = m, .tags = tags, .start = SIDE_MAX,
	};
	const char *end = "...";

	for (int i = 0; i < STEPS_MAX; i++) {
		if (!step(&naming, &type, dimension, slice, nested)) {
			end = end_name(&naming, &type);
			break;
		}
		dimension = 0;
		slice = 0;
		if (!ex_die_ref(&type, DW_AT_type, &type)) {
			end = "void";
			break;
		}
	}
	return end != NULL ? join(&naming, end) : NULL;
}

const char *
ex_type_name(struct ex_module *m, const Dwarf_Die *type, unsigned dimension,
    uint64_t slice, bool tags)
{
	return name_of(m, *type, dimension, slice, tags, 0);
}
