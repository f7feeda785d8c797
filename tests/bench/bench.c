/* bench: what the benchmarks share. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "probe/probe.h"

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

static double
seconds(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

double
bench_cpu(void)
{
	struct rusage used;

	(void)getrusage(RUSAGE_CHILDREN, &used);
	return seconds(&used.ru_utime) + seconds(&used.ru_stime);
}

bool
bench_fires(void)
{
	struct wp_features features;
	struct wp_cause cause;

	return wp_probe_features(&features, &cause) == 0;
}

/* Record what the victim with these arguments writes; how many hits. */
static double
record(const char *file, const char *const argv[])
{
	const char *args[ARGS];
	struct running w;
	struct outcome o;
	double hits;
	size_t n = append(args, 0, LIST(watchctl(), "-w", "counter", "-o",
	    "perf", "-O", file, "--", victim(argv[0])));

	if (!bench_fires())
		return bench_stand_in(file, argv);
	(void)append(args, n, argv + 1);
	start(&w, args);
	say(&w, "go\nend\n");
	finish(&w, &o);
	assert_non_null(strstr(o.err, " hits, "));
	hits = atof(strstr(o.err, " hits, ") + strlen(" hits, "));
	assert_true(hits > 0);
	return hits;
}

void
bench_record(struct bench_recordings *r, const char *const shorter[],
    const char *const longer[])
{
	for (size_t i = 0; i < 2; i++) {
		int fd;

		(void)snprintf(r->file[i], sizeof(r->file[i]),
		    "/tmp/watchctl_bench.XXXXXX");
		assert_true((fd = mkstemp(r->file[i])) >= 0);
		(void)close(fd);
		r->hits[i] = record(r->file[i], i == 0 ? shorter : longer);
	}
	assert_true(r->hits[1] > r->hits[0]);
}

void
bench_remove(const struct bench_recordings *r)
{
	(void)unlink(r->file[0]);
	(void)unlink(r->file[1]);
}

void
bench_compare(struct bench_way *way, size_t n, unsigned rounds,
    const struct bench_recordings *r)
{
	for (unsigned round = 0; round < rounds; round++)
		for (size_t i = 0; i < 2 * n; i++) {
			struct bench_way *w = &way[i / 2];
			double *least = &w->least[i % 2], began = bench_cpu();
			double took;

			w->run(w, r->file[i % 2]);
			took = bench_cpu() - began;
			if (round == 0 || took < *least)
				*least = took;
		}
	for (size_t i = 0; i < n; i++)
		way[i].hit = (way[i].least[1] - way[i].least[0]) /
		    (r->hits[1] - r->hits[0]);
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

double
bench_least(struct running *v, const char *what, unsigned times)
{
	double least = 0, ns;
	char line[64];

	for (unsigned i = 0; i < times; i++) {
		say(v, what);
		hear(v, line, sizeof(line));
		assert_int_equal(sscanf(line, "done %lf", &ns), 1);
		if (i == 0 || ns < least)
			least = ns;
	}
	return least;
}

void
bench_end(struct running *v)
{
	struct outcome o;

	say(v, "end\n");
	finish(v, &o);
}

void
bench_await_start(const char *report)
{
	struct stat st;

	while (stat(report, &st) != 0 || st.st_size == 0)
		(void)usleep(10000);
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
