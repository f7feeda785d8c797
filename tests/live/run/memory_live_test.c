/*
 * memory: watchctl when allocations fail (victim/failing.c, preloaded).  It
 * always gives its account and ends with a documented status, and the watched
 * program continues.
 */
#include "test.h"

#include <stdio.h>

#include "command.h"
#include "live.h"
#include "scratch.h"

enum {
	ACCESSES = 10,		/* of the acts below: what read(2) copies, a
				   byte each, is one hit, unless it is lost */
	POINTS = 3,		/* at which allocations fail, of each mode */
	THOROUGH = 400,
	AT_A_TIME = 3,
};

static const struct mode {
	const char *name;
	const char *argv[12];	/* after watchctl; NULL, the first: the victim
				   and its acts */
	int status;		/* when all goes well */
} modes[] = {
	{"run", {"-w", "config", "--"}, 7},
	{"stop", {"--stop", "-w", "config", "--"}, 7},
	{"json", {"-w", "config", "-o", "json", "-O", "/dev/null", "--"}, 7},
	{"changed", {"-w", "config", "--changed", "--allow", "nobody", "--"},
	    7},
	{"inside", {"--inside", "-w", "config", "--"}, 7},
	{"record", {"-w", "config", "-o", "perf", "-O", "recorded", "--"}, 7},
	{"report", {"report", "recording"}, 0},
};

static const char *const acts[] = {"scribble", "update", "read", NULL};

/* Start it, with this set: from the how-many-th allocation on, or at it. */
static void
begin(struct running *r, const struct mode *mode, const char *how,
    unsigned long n)
{
	const char *argv[24] = {watchctl()};
	size_t at = 1;
	char number[24];

	(void)snprintf(number, sizeof(number), "%lu", n);
	assert_int_equal(setenv(how, number, 1), 0);
	assert_int_equal(setenv("LD_PRELOAD", victim("failing"), 1), 0);
	for (size_t i = 0; mode->argv[i] != NULL; i++)
		argv[at++] = mode->argv[i];
	if (strcmp(argv[at - 1], "--") == 0) {
		argv[at++] = victim("config");
		for (size_t i = 0; acts[i] != NULL; i++)
			argv[at++] = acts[i];
	}
	start(r, argv);
	assert_int_equal(unsetenv("LD_PRELOAD"), 0);
	assert_int_equal(unsetenv(how), 0);
}

struct account {
	unsigned long long hits, reported, lost, unchanged;
};

/* The account that was given; false: none. */
static bool
find_account(const char *err, struct account *a)
{
	const char *at = err, *rest;

	while ((at = strstr(at, "watchctl: ")) != NULL) {
		*a = (struct account){0};
		if (sscanf(at, "watchctl: %llu hit%*[s,] %llu reported, "
		    "%llu lost", &a->hits, &a->reported, &a->lost) == 3) {
			if ((rest = strstr(at, " lost, ")) != NULL)
				(void)sscanf(rest, " lost, %llu unchanged",
				    &a->unchanged);
			return true;
		}
		at++;
	}
	return false;
}

/* How many allocations there are when none fails, and hits. */
static unsigned long
count(const struct mode *mode, struct account *usual)
{
	struct running r;
	struct outcome o;
	unsigned long n;
	char *text;

	assert_int_equal(setenv("FAIL_COUNT", scratch_path("count"), 1), 0);
	begin(&r, mode, "FAIL_AT", 0);
	finish(&r, &o);
	assert_int_equal(unsetenv("FAIL_COUNT"), 0);
	if (o.status != mode->status || !find_account(o.err, usual))
		fail_msg("%s: status %d: %s", mode->name, o.status, o.err);
	text = scratch_read("count", NULL);
	assert_int_equal(sscanf(text, "%lu", &n), 1);
	return n;
}

/* The account comes out even, and is not more than there was; and where all is
   said to be well, not less: but one of several samples of an access may be
   lost, and counts as a hit then.  Without an account, that nothing was
   watched. */
