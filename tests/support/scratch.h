/*
 * scratch: a temporary directory for a test, and commands run in it.  It is
 * removed when the test ends.
 */
#ifndef SCRATCH_H
#define SCRATCH_H

#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

static char scratch_dir[PATH_MAX];	/* absolute, without symbolic links */

static inline int
scratch_unlink(const char *path, const struct stat *st, int type,
    struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline int
scratch_make(void **state)
{
	char name[] = "/tmp/watchctl-test-XXXXXX";

	(void)state;
	return mkdtemp(name) != NULL && realpath(name, scratch_dir) != NULL ?
	    0 : -1;
}

static inline int
scratch_remove(void **state)
{
	(void)state;
	return nftw(scratch_dir, scratch_unlink, 64, FTW_DEPTH | FTW_PHYS);
}

/* The same, as the working directory. */
static inline int
scratch_enter(void **state)
{
	return scratch_make(state) != 0 || chdir(scratch_dir) != 0;
}

static inline int
scratch_leave(void **state)
{
	return chdir("/") != 0 || scratch_remove(state) != 0;
}

/* The path of a file there; of the last few calls only. */
static inline const char *
scratch_path(const char *name)
{
	static char path[8][PATH_MAX + 256];
	static unsigned i;

	i = (i + 1) % 8;
	(void)snprintf(path[i], sizeof(path[i]), "%s/%s", scratch_dir, name);
	return path[i];
}

static inline void
scratch_write(const char *name, const char *text)
{
	FILE *f = fopen(scratch_path(name), "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static inline void
scratch_write_bytes(const char *name, const void *bytes, size_t len)
{
	FILE *f = fopen(scratch_path(name), "w");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

/* Run a shell command there.  Result: its exit status. */
__attribute__((format(printf, 1, 2)))
static inline int
scratch_try(const char *format, ...)
{
	char command[4096];
	va_list ap;
	int n, status;

	n = snprintf(command, sizeof(command), "cd '%s' && ", scratch_dir);
	va_start(ap, format);
	(void)vsnprintf(command + n, sizeof(command) - (size_t)n, format, ap);
	va_end(ap);
	status = system(command);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The same; the test fails when the command does. */
#define scratch_run(...) assert_int_equal(scratch_try(__VA_ARGS__), 0)

static inline bool
scratch_has(const char *command)
{
	return scratch_try("command -v %s >/dev/null", command) == 0;
}

/* The contents of a file there, with a NUL, until the test ends.  *len may be
   NULL. */
static inline char *
scratch_read(const char *name, size_t *len)
{
	FILE *f = fopen(scratch_path(name), "r");
	char *text;
	long size;

	assert_non_null(f);
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	size = ftell(f);
	rewind(f);
	text = malloc((size_t)size + 1);
	assert_non_null(text);
	test_frees(text, free);
	assert_int_equal(fread(text, 1, (size_t)size, f), (size_t)size);
	assert_int_equal(fclose(f), 0);
	text[size] = '\0';
	if (len != NULL)
		*len = (size_t)size;
	return text;
}

#endif
