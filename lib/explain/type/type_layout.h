/*
 * type_layout: reduces a type to what its values need: the kind of number, the
 * members and their offsets.  It is made once from debug information, and kept
 * for its module.
 *
 * Type names that only matter to readers (typedef) or compilers (const,
 * volatile, _Atomic) have no layout of their own.  Members and enumerators are
 * read on first use, so types may refer to each other in circles.
 */
#ifndef EX_TYPE_LAYOUT_H
#define EX_TYPE_LAYOUT_H

#include <elfutils/libdw.h>

#include "module/module.h"

enum ex_kind {
	EX_OPAQUE,	/* nothing is known of its values */
	EX_SIGNED,	/* numbers of 1 to 8, or 16 bytes */
	EX_UNSIGNED,
	EX_BOOL,
	EX_CHAR,	/* one byte that may be a character */
	EX_UTF,		/* a Unicode code unit */
	EX_FLOAT,
	EX_COMPLEX,	/* two of those */
	EX_ENUM,
	EX_POINTER,	/* references too */
	EX_STRUCT,	/* classes and unions too */
	EX_ARRAY,
	EX_STRING,	/* characters, one for each byte (Fortran) */
};

/* Whether values are integers; pointers are not. */
static inline bool
ex_kind_is_integer(enum ex_kind kind)
{
	return (kind >= EX_SIGNED && kind <= EX_UTF) || kind == EX_ENUM;
}

struct ex_layout {
	enum ex_kind kind;
	uint64_t size;		/* bytes; 0: not known */
	const char *name;	/* of a base type; NULL: none */
	bool is_signed;		/* ENUM: of its numbers */
	bool flags;		/* ENUM: its enumerators are bits (members) */
	bool partial;		/* STRUCT: it has more than `members' */
	bool is_union;		/* STRUCT: members overlap */
	bool open;		/* ARRAY: its number of elements is not known */
	uint64_t first, count;	/* ARRAY: the first index, and the number */
	const struct ex_layout *element;	/* ARRAY: layout of an
						   element */
	Dwarf_Die type;		/* the debug information's type, */
	unsigned dimension;	/* ARRAY: its first dimension that counts */

	/* private to type_layout.c */
	struct ex_layout_cache *layouts;
	bool filled;		/* the following is set */
	struct ex_member *member;
	struct ex_enumerator *enumerator;
	size_t n, cap;		/* of either */
};

/* A member of a structure, union or class; or its base class. */
struct ex_member {
	const char *name;	/* NULL: none; its members count as its
				   holder's */
	const struct ex_layout *layout;
	Dwarf_Die type;		/* as it is declared */
	uint64_t offset;	/* bytes from its holder's start */
	uint64_t bit;		/* a bit-field: its lowest bit, from the */
	unsigned bits;		/* holder's start; how many (up to 128); 0: no
				   bit-field */
};

struct ex_enumerator {
	const char *name;
	uint64_t value;		/* cut to the type's size */
};

struct ex_layout_cache;

/* The layouts of a module.  NULL: out of memory. */
struct ex_layout_cache *ex_layout_cache_new(struct ex_module *);
void ex_layout_cache_free(struct ex_layout_cache *);

/* The layout of a type; without kind and size if unknown. */
const struct ex_layout *ex_layout_of(struct ex_layout_cache *,
    const Dwarf_Die *type);

/* The members of an EX_STRUCT, in the order of their declaration; all but those
   of open arrays lie inside of it. */
size_t ex_layout_members(const struct ex_layout *, const struct ex_member **);

/* Whether its members, and those of its base classes and of what has no name,
   are all that it has. */
bool ex_layout_is_whole(const struct ex_layout *);

/* The enumerators of an EX_ENUM. */
size_t ex_layout_enumerators(const struct ex_layout *,
    const struct ex_enumerator **);

/* The value of an enumerator.  False: there is none of this name. */
bool ex_layout_enumerator(const struct ex_layout *, const char *name,
    uint64_t *value);

/* The layout of what an EX_POINTER points to; empty, if its unit only declares
   that. */
const struct ex_layout *ex_layout_target(const struct ex_layout *);

#endif
