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

/* The process, and the reason. */
struct core_of {
	pid_t pid;
	pid_t tid;		/* the thread that it is about, which comes
				   first */
	siginfo_t why;		/* what a reader is to take for the signal that
				   it got */
	/* asked now and then: true ends the writing; NULL: no one to ask */
	bool (*give_up)(void *arg);
	void *arg;		/* handed to it */
};

/* What was written. */
struct core_size {
	uint64_t bytes;		/* of the file, */
	uint64_t used;		/* that are not holes */
	unsigned threads;	/* whose registers are in it */
	unsigned missing;	/* and are not: they sleep where no stop reaches
				   them, or are ending */
};

/*
 * Write a core file into an empty file.  All threads of the process are
 * stopped, traced by the calling thread; memory that was never used stays
 * unused. 0 or -errno: -ESRCH the process was killed; -EINTR given up; -ENOTSUP
 * a 32-bit process, or out of ELF's bounds; or of write(2).
 */
int core_write(int fd, const struct core_of *, struct core_size *);

#endif
