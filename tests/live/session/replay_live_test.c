/*
 * replay: recordings of watchctl read by perf, and those of perf read by
 * watchctl.
 */
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "live.h"
#include "record/perfdata.h"

#define PERF "/usr/bin/perf"
#define THREADS "2"
#define WRITES "50"
enum { HITS = 100 };

static char file[] = "/tmp/replay_test.XXXXXX";

static int
make_file(void **state)
{
	int fd = mkstemp(file);

	(void)state;
	assert_true(fd >= 0);
	(void)close(fd);
	return 0;
}

static int
remove_file(void **state)
{
	(void)state;
	(void)unlink(file);
	(void)memset(strrchr(file, '.') + 1, 'X', 6);
	return 0;
}

static void
record_ours(void)
{
	struct running w;
	struct outcome o;

	start(&w, LIST(watchctl(), "-w", "counter", "-o", "perf", "-O", file,
	    "--", victim("counter"), THREADS, WRITES));
	say(&w, "go\nend\n");
	finish_status(&w, &o, 7);
	assert_holds(o.err, "100 hits, 100 reported, 0 lost");
}

/* Have a running perf record enable its events, and wait until it has. */
static void
enable(const char *control, const char *answer)
{
	char ack[8] = "";
	int to = open(control, O_WRONLY | O_CLOEXEC);
	int from = open(answer, O_RDONLY | O_CLOEXEC);

	assert_true(to >= 0 && from >= 0);
	assert_int_equal(write(to, "enable\n", 7), 7);
	assert_true(read(from, ack, sizeof(ack) - 1) > 0);
	assert_memory_equal(ack, "ack", 3);
	(void)close(to);
	(void)close(from);
}

/* Record with perf; graph is "--call-graph=dwarf", or something harmless. */
static void
record_perfs(const char *graph)
{
	struct running v, p;
	struct outcome o;
	char event[64], addr[32], pid[16], fifos[96], control[40], answer[40];

	start(&v, LIST(victim("counter"), THREADS, WRITES));
	hear_address(&v, addr);
	(void)snprintf(event, sizeof(event), "mem:%s/8:w", addr);
	(void)snprintf(pid, sizeof(pid), "%d", v.pid);
	(void)snprintf(control, sizeof(control), "%s.ctl", file);
	(void)snprintf(answer, sizeof(answer), "%s.ack", file);
	(void)snprintf(fifos, sizeof(fifos), "--control=fifo:%s,%s", control,
	    answer);
	assert_int_equal(mkfifo(control, 0600), 0);
	assert_int_equal(mkfifo(answer, 0600), 0);
	/* -N: nothing goes to the cache of build ids in the home directory */
	start(&p, LIST(PERF, "record", "-q", "-N", "-e", event, graph, "-m",
	    "1024", "--delay=-1", fifos, "-o", file, "-p", pid));
	enable(control, answer);
	say(&v, "go\nend\n");
	finish(&v, &o);
	finish_status(&p, &o, 0);
	(void)unlink(control);
	(void)unlink(answer);
}

/* Compare the samples that perf script lists with the hits that we tell. */
static void
expect_same_hits(void)
{
	struct outcome script, report;
	json_t *hit;
	size_t i, n = 0;
	char *line;

	run(&script, LIST(PERF, "script", "-i", file, "-G", "-F",
	    "tid,time,ip,addr"));
	run(&report, LIST(watchctl(), "report", "-o", "json", file));
	assert_int_equal(script.status, 0);
	assert_int_equal(report.status, 0);
	line = script.out;
	json_array_foreach(report.lines, i, hit) {
		unsigned long long addr, pc;
		int tid;

		if (strcmp(text_of(hit, "type"), "hit") != 0)
			continue;
		n++;
		if (sscanf(line, "%d %*s %llx %llx", &tid, &addr, &pc) != 3)
			fail_msg("perf script said: %s", line);
		assert_int_equal(number_of(hit, "tid"), tid);
		assert_int_equal(strtoull(text_of(hit, "addr"), NULL, 16),
		    addr);
		assert_int_equal(strtoull(text_of(hit, "pc"), NULL, 16), pc);
		line = strchr(line, '\n');
		assert_non_null(line);
		line++;
	}
	assert_int_equal(n, HITS);
	assert_string_equal(line, "");
}

