/* bench: what the benchmarks share. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench.h"

static int broken;

const char bench_gdb_script[] =
    "set pagination off\n"
    "set confirm off\n"
    "watch counter\n"
    "commands\n"
    "silent\n"
    "continue\n"
    "end\n"
    "continue\n";

double
bench_now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

double
bench_go(struct running *v)
{
	char line[64];
	const double began = bench_now();

	say(v, "go\n");
	hear(v, line, sizeof(line));
	assert_string_equal(line, "done");
	return bench_now() - began;
}

void
bench_end(struct running *v)
{
	struct outcome o;

	say(v, "end\n");
	finish(v, &o);
	outcome_free(&o);
}

static int
order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double
bench_median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), order);
	return values[n / 2];
}

void
bench_tell(const char *name, double value, const char *unit, const char *what,
    double limit, int at_least)
{
	int kept = at_least ? value >= limit : value <= limit;

	printf("%-34s %10.2f %s %s (%s %g): %s\n", name, value, unit, what,
	    at_least ? "at least" : "at most", limit, kept ? "ok" : "NOT KEPT");
	fflush(stdout);
	broken |= !kept;
}

int
bench_status(void)
{
	return broken;
}
