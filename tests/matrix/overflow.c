/* overflow: writes behind a block of its heap, and ends with status 3. */
#include <stdlib.h>

static __attribute__((noinline)) char *
make_block(void)
{
	char *volatile p = malloc(40);

	return p;
}

static __attribute__((noinline)) void
one_past(volatile char *p)
{
	p[43] = 'a';
}

int
main(void)
{
	char *p = make_block();

	one_past(p);
	free(p);
	return 3;
}
