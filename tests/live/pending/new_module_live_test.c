/*
 * new_module: SPECs of modules that are not mapped yet wait for dlopen(3)
 * (victim/opener).
 */
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "live.h"
#include "scratch.h"
#include "watching.h"

#define VOUCHED "--allow", "plug_prepare", "--allow", "plug_write",	\
	"--error-exitcode", "66"

static size_t
count_events(const struct outcome *o, const char *event)
{
	size_t i, n = 0;
	json_t *line;

	json_array_foreach(o->lines, i, line)
		n += strcmp(maybe_text(line, "event"), event) == 0 &&
		    strcmp(maybe_text(line, "module"), "plug") == 0 &&
		    json_object_get(line, "addr") != NULL &&
		    json_object_get(line, "gap_us") == NULL;
	return n;
}

static void
watch_opener(struct outcome *o, const char *const *options,
    const char *const *arguments)
{
	const char *argv[ARGS];
	size_t n = append(argv, 0, LIST(watchctl(), "-w", "plug!plug_state",
	    "-o", "json", "-O", "-"));

	n = append(argv, n, options);
	n = append(argv, n, LIST("--", victim("opener")));
	(void)append(argv, n, arguments);
	run(o, argv);
}

/* Each time the constructor's store, and the two that follow. */
static void
expect_stores(const struct outcome *o, size_t times)
{
	static const char *const values[] = {"0x2a", "0x2b", "0x2c"};
	size_t i, n = 0;
	json_t *hit;

	if (o->status != 7)
		fail_msg("status %d: %s", o->status, o->err);
	each_hit(o, i, hit) {
		assert_int_equal(number_of(hit, "watch"), 1);
		assert_string_equal(text_of(hit, "new"), values[n % 3]);
		expect_function(hit, 0, n % 3 == 0 ? "plug_prepare" :
		    "plug_write");
		n++;
	}
	assert_int_equal(n, 3 * times);
	assert_int_equal(count_events(o, "armed"), times);
	assert_int_equal(count_events(o, "disarmed"), times);
	assert_holds(o->err, " 0 lost");
}

TEST(before_its_constructor)
{
	struct outcome o;

	watch_opener(&o, LIST(VOUCHED), LIST("0", victim("plug")));
	expect_stores(&o, 1);
}

TEST(in_any_thread_and_each_time)
{
	struct outcome o;

	watch_opener(&o, LIST(VOUCHED), LIST("3", victim("plug")));
	expect_stores(&o, 3);
	/* the first one was armed each time: so many did not run */
	if (strstr(o.err, "s that the threads ran") == NULL)
		fail_msg("threads are counted twice: %s", o.err);
}

/* It is made under watch, and ends when nothing is watched. */
TEST(with_a_thread_that_outlives_it)
{
	struct outcome o;

	watch_opener(&o, LIST(VOUCHED), LIST("0", victim("plug"), "outlive"));
	if (o.status != 7)
		fail_msg("status %d: %s", o.status, o.err);
	assert_int_equal(count_of(&o, "hit"), 4);
}

TEST(at_another_address)
{
	const char *first = NULL;
	struct outcome o;
	size_t i, others = 0;
	json_t *hit;

	watch_opener(&o, LIST(VOUCHED), LIST("2", victim("plug"), "move"));
	expect_stores(&o, 2);
	each_hit(&o, i, hit) {
		if (first == NULL)
			first = text_of(hit, "addr");
		others += strcmp(text_of(hit, "addr"), first) != 0;
	}
	assert_int_equal(others, 3);
}

/* --- with stops --- */

TEST(with_stops_before_its_constructor)
{
	struct outcome o;
	size_t i;
	json_t *hit;

	watch_opener(&o, LIST("--stop", VOUCHED), LIST("0", victim("plug")));
	expect_stores(&o, 1);
	assert_string_equal(text_of(hit_at(&o, 0), "old"), "0x0");
	each_hit(&o, i, hit)
		assert_string_equal(text_of(hit, "value_source"), "stop");
}

TEST(with_stops_in_any_thread_and_each_time)
{
	struct outcome o;

	watch_opener(&o, LIST("--stop", VOUCHED), LIST("5", victim("plug")));
	expect_stores(&o, 5);
	watch_opener(&o, LIST("--stop", VOUCHED), LIST("2", victim("plug"),
	    "move"));
	expect_stores(&o, 2);
}

/* Beside what is there, which is watched before any constructor runs. */
TEST(with_stops_beside_another)
{
	struct outcome o;
	size_t i, n = 0;
	json_t *hit;

	watch_opener(&o, LIST("--stop", "-x", "main"), LIST("1",
	    victim("plug")));
	if (o.status != 7)
		fail_msg("status %d: %s", o.status, o.err);
	each_hit(&o, i, hit)
		n += number_of(hit, "watch") == 2;
	assert_int_equal(n, 1);
	assert_int_equal(count_of(&o, "hit"), 4);
	assert_int_equal(count_events(&o, "armed"), 1);
}

