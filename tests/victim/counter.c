/*
 * counter: a victim that writes a known number of times.
 *
 *	counter THREADS WRITES [NANOSECONDS]
 *
 * Prints "pid PID counter ADDRESS" and waits for a line on stdin (or its end).
 * Then each thread writes the counter that many times, through a chain of 16
 * calls and with that much work between two writes (0 by default), and the
 * first thread reads (read(2)) 8 bytes over the word `filled` once.  At the
 * next line on stdin the program ends, with status 7.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "line.h"

volatile long counter;
volatile long filled;
__thread long local;
static long writes, nanoseconds;

static __attribute__((noinline)) void
bump(void)
{
	counter++;
}

#define LEVEL(n, next)							\
	static __attribute__((noinline)) void level##n(void)		\
	{								\
		next();							\
		__asm__ volatile("");					\
	}
LEVEL(1, bump)
LEVEL(2, level1)
LEVEL(3, level2)
LEVEL(4, level3)
LEVEL(5, level4)
LEVEL(6, level5)
LEVEL(7, level6)
LEVEL(8, level7)
LEVEL(9, level8)
LEVEL(10, level9)
LEVEL(11, level10)
LEVEL(12, level11)
LEVEL(13, level12)
LEVEL(14, level13)
LEVEL(15, level14)

static __attribute__((noinline)) void
fill(void)
{
	int fd[2];

	if (pipe(fd) != 0 || write(fd[1], "12345678", 8) != 8 ||
	    read(fd[0], (void *)&filled, 8) != 8)
		abort();
}

static long
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Work that takes as long as the third argument says. */
static void
calculate(void)
{
	long until;

	if (nanoseconds == 0)
		return;
	until = now() + nanoseconds;
	while (now() < until)
		;
}

static void *
work(void *first)
{
	char name[16];

	snprintf(name, sizeof(name), "worker %d", first != NULL);
	pthread_setname_np(pthread_self(), name);
	for (long i = 0; i < writes; i++) {
		level15();
		calculate();
	}
	if (first != NULL)
		fill();
	return NULL;
}

int
main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t thread[64];

	if (threads > 64)
		threads = 64;
	writes = argc > 2 ? atol(argv[2]) : 1;
	nanoseconds = argc > 3 ? atol(argv[3]) : 0;
	printf("pid %d counter %p\n", (int)getpid(), (void *)&counter);
	fflush(stdout);
	(void)await_line();
	for (int i = 0; i < threads; i++)
		pthread_create(&thread[i], NULL, work,
		    i == 0 ? thread : NULL);
	for (int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	printf("done\n");
	fflush(stdout);
	(void)await_line();
	return 7;
}
