/*
 * stop: what a stop at each hit costs, beside gdb with a watchpoint that
 * silently continues: the same writes of the same program, each reported as a
 * JSON line with values and the whole backtrace.  Runs of the two alternate.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "command.h"

enum { RUNS = 5 };
#define WRITES "4000"
#define GDB "/usr/bin/gdb"

static const char commands[] =
    "set pagination off\n"
    "set confirm off\n"
    "watch counter\n"
    "commands\n"
    "silent\n"
    "continue\n"
    "end\n"
    "continue\n";

/* Microseconds a write, from go to done. */
static double
go(struct running *v)
{
	char line[64];
	double began = bench_now();

	say(v, "go\n");
	hear(v, line, sizeof(line));
	assert_string_equal(line, "done");
	return (bench_now() - began) * 1e6 / atof(WRITES);
}

static void
start_victim(struct running *v, char pid[16])
{
	char addr[32];

	start(v, (const char *[]){victim("counter"), "1", WRITES, NULL});
	(void)snprintf(pid, 16, "%d", v->pid);
	hear_address(v, addr);
}

static void
end_victim(struct running *v)
{
	struct outcome o;

	say(v, "end\n");
	finish(v, &o);
	outcome_free(&o);
}

static double
by_gdb(const char *script)
{
	struct running v, g;
	struct outcome o;
	char pid[16];
	double took;

	start_victim(&v, pid);
	start(&g, (const char *[]){GDB, "-q", "-nx", "-batch", "-p", pid, "-x",
	    script, NULL});
	await(g.out, "atchpoint 1: counter");
	(void)usleep(300000);
	took = go(&v);
	end_victim(&v);
	finish(&g, &o);
	outcome_free(&o);
	return took;
}

static double
by_stops(const char *report, double *lost)
{
	struct running v, w;
	struct outcome o;
	char pid[16];
	double took;

	start_victim(&v, pid);
	start(&w, (const char *[]){watchctl(), "--stop", "-w", "counter", "-o",
	    "json", "-O", report, "-p", pid, NULL});
	for (int waited = 0; access(report, R_OK) != 0 || waited < 30; waited++)
		(void)usleep(10000);
	took = go(&v);
	end_victim(&v);
	finish(&w, &o);
	if (strstr(o.err, WRITES " hits, " WRITES " reported, 0 lost") == NULL)
		*lost += 1;
	outcome_free(&o);
	return took;
}

static int
make_file(char *name, const char *text)
{
	int fd = mkstemp(name);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	return close(fd);
}

int
main(void)
{
	char report[] = "/tmp/watchctl_bench.XXXXXX";
	char script[] = "/tmp/watchctl_bench.XXXXXX";
	double gdb[RUNS], stops[RUNS], ratio[RUNS], lost = 0;

	if (access(GDB, X_OK) != 0) {
		printf("stop: no %s to compare with: skipped\n", GDB);
		return 0;
	}
	(void)make_file(report, "");
	(void)make_file(script, commands);
	for (int i = 0; i < RUNS; i++) {
		(void)unlink(report);
		gdb[i] = by_gdb(script);
		stops[i] = by_stops(report, &lost);
		ratio[i] = stops[i] / gdb[i];
	}
	(void)unlink(report);
	(void)unlink(script);
	printf("stop at each hit, %s writes, JSON with values and lines: "
	    "%.1f us a hit, gdb silently continuing %.1f us\n", WRITES,
	    bench_median(stops, RUNS), bench_median(gdb, RUNS));
	bench_tell("stop at each hit", bench_median(ratio, RUNS), "x",
	    "gdb's time", 0.4, 0);
	bench_tell("runs with hits lost", lost, "", "of all", 0, 0);
	return bench_status();
}
