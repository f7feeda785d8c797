/*
 * syscall_rows: macros for the rows of a table of system calls, and the rows
 * that both tables have.  NUMBER is the table's.
 */
#ifndef EX_SYSCALL_ROWS_H
#define EX_SYSCALL_ROWS_H

#include "syscall/syscall_table.h"

#define R	EX_SYSCALL_READS
#define W	EX_SYSCALL_WRITES

/* Parts: of a structure, of a buffer with its length, of a string. */
#define IN(at, size)		{EX_SYSCALL_FIXED, R, at, 0, size}
#define OUT(at, size)		{EX_SYSCALL_FIXED, W, at, 0, size}
#define BOTH(at, size)		{EX_SYSCALL_FIXED, R | W, at, 0, size}
#define IN_N(at, n, size)	{EX_SYSCALL_COUNTED, R, at, n, size}
#define OUT_N(at, n, size)	{EX_SYSCALL_COUNTED, W, at, n, size}
#define IN_INT(at, n, size)	{EX_SYSCALL_COUNTED_INT, R, at, n, size}
#define OUT_INT(at, n, size)	{EX_SYSCALL_COUNTED_INT, W, at, n, size}
#define STRING(at)		{EX_SYSCALL_UPTO, R, at, 0, 4096}
#define OUT_UPTO(at, size)	{EX_SYSCALL_UPTO, W, at, 0, size}
#define BOTH_UPTO(at, size)	{EX_SYSCALL_UPTO, R | W, at, 0, size}
#define IN_MESSAGE(at, n)	{EX_SYSCALL_HEADED, R, at, n, 8}
#define OUT_MESSAGE(at, n)	{EX_SYSCALL_HEADED, W, at, n, 8}
#define OUT_POINTED(at, n)	{EX_SYSCALL_POINTED, W, at, n, 128}
#define IOV(way, at, n)		{EX_SYSCALL_VECTOR, way, at, n, 0}
#define SET(at)			{EX_SYSCALL_SET, R | W, at, 0, 0}
#define POLL(at, n)		{EX_SYSCALL_POLL, R | W, at, n, 8}

/* A call without a descriptor, with one as its first argument, and with one
   there if its flags say that there is no path. */
