/*
 * debuginfod: debug information from servers, if the user's environment names
 * any (DEBUGINFOD_URLS).
 */
#ifndef DEBUGINFOD_H
#define DEBUGINFOD_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Fetch the debug information of what has this build id (lower-case hex), in a
 * process of its own, which is ended after a minute, or when a signal asks
 * watchctl to end.  A descriptor of a file whose contents nobody has checked;
 * or -errno: -ENOENT: none is to be had.
 */
int debuginfod_fetch(const char *build_id);

/* The same, while the caller does something else. */
struct debuginfod_fetch {
	bool begun;
	int from;		/* readable when there is something to look at */
	int pidfd;		/* that process */
	long until;		/* ms, as of wp_clock_ms */
	size_t len;
	char path[PATH_MAX];	/* that it has written so far */
};

/* Begin one.  0 or -errno. */
int debuginfod_begin(struct debuginfod_fetch *, const char *build_id);

/* See how it goes, from time to time.  -EAGAIN: it goes on; or as of
   debuginfod_fetch, and it has ended. */
int debuginfod_look(struct debuginfod_fetch *);

/* End it, if it was begun. */
void debuginfod_abandon(struct debuginfod_fetch *);

/* That process: `watchctl debuginfod BUILD-ID'.  It writes the file's path to
   its standard output.  Result: its exit status. */
int debuginfod(const char *build_id);

#endif
