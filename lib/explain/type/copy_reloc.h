/*
 * copy_reloc: variables of libraries of which a program has its own copy.
 *
 * A program that was linked to use a library's variable directly has room for
 * it, into which the loader copies it (a COPY relocation); the library uses it
 * there as well.  Debug information knows only of the library's.
 */
#ifndef EX_COPY_RELOC_H
#define EX_COPY_RELOC_H

#include "type/subobject.h"

/* Whether a variable is copied to a module's vaddr. */
bool ex_copy_reloc(struct ex_module *, uint64_t vaddr);

/* The part of that variable that the len bytes at vaddr are, with addresses of
   this module.  False: none is known; its library may not be known yet. */
bool ex_copy_reloc_find(struct ex_process *, struct ex_module *, uint64_t vaddr,
    uint64_t len, struct ex_subobject *);

#endif
