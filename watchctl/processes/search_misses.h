/*
 * search_misses: sets of files that were searched without success.
 *
 * A test suite or a shell script mostly executes the same few programs, and
 * searching all the debug information of a program for a name is slow.  So if
 * nothing is found, the files that the process had mapped are remembered with
 * their identity: a file that was written or replaced since is another one.
 */
#ifndef SEARCH_MISSES_H
#define SEARCH_MISSES_H

#include <stdbool.h>
#include <sys/types.h>

#include "util/buffer.h"

struct search_misses {
	struct buffer *set;	/* n of them */
	size_t n, cap;
};

/* The files that a process has mapped executable, as they are now; early as in
   live_broker_resolve.  Empty: they are not known for certain. */
struct buffer search_misses_set(pid_t, bool early);

/* Whether such a set was remembered; remember one.  The caller keeps the
   set. */
bool search_misses_has(const struct search_misses *, const struct buffer *set);
void search_misses_add(struct search_misses *, const struct buffer *set);

void search_misses_free(struct search_misses *);

#endif
