/*
 * jump_index: finds the jumps that lead to a function.
 *
 * A call through a pointer may have called the function that runs, or one that
 * ended in a jump to it.
 */
#ifndef EX_JUMP_INDEX_H
#define EX_JUMP_INDEX_H

#include "module/module.h"

/*
 * Call fn once for each jump in the n modules `in' that leads to the function
 * that contains vaddr in the module `of', directly or through other functions.
 * A non-zero result of fn ends the search and is returned.  -E2BIG: there are
 * too many, or too little memory for them; -ENOMEM.  Jumps through pointers
 * that the program can change are not found.
 */
int ex_jump_index_each(struct ex_module *const *in, unsigned n,
    struct ex_module *of, uint64_t vaddr,
    int (*fn)(void *arg, struct ex_module *, uint64_t jump), void *arg);

/*
 * Whether a function that was called through a pointer may have ended in a jump
 * through another pointer, and so have led to any function, on a way for which
 * fn's result is not zero: fn is called for the jumps on such ways, which stay
 * within one module.  Only functions that something may point to can be called
 * in this way: a module's code or data, or other modules by name.
 */
bool ex_jump_index_anywhere(struct ex_module *const *in, unsigned n,
    int (*fn)(void *arg, struct ex_module *, uint64_t jump), void *arg);

#endif
