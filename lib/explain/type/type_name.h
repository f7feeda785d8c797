/* type_name: writes the name of a type in C or C++. */
#ifndef EX_TYPE_NAME_H
#define EX_TYPE_NAME_H

#include <elfutils/libdw.h>

#include "module/module.h"

/*
 * The name of a type; of an array, from this dimension on; if slice is not 0,
 * of that many of its elements. tags: write structures, unions and enumerations
 * with their keyword, as in C.  Typedefs with a reserved name are left out.
 * Lives as long as the module.  NULL: out of memory.
 */
const char *ex_type_name(struct ex_module *, const Dwarf_Die *type,
    unsigned dimension, uint64_t slice, bool tags);

#endif
