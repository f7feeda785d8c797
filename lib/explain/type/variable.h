/*
 * variable: finds the addresses of a module's global and static variables, by
 * DWARF.
 *
 * Units of debug information are read one after another, once each, and only
 * until the requested variable is found: compilers write no index that contains
 * the addresses of data.
 */
#ifndef EX_VARIABLE_H
#define EX_VARIABLE_H

#include <elfutils/libdw.h>

#include "module/module.h"

/* A variable, or a static one of a function or class. */
struct ex_variable {
	uint64_t vaddr;		/* its start */
	Dwarf_Die die;		/* the DIE with its location */
	struct ex_declared *declared;	/* subobject.c's; NULL: not asked yet */
};

struct ex_variables;

/* A module's table, which belongs to the caller; `declared' in it is malloc'd.
   NULL: out of memory. */
struct ex_variables *ex_variables_new(struct ex_module *);
void ex_variables_free(struct ex_variables *);

/* The variable that begins nearest at or below vaddr, or NULL.  It may end
   before vaddr. */
struct ex_variable *ex_variables_find(struct ex_variables *,
    uint64_t vaddr);

#endif
