/*
 * recorder: --last keeps the newest hits, and reports them when they are
 * wanted.
 */
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "explainers.h"
#include "live.h"
#include "scratch.h"
#include "watching.h"

enum { LAST_LINES = 3 };	/* last, summary, end */

/* KiB: those 20,000 samples take 90 MiB, if they are kept. */
enum { MARGIN = 32 << 10 };

static json_int_t
tell_to(struct running *r, const char *what)
{
	say(r, what);
	return target_done(r);
}

/* Say the last thing that it hears, and collect what it says then. */
static void
let_end(struct target *t, const char *what, int status)
{
	struct outcome o;

	say(&t->run, what);
	finish_status(&t->run, &o, status);
}

/* Start a victim, and a watchctl that keeps its last hits. */
static void
begin(struct target *t, struct running *w, const char *last, const char *more)
{
	target_start(t, LIST(victim("obeys")));
	watch_start(w, LIST(watchctl(), "-w", "word", "-o", "json", "--last",
	    last, "-p", t->pid, more));
}

/* All of that, of a victim that does one thing before the last; and so much is
   then done. */
static void
record(struct outcome *o, const char *last, const char *more, const char *what,
    json_int_t done, const char *then, int status)
{
	struct target t;
	struct running w;

	begin(&t, &w, last, more);
	assert_int_equal(tell_to(&t.run, what), done);
	let_end(&t, then, status);
	finish(&w, o);
}

/* What has become of all accesses; so many were reported, and that in the
   end. */
static void
expect_account(const struct outcome *o, json_int_t hits, json_int_t reported)
{
	const json_t *end = first_of(o, "end");

	if (end == NULL)
		fail_msg("no account: %s", o->err);
	assert_int_equal(number_of(end, "hits"), hits);
	assert_int_equal(number_of(end, "reported"), reported);
	assert_int_equal(number_of(end, "lost"), 0);
	assert_int_equal(number_of(end, "skipped"), hits - reported);
	assert_int_equal(count_of(o, "hit"), reported);
}

static void
expect_last(const json_t *last, json_int_t count, const char *reason)
{
	assert_non_null(last);
	assert_int_equal(number_of(last, "count"), count);
	assert_string_equal(text_of(last, "reason"), reason);
}

/* A hit wrote this, as instructions and values say; and the one before it, if
   it is not the first of those that are kept, was the one before it. */
static void
expect_put(const json_t *hit, json_int_t value, bool first)
{
	expect_function(hit, 0, "put");
	expect_function(hit, 1, "main");
	expect_complete(hit);
	assert_int_equal(hex_of(hit, "new"), value);
	if (first)
		assert_null(json_object_get(hit, "old"));
	else
		assert_int_equal(hex_of(hit, "old"), value - 1);
}

static void
expect_newest(const struct outcome *o, json_int_t newest, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(number_of(hit_at(o, i), "seq"), i + 1);
		expect_put(hit_at(o, i), newest - n + 1 + i, i == 0);
	}
}

TEST(the_last_writes_before_a_crash)
{
	struct outcome o;

	record(&o, "5", NULL, "write 20000\n", 20000, "crash\n",
	    128 + SIGSEGV);
	assert_int_equal(o.status, 0);
	expect_account(&o, 20000, 5);
	expect_newest(&o, 20000, 5);
	expect_last(first_of(&o, "last"), 5, "crash");
	assert_int_equal(count_of(&o, "last"), 1);
	assert_holds(o.err, "20000 hits, 5 reported, 0 lost, 19995 " "skipped");
}

TEST(the_same_by_the_rings_of_the_kernel)
{
	struct outcome o;

	record(&o, "5", "--delivery=ring", "write 2000\n", 2000, "crash\n",
	    128 + SIGSEGV);
	expect_account(&o, 2000, 5);
	expect_newest(&o, 2000, 5);
}

TEST(fewer_than_that_when_it_ends)
{
	struct outcome o;

	record(&o, "5", NULL, "write 3\n", 3, "", 7);
	expect_account(&o, 3, 3);
	expect_last(first_of(&o, "last"), 3, "exit");
}

TEST_KEEPS(kept, json_t *, json_decref)

