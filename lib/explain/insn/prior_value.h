/*
 * prior_value: finds what a register held before an instruction overwrote it:
 * for example the operand of an exchange, which loads the old value into it.
 *
 * The preceding instructions show it if they put a constant into the register,
 * or the value of a register that has not changed since, and if the exchange
 * cannot be reached in any other way: nothing in the module jumps in between,
 * and the function has no jump through a register or memory.
 */
#ifndef EX_PRIOR_VALUE_H
#define EX_PRIOR_VALUE_H

#include "insn/code.h"

/* The value of the register with this number before an exactly known
   instruction, in as many low bits as the register has.  False: unknown. */
bool ex_prior_value(const struct ex_query *, const struct ex_code *,
    unsigned number, uint64_t *value);

#endif
