/*
 * explain: a recording of a hot loop explained, function, file and line of each
 * frame: by watchctl report, and by perf script.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench.h"
#include "command.h"

#define PERF "/usr/bin/perf"

static void
record(const char *file, const char *writes)
{
	struct running w;
	struct outcome o;

	start(&w, (const char *[]){watchctl(), "-w", "counter", "-o", "perf",
	    "-O", file, "--", victim("counter"), "1", writes, NULL});
	say(&w, "go\nend\n");
	finish(&w, &o);
	assert_non_null(strstr(o.err, " hits, "));
	outcome_free(&o);
}

/* CPU seconds of a command that reads the file; how many hits it told of. */
static double
cpu_seconds(const char *const argv[], const char *mark, double *hits)
{
	struct rusage before, after;
	struct outcome o;

	(void)getrusage(RUSAGE_CHILDREN, &before);
	run(&o, argv);
	(void)getrusage(RUSAGE_CHILDREN, &after);
	*hits = 0;
	for (const char *p = o.out; (p = strstr(p, mark)) != NULL; p++)
		++*hits;
	outcome_free(&o);
	return (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
	    (double)(after.ru_stime.tv_sec - before.ru_stime.tv_sec) +
	    (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec +
	    after.ru_stime.tv_usec - before.ru_stime.tv_usec) / 1e6;
}

/* Hits a second on one core, what it takes to begin left out: the difference
   between a long and a short recording. */
static double
rate(const char *const argv[], size_t file, const char *shorter,
    const char *longer, const char *mark)
{
	const char *args[16] = {NULL};
	double few, many, begin, all;

	for (size_t i = 0; argv[i] != NULL; i++)
		args[i] = argv[i];
	args[file] = shorter;
	begin = cpu_seconds(args, mark, &few);
	args[file] = longer;
	all = cpu_seconds(args, mark, &many);
	assert_true(many > few && few > 0);
	return (many - few) / (all - begin);
}

int
main(void)
{
	static const char fields[] = "comm,tid,time,event,ip,sym,srcline";
	char shorter[] = "/tmp/watchctl_bench.XXXXXX";
	char longer[] = "/tmp/watchctl_bench.XXXXXX";
	double ours, perf, each, seconds, hits;
	int a = mkstemp(shorter), b = mkstemp(longer);

	assert_true(a >= 0 && b >= 0);
	(void)close(a);
	(void)close(b);
	record(shorter, "1000");
	record(longer, "41000");
	perf = rate((const char *[]){PERF, "script", "-F", fields, "-i", "",
	    NULL}, 5, shorter, longer, " counter: ");
	ours = rate((const char *[]){watchctl(), "report", "-o", "json", "",
	    NULL}, 4, shorter, longer, "{\"type\":\"hit\"");
	/* perf keeps lines only together with inlined frames; without those it
	   asks addr2line for each, whose time is its own: the clock's, then */
	seconds = bench_now();
	(void)cpu_seconds((const char *[]){PERF, "script", "--no-inline", "-F",
	    fields, "-i", shorter, NULL}, " counter: ", &hits);
	each = hits / (bench_now() - seconds);
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
