/*
 * explain: recordings explained, function, file and line of each frame, by
 * watchctl report and by perf script: of a hot loop, and of hits that have
 * nothing in common.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define PERF "/usr/bin/perf"
#define SCRIPT PERF " script"
#define FIELDS " -F comm,tid,time,event,ip,sym,srcline -i %s > /dev/null"
#define ONCE " --stacks once"

enum { ROUNDS = 5 };

/* Run a shell command about a file, "%s" in it. */
static void
run_shell(const struct bench_way *way, const char *file)
{
	struct outcome o;
	char line[1024];

	(void)snprintf(line, sizeof(line), way->command, file);
	run_status(&o, 0, (const char *[]){"/bin/sh", "-c", line, NULL});
}

/* The command that reports a file as JSON, until the next. */
static struct bench_way
report(char command[512], const char *more)
{
	(void)snprintf(command, 512, "exec %s report -o json%s %%s > "
	    "/dev/null", watchctl(), more);
	return (struct bench_way){.run = run_shell, .command = command};
}

static struct bench_way
script(void)
{
	return (struct bench_way){
		.run = run_shell, .command = SCRIPT FIELDS,
	};
}

/* perf keeps lines only together with inlined frames; without those it asks
   addr2line for each, whose time is its own: the clock's, then.  Hits in a
   second. */
static double
speed_without_inlines(const struct bench_recordings *r)
{
	const struct bench_way way = {.command = SCRIPT " --no-inline" FIELDS};
	const double began = bench_now();

	run_shell(&way, r->file[0]);
	return r->hits[0] / (bench_now() - began);
}

/* System calls that a report of a recording takes, of all processes. */
static double
system_calls(const char *file)
{
	struct outcome o;
	double calls;

	run_status(&o, 0, (const char *[]){PERF, "stat", "-x,", "-o",
	    "/dev/stdout", "-e", "raw_syscalls:sys_enter", watchctl(), "report",
	    "-o", "json", "--stacks", "once", "-O", "/dev/null", file, NULL});
	assert_non_null(strstr(o.out, ",,raw_syscalls"));
	*strstr(o.out, ",,raw_syscalls") = '\0';
	calls = atof(strrchr(o.out, '\n') + 1);
	assert_true(calls > 0);
	return calls;
}

/* A hot loop: all hits have one backtrace. */
static void
bench_loop(void)
{
	struct bench_recordings r;
	char command[2][512];
	struct bench_way way[] = {
		report(command[0], ""), report(command[1], ONCE), script(),
	};
	double each, calls;

	bench_record(&r, LIST("counter", "1", "1000"),
	    LIST("counter", "1", "41000"));
	bench_compare(way, 3, ROUNDS, &r);
	each = speed_without_inlines(&r);
	calls = (system_calls(r.file[1]) - system_calls(r.file[0])) /
	    (r.hits[1] - r.hits[0]);
	bench_remove(&r);
	printf("explaining, with lines, on one core: watchctl report %.0f hits "
	    "a second, with --stacks once %.0f, perf script %.0f, with "
	    "--no-inline %.0f\n", 1 / way[0].hit, 1 / way[1].hit,
	    1 / way[2].hit, each);
	bench_tell("explaining", 1 / way[0].hit / each, "x",
	    "perf script --no-inline -F srcline", 20, 1);
	bench_tell("explaining", way[2].hit / way[0].hit, "x",
	    "perf script -F srcline", 7, 1);
	bench_tell("explaining, --stacks once", way[2].hit / way[1].hit, "x",
	    "perf script -F srcline", 12, 1);
	bench_tell("explaining, system calls", calls, "", "for each hit", 0.1,
	    0);
}

/* The worst input: nothing that is remembered of one hit serves another. */
static void
bench_paths(void)
{
	struct bench_recordings r;
	char command[512];
	struct bench_way way[] = {report(command, ONCE), script()};

	bench_record(&r, LIST("paths", "1000"), LIST("paths", "41000"));
	bench_compare(way, 2, ROUNDS, &r);
	bench_remove(&r);
	printf("explaining, each hit with callers of its own: watchctl report "
	    "%.0f hits a second, perf script %.0f\n", 1 / way[0].hit,
	    1 / way[1].hit);
	bench_tell("explaining, each hit with callers of its own",
	    way[1].hit / way[0].hit, "x", "perf script -F srcline", 0.6, 1);
}

int
main(void)
{
	bench_loop();
	bench_paths();
	return bench_status();
}
