/*
 * side_files: writes the files in addition to a report, at its end: --junit,
 * --sarif, --github, --learn.
 *
 * Files of --junit and --sarif are created when the run begins, and emptied
 * when its report begins, so that findings of an earlier run are not taken for
 * this one's.  The file of --learn is replaced at the end.
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
		bool made;	/* the file was created by us, and is empty */
	} of[SIDES];
};

/* Open the files, and check that --learn can add to its file; report: the path
   of the report, which must differ, NULL: it has none.  0, or -errno after a
   line on stderr. */
int side_files_open(struct side_files *, const struct options *,
    const char *report);

/* Empty the files, as the report begins.  0 or -errno. */
int side_files_begin(struct side_files *);

/* Write the whole content of one file; --learn adds to an existing file.  0, or
   -errno after a line on stderr. */
int side_files_write(struct side_files *, enum side, const char *bytes,
    size_t len);

/* Close the files; remove those that were created if no report began. */
void side_files_close(struct side_files *);

/*
 * Also for the report's own file: open or create a file.  Result: a descriptor,
 * or 0 and a stream; or -EINVAL after a line on stderr that names the option.
 */
int side_open_path(const char *option, const char *path, int flags,
    bool *made);
int side_open_stream(const char *option, const char *path, FILE **stream,
    bool *made);

/* Empty a regular file; others are left alone.  0 or -errno. */
int side_empty(int fd);

/* Whether both paths name the same existing file. */
bool side_is_same_file(const char *a, const char *b);

#endif
