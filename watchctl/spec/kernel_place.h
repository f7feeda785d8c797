/* kernel_place: finds the kernel address of a SPEC. */
#ifndef KERNEL_PLACE_H
#define KERNEL_PLACE_H

#include "spec/spec.h"

/*
 * Find the place of a SPEC in the kernel's memory (spec->kernel) by a file in
 * the format of /proc/kallsyms.  That has no sizes: without a length it is the
 * largest of 8, 4, 2 and 1 bytes to which the address is aligned and which ends
 * before the next symbol.  0, or -errno with a cause.
 */
int kernel_place_find(const struct spec *, const char *kallsyms,
    struct spec_place *, struct wp_cause *);

#endif
