/*
 * siginfo_perf: the siginfo_t of a perf event's or a debug register's signal as
 * the kernel makes it, which older C libraries do not know (TRAP_* and
 * TRAP_PERF_FLAG_*; glibc 2.36).  A 32-bit program gets the lower halves of
 * addr and data.
 */
#ifndef WP_SIGINFO_PERF_H
#define WP_SIGINFO_PERF_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

enum {
	WP_TRAP_HWBKPT = 4,	/* code: a debug register that ptrace(2) set */
	WP_TRAP_PERF = 6,	/* code: an event with sigtrap */
	WP_TRAP_PERF_LATE = 1,	/* flags: the signal was blocked (ASYNC) */
};

struct wp_siginfo_perf {
	int32_t signo, error, code;
	uintptr_t addr;		/* of the access; O_ASYNC: si_band */
	uintptr_t data;		/* the event's sig_data; O_ASYNC: si_fd */
	uint32_t type, flags;
};
_Static_assert(offsetof(struct wp_siginfo_perf, addr) ==
    offsetof(siginfo_t, si_band) &&
    offsetof(struct wp_siginfo_perf, data) == offsetof(siginfo_t, si_fd) &&
    sizeof(struct wp_siginfo_perf) <= sizeof(siginfo_t),
    "as the kernel has it");

#endif
