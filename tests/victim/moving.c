/*
 * moving: an object that pointers lead to, which change.  For each line that it
 * reads it writes to the object three times (if there is one), and then, by what
 * the line begins with, changes a pointer:
 *
 *	i  the inner one, to the next of four objects
 *	o  the outer one, to the other of two boxes
 *	n  the inner one, to null
 *	a  the inner one, to another object, which it writes to, and back
 *	s  the inner one, to what it is
 *	k  none
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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

static void *
work(void *unused)
{
	char line[64];

	while (fgets(line, sizeof(line), stdin) != NULL && *line != 'e') {
		for (int i = 0; i < 3; i++)
			touch(++times);
		change(*line);
		printf("done %ld\n", times);
		fflush(stdout);
	}
	return unused;
}

/* Another thread than the first acts, so that events are moved in several. */
int
main(int argc, char **argv)
{
	pthread_t thread;

	(void)argv;
	if (argc > 1)
		box->item = NULL;
	__atomic_store_n(&late, item, __ATOMIC_SEQ_CST);
	printf("pid %d item %p\n", (int)getpid(), (void *)item);
	fflush(stdout);
	if (pthread_create(&thread, NULL, work, NULL) != 0)
		abort();
	(void)pthread_join(thread, NULL);
	return 7;
}
