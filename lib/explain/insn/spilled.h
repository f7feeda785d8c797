/*
 * spilled: finds a register that a function's beginning has stored in its frame
 * and that still holds the value.  This gives the content of the frame where
 * there is no copy of it: below the stack pointer, as in a function that calls
 * no other.
 */
#ifndef EX_SPILLED_H
#define EX_SPILLED_H

#include <stdbool.h>
#include <stdint.h>

#include "module/module.h"

/* The register, by its DWARF number, whose low size bytes the branch-free code
   from start to end (vaddrs) has stored at the frame pointer plus offset, and
   which has not changed since.  False: there is none. */
bool ex_spilled(struct ex_module *, uint64_t start, uint64_t end,
    int64_t offset, uint64_t size, unsigned *reg);

#endif
