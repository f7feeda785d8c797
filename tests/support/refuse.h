/*
 * refuse: become an ordinary user whom perf_event_open(2) is refused, as
 * container seccomp filters do.  There is no way back.
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

/* As a test group's setup. */
static inline int
be_refused(void **state)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
		    offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = {
		sizeof(code) / sizeof(code[0]), code,
	};
	const uid_t nobody = 65534;

	(void)state;
	if (geteuid() == 0 && (setgid(nobody) != 0 || setuid(nobody) != 0 ||
	    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0))
		return -1;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ?
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) : -1;
}

#endif
