/* kernel_symbols: identifies the running kernel, and determines whether a
   recording was made on it. */
#ifndef EX_KERNEL_SYMBOLS_H
#define EX_KERNEL_SYMBOLS_H

#include "symbol/symbol.h"

/* The running kernel's build id.  Result: its length; 0: not known. */
size_t ex_kernel_build_id(uint8_t id[20]);

/* Whether the running kernel has this build id, and this function at addr,
   which differs after each boot. */
bool ex_kernel_is(const char *symbol, uint64_t addr, const uint8_t *id,
    size_t len);

#endif
