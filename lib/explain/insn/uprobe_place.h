/*
 * uprobe_place: chooses where a uprobe sees the calls of a function at the
 * least cost.
 *
 * The kernel emulates a few kinds of instruction, and single-steps a copy of
 * any other one, which takes another trap.
 */
#ifndef EX_UPROBE_PLACE_H
#define EX_UPROBE_PLACE_H

#include "module/module.h"

/*
 * The place of a uprobe that is hit once by each call of the module's function
 * that begins at vaddr, and finds there what its caller passed: the first three
 * arguments, the stack pointer, and the stack.  It is the first instruction
 * that is emulated, if each call surely executes it, and no jump leads there;
 * else vaddr.
 */
uint64_t ex_uprobe_place(struct ex_module *, uint64_t vaddr);

/* Whether an instruction certainly begins there: that is code which is reached
   from its function's start.  A uprobe elsewhere would change data, or a part of
   another instruction. */
bool ex_uprobe_fits(struct ex_module *, uint64_t vaddr);

#endif
