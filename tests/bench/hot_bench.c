/*
 * hot: measures what the main job costs a program that does nothing but write
 * the watched word.  It makes 100,000 writes from a chain of 16 calls, and each
 * is reported as a self-contained JSON line with its backtrace, instruction,
 * values and types.  This is compared with the same program under a bare
 * counting event, with only recording the same samples, with the kernel's rings
 * alone where BPF programs deliver otherwise, with keeping the newest hits, and
 * with a summary alone.  Runs of all alternate.
 *
 * What is compared is processor time, of the program itself, and of it with
 * watchctl and all that watchctl starts: what else runs does not change it
 * much.
 */
#include "test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "os/attr.h"
#include "bench.h"
#include "os/perf.h"
#include <linux/hw_breakpoint.h>

enum { RUNS = 7 };
#define WRITES "100000"

struct times {
	double program;		/* its processor time from go to done */
	double all;		/* the same, and that of watchctl, from its
				   start to its end */
	double lost;		/* hits */
};

/* The processor time of writing it all, by a program that is ready. */
static double
write_all(struct running *v)
{
	struct timespec before, after;
	clockid_t clock;

	assert_int_equal(clock_getcpuclockid(v->pid, &clock), 0);
	assert_int_equal(clock_gettime(clock, &before), 0);
	(void)bench_go(v);
	assert_int_equal(clock_gettime(clock, &after), 0);
	return (double)(after.tv_sec - before.tv_sec) +
	    (double)(after.tv_nsec - before.tv_nsec) / 1e9;
}

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
	took = write_all(&v);
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

/* The main job, its report (or recording) going to a file; with an option.
   False: the program was quicker than the watch. */
static bool
watched_all(const char *report, const char *form, const char *option,
    struct times *t)
{
	struct running v, w;
	struct outcome o;
	char pid[16], addr[32];
	double began;
	bool all;

	(void)unlink(report);
	start_victim(&v, pid, addr);
	began = bench_cpu();
	start(&w, (const char *[]){watchctl(), "-w", addr, "-o", form, "-O",
	    report, "-p", pid, option, NULL});
	if (strcmp(form, "json") == 0)
		bench_await_start(report);
	else	/* the file does not show it: see watched() */
		(void)usleep(300000);
	t->program = write_all(&v);
	say(&v, "end\n");
	finish(&w, &o);
	t->all = t->program + bench_cpu() - began;
	if ((all = strstr(o.err, WRITES " hits, ") != NULL))
		t->lost = lost_of(o.err);
	finish(&v, &o);
	return all;
}

static void
watched(const char *report, const char *form, const char *option,
    struct times *t)
{
	for (unsigned tries = 0; !watched_all(report, form, option, t); tries++)
		assert_true(tries < 5);
}

int
main(void)
{
	double bare_time[RUNS], time[RUNS], all[RUNS], slower[RUNS];
	double explained[RUNS], recording[RUNS], by_ring[RUNS], lost = 0;
	double last[RUNS], last_all[RUNS], summary[RUNS], summary_all[RUNS];
	char report[] = "/tmp/watchctl_bench.XXXXXX";
	int fd = mkstemp(report);

	assert_true(fd >= 0);
	(void)close(fd);
	for (int i = 0; i < RUNS; i++) {
		struct times recorded, ring, kept, summed, t;

		bare_time[i] = bare();
		watched(report, "perf", NULL, &recorded);
		watched(report, "json", "--delivery=ring", &ring);
		watched(report, "json", "--last=100", &kept);
		watched(report, "summary", NULL, &summed);
		watched(report, "json", NULL, &t);
		by_ring[i] = ring.program / bare_time[i];
		time[i] = t.program;
		all[i] = t.all;
		recording[i] = recorded.all;
		slower[i] = t.program / bare_time[i];
		explained[i] = t.program / recorded.program;
		last[i] = kept.program / bare_time[i];
		last_all[i] = kept.all / bare_time[i];
		summary[i] = summed.program / bare_time[i];
		summary_all[i] = summed.all / bare_time[i];
		lost += t.lost + kept.lost + summed.lost;
	}
	(void)unlink(report);
	printf("hot loop, %s writes from 16 calls deep, JSON with lines: "
	    "%.2f us a hit, counting alone %.2f us; with watchctl %.2f us, "
	    "which only records %.2f us\n", WRITES,
	    bench_median(time, RUNS) * 1e6 / atof(WRITES),
	    bench_median(bare_time, RUNS) * 1e6 / atof(WRITES),
	    bench_median(all, RUNS) * 1e6 / atof(WRITES),
	    bench_median(recording, RUNS) * 1e6 / atof(WRITES));
	bench_tell("hot loop slowdown", bench_median(slower, RUNS), "x",
	    "a bare count", 1.6, 0);
	bench_tell("the same without BPF programs",
	    bench_median(by_ring, RUNS), "x", "a bare count", 1.6, 0);
	bench_tell("--last 100", bench_median(last, RUNS), "x",
	    "a bare count", 1.35, 0);
	bench_tell("the same, with watchctl", bench_median(last_all, RUNS),
	    "x", "a bare count", 1.6, 0);
	bench_tell("-o summary", bench_median(summary, RUNS), "x",
	    "a bare count", 1.2, 0);
	bench_tell("the same, with watchctl",
	    bench_median(summary_all, RUNS), "x", "a bare count", 1.5, 0);
	bench_tell("instruction, values, types, lines",
	    bench_median(explained, RUNS), "x", "recording only", 1.1, 0);
	bench_tell("the same, with watchctl", bench_median(all, RUNS) /
	    bench_median(bare_time, RUNS), "x", "a bare count", 2.6, 0);
	bench_tell("hot loop hits lost", lost, "", "of all runs", 0, 0);
	return bench_status();
}
