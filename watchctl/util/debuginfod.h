/*
 * debuginfod: fetches debug information from servers, if the user's environment
 * names any (DEBUGINFOD_URLS).
 */
#ifndef DEBUGINFOD_H
#define DEBUGINFOD_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* A process that fetches a file in the background; it is ended after a minute,
   or when a signal asks watchctl to end. */
struct debuginfod_fetch {
	bool begun;
	int from;		/* when it is readable, debuginfod_look has to
				   be called */
	int pidfd;		/* the fetching process */
	long until;		/* ms, as of wp_clock_ms */
	size_t len;
	char path[PATH_MAX];	/* what it has written so far */
};

/* Begin to fetch the debug information with this build id (lower-case hex).  0
   or -errno. */
int debuginfod_begin(struct debuginfod_fetch *, const char *build_id);

/* Check the progress, from time to time.  -EAGAIN: it is still fetching.
   Otherwise it has ended, with a descriptor of a file whose contents are
   unchecked, or with another -errno (-ENOENT: no server has the file). */
int debuginfod_look(struct debuginfod_fetch *);

/* End it, if it was begun. */
void debuginfod_abandon(struct debuginfod_fetch *);

/* The fetching process: `watchctl debuginfod BUILD-ID'.  It writes the file's
   path to its standard output.  Result: its exit status. */
int debuginfod(const char *build_id);

#endif
