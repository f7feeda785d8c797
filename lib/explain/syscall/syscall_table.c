/* syscall_table: the memory that system calls touch, by their arguments. */
#include "syscall/syscall_rows.h"

#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define NUMBER(name)	SYS_##name
#else
#define NUMBER(name)	(-1)	/* that processor has not all of them */
#endif
static const struct ex_syscall_row rows[] = {
	ROWS_OF_BOTH,

	/* bytes from a descriptor, and to one */
	CALL(sendfile, BOTH(2, 8)),
	CALL(process_vm_readv, IOV(W, 1, 2), IN_N(3, 4, 16)),
	CALL(process_vm_writev, IOV(R, 1, 2), IN_N(3, 4, 16)),

	/* sockets */
	CALL_FD(recvmmsg, {EX_SYSCALL_MESSAGES, W, 1, 2, 0}, BOTH(4, 16)),
	CALL_FD(accept, OUT_POINTED(1, 2), BOTH(2, 4)),

	/* waiting for descriptors */
	CALL(ppoll, POLL(0, 1), BOTH(2, 16), IN_N(3, 4, 1)),
	CALL(select, SET(1), SET(2), SET(3), BOTH(4, 16)),
	CALL(pselect6, SET(1), SET(2), SET(3), BOTH(4, 16), IN(5, 16)),
	CALL(io_setup, OUT(1, 8)),
	CALL(io_submit, IN_N(2, 1, 8)),
	CALL(io_getevents, OUT_N(3, 2, 32), IN(4, 16)),
	CALL(io_pgetevents, OUT_N(3, 2, 32), IN(4, 16), IN(5, 16)),

	/* files */
	CALL(stat, STRING(0), OUT(1, 144)),
	CALL(lstat, STRING(0), OUT(1, 144)),
	CALL_FD(fstat, OUT(1, 144)),
	CALL_AT(newfstatat, 3, STRING(1), OUT(2, 144)),
	CALL(statfs, STRING(0), OUT(1, 120)),
	CALL_FD(fstatfs, OUT(1, 120)),
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
	CALL(futex, BOTH(0, 4), IN(3, 16), BOTH(4, 4)),
	CALL(rt_sigaction, IN(1, 32), OUT(2, 32)),
	CALL(rt_sigtimedwait, IN_N(0, 3, 1), OUT(1, 128), IN(2, 16)),
	CALL(rt_sigqueueinfo, IN(2, 128)),
	CALL(rt_tgsigqueueinfo, IN(3, 128)),
	CALL(sigaltstack, IN(0, 24), OUT(1, 24)),
	CALL(arch_prctl, OUT(1, 8)),
	CALL(getrusage, OUT(1, 144)),
	CALL(getrlimit, OUT(1, 16)),
	CALL(setrlimit, IN(1, 16)),
	CALL(sched_getparam, OUT(1, 4)),
	CALL(sched_getattr, OUT_INT(1, 2, 1)),
	CALL(sched_rr_get_interval, OUT(1, 16)),
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
	CALL(get_mempolicy, OUT(0, 4), OUT_UPTO(1, 128)),
	CALL(move_pages, IN_N(2, 1, 8), IN_N(3, 1, 4), OUT_N(4, 1, 4)),
	CALL(sysinfo, OUT(0, 112)),
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
