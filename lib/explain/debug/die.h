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

#define EX_DIE_DEPTH 64	/* of scopes in each other */

/* Step to the next DIE at the same level; false: there is none, or the file
   would lead us in circles. */
bool ex_die_next(Dwarf_Die *);

/* A unit's DIE, if the unit is the skeleton of one that the compiler split off
   (-gsplit-dwarf), becomes that of what was split off.  False: that is not
   there; the DIE is as it was.  libdw opens its file, .dwo (libdw_open.c), or
   it is taken out of a package (.dwp). */
bool ex_die_whole_unit(struct ex_module *, Dwarf_Die *unit);

/* A walk over all DIEs below one, where they are worth it. */
struct ex_die_walk {
	Dwarf_Die path[EX_DIE_DEPTH];	/* path[depth] is where it is */
	size_t depth;
};

/* Begin below a DIE; step on: down, where enter says so, or on, or up and on.
   Result: where it is, valid until the next step; NULL: at the end. */
Dwarf_Die *ex_die_walk(struct ex_die_walk *, Dwarf_Die *below);
Dwarf_Die *ex_die_walk_on(struct ex_die_walk *, bool (*enter)(Dwarf_Die *));

/* What an attribute refers to; false: nothing. */
bool ex_die_ref(Dwarf_Die *, unsigned attr, Dwarf_Die *out);

/* A number of an attribute; false: it has none. */
bool ex_die_number(Dwarf_Die *, unsigned attr, uint64_t *out);

/* The first index of one dimension of an array. */
uint64_t ex_die_lower_bound(Dwarf_Die *range);

/* Whether a name is one that C and C++ keep for their implementations. */
bool ex_die_reserved(const char *name);

/* Whether two, maybe of different units, are declared in the same namespaces
   and classes, all of which have names. */
bool ex_die_same_scopes(Dwarf_Die *, Dwarf_Die *);

/* A plain name with the names of the scopes that it is declared in.  Lives as
   long as the module. */
const char *ex_die_qualified(struct ex_module *, Dwarf_Die *, const char *name);

/* The same without the namespaces whose names are inside of what they are in,
   too: inline ones, and those without a name. */
const char *ex_die_short(struct ex_module *, Dwarf_Die *, const char *name);

#endif
