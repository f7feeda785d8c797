/*
 * failing: to be preloaded into watchctl: allocations that fail.
 *
 *	FAIL_AT=N	the Nth fails
 *	FAIL_FROM=N	it and all that follow
 *	FAIL_OVER=N	those of more than N bytes
 *	FAIL_SIZE=N	those of N bytes
 *	FAIL_SKIP=N	but not the first N of these
 *	FAIL_COUNT=FILE	writes there how many there were
 *
 * Only in the first process that is called watchctl: not in what it starts; or,
 * with FAIL_FORKED=1, only in those that it forks.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);

static _Atomic unsigned long done;
static unsigned long at, from = -1ul;
static size_t over = SIZE_MAX, exactly = SIZE_MAX;
static _Atomic long skip;	/* so many of that size do not fail */
static unsigned long forked;	/* its children are concerned: not ... */
static _Atomic pid_t on;	/* ... the process that otherwise is */

static unsigned long
number(const char *name, unsigned long otherwise)
{
	const char *text = getenv(name);

	return text == NULL ? otherwise : strtoul(text, NULL, 10);
}

static __attribute__((constructor)) void
begin(void)
{
	at = number("FAIL_AT", 0);
	from = number("FAIL_FROM", -1ul);
	over = number("FAIL_OVER", SIZE_MAX);
	exactly = number("FAIL_SIZE", SIZE_MAX);
	skip = (long)number("FAIL_SKIP", 0);
	forked = number("FAIL_FORKED", 0);
	if (strcmp(program_invocation_short_name, "watchctl") == 0)
		on = getpid();
}

static __attribute__((destructor)) void
end(void)
{
	const char *path = getenv("FAIL_COUNT");
	FILE *f = path == NULL || on != getpid() ? NULL : fopen(path, "w");

	if (f != NULL) {
		(void)fprintf(f, "%lu\n", (unsigned long)done);
		(void)fclose(f);
	}
}

static int
fails(size_t size)
{
	unsigned long n;

	if (on == 0 || (forked != 0) == (on == getpid()))
		return 0;
	n = atomic_fetch_add(&done, 1) + 1;
	if (n != at && n < from && size <= over && (size != exactly ||
	    atomic_fetch_sub(&skip, 1) > 0))
		return 0;
	errno = ENOMEM;
	return 1;
}

void *
malloc(size_t size)
{
	return fails(size) ? NULL : __libc_malloc(size);
}

void *
calloc(size_t n, size_t size)
{
	return fails(n * size) ? NULL : __libc_calloc(n, size);
}

void *
realloc(void *old, size_t size)
{
	return fails(size) ? NULL : __libc_realloc(old, size);
}
