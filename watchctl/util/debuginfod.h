/*
 * debuginfod: debug information from servers, if the user's environment names
 * any (DEBUGINFOD_URLS).
 */
#ifndef DEBUGINFOD_H
#define DEBUGINFOD_H

/*
 * Fetch the debug information of what has this build id (lower-case hex), in a
 * process of its own, which is ended after a minute, or when a signal asks
 * watchctl to end.  A descriptor of a file whose contents nobody has checked;
 * or -errno: -ENOENT: none is to be had.
 */
int debuginfod_fetch(const char *build_id);

/* That process: `watchctl debuginfod BUILD-ID'.  It writes the file's path to
   its standard output.  Result: its exit status. */
int debuginfod(const char *build_id);

#endif
