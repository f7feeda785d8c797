/*
 * policy: which writers of real programs are allowed and which are stray, and
 * the exit status that test suites rely on.
 */
#include "test.h"

#include <signal.h>

#include "live.h"
#include "scratch.h"
#include "watching.h"

enum { STRAY = 66 };

/* --- runs --- */

/* Run a victim as a command, watched with these options. */
static void
run_command(struct outcome *o, const char *const *options,
    const char *const *command)
{
	const char *path = scratch_path("report"), *argv[ARGS];
	size_t n = append(argv, 0, LIST(watchctl(), "-o", "json", "-O", path));

	n = append(argv, n, options);
	n = append(argv, n, LIST("--"));
	(void)append(argv, n, command);
	run(o, argv);
	outcome_take(o, path);
}

/* Attach to a victim, let it act and end. */
static void
run_attached(struct outcome *o, const char *const *options,
    const char *const *command)
{
	const char *argv[ARGS];
	struct target t;
	struct running w;
	size_t n = append(argv, 0, LIST(watchctl(), "-o", "json", "-p", t.pid));

	(void)append(argv, n, options);
	target_start(&t, command);
	watch_start(&w, argv);
	(void)target_act(&t);
	target_end(&t, 7);
	finish(&w, o);
}

#define CONFIG(...) LIST(victim("config"), __VA_ARGS__)

/* --- what is expected --- */

/* The finding about a function, and how many hits it has; 0: at least one. */
static const json_t *
expect_finding(const struct outcome *o, const char *function, json_int_t count)
{
	const json_t *found = NULL;
	size_t i;
	json_t *line;

	json_array_foreach(o->lines, i, line)
		if (strcmp(text_of(line, "type"), "finding") == 0 &&
		    strcmp(maybe_text(line, "function"), function) == 0)
			found = line;
	if (found == NULL)
		fail_msg("no finding about %s: %s%s", function, report_of(o),
		    o->err);
	assert_true(json_is_true(json_object_get(found, "stray")));
	if (count > 0)
		assert_int_equal(number_of(found, "count"), count);
	return found;
}

static bool
is_stray(const json_t *hit)
{
	const json_t *stray = json_object_get(hit, "stray");

	assert_true(stray == NULL || json_is_true(stray));
	return stray != NULL;
}

/* The account of findings, stray hits and the end line agrees, and the findings
   are so many.  Result: how many hits are stray. */
static json_int_t
expect_findings(const struct outcome *o, size_t findings)
{
	const json_t *end = account_of(o);
	json_int_t stray = 0, found = 0;
	size_t i;
	json_t *line;

	json_array_foreach(o->lines, i, line) {
		if (is_hit(line))
			stray += is_stray(line);
		else if (strcmp(text_of(line, "type"), "finding") == 0)
			found += number_of(line, "count");
	}
	if (count_of(o, "finding") != findings)
		fail_msg("not %zu findings: %s%s", findings, report_of(o),
		    o->err);
	assert_int_equal(found, stray);
	assert_int_equal(number_of(end, "stray"), stray);
	return stray;
}

static void
expect_status(const struct outcome *o, int status)
{
	if (o->status != status)
		fail_msg("status %d, not %d: %s%s", o->status, status,
		    report_of(o), o->err);
	assert_int_equal(number_of(account_of(o), "status"), status);
}

/* One act of the config victim, as a command and attached to: what is allowed,
   and whom each of its findings blames (NULL: it has none). */
static void
check_act(const char *act, const char *pattern, const char *culprit,
    size_t findings)
{
	const char *const *options = LIST("-w", "config:8",
	    "--error-exitcode", "66", "--allow", pattern);

	for (int attached = 0; attached < 2; attached++) {
		struct outcome o;

		if (attached)
			run_attached(&o, options, CONFIG(act));
		else
			run_command(&o, options, CONFIG(act));
		assert_true(count_of(&o, "hit") > 0);
		if (culprit == NULL) {
			expect_status(&o, attached ? 0 : 7);
			assert_int_equal(expect_findings(&o, 0), 0);
			assert_holds(o.err, " lost, 0 stray\n");
		} else {
			expect_status(&o, STRAY);
			assert_int_equal(expect_findings(&o, findings),
			    count_of(&o, "hit"));
			(void)expect_finding(&o, culprit, 0);
			assert_holds(o.err, findings == 1 ?
			    " stray by 1 writer\n" : " stray by 3 writers\n");
		}
	}
}

