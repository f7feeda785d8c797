/*
 * places: more functions than a processor has slots, which it counts itself.
 *
 *	places
 *
 * Says "pid PID calls ADDRESS" (of the counts), then does what each line of
 * stdin says, and says "done N", how many calls of its functions were made:
 *
 *	threads		by threads that are made for it
 *	recurse		by itself, ten deep
 *	children	by this thread, and by children of fork(2) and vfork(2),
 *			whose calls are not counted
 *	family N	by N children one after another, by threads that they
 *			make, and by a child of each that does the same: says
 *			the calls of all of them; or -1, if one could not be
 *			made
 *	leave		the first thread ends, another one goes on
 *	bytes		says the first byte of the last function instead
 *	again		executes this program, which begins anew
 *	time N		N calls of the first function, or for "last N" the last;
 *			prints the ns of processor time for each instead
 *	end		ends with status 7
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OWN __attribute__((noinline, noclone))

enum { PLACES = 12, THREADS = 4, CHILDREN = 10, DEPTH = 10 };

long calls[PLACES];
static volatile int sink;

#define PLACE(n) OWN int place##n(int with)				\
{									\
	sink = with;							\
	__atomic_add_fetch(&calls[n], 1, __ATOMIC_RELAXED);		\
	return sink = with + n;						\
}
PLACE(0) PLACE(1) PLACE(2) PLACE(3) PLACE(4)
PLACE(6) PLACE(7) PLACE(8) PLACE(9) PLACE(10)

/* It begins with an instruction that is locked, where no uprobe can be. */
int place5(int with);
__asm__(".text\n.globl place5\n.type place5, @function\nplace5:\n"
    "\tlock addq $1, calls+5*8(%rip)\n\tlea 5(%rdi), %eax\n\tret\n"
    ".size place5, . - place5\n");

OWN static void
begin(void)
{
	__asm__ volatile("");
}

/* It begins as most functions do, by saving a register. */
OWN int
place11(int with)
{
	begin();
	sink = with;
	__atomic_add_fetch(&calls[11], 1, __ATOMIC_RELAXED);
	if (with > 0 && with <= DEPTH)
		sink += place11(with - 1);
	return sink;
}

static int (*const place[PLACES])(int) = {
	place0, place1, place2, place3, place4, place5, place6, place7,
	place8, place9, place10, place11,
};

static void
call_all(int times)
{
	for (int i = 0; i < PLACES; i++)
		for (int k = 0; k < times * (i + 1); k++)
			(void)place[i](-1);
}

static void *
thread(void *arg)
{
	(void)arg;
	call_all(10);
	return NULL;
}

static void
make_threads(void)
{
	pthread_t made[THREADS];

	for (int i = 0; i < THREADS; i++)
		(void)pthread_create(&made[i], NULL, thread, NULL);
	for (int i = 0; i < THREADS; i++)
		(void)pthread_join(made[i], NULL);
}

static void
make_children(void)
{
	long before[PLACES];

	for (int i = 0; i < CHILDREN; i++) {
		const pid_t child = i % 2 == 0 ? fork() : vfork();

		/* one of vfork(2) has the same memory */
		if (child == 0) {
			memcpy(before, calls, sizeof(before));
			call_all(3);
			memcpy(calls, before, sizeof(before));
			_exit(0);
		}
		(void)waitpid(child, NULL, 0);
		call_all(1);
	}
}

/* What a child does.  Result: whether all threads and children could be
   made. */
static int
live(int generations)
{
	pthread_t made[THREADS];
	int got = 0, status = 0;
	pid_t child;

	for (int i = 0; i < THREADS && got == 0; i++)
		got = pthread_create(&made[i], NULL, thread, NULL);
	if (got != 0)
		return 1;
	call_all(10);
	for (int i = 0; i < THREADS; i++)
		(void)pthread_join(made[i], NULL);
	if (generations == 1)
		return 0;
	if ((child = fork()) == 0)
		_exit(live(generations - 1));
	return child < 0 || waitpid(child, &status, 0) < 0 || status != 0;
}

static long
make_family(long n)
{
	long before = 0, after = 0;
	int status = 0;

	for (int i = 0; i < PLACES; i++)
		before += calls[i];
	call_all(10);
	for (int i = 0; i < PLACES; i++)
		after += calls[i];
	for (long i = 0; i < n; i++) {
		const pid_t child = fork();

		if (child == 0)
			_exit(live(2));
		if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0)
			return -1;
	}
	return (after - before) * (1 + 2 * (THREADS + 1) * n);
}

/* ns of processor time for a call, with as much of a stack as is copied: where
   it ends before that, a page fault is added. */
static void
measure(int which, long n)
{
	volatile char stack[8192];
	struct timespec from, to;

	stack[0] = stack[sizeof(stack) - 1] = 0;
	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	for (long i = 0; i < n; i++)
		(void)place[which](-1);
	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
	(void)printf("done %.1f\n", ((double)(to.tv_sec - from.tv_sec) * 1e9 +
	    (double)(to.tv_nsec - from.tv_nsec)) / (double)n);
	(void)fflush(stdout);
}

static void *obey(void *);

static void
leave(void)
{
	pthread_t other;

	if (pthread_create(&other, NULL, obey, NULL) == 0)
		pthread_exit(NULL);
}

static void *
obey(void *arg)
{
	char line[64];
	long n;

	(void)arg;
	while (fgets(line, sizeof(line), stdin) != NULL) {
		long sum = 0;

		if (sscanf(line, "time %ld", &n) == 1) {
			measure(0, n);
			continue;
		}
		if (sscanf(line, "last %ld", &n) == 1) {
			measure(PLACES - 1, n);
			continue;
		}
		if (sscanf(line, "family %ld", &n) == 1) {
			(void)printf("done %ld\n", make_family(n));
			(void)fflush(stdout);
			continue;
		}
		memset(calls, 0, sizeof(calls));
		if (strcmp(line, "end\n") == 0)
			exit(7);
		if (strcmp(line, "threads\n") == 0)
			make_threads();
		else if (strcmp(line, "recurse\n") == 0)
			(void)place11(DEPTH);
		else if (strcmp(line, "children\n") == 0)
			make_children();
		else if (strcmp(line, "leave\n") == 0)
			leave();
		else if (strcmp(line, "again\n") == 0)
			(void)execl("/proc/self/exe", "places", (char *)NULL);
		for (int i = 0; i < PLACES; i++)
			sum += calls[i];
		if (strcmp(line, "bytes\n") == 0)
			sum = *(const volatile uint8_t *)(uintptr_t)place11;
		(void)printf("done %ld\n", sum);
		(void)fflush(stdout);
	}
	exit(1);
}

int
main(void)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)printf("pid %d calls %p\n", (int)getpid(), (void *)calls);
	(void)fflush(stdout);
	(void)obey(NULL);
	return 1;
}
