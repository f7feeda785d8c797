/*
 * hot_stack: frequent stacks, in the form by which BPF programs recognize them
 * (os/known_stack.h).
 */
#ifndef EX_HOT_STACK_H
#define EX_HOT_STACK_H

#include "os/known_stack.h"
#include "unwind/reads.h"

/* Of a sample's stack, whose unwinding read this.  False: more or other things
   than a program compares. */
bool ex_hot_stack_make(const struct ex_sample *, const struct ex_reads *,
    struct wp_known_stack *);

#endif
