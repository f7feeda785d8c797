/*
 * dwp: reads a package (.dwp): the split debug information of a program's
 * units, collected in one file beside the program.
 *
 * libdw can only read such a file with one unit.  So a unit is mapped out of
 * the package, as a file of its own in memory.
 */
#ifndef EX_DWP_H
#define EX_DWP_H

#include "module/module.h"

struct ex_file_image;

/* A file with the split-off part of the unit with this id, which lasts as long
   as the module; NULL: the module has no package, or it lacks that unit or is
   invalid. */
const struct ex_file_image *ex_dwp_unit(struct ex_module *, uint64_t id);

#endif