TEST(who_may_and_who_may_not)
{
	static const struct {
		const char *act, *pattern, *culprit;
		size_t findings;
	} cases[] = {
		/* a store of its own, by memcpy and by strcpy */
		{"load", "config_load", NULL},
		{"load", "config_l*", NULL},
		{"load", "victim/config.c", NULL},
		{"load", "other.c", "config_load", 3},
		/* of a function that is inlined in its caller */
		{"update", "config_set", NULL},
		{"update", "update", NULL},
		{"update", "config_load", "config_set", 1},
		/* the kernel's, for its caller's caller */
		{"fill", "config_read", NULL},
		{"fill", "fill", NULL},
		{"fill", "config_load", "config_read", 1},
		/* another thread's, whose maker is not on its stack */
		{"thread", "in_thread", NULL},
		{"thread", "thread", "scribble", 1},
		/* sprintf's, by several functions of the C library */
		{"print", "print", NULL},
		{"print", "config_load", "print", 1},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		check_act(cases[i].act, cases[i].pattern, cases[i].culprit,
		    cases[i].findings);
	}
}

/* Writers in loops, one of them reached by two ways, among those who may. */
TEST(one_finding_for_each_writer)
{
	struct outcome o;
	const json_t *scribble, *smudge, *smear, *hit;
	json_t *line;
	size_t i, memcpys = 0;

	run_command(&o, LIST("-w", "config:8", "--error-exitcode", "66",
	    "--allow", "config_*"), CONFIG("load", "scribbles", "smudge",
	    "load", "smear", "scribbles", "read"));
	expect_status(&o, STRAY);
	(void)expect_findings(&o, 3);
	scribble = expect_finding(&o, "scribble", 10);
	smudge = expect_finding(&o, "smudge", 0);
	smear = expect_finding(&o, "smear", 0);
	/* the same memcpy, in the same way, four times and once */
	assert_int_equal(number_of(smudge, "count"),
	    4 * number_of(smear, "count"));
	assert_int_equal(number_of(scribble, "watch"), 1);
	assert_string_equal(text_of(scribble, "access"), "write");
	assert_string_equal(text_of(scribble, "module"), "config");
	assert_holds(text_of(scribble, "file"), "config.c");
	assert_true(number_of(scribble, "line") > 0);
	/* the first hit of each is the one that it names */
	json_array_foreach(o.lines, i, line) {
		if (!is_hit(line) || !is_stray(line))
			continue;
		memcpys += strstr(maybe_text(frame_of(line, 0), "function"),
		    "mem") != NULL;
		hit = number_of(line, "seq") == number_of(scribble,
		    "first_seq") ? scribble : number_of(line, "seq") ==
		    number_of(smudge, "first_seq") ? smudge : NULL;
		if (hit != NULL)
			assert_string_equal(text_of(line, "stack"),
			    text_of(hit, "stack"));
	}
	assert_int_equal(memcpys, number_of(smudge, "count") +
	    number_of(smear, "count"));
}

/* Without --allow nothing is allowed; without --error-exitcode it is only
   reported. */
TEST(either_option_alone)
{
	struct outcome o;

	run_command(&o, LIST("-w", "config:8", "--error-exitcode", "1"),
	    CONFIG("update"));
	expect_status(&o, 1);
	assert_int_equal(expect_findings(&o, 1), 1);
	run_command(&o, LIST("-w", "config:8", "--allow", "config_load"),
	    CONFIG("update"));
	expect_status(&o, 7);
	assert_int_equal(expect_findings(&o, 1), 1);
	run_command(&o, LIST("-w", "config:8"), CONFIG("update"));
	expect_status(&o, 7);
	assert_null(json_object_get(first_of(&o, "end"), "stray"));
	assert_false(is_stray(first_of(&o, "hit")));
}

