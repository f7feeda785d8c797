/*
 * hot: measures what the main job costs a program that does nothing but write
 * the watched word.  It makes 100,000 writes from a chain of 16 calls, and each
 * is reported as a self-contained JSON line with its backtrace, instruction,
 * values and types.  This is compared with the same program under a bare
 * counting event, and with only recording the same samples.  Runs of the three
 * alternate.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/attr.h"
#include "bench.h"
#include "os/perf.h"
#include <linux/hw_breakpoint.h>

enum { RUNS = 7 };
#define WRITES "100000"

struct times {
	double wrote;		/* seconds from go to done */
	double after;		/* from the target's end to watchctl's */
	double lost;		/* hits */
};

static void
start_victim(struct running *v, char pid[16], char addr[32])
{
	start(v, (const char *[]){victim("counter"), "1", WRITES, NULL});
	(void)snprintf(pid, 16, "%d", v->pid);
	hear_address(v, addr);
}

/* The floor: an event that only counts. */
static double
bare(void)
{
	struct perf_event_attr attr;
	struct running v;
	char pid[16], addr[32];
	double took;
	int fd;

	start_victim(&v, pid, addr);
	wp_attr_watch(&attr, &(struct wp_slot){strtoull(addr, NULL, 16), 8,
	    HW_BREAKPOINT_W}, &(struct wp_options){.count = true}, false);
	fd = wp_perf_open(&attr, v.pid, -1);
	assert_true(fd >= 0);
	took = bench_go(&v);
	(void)close(fd);
	bench_end(&v);
	return took;
}

static double
lost_of(const char *said)
{
	const char *account = strstr(said, " reported, ");

	assert_non_null(account);
	return atof(account + strlen(" reported, "));
}

/* The main job, its report (or recording) going to a file. */
static void
watched(const char *report, const char *form, struct times *t)
{
	struct running v, w;
	struct outcome o;
	char pid[16], addr[32];
	double ended;

	start_victim(&v, pid, addr);
	start(&w, (const char *[]){watchctl(), "-w", addr, "-o", form, "-O",
	    report, "-p", pid, NULL});
	for (int waited = 0; access(report, R_OK) != 0 || waited < 30; waited++)
		(void)usleep(10000);
	t->wrote = bench_go(&v);
	bench_end(&v);
	ended = bench_now();
	finish(&w, &o);
	t->after = bench_now() - ended;
	t->lost = lost_of(o.err);
	outcome_free(&o);
}

int
main(void)
{
	double bare_time[RUNS], time[RUNS], after[RUNS], ratio[RUNS], lost = 0;
	double explained[RUNS];
	char report[] = "/tmp/watchctl_bench.XXXXXX";
	int fd = mkstemp(report);

	assert_true(fd >= 0);
	(void)close(fd);
	for (int i = 0; i < RUNS; i++) {
		struct times recorded, t;

		(void)unlink(report);
		bare_time[i] = bare();
		watched(report, "perf", &recorded);
		(void)unlink(report);
		watched(report, "json", &t);
		explained[i] = t.wrote / recorded.wrote;
		time[i] = t.wrote;
		after[i] = t.after;
		ratio[i] = t.wrote / bare_time[i];
		lost += t.lost;
	}
	(void)unlink(report);
	printf("hot loop, %s writes from 16 calls deep, JSON with lines: "
	    "%.2f us a hit, counting alone %.2f us\n", WRITES,
	    bench_median(time, RUNS) * 1e6 / atof(WRITES),
	    bench_median(bare_time, RUNS) * 1e6 / atof(WRITES));
	bench_tell("hot loop slowdown", bench_median(ratio, RUNS), "x",
	    "a bare count", 1.7, 0);
	bench_tell("instruction, values, types, lines",
	    bench_median(explained, RUNS), "x", "recording only", 1.1, 0);
	bench_tell("hot loop hits lost", lost, "", "of all runs", 0, 0);
	bench_tell("all lines written after", bench_median(after, RUNS), "s",
	    "after the target's end", 1, 0);
	return bench_status();
}