/* Hear lines up to that of a type, as an outcome without an end. */
static void
hear_until(struct running *w, const char *type, struct outcome *o)
{
	char line[8192], kind[64];

	*o = (struct outcome){.lines = kept(json_array())};
	(void)snprintf(kind, sizeof(kind), "\"type\":\"%s\"", type);
	do {
		hear(w, line, sizeof(line));
		assert_int_equal(json_array_append_new(o->lines,
		    json_loads(line, 0, NULL)), 0);
	} while (strstr(line, kind) == NULL);
}

TEST(a_signal_reports_what_was_not_reported_yet)
{
	struct target t;
	struct running w;
	struct outcome o;

	begin(&t, &w, "4", NULL);
	assert_int_equal(tell_to(&t.run, "write 100\n"), 100);
	assert_int_equal(kill(w.pid, SIGUSR1), 0);
	hear_until(&w, "last", &o);
	expect_newest(&o, 100, 4);
	expect_last(first_of(&o, "last"), 4, "signal");
	assert_int_equal(tell_to(&t.run, "write 2\n"), 102);
	assert_int_equal(kill(w.pid, SIGUSR1), 0);
	hear_until(&w, "last", &o);
	expect_last(first_of(&o, "last"), 2, "signal");
	assert_int_equal(hex_of(hit_at(&o, 0), "old"), 100);
	assert_int_equal(hex_of(hit_at(&o, 0), "new"), 101);
	assert_int_equal(kill(w.pid, SIGUSR1), 0);
	hear_until(&w, "last", &o);
	expect_last(first_of(&o, "last"), 0, "signal");
	let_end(&t, "", 7);
	finish(&w, &o);
	assert_int_equal(count_of(&o, "last"), 0);
	assert_int_equal(number_of(first_of(&o, "end"), "skipped"), 96);
	assert_int_equal(number_of(first_of(&o, "end"), "reported"), 6);
}

/* The kernel's copies trap once for each byte, and are one hit. */
TEST(copies_of_the_kernel_are_kept_whole)
{
	struct outcome o;

	record(&o, "3", NULL, "read 50\n", 50, "", 7);
	expect_account(&o, 50, 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_string_equal(text_of(hit_at(&o, i), "syscall"), "read");
		assert_int_equal(number_of(hit_at(&o, i), "len"), 8);
	}
}

/* Whether a process maps this file. */
static bool
does_map(pid_t pid, const char *file)
{
	char path[64], line[512];
	bool does = false;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	if ((f = fopen(path, "r")) == NULL)
		return false;
	while (!does && fgets(line, sizeof(line), f) != NULL)
		does = strstr(line, file) != NULL;
	(void)fclose(f);
	return does;
}

/* What was loaded is known when it is gone from memory and disk. */
TEST(libraries_that_are_gone)
{
	struct target t;
	struct running w;
	struct outcome o;
	char told[PATH_MAX + 16];

	scratch_run("%s -g -O1 -shared -fPIC -o plug.so "
	    "%s/tests/victim/plug.c", getenv("CC"), getenv("TOP"));
	begin(&t, &w, "2", NULL);
	(void)tell_to(&t.run, "write 10\n");
	(void)snprintf(told, sizeof(told), "call %s\n",
	    scratch_path("plug.so"));
	assert_int_equal(tell_to(&t.run, told), 11);
	for (int ms = 0; !does_map(explainer_of(w.pid), "plug.so"); ms++) {
		assert_true(ms < COMMAND_PATIENCE_MS);
		(void)usleep(1000);
	}
	assert_int_equal(unlink(scratch_path("plug.so")), 0);
	(void)tell_to(&t.run, "map 100\n");
	let_end(&t, "crash\n", 128 + SIGSEGV);
	finish(&w, &o);
	expect_function(hit_at(&o, 1), 0, "plug_write");
	assert_string_equal(maybe_text(frame_of(hit_at(&o, 1), 0), "module"),
	    "plug.so");
	assert_true(number_of(frame_of(hit_at(&o, 1), 0), "line") > 0);
	expect_function(hit_at(&o, 1), 1, "call");
	expect_complete(hit_at(&o, 1));
}

