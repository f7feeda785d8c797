/*
 * dwp: reads a package (.dwp): the split debug information of a program's
 * units, collected in one file beside the program.
 *
 * libdw can only read such a file with one unit.  So a unit is copied from the
 * package into a file of its own, in memory.
 */
#ifndef EX_DWP_H
#define EX_DWP_H

#include "module/module.h"

/* A file with the split-off part of the unit with this id; -1: the module has
   no package, or it lacks that unit or is invalid. */
int ex_dwp_unit(struct ex_module *, uint64_t id);

#endif
