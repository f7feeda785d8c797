/*
 * beside: runs parts of a test program at the same time, each in a process of
 * its own, because they mostly wait.
 */
#ifndef BESIDE_H
#define BESIDE_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BESIDE_MAX = 8 };

/* Start a process that ends when this one does. */
static inline pid_t
beside_start(int (*part)(unsigned), unsigned i, FILE *output)
{
	const pid_t parent = getpid(), pid = fork();

	if (pid != 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || dup2(fileno(output), 1) < 0 ||
	    dup2(fileno(output), 2) < 0)
		_exit(1);
	exit(part(i));
}

static inline int
beside_end(pid_t pid, FILE *output)
{
	int status = 1, c;

	(void)waitpid(pid, &status, 0);
	rewind(output);
	while ((c = getc(output)) != EOF)
		(void)putchar(c);
	(void)fclose(output);
	return status != 0;
}

/* Run part(0) to part(n - 1), each of which returns how many of its tests
   failed, and print their outputs one after another.  As an ordinary user they
   run one at a time, because all processes of that user share one limit of
   locked memory.  Result: how many parts failed. */
static inline int
run_beside(unsigned n, int (*part)(unsigned))
{
	FILE *output[BESIDE_MAX];
	pid_t pid[BESIDE_MAX];
	int failed = 0;

	if (n > BESIDE_MAX)
		abort();
	(void)fflush(NULL);
	for (unsigned i = 0; i < n; i++) {
		if ((output[i] = tmpfile()) == NULL ||
		    (pid[i] = beside_start(part, i, output[i])) < 0)
			return 1;
		if (geteuid() != 0)
			failed += beside_end(pid[i], output[i]);
	}
	for (unsigned i = 0; geteuid() == 0 && i < n; i++)
		failed += beside_end(pid[i], output[i]);
	return failed;
}

#endif