#define CALL(name, ...)							\
	{#name, NUMBER(name), -1, -1, {__VA_ARGS__}}
#define CALL_FD(name, ...)						\
	{#name, NUMBER(name), 0, -1, {__VA_ARGS__}}
#define CALL_AT(name, flags, ...)					\
	{#name, NUMBER(name), 0, flags, {__VA_ARGS__}}

/* Calls whose parts have the same sizes in 32-bit programs. */
#define ROWS_OF_BOTH							\
	CALL_FD(read, OUT_N(1, 2, 1)),					\
	CALL_FD(pread64, OUT_N(1, 2, 1)),				\
	CALL_FD(readv, IOV(W, 1, 2)),					\
	CALL_FD(preadv, IOV(W, 1, 2)),					\
	CALL_FD(preadv2, IOV(W, 1, 2)),					\
	CALL_FD(write, IN_N(1, 2, 1)),					\
	CALL_FD(pwrite64, IN_N(1, 2, 1)),				\
	CALL_FD(writev, IOV(R, 1, 2)),					\
	CALL_FD(pwritev, IOV(R, 1, 2)),					\
	CALL_FD(pwritev2, IOV(R, 1, 2)),				\
	CALL_FD(vmsplice, IOV(R | W, 1, 2)),				\
	CALL(splice, BOTH(1, 8), BOTH(3, 8)),				\
	CALL(copy_file_range, BOTH(1, 8), BOTH(3, 8)),			\
	CALL(getrandom, OUT_N(0, 1, 1)),				\
	CALL_FD(recvfrom, OUT_N(1, 2, 1), OUT_POINTED(4, 5),		\
	    BOTH(5, 4)),						\
	CALL_FD(recvmsg, {EX_SYSCALL_MESSAGE, W, 1, 0, 0}),		\
	CALL_FD(sendto, IN_N(1, 2, 1), IN_INT(4, 5, 1)),		\
	CALL_FD(sendmsg, {EX_SYSCALL_MESSAGE, R, 1, 0, 0}),		\
	CALL_FD(sendmmsg, {EX_SYSCALL_MESSAGES, R, 1, 2, 0}),		\
	CALL_FD(accept4, OUT_POINTED(1, 2), BOTH(2, 4)),		\
	CALL_FD(getsockname, OUT_POINTED(1, 2), BOTH(2, 4)),		\
	CALL_FD(getpeername, OUT_POINTED(1, 2), BOTH(2, 4)),		\
	CALL_FD(bind, IN_INT(1, 2, 1)),					\
	CALL_FD(connect, IN_INT(1, 2, 1)),				\
	CALL_FD(getsockopt, OUT_POINTED(3, 4), BOTH(4, 4)),		\
	CALL_FD(setsockopt, IN_INT(3, 4, 1)),				\
	CALL(socketpair, OUT(3, 8)),					\
	CALL(pipe, OUT(0, 8)),						\
	CALL(pipe2, OUT(0, 8)),						\
	CALL(poll, POLL(0, 1)),						\
	CALL_FD(epoll_wait, OUT_INT(1, 2, 12)),				\
	CALL_FD(epoll_pwait, OUT_INT(1, 2, 12), IN_N(4, 5, 1)),		\
	CALL_FD(epoll_pwait2, OUT_INT(1, 2, 12), IN(3, 16),		\
	    IN_N(4, 5, 1)),						\
	CALL_FD(epoll_ctl, IN(3, 12)),					\
	CALL(io_uring_setup, BOTH(1, 120)),				\
	CALL(io_uring_enter),						\
	CALL(open, STRING(0)),						\
	CALL(openat, STRING(1)),					\
	CALL(openat2, STRING(1), IN_N(2, 3, 1)),			\
	CALL_AT(statx, 2, STRING(1), OUT(4, 256)),			\
	CALL_FD(getdents, OUT_INT(1, 2, 1)),				\
	CALL_FD(getdents64, OUT_INT(1, 2, 1)),				\
	CALL(getcwd, OUT_N(0, 1, 1)),					\
	CALL(readlink, STRING(0), OUT_INT(1, 2, 1)),			\
	CALL(readlinkat, STRING(1), OUT_INT(2, 3, 1)),			\
	CALL(access, STRING(0)),					\
	CALL(faccessat, STRING(1)),					\
	CALL(faccessat2, STRING(1)),					\
	CALL(chdir, STRING(0)),						\
	CALL(mkdir, STRING(0)),						\
	CALL(mkdirat, STRING(1)),					\
	CALL(rmdir, STRING(0)),						\
	CALL(unlink, STRING(0)),					\
	CALL(unlinkat, STRING(1)),					\
	CALL(rename, STRING(0), STRING(1)),				\
	CALL(getxattr, STRING(0), STRING(1), OUT_N(2, 3, 1)),		\
	CALL(lgetxattr, STRING(0), STRING(1), OUT_N(2, 3, 1)),		\
	CALL_FD(fgetxattr, STRING(1), OUT_N(2, 3, 1)),			\
	CALL(listxattr, STRING(0), OUT_N(1, 2, 1)),			\
	CALL(llistxattr, STRING(0), OUT_N(1, 2, 1)),			\
	CALL_FD(flistxattr, OUT_N(1, 2, 1)),				\
	CALL_FD(fcntl, BOTH_UPTO(2, 32)),				\
	CALL_FD(ioctl, {EX_SYSCALL_IOCTL, R | W, 2, 1, 4096}),		\
	CALL(clone3, IN_N(0, 1, 1)),					\
	CALL(execve, STRING(0)),					\
	CALL(rt_sigprocmask, IN_N(1, 3, 1), OUT_N(2, 3, 1)),		\
	CALL(rt_sigpending, OUT_N(0, 1, 1)),				\
	CALL(rt_sigsuspend, IN_N(0, 1, 1)),				\
	CALL(prctl, BOTH_UPTO(1, 4096)),				\
	CALL(prlimit64, IN(2, 16), OUT(3, 16)),				\
	CALL(sched_getaffinity, OUT_INT(2, 1, 1)),			\
	CALL(sched_setaffinity, IN_INT(2, 1, 1)),			\
	CALL(restart_syscall),						\
	CALL(ptrace, BOTH_UPTO(3, 4096)),				\
	CALL(capget, BOTH(0, 8), OUT_UPTO(1, 24)),			\
	CALL(mincore, OUT_UPTO(2, 65535)),				\
	CALL(syslog, OUT_INT(1, 2, 1)),					\
	CALL(uname, OUT(0, 390)),					\
	CALL(getcpu, OUT(0, 4), OUT(1, 4))

#endif