TEST(with_stops_in_a_child_it_is_doubted)
{
	struct outcome o;

	watch_opener(&o, LIST("-f", "--stop", VOUCHED), LIST("0",
	    victim("plug"), "fork"));
	if (o.status != 120 || strstr(o.err, "opened or closed a module where "
	    "it is not watched") == NULL)
		fail_msg("status %d: %s", o.status, o.err);
}

TEST(with_stops_a_python_extension)
{
	struct outcome o;

	run_status(&o, 3, LIST(watchctl(), "-x", "_bz2!PyInit__bz2", "--stop",
	    "-o", "json", "-O", "-", "--", "/usr/bin/python3", "-I", "-S", "-c",
	    "import bz2, os; os._exit(3)"));
	assert_int_equal(count_of(&o, "hit"), 1);
	expect_function(hit_at(&o, 0), 0, "PyInit__bz2");
}

/* --- with rings again --- */

static void
expect_in_shell(const char *option)
{
	struct outcome o;

	run(&o, LIST(watchctl(), "-w", "plug!plug_state", "-o", "json", "-O",
	    "-", "-f", "--if-missing", "skip", VOUCHED, option, "--",
	    "/bin/sh", "-c", "/bin/true; \"$0\" 2 \"$1\"; exit 7",
	    victim("opener"), victim("plug")));
	expect_stores(&o, 2);
}

TEST(in_a_program_that_a_shell_executes)
{
	expect_in_shell("--user-only");
	expect_in_shell("--stop");
}

/* What is there is watched before constructors, whatever else is waited for:
   one of the C library's sets this. */
TEST(beside_what_a_constructor_writes)
{
	static const char *const options[] = {"--user-only", "--stop"};
	struct outcome o;

	for (size_t i = 0; i < COUNT(options); i++) {
		run(&o, LIST(watchctl(), "-w", "nothing!word", "-w",
		    "program_invocation_short_name:8", options[i], "-o",
		    "json", "-O", "-", "--", "/bin/true"));
		if (count_of(&o, "hit") == 0)
			fail_msg("%s: %s", options[i], o.err);
	}
}

/* Where it is not watched.  What else a child opens is of no interest. */
TEST(in_a_child_that_executes_nothing_it_is_doubted)
{
	static const char *const ways[] = {
		"fork", "fork-twice", "fork-twice", "fork-twice", "fork-twice",
	};
	struct outcome o;

	for (size_t i = 0; i < COUNT(ways); i++) {
		watch_opener(&o, LIST("-f", VOUCHED), LIST("0",
		    victim("plug"), ways[i]));
		if (o.status != 120 || count_of(&o, "hit") != 3 ||
		    strstr(o.err, "opened or closed a module where it is not "
		    "watched") == NULL)
			fail_msg("%s: status %d: %s", ways[i], o.status,
			    o.err);
	}
	watch_opener(&o, LIST("-f", VOUCHED), LIST("1", victim("plug"),
	    "fork-other"));
	expect_stores(&o, 1);
}

/* Nobody prepared it for this; its file is named as Python names it. */
TEST(a_python_extension)
{
	struct outcome o;

	run_status(&o, 3, LIST(watchctl(), "-x", "_bz2!PyInit__bz2", "-o",
	    "json", "-O", "-", "--", "/usr/bin/python3", "-I", "-S", "-c",
	    "import bz2, os; os._exit(3)"));
	assert_int_equal(count_of(&o, "hit"), 1);
	expect_function(hit_at(&o, 0), 0, "PyInit__bz2");
}

static void
expect_doubt(const char *spec, const char *why)
{
	struct outcome o;

	run_status(&o, 120, LIST(watchctl(), "-w", spec, VOUCHED, "--",
	    victim("opener"), "0", victim("plug")));
	assert_holds(o.err, why);
}

TEST(a_module_that_is_never_mapped)
{
	expect_doubt("nothing!word", "nothing was ever watched");
}

TEST(a_static_program_has_no_loader)
{
	struct outcome o;

	run(&o, LIST(watchctl(), "-w", "plug!plug_state", "--",
	    victim("config_static")));
	assert_holds(o.err, "which is linked statically: no module");
}

TEST(from_inside_none_is_waited_for)
{
	struct outcome o;

	watch_opener(&o, LIST("--inside"), LIST("0", victim("plug")));
	assert_int_equal(o.status, 125);
	assert_holds(o.err, "'plug!plug_state': no such module is mapped, and "
	    "with --inside none is waited for: without it, watchctl waits");
}

