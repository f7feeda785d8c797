/*
 * split: debug information that the compiler split off (-gsplit-dwarf): in a
 * file beside the objects (.dwo), while the program has a skeleton of each unit.
 */
#ifndef EX_SPLIT_H
#define EX_SPLIT_H

#include <elfutils/libdw.h>

#include "module.h"

/* A unit's DIE, if it is a skeleton, becomes that of what was split off.  False:
   that is not there; the DIE is as it was. */
bool ex_split_tree(struct ex_module *, Dwarf_Die *unit);

#endif
