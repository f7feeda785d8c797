/*
 * instances: each thread's own instance of a thread-local variable is watched
 * for what that thread does, from its first instruction on (victim/brood).
 */
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "live.h"
#include "scratch.h"
#include "watching.h"

static const char threads[] = "20";
enum { THREADS = 20, WRITES = 2 + 2 * THREADS };

/* Events of threads: each has one. */
static size_t
count_events(const struct outcome *o, const char *event, pid_t pid)
{
	size_t i, n = 0;
	json_t *line;

	json_array_foreach(o->lines, i, line) {
		if (strcmp(maybe_text(line, "event"), event) != 0 ||
		    strcmp(text_of(line, "type"), "watch") != 0 ||
		    json_object_get(line, "tid") == NULL)
			continue;
		assert_int_equal(number_of(line, "id"), 1);
		assert_null(json_object_get(line, "gap_us"));
		n += pid == 0 || number_of(line, "pid") == pid;
	}
	return n;
}

/* Where a thread was said to have its own. */
static uint64_t
armed_at(const struct outcome *o, json_int_t tid)
{
	size_t i;
	json_t *line;

	json_array_foreach(o->lines, i, line)
		if (strcmp(maybe_text(line, "event"), "armed") == 0 &&
		    json_integer_value(json_object_get(line, "tid")) == tid)
			return hex_of(line, "addr");
	return 0;
}

/* Of each thread, its two writes, with the values that it wrote. */
static void
expect_own(const struct outcome *o, size_t times)
{
	unsigned seen[THREADS + 1][2] = {{0}};
	size_t i;
	json_t *hit;

	each_hit(o, i, hit) {
		const uint64_t new = hex_of(hit, "new");
		const bool first = new == 1 || new == 2;

		assert_int_equal(number_of(hit, "watch"), 1);
		assert_int_equal(hex_of(hit, "addr"), armed_at(o,
		    number_of(hit, "tid")));
		assert_in_range(new / 10, 0, THREADS);
		seen[new / 10][first ? new - 1 : new % 10]++;
	}
	for (i = 0; i <= THREADS; i++) {
		assert_int_equal(seen[i][0], times);
		assert_int_equal(seen[i][1], times);
	}
}

static void
watch_brood(struct outcome *o, const char *program, const char *way,
    const char *const options[])
{
	const char *argv[ARGS];
	size_t n = append(argv, 0, LIST(watchctl(), "-w", "own", "-o", "json",
	    "-O", "-"));

	n = append(argv, n, options);
	(void)append(argv, n, LIST("--", victim(program), threads, way));
	run(o, argv);
	if (o->status != 7 || strstr(o->err, " 0 lost") == NULL)
		fail_msg("status %d: %s", o->status, o->err);
}

static void
expect_start(const struct outcome *o, json_int_t len)
{
	const json_t *watch = json_array_get(json_object_get(first_of(o,
	    "start"), "watches"), 0);

	assert_true(json_is_true(json_object_get(watch, "thread_local")));
	assert_null(json_object_get(watch, "addr"));
	assert_int_equal(number_of(watch, "len"), len);
}

static void
expect_brood(const char *program, const char *const options[])
{
	struct outcome o;

	watch_brood(&o, program, NULL, options);
	expect_start(&o, strcmp(program, "brood_narrow") == 0 ? 4 : 8);
	expect_hits(&o, WRITES);
	expect_own(&o, 1);
	assert_int_equal(count_events(&o, "armed", 0), THREADS + 1);
	assert_int_equal(count_events(&o, "disarmed", 0), THREADS + 1);
}

#define VOUCHED "--allow", "act", "--allow", "write_own",		\
	"--error-exitcode", "66"

TEST(of_a_command)
{
	expect_brood("brood", LIST(VOUCHED));
}

TEST(of_a_command_with_stops)
{
	expect_brood("brood", LIST("--stop", VOUCHED));
}

/* It makes its storage itself, and has no loader that knows of it. */
TEST(of_a_static_command)
{
	expect_brood("brood_static", LIST(VOUCHED));
	expect_brood("brood_static", LIST("--stop"));
}

TEST(of_a_32_bit_command)
{
	skip_unless_narrow_runs(victim("brood_narrow"));
	expect_brood("brood_narrow", LIST(VOUCHED));
}

/* Beside what all threads have in common. */
TEST(a_variable_that_all_threads_share_besides)
{
	struct outcome o;
	size_t i, n = 0;
	json_t *hit;

	watch_brood(&o, "brood", NULL, LIST("-a", "all_there:4", VOUCHED,
	    "--allow", "sem*", "--allow", "make_threads", "--allow", "main",
	    "--allow", "*sem*"));
	each_hit(&o, i, hit)
		n += number_of(hit, "watch") == 1;
	assert_int_equal(n, WRITES);
	assert_true(count_of(&o, "hit") >= WRITES + THREADS);
}

TEST(of_its_children)
{
	struct outcome o;
	json_int_t pid;

	watch_brood(&o, "brood", "fork", LIST("-f", VOUCHED));
	expect_own(&o, 2);
	pid = number_of(first_of(&o, "start"), "pid");
	assert_int_equal(count_events(&o, "armed", (pid_t)pid), THREADS + 1);
	assert_int_equal(count_events(&o, "armed", 0), 2 * (THREADS + 1));
	watch_brood(&o, "brood", "fork", LIST("-f", "--stop"));
	expect_own(&o, 2);
	watch_brood(&o, "brood", "fork", LIST("--allow", "*"));
	expect_own(&o, 1);
}

