/*
 * syscall_wrapper: recognizes functions of the C library that only make a
 * system call.
 */
#ifndef EX_SYSCALL_WRAPPER_H
#define EX_SYSCALL_WRAPPER_H

/*
 * The system call of a function, if its name shows it: "read" for "read",
 * "__read", "__libc_read" and "__GI___libc_read".  NULL: the call takes no
 * address, or the function may make another one.
 */
const char *ex_syscall_of_wrapper(const char *function);

#endif
