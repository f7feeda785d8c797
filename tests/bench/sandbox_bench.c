/*
 * sandbox: measures what it costs that a program of its own, in a sandbox,
 * reads what others control: processor time of watchctl and of its explainer,
 * compared with a process that replays the same recording itself.
 *
 * Live hits, of a hot loop and with --stop, are compared with the same: what
 * watchctl and its children take for one, in multiples of explaining a recorded
 * one in process.  When watchctl explained them itself it was 3 of these, 53
 * with --stop.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "session/explained_session.h"
#include "session/replay.h"
#include "option/options.h"
#include "space/space.h"

enum { ROUNDS = 25, STARTS = 15, LIVE_ROUNDS = 5 };
#define SHORTER LIST("counter", "1", "1000")
#define LONGER LIST("counter", "1", "41000")

/* Replay a file as watchctl-explain does, without a sandbox; never returns. */
static void
replay_here(const char *file)
{
	char *argv[] = {
		(char *)(uintptr_t)"report", (char *)(uintptr_t)"-o",
		(char *)(uintptr_t)"json", (char *)(uintptr_t)"--stacks",
		(char *)(uintptr_t)"once", (char *)(uintptr_t)"--no-cache",
		(char *)(uintptr_t)file, NULL,
	};
	const struct output_screen screen = {0};
	const struct session_resume begin = {0};
	struct options options;
	struct session s;
	FILE *out = fopen("/dev/null", "w");
	int status = 1;

	if (out != NULL && freopen("/dev/null", "w", stderr) != NULL &&
	    options_parse_report(7, argv, &options) == 0 &&
	    explained_session_open(&s, &options, EX_RECORDED, NULL, out,
	    &screen, &begin) == 0) {
		status = replay(&s);
		session_close(&s);
	}
	_exit(status);
}

static void
run_here(const struct bench_way *way, const char *file)
{
	const pid_t pid = fork();
	int status;

	(void)way;
	assert_true(pid >= 0);
	if (pid == 0)
		replay_here(file);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void
run_command(const char *const argv[])
{
	struct outcome o;

	run_status(&o, 0, argv);
}

static void
run_boxed(const struct bench_way *way, const char *file)
{
	(void)way;
	run_command(LIST(watchctl(), "report", "-o", "json", "--stacks", "once",
	    "--no-cache", "-O", "/dev/null", file));
}

/* The least processor time of several runs of a command. */
static double
least_cpu(const char *const argv[], double least)
{
	const double began = bench_cpu();
	double took;

	run_command(argv);
	took = bench_cpu() - began;
	return least == 0 || took < least ? took : least;
}

/* What the sandbox takes to begin: the shorter recording with it and without,
   and without it what it takes to execute watchctl at all. */
static void
bench_start(const struct bench_way *sandboxed, const struct bench_way *here)
{
	double program = 0, nothing = 0, sandbox;

	for (int i = 0; i < STARTS; i++) {
		program = least_cpu(LIST(watchctl(), "--version"), program);
		nothing = least_cpu(LIST("/bin/true"), nothing);
	}
	sandbox = sandboxed->least[0] - here->least[0] - program;
	printf("sandbox: %.1f ms of processor time to begin; to execute "
	    "watchctl %.1f ms, /bin/true %.2f ms\n", sandbox * 1e3,
	    program * 1e3, nothing * 1e3);
	bench_tell("sandbox, to begin", sandbox / nothing, "x",
	    "executing /bin/true", 8, 0);
}

/* Wait until a report begins, which it does when the watch is on. */
static void
await_report(const char *file)
{
	struct stat status = {.st_size = 0};

	for (int waited = 0; waited < COMMAND_PATIENCE_MS &&
	    (stat(file, &status) != 0 || status.st_size == 0); waited++)
		(void)usleep(1000);
	assert_true(status.st_size > 0);
}

/* Processor time of watchctl and its children for a hit of a hot loop that it
   is attached to; more: an argument, NULL: none. */
static double
live_hit(const char *writes, const char *more)
{
	char pid[16], address[32];
	char file[] = "/tmp/watchctl_bench.XXXXXX";
	const int fd = mkstemp(file);
	struct running v, w;
	struct outcome o;
	double took, hits;

	assert_true(fd >= 0);
	(void)close(fd);
	start(&v, LIST(victim("counter"), "1", writes));
	(void)snprintf(pid, sizeof(pid), "%d", (int)v.pid);
	hear_address(&v, address);
	took = bench_cpu();
	start(&w, LIST(watchctl(), "-w", address, "-o", "json", "-O", file,
	    "--stacks", "once", "-p", pid, more));
	await_report(file);
	(void)bench_go(&v);
	say(&v, "end\n");
	finish(&w, &o);
	took = bench_cpu() - took;
	(void)unlink(file);
	assert_non_null(strstr(o.err, " hits, "));
	hits = atof(strstr(o.err, " hits, ") + strlen(" hits, "));
	finish(&v, &o);
	assert_true(hits > 0);
	return took / hits;
}

/* The least of several runs. */
static double
least_live_hit(const char *writes, const char *more)
{
	double least = 0, hit;

	for (int i = 0; i < LIVE_ROUNDS; i++)
		if ((hit = live_hit(writes, more)) < least || least == 0)
			least = hit;
	return least;
}

int
main(void)
{
	struct bench_recordings r;
	struct bench_way way[] = {{.run = run_boxed}, {.run = run_here}};
	double ring, stop;

	bench_record(&r, SHORTER, LONGER);
	bench_compare(way, 2, ROUNDS, &r);
	bench_remove(&r);
	ring = least_live_hit("41000", NULL);
	stop = least_live_hit("2000", "--stop");
	printf("sandbox: a hit of a recording takes %.3f us, in process "
	    "%.3f us; a live one %.3f us, with --stop %.1f us\n",
	    way[0].hit * 1e6, way[1].hit * 1e6, ring * 1e6, stop * 1e6);
	bench_tell("sandbox, a recording", way[0].hit / way[1].hit, "x",
	    "in process", 1.1, 0);
	bench_start(&way[0], &way[1]);
	bench_tell("a live hit", ring / way[1].hit, "x",
	    "a recorded one in process", 4, 0);
	bench_tell("a live hit, --stop", stop / way[1].hit, "x",
	    "a recorded one in process", 65, 0);
	return bench_status();
}
