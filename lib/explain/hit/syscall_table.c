/* syscall_table: which memory system calls touch, by their arguments. */
#include "hit/syscall_rows.h"

#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define NUMBER(name)	SYS_##name
#else
#define NUMBER(name)	(-1)	/* that processor has not all of them */
#endif
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
	CALL(sendfile, BOTH(2, 8)),
	CALL(splice, BOTH(1, 8), BOTH(3, 8)),
	CALL(copy_file_range, BOTH(1, 8), BOTH(3, 8)),
	CALL(process_vm_readv, IOV(W, 1, 2), IN_N(3, 4, 16)),
	CALL(process_vm_writev, IOV(R, 1, 2), IN_N(3, 4, 16)),
	CALL(getrandom, OUT_N(0, 1, 1)),

	/* sockets */
	CALL_FD(recvfrom, OUT_N(1, 2, 1), OUT_POINTED(4, 5), BOTH(5, 4)),
	CALL_FD(recvmsg, {EX_SYSCALL_MESSAGE, W, 1, 0, 0}),
	CALL_FD(recvmmsg, {EX_SYSCALL_MESSAGES, W, 1, 2, 0}, BOTH(4, 16)),
	CALL_FD(sendto, IN_N(1, 2, 1), IN_INT(4, 5, 1)),
	CALL_FD(sendmsg, {EX_SYSCALL_MESSAGE, R, 1, 0, 0}),
	CALL_FD(sendmmsg, {EX_SYSCALL_MESSAGES, R, 1, 2, 0}),
	CALL_FD(accept, OUT_POINTED(1, 2), BOTH(2, 4)),
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
	CALL(ppoll, POLL(0, 1), BOTH(2, 16), IN_N(3, 4, 1)),
	CALL(select, SET(1), SET(2), SET(3), BOTH(4, 16)),
	CALL(pselect6, SET(1), SET(2), SET(3), BOTH(4, 16), IN(5, 16)),
	CALL_FD(epoll_wait, OUT_INT(1, 2, 12)),
	CALL_FD(epoll_pwait, OUT_INT(1, 2, 12), IN_N(4, 5, 1)),
	CALL_FD(epoll_pwait2, OUT_INT(1, 2, 12), IN(3, 16), IN_N(4, 5, 1)),
	CALL_FD(epoll_ctl, IN(3, 12)),
	CALL(io_setup, OUT(1, 8)),
	CALL(io_submit, IN_N(2, 1, 8)),
	CALL(io_getevents, OUT_N(3, 2, 32), IN(4, 16)),
	CALL(io_pgetevents, OUT_N(3, 2, 32), IN(4, 16), IN(5, 16)),
	CALL(io_uring_setup, BOTH(1, 120)),
	CALL(io_uring_enter),

	/* files */
	CALL(open, STRING(0)),
	CALL(openat, STRING(1)),
	CALL(openat2, STRING(1), IN_N(2, 3, 1)),
	CALL(stat, STRING(0), OUT(1, 144)),
	CALL(lstat, STRING(0), OUT(1, 144)),
	CALL_FD(fstat, OUT(1, 144)),
	CALL_AT(newfstatat, 3, STRING(1), OUT(2, 144)),
	CALL_AT(statx, 2, STRING(1), OUT(4, 256)),
	CALL(statfs, STRING(0), OUT(1, 120)),
	CALL_FD(fstatfs, OUT(1, 120)),
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
	CALL_FD(ioctl, {EX_SYSCALL_IOCTL, R | W, 2, 1, 4096}),
	CALL(name_to_handle_at, STRING(1), BOTH_UPTO(2, 136), OUT(3, 4)),
	CALL(ustat, OUT(1, 32)),

	/* time */
	CALL(clock_gettime, OUT(1, 16)),
	CALL(clock_getres, OUT(1, 16)),
	CALL(clock_settime, IN(1, 16)),
	CALL(clock_adjtime, BOTH(1, 208)),
	CALL(adjtimex, BOTH(0, 208)),
	CALL(gettimeofday, OUT(0, 16), OUT(1, 8)),
	CALL(time, OUT(0, 8)),
	CALL(times, OUT(0, 32)),
	CALL(nanosleep, IN(0, 16), OUT(1, 16)),
	CALL(clock_nanosleep, IN(2, 16), OUT(3, 16)),
	CALL(getitimer, OUT(1, 32)),
	CALL(setitimer, IN(1, 32), OUT(2, 32)),
	CALL(timer_create, IN(1, 64), OUT(2, 4)),
	CALL(timer_gettime, OUT(1, 32)),
	CALL(timer_settime, IN(2, 32), OUT(3, 32)),
	CALL_FD(timerfd_gettime, OUT(1, 32)),
	CALL_FD(timerfd_settime, IN(2, 32), OUT(3, 32)),

	/* processes, threads and signals */
	CALL(wait4, OUT(1, 4), OUT(3, 144)),
	CALL(waitid, OUT(2, 128), OUT(4, 144)),
	CALL(clone, OUT(2, 4), OUT(3, 4)),
	CALL(clone3, IN_N(0, 1, 1)),
	CALL(execve, STRING(0)),
	CALL(futex, BOTH(0, 4), IN(3, 16), BOTH(4, 4)),
	CALL(rt_sigaction, IN(1, 32), OUT(2, 32)),
	CALL(rt_sigprocmask, IN_N(1, 3, 1), OUT_N(2, 3, 1)),
	CALL(rt_sigpending, OUT_N(0, 1, 1)),
	CALL(rt_sigsuspend, IN_N(0, 1, 1)),
	CALL(rt_sigtimedwait, IN_N(0, 3, 1), OUT(1, 128), IN(2, 16)),
	CALL(rt_sigqueueinfo, IN(2, 128)),
	CALL(rt_tgsigqueueinfo, IN(3, 128)),
	CALL(sigaltstack, IN(0, 24), OUT(1, 24)),
	CALL(prctl, BOTH_UPTO(1, 4096)),
	CALL(arch_prctl, OUT(1, 8)),
	CALL(getrusage, OUT(1, 144)),
	CALL(getrlimit, OUT(1, 16)),
	CALL(setrlimit, IN(1, 16)),
	CALL(prlimit64, IN(2, 16), OUT(3, 16)),
	CALL(sched_getaffinity, OUT_INT(2, 1, 1)),
	CALL(sched_setaffinity, IN_INT(2, 1, 1)),
	CALL(sched_getparam, OUT(1, 4)),
	CALL(sched_getattr, OUT_INT(1, 2, 1)),
	CALL(sched_rr_get_interval, OUT(1, 16)),
	CALL(restart_syscall),
	CALL(ptrace, BOTH_UPTO(3, 4096)),
	CALL(capget, BOTH(0, 8), OUT_UPTO(1, 24)),
	CALL(getgroups, OUT_INT(1, 0, 4)),
	CALL(setgroups, IN_INT(1, 0, 4)),
	CALL(getresuid, OUT(0, 4), OUT(1, 4), OUT(2, 4)),
	CALL(getresgid, OUT(0, 4), OUT(1, 4), OUT(2, 4)),
	CALL(get_robust_list, OUT(1, 8), OUT(2, 8)),

	/* messages between processes */
	CALL(msgrcv, OUT_MESSAGE(1, 2)),
	CALL(msgsnd, IN_MESSAGE(1, 2)),
	CALL(msgctl, BOTH_UPTO(2, 120)),
	CALL(shmctl, BOTH_UPTO(2, 112)),
	CALL(semctl, BOTH_UPTO(3, 65535)),
	CALL_FD(mq_timedreceive, OUT_N(1, 2, 1), OUT(3, 4), IN(4, 16)),
	CALL_FD(mq_timedsend, IN_N(1, 2, 1), IN(4, 16)),
	CALL_FD(mq_getsetattr, IN(1, 64), OUT(2, 64)),

	/* the machine */
	CALL(mincore, OUT_UPTO(2, 65535)),
	CALL(get_mempolicy, OUT(0, 4), OUT_UPTO(1, 128)),
	CALL(move_pages, IN_N(2, 1, 8), IN_N(3, 1, 4), OUT_N(4, 1, 4)),
	CALL(syslog, OUT_INT(1, 2, 1)),
	CALL(uname, OUT(0, 390)),
	CALL(sysinfo, OUT(0, 112)),
	CALL(getcpu, OUT(0, 4), OUT(1, 4)),
};

