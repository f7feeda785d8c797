/*
 * condition: --if, --every, --max-rate and --once choose among real hits, in
 * each way of watching and in a recording, and the account has what they left
 * out.
 */
#include "test.h"

#include <string.h>

#include "live.h"
#include "scratch.h"
#include "watching.h"

/* The victim's writes of each variable, in the order of their values. */
enum { WRITES = 200, VALUES = 10, LEAST = -5, EACH = WRITES / VALUES };

static const char *const modes[] = {"-n1000000", "--stop", "--inside"};

static json_int_t
number_or_0(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

/* Watch a variable of the victim, with these options; the report is taken. */
static void
watch(struct outcome *o, const char *variable, const char *const *options)
{
	static const char *argv[ARGS];
	struct running w;
	size_t n = append(argv, 0, LIST(watchctl(), "-w", variable, "-o",
	    "json", "-O", scratch_path("report")));

	n = append(argv, n, options);
	(void)append(argv, n, LIST("--", victim("signs")));
	start(&w, argv);
	say(&w, "go\nend\n");
	finish(&w, o);
	outcome_take(o, scratch_path("report"));
}

/* The whole account, and what of it was reported. */
static void
expect_account(const struct outcome *o, json_int_t reported,
    json_int_t rejected, json_int_t skipped)
{
	const json_t *end = first_of(o, "end");

	if (end == NULL)
		fail_msg("no account: %s", o->err);
	assert_int_equal(number_of(end, "reported"), reported);
	assert_int_equal(count_of(o, "hit"), reported);
	assert_int_equal(number_or_0(end, "rejected"), rejected);
	assert_int_equal(number_or_0(end, "skipped"), skipped);
	assert_int_equal(number_of(end, "lost"), 0);
	assert_int_equal(number_of(end, "hits"), reported + rejected +
	    skipped + number_or_0(end, "unchanged"));
}

/* How many hits it is not known of. */
static json_int_t
unknown(const struct outcome *o)
{
	json_int_t n = 0;
	json_t *hit;
	size_t i;

	each_hit(o, i, hit)
		n += strcmp(maybe_text(hit, "if"), "unknown") == 0;
	return n;
}

/* Conditions whose truth the victim's values say.  What is stored from a vector
   register is known only where the thread is stopped. */
static const struct {
	const char *variable, *condition;
	int reported;
	bool stop;
} cases[] = {
	{"balance", "new < 0", WRITES / 2},
	{"total", "new < 0", 0},
	{"total", "(int)new < 0", WRITES / 2},
	{"tiny", "new == -5 || new == 4", 2 * EACH},
	{"wide", "new > 0xffffffff", 0},
	{"wide", "new > 0xffffffffu && new == -1", 0},
	{"level", "new == 0.5 || new < -2", 2 * EACH, true},
	{"ratio", "new * 4 == 3", EACH, true},
	{"state", "new == BUSY || new & BROKEN", 2 * EACH},
	{"balance", "count > 10 && count <= 13", 3},
	{"balance", "in(\"store\") && caller(\"settle\")", WRITES / 2},
	{"balance", "in(\"settle\") || in(\"stor\")", 0},
	{"balance", "caller(\"settle\") && new < 0 && tid == pid", 2 * EACH},
	{"balance", "comm != \"signs\" || origin == \"kernel\"", 0},
	{"balance", "access == \"write\" && cpu >= 0", WRITES},
	{"state", "changed && new", 4 * EACH, true},
	{"balance", "tid == 1 && caller(\"main\")", 0},
};

TEST(the_same_verdicts_in_each_way_of_watching)
{
	for (size_t m = 0; m < COUNT(modes); m++) {
		for (size_t i = m % 2; i < COUNT(cases); i += 2) {
			struct outcome o;

			watch(&o, cases[i].variable, LIST(cases[i].stop ?
			    "--stop" : modes[m], "--if", cases[i].condition));
			assert_int_equal(o.status, 7);
			assert_int_equal(unknown(&o), 0);
			expect_account(&o, cases[i].reported,
			    WRITES - cases[i].reported, 0);
		}
	}
}

TEST(and_of_a_recording)
{
	static const char *const variables[] = {
		"balance", "total", "tiny", "wide", "level", "state",
	};
	struct running w;
	struct outcome o;

	for (size_t v = 0; v < COUNT(variables); v++) {
		start(&w, LIST(watchctl(), strcmp(variables[v], "level") == 0 ?
		    "--stop" : "-n1000000", "-w", variables[v], "-o", "perf",
		    "-O", scratch_path("data"), "--", victim("signs")));
		say(&w, "go\nend\n");
		finish_status(&w, &o, 7);
		for (size_t i = 0; i < COUNT(cases); i++) {
			if (strcmp(cases[i].variable, variables[v]) != 0)
				continue;
			run_status(&o, 0, LIST(watchctl(), "report", "-o",
			    "json", "--if", cases[i].condition,
			    scratch_path("data")));
			assert_int_equal(unknown(&o), 0);
			expect_account(&o, cases[i].reported,
			    WRITES - cases[i].reported, 0);
		}
	}
}

/* What the kernel wrote is read later, unless the thread is stopped. */
TEST(what_cannot_be_judged_is_reported)
{
	static const struct {
		const char *mode, *condition;
		json_int_t reported, unknown;
	} all[] = {
		{"-n9", "new == 3", 1, 1},
		{"-n9", "new == 3 && origin == \"user\"", 0, 0},
		{"-n9", "new == 3 || origin == \"kernel\"", 1, 0},
		{"--stop", "new == 3", 0, 0},
		{"--stop", "new == 0x3837363534333231", 1, 0},
	};

	for (size_t i = 0; i < COUNT(all); i++) {
		struct running w;
		struct outcome o;

		start(&w, LIST(watchctl(), all[i].mode, "-w", "filled", "-o",
		    "json", "-O", scratch_path("report"), "--if",
		    all[i].condition, "--", victim("counter"), "1", "1"));
		say(&w, "go\nend\n");
		finish(&w, &o);
		outcome_take(&o, scratch_path("report"));
		expect_account(&o, all[i].reported, 1 - all[i].reported, 0);
		assert_int_equal(unknown(&o), all[i].unknown);
	}
}

TEST(every)
{
	for (size_t m = 0; m < COUNT(modes); m++) {
		struct outcome o;

		watch(&o, "balance", LIST(modes[m], "--every", "7"));
		expect_account(&o, WRITES / 7, 0, WRITES - WRITES / 7);
	}
}

/* How many hits there are of a watch. */
static json_int_t
hits_of(const struct outcome *o, json_int_t watch)
{
	json_int_t n = 0;
	json_t *hit;
	size_t i;

	each_hit(o, i, hit)
		n += number_of(hit, "watch") == watch;
	return n;
}

/* Behind the last hit of a watch is a line, and no more of its hits. */
static void
expect_disarmed(const struct outcome *o, json_int_t watch, json_int_t hits)
{
	json_int_t seen = 0;
	bool off = false;
	json_t *line;
	size_t i;

	json_array_foreach(o->lines, i, line) {
		const char *type = text_of(line, "type");

		if (strcmp(type, "watch") == 0 &&
		    number_of(line, "id") == watch) {
			assert_string_equal(text_of(line, "event"),
			    "disarmed");
			assert_int_equal(seen, hits);
			assert_false(off);
			off = true;
		}
		if (strcmp(type, "hit") != 0 ||
		    number_of(line, "watch") != watch)
			continue;
		assert_false(off);
		seen++;
	}
	assert_true(off);
}

TEST(each_watch_is_disarmed_by_itself)
{
	for (size_t m = 0; m < COUNT(modes); m++) {
		struct outcome o;

		watch(&o, "balance", LIST(modes[m], "--each", "13", "-w",
		    "total"));
		expect_account(&o, 26, 0, 0);
		expect_disarmed(&o, 1, 13);
		expect_disarmed(&o, 2, 13);
		assert_int_equal(number_of(first_of(&o, "end"), "gap_ns"), 0);
	}
}

/* The process goes on. */
TEST(the_last_watch_ends_the_run)
{
	for (size_t m = 0; m < 2; m++) {
		struct target t;
		struct running w;
		struct outcome o;

		target_start(&t, LIST(victim("signs")));
		watch_start(&w, LIST(watchctl(), modes[m], "-w", "balance",
		    "-w", "state", "-o", "json", "--each", "7", "-p", t.pid));
		assert_int_equal(target_act(&t), WRITES);
		finish(&w, &o);
		expect_account(&o, 14, 0, 0);
		assert_string_equal(text_of(first_of(&o, "end"), "reason"),
		    "count");
		target_end(&t, 7);
	}
}

/* One goes on: it is rejected until the end, the other only up to its last hit,
   the 50th of those that are negative. */
TEST(one_watch_is_disarmed)
{
	enum { LAST = 95 };

	for (size_t m = 0; m < COUNT(modes); m++) {
		struct outcome o;

		watch(&o, "balance", LIST(modes[m], "--each", "50", "--if",
		    "new < 0", "-w", "total"));
		expect_account(&o, 50, LAST - 50 + WRITES, 0);
		expect_disarmed(&o, 1, 50);
		assert_int_equal(hits_of(&o, 2), 0);
		assert_int_equal(number_of(first_of(&o, "end"), "gap_ns"), 0);
	}
}

TEST(each_of_a_recording)
{
	struct running w;
	struct outcome o;

	start(&w, LIST(watchctl(), "-w", "balance", "-w", "total", "-o", "perf",
	    "-O", scratch_path("data"), "--", victim("signs")));
	say(&w, "go\nend\n");
	finish(&w, &o);
	run(&o, LIST(watchctl(), "report", "-o", "json", "--each", "13",
	    scratch_path("data")));
	expect_account(&o, 26, 0, 0);
	expect_disarmed(&o, 1, 13);
	expect_disarmed(&o, 2, 13);
}

TEST(once)
{
	struct outcome o;

	watch(&o, "balance", LIST("--once"));
	expect_account(&o, 2, 0, WRITES - 2);
	assert_int_equal(count_of(&o, "summary"), 2);
	watch(&o, "balance", LIST("--stop", "--if", "new < 0", "--every", "10",
	    "--once"));
	expect_account(&o, 1, WRITES / 2, WRITES / 2 - 1);
}

static double
time_of(const struct outcome *o, size_t hit)
{
	return json_number_value(json_object_get(hit_at(o, hit), "time"));
}

TEST(max_rate)
{
	enum { RATE = 9 };
	struct outcome o;
	json_int_t n;

	watch(&o, "balance", LIST("--max-rate", "9"));
	n = (json_int_t)count_of(&o, "hit");
	assert_true(n >= RATE);
	expect_account(&o, n, 0, WRITES - n);
	assert_true((double)n <= RATE *
	    (2 + time_of(&o, (size_t)n - 1) - time_of(&o, 0)));
}

/* --if comes before --changed, and -n counts what is reported. */
TEST(with_other_options)
{
	for (size_t m = 0; m < COUNT(modes); m++) {
		struct outcome o;

		watch(&o, "state", LIST(modes[m], "--changed", "--if",
		    "new == IDLE"));
		expect_account(&o, EACH - 1, WRITES - 6 * EACH, 0);
		assert_int_equal(number_of(first_of(&o, "end"), "unchanged"),
		    5 * EACH + 1);
		watch(&o, "balance", LIST(modes[m], "--if", "new == 3", "-n",
		    "2"));
		expect_account(&o, 2, 2 * VALUES - 3, 0);
		assert_string_equal(text_of(hit_at(&o, 1), "new_text"), "3");
	}
}

/* A hit that is rejected is none that could be stray. */
TEST(judging)
{
	static const struct {
		const char *condition;
		int status;
	} all[] = {
		{"new < LONG", 125}, {"new < -5", 7}, {"new < -4", 66},
		{"new < 0 && !caller(\"settle\")", 66},
	};

	for (size_t i = 0; i < COUNT(all); i++) {
		for (size_t m = i % 2; m < COUNT(modes) - (i == 0); m += 2) {
			struct outcome o;

			watch(&o, "balance", LIST(modes[m], "--if",
			    all[i].condition, "--allow", "settle",
			    "--error-exitcode", "66"));
			assert_int_equal(o.status, all[i].status);
		}
	}
}

TEST(an_action_is_taken_at_those_hits)
{
	struct outcome o;
	size_t lines = 0;

	watch(&o, "balance", LIST("--if", "new == -3", "--on-hit",
	    "exec echo acted >&2"));
	expect_account(&o, EACH, WRITES - EACH, 0);
	for (const char *p = o.err; (p = strstr(p, "acted")) != NULL; p++)
		lines++;
	assert_int_equal(lines, EACH);
}

TEST(as_text)
{
	struct running w;
	struct outcome o;

	start(&w, LIST(watchctl(), "-w", "balance", "--if",
	    "new == -3 || cpu / (tid - tid)", "--every", "100", "--",
	    victim("signs")));
	say(&w, "go\nend\n");
	finish(&w, &o);
	assert_holds(o.err, " (--if: not known)\n");
	assert_holds(o.err, "200 hits, 2 reported, 0 lost, "
	    "0 rejected, 198 skipped\n");
}

/* Nothing is run, nothing is watched, and one line says why. */
TEST(bad_conditions)
{
	static const struct {
		const char *variable, *condition, *why;
	} all[] = {
		{"balance", "new <", "a value is missing (column 6)\n"},
		{"balance", "new == BUSY", "type volatile int (column 8)\n"},
		{"state", "new == BUSY || new == FREE",
		 "type volatile enum state (column 23)\n"},
	};

	for (size_t i = 0; i < COUNT(all); i++) {
		for (size_t m = 0; m < 2; m++) {
			struct outcome o;

			run_status(&o, 125, LIST(watchctl(), modes[m], "-w",
			    all[i].variable, "--if", all[i].condition, "--",
			    victim("signs")));
			assert_holds(o.err, all[i].why);
			assert_ptr_equal(strchr(o.err, '\n'),
			    o.err + strlen(o.err) - 1);
			assert_string_equal(o.out, "");
		}
	}
}

RUN_LIVE_TESTS(.before_all = scratch_make, .after_all = scratch_remove)
