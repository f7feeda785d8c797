/*
 * subobject: finds the smallest object that contains some bytes of a variable:
 * the variable itself, a member, an element, some elements in a row, a
 * bit-field.
 *
 *	table[3].peer.port	bytes of a member
 *	name[4]@8		of eight elements: as gdb writes it
 *	counter			of std::atomic<long> counter
 *
 * Base classes and members without a name add nothing to a path.  In a union it
 * is the first member that has an object of exactly these bytes, else the first
 * that contains them.  If a library's class is nothing but its one member (such
 * as std::atomic and std::unique_ptr), and that has a reserved name, value and
 * bytes are the member's, path and type those of the class.
 */
#ifndef EX_SUBOBJECT_H
#define EX_SUBOBJECT_H

#include "type/type_layout.h"
#include "type/variable.h"

#define EX_PATH_MAX 512	/* characters of a path, with its NUL */

struct ex_subobject {
	char path[EX_PATH_MAX];
	uint64_t vaddr, size;	/* its place */
	const struct ex_layout *layout;	/* its layout; or the structure that it
					   is bit-fields of */
	const struct ex_member *field;	/* it is this bit-field; NULL: none */
	bool fields;		/* it is all bit-fields in these bytes */
	uint64_t within;	/* its offset in their structure */

	/* its type's name, for ex_type_name */
	Dwarf_Die type;
	unsigned dimension;
	uint64_t slice;
	bool tags;
};

/* The known variables and types of a module. */
struct ex_module_types {
	struct ex_variables *variables;
	struct ex_layout_cache *layouts;
};

/* NULL: out of memory. */
const struct ex_module_types *ex_module_types(struct ex_module *);

/* The contents of a declaration. */
struct ex_declared {
	const char *name;	/* qualified; NULL: none */
	const char *least;	/* the same without scopes that need not be
				   named (ex_die_short); NULL: none */
	const struct ex_layout *layout;
	Dwarf_Die type;
	uint64_t size;		/* of the variable; 0: not known */
	bool tags;		/* in C, types are named with their tags */
	bool columns;		/* in Fortran, an array's dimensions are in the
				   other order */
};

/* The declaration of a module's variable; it is kept with the variable.  NULL:
   out of memory. */
const struct ex_declared *ex_declared_of(struct ex_module *,
    struct ex_variable *);

/* Set tags and columns by the language of a DIE's unit. */
void ex_declared_language(struct ex_declared *, Dwarf_Die *);

/* The size of a member in a structure of this size: an array at its end without
   a length gets the rest. */
uint64_t ex_member_size(const struct ex_member *, uint64_t size);

/* The part of a declared object at start that the len bytes at addr are.
   False: they are not in it. */
bool ex_subobject_of(const struct ex_declared *, uint64_t start, uint64_t addr,
    uint64_t len, struct ex_subobject *);

/* The object, or its part, that the len bytes at a module's vaddr are.  False:
   not known. */
bool ex_subobject_find(struct ex_module *, uint64_t vaddr, uint64_t len,
    struct ex_subobject *);

#endif
