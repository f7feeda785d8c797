/*
 * program: runs programs that watch themselves, as children of a test.  They
 * make their own checks; the test fails with the line of the first failed one.
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <stdio.h>
#include <sys/mman.h>

#include "child.h"

/* The line of the failed check; shared. */
static volatile int *program_failed;

#define CHECK(condition) do {						\
		if (!(condition)) {					\
			*program_failed = __LINE__;			\
			_exit(1);					\
		}							\
	} while (0)

/* Run one to its end; it is killed if that takes too long. */
static inline void
program(void (*fn)(void *), const void *arg)
{
	uint64_t give_up = wp_clock_ns() + CHILD_PATIENCE_MS * 1000000ull;
	int status = -1;
	pid_t pid;

	if (program_failed == NULL)
		program_failed = shared_memory(sizeof(*program_failed));
	*program_failed = 0;
	(void)fflush(NULL);
	pid = child_start(fn, (void *)(uintptr_t)arg);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (wp_clock_ns() > give_up) {
			child_kill(pid);
			fail_msg("the program does not end");
		}
		nap_us(1000);
	}
	child_note(pid, 0);
	if (*program_failed != 0)
		fail_msg("the program failed at line %d", *program_failed);
	assert_int_equal(status, 0);
}

#endif
