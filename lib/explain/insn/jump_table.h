/* jump_table: jumps through tables of a function's own places, on x86. */
#ifndef EX_JUMP_TABLE_H
#define EX_JUMP_TABLE_H

#include "insn/sweep.h"

/* Whether a jump through a register, which is there in the module, takes its
   target from a table of offsets, which are of its own function. */
bool ex_jump_is_table(struct ex_module *, const ZydisDecoder *, uint64_t vaddr,
    const struct ex_decoded *jump);

#endif
