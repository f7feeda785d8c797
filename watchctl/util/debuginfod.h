/*
 * debuginfod: debug information from servers, if the user's environment names
 * any (DEBUGINFOD_URLS).
 */
#ifndef DEBUGINFOD_H
#define DEBUGINFOD_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* A process that fetches, while its parent does something else; it is ended
   after a minute, or when a signal asks watchctl to end. */
struct debuginfod_fetch {
	bool begun;
	int from;		/* readable when there is something to look
				   at */
	int pidfd;		/* that process */
	long until;		/* ms, as of wp_clock_ms */
	size_t len;
	char path[PATH_MAX];	/* that it has written so far */
};

/* Begin to fetch the debug information of what has this build id (lower-case
   hex).  0 or -errno. */
int debuginfod_begin(struct debuginfod_fetch *, const char *build_id);

/* See how it goes, from time to time.  -EAGAIN: it goes on.  Or it has ended: a
   descriptor of a file whose contents nobody has checked, or another -errno:
   -ENOENT: none is to be had. */
int debuginfod_look(struct debuginfod_fetch *);

/* End it, if it was begun. */
void debuginfod_abandon(struct debuginfod_fetch *);

/* That process: `watchctl debuginfod BUILD-ID'.  It writes the file's path to
   its standard output.  Result: its exit status. */
int debuginfod(const char *build_id);

#endif
