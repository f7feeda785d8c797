/*
 * policy_file: the file that lists the allowed writers of each watch.
 *
 *	# who writes what; made by watchctl --learn
 *	[watch]
 *	spec = g_config
 *	access = write
 *	writer = config.c!config_load
 *	allow = test_*
 *
 * There is a [watch] for each SPEC.  A value extends to the end of the line,
 * whatever it contains.  A line that begins with '#' or ';' is a comment;
 * comments and blank lines belong to the line that follows, and are kept.
 */
#ifndef POLICY_FILE_H
#define POLICY_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "watchpoint.h"
#include "util/buffer.h"

enum policy_key { POLICY_WATCH, POLICY_SPEC, POLICY_ACCESS, POLICY_WRITER,
	POLICY_ALLOW };

struct policy_line {
	enum policy_key key;
	char *before;		/* comments and blank lines; "": none */
	char *value;		/* "" of POLICY_WATCH */
	unsigned number;	/* line number in the file, from 1; 0: it is
				   new */
};

struct policy_watch {
	struct policy_line *line;	/* n of them, the first is [watch] */
	size_t n, cap;
	const char *spec;	/* the value of a line, */
	unsigned spec_line;	/* the index of that line */
	enum wp_access access;
};

struct policy_file {
	char *path;		/* NULL: there is no file */
	char *text;		/* len bytes that were read */
	size_t len;
	char *after;		/* comments after the last line; NULL: none */
	unsigned lines;
	struct policy_watch *watch;	/* n of them */
	size_t n, cap;
};

/* Parse a text, which is copied; path is its name in messages.  0; -EINVAL
   after a line on stderr: "PATH:LINE: reason".  Free it in any case. */
int policy_file_parse(struct policy_file *, const char *path, const char *text,
    size_t len);

/* Read and parse a regular file. */
int policy_file_read(struct policy_file *, const char *path);

void policy_file_free(struct policy_file *);

/* The [watch] for a SPEC and an access, or NULL. */
struct policy_watch *policy_file_find(const struct policy_file *,
    const char *spec, enum wp_access);

/* Add a writer (NULL: none), and its [watch] if the file does not have it.  1;
   0 if both exist already; or -ENOMEM. */
int policy_file_add(struct policy_file *, const char *spec, enum wp_access,
    const char *writer);

/* Add all [watch]es and writers of another.  Result: how many were new, or
   -ENOMEM. */
int policy_file_join(struct policy_file *, const struct policy_file *from);

/* Append it in the file's format; the writers of each [watch] are sorted. */
void policy_file_put(const struct policy_file *, struct buffer *);

#endif
