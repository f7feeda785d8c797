/* type_name: the name of a type in C or C++. */
#ifndef EX_TYPE_NAME_H
#define EX_TYPE_NAME_H

#include <elfutils/libdw.h>

#include "module/module.h"

/*
 * The name of a type, from a dimension on of an array's; with slice not 0, that
 * many of its elements.  tags: structures, unions and enumerations are written
 * with what they are, as C wants it.  Typedefs with a name that only libraries
 * may use are left out.  Lives as long as the module.  NULL: out of memory.
 */
const char *ex_type_name(struct ex_module *, const Dwarf_Die *type,
    unsigned dimension, uint64_t slice, bool tags);

#endif
