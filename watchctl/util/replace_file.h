/*
 * replace_file: replaces a file as a whole, or leaves it unchanged.
 *
 * Life-cycle: open it, which takes a lock on its directory, so that whoever
 * else adds to it in this way waits; read it; write it; close it.  A new file
 * takes its place by rename(2), with its mode and owner.  A symbolic link is
 * followed if it is the user's own, or root's.
 */
#ifndef REPLACE_FILE_H
#define REPLACE_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "util/buffer.h"

struct replace_file {
	char path[PATH_MAX];	/* where it really is */
	const char *name;	/* its last part */
	int directory;		/* descriptor */
	bool there;		/* it is, and st is what it is */
	struct stat st;
};

/* 0, or -errno, and *why says which of its parts cannot be had.  The directory
   has to be writable, and the file not somebody else's, but for root. */
int replace_file_open(struct replace_file *, const char *path,
    const char **why);

/* What it holds; nothing if it is not there.  0 or -errno. */
int replace_file_read(const struct replace_file *, struct buffer *);

/* 0 or -errno: then it is as it was. */
int replace_file_write(const struct replace_file *, const char *bytes,
    size_t len);

void replace_file_close(struct replace_file *);

#endif
