/*
 * hot_stack: frequent stacks, in the form by which BPF programs recognize them
 * (os/known_stack.h).
 */
#ifndef EX_HOT_STACK_H
#define EX_HOT_STACK_H

#include "os/known_stack.h"
#include "unwind/reads.h"

/* Describe a sample's stack, whose unwinding read this.  False: it cannot be
   described by what a BPF program compares. */
bool ex_hot_stack_make(const struct ex_sample *, const struct ex_reads *,
    struct wp_known_stack *);

#endif
