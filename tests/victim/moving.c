/*
 * moving: an object that pointers lead to, which change.  For each line that it
 * reads it writes to the object three times (if there is one), and then, by
 * what the line begins with, changes a pointer:
 *
 *	i  the inner one, to the next of four objects
 *	o  the outer one, to the other of two boxes
 *	n  the inner one, to null
 *	a  the inner one, to another object, which it writes to, and back
 *	s  the inner one, to what it is
 *	k  none
 *
 * For these it says how long, in ns, it took to do something and to work for a
 * while, the median of many times; and the same of its thread's processor time:
 *
 *	w  nothing
 *	t  write to the object
 *	p  the inner one, to another object
 *
 * With the argument "null" the inner pointer is that at first; with "alone"
 * there is no other thread; with "vfork" the other one waits for its child
 * until the end, and cannot be stopped.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TIMES = 401, WORK = 100000 };

#define OWN __attribute__((noinline, noclone))

struct item {
	long count, name;
};
struct box {
	int color;
	struct item *item;
};

struct item item[4];
struct box boxes[2] = {{1, &item[0]}, {2, &item[2]}};
struct box *box = boxes;
struct item *late;		/* null until main is called */
int chosen;
struct link {
	struct link *next;
	long value;
} chain[5] = {
	{chain + 1, 0}, {chain + 2, 1}, {chain + 3, 2}, {chain + 4, 3},
}, *chain_first = chain;
static volatile long times;
static volatile int ended;

OWN void
touch(long n)
{
	struct box *b = __atomic_load_n(&box, __ATOMIC_SEQ_CST);

	if (b->item != NULL)
		__atomic_store_n(&b->item->count, n, __ATOMIC_SEQ_CST);
}

OWN void
stray(struct box *b)
{
	__atomic_store_n(&b->item->name, 1, __ATOMIC_SEQ_CST);
}

OWN void
and_back(struct box *b)
{
	struct item *before = b->item;

	__atomic_store_n(&b->item, &item[1], __ATOMIC_SEQ_CST);
	stray(b);
	__atomic_store_n(&b->item, before, __ATOMIC_SEQ_CST);
}

OWN void
change(char what)
{
	struct box *b = box;

	if (what == 'i')
		b->item = b->item == NULL ? item :
		    &item[(b->item - item + 1) % 4];
	else if (what == 'o')
		box = b == boxes ? &boxes[1] : boxes;
	else if (what == 'n')
		b->item = NULL;
	else if (what == 'a')
		and_back(b);
	else if (what == 's')
		__atomic_store_n(&b->item, b->item, __ATOMIC_SEQ_CST);
}

static long
now(clockid_t clock)
{
	struct timespec t;

	(void)clock_gettime(clock, &t);
	return t.tv_sec * 1000000000 + t.tv_nsec;
}

static int
order(const void *a, const void *b)
{
	const long x = *(const long *)a, y = *(const long *)b;

	return (x > y) - (x < y);
}

static void
measure(char what)
{
	static long took[TIMES], ran[TIMES];

	for (int i = 0; i < TIMES; i++) {
		const long began = now(CLOCK_MONOTONIC);
		const long before = now(CLOCK_THREAD_CPUTIME_ID);

		if (what == 't')
			touch(i);
		else if (what == 'p')
			__atomic_store_n(&box->item, &item[i % 2],
			    __ATOMIC_SEQ_CST);
		for (volatile int k = 0; k < WORK; k++)
			;
		ran[i] = now(CLOCK_THREAD_CPUTIME_ID) - before;
		took[i] = now(CLOCK_MONOTONIC) - began;
	}
	qsort(took, TIMES, sizeof(*took), order);
	qsort(ran, TIMES, sizeof(*ran), order);
	printf("done %ld %ld\n", took[TIMES / 2], ran[TIMES / 2]);
}

static void *
work(void *unused)
{
	char line[64];

	while (fgets(line, sizeof(line), stdin) != NULL && *line != 'e') {
		if (strchr("wtp", *line) != NULL) {
			measure(*line);
			fflush(stdout);
			continue;
		}
		for (int i = 0; i < 3; i++)
			touch(++times);
		change(*line);
		printf("done %ld\n", times);
		fflush(stdout);
	}
	ended = 1;
	return unused;
}

static void
wait_in_vfork(void)
{
	const pid_t child = vfork();

	if (child == 0) {
		while (!ended)
			(void)usleep(1000);
		_exit(0);
	}
	(void)waitpid(child, NULL, 0);
}

/* Another thread than the first acts, so that events are moved in several. */
int
main(int argc, char **argv)
{
	pthread_t thread;

	if (argc > 1 && strcmp(argv[1], "null") == 0)
		box->item = NULL;
	__atomic_store_n(&late, item, __ATOMIC_SEQ_CST);
	printf("pid %d item %p\n", (int)getpid(), (void *)item);
	fflush(stdout);
	if (argc > 1 && strcmp(argv[1], "alone") == 0)
		work(NULL);
	else if (pthread_create(&thread, NULL, work, NULL) != 0)
		abort();
	else {
		if (argc > 1 && strcmp(argv[1], "vfork") == 0)
			wait_in_vfork();
		(void)pthread_join(thread, NULL);
	}
	return 7;
}
