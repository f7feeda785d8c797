/*
 * alloc: measures what a program pays that allocates and frees a million times
 * a second while the objects of one of its functions are watched; in processor
 * time, of the same process.  Of what it allocates, nothing is such an object.
 */
#include "test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

enum { RUNS = 9, PAIRS = 20000, SOME = 1000 };
#define PAIR 1000.0		/* ns, of a million a second */

/* ns for a malloc and its free, with so many rounds of work between: the least
   of some, since others want the processors, too. */
static double
ask(struct running *v, int rounds)
{
	double least = 0, ns;
	char line[64];

	(void)snprintf(line, sizeof(line), "heap %d %d\n", PAIRS, rounds);
	for (int i = 0; i < RUNS; i++) {
		char answer[64];

		say(v, line);
		hear(v, answer, sizeof(answer));
		assert_int_equal(sscanf(answer, "done %lf", &ns), 1);
		if (i == 0 || ns < least)
			least = ns;
	}
	return least;
}

/* The rounds with which it makes a million a second. */
static int
find_rounds(struct running *v)
{
	const double none = ask(v, 0), some = ask(v, SOME) - none;

	return (int)((PAIR - none) / some * SOME);
}

int
main(void)
{
	char pid[16], addr[32], line[4096];
	double without, with;
	struct running v, w;
	struct outcome o;
	int rounds;

	start(&v, (const char *[]){victim("objects"), NULL});
	(void)snprintf(pid, sizeof(pid), "%d", v.pid);
	hear_address(&v, addr);
	rounds = find_rounds(&v);
	without = ask(&v, rounds);
	start(&w, (const char *[]){watchctl(), "-w", "alloc:item_new:8", "-o",
	    "json", "-p", pid, NULL});
	hear(&w, line, sizeof(line));
	if (strstr(line, "\"type\":\"start\"") == NULL)
		fail_msg("%s", line);
	with = ask(&v, rounds);
	bench_end(&v);
	finish(&w, &o);
	printf("alloc: a malloc and its free cost %.2f us, watched %.2f us\n",
	    without / 1e3, with / 1e3);
	bench_tell("alloc", with / without, "x", "the program that is not "
	    "watched", 1.5, 0);
	return bench_status();
}
