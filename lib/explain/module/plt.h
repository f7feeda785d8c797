/* plt: finds the function that each stub of the procedure linkage table
   calls. */
#ifndef EX_PLT_H
#define EX_PLT_H

#include "module/module.h"

/* Call fn for each stub whose function is known: its vaddr, its size, and the
   raw name (which lives as long as the module).  A false of fn ends it. */
void ex_plt_each(struct ex_module *,
    bool (*fn)(void *arg, uint64_t vaddr, uint64_t size, const char *name),
    void *arg);

/* The vaddr that stubs of 32-bit code have in ebx, to which slots are
   relative.  False: not known. */
bool ex_plt_base(struct ex_module *, uint64_t *got);

/* The raw name of the symbol whose address the dynamic linker stores in a word
   of the global offset table, which lives as long as the module; "": the result
   of a function of the module (IFUNC); NULL: the word is no such slot. */
const char *ex_plt_slot(struct ex_module *, uint64_t slot);

#endif