/* Pointers that are relocated before the program begins have no writer. */
TEST(relocations_are_not_stray)
{
	static const char *const victims[] = {"config", "config_static"};

	for (size_t i = 0; i < 2; i++) {
		struct outcome o;

		run_command(&o, LIST("-w", "motto", "--error-exitcode",
		    "66"), LIST(victim(victims[i])));
		expect_status(&o, 7);
		expect_hits(&o, 1);
		(void)expect_findings(&o, 0);
	}
}

/* A C library inside the program is not to be blamed either. */
TEST(a_static_program)
{
	struct outcome o;

	run_command(&o, LIST("-w", "config:8", "--error-exitcode", "66",
	    "--allow", "config_load"), LIST(victim("config_static"), "load",
	    "smudge", "smear", "print", "fill"));
	expect_status(&o, STRAY);
	(void)expect_findings(&o, 4);
	(void)expect_finding(&o, "smudge", 0);
	(void)expect_finding(&o, "smear", 0);
	(void)expect_finding(&o, "print", 0);
	(void)expect_finding(&o, "config_read", 1);
}

/* Run the ledger under these patterns. */
static void
run_ledger(struct outcome *o, const char *const *allow)
{
	const char *path = scratch_path("report"), *argv[ARGS];
	struct running w;
	size_t n = append(argv, 0, LIST(watchctl(), "-w", "balance", "-o",
	    "json", "-O", path, "--error-exitcode", "66"));

	for (; *allow != NULL; allow++)
		n = append(argv, n, LIST("--allow", *allow));
	(void)append(argv, n, LIST("--", victim("ledger")));
	start(&w, argv);
	say(&w, "go\n");
	finish(&w, o);
	outcome_take(o, path);
}

/* C++, by each form of a name.  All writes are of a template that is inlined;
   who called it tells them apart. */
TEST(names_of_cpp)
{
#define DEPOSIT "ledger::Account::deposit"
#define WITHDRAW "ledger::Account::withdraw<double>"
#define GONE "ledger::Account::~Account"
#define LAMBDA "ledger::attempt::operator()"
	static const struct {
		const char *allow[3];
		const char *stray[5];	/* the template's callers */
	} cases[] = {
		{{"ledger::add<*>"}, {NULL}},
		{{"ledger.cc"}, {NULL}},
		{{"_ZN6ledger7attemptEi"}, {NULL}},
		{{"ledger::attempt(int)"}, {NULL}},
		{{"ledger::attempt(long)"}, {DEPOSIT, WITHDRAW, GONE, LAMBDA}},
		{{"attempt"}, {DEPOSIT, WITHDRAW, GONE, LAMBDA}},
		{{"ledger::Account::deposit(long)", "*ledger::*withdraw<*>(*)"},
		    {GONE, LAMBDA}},
		{{"ledger::Account::~Account", "ledger::attempt::*"},
		    {DEPOSIT, WITHDRAW}},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct outcome o;
		json_t *line;
		size_t k;

		run_ledger(&o, cases[i].allow);
		expect_status(&o, cases[i].stray[0] == NULL ? 3 : STRAY);
		each_hit(&o, k, line) {
			const char *const *stray = cases[i].stray;
			const char *caller;

			caller = text_of(frame_of(line, 1), "function");
			while (*stray != NULL && strcmp(*stray, caller) != 0)
				stray++;
			if (is_stray(line) != (*stray != NULL))
				fail_msg("%s: %s", cases[i].allow[0], caller);
		}
	}
}

/* A caller that is allowed is found by a deeper copy of the stack than is
   usual; where that is not deep enough nobody is blamed. */
