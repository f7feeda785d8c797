/*
 * attach: measures attaching to a process of 1,000 threads, in its threads and
 * on processors, and compares it with the bare perf_event_open calls that take
 * one for each thread and processor; for how long one of 5,000 is stopped; and
 * looking for those who have the memory of 50 processes among 2,000, compared
 * with that of one.
 */
#include "test.h"

#include <linux/hw_breakpoint.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "probe/probe.h"
#include "proc/proc.h"
#include "proc/sharers.h"
#include "attach/target.h"

enum { RUNS = 7, PROCESSES = 2000, WATCHED = 50 };

static struct wp_features features;

static struct wp_region
region_of(const char *addr)
{
	return (struct wp_region){strtoull(addr, NULL, 16), 8, WP_WRITE};
}

/* One event for each thread and processor, and nothing else. */
static double
bare(pid_t pid, const char *addr)
{
	const struct wp_options options = {.count = true};
	struct perf_event_attr attr;
	struct wp_slot slot[WP_SLOTS_MAX];
	pid_t *tids = NULL;
	size_t cap = 0, opened = 0;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int n = wp_proc_threads(pid, &tids, &cap);
	int *fds = calloc((size_t)n * (size_t)cpus, sizeof(*fds));
	struct wp_region region = region_of(addr);
	double took;

	assert_true(n > 1000 && fds != NULL);
	assert_int_equal(wp_slot_plan(&region, &wp_slot_usual, slot,
	    NULL), 1);
	wp_attr_watch(&attr, slot, &options, false);
	took = bench_now();
	for (int i = 0; i < n; i++)
		for (int cpu = 0; cpu < cpus; cpu++)
			fds[opened++] = wp_perf_open(&attr, tids[i], cpu);
	took = bench_now() - took;
	while (opened > 0)
		assert_int_equal(close(fds[--opened]), 0);
	free(fds);
	free(tids);
	return took;
}

static const struct wp_options in_threads = {.kernel = true, .stack = 4096};
static const struct wp_options on_processors = {
	.kernel = true, .stack = 4096, .bpf = true, .processors = true,
};

/* Also for how long it was stopped, in ms. */
static double
attach(pid_t pid, const char *addr, const struct wp_options *options,
    double *frozen)
{
	struct wp_region region = region_of(addr);
	struct wp_target *target;
	double took;

	assert_int_equal(wp_target_new(&target, &features, options, NULL), 0);
	assert_int_equal(wp_target_watch(target, &region, 1, NULL), 0);
	took = bench_now();
	assert_int_equal(wp_target_attach(target, pid, 0, 1, NULL), 0);
	took = bench_now() - took;
	*frozen = wp_target_frozen_ms(target);
	wp_target_free(target);
	return took;
}

static void
compare_attach(pid_t pid, const char *addr)
{
	double ratio[RUNS], fast[RUNS], open[RUNS], all[RUNS], few[RUNS];
	double frozen;

	for (int i = 0; i < RUNS; i++) {
		open[i] = bare(pid, addr);
		all[i] = attach(pid, addr, &in_threads, &frozen);
		few[i] = attach(pid, addr, &on_processors, &frozen);
		ratio[i] = all[i] / open[i];
		fast[i] = few[i] / open[i];
	}
	printf("attach to 1,000 threads: %.1f ms, on processors %.1f ms, bare "
	    "opens %.1f ms\n", bench_median(all, RUNS) * 1e3,
	    bench_median(few, RUNS) * 1e3, bench_median(open, RUNS) * 1e3);
	bench_tell("attach", bench_median(fast, RUNS), "x", "the bare opens",
	    2, 0);
	bench_tell("attach in threads", bench_median(ratio, RUNS), "x",
	    "the bare opens", 3, 0);
}

static void
measure_stop(void)
{
	struct running v;
	char addr[32];
	double frozen[RUNS];

	start(&v, LIST(victim("idle"), "5000"));
	hear_address(&v, addr);
	for (int i = 0; i < RUNS; i++)
		(void)attach(v.pid, addr, &on_processors, &frozen[i]);
	bench_tell("5,000 threads stopped", bench_median(frozen, RUNS), "ms",
	    "", 50, 0);
	end(&v);
}

/* The largest of all children so far, so before any larger is run. */
static double
peak_mb(const char *pid, const char *addr)
{
	struct rusage usage;
	struct outcome o;

	run_status(&o, 0, (const char *[]){watchctl(), "-t", "1", "-w", addr,
	    "-o", "json", "-p", pid, NULL});
	(void)getrusage(RUSAGE_CHILDREN, &usage);
	return (double)usage.ru_maxrss / 1024;
}

static double
look(const pid_t *pids, size_t n)
{
	struct wp_sharer *found;
	const double began = bench_now();

	assert_int_equal(wp_sharers(pids, n, &found), 0);
	free(found);
	return bench_now() - began;
}

static void
compare_sharers(void)
{
	static pid_t pid[PROCESSES];
	double ratio[RUNS], one[RUNS], all[RUNS];

	for (size_t i = 0; i < PROCESSES; i++) {
		pid[i] = fork();
		assert_true(pid[i] >= 0);
		if (pid[i] == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				(void)pause();
		}
	}
	for (int i = 0; i < RUNS; i++) {
		one[i] = look(pid, 1);
		all[i] = look(pid, WATCHED);
		ratio[i] = all[i] / one[i];
	}
	for (size_t i = 0; i < PROCESSES; i++) {
		assert_int_equal(kill(pid[i], SIGKILL), 0);
		assert_int_equal(waitpid(pid[i], NULL, 0), pid[i]);
	}
	printf("who has the memory of 50 of 2,000 processes: %.1f ms, of one "
	    "%.1f ms\n", bench_median(all, RUNS) * 1e3,
	    bench_median(one, RUNS) * 1e3);
	bench_tell("sharers", bench_median(ratio, RUNS), "x", "those of one",
	    4, 0);
}

int
main(void)
{
	struct wp_cause cause;
	struct rlimit limit;
	struct running v;
	char pid[16], addr[32];

	if (wp_probe_features(&features, &cause) < 0) {
		printf("skipped: %s\n", cause.text);
		return 77;
	}
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	start(&v, (const char *[]){victim("idle"), "1000", NULL});
	hear_address(&v, addr);
	(void)snprintf(pid, sizeof(pid), "%d", v.pid);
	compare_attach(v.pid, addr);
	bench_tell("peak memory", peak_mb(pid, addr), "MB", "", 100, 0);
	end(&v);
	measure_stop();
	compare_sharers();
	return bench_status();
}
