/*
 * refuse: has the kernel refuse system calls from now on, in this process and
 * its children, as container seccomp filters do.  It cannot be undone.
 */
#ifndef REFUSE_H
#define REFUSE_H

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A condition on an argument: it has this value, or at least this value. */
struct refuse_arg {
	unsigned index;
	uint32_t value;
	bool at_least;
};

/* Refuse a system call with an errno, if n arguments meet their conditions.
   Result: whether that worked. */
static inline bool
refuse_call(long call, int err, const struct refuse_arg *arg, unsigned n)
{
	struct sock_filter code[12] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
		    offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0,
		    (uint8_t)(2 * n + 1)),
	};
	const struct sock_fprog filter = {
		.len = (unsigned short)(2 * n + 4), .filter = code,
	};

	assert_true(filter.len <= COUNT(code));
	for (unsigned i = 0; i < n; i++) {
		const unsigned how = arg[i].at_least ? BPF_JGE : BPF_JEQ;

		code[2 + 2 * i] = (struct sock_filter)BPF_STMT(
		    BPF_LD | BPF_W | BPF_ABS, (uint32_t)(offsetof(
		    struct seccomp_data, args) + 8 * arg[i].index));
		code[3 + 2 * i] = (struct sock_filter)BPF_JUMP(
		    BPF_JMP | how | BPF_K, arg[i].value, 0,
		    (uint8_t)(2 * (n - i) - 1));
	}
	code[2 * n + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
	    SECCOMP_RET_ERRNO | (unsigned)err);
	code[2 * n + 3] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
	    SECCOMP_RET_ALLOW);
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

/* Become an ordinary user; a function for start_prepared(). */
static inline bool
be_nobody(int unused)
{
	(void)unused;
	return setresgid(65534, 65534, 65534) == 0 &&
	    setresuid(65534, 65534, 65534) == 0;
}

/* Become an ordinary user for whom perf_event_open(2) is refused; a test
   group's setup. */
static inline int
be_refused(void **state)
{
	const uid_t nobody = 65534;

	(void)state;
	if (geteuid() == 0 && (setgid(nobody) != 0 || setuid(nobody) != 0 ||
	    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0))
		return -1;
	return refuse_call(SYS_perf_event_open, EPERM, NULL, 0) ? 0 : -1;
}

#endif