TEST(incomplete_backtraces)
{
	static const struct {
		const char *option;
		int status;
	} cases[] = {{NULL, 7}, {"--stack=16384", 7}, {"--stack=4096", 120}};

	for (size_t i = 0; i < 3; i++) {
		struct outcome o;

		run_command(&o, LIST("-w", "config:8", "--allow",
		    "config_begin", "--error-exitcode", "66",
		    cases[i].option), CONFIG("deep"));
		expect_status(&o, cases[i].status);
		if (cases[i].status == 120) {
			assert_true(json_is_true(json_object_get(
			    first_of(&o, "finding"), "unjudged")));
			assert_true(json_is_true(json_object_get(
			    first_of(&o, "hit"), "unjudged")));
			assert_holds(o.err, " 0 stray, 1 not " "judged");
			assert_holds(o.err, "1 hit cannot be judged: "
			    "a caller that is allowed may be missing in its "
			    "backtrace");
		}
	}
}

/* --- exit statuses --- */

/* Run watchctl: its exit status, and some of what it says on stderr. */
static void
expect_run(const char *const *argv, int status, const char *words)
{
	struct outcome o;

	run(&o, argv);
	if (o.status != status || strstr(o.err, words) == NULL)
		fail_msg("%s %s ...: status %d, not %d: %s", argv[1], argv[2],
		    o.status, status, o.err);
}

TEST(statuses_of_commands)
{
#define W watchctl(), "-w", "config:8", "--error-exitcode", "66"
	expect_run(LIST(W, "--", victim("config"), "scribble"), 66,
	    "\nstray: 1 writer\n  1x  scribble  ");
	expect_run(LIST(W, "--", victim("config")), 7, ", 0 stray\n");
	expect_run(LIST(watchctl(), "-w", "environ", "--allow", "*",
	    "--error-exitcode", "66", "--", "/bin/sh", "-c", "kill -TERM $$"),
	    128 + SIGTERM, ", 0 stray\n");
	/* another program, which nobody watched; a stray access counts more */
	expect_run(LIST(W, "--", victim("config"), "become_another"), 120,
	    "executed another program, which was not watched");
	expect_run(LIST(W, "--", victim("config"), "update",
	    "become_another"), 66, "1 stray by 1 writer\n");
	expect_run(LIST(watchctl(), "-w", "config:8", "--allow", "x", "--",
	    victim("config"), "become_another"), 0, ", 0 stray\n");
	/* one hit was wanted */
	expect_run(LIST(W, "--allow", "update", "-n", "1", "--",
	    victim("config"), "update", "scribble"), 7, ", 0 stray\n");
	/* counted only */
	expect_run(LIST(W, "--count", "--", victim("config"), "scribbles"),
	    66, "5 hits, 5 reported, 0 lost, 5 stray\n");
	expect_run(LIST(W, "--count", "--", victim("config")), 7,
	    ", 0 stray\n");
	/* nothing ran */
	expect_run(LIST(W, "--", "/nonexistent"), 127, "no such command");
	expect_run(LIST(W, "--", "/etc/passwd"), 126, "cannot be executed");
	expect_run(LIST(watchctl(), "-w", "nowhere", "--error-exitcode",
	    "66", "--", victim("config")), 125, "no symbol 'nowhere'");
	expect_run(LIST(W, "-O", "/dev/full", "-o", "json", "--",
	    victim("config"), "scribble"), 125, "report is incomplete");
#undef W
}

/* A program that lacks a library ends in the dynamic loader, before any of its
   symbols could be found. */
TEST(a_command_that_was_never_watched)
{
	const char *lacking;

	scratch_run("echo 'int gone(void); int main(void) { return gone(); }'"
	    " > main.c && echo 'int gone(void) { return 0; }' > gone.c &&"
	    " %s -shared -fPIC -o libgone.so gone.c &&"
	    " %s -o lacking main.c -L. -lgone && rm libgone.so",
	    getenv("CC"), getenv("CC"));
	lacking = scratch_path("lacking");
	expect_run(LIST(watchctl(), "-w", "nowhere", "--error-exitcode",
	    "66", "--", lacking), 120, "ended before the watch");
	expect_run(LIST(watchctl(), "-w", "nowhere", "--allow", "x", "--",
	    lacking), 125, "ended before the watch");
}

