/* syscall_table_i386: the same of 32-bit programs on x86-64. */
#include "hit/syscall_rows.h"

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
	/* bytes from a descriptor, and to one */
	CALL_FD(read, OUT_N(1, 2, 1)),
	CALL_FD(pread64, OUT_N(1, 2, 1)),
	CALL_FD(readv, IOV(W, 1, 2)),
	CALL_FD(preadv, IOV(W, 1, 2)),
	CALL_FD(preadv2, IOV(W, 1, 2)),
	CALL_FD(write, IN_N(1, 2, 1)),
	CALL_FD(pwrite64, IN_N(1, 2, 1)),
	CALL_FD(writev, IOV(R, 1, 2)),
	CALL_FD(pwritev, IOV(R, 1, 2)),
	CALL_FD(pwritev2, IOV(R, 1, 2)),
	CALL_FD(vmsplice, IOV(R | W, 1, 2)),
	NEW(llseek, _llseek, 0, OUT(3, 8)),
	CALL(sendfile, BOTH(2, 4)),
	CALL(sendfile64, BOTH(2, 8)),
	CALL(splice, BOTH(1, 8), BOTH(3, 8)),
	CALL(copy_file_range, BOTH(1, 8), BOTH(3, 8)),
	CALL(process_vm_readv, IOV(W, 1, 2), IN_N(3, 4, 8)),
	CALL(process_vm_writev, IOV(R, 1, 2), IN_N(3, 4, 8)),
	CALL(getrandom, OUT_N(0, 1, 1)),

	/* sockets */
	CALL(socketcall),
	{"accept", -1, 0, -1, {OUT_POINTED(1, 2), BOTH(2, 4)}},
	CALL_FD(recvfrom, OUT_N(1, 2, 1), OUT_POINTED(4, 5), BOTH(5, 4)),
	CALL_FD(recvmsg, {EX_SYSCALL_MESSAGE, W, 1, 0, 0}),
	NEW(recvmmsg, recvmmsg_time64, 0, {EX_SYSCALL_MESSAGES, W, 1, 2, 0},
	    BOTH(4, 16)),
	OLD(recvmmsg, 0, {EX_SYSCALL_MESSAGES, W, 1, 2, 0}, BOTH(4, 8)),
	CALL_FD(sendto, IN_N(1, 2, 1), IN_INT(4, 5, 1)),
	CALL_FD(sendmsg, {EX_SYSCALL_MESSAGE, R, 1, 0, 0}),
	CALL_FD(sendmmsg, {EX_SYSCALL_MESSAGES, R, 1, 2, 0}),
	CALL_FD(accept4, OUT_POINTED(1, 2), BOTH(2, 4)),
	CALL_FD(getsockname, OUT_POINTED(1, 2), BOTH(2, 4)),
	CALL_FD(getpeername, OUT_POINTED(1, 2), BOTH(2, 4)),
	CALL_FD(bind, IN_INT(1, 2, 1)),
	CALL_FD(connect, IN_INT(1, 2, 1)),
	CALL_FD(getsockopt, OUT_POINTED(3, 4), BOTH(4, 4)),
	CALL_FD(setsockopt, IN_INT(3, 4, 1)),
	CALL(socketpair, OUT(3, 8)),
	CALL(pipe, OUT(0, 8)),
	CALL(pipe2, OUT(0, 8)),

	/* waiting for descriptors */
	CALL(poll, POLL(0, 1)),
	NEW(ppoll, ppoll_time64, -1, POLL(0, 1), BOTH(2, 16), IN_N(3, 4, 1)),
	OLD(ppoll, -1, POLL(0, 1), BOTH(2, 8), IN_N(3, 4, 1)),
	NEW(select, _newselect, -1, SET(1), SET(2), SET(3), BOTH(4, 8)),
	NEW(pselect6, pselect6_time64, -1, SET(1), SET(2), SET(3),
	    BOTH(4, 16), IN(5, 8)),
	OLD(pselect6, -1, SET(1), SET(2), SET(3), BOTH(4, 8), IN(5, 8)),
	CALL_FD(epoll_wait, OUT_INT(1, 2, 12)),
	CALL_FD(epoll_pwait, OUT_INT(1, 2, 12), IN_N(4, 5, 1)),
	CALL_FD(epoll_pwait2, OUT_INT(1, 2, 12), IN(3, 16), IN_N(4, 5, 1)),
	CALL_FD(epoll_ctl, IN(3, 12)),
	CALL(io_uring_setup, BOTH(1, 120)),
	CALL(io_uring_enter),

	/* files */
	CALL(open, STRING(0)),
	CALL(openat, STRING(1)),
	CALL(openat2, STRING(1), IN_N(2, 3, 1)),
	CALL(stat64, STRING(0), OUT(1, 96)),
	CALL(lstat64, STRING(0), OUT(1, 96)),
	CALL_FD(fstat64, OUT(1, 96)),
	CALL_AT(fstatat64, 3, STRING(1), OUT(2, 96)),
	CALL(stat, STRING(0), OUT(1, 64)),
	CALL(lstat, STRING(0), OUT(1, 64)),
	CALL_FD(fstat, OUT(1, 64)),
	CALL_AT(statx, 2, STRING(1), OUT(4, 256)),
	CALL(statfs, STRING(0), OUT(1, 64)),
	CALL_FD(fstatfs, OUT(1, 64)),
	CALL(statfs64, STRING(0), OUT(2, 84)),
	CALL_FD(fstatfs64, OUT(2, 84)),
	CALL_FD(getdents, OUT_INT(1, 2, 1)),
	CALL_FD(getdents64, OUT_INT(1, 2, 1)),
	CALL(getcwd, OUT_N(0, 1, 1)),
	CALL(readlink, STRING(0), OUT_INT(1, 2, 1)),
	CALL(readlinkat, STRING(1), OUT_INT(2, 3, 1)),
	CALL(access, STRING(0)),
	CALL(faccessat, STRING(1)),
	CALL(faccessat2, STRING(1)),
	CALL(chdir, STRING(0)),
	CALL(mkdir, STRING(0)),
	CALL(mkdirat, STRING(1)),
	CALL(rmdir, STRING(0)),
	CALL(unlink, STRING(0)),
	CALL(unlinkat, STRING(1)),
	CALL(rename, STRING(0), STRING(1)),
	CALL(getxattr, STRING(0), STRING(1), OUT_N(2, 3, 1)),
	CALL(lgetxattr, STRING(0), STRING(1), OUT_N(2, 3, 1)),
	CALL_FD(fgetxattr, STRING(1), OUT_N(2, 3, 1)),
	CALL(listxattr, STRING(0), OUT_N(1, 2, 1)),
	CALL(llistxattr, STRING(0), OUT_N(1, 2, 1)),
	CALL_FD(flistxattr, OUT_N(1, 2, 1)),
	CALL_FD(fcntl, BOTH_UPTO(2, 32)),
	CALL_FD(fcntl64, BOTH_UPTO(2, 32)),
	CALL_FD(ioctl, {EX_SYSCALL_IOCTL, R | W, 2, 1, 4096}),

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
	CALL(clone3, IN_N(0, 1, 1)),
	CALL(execve, STRING(0)),
	NEW(futex, futex_time64, -1, BOTH(0, 4), IN(3, 16), BOTH(4, 4)),
	OLD(futex, -1, BOTH(0, 4), IN(3, 8), BOTH(4, 4)),
	CALL(rt_sigaction, IN(1, 20), OUT(2, 20)),
	CALL(rt_sigprocmask, IN_N(1, 3, 1), OUT_N(2, 3, 1)),
	CALL(rt_sigpending, OUT_N(0, 1, 1)),
	CALL(rt_sigsuspend, IN_N(0, 1, 1)),
	CALL(sigaltstack, IN(0, 12), OUT(1, 12)),
	CALL(prctl, BOTH_UPTO(1, 4096)),
	CALL(getrusage, OUT(1, 72)),
	NEW(getrlimit, ugetrlimit, -1, OUT(1, 8)),
	CALL(setrlimit, IN(1, 8)),
	CALL(prlimit64, IN(2, 16), OUT(3, 16)),
	CALL(sched_getaffinity, OUT_INT(2, 1, 1)),
	CALL(sched_setaffinity, IN_INT(2, 1, 1)),
	CALL(restart_syscall),
	CALL(ptrace, BOTH_UPTO(3, 4096)),
	CALL(capget, BOTH(0, 8), OUT_UPTO(1, 24)),
	NEW(getgroups, getgroups32, -1, OUT_INT(1, 0, 4)),
	NEW(setgroups, setgroups32, -1, IN_INT(1, 0, 4)),
	CALL(get_robust_list, OUT(1, 4), OUT(2, 4)),

	/* the machine */
	CALL(mincore, OUT_UPTO(2, 65535)),
	CALL(syslog, OUT_INT(1, 2, 1)),
	CALL(uname, OUT(0, 390)),
	CALL(sysinfo, OUT(0, 64)),
	CALL(getcpu, OUT(0, 4), OUT(1, 4)),
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
