/*
 * code_place: finds a place of the source in a module's code: a line, or the
 * point at the beginning of a function where its arguments are known.
 */
#ifndef EX_CODE_PLACE_H
#define EX_CODE_PLACE_H

#include <elfutils/libdw.h>

#include "module/module.h"

/*
 * The vaddr at which the arguments of the function at start are where debug
 * information says: the start itself or, without optimization, after the code
 * that stores them.
 */
uint64_t ex_code_entry(struct ex_module *, uint64_t start);

/* Whether an argument, or a part of it, is in memory of the function, and so
   only after its code has stored it. frame: the function's entry. */
bool ex_code_is_put(Dwarf_Die *frame, const Dwarf_Op *, size_t n);

/*
 * Call fn with each vaddr at which code of a source line begins, that is, with
 * other code or code of another line before it.  The file is named by the end
 * of its path.  Result: whether the module has such a file; *near: the next
 * line with code, if this one has none and it is nearer than the previous
 * *near.
 */
bool ex_code_lines(struct ex_module *, const char *file, int line,
    void (*fn)(void *arg, uint64_t vaddr), void *arg, int *near);

#endif
