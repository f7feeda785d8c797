/*
 * paths: a victim of which no two writes have the same callers.
 *
 *	paths WRITES
 *
 * Writes `counter` that often, at most 65536 times, each time through another
 * path of 16 calls.  Each level has two functions with frames of one size, and
 * bit n of the write's number says which of level n + 1 is called, so it is the
 * outermost callers that change with each write.
 */
#include <stdlib.h>

volatile long counter;

static __attribute__((noinline)) void
level16(long path)
{
	(void)path;
	counter++;
}

#define LEVEL(n, next, side, left, right)				\
	static __attribute__((noinline)) void side##n(long path)	\
	{								\
		if ((path >> (n) & 1) != 0)				\
			left(path);					\
		else							\
			right(path);					\
		__asm__ volatile("");					\
	}
#define LEVELS(n, next)							\
	LEVEL(n, next, left, left##next, right##next)			\
	LEVEL(n, next, right, left##next, right##next)

#define left16 level16
#define right16 level16
LEVELS(15, 16)
LEVELS(14, 15)
LEVELS(13, 14)
LEVELS(12, 13)
LEVELS(11, 12)
LEVELS(10, 11)
LEVELS(9, 10)
LEVELS(8, 9)
LEVELS(7, 8)
LEVELS(6, 7)
LEVELS(5, 6)
LEVELS(4, 5)
LEVELS(3, 4)
LEVELS(2, 3)
LEVELS(1, 2)
LEVELS(0, 1)

int
main(int argc, char **argv)
{
	const long writes = argc > 1 ? atol(argv[1]) : 1;

	for (long i = 0; i < writes && i < 1 << 16; i++)
		if ((i >> 15 & 1) != 0)
			left0(i);
		else
			right0(i);
	return 0;
}
