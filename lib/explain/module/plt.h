/* plt: which function each stub of the procedure linkage table calls. */
#ifndef EX_PLT_H
#define EX_PLT_H

#include "module/module.h"

/* Call fn for each stub whose function is known: its vaddr, its size, and the
   raw name (which lives as long as the module).  A false of fn ends it. */
void ex_plt_each(struct ex_module *,
    bool (*fn)(void *arg, uint64_t vaddr, uint64_t size, const char *name),
    void *arg);

/* What stubs of 32-bit code have in ebx: the vaddr from which slots are
   counted.  False: the module says none. */
bool ex_plt_base(struct ex_module *, uint64_t *got);

/* Whose address the dynamic linker puts into a word of the global offset
   table: a raw name, which lives as long as the module; "": what a function of
   the module chooses (IFUNC); NULL: none, they are no such slot. */
const char *ex_plt_slot(struct ex_module *, uint64_t slot);

#endif
