/*
 * shares: a victim that maps a file and writes through the mapping, as it is
 * told, line by line:
 *
 *	shared, private		map the first pages of the file so, too
 *	write N			write N to its byte 4160 by the newest mapping
 *	beside N		the same to byte 4168
 *	first N			... to byte 4160 by the first mapping
 *	child N			have a child do that, by both
 *	unmap			unmap the first
 *	cover			map something else where the first is
 *	move			mremap something else to where the first is
 *	away			mremap the newest to elsewhere
 *
 * Says "pid PID file ADDRESS" first, ADDRESS being that of byte 4160 in a
 * shared mapping, or 0 without the argument "now"; and "done 0" after each. 
 * Ends at the end of the file, with status 7.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 16384, AT = 4160 };

static int fd;
static char *first, *newest;

static void *
map(int flags, int how)
{
	void *p = mmap((flags & MAP_FIXED) != 0 ? first : NULL, SIZE,
	    PROT_READ | PROT_WRITE, flags, how, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

static void
map_file(int flags)
{
	newest = map(flags, fd);
	if (first == NULL)
		first = newest;
}

static __attribute__((noinline)) void
put(char *mapping, int off, long value)
{
	*(volatile long *)(mapping + AT + off) = value;
}

static void
have_child(long value)
{
	const pid_t pid = fork();

	if (pid == 0) {
		put(first, 0, value);
		put(newest, 0, value);
		_exit(0);
	}
	if (waitpid(pid, NULL, 0) != pid)
		abort();
}

/* mremap(2) to where something is that it replaces. */
static void *
move(void *from, void *to)
{
	void *p = mremap(from, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, to);

	if (p == MAP_FAILED)
		abort();
	return p;
}

static void
obey(const char *what, long n)
{
	if (strcmp(what, "shared") == 0)
		map_file(MAP_SHARED);
	else if (strcmp(what, "private") == 0)
		map_file(MAP_PRIVATE);
	else if (strcmp(what, "write") == 0)
		put(newest, 0, n);
	else if (strcmp(what, "beside") == 0)
		put(newest, 8, n);
	else if (strcmp(what, "first") == 0)
		put(first, 0, n);
	else if (strcmp(what, "child") == 0)
		have_child(n);
	else if (strcmp(what, "unmap") == 0)
		(void)munmap(first, SIZE);
	else if (strcmp(what, "cover") == 0)
		(void)map(MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1);
	else if (strcmp(what, "move") == 0)
		(void)move(map(MAP_PRIVATE | MAP_ANONYMOUS, -1), first);
	else if (strcmp(what, "away") == 0)
		newest = move(newest, map(MAP_PRIVATE | MAP_ANONYMOUS, -1));
}

int
main(int argc, char **argv)
{
	static char line[256];

	if (argc < 2 || (fd = open(argv[1], O_RDWR)) < 0)
		return 1;
	if (argc > 2)
		map_file(MAP_SHARED);
	(void)printf("pid %d file 0x%llx\n", (int)getpid(),
	    first == NULL ? 0ULL : (unsigned long long)(uintptr_t)first + AT);
	(void)fflush(stdout);
	while (fgets(line, sizeof(line), stdin) != NULL) {
		const char *what = strtok(line, " \n");
		const char *with = strtok(NULL, "\n");

		if (what != NULL)
			obey(what, with == NULL ? 0 : atol(with));
		(void)printf("done 0\n");
		(void)fflush(stdout);
	}
	return 7;
}
