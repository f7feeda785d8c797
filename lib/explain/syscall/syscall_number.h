/*
 * syscall_number: finds the number of a thread's system call in its code.
 *
 * The kernel's callchain may not show it, and a program that watches itself has
 * none.  But most code sets the number in the instruction before, or, in 32-bit
 * programs, shortly before; and of syscall(3), which passes it on, most callers
 * set it shortly before they call.
 *
 * A 32-bit program's first argument is in ebx, which the kernel does not sample
 * while it makes the call.  Most code takes it from the stack or sets it to a
 * number shortly before.
 */
#ifndef EX_SYSCALL_NUMBER_H
#define EX_SYSCALL_NUMBER_H

#include "record/record.h"

struct ex_process;

/* The number of the call that returns to the pc; < 0: not known. */
int ex_syscall_number(struct ex_process *, const struct ex_sample *);

/* The content of ebx at a call of a 32-bit program.  False: unknown. */
bool ex_syscall_first(struct ex_process *, const struct ex_sample *,
    uint32_t *value);

#endif