/* What watchctl report says, each hit by the same chain of calls. */
static void
expect_report(const char *const functions[])
{
	struct outcome o;
	json_t *hit;
	size_t i;

	run_status(&o, 0, LIST(watchctl(), "report", "-o", "json", file));
	assert_int_equal(count_of(&o, "hit"), HITS);
	assert_int_equal(number_of(first_of(&o, "end"), "lost"), 0);
	assert_string_equal(text_of(json_array_get(json_object_get(first_of(&o,
	    "start"), "watches"), 0), "symbol"), "counter");
	json_array_foreach(o.lines, i, hit) {
		const json_t *frames = json_object_get(hit, "frames");

		for (size_t k = 0; frames != NULL && functions[k] != NULL; k++)
			assert_string_equal(text_of(json_array_get(frames, k),
			    "function"), functions[k]);
	}
}

static const char *const chain[] = {
	"bump", "level1", "level2", "level3", "level4", "level5", "level6",
	"level7", "level8", "level9", "level10", "level11", "level12",
	"level13", "level14", "level15", "work", NULL
};

TEST(our_recording_is_complete)
{
	record_ours();
	expect_report(chain);
	expect_same_hits();
}

/* perf unwinds by itself, from our registers, stacks and mappings. */
TEST(perf_unwinds_our_recording)
{
	struct outcome o;
	const char *at;

	record_ours();
	run(&o, LIST(PERF, "script", "-i", file, "-F", "ip,sym"));
	at = o.out;
	for (size_t i = 0; chain[i] != NULL; i++) {
		if ((at = strstr(at, chain[i])) == NULL)
			fail_msg("no %s in order: %s", chain[i], o.out);
	}
	run_status(&o, 0, LIST(PERF, "report", "-i", file, "--stdio",
	    "--no-children", "-g", "none"));
	assert_non_null(strstr(o.out, "100.00%") != NULL ?
	    strstr(o.out, "100.00%") : strstr(o.out, "50.00%"));
	assert_holds(o.out, "bump");
}

TEST(perfs_recording_with_stacks)
{
	record_perfs("--call-graph=dwarf");
	expect_report(chain);
}

TEST(perfs_recording_without_stacks)
{
	static const char *const only[] = {"bump", NULL};

	record_perfs("--no-buildid");
	expect_report(only);
}

/* Reading needs no breakpoints, and no perf_event_open. */
/* What -r drops is not shown afterwards either; perf minds nothing. */
TEST(reads_stay_reads)
{
	struct running w;
	struct outcome o;

	start(&w, LIST(watchctl(), "-r", "filled", "-a", "filled", "-o", "perf",
	    "-O", file, "--", victim("counter"), "1", "1"));
	say(&w, "go\nend\n");
	finish_status(&w, &o, 7);
	run_status(&o, 0, LIST(watchctl(), "report", "-o", "json", file));
	assert_holds(o.out, "\"access\":\"r\"");
	assert_holds(o.out, "\"access\":\"a\"");
	assert_lacks(o.out, "\"watch\":1");
	assert_holds(o.out, "\"watch\":2");
	assert_holds(o.err, "not wanted");
	if (access(PERF, X_OK) != 0)
		return;
	run_status(&o, 0, LIST(PERF, "script", "-i", file, "-F", "event"));
	assert_holds(o.out, "filled");
}

/* Two processes with two watches each, which write and end. */
static void
record_two(const char *mode)
{
	struct running v[2], w;
	struct outcome o;
	char pids[32], where[32];
	struct stat st;

	for (size_t i = 0; i < 2; i++) {
		start(&v[i], LIST(victim("counter"), "1", "5"));
		hear_address(&v[i], where);
	}
	(void)snprintf(pids, sizeof(pids), "%d,%d", v[0].pid, v[1].pid);
	start(&w, LIST(watchctl(), mode, "-w", "counter", "-w", "filled", "-o",
	    "perf", "-O", file, "-p", pids));
	do {
		assert_int_equal(stat(file, &st), 0);
		(void)usleep(1000);
	} while (st.st_size == 0);
	for (size_t i = 0; i < 2; i++) {
		say(&v[i], "go\nend\n");
		finish(&v[i], &o);
	}
	finish_status(&w, &o, 0);
}

