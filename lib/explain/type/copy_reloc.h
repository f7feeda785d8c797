/*
 * copy_reloc: finds variables of libraries of which a program has its own copy.
 *
 * A program that was linked to use a library's variable directly has space for
 * it, into which the loader copies the variable (a COPY relocation); the
 * library uses that copy, too.  Debug information describes only the library's
 * variable.
 */
#ifndef EX_COPY_RELOC_H
#define EX_COPY_RELOC_H

#include "type/subobject.h"

struct ex_process;

/* Whether a variable is copied to a module's vaddr. */
bool ex_copy_reloc(struct ex_module *, uint64_t vaddr);

/* The part of that variable at vaddr, of len bytes, with addresses of this
   module.  False: unknown; its library may not be known yet. */
bool ex_copy_reloc_find(struct ex_process *, struct ex_module *, uint64_t vaddr,
    uint64_t len, struct ex_subobject *);

#endif
