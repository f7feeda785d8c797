/*
 * die: queries of DWARF's entries (DIEs) that libdw does not provide, for
 * line.c and type*.c.
 *
 * Nothing in a file is trusted: trees are walked without recursion, to a
 * bounded depth, and only ever forward; references are followed a few times.
 */
#ifndef EX_DIE_H
#define EX_DIE_H

#include <elfutils/libdw.h>

#include "module/module.h"

#define EX_DIE_DEPTH 64	/* nesting depth of scopes */

/* Step to the next DIE at the same level; false: there is none, or the file
   would lead us in circles. */
bool ex_die_next(Dwarf_Die *);

/* Whether it is a class, structure or union. */
bool ex_die_is_class(Dwarf_Die *);

/* Replace the DIE of a skeleton unit, which the compiler split (-gsplit-dwarf),
   by that of the split-off unit.  False: it is missing; the DIE is unchanged.
   libdw opens its file, .dwo (libdw_open.c), or it is taken from a package
   (.dwp). */
bool ex_die_whole_unit(struct ex_module *, Dwarf_Die *unit);

/* A walk over the DIEs below one. */
struct ex_die_walk {
	Dwarf_Die path[EX_DIE_DEPTH];	/* path[depth] is the current DIE */
	size_t depth;
};

/* Begin below a DIE; and step: down if enter says so, else to the next one, or
   up and on.  Result: the current DIE, valid until the next step; NULL: at the
   end. */
Dwarf_Die *ex_die_walk(struct ex_die_walk *, Dwarf_Die *below);
Dwarf_Die *ex_die_walk_on(struct ex_die_walk *, bool (*enter)(Dwarf_Die *));

/* The DIE that an attribute refers to; false: none. */
bool ex_die_ref(Dwarf_Die *, unsigned attr, Dwarf_Die *out);

/* The number in an attribute; false: none. */
bool ex_die_number(Dwarf_Die *, unsigned attr, uint64_t *out);

/* The first index of one dimension of an array. */
uint64_t ex_die_lower_bound(Dwarf_Die *range);

/* Whether C and C++ reserve a name for their implementations. */
bool ex_die_reserved(const char *name);

/* Whether two DIEs, maybe of different units, are declared in the same
   namespaces and classes, all of which have names. */
bool ex_die_same_scopes(Dwarf_Die *, Dwarf_Die *);

/* A plain name with the names of the scopes that it is declared in.  Lives as
   long as the module. */
const char *ex_die_qualified(struct ex_module *, Dwarf_Die *, const char *name);

/* The same without inline and unnamed namespaces, whose names are also visible
   in the enclosing scope. */
const char *ex_die_short(struct ex_module *, Dwarf_Die *, const char *name);

#endif