/* Of each event the file has the attribute that it was opened with: that of
   each process's first has its mappings recorded. */
TEST(each_process_has_its_events)
{
	static const char *const modes[] = {"-n1000", "--stop"};

	for (size_t i = 0; i < COUNT(modes); i++) {
		const struct ex_perf_event *events;
		struct ex_perfdata *data;
		const char *why;

		record_two(modes[i]);
		assert_int_equal(ex_perfdata_open(file, &data, &why), 0);
		assert_int_equal(ex_perfdata_events(data, &events), 4);
		for (size_t k = 0; k < 4; k++) {
			assert_int_equal(events[k].attr.task, k % 2 == 0);
			assert_int_equal(events[k].attr.mmap2, k % 2 == 0);
			assert_int_equal(events[k].attr.comm_exec, k % 2 == 0);
			assert_true(events[k].nids > 0);
		}
		ex_perfdata_close(data);
		assert_int_equal(truncate(file, 0), 0);
	}
}

/* Who records is killed: what was hit until then is there, and no more told. */
TEST(an_unfinished_recording)
{
	struct running w, v;
	struct outcome o;
	char its[16], where[32];
	struct stat st;
	bool written;

	start(&v, LIST(victim("counter"), "1", "20"));
	hear_address(&v, where);
	(void)snprintf(its, sizeof(its), "%d", v.pid);
	start(&w, LIST(watchctl(), "-w", "counter", "-o", "perf", "-O", file,
	    "-p", its));
	do {	/* it has begun, and been armed before that */
		assert_int_equal(stat(file, &st), 0);
		(void)usleep(1000);
	} while (st.st_size == 0);
	say(&v, "go\n");
	do {	/* until all are there */
		run(&o, LIST(watchctl(), "report", "-O", "/dev/null", file));
		written = strstr(o.err, "20 hits, 20 reported") != NULL;
	} while (!written);
	end(&w);
	end(&v);
	run(&o, LIST(watchctl(), "report", "--error-exitcode", "9", "--allow",
	    "bump", file));
	assert_holds(o.err, "was not finished");
	assert_holds(o.err, "20 hits, 20 reported");
	assert_int_equal(o.status, 120);
}

/* Somebody cuts the file short while it is read: the pipe for the report is
   full long before its end. */
TEST(a_recording_that_is_cut_short_meanwhile)
{
	struct running w;
	struct outcome o;
	char line[1024];

	record_ours();
	start(&w, LIST(watchctl(), "report", "-o", "json", file));
	hear(&w, line, sizeof(line));
	assert_int_equal(truncate(file, 4096), 0);
	finish_status(&w, &o, 125);
	assert_holds(o.err, "cut short");
}

TEST(needs_no_breakpoints)
{
	struct outcome o;

	record_ours();
	/* the leak sanitizer does not work under a tracer */
	(void)setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
	run(&o, LIST("/usr/bin/strace", "-f", "-qq", "-e",
	    "trace=perf_event_open", "-e", "signal=none", "-o", "/dev/stdout",
	    watchctl(), "report", "-O", "/dev/null", file));
	(void)unsetenv("ASAN_OPTIONS");
	assert_int_equal(o.status, 0);
	assert_string_equal(o.out, "");
}

TEST(a_damaged_recording_is_reported)
{
	struct outcome o;

	record_ours();
	assert_int_equal(truncate(file, 100000), 0);
	run(&o, LIST(watchctl(), "report", "-o", "json", file));
	assert_true(o.status == 0 || o.status == 125);
	assert_true(strlen(o.err) > 0);
}

RUN_LIVE_TESTS(.before_each = make_file, .after_each = remove_file)
