/* arguments: functions with arguments of many kinds, each called three times,
   and lines with code at one place or more. */
#include <stdbool.h>
#include <stddef.h>

#define OWN __attribute__((noinline, noclone))

enum color { RED, GREEN };
struct point {
	int x, y;
};

long word;
static volatile long sum;

/* It calls nothing: without optimization its arguments are below the stack
   pointer. */
OWN long
combine(int n, long *p, enum color c, struct point at, char letter, long last)
{
	*p += n + c + at.x + letter + last;
	return *p;
}

/* It calls, and has arguments on the stack, and one in a vector register. */
OWN long
many(long a, long b, long c, long d, long e, double ratio, bool f, long g,
    unsigned char h, long i)
{
	sum += a + b + c + d + e + (long)ratio + f + g + h;
	return combine((int)i, &word, RED, (struct point){1, 2}, 'a', i) + sum;
}

OWN long
none(void)
{
	return ++sum;
}

#line 100 "places.c"
static inline __attribute__((always_inline)) long
square(long n)
{
	return n * n;
}

OWN long
once(long n)
{
	sum += n;
	return sum;
}

OWN long
twice(long n)
{
	sum += square(n);
	once(n);
	sum += square(n + 1);
	return sum;
}
#line 200 "arguments.c"

int
main(void)
{
	for (int i = 0; i < 3; i++) {
		(void)combine(i - 5, &word, GREEN, (struct point){i, -i}, 'x',
		    i);
		(void)many(1, 2, 3, 4, 5, 0.5, true, 7, 8, -9);
		(void)none();
		(void)twice(i);
	}
	return 3;
}
