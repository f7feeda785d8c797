/*
 * definition: where a class is defined that a unit of debug information only
 * declares.
 *
 * Compilers describe a class of C++ whose virtual functions, or constructors,
 * are compiled elsewhere in that unit only.  Its qualified name leads there:
 * C++ has one definition of each in a program.  In C a name may mean something
 * else in each unit, and a variable's type is always complete.
 */
#ifndef EX_DEFINITION_H
#define EX_DEFINITION_H

#include <elfutils/libdw.h>

#include "module/module.h"

struct ex_definitions;

/* A module's classes, which are looked for once, when first asked for; to be
   freed.  NULL: out of memory. */
struct ex_definitions *ex_definitions_new(struct ex_module *);
void ex_definitions_free(struct ex_definitions *);

/* The definition of what is only declared here.  False: there is none, or there
   are several that differ. */
bool ex_definition_find(struct ex_definitions *, Dwarf_Die *declaration,
    Dwarf_Die *out);

#endif
