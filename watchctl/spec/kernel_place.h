/* kernel_place: finds the kernel address of a SPEC. */
#ifndef KERNEL_PLACE_H
#define KERNEL_PLACE_H

#include "spec/spec.h"

/*
 * Find what a SPEC of the kernel's memory (spec->kernel) means, by symbols of a
 * file of the format of /proc/kallsyms.  These have no sizes: without a length
 * it is the largest of 8, 4, 2 and 1 bytes that the address is aligned to, and
 * that ends before the next symbol.  0, or -errno with a cause.
 */
int kernel_place_find(const struct spec *, const char *kallsyms,
    struct spec_place *, struct wp_cause *);

#endif
