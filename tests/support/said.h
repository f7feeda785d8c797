/*
 * said: captures what this process writes to a descriptor.
 *
 * Between begin and end, the message of a failed assertion is captured too, and
 * not shown.
 */
#ifndef SAID_H
#define SAID_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "test.h"

static int said_kept;	/* the descriptor's file */
static FILE *said_file;

static inline void
said_begin(int fd)
{
	said_file = tmpfile();
	assert_non_null(said_file);
	(void)fflush(NULL);
	said_kept = dup(fd);
	(void)dup2(fileno(said_file), fd);
}

/* Result: the text, until the test ends. */
static inline char *
said_end(int fd)
{
	size_t len;
	char *text;

	(void)fflush(NULL);
	(void)dup2(said_kept, fd);
	(void)close(said_kept);
	len = (size_t)lseek(fileno(said_file), 0, SEEK_END);
	text = calloc(1, len + 1);
	assert_non_null(text);
	test_frees(text, free);
	assert_int_equal(pread(fileno(said_file), text, len, 0), len);
	(void)fclose(said_file);
	return text;
}

#endif
