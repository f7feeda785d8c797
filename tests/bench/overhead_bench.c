/*
 * overhead: measures what a watch costs a program that does 1 us of work
 * between two writes of the watched word, and compares it with gdb and perf.
 * The program is the same for each way of watching; it makes the writes
 * through 16 calls, and all reports go to files.  Runs of all ways alternate,
 * and the median of each counts.  The last column shows how many of the writes
 * were reported.  The README shows this table.
 */
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"

enum { RUNS = 5, WORDS = 16 };
#define WORK "1000"	/* nanoseconds */
#define FAST "50000"	/* writes: where none waits for its report */
#define SLOW "3000"	/* where each does */
#define GDB "/usr/bin/gdb"
#define PERF "/usr/bin/perf"
#define OUTPUT "output"	/* in a directory of its own */
#define SCRIPT "bench_gdb_script"
#define CONTROL "--control=fifo:control,ack"

enum way { BARE, COUNTING, RING, STOP, INSIDE, PERF_IP, PERF_STACK, BY_GDB,
    WAYS };

/* A way to watch: the command, with PID and ADDR to be replaced; nothing is
   attached where the command starts the program itself. */
static const struct {
	const char *name;
	const char *writes;
	const char *ready;	/* its output when it watches; NULL: see
				   await_ready */
	const char *command[WORDS];
	int starts;		/* the command starts the program */
} ways[WAYS] = {
	[BARE] = {"not watched", FAST, NULL, {NULL}, 0},
	[COUNTING] = {"watchctl --count", FAST, NULL, {"watchctl", "--count",
	    "-w", "ADDR", "-o", "json", "-O", OUTPUT, "-p", "PID"}, 0},
	[RING] = {"watchctl", FAST, NULL, {"watchctl", "-w", "ADDR", "-o",
	    "json", "-O", OUTPUT, "-p", "PID"}, 0},
	[STOP] = {"watchctl --stop", SLOW, NULL, {"watchctl", "--stop", "-w",
	    "ADDR", "-o", "json", "-O", OUTPUT, "-p", "PID"}, 0},
	[INSIDE] = {"watchctl --inside", SLOW, NULL, {"watchctl", "--inside",
	    "-w", "counter", "-o", "json", "-O", OUTPUT, "--"}, 1},
	[PERF_IP] = {"perf record -e mem:ADDR:w", FAST, NULL, {PERF, "record",
	    "-e", "mem:ADDR/8:w", CONTROL, "-D", "-1", "-o", OUTPUT, "-p",
	    "PID"}, 0},
	[PERF_STACK] = {"... --call-graph dwarf,4096", FAST, NULL, {PERF,
	    "record", "-e", "mem:ADDR/8:w", CONTROL, "-D", "-1", "--call-graph",
	    "dwarf,4096", "-o", OUTPUT, "-p", "PID"}, 0},
	[BY_GDB] = {"gdb, watch and silently continue", SLOW,
	    "atchpoint 1: counter", {GDB, "-q", "-nx", "-batch", "-p", "PID",
	    "-x", SCRIPT}, 0},
};

/* A word of a command with the process and the address in it. */
static void
fill_in(char word[64], const char *from, const char *pid, const char *addr)
{
	const char *at = strstr(from, "ADDR");

	if (strcmp(from, "PID") == 0)
		(void)snprintf(word, 64, "%s", pid);
	else if (strcmp(from, "watchctl") == 0)
		(void)snprintf(word, 64, "%s", "");
	else if (at != NULL)
		(void)snprintf(word, 64, "%.*s%s%s", (int)(at - from), from,
		    addr, at + strlen("ADDR"));
	else
		(void)snprintf(word, 64, "%s", from);
}

/* Start a way's command. */
static void
start_way(struct running *r, enum way way, const char *pid, const char *addr)
{
	const char *argv[WORDS + 5] = {NULL};
	char words[WORDS][64];
	int n = 0;

	for (; n < WORDS && ways[way].command[n] != NULL; n++) {
		fill_in(words[n], ways[way].command[n], pid, addr);
		argv[n] = words[n][0] == '\0' ? watchctl() : words[n];
	}
	if (ways[way].starts) {
		argv[n++] = victim("counter");
		argv[n++] = "1";
		argv[n++] = ways[way].writes;
		argv[n] = WORK;
	}
	start(r, argv);
}

static int
is_perf(enum way way)
{
	return way == PERF_IP || way == PERF_STACK;
}