/* Hits that were lost may have been stray. */
TEST(lost_hits_are_not_vouched_for)
{
	struct target t;
	struct running w;
	struct outcome o;

	target_start(&t, LIST(victim("counter"), "1", "40000"));
	watch_start(&w, LIST(watchctl(), "-w", "counter", "-o", "json",
	    "--stack", "32768", "--allow", "bump", "--error-exitcode", "66",
	    "-p", t.pid));
	(void)kill(w.pid, SIGSTOP);
	say(&t.run, "go\nend\n");
	finish(&t.run, &o);
	(void)kill(w.pid, SIGCONT);
	finish(&w, &o);
	assert_true(number_of(account_of(&o), "lost") > 0);
	expect_status(&o, 120);
	assert_holds(o.err, "exit status 120: nothing stray was " "seen, but ");
	assert_holds(o.err, " hits were lost\n");
}

/* Who cannot be held may have had a thread that was missed. */
TEST(a_traced_process_is_not_vouched_for)
{
	struct target t;
	struct running g, w;
	struct outcome o;

	target_start(&t, CONFIG("load"));
	trace_by_gdb(&g, &t);
	watch_start(&w, LIST(watchctl(), "-w", "config:8", "-o", "json",
	    "--allow", "config_load", "--error-exitcode", "66", "-p", t.pid));
	(void)target_act(&t);
	target_end(&t, 7);
	finish(&w, &o);
	expect_status(&o, 120);
	assert_holds(o.err, "a thread may have been missed");
	finish(&g, &o);
}

/* A watch that ends as it was told to is whole. */
TEST(an_end_that_was_asked_for)
{
	struct target t;
	struct running w;
	struct outcome o;

	target_start(&t, CONFIG("load"));
	run(&o, LIST(watchctl(), "-w", "config:8", "-o", "json", "-t",
	    "0.05", "--error-exitcode", "66", "-p", t.pid));
	expect_status(&o, 0);
	watch_start(&w, LIST(watchctl(), "-w", "config:8", "-o", "json",
	    "--error-exitcode", "66", "-p", t.pid));
	(void)kill(w.pid, SIGINT);
	finish(&w, &o);
	expect_status(&o, 0);
	target_end(&t, 7);
}

/* A recording is judged as the run would have been. */
TEST(recordings_are_judged)
{
	const char *data = scratch_path("perf.data");
	struct outcome o;

	run_status(&o, 7, LIST(watchctl(), "-w", "config:8", "-o", "perf", "-O",
	    data, "--", victim("config"), "load", "scribbles"));
	run(&o, LIST(watchctl(), "report", "-o", "json", "--allow",
	    "config_load", "--error-exitcode", "66", data));
	expect_status(&o, STRAY);
	(void)expect_findings(&o, 1);
	(void)expect_finding(&o, "scribble", 5);
	run(&o, LIST(watchctl(), "report", "-o", "json", "--allow",
	    "config.c", "--error-exitcode", "66", data));
	expect_status(&o, 0);
	/* of one that was cut it is not known what is missing */
	scratch_run("head -c $(($(stat -c %%s perf.data) / 2)) perf.data "
	    "> cut");
	expect_run(LIST(watchctl(), "report", "--allow", "config.c",
	    "--error-exitcode", "66", scratch_path("cut")), 120,
	    "nothing stray was seen, but the recording is damaged\n");
}

/* A report of another day is there until the watch begins. */
TEST(a_report_is_kept_until_there_is_another)
{
	const char *path = scratch_path("old");
	char *text;

	scratch_write("old", "a report of another day\n");
	expect_run(LIST(watchctl(), "-w", "nowhere", "-O", path, "--",
	    victim("config")), 125, "no symbol 'nowhere'");
	expect_run(LIST(watchctl(), "-w", "nowhere", "-o", "perf", "-O",
	    path, "--", victim("config")), 125, "no symbol 'nowhere'");
	text = scratch_read("old", NULL);
	assert_string_equal(text, "a report of another day\n");
	expect_run(LIST(watchctl(), "-w", "config:8", "-o", "folded", "-O",
	    path, "--", victim("config")), 7, "0 hits, ");
	text = scratch_read("old", NULL);
	assert_string_equal(text, "");
}

RUN_LIVE_TESTS(.before_all = scratch_make, .after_all = scratch_remove)
