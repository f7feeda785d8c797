/*
 * objects: makes and frees them.  For each line "go N US" that it reads, N times
 * one after the other: writes 1, 2 and 3 to its first word, 3 after so many us;
 * and says how many there were.  The function that makes it and the allocator
 * write there, too.
 */
#include <stdio.h>
#include <stdlib.h>
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
}

OWN void
item_free(struct item *item)
{
	free(item);
}

int
main(void)
{
	char line[64];
	long n, us;

	(void)printf("pid %d at %p\n", (int)getpid(), (void *)line);
	(void)fflush(stdout);
	while (fgets(line, sizeof(line), stdin) != NULL &&
	    sscanf(line, "go %ld %ld", &n, &us) == 2) {
		for (long i = 0; i < n; i++) {
			struct item *item = item_new();

			if (item == NULL)
				return 1;
			item_set(item, 1);
			item_set(item, 2);
			(void)usleep((useconds_t)us);
			item_set(item, 3);
			item_free(item);
		}
		(void)printf("done %ld\n", n);
		(void)fflush(stdout);
	}
	return 7;
}
