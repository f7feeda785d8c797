/* spilled_aarch64: nothing has to be found: no function keeps data below its
   stack pointer, so the copy of the stack contains the whole frame. */
#include "insn/spilled.h"

bool
ex_spilled(struct ex_module *m, uint64_t start, uint64_t end, int64_t offset,
    uint64_t size, unsigned *reg)
{
	(void)m, (void)start, (void)end, (void)offset, (void)size, (void)reg;
	return false;
}
