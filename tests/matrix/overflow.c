/*
 * overflow: does to a block of its heap what it must not, and ends with status 3.
 *
 *	overflow past | before | freed | twice | often | nothing
 */
#include <stdlib.h>
#include <string.h>

#define OWN __attribute__((noinline))

static OWN char *
make_block(void)
{
	char *volatile p = malloc(40);

	return p;
}

static OWN void
one_past(volatile char *p)
{
	p[43] = 'a';
}

static OWN void
one_before(volatile char *p)
{
	p[-1] = 'a';
}

static OWN void
after_free(volatile char *p)
{
	p[8] = 'a';
}

/* Each block is damaged, so that one of them is watched. */
static OWN void
damage_many(void)
{
	for (int i = 0; i < 2000; i++) {
		char *p = make_block();

		one_past(p);
		free(p);
	}
}

int
main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "past";
	char *volatile p;

	if (strcmp(what, "often") == 0) {
		damage_many();
		return 3;
	}
	p = make_block();
	if (strcmp(what, "past") == 0)
		one_past(p);
	if (strcmp(what, "before") == 0)
		one_before(p);
	free(p);
	if (strcmp(what, "freed") == 0)
		after_free(p);
	if (strcmp(what, "twice") == 0)
		free(p);
	return 3;
}
