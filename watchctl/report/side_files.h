/*
 * side_files: the files that are written in addition to a report, at its end:
 * --junit, --sarif,
 * --github, --learn.
 *
 * Files of --junit and --sarif are made when the run begins, and emptied when
 * its report does, so that what an earlier run found is not taken for this
 * one's.  That of --learn is replaced at the end.
 */
#ifndef SIDE_FILES_H
#define SIDE_FILES_H

#include <stdbool.h>
#include <stdio.h>

#include "option/options.h"

struct side_files {
	const struct options *options;	/* NULL: none is open */
	struct side_file {
		FILE *stream;	/* NULL: not wanted, or --learn */
		bool made;	/* the file is ours, and empty */
	} of[SIDES];
};

/* Open them, and look whether --learn can add to its file; report: the path of
   the report, which is another, NULL: it has none.  0, or -errno after a line
   on stderr. */
int side_files_open(struct side_files *, const struct options *,
    const char *report);

/* The report begins.  0 or -errno. */
int side_files_begin(struct side_files *);

/* Write what comes of one, as a whole; an existing file of --learn is added to.
   0, or -errno after a line on stderr. */
int side_files_write(struct side_files *, enum side, const char *bytes,
    size_t len);

/* What failed before its report began leaves nothing behind. */
void side_files_close(struct side_files *);

/*
 * For the report's own file, too.  Open or make one: a descriptor, or 0 and a
 * stream; or -EINVAL after a line on stderr that names the option.
 */
int side_open_path(const char *option, const char *path, int flags,
    bool *made);
int side_open_stream(const char *option, const char *path, FILE **stream,
    bool *made);

/* Have a file forget what it held; others than files hold nothing.  0 or
   -errno. */
int side_empty(int fd);

/* Whether both are names of one file, which is there. */
bool side_is_same_file(const char *a, const char *b);

#endif