static void
expect_account(const struct mode *mode, const struct account *usual,
    const struct outcome *o, const char *how, unsigned long n)
{
	struct account a;
	bool even;

	if (!find_account(o->err, &a)) {
		if (o->status != 125 || strstr(o->err, "watchctl: ") == NULL)
			fail_msg("%s, %s=%lu: status %d, and no account: %s",
			    mode->name, how, n, o->status, o->err);
		return;
	}
	even = a.hits == a.reported + a.lost + a.unchanged;
	if (!even || a.hits - a.lost > usual->hits || a.hits > ACCESSES ||
	    (o->status == mode->status && (a.lost == 0 ?
	    a.hits != usual->hits : a.hits < usual->hits)))
		fail_msg("%s, %s=%lu: status %d: %s", mode->name, how, n,
		    o->status, o->err);
}

/* A command did what it was to do, if it went on at all: one that could not be
   held does nothing. */
static void
expect_end(const struct mode *mode, const struct account *usual,
    struct running *r, const char *how, unsigned long n)
{
	struct outcome o;

	finish(r, &o);
	if (o.status != mode->status && o.status != 125)
		fail_msg("%s, %s=%lu: status %d: %s", mode->name, how, n,
		    o.status, o.err);
	if (mode->status == 7 && o.out[0] != '\0' &&
	    (strstr(o.out, "done 3") == NULL ||
	    strstr(o.err, "holding the command") != NULL))
		fail_msg("%s, %s=%lu: the command said: %s%s", mode->name, how,
		    n, o.out, o.err);
	expect_account(mode, usual, &o, how, n);
}

/* Spread over all of a run, not where the last spread was. */
static void
fail_at_points(const struct mode *mode, const char *how)
{
	const unsigned long points = getenv("THOROUGH") != NULL ? THOROUGH :
	    POINTS;
	struct account usual;
	const unsigned long all = count(mode, &usual);
	struct running r[AT_A_TIME];

	for (unsigned long i = 0; i < points; i += AT_A_TIME) {
		unsigned long n[AT_A_TIME];

		for (unsigned j = 0; j < AT_A_TIME; j++) {
			n[j] = 1 + (i + j) * all / points +
			    (unsigned long)getpid() % (all / points + 1);
			begin(&r[j], mode, how, n[j]);
		}
		for (unsigned j = 0; j < AT_A_TIME; j++)
			expect_end(mode, &usual, &r[j], how, n[j]);
	}
}

TEST(one_allocation_fails)
{
	for (size_t i = 0; i < COUNT(modes); i++)
		fail_at_points(&modes[i], "FAIL_AT");
}

TEST(all_allocations_fail_from_one_on)
{
	for (size_t i = 0; i < COUNT(modes); i++)
		fail_at_points(&modes[i], "FAIL_FROM");
}

/* As a user has it: a limit. */
TEST(large_allocations_fail)
{
	static const unsigned long over[] = {1000000, 10000, 1000};
	struct account usual;
	struct running r;

	for (size_t i = 0; i < COUNT(modes); i++) {
		(void)count(&modes[i], &usual);
		for (size_t j = 0; j < COUNT(over); j++) {
			begin(&r, &modes[i], "FAIL_OVER", over[j]);
			expect_end(&modes[i], &usual, &r, "FAIL_OVER",
			    over[j]);
		}
	}
}

/* A process that is attached to goes on, too. */
TEST(a_running_process_goes_on)
{
	static const unsigned long from[] = {1, 1500, 4500};
	char pid[16], addr[32], line[64];
	struct running target, r;
	struct outcome o;

	for (size_t i = 0; i < COUNT(from); i++) {
		const struct mode mode = {
			"attached", {"--stop", "-w", "config", "-p", pid, NULL},
			0,
		};

		start(&target, LIST(victim("config"), acts[0], acts[1],
		    acts[2]));
		hear_address(&target, addr);
		(void)snprintf(pid, sizeof(pid), "%d", target.pid);
		begin(&r, &mode, "FAIL_FROM", from[i]);
		/* it watches, or has ended */
		hear(&r, line, sizeof(line));
		say(&target, "\n");
		hear(&target, line, sizeof(line));
		assert_string_equal(line, "done 3");
		say(&target, "\n");
		finish_status(&target, &o, 7);
		finish(&r, &o);
		assert_true(o.status == 0 || o.status == 125);
		assert_holds(o.err, "watchctl: ");
	}
}

/* Of the process nothing follows from it.  Its first byte is not mapped, so all
   ends with a refusal. */
