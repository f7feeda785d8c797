/*
 * replace_file: replaces a file as a whole, or leaves it unchanged.
 *
 * Life-cycle: open it, which locks its directory against others that use this
 * module; read it; write it; close it.  A new file takes its place by
 * rename(2), with its mode and owner.  A symbolic link is followed if it
 * belongs to the user or to root.
 */
#ifndef REPLACE_FILE_H
#define REPLACE_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "util/buffer.h"

struct replace_file {
	char path[PATH_MAX];	/* the real path */
	const char *name;	/* its last part */
	int directory;		/* descriptor */
	bool there;		/* it exists, and st describes it */
	struct stat st;
};

/* 0, or -errno, with what is unavailable in *why.  The directory must be
   writable, and the file must not belong to somebody else, except root. */
int replace_file_open(struct replace_file *, const char *path,
    const char **why);

/* Append its contents; nothing if it does not exist.  0 or -errno. */
int replace_file_read(const struct replace_file *, struct buffer *);

/* 0 or -errno, and the file is unchanged. */
int replace_file_write(const struct replace_file *, const char *bytes,
    size_t len);

void replace_file_close(struct replace_file *);

#endif
