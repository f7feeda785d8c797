/*
 * syscall_number: which system call a thread made, by its code.
 *
 * The kernel's callchain may not show it, and a program that watches itself
 * has none.  But most code sets the number by the instruction before.
 */
#ifndef EX_SYSCALL_NUMBER_H
#define EX_SYSCALL_NUMBER_H

#include "module/module.h"

/* The number of the call that returns to pc; < 0: not known. */
int ex_syscall_number(struct ex_process *, uint64_t pc);

#endif