#if !SANITIZED	/* what is freed would stay */
/* KiB of its own: rings are mapped as they fill, once. */
static long
memory_of(pid_t pid)
{
	char path[64], line[256];
	long kib = -1;
	FILE *status;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	status = fopen(path, "r");
	assert_non_null(status);
	while (fgets(line, sizeof(line), status) != NULL)
		if (sscanf(line, "RssAnon: %ld", &kib) == 1)
			break;
	(void)fclose(status);
	assert_true(kib > 0);
	return kib;
}

/* Neither hits nor mappings, nor both, make it grow. */
TEST(memory_is_bounded)
{
	struct target t;
	struct running w;
	struct outcome o;
	long before;

	begin(&t, &w, "100", "--buffer=4M");
	before = memory_of(w.pid);
	(void)tell_to(&t.run, "write 100\n");
	(void)tell_to(&t.run, "map 30000\n");
	assert_int_equal(tell_to(&t.run, "write 19900\n"), 20000);
	assert_true(memory_of(w.pid) < before + MARGIN);
	let_end(&t, "", 7);
	finish(&w, &o);
	/* so little memory may be full for a moment */
	assert_int_equal(number_of(first_of(&o, "end"), "hits"), 20000);
	assert_int_equal(number_of(first_of(&o, "end"), "reported"), 100);
	assert_int_equal(count_of(&o, "hit"), 100);
}
#endif

TEST(one_of_two_processes_crashes)
{
	struct target one, other;
	struct running w;
	struct outcome o;

	target_start(&one, LIST(victim("obeys")));
	target_start(&other, LIST(victim("obeys")));
	watch_start(&w, LIST(watchctl(), "-w", "word", "-o", "json", "--last",
	    "3", "-p", one.pid, "-p", other.pid));
	(void)tell_to(&one.run, "write 10\n");
	(void)tell_to(&other.run, "write 1\n");
	let_end(&one, "crash\n", 128 + SIGSEGV);
	hear_until(&w, "last", &o);
	expect_last(first_of(&o, "last"), 3, "crash");
	assert_int_equal(number_of(hit_at(&o, 2), "pid"), other.run.pid);
	(void)tell_to(&other.run, "write 1\n");
	let_end(&other, "", 7);
	finish(&w, &o);
	expect_last(first_of(&o, "last"), 1, "exit");
}

/* The signal that asks for the report is a command's own as it was. */
TEST(a_command_has_its_signals)
{
	struct outcome o;

	run_status(&o, 7, LIST(watchctl(), "-w", "word", "--last", "3", "--",
	    victim("obeys")));
	assert_holds(o.err, "the last 0 hits: the process ended");
	scratch_run("echo 'int word; int main(void) "
	    "{ word = 1; raise(10); return 3; }' > raises.c && "
	    "%s -g -w -o raises raises.c", getenv("CC"));
	run(&o, LIST(watchctl(), "-w", "word", "--last", "3", "--",
	    scratch_path("raises")));
	assert_int_equal(o.status, 128 + SIGUSR1);
	assert_holds(o.err, "the last 1 hit: the process was ended "
	    "by a signal");
}

/* Processes that are gone, in programs that a shell ran. */
TEST(each_hit_is_of_its_program)
{
	struct outcome o;
	char both[2 * PATH_MAX + 4];

	scratch_run("echo 'int word; void one(void) { word = 1; } "
	    "int main(void) { one(); return 5; }' > one.c && "
	    "sed 's/one/two/g' one.c > two.c && "
	    "%s -g -w -no-pie -o one one.c && %s -g -w -no-pie -o two two.c",
	    getenv("CC"), getenv("CC"));
	(void)snprintf(both, sizeof(both), "%s; %s", scratch_path("one"),
	    scratch_path("two"));
	run_status(&o, 5, LIST(watchctl(), "-w", "word", "-f", "-o", "json",
	    "-O", scratch_path("report"), "--last", "9", "--if-missing", "skip",
	    "--", "/bin/sh", "-c", both));
	outcome_take(&o, scratch_path("report"));
	assert_int_equal(unlink(scratch_path("report")), 0);
	expect_function(hit_at(&o, 0), 0, "one");
	expect_function(hit_at(&o, 1), 0, "two");
	assert_int_equal(count_of(&o, "hit"), 2);
	expect_last(first_of(&o, "last"), 2, "exit");
}

