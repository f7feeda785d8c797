/*
 * with: what --with says was counted between the hits of a thread is what the
 * thread saw in itself; in each form, and from a recording.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "live.h"
#include "os/clock.h"
#include "os/counter.h"
#include "os/cpus.h"
#include "scratch.h"
#include "ticketed.h"
#include "watching.h"

enum { RUNS = 3, THREADS = 2, WRITES = 40 };	/* THOROUGH: 10 runs */

#define EVENTS "page-faults,task-clock,context-switches"

static bool
can_count(void)
{
	struct wp_target *target = ticketed_target();
	const bool can = target != NULL;

	wp_target_free(target);
	return can;
}

/* What each thread has seen by each of its writes. */
struct seen {
	int tid;
	long long faults[WRITES], switches[WRITES], ran[WRITES];
};

static struct seen *
seen_of(struct seen seen[THREADS], int tid)
{
	for (size_t i = 0; i < THREADS; i++) {
		if (seen[i].tid == 0)
			seen[i].tid = tid;
		if (seen[i].tid == tid)
			return &seen[i];
	}
	fail_msg("another thread: %d", tid);
	return NULL;
}

static void
hear_threads(const char *text, struct seen seen[THREADS])
{
	unsigned lines = 0;

	for (const char *line = text; line != NULL && *line != '\0';
	    line = strchr(line, '\n') + 1) {
		long long faults, switches, ran;
		struct seen *it;
		int tid, n;

		if (sscanf(line, "%d %d %lld %lld %lld\n", &tid, &n, &faults,
		    &switches, &ran) != 5)
			continue;
		assert_true(n >= 0 && n < WRITES);
		it = seen_of(seen, tid);
		it->faults[n] = faults;
		it->switches[n] = switches;
		it->ran[n] = ran;
		lines++;
	}
	assert_int_equal(lines, THREADS * WRITES);
}

/* A thread that was looked at twice in vain does not know; and what was counted
   between two switches that both went unseen is missing (docs/design.md). */
static unsigned
expect_difference(const json_t *with, const char *name,
    const long long seen[WRITES], int n)
{
	if (seen[n] < 0 || seen[n - 1] < 0)
		return 0;
	if (number_of(with, name) > seen[n] - seen[n - 1])
		fail_msg("write %d: %lld %s, and the thread saw %lld", n,
		    (long long)number_of(with, name), name,
		    seen[n] - seen[n - 1]);
	return number_of(with, name) == seen[n] - seen[n - 1];
}

/* Result: how many differences are known and right. */
static unsigned
expect_thread(const struct outcome *o, const struct seen *seen,
    long long wall)
{
	long long ran = 0, known = 0;
	unsigned right = 0;
	const json_t *hit;
	int n = 0;
	size_t i;

	json_array_foreach(o->lines, i, hit) {
		const json_t *with = json_object_get(hit, "with");

		if (!is_hit(hit) || number_of(hit, "tid") != seen->tid)
			continue;
		assert_true(with == NULL || n > 0);
		if (with != NULL) {
			right += expect_difference(with, "page-faults",
			    seen->faults, n);
			right += expect_difference(with, "context-switches",
			    seen->switches, n);
			ran += number_of(with, "task-clock");
			known += seen->ran[n] - seen->ran[n - 1];
		}
		n++;
	}
	assert_int_equal(n, WRITES);
	assert_true(ran > 0 && ran <= wall);
	/* it counts what it was not interrupted in alone */
	assert_true(ran > known / 4);
	return right;
}

static void
expect_threads(const struct outcome *report, const char *log, long long wall)
{
	struct seen seen[THREADS];
	unsigned right = 0;

	memset(seen, 0, sizeof(seen));
	hear_threads(log, seen);
	for (size_t i = 0; i < THREADS; i++)
		right += expect_thread(report, &seen[i], wall);
	assert_true(right > THREADS * WRITES);	/* of twice as many */
}