static const struct ex_syscall_row *
table(bool narrow, size_t *n)
{
	if (narrow)
		return ex_syscall_rows_narrow(n);
	*n = sizeof(rows) / sizeof(rows[0]);
	return rows;
}

/* The name's length without what kernels add for 32-bit programs, whose times
   have 4 bytes (*old) or 8. */
static size_t
plain_name(const char *name, bool narrow, bool *old)
{
	static const char *const more[] = { "_time32", "_time64", "32" };
	const size_t len = strcspn(name, ".");

	*old = false;
	for (size_t i = 0; narrow && i < sizeof(more) / sizeof(more[0]); i++) {
		const size_t n = strlen(more[i]);

		if (len <= n || strncmp(name + len - n, more[i], n) != 0)
			continue;
		*old = i != 1;
		return len - n;
	}
	return len;
}

const struct ex_syscall_row *
ex_syscall_row(const char *name, bool narrow)
{
	bool old;
	const size_t len = plain_name(name, narrow, &old);
	size_t n;
	const struct ex_syscall_row *row = table(narrow, &n);

	for (; n > 0; n--, row++)
		if (strncmp(name, row->name, len) == 0 &&
		    row->name[len] == '\0' && row->old == old)
			return row;
	return NULL;
}

const struct ex_syscall_row *
ex_syscall_row_number(int number, bool narrow)
{
	size_t n;
	const struct ex_syscall_row *row = table(narrow, &n);

	for (; n > 0; n--, row++)
		if (number >= 0 && number == row->number)
			return row;
	return NULL;
}
