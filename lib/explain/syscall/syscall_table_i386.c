/* syscall_table_i386: the memory that system calls of 32-bit programs on x86-64
   touch. */
#include "syscall/syscall_rows.h"

#if defined(__x86_64__)
#include <asm/unistd_32.h>

#define NUMBER(name)	__NR_##name
/* A call whose times have 4 bytes, and one that has another name than its
   number. */
#define OLD(name, fd, ...)						\
	{#name, NUMBER(name), fd, -1, {__VA_ARGS__}, true}
#define NEW(name, number, fd, ...)					\
	{#name, NUMBER(number), fd, -1, {__VA_ARGS__}}

static const struct ex_syscall_row rows[] = {
	ROWS_OF_BOTH,

	/* bytes from a descriptor, and to one */
	NEW(llseek, _llseek, 0, OUT(3, 8)),
	CALL(sendfile, BOTH(2, 4)),
	CALL(sendfile64, BOTH(2, 8)),
	CALL(process_vm_readv, IOV(W, 1, 2), IN_N(3, 4, 8)),
	CALL(process_vm_writev, IOV(R, 1, 2), IN_N(3, 4, 8)),

	/* sockets */
	CALL(socketcall),
	{"accept", -1, 0, -1, {OUT_POINTED(1, 2), BOTH(2, 4)}},
	NEW(recvmmsg, recvmmsg_time64, 0, {EX_SYSCALL_MESSAGES, W, 1, 2, 0},
	    BOTH(4, 16)),
	OLD(recvmmsg, 0, {EX_SYSCALL_MESSAGES, W, 1, 2, 0}, BOTH(4, 8)),

	/* waiting for descriptors */
	NEW(ppoll, ppoll_time64, -1, POLL(0, 1), BOTH(2, 16), IN_N(3, 4, 1)),
	OLD(ppoll, -1, POLL(0, 1), BOTH(2, 8), IN_N(3, 4, 1)),
	NEW(select, _newselect, -1, SET(1), SET(2), SET(3), BOTH(4, 8)),
	NEW(pselect6, pselect6_time64, -1, SET(1), SET(2), SET(3),
	    BOTH(4, 16), IN(5, 8)),
	OLD(pselect6, -1, SET(1), SET(2), SET(3), BOTH(4, 8), IN(5, 8)),

	/* files */
	CALL(stat64, STRING(0), OUT(1, 96)),
	CALL(lstat64, STRING(0), OUT(1, 96)),
	CALL_FD(fstat64, OUT(1, 96)),
	CALL_AT(fstatat64, 3, STRING(1), OUT(2, 96)),
	CALL(stat, STRING(0), OUT(1, 64)),
	CALL(lstat, STRING(0), OUT(1, 64)),
	CALL_FD(fstat, OUT(1, 64)),
	CALL(statfs, STRING(0), OUT(1, 64)),
	CALL_FD(fstatfs, OUT(1, 64)),
	CALL(statfs64, STRING(0), OUT(2, 84)),
	CALL_FD(fstatfs64, OUT(2, 84)),
	CALL_FD(fcntl64, BOTH_UPTO(2, 32)),

	/* time */
	NEW(clock_gettime, clock_gettime64, -1, OUT(1, 16)),
	OLD(clock_gettime, -1, OUT(1, 8)),
	NEW(clock_getres, clock_getres_time64, -1, OUT(1, 16)),
	OLD(clock_getres, -1, OUT(1, 8)),
	CALL(gettimeofday, OUT(0, 8), OUT(1, 8)),
	OLD(time, -1, OUT(0, 4)),
	CALL(times, OUT(0, 16)),
	OLD(nanosleep, -1, IN(0, 8), OUT(1, 8)),
	NEW(clock_nanosleep, clock_nanosleep_time64, -1, IN(2, 16),
	    OUT(3, 16)),
	OLD(clock_nanosleep, -1, IN(2, 8), OUT(3, 8)),
	CALL(getitimer, OUT(1, 16)),
	CALL(setitimer, IN(1, 16), OUT(2, 16)),
	NEW(timerfd_gettime, timerfd_gettime64, 0, OUT(1, 32)),
	OLD(timerfd_gettime, 0, OUT(1, 16)),
	NEW(timerfd_settime, timerfd_settime64, 0, IN(2, 32), OUT(3, 32)),
	OLD(timerfd_settime, 0, IN(2, 16), OUT(3, 16)),

	/* processes, threads and signals */
	CALL(waitpid, OUT(1, 4)),
	CALL(wait4, OUT(1, 4), OUT(3, 72)),
	CALL(waitid, OUT(2, 128), OUT(4, 72)),
	CALL(clone, OUT(2, 4), OUT(4, 4)),
	NEW(futex, futex_time64, -1, BOTH(0, 4), IN(3, 16), BOTH(4, 4)),
	OLD(futex, -1, BOTH(0, 4), IN(3, 8), BOTH(4, 4)),
	CALL(rt_sigaction, IN(1, 20), OUT(2, 20)),
	CALL(sigaltstack, IN(0, 12), OUT(1, 12)),
	CALL(getrusage, OUT(1, 72)),
	NEW(getrlimit, ugetrlimit, -1, OUT(1, 8)),
	CALL(setrlimit, IN(1, 8)),
	NEW(getgroups, getgroups32, -1, OUT_INT(1, 0, 4)),
	NEW(setgroups, setgroups32, -1, IN_INT(1, 0, 4)),
	CALL(get_robust_list, OUT(1, 4), OUT(2, 4)),

	/* the machine */
	CALL(sysinfo, OUT(0, 64)),
};

const struct ex_syscall_row *
ex_syscall_rows_narrow(size_t *n)
{
	*n = sizeof(rows) / sizeof(rows[0]);
	return rows;
}
#else
const struct ex_syscall_row *
ex_syscall_rows_narrow(size_t *n)
{
	*n = 0;
	return NULL;
}
#endif