TEST(what_the_command_must_have_itself)
{
	struct outcome o;

	run_status(&o, 125, LIST(watchctl(), "-w", "plug!plug_state", "-w",
	    "nosuch", "--", victim("opener"), "0", victim("plug")));
	assert_holds(o.err, "no symbol 'nosuch'");
	assert_string_equal(o.out, "");
}

TEST(a_module_without_it)
{
	expect_doubt("plug!nosuch", "no symbol 'nosuch' in plug");
}

/* It handles the signal from later on than it was chosen. */
static void
expect_no_call(void)
{
	struct running w;
	char line[8192];
	int armed = 0;

	start(&w, LIST(watchctl(), "-w", "plug!plug_state", "-o", "json", "-O",
	    "-", "--", victim("opener"), "0", victim("plug"), "urgent"));
	while (armed < 10) {
		hear(&w, line, sizeof(line));
		armed += strstr(line, "\"armed\"") != NULL;
	}
	assert_int_equal(kill(w.pid, SIGKILL), 0);
	do
		hear(&w, line, sizeof(line));
	while (strncmp(line, "urgent ", 7) != 0);
	assert_string_equal(line, "urgent 0");
	(void)waitpid(w.pid, NULL, 0);
}

TEST(its_handler_is_not_called)
{
	for (int i = 0; i < 3; i++)
		expect_no_call();
}

/* --- processes that run already --- */

/* One that has said that it is ready. */
static void
start_ready(struct running *r, char pid[16], const char *const argv[])
{
	char line[256];

	start(r, argv);
	hear(r, line, sizeof(line));
	assert_string_equal(line, "ready");
	(void)snprintf(pid, 16, "%d", r->pid);
}

static void
start_opener(struct running *r, char pid[16], const char *threads,
    const char *how)
{
	start_ready(r, pid, LIST(victim("opener"), threads, victim("plug"),
	    how));
}

/* Let it go on, to its end with this status. */
static void
let_go(struct running *r, int status)
{
	struct outcome o;

	say(r, "go\n");
	finish_status(r, &o, status);
}

static void
watch_ready(struct outcome *o, struct running *r, int status,
    const char *const argv[])
{
	struct running w;

	watch_start(&w, argv);
	let_go(r, status);
	finish(&w, o);
	if (o->status == 0)
		o->status = 7;	/* as of a command, for expect_stores */
}

/* An opener's stores to its module, in so many threads. */
static void
expect_opener(const char *threads, const char *how, unsigned n,
    const char *option)
{
	struct running r;
	struct outcome o;
	char pid[16];

	start_opener(&r, pid, threads, how);
	watch_ready(&o, &r, 7, LIST(watchctl(), "-w", "plug!plug_state", "-o",
	    "json", "-p", pid, VOUCHED, option));
	expect_stores(&o, n);
}

TEST(of_a_process_that_runs_in_all_its_threads)
{
	expect_opener("5", "wait", 5, NULL);
	expect_opener("5", "wait", 5, "--stop");
}

/* What it has mapped is watched from the beginning, and until it is closed. */
TEST(of_a_process_that_has_another_one)
{
	struct running r;
	struct outcome o;
	char pid[16];

	start_opener(&r, pid, "2", "wait-open");
	watch_ready(&o, &r, 7, LIST(watchctl(), "-w", "plug!plug_state", "-w",
	    "nothing!word", "-o", "json", "-p", pid, VOUCHED));
	assert_int_equal(count_of(&o, "hit"), 6);
	assert_int_equal(count_events(&o, "armed"), 2);
	assert_int_equal(count_events(&o, "disarmed"), 3);
}

TEST(of_two_processes)
{
	struct running r, other, w;
	struct outcome o;
	char pid[16], pid2[16], both[40];

	start_opener(&r, pid, "1", "wait");
	start_opener(&other, pid2, "2", "wait");
	(void)snprintf(both, sizeof(both), "%s,%s", pid, pid2);
	watch_start(&w, LIST(watchctl(), "-w", "plug!plug_state", "-o", "json",
	    "-p", both));
	let_go(&r, 7);
	let_go(&other, 7);
	finish(&w, &o);
	assert_int_equal(count_of(&o, "hit"), 9);
	assert_int_equal(count_events(&o, "armed"), 3);
}

TEST(of_a_process_that_executes_another_program)
{
	expect_opener("2", "execute", 2, NULL);
	expect_opener("2", "execute", 2, "--stop");
}

static bool
be_traced(int unused)
{
	(void)unused;
	return ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0;
}

/* It is stopped before its first instruction, and goes on when watchctl has
   most likely looked at it. */
