/*
 * descriptor: finds the elements of an array that lie where a descriptor says,
 * which has the bounds too: Fortran's allocatable arrays and array pointers
 * (DWARF 5, section 5.18).
 */
#ifndef EX_DESCRIPTOR_H
#define EX_DESCRIPTOR_H

#include "type/declaration.h"

/* Whether a variable of this type is such a descriptor. */
bool ex_descriptor_is(const struct ex_type *);

/*
 * The elements that the descriptor at addr describes now: an array, and where
 * it is; 0: it is not allocated, or points to nothing, and has no bounds then.
 *
 * read copies len bytes of the program's memory; false: it cannot.
 *
 * 0; -EFAULT: read failed; -ENOTSUP: the elements do not lie side by side, have
 * more dimensions than struct ex_type counts, or are described in another way.
 */
int ex_descriptor_elements(const struct ex_type *, uint64_t addr,
    bool (*read)(void *arg, uint64_t addr, void *to, size_t len), void *arg,
    struct ex_type *elements, uint64_t *at);

#endif
