/*
 * stop: measures what a stop at each hit costs.  The same writes of the same
 * program, each reported as a JSON line with values and the whole backtrace,
 * are compared with gdb, whose watchpoint silently continues, and with a bare
 * loop that lets a thread go on as soon as it has stopped: no tracer can be
 * faster.  Runs alternate.
 */
#include "test.h"

#include <linux/hw_breakpoint.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/attr.h"
#include "bench.h"
#include "os/perf.h"
#include "ptrace/ptrace.h"

enum { RUNS = 5 };
#define WRITES "4000"
#define GDB "/usr/bin/gdb"

static void
start_victim(struct running *v, char pid[16])
{
	char addr[32];

	start(v, (const char *[]){victim("counter"), "1", WRITES, NULL});
	(void)snprintf(pid, 16, "%d", v->pid);
	hear_address(v, addr);
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
	took = bench_go(&v) * 1e6 / atof(WRITES);
	bench_end(&v);
	finish(&g, &o);
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
	bench_await_start(report);
	took = bench_go(&v) * 1e6 / atof(WRITES);
	bench_end(&v);
	finish(&w, &o);
	if (strstr(o.err, WRITES " hits, " WRITES " reported, 0 lost") == NULL)
		*lost += 1;
	return took;
}

/* A word that is written, and whether it is time to. */
static _Noreturn void
write_it(volatile uint64_t *word)
{
	while (word[1] == 0)
		(void)usleep(100);
	for (int i = 0; i < atoi(WRITES); i++)
		word[0]++;
	_exit(0);
}

static double
by_nothing(void)
{
	volatile uint64_t *word = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct perf_event_attr attr;
	double began;
	int status, fd;
	pid_t pid;

	assert_true(word != MAP_FAILED);
	if ((pid = fork()) == 0)
		write_it(word);
	assert_int_equal(wp_trace_thread(pid), 0);
	assert_int_equal(waitpid(pid, &status, __WALL), pid);
	wp_attr_inside(&attr, &(struct wp_slot){(uintptr_t)word, 8,
	    HW_BREAKPOINT_W}, 1, false);
	fd = wp_perf_open(&attr, pid, -1);
	assert_int_equal(wp_perf_signal(fd, pid, SIGURG), 0);
	assert_int_equal(wp_perf_enable(fd), 0);
	word[1] = 1;
	began = bench_now();
	do
		wp_trace_continue(pid, 0);
	while (waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status));
	began = bench_now() - began;
	(void)close(fd);
	(void)munmap((void *)(uintptr_t)word, 4096);
	return began * 1e6 / atof(WRITES);
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
	double gdb[RUNS], stops[RUNS], bare[RUNS], ratio[RUNS], lost = 0;

	if (access(GDB, X_OK) != 0) {
		printf("stop: no %s to compare with: skipped\n", GDB);
		return 0;
	}
	(void)make_file(report, "");
	(void)make_file(script, bench_gdb_script);
	for (int i = 0; i < RUNS; i++) {
		(void)unlink(report);
		gdb[i] = by_gdb(script);
		stops[i] = by_stops(report, &lost);
		bare[i] = by_nothing();
		ratio[i] = stops[i] / gdb[i];
	}
	(void)unlink(report);
	(void)unlink(script);
	printf("stop at each hit, %s writes, JSON with values and lines: "
	    "%.1f us a hit, gdb silently continuing %.1f us, bare stops "
	    "%.1f us\n", WRITES, bench_median(stops, RUNS),
	    bench_median(gdb, RUNS), bench_median(bare, RUNS));
	bench_tell("stop at each hit", bench_median(ratio, RUNS), "x",
	    "gdb's time", 0.4, 0);
	bench_tell("runs with hits lost", lost, "", "of all", 0, 0);
	return bench_status();
}
