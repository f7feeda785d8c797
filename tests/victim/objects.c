/*
 * objects: makes and frees objects.  For each line "go N US" it makes N, one
 * after the other, writes 1, 2 and 3 to the first and third word of each, 3
 * after US us, and prints how many; the function that makes an object and the
 * allocator write there, too.  "late N US": it also requests too much memory
 * before it writes 3, writes 4 when the object is freed, and then has the
 * allocator hand out the same memory, writes 5 there and frees it.  "pool N
 * US": as go, with an allocator of its own, which writes to the first word; and
 * 4 when the object is put back.  "heap N ROUNDS": allocates other memory and
 * frees it, N times, each with so many rounds of work, and prints the ns of
 * processor time for each instead.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define OWN __attribute__((noinline, noclone, noipa))

struct item {
	long value, more[5];
};

OWN struct item *
item_new(void)
{
	struct item *item = malloc(sizeof(*item));

	if (item != NULL)
		item->value = -1;
	return item;
}

OWN void
item_set(struct item *item, long value)
{
	item->value = value;
	item->more[1] = value;
}

OWN void
item_free(struct item *item)
{
	free(item);
}

static struct pool {
	struct item *next;
	struct item item;
} pool;

OWN struct item *
pool_take(struct pool *p)
{
	struct item *item = p->next;

	p->next = NULL;
	item->value = -1;
	return item;
}

OWN void
pool_put(struct pool *p, struct item *item)
{
	item->value = -2;
	p->next = item;
}

/* The most that a size can say, behind the compiler's back. */
static volatile size_t most = ~(size_t)0 >> 1;

OWN int
late(struct item *item)
{
	struct item *again;

	if (realloc(item, most) != NULL)
		return 1;
	item_set(item, 3);
	item_free(item);
	item_set(item, 4);
	if ((again = realloc(NULL, sizeof(*again))) == NULL)
		return 1;
	item_set(again, 5);
	item_free(again);
	return 0;
}

static int
go(char kind, long us)
{
	struct item *item = kind == 'p' ? pool_take(&pool) : item_new();

	if (item == NULL)
		return 1;
	item_set(item, 1);
	item_set(item, 2);
	(void)usleep((useconds_t)us);
	if (kind == 'l')
		return late(item);
	item_set(item, 3);
	if (kind == 'g') {
		item_free(item);
		return 0;
	}
	pool_put(&pool, item);
	item_set(item, 4);
	return 0;
}

static volatile unsigned sink;

static void
heap(long n, long rounds)
{
	struct timespec from, to;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	for (long i = 0; i < n; i++) {
		void *volatile made = malloc(sizeof(struct item));

		for (long k = 0; k < rounds; k++)
			sink += (unsigned)k;
		free(made);
	}
	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
	(void)printf("done %.1f\n", ((double)(to.tv_sec - from.tv_sec) * 1e9 +
	    (double)(to.tv_nsec - from.tv_nsec)) / (double)n);
	(void)fflush(stdout);
}

int
main(void)
{
	char line[64], word[8];
	long n, us;

	pool_put(&pool, &pool.item);

	(void)printf("pid %d at %p\n", (int)getpid(), (void *)line);
	(void)fflush(stdout);
	while (fgets(line, sizeof(line), stdin) != NULL &&
	    sscanf(line, "%7s %ld %ld", word, &n, &us) == 3) {
		if (*word == 'h') {
			heap(n, us);
			continue;
		}
		for (long i = 0; i < n; i++)
			if (go(*word, us) != 0)
				return 1;
		(void)printf("done %ld\n", n);
		(void)fflush(stdout);
	}
	return 7;
}
