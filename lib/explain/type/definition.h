/*
 * definition: finds the definition of a class that a unit of debug information
 * only declares.
 *
 * If a C++ class has its virtual functions, or its constructors, compiled in
 * one unit, compilers describe it in that unit only.  It is found there by its
 * qualified name, because C++ has one definition of each class in a program.
 * In C a name may mean something else in each unit, but there a variable's type
 * is always complete.
 */
#ifndef EX_DEFINITION_H
#define EX_DEFINITION_H

#include <elfutils/libdw.h>

#include "module/module.h"

struct ex_definitions;

/* A module's classes, which are collected at the first request.  The caller
   frees them.  NULL: out of memory. */
struct ex_definitions *ex_definitions_new(struct ex_module *);
void ex_definitions_free(struct ex_definitions *);

/* The definition of a class that is only declared.  False: there is none, or
   there are several that differ. */
bool ex_definition_find(struct ex_definitions *, Dwarf_Die *declaration,
    Dwarf_Die *out);

#endif
