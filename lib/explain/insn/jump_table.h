/* jump_table: recognizes jumps through tables of places in the same function,
   on x86. */
#ifndef EX_JUMP_TABLE_H
#define EX_JUMP_TABLE_H

#include "insn/sweep.h"

/* Whether a jump through a register, at this vaddr, takes its target from a
   table of offsets within its own function. */
bool ex_jump_is_table(struct ex_module *, const ZydisDecoder *, uint64_t vaddr,
    const struct ex_decoded *jump);

#endif
