/*
 * syscall_wrapper: functions of the C library that only make a system call.
 */
#ifndef EX_SYSCALL_WRAPPER_H
#define EX_SYSCALL_WRAPPER_H

/*
 * The system call that a function makes, if its name shows it: "read" of
 * "read", "__read", "__libc_read" and "__GI___libc_read".  NULL: it is none
 * that passes the kernel an address, or it may make another one.
 */
const char *ex_syscall_of_wrapper(const char *function);

#endif
