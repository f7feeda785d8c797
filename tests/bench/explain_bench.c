/*
 * explain: a recording of a hot loop explained, function, file and line of each
 * frame: by watchctl report, and by perf script.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench.h"

#define PERF "/usr/bin/perf"

/* Record a victim's writes; how many hits there are in the file. */
static double
record(const char *file, const char *writes)
{
	struct running w;
	struct outcome o;
	double hits;

	start(&w, (const char *[]){watchctl(), "-w", "counter", "-o", "perf",
	    "-O", file, "--", victim("counter"), "1", writes, NULL});
	say(&w, "go\nend\n");
	finish(&w, &o);
	assert_non_null(strstr(o.err, " hits, "));
	hits = atof(strstr(o.err, " hits, ") + strlen(" hits, "));
	outcome_free(&o);
	assert_true(hits > 0);
	return hits;
}

/* CPU seconds of a shell command about a file, "%s" in it. */
static double
cpu_seconds(const char *command, const char *file)
{
	struct rusage before, after;
	struct outcome o;
	char line[1024];

	(void)snprintf(line, sizeof(line), command, file);
	(void)getrusage(RUSAGE_CHILDREN, &before);
	run(&o, (const char *[]){"/bin/sh", "-c", line, NULL});
	(void)getrusage(RUSAGE_CHILDREN, &after);
	assert_int_equal(o.status, 0);
	outcome_free(&o);
	return (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
	    (double)(after.ru_stime.tv_sec - before.ru_stime.tv_sec) +
	    (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec +
	    after.ru_stime.tv_usec - before.ru_stime.tv_usec) / 1e6;
}

#define FIELDS "-F comm,tid,time,event,ip,sym,srcline"

int
main(void)
{
	static const char perf_script[] = PERF " script " FIELDS
	    " -i %s > /dev/null";
	char report[512], shorter[] = "/tmp/watchctl_bench.XXXXXX";
	char longer[] = "/tmp/watchctl_bench.XXXXXX";
	double few, many, ours, perf, each, began;
	int a = mkstemp(shorter), b = mkstemp(longer);

	assert_true(a >= 0 && b >= 0);
	(void)close(a);
	(void)close(b);
	few = record(shorter, "1000");
	many = record(longer, "41000");
	(void)snprintf(report, sizeof(report), "exec %s report -o json %%s "
	    "> /dev/null", watchctl());
	/* what it takes to begin is left out: the difference of two files */
	ours = (many - few) / (cpu_seconds(report, longer) -
	    cpu_seconds(report, shorter));
	perf = (many - few) / (cpu_seconds(perf_script, longer) -
	    cpu_seconds(perf_script, shorter));
	/* perf keeps lines only together with inlined frames; without those it
	   asks addr2line for each, whose time is its own: the clock's, then */
	began = bench_now();
	(void)cpu_seconds(PERF " script --no-inline " FIELDS
	    " -i %s > /dev/null", shorter);
	each = few / (bench_now() - began);
	(void)unlink(shorter);
	(void)unlink(longer);
	printf("explaining, with lines, on one core: watchctl report %.0f hits "
	    "a second, perf script %.0f, with --no-inline %.0f\n", ours, perf,
	    each);
	bench_tell("explaining", ours / each, "x",
	    "perf script --no-inline -F srcline", 20, 1);
	bench_tell("explaining", ours / perf, "x", "perf script -F srcline",
	    20, 1);
	return bench_status();
}
