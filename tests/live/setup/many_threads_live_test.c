/*
 * many_threads: a process of more than 256 threads is watched on processors,
 * and not stopped; of all that hits there, its own hits are reported, each with
 * its values.
 */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "attach/target.h"
#include "live.h"
#include "watching.h"

enum { THREADS = 300, ADDS = 10, OTHERS = 500 };

static bool
possible(void)
{
	const struct wp_options options = {.bpf = true};
	struct wp_target *target;
	bool bpf;

	if (!live_possible() || wp_target_new(&target, &live_features, &options,
	    NULL) < 0)
		return false;
	bpf = wp_target_no_bpf(target)->code == WP_CAUSE_NONE &&
	    wp_target_options(target)->tickets;
	if (!bpf)
		print_message("no BPF: %s\n", wp_target_no_bpf(target)->text);
	wp_target_free(target);
	return bpf;
}

static void
start_crowd(struct target *t, const char *threads)
{
	target_start(t, LIST(victim("crowd"), threads));
}

static json_int_t
tell(struct target *t, const char *what, int n)
{
	char line[32];

	(void)snprintf(line, sizeof(line), "%s %d\n", what, n);
	say(&t->run, line);
	return target_done(&t->run);
}

/* It is another's at the same address. */
static void
hit_elsewhere(struct target *t)
{
	struct target other;

	start_crowd(&other, "1");
	assert_string_equal(other.addr, t->addr);
	(void)tell(&other, "add", OTHERS);
	(void)tell(&other, "read", 1);
	end(&other.run);
}

/* What all of them do, while others are at it.  Without a child: what that may
   have written would leave values unknown. */
static json_int_t
act(struct target *t)
{
	hit_elsewhere(t);
	(void)tell(t, "add", ADDS);
	(void)tell(t, "read", 3);
	hit_elsewhere(t);
	(void)tell(t, "thread", ADDS);
	hit_elsewhere(t);
	return tell(t, "add", 1);
}

static int
compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Each addition since read(2) was there found another value. */
static void
expect_values(const struct outcome *o)
{
	static uint64_t old[THREADS * (ADDS + 1) + ADDS];
	size_t i, n = 0, same = 0, all = 0;
	json_t *hit;

	each_hit(o, i, hit) {
		if (strcmp(text_of(hit, "origin"), "user") != 0) {
			n = 0;
			continue;
		}
		all++;
		if (json_object_get(hit, "old") == NULL)
			continue;
		assert_int_equal(hex_of(hit, "new"), hex_of(hit, "old") + 1);
		assert_true(n < sizeof(old) / sizeof(old[0]));
		old[n++] = hex_of(hit, "old");
	}
	qsort(old, n, sizeof(old[0]), compare);
	for (i = 1; i < n; i++)
		same += old[i] == old[i - 1];
	assert_int_equal(same, 0);
	assert_true(n > 0);
	assert_int_equal(all, THREADS * (ADDS + 1) + ADDS);
}

/* Begin to watch it.  Result: for how long it was stopped, in ms. */
static double
watch_once(struct running *w, const struct target *t, const char *option)
{
	char line[4096];
	json_t *start;
	double frozen;

	watch_hear(w, LIST(watchctl(), "-w", "word", "-o", "json", "-p",
	    t->pid, option), line);
	assert_non_null(start = json_loads(line, 0, NULL));
	assert_int_equal(number_of(start, "threads"), THREADS + 1);
	frozen = json_number_value(json_object_get(start, "frozen_ms"));
	json_decref(start);
	return frozen;
}

/* It is not stopped for that, unless slots of any thread of the machine are
   taken, by other tests perhaps. */
static void
watch_crowd(struct running *w, const struct target *t, const char *option)
{
	unsigned tries = 0;

	while (watch_once(w, t, option) > 0) {
		end(w);
		if (++tries == 600)
			fail_msg("it was stopped each time");
		(void)usleep(COMMAND_PATIENCE_MS);	/* in all 36 s */
	}
}

/* How many hits it has, none of which is lost. */
static json_int_t
finish_crowd(struct running *w, struct outcome *o)
{
	const json_t *end;

	finish(w, o);
	end = first_of(o, "end");
	if (o->status != 0 || end == NULL)
		fail_msg("status %d: %s", o->status, o->err);
	assert_string_equal(text_of(end, "reason"), "exit");
	assert_int_equal(number_of(end, "lost"), 0);
	return number_of(end, "hits");
}

TEST(only_hits_of_the_process_are_reported)
{
	struct target t;
	struct running w;
	struct outcome o;
	json_int_t writes;

	start_crowd(&t, "300");
	watch_crowd(&w, &t, NULL);
	writes = act(&t);
	target_end(&t, 1);
	assert_int_equal(finish_crowd(&w, &o), writes);
	assert_int_equal(count_of(&o, "hit"), writes);
	expect_values(&o);
}

TEST(hits_are_counted_by_thread)
{
	struct target t;
	struct running w;
	struct outcome o;
	const json_t *row;
	size_t i, rows = 0;

	start_crowd(&t, "300");
	watch_crowd(&w, &t, "--count");
	hit_elsewhere(&t);
	(void)tell(&t, "add", ADDS);
	(void)tell(&t, "fork", OTHERS);
	hit_elsewhere(&t);
	target_end(&t, 1);
	assert_int_equal(finish_crowd(&w, &o), THREADS * ADDS);
	json_array_foreach(o.lines, i, row) {
		if (strcmp(text_of(row, "type"), "count") != 0)
			continue;
		assert_int_equal(number_of(row, "count"), ADDS);
		rows++;
	}
	assert_int_equal(rows, THREADS);
}

/* The kernel clears the word of the next program, at the same address, which is
   no hit of this one. */
TEST(a_program_that_it_executes_is_watched)
{
	struct target t;
	struct running w;
	struct outcome o;
	char addr[32], line[4096];
	json_int_t writes;

	start_crowd(&t, "300");
	watch_crowd(&w, &t, NULL);
	(void)tell(&t, "add", 1);
	writes = tell(&t, "read", 1);
	say(&t.run, "exec\n");
	hear_address(&t.run, addr);
	assert_string_equal(addr, t.addr);
	do {
		hear(&w, line, sizeof(line));
	} while (strstr(line, "\"event\":\"armed\"") == NULL);
	writes += tell(&t, "add", 1);
	end(&t.run);
	assert_int_equal(finish_crowd(&w, &o), writes);
}

TEST(children_are_watched_in_threads)
{
	struct target t;
	struct running w;
	struct outcome o;
	char line[4096];
	json_int_t writes;

	start_crowd(&t, "300");
	watch_hear(&w, LIST(watchctl(), "-f", "-w", "word", "-o", "json", "-p",
	    t.pid), line);
	(void)tell(&t, "fork", OTHERS);
	writes = tell(&t, "add", 1);
	target_end(&t, 1);
	assert_int_equal(finish_crowd(&w, &o), writes + OTHERS);
}

RUN_TESTS(.possible = possible)
