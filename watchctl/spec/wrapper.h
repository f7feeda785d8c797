/*
 * wrapper: the C library's functions that do no more than a system call.
 */
#ifndef WRAPPER_H
#define WRAPPER_H

/*
 * The system call that a function makes, when its name tells: "read" of "read",
 * "__read", "__libc_read" and "__GI___libc_read".  NULL: it is none that passes
 * the kernel an address, or it may make another one.
 */
const char *wrapper_call(const char *function);

#endif