TEST(a_living_process_is_not_reported_as_ended)
{
	static const char *const how[] = {"FAIL_AT", "FAIL_FROM"};
	char pid[16], addr[32];
	const struct mode mode = {
		"refused", {"-w", "0x1000", "-p", pid, NULL}, 125,
	};
	struct running target, r;
	struct outcome o;

	start(&target, (const char *[]){victim("config"), acts[0], NULL});
	hear_address(&target, addr);
	(void)snprintf(pid, sizeof(pid), "%d", target.pid);
	for (unsigned long n = 1; n <= 40; n++) {
		begin(&r, &mode, how[n % 2], n / 2 + 1);
		finish_status(&r, &o, 125);
		if (strstr(o.err, "ended") != NULL)
			fail_msg("%s=%lu: %s", how[n % 2], n / 2 + 1, o.err);
	}
	end(&target);
}

/* What is noted of a program that is executed takes a byte for each SPEC, of
   which there are so many that nothing else is of this size.  It cannot be
   watched, and goes on. */
TEST(a_program_that_is_executed_goes_on)
{
	enum { SPECS = 23 };
	const char *argv[ARGS];
	struct running r;
	struct outcome o;
	char size[8];
	size_t n = append(argv, 0, LIST(watchctl(), "--if-missing", "skip"));

	for (unsigned i = 0; i < SPECS; i++)
		n = append(argv, n, LIST("-w", "config"));
	(void)append(argv, n, LIST("--", "/bin/sh", "-c",
	    "echo done >it; exit 7"));
	(void)snprintf(size, sizeof(size), "%d", SPECS);
	assert_int_equal(setenv("FAIL_SIZE", size, 1), 0);
	assert_int_equal(setenv("LD_PRELOAD", victim("failing"), 1), 0);
	start(&r, argv);
	assert_int_equal(unsetenv("LD_PRELOAD"), 0);
	assert_int_equal(unsetenv("FAIL_SIZE"), 0);
	finish(&r, &o);
	if (o.status != 125 || strstr(o.err, "Cannot allocate memory") == NULL)
		fail_msg("status %d: %s", o.status, o.err);
	(void)scratch_read("it", NULL);
}

/* A child for which the thread that traces has no memory is not watched in
   silence.  Its structure for one is of this size, and so are others. */
TEST(a_child_that_is_not_traced_is_doubted)
{
	unsigned doubted = 0;
	char number[8];

	assert_int_equal(setenv("FAIL_SIZE", "64", 1), 0);
	for (unsigned i = 0; i < 8; i++) {
		struct running r;
		struct outcome o;

		(void)snprintf(number, sizeof(number), "%u", i);
		assert_int_equal(setenv("FAIL_SKIP", number, 1), 0);
		assert_int_equal(setenv("LD_PRELOAD", victim("failing"), 1),
		    0);
		start(&r, LIST(watchctl(), "-f", "-w", "config",
		    "--error-exitcode", "66", "--allow", "scribble",
		    "--if-missing", "skip", "--", "/bin/sh", "-c",
		    "\"$0\" scribble; exit 7", victim("config")));
		assert_int_equal(unsetenv("LD_PRELOAD"), 0);
		say(&r, "\n\n");
		finish(&r, &o);
		if (o.status != 125 && o.status != 120 && (o.status != 7 ||
		    strstr(o.err, "1 hit, 1 reported") == NULL))
			fail_msg("%u: status %d: %s", i, o.status, o.err);
		doubted += o.status == 120 && strstr(o.err,
		    "may not have been watched") != NULL;
	}
	assert_int_equal(unsetenv("FAIL_SKIP"), 0);
	assert_int_equal(unsetenv("FAIL_SIZE"), 0);
	assert_true(doubted > 0);
}

static int
prepare(void **state)
{
	const char *in = victim("config");

	if (scratch_make(state) != 0 || chdir(scratch_dir) != 0)
		return -1;
	return scratch_try("'%s' -w config -o perf -O recording -- '%s' "
	    "scribble update read < /dev/null > /dev/null 2>&1; [ $? = 7 ]",
	    watchctl(), in);
}

RUN_LIVE_TESTS(.before_all = prepare, .after_all = scratch_remove)
