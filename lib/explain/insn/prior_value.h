/*
 * prior_value: what a register held that an instruction has overwritten: the
 * operand of an exchange, say, which loads the old value into it.
 *
 * The preceding instructions show it if they put a constant there, or a
 * register that is still as it was, and if there is no other way to the
 * exchange: nothing in the module jumps in between, and the function has no
 * jump whose target only a register or memory knows.
 */
#ifndef EX_PRIOR_VALUE_H
#define EX_PRIOR_VALUE_H

#include "insn/code.h"

/* What register number held before an instruction, which is exactly known, in
   its low bits as many as the register's.  False: it cannot be told. */
bool ex_prior_value(const struct ex_query *, const struct ex_code *,
    unsigned number,
    uint64_t *value);

#endif