/* The first write is the old program's. */
TEST(of_what_it_executes)
{
	static const char *const ways[] = {"--user-only", "--stop"};
	struct outcome o;

	for (size_t i = 0; i < COUNT(ways); i++) {
		watch_brood(&o, "brood", "execute", LIST(ways[i]));
		expect_hits(&o, WRITES + 1);
		assert_int_equal(count_events(&o, "armed", 0), THREADS + 2);
	}
}

TEST(of_what_a_shell_executes)
{
	struct outcome o;

	run(&o, LIST(watchctl(), "-w", "own", "-o", "json", "-O", "-", "-f",
	    "--if-missing", "skip", VOUCHED, "--", "/bin/sh", "-c",
	    "/bin/true; \"$0\" 20; \"$0\" 20; exit 7", victim("brood")));
	if (o.status != 7)
		fail_msg("status %d: %s", o.status, o.err);
	expect_hits(&o, 2 * WRITES);
}

/* --- processes that run already --- */

static void
watch_ready(struct outcome *o, const char *program, const char *const options[])
{
	const char *argv[ARGS];
	char line[256], pid[16], all[16];
	struct running r, w;
	struct outcome ended;
	size_t n;

	start(&r, LIST(victim(program), threads, "wait"));
	hear(&r, line, sizeof(line));
	(void)snprintf(pid, sizeof(pid), "%d", r.pid);
	(void)snprintf(all, sizeof(all), "%d", WRITES);
	n = append(argv, 0, LIST(watchctl(), "-w", "own", "-o", "json", "-p",
	    pid, "-n", all));
	(void)append(argv, n, options);
	watch_start(&w, argv);
	say(&r, "go\n");
	finish_status(&w, o, 0);
	assert_holds(o->err, " 0 lost");
	say(&r, "end\n");
	finish_status(&r, &ended, 7);
}

TEST(of_a_process_that_runs)
{
	static const char *const programs[] = {"brood", "brood_static"};
	struct outcome o;

	for (size_t i = 0; i < COUNT(programs); i++) {
		watch_ready(&o, programs[i], LIST(VOUCHED));
		expect_hits(&o, WRITES);
		expect_own(&o, 1);
		assert_int_equal(count_events(&o, "armed", 0), THREADS + 1);
	}
	watch_ready(&o, "brood", LIST("--stop"));
	expect_own(&o, 1);
	assert_int_equal(count_events(&o, "armed", 0), THREADS + 1);
}

/* A thread of which all is known, since its storage is. */
TEST(with_exact_values)
{
	struct outcome o;
	size_t i;
	json_t *hit;

	watch_ready(&o, "brood", LIST("--user-only"));
	each_hit(&o, i, hit) {
		assert_string_equal(text_of(json_object_get(hit, "insn"),
		    "confidence"), "exact");
		assert_string_not_equal(text_of(hit, "value_source"), "later");
	}
}

/* Each --each is of all threads together. */
TEST(until_there_were_enough)
{
	struct outcome o;

	watch_brood(&o, "brood", NULL, LIST("-n", "9"));
	assert_int_equal(count_of(&o, "hit"), 9);
	watch_brood(&o, "brood", NULL, LIST("--if", "new > 100"));
	assert_int_equal(count_of(&o, "hit"), 2 * (THREADS - 10) + 1);
}

/* Its threads go on without watchctl, those too that are just made. */
TEST(survives_watchctl)
{
	char line[8192], pid[16];
	struct running r, w;
	struct outcome o;

	start(&r, LIST(victim("brood"), "500", "wait"));
	hear(&r, line, sizeof(line));
	(void)snprintf(pid, sizeof(pid), "%d", r.pid);
	watch_start(&w, LIST(watchctl(), "-w", "own", "-o", "json", "-p", pid));
	say(&r, "go\n");
	for (int i = 0; i < 40; i++)
		hear(&w, line, sizeof(line));
	assert_int_equal(kill(w.pid, SIGKILL), 0);
	(void)waitpid(w.pid, NULL, 0);
	finish_status(&r, &o, 7);
}

TEST(as_text)
{
	struct outcome o;

	run_status(&o, 7, LIST(watchctl(), "-w", "own", "--", victim("brood"),
	    "1"));
	if (strstr(o.err, "watching own (8 bytes, each thread's own) for "
	    "writes") == NULL || strstr(o.err, "armed") != NULL ||
	    strstr(o.err, "-> 11") == NULL)
		fail_msg("%s", o.err);
}

static void
expect_refused(const char *option, const char *value)
{
	struct outcome o;

	run_status(&o, 125, LIST(watchctl(), "-w", "own", option, value, "--",
	    victim("brood"), "1"));
	if (strstr(o.err, "'own' is thread-local") == NULL ||
	    strstr(o.err, " cannot watch all of them") == NULL ||
	    strchr(o.err, '\n') != o.err + strlen(o.err) - 1)
		fail_msg("%s: %s", option, o.err);
}

TEST(what_cannot_watch_them)
{
	expect_refused("--count", "--user-only");
	expect_refused("--delivery", "bpf");
	expect_refused("--with", "page-faults");
	expect_refused("--slots", "rotate");
}

RUN_LIVE_TESTS()
