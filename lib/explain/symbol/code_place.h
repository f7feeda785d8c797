/*
 * code_place: finds a place of the source in a module's code: a line, or the
 * beginning of a function, where its arguments are known.
 */
#ifndef EX_CODE_PLACE_H
#define EX_CODE_PLACE_H

#include <elfutils/libdw.h>

#include "module/module.h"

/*
 * Where the arguments of the function that starts at vaddr are in the places
 * that debug information gives: there, or, if its code has to put them there
 * first, behind that, as compilers do without optimization.
 */
uint64_t ex_code_entry(struct ex_module *, uint64_t start);

/* An argument, or a part of it, which is in memory of the function's own: not
   before its code has put it there.  frame: the function's entry. */
bool ex_code_is_put(Dwarf_Die *frame, const Dwarf_Op *, size_t n);

/*
 * Call fn with each vaddr at which code of a line of a source file begins, that
 * is, where other code, or code of another line, lies before.  The file is
 * named by the end of its path.  Result: whether the module has such a file;
 * *near: the next line with code, if this one has none and it is nearer than
 * what was there.
 */
bool ex_code_lines(struct ex_module *, const char *file, int line,
    void (*fn)(void *arg, uint64_t vaddr), void *arg, int *near);

#endif
