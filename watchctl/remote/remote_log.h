/*
 * remote_log: the entries that another explainer has to be sent again
 * (session/journal.h), without those that no longer apply.
 */
#ifndef REMOTE_LOG_H
#define REMOTE_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/buffer.h"

/* A hit that has to be sent again, for which its process's mappings at that
   time are needed. */
struct remote_log_use {
	uint64_t time;		/* the time in its records */
	pid_t pid;
};

/* The parts of the log that are needed. */
struct remote_log_calls {
	const struct remote_log_use *use;	/* nuses of them, by their
				   times */
	size_t nuses;
	/* whether a process is needed although it has ended */
	bool (*needs)(void *arg, pid_t);
	/* nothing of a process is left */
	void (*gone)(void *arg, pid_t);
	void *arg;
};

/* Drop from entries of a journal the records of threads and processes that have
   ended according to the records, unless others have inherited from them; and
   records of mappings that were replaced, unless the old ones were inherited or
   used.  Without memory nothing is dropped. */
void remote_log_shrink(struct buffer *, const struct remote_log_calls *);

#endif
