/*
 * wide: an object that is wider than all slots together.  For each line that it
 * reads it writes to it, by what the line begins with:
 *
 *	a  to each element, in turn, again and again for so many ms
 *	h  to one element alone, again and again for so many ms
 *	k  has the kernel write to all of it, once a ms, for so many ms
 *	w  to nothing, but computes so many thousand rounds
 *
 * and says how many writes there were, or how many ns of processor time the
 * rounds took.  With an argument it does that at once
 * for so many ms and ends: "once N MS" writes to the element N each ms, of all
 * elements.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ELEMENTS = 24, HOT = 17 };

#define OWN __attribute__((noinline, noclone))

long wide[ELEMENTS];

static long
now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

OWN void
store(unsigned i, long value)
{
	__atomic_store_n(&wide[i], value, __ATOMIC_SEQ_CST);
}

OWN void
stray(unsigned i, long value)
{
	__atomic_store_n(&wide[i], value, __ATOMIC_SEQ_CST);
}

/* As much as goes by between two writes, so that not all of the time is
   theirs. */
static void
rest(long us)
{
	const long end = now_us() + us;

	while (now_us() < end)
		;
}

static long
write_all(long ms)
{
	static long n;
	const long end = now_us() + ms * 1000;

	for (; now_us() < end; rest(20)) {
		store((unsigned)(n % ELEMENTS), n);
		n++;
	}
	return n;
}

static long
write_hot(long ms)
{
	const long end = now_us() + ms * 1000;
	long n = 0;

	for (; now_us() < end; rest(100))
		store(HOT, n++);
	return n;
}

static long
read_all(long ms)
{
	const long end = now_us() + ms * 1000;
	char bytes[sizeof(wide)];
	long n = 0;
	int ends[2];

	if (pipe(ends) != 0)
		return -1;
	memset(bytes, 1, sizeof(bytes));
	for (; now_us() < end; rest(1000)) {
		if (write(ends[1], bytes, sizeof(bytes)) < 0 ||
		    read(ends[0], wide, sizeof(wide)) < 0)
			return -1;
		n++;
	}
	return n;
}

static long
compute(long thousands)
{
	struct timespec from, to;
	volatile long n = 0;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	while (n < thousands * 1000)
		n++;
	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
	return (to.tv_sec - from.tv_sec) * 1000000000 + to.tv_nsec -
	    from.tv_nsec;
}

static int
once(unsigned i, long ms)
{
	for (long n = 0; n < ms; n++) {
		stray(i % ELEMENTS, n);
		rest(1000);
	}
	return 0;
}

int
main(int argc, char **argv)
{
	char line[64];

	if (argc > 3)
		return once((unsigned)atoi(argv[2]), atol(argv[3]));
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	printf("pid %d wide %p\n", (int)getpid(), (void *)wide);
	while (fgets(line, sizeof(line), stdin) != NULL && *line != 'e') {
		const long ms = atol(line + 1);

		printf("done %ld\n", *line == 'a' ? write_all(ms) :
		    *line == 'h' ? write_hot(ms) : *line == 'w' ?
		    compute(ms) : read_all(ms));
	}
	return 7;
}
