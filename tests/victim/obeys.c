/*
 * obeys: a victim that does what it is told, line by line:
 *
 *	write N		put the next N numbers into the word
 *	read N		have read(2) put them there
 *	call PATH	load that library, call its plug_write, and unload it
 *	map N		map its own code anew, and unmap it, so often
 *	fork N		make a child that stops, and then puts N numbers into
 *			the word and ends; says "child PID" first
 *	crash		store where nothing is
 *
 * Says "pid PID word ADDRESS" first, and "done N" after each: how often the
 * word was written in all.  Ends at the end of the file, with status 7.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

volatile long word;
static long writes;
static int *volatile nowhere;

static __attribute__((noinline)) void
put(long value)
{
	word = value;
}

static void
read_number(long value)
{
	int fd[2];

	if (pipe(fd) != 0 ||
	    write(fd[1], &value, sizeof(value)) != sizeof(value) ||
	    read(fd[0], (void *)&word, sizeof(value)) != sizeof(value))
		abort();
	(void)close(fd[0]);
	(void)close(fd[1]);
}

static void
call(const char *path)
{
	void *plug = dlopen(path, RTLD_NOW);
	void (*plug_write)(volatile long *);

	if (plug == NULL || (*(void **)&plug_write =
	    dlsym(plug, "plug_write")) == NULL)
		abort();
	plug_write(&word);
	writes++;
	(void)dlclose(plug);
}

static void
map_code(long n)
{
	const int fd = open("/proc/self/exe", O_RDONLY);

	for (long i = 0; i < n; i++) {
		void *at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE,
		    fd, 0);

		if (at == MAP_FAILED || munmap(at, 4096) != 0)
			abort();
	}
	(void)close(fd);
}

static void
make_child(long n)
{
	const pid_t child = fork();

	if (child == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)raise(SIGSTOP);
		for (long i = 0; i < n; i++)
			put(i);
		_exit(0);
	}
	(void)printf("child %d\n", (int)child);
}

int
main(void)
{
	static char line[4200];

	(void)printf("pid %d word %p\n", (int)getpid(), (void *)&word);
	(void)fflush(stdout);
	while (fgets(line, sizeof(line), stdin) != NULL) {
		const char *what = strtok(line, " \n");
		const char *with = strtok(NULL, "\n");
		const long n = with == NULL ? 0 : atol(with);

		if (strcmp(what, "call") == 0)
			call(with);
		else if (strcmp(what, "map") == 0)
			map_code(n);
		else if (strcmp(what, "fork") == 0)
			make_child(n);
		else if (strcmp(what, "crash") == 0)
			*nowhere = 1;
		for (long i = 0; i < n && *what == 'w'; i++)
			put(++writes);
		for (long i = 0; i < n && *what == 'r'; i++)
			read_number(++writes);
		(void)printf("done %ld\n", writes);
		(void)fflush(stdout);
	}
	return 7;
}
