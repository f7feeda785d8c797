/* no_slots: takes all slots before the tests of a file, and gives them back. */
#ifndef NO_SLOTS_H
#define NO_SLOTS_H

#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/slot.h"

enum { CPUS_MAX = 1024 };

static struct {
	uint64_t word;
	int fd[CPUS_MAX * WP_SLOTS_MAX];
	size_t n;
} taken;

/* Those of each processor, which then has none for any thread. */
static inline int
take_slots(void **state)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT, .size = sizeof(attr),
		.disabled = 1, .bp_type = HW_BREAKPOINT_W,
		.bp_len = sizeof(taken.word), .bp_addr = (uintptr_t)&taken.word,
		.exclude_kernel = 1,
	};
	const long cpus = sysconf(_SC_NPROCESSORS_CONF);
	int got = 0;

	(void)state;
	for (int cpu = 0; cpu < cpus && cpu < CPUS_MAX; cpu++, got = 0)
		for (int i = 0; i < WP_SLOTS_MAX && got >= 0; i++)
			if ((got = (int)syscall(SYS_perf_event_open, &attr, -1,
			    cpu, -1, PERF_FLAG_FD_CLOEXEC)) >= 0)
				taken.fd[taken.n++] = got;
	return 0;
}

static inline int
give_slots(void **state)
{
	(void)state;
	while (taken.n > 0)
		(void)close(taken.fd[--taken.n]);
	return 0;
}

#endif