TEST(of_a_process_whose_loader_has_not_begun)
{
	struct running r, w;
	struct outcome o;
	char pid[16], line[1024];

	start_prepared(&r, LIST(victim("opener"), "1", victim("plug"),
	    "wait"), be_traced, 0);
	assert_int_equal(waitpid(r.pid, NULL, 0), r.pid);
	assert_int_equal(ptrace(PTRACE_DETACH, r.pid, NULL, SIGSTOP), 0);
	(void)snprintf(pid, sizeof(pid), "%d", r.pid);
	start(&w, LIST(watchctl(), "-w", "nothing!word", "-p", pid));
	(void)usleep(300000);
	assert_int_equal(kill(r.pid, SIGCONT), 0);
	hear(&r, line, sizeof(line));
	assert_string_equal(line, "ready");
	hear(&w, line, sizeof(line));
	let_go(&r, 7);
	finish(&w, &o);
	if (o.status != 0)
		fail_msg("status %d: %s", o.status, o.err);
}

/* The time of -t is over when the report begins, at the earliest. */
TEST(for_a_short_time)
{
	struct outcome o;

	run_status(&o, 7, LIST(watchctl(), "-w", "optind:4", "-w",
	    "nothing!word", "-t", "0.001", "-O", "/dev/null", "--",
	    victim("opener"), "0", victim("plug")));
	if (strstr(o.err, "nothing was ever watched") != NULL)
		fail_msg("%s", o.err);
}

/* A variable of a library that an extension brings. */
TEST(of_a_running_python)
{
	struct running r;
	struct outcome o;
	char pid[16];

	start_ready(&r, pid, LIST("/usr/bin/python3", "-I", "-S", "-c",
	    "print('ready', flush=True); input(); import readline"));
	watch_ready(&o, &r, 0, LIST(watchctl(), "-w",
	    "libreadline!rl_readline_name", "-o", "json", "-p", pid));
	/* the loader relocates it, and the extension writes its own name */
	assert_int_equal(count_of(&o, "hit"), 2);
	expect_function(hit_at(&o, 1), 0, "PyInit_readline");
}

static void
expect_refused(const char *pid, const char *why, const char *const options[])
{
	const char *argv[ARGS];
	struct outcome o;
	size_t n = append(argv, 0, LIST(watchctl(), "-w", "plug!plug_state",
	    "-p", pid, "-t", "60"));

	(void)append(argv, n, options);
	run_status(&o, 125, argv);
	if (strstr(o.err, why) == NULL ||
	    strchr(o.err, '\n') != strrchr(o.err, '\n'))
		fail_msg("not '%s': %s", why, o.err);
}

TEST(what_a_running_process_cannot_wait_for)
{
	struct target t;
	struct running r;
	char pid[16];

	target_start(&t, LIST(victim("counter_static")));
	expect_refused(t.pid, "its program is static", LIST("-n", "1"));
	expect_refused(t.pid, "its program is static", LIST("--stop"));
	target_end(&t, 7);
	start_opener(&r, pid, "1", "wait");
	expect_refused(pid, " slot", LIST("-w", "library:8", "-w",
	    "move:4", "-w", "urgent:4", "-w", "turn:8"));
	expect_refused(pid, "no symbol 'nosuch'", LIST("-w", "nosuch"));
	expect_refused(pid, " slots", LIST("--stop", "-w", "library:8", "-w",
	    "move:4", "-w", "urgent:4", "-w", "turn:8"));
	expect_refused(pid, "--count cannot wait for it", LIST("--count"));
	let_go(&r, 7);
}

TEST(a_module_that_a_running_process_never_maps)
{
	struct running r;
	struct outcome o;
	char pid[16];

	start_opener(&r, pid, "1", "wait");
	watch_ready(&o, &r, 7, LIST(watchctl(), "-w", "nothing!word", "-o",
	    "json", "-p", pid, VOUCHED));
	assert_int_equal(o.status, 120);
	assert_holds(o.err, "no module was mapped that has what is "
	    "to be watched: nothing was ever watched");
}

/* It goes on without watchctl. */
TEST(a_running_process_survives_watchctl)
{
	struct running r, w;
	struct outcome o;
	char pid[16], line[8192];

	start_opener(&r, pid, "8", "wait");
	watch_start(&w, LIST(watchctl(), "-w", "plug!plug_state", "-o",
	    "json", "-p", pid));
	say(&r, "go\n");
	hear(&w, line, sizeof(line));
	assert_int_equal(kill(w.pid, SIGKILL), 0);
	(void)waitpid(w.pid, NULL, 0);
	finish_status(&r, &o, 7);
}

RUN_LIVE_TESTS()
