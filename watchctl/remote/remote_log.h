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

/* A hit of a process that has to be sent again: what it had mapped then is
   needed. */
struct remote_log_use {
	uint64_t time;		/* as its records have it */
	pid_t pid;
};

/* Who needs what of it; each is handed arg. */
struct remote_log_calls {
	const struct remote_log_use *use;	/* nuses of them, by their
				   times */
	size_t nuses;
	/* whether a process that has ended is needed all the same */
	bool (*needs)(void *arg, pid_t);
	/* nothing is left of a process */
	void (*gone)(void *arg, pid_t);
	void *arg;
};

/* Drop from entries of a journal the records of threads and processes that have
   ended, as they say themselves, unless others have inherited from them; and
   those of mappings that others have replaced, unless what was there before was
   inherited, or used.  Without memory nothing is dropped. */
void remote_log_shrink(struct buffer *, const struct remote_log_calls *);

#endif
