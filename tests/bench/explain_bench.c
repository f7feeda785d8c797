/*
 * explain: recordings explained, function, file and line of each frame, by
 * watchctl report and by perf script: of a hot loop, and of hits that have
 * nothing in common.
 */
#include "test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench.h"

#define PERF "/usr/bin/perf"

/* Record what a victim, arguments and all, writes; how many hits there are in
   the file. */
static double
record(const char *file, const char *name, const char *first,
    const char *second)
{
	struct running w;
	struct outcome o;
	double hits;

	start(&w, (const char *[]){watchctl(), "-w", "counter", "-o", "perf",
	    "-O", file, "--", victim(name), first, second, NULL});
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

/* Two recordings of one victim. */
struct recordings {
	char shorter[32], longer[32];
	double few, many;	/* hits in them */
};

static void
temporary(char name[32])
{
	int fd;

	(void)snprintf(name, 32, "/tmp/watchctl_bench.XXXXXX");
	assert_true((fd = mkstemp(name)) >= 0);
	(void)close(fd);
}

static void
record_two(struct recordings *r, const char *name, bool threads)
{
	temporary(r->shorter);
	temporary(r->longer);
	r->few = threads ? record(r->shorter, name, "1", "1000") :
	    record(r->shorter, name, "1000", NULL);
	r->many = threads ? record(r->longer, name, "1", "41000") :
	    record(r->longer, name, "41000", NULL);
}

static void
remove_two(const struct recordings *r)
{
	(void)unlink(r->shorter);
	(void)unlink(r->longer);
}

/* Hits that a command explains in a second of CPU time, the middle of three
   runs.  What it takes to begin is left out: the difference of two files. */
static double
speed(const char *command, const struct recordings *r)
{
	double hits[3];

	for (size_t i = 0; i < 3; i++)
		hits[i] = (r->many - r->few) /
		    (cpu_seconds(command, r->longer) -
		    cpu_seconds(command, r->shorter));
	return bench_median(hits, 3);
}

#define FIELDS "-F comm,tid,time,event,ip,sym,srcline"

static const char perf_script[] = PERF " script " FIELDS
    " -i %s > /dev/null";

/* The command that reports a file as JSON. */
static const char *
report(const char *more)
{
	static char command[512];

	(void)snprintf(command, sizeof(command), "exec %s report -o json%s "
	    "%%s > /dev/null", watchctl(), more);
	return command;
}

/* A hot loop: all hits have one backtrace. */
static void
bench_loop(void)
{
	struct recordings r;
	double ours, once, perf, each, began;

	record_two(&r, "counter", true);
	ours = speed(report(""), &r);
	once = speed(report(" --stacks once"), &r);
	perf = speed(perf_script, &r);
	/* perf keeps lines only together with inlined frames; without those it
	   asks addr2line for each, whose time is its own: the clock's, then */
	began = bench_now();
	(void)cpu_seconds(PERF " script --no-inline " FIELDS
	    " -i %s > /dev/null", r.shorter);
	each = r.few / (bench_now() - began);
	remove_two(&r);
	printf("explaining, with lines, on one core: watchctl report %.0f hits "
	    "a second, with --stacks once %.0f, perf script %.0f, with "
	    "--no-inline %.0f\n", ours, once, perf, each);
	bench_tell("explaining", ours / each, "x",
	    "perf script --no-inline -F srcline", 20, 1);
	bench_tell("explaining", ours / perf, "x", "perf script -F srcline",
	    4, 1);
	bench_tell("explaining, --stacks once", once / perf, "x",
	    "perf script -F srcline", 6, 1);
}

/* The worst input: nothing that is remembered of one hit serves another. */
static void
bench_paths(void)
{
	struct recordings r;
	double once, perf;

	record_two(&r, "paths", false);
	once = speed(report(" --stacks once"), &r);
	perf = speed(perf_script, &r);
	remove_two(&r);
	printf("explaining, each hit with callers of its own: watchctl report "
	    "%.0f hits a second, perf script %.0f\n", once, perf);
	bench_tell("explaining, each hit with callers of its own",
	    once / perf, "x", "perf script -F srcline", 0.6, 1);
}

int
main(void)
{
	bench_loop();
	bench_paths();
	return bench_status();
}
