/*
 * mounted: a text in the place of a file, for a child process of a test.  It
 * is mounted over the file in a mount namespace of the process's own.
 */
#ifndef MOUNTED_H
#define MOUNTED_H

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mount.h>

#include "scratch.h"

/* False: mount namespaces are not available. */
static inline bool
mounted_text(const char *file, const char *text)
{
	FILE *f = fopen(scratch_path("mounted"), "w");

	return f != NULL && fputs(text, f) != EOF && fclose(f) == 0 &&
	    unshare(CLONE_NEWNS) == 0 &&
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	    mount(scratch_path("mounted"), file, NULL, MS_BIND, NULL) == 0;
}

#endif