/* perf begins when it is told to, and answers. */
static void
enable_perf(void)
{
	char answer[16];
	int control = open("control", O_RDWR | O_CLOEXEC);
	int ack = open("ack", O_RDWR | O_CLOEXEC);

	assert_true(control >= 0 && ack >= 0);
	assert_int_equal(write(control, "enable", 6), 6);
	assert_true(read(ack, answer, sizeof(answer)) > 0);
	(void)close(control);
	(void)close(ack);
}

static void
await_ready(const struct running *tool, enum way way)
{
	if (ways[way].ready != NULL)
		await(tool->out, ways[way].ready);
	else if (is_perf(way))
		enable_perf();
	else
		bench_await_start(OUTPUT);
	(void)usleep(300000);
}

/* Attach a way's tool to the program, and wait until it watches. */
static void
attach(struct running *tool, enum way way, const struct running *v,
    const char *addr)
{
	char pid[16];

	(void)snprintf(pid, sizeof(pid), "%d", v->pid);
	start_way(tool, way, pid, addr);
	await_ready(tool, way);
}

/* The share of the writes that a tool reported; below 0: it does not say. */
static double
share_of(const char *said, enum way way)
{
	const char *at = strstr(said, is_perf(way) ? " samples)" : " reported");

	if (at == NULL)
		return -1;
	while (at > said && at[-1] >= '0' && at[-1] <= '9')
		at--;
	return atof(at) / atof(ways[way].writes);
}

static void
start_program(struct running *v, enum way way, char addr[32])
{
	if (ways[way].starts)
		start_way(v, way, "", "");
	else
		start(v, (const char *[]){victim("counter"), "1",
		    ways[way].writes, WORK, NULL});
	hear_address(v, addr);
}

static double
measure(enum way way, double *share)
{
	int attaches = way != BARE && !ways[way].starts;
	struct running v, tool;
	struct outcome o;
	char addr[32];
	double took;

	(void)unlink(OUTPUT);
	start_program(&v, way, addr);
	if (attaches)
		attach(&tool, way, &v, addr);
	took = bench_go(&v) * 1e6 / atof(ways[way].writes);
	say(&v, "end\n");
	finish(&v, &o);
	if (attaches)
		finish(&tool, &o);
	*share = share_of(o.err, way);
	return took;
}

static int
possible(enum way way)
{
	return way == BY_GDB ? access(GDB, X_OK) == 0 :
	    !is_perf(way) || access(PERF, X_OK) == 0;
}

static void
write_script(void)
{
	FILE *f = fopen(SCRIPT, "w");

	assert_non_null(f);
	assert_true(fputs(bench_gdb_script, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void
print_way(enum way way, double took, double bare, double share)
{
	printf("%-34s", ways[way].name);
	if (!possible(way)) {
		printf(" %10s\n", "not measured");
		return;
	}
	printf(" %10.2f", took);
	if (way != BARE)
		printf(" %10.2f", took - bare);
	if (share >= 0)
		printf(" %10.1f%%", share * 100);
	printf("\n");
}

static void
judge(double us[WAYS][RUNS], enum way ours, enum way theirs, double limit)
{
	if (possible(theirs))
		bench_tell(ways[ours].name, bench_median(us[ours], RUNS) /
		    bench_median(us[theirs], RUNS), "x", ways[theirs].name,
		    limit, 0);
}

int
main(void)
{
	char directory[] = "/tmp/watchctl_bench.XXXXXX";
	static double us[WAYS][RUNS], share[WAYS][RUNS];

	assert_non_null(mkdtemp(directory));
	assert_int_equal(chdir(directory), 0);
	assert_int_equal(mkfifo("control", 0600) | mkfifo("ack", 0600), 0);
	write_script();
	for (int i = 0; i < RUNS; i++)
		for (enum way way = 0; way < WAYS; way++)
			if (possible(way))
				us[way][i] = measure(way, &share[way][i]);
	(void)unlink(OUTPUT);
	(void)unlink(SCRIPT);
	(void)unlink("control");
	(void)unlink("ack");
	(void)rmdir(directory);
	printf("%-34s %10s %10s %11s\n", "1 us of work between two writes",
	    "us a write", "us a hit", "reported");
	for (enum way way = 0; way < WAYS; way++)
		print_way(way, bench_median(us[way], RUNS),
		    bench_median(us[BARE], RUNS),
		    bench_median(share[way], RUNS));
	judge(us, RING, PERF_STACK, 1.3);
	judge(us, STOP, BY_GDB, 0.6);
	return bench_status();
}