static void
watch(const char *form, const char *file, struct outcome *o)
{
	char threads[8], writes[8];

	(void)snprintf(threads, sizeof(threads), "%d", THREADS);
	(void)snprintf(writes, sizeof(writes), "%d", WRITES);
	run_status(o, 0, LIST(watchctl(), "-w", "word", "--with", EVENTS, "-o",
	    form, "-O", scratch_path(file), "--", victim("counted"), threads,
	    writes));
	assert_holds(o->err, " 0 lost");
}

TEST(counts_are_those_of_the_thread)
{
	const unsigned runs = getenv("THOROUGH") != NULL ? 10 : RUNS;

	if (!can_count())
		skip();
	for (unsigned i = 0; i < runs; i++) {
		const uint64_t began = wp_clock_ns();
		struct outcome o;

		watch("json", "report", &o);
		outcome_take(&o, scratch_path("report"));
		expect_threads(&o, o.err, (long long)(wp_clock_ns() - began));
	}
}

static unsigned
count_text(const char *text, const char *what)
{
	unsigned n = 0;

	while ((text = strstr(text, what)) != NULL) {
		text += strlen(what);
		n++;
	}
	return n;
}

TEST(a_recording_has_them)
{
	struct outcome o, json, text;
	uint64_t began;

	if (!can_count())
		skip();
	began = wp_clock_ns();
	watch("perf", "data", &o);
	began = wp_clock_ns() - began;
	run(&json, LIST(watchctl(), "report", "-o", "json",
	    scratch_path("data")));
	expect_threads(&json, o.err, (long long)began);
	run(&text, LIST(watchctl(), "report", scratch_path("data")));
	assert_int_equal(count_text(text.out,
	    "\n     since this thread's last hit: "),
	    count_text(json.out, "\"with\":{"));
	assert_holds(text.out, " ms\n");
}

/* Of what the kernel writes, the kernel makes the sample.  What follows is
   counted from there on. */
TEST(kernel_hits_have_none)
{
	struct running w;
	struct outcome o;
	const json_t *hit;
	unsigned n = 0;
	size_t i;

	if (!can_count())
		skip();
	start(&w, LIST(watchctl(), "-w", "counter", "-w", "filled", "--with",
	    "page-faults", "-o", "json", "-O", scratch_path("report"), "--",
	    victim("counter"), "1", "5"));
	say(&w, "go\nend\n");
	finish_status(&w, &o, 7);
	outcome_take(&o, scratch_path("report"));
	assert_int_equal(count_of(&o, "hit"), 6);
	json_array_foreach(o.lines, i, hit)
		if (is_hit(hit) && json_object_get(hit, "with") != NULL) {
			assert_string_equal(text_of(hit, "origin"), "user");
			n++;
		}
	assert_in_range(n, 0, 5);
}

/* A machine that lacks one says so; with one, it counts. */
TEST(a_counter_of_the_processor)
{
	static struct wp_cpus online;
	struct outcome o;
	int cpu = 0, fd;

	if (!can_count())
		skip();
	assert_true(wp_cpus_online(&online) > 0);
	while (!online.has[cpu])
		cpu++;
	fd = wp_counter_open(WP_COUNTER_INSTRUCTIONS, cpu);
	run(&o, LIST(watchctl(), "-w", "word", "--with", "instructions", "-o",
	    "json", "-O", "-", "--", victim("counted"), "1", "3"));
	if (fd < 0) {
		assert_int_equal(o.status, 125);
		assert_holds(o.err, "watchctl: --with: this machine "
		    "does not count instructions (");
		assert_holds(o.err, "leave it out\n");
		assert_int_equal(count_text(o.err, "\n"), 1);
	} else {
		assert_int_equal(o.status, 0);
		assert_in_range(count_text(o.out, "\"instructions\":"), 0,
		    2);
		(void)close(fd);
	}
}

RUN_LIVE_TESTS(.before_all = scratch_make, .after_all = scratch_remove)
