/* allocates: does nothing but allocate and free blocks of 16 to 512 bytes, so
   often; "lifo": each is freed before the next; "random": 4,096 live, and any
   one of them is next; "keep": none is freed. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LIVE = 4096 };

static char *volatile live[LIVE];

static uint32_t
next(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

static void
keep(long n)
{
	uint32_t seed = 1;

	while (n-- > 0) {
		char *volatile p = malloc(16 + next(&seed) % 497);

		*p = 1;
	}
}

int
main(int argc, char **argv)
{
	const long n = argc > 2 ? atol(argv[2]) : 0;
	const unsigned mask = argc > 1 && strcmp(argv[1], "random") == 0 ?
	    LIVE - 1 : 0;
	uint32_t seed = 1;

	if (argc > 1 && strcmp(argv[1], "keep") == 0) {
		keep(n);
		return 0;
	}
	for (long i = 0; i < n; i++) {
		char *volatile *at = &live[next(&seed) & mask];

		free(*at);
		*at = malloc(16 + next(&seed) % 497);
		if (*at == NULL)
			return 1;
		**at = 1;
	}
	return 0;
}