TEST(until_a_condition_holds)
{
	struct target t;
	struct running w;
	struct outcome o;

	begin(&t, &w, "4", "--until=new == 1500");
	assert_int_equal(tell_to(&t.run, "write 2000\n"), 2000);
	finish_status(&w, &o, 0);
	expect_account(&o, 1500, 4);
	for (unsigned i = 0; i < 4; i++)
		expect_put(hit_at(&o, i), 1497 + i, false);
	expect_last(first_of(&o, "last"), 4, "until");
	assert_string_equal(text_of(first_of(&o, "end"), "reason"), "until");
	let_end(&t, "", 7);
}

TEST(until_it_crashes_before_that)
{
	struct target t;
	struct running w;
	struct outcome o;
	pid_t explainer;

	begin(&t, &w, "4", "--until=new == 1500");
	(void)tell_to(&t.run, "write 100\n");
	assert_int_equal(kill(w.pid, SIGUSR1), 0);
	hear_until(&w, "last", &o);
	expect_last(first_of(&o, "last"), 4, "signal");
	/* it explains again what was held, and not what was told */
	(void)tell_to(&t.run, "write 2\n");
	assert_true((explainer = explainer_of(w.pid)) > 0);
	assert_int_equal(kill(explainer, SIGKILL), 0);
	(void)tell_to(&t.run, "write 1\n");
	let_end(&t, "crash\n", 128 + SIGSEGV);
	finish(&w, &o);
	assert_int_equal(count_of(&o, "hit"), 3);
	/* what it was reading when it was killed is not read again, perhaps */
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(number_of(hit_at(&o, i), "seq"), 5 + i);
	assert_string_equal(text_of(json_array_get(o.lines,
	    json_array_size(o.lines) - LAST_LINES), "reason"), "crash");
	assert_int_equal(number_of(first_of(&o, "end"), "hits"), 103);
	assert_int_equal(number_of(first_of(&o, "end"), "reported"), 7);
	assert_int_equal(number_of(first_of(&o, "end"), "lost"), 0);
}

/* Without --last it is the last hit of the report. */
TEST(until_in_each_way)
{
	static const char *const ways[] = {
		"--stop", "--inside", "--stack=4096",
	};
	struct running w;
	struct outcome o;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		start(&w, LIST(watchctl(), ways[i], "-w", "word", "--until",
		    "new > 2 || tid == 1", "-o", "json", "-O",
		    scratch_path("report"), victim("obeys")));
		say(&w, "write 50\n");
		finish_status(&w, &o, 7);
		outcome_take(&o, scratch_path("report"));
		assert_int_equal(count_of(&o, "hit"), 3);
		assert_string_equal(text_of(first_of(&o, "end"), "reason"),
		    "until");
		assert_int_equal(unlink(scratch_path("report")), 0);
	}
	start(&w, LIST(watchctl(), "-w", "word", "-o", "perf", "-O",
	    scratch_path("recorded"), victim("obeys")));
	say(&w, "write 50\n");
	finish(&w, &o);
	run(&o, LIST(watchctl(), "report", "--until", "new == 7", "-o", "json",
	    scratch_path("recorded")));
	assert_int_equal(count_of(&o, "hit"), 7);
	assert_string_equal(text_of(first_of(&o, "end"), "reason"), "until");
}

TEST(a_condition_that_is_bad_in_the_target)
{
	struct outcome o;

	run_status(&o, 125, LIST(watchctl(), "-w", "word", "--until",
	    "new == NEVER", "--", victim("obeys")));
	assert_memory_equal(o.err, "watchctl: --until: 'NEVER' is neither ",
	    38);
}

TEST(what_does_not_fit_is_refused)
{
	struct outcome o;

	run_status(&o, 125, LIST(watchctl(), "-w", "word", "--last", "100000",
	    "--", victim("obeys")));
	assert_string_equal(o.err, "watchctl: --last 100000: so many hits, "
	    "with the stack of each, take 440M, and 128M of --buffer are for "
	    "them; give --buffer 879M\n");
}

RUN_LIVE_TESTS(.before_all = scratch_make, .after_all = scratch_remove)
