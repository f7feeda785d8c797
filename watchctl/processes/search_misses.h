/*
 * search_misses: sets of files that were searched in vain.
 *
 * Programs that a test suite or a shell script executes are mostly the same
 * few, and looking for a name in all the debug information of a program takes
 * long.  So which files a process had mapped when nothing was found is kept,
 * and what these files were: one that has been written or replaced since is
 * another.
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

/* The files that a process has mapped to execute, as they are now; early as of
   live_broker_resolve.  Empty: that is not known for certain. */
struct buffer search_misses_set(pid_t, bool early);

/* Whether there was such a set before; remember one.  Both leave the set to its
   owner. */
bool search_misses_has(const struct search_misses *, const struct buffer *set);
void search_misses_add(struct search_misses *, const struct buffer *set);

void search_misses_free(struct search_misses *);

#endif
