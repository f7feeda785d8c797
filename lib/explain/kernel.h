/* kernel: whether the running kernel is the one of a recording. */
#ifndef EX_KERNEL_H
#define EX_KERNEL_H

#include "symbol.h"

/* Whether the running kernel has this build id, and this function at addr: it
   lies elsewhere after each boot. */
bool ex_kernel_is(const char *symbol, uint64_t addr, const uint8_t *id,
    size_t len);

#endif
