/*
 * core: writes a core file of a live process, which continues afterwards.
 *
 * The file contains what the kernel writes into one: the registers of every
 * thread, the auxiliary vector, the mapped files, and the memory that
 * /proc/PID/coredump_filter selects.
 */
#ifndef CORE_H
#define CORE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The contents of a core file. */
struct core_of {
	pid_t pid;
	pid_t tid;		/* the thread that made the hit, which comes
				   first */
	siginfo_t why;		/* the signal that debuggers shall show as its
				   cause */
	/* Called repeatedly during the writing, which ends when it returns
	   true; may be NULL. */
	bool (*give_up)(void *arg);
	void *arg;
};

/* The size of what was written. */
struct core_size {
	uint64_t bytes;		/* size of the file */
	uint64_t used;		/* of them, outside of holes */
	unsigned threads;	/* threads whose registers are in it */
	unsigned missing;	/* and threads whose registers are not: they
				   sleep uninterruptibly or are ending */
};

/*
 * Write a core file into an empty file.  All threads of the process are stopped
 * and traced by the calling thread.  Pages that were never used are not
 * touched.  0 or -errno: -ESRCH the process was killed; -EINTR give_up ended
 * it; -ENOTSUP the process is a 32-bit one, or exceeds ELF's limits; or as of
 * write(2).
 */
int core_write(int fd, const struct core_of *, struct core_size *);

#endif
