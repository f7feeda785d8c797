/*
 * rotate: slots that move over an object of 24 elements.  The victim writes to
 * them as it is told.
 */
#include "test.h"

#include "live.h"
#include "scratch.h"
#include "watching.h"

enum { ELEMENTS = 24, SLOTS = 4, HOT = 17, DWELLS_MAX = 6 };

/* What is known of each part at the end. */
struct parts {
	size_t n;
	double share[ELEMENTS], sum;
	json_int_t hits[ELEMENTS], all;
};

static void
take_parts(const struct outcome *o, unsigned long long first, struct parts *p)
{
	size_t i;
	json_t *line;

	*p = (struct parts){.n = 0};
	json_array_foreach(o->lines, i, line) {
		if (strcmp(text_of(line, "type"), "coverage") != 0)
			continue;
		assert_true(p->n < ELEMENTS);
		assert_int_equal(number_of(line, "watch"), 1);
		assert_int_equal(number_of(line, "len"), 8);
		assert_int_equal(hex_of(line, "addr"), first + 8 * p->n);
		p->share[p->n] = json_number_value(json_object_get(line,
		    "share"));
		assert_true(p->share[p->n] >= 0 && p->share[p->n] <= 1);
		p->sum += p->share[p->n];
		p->all += p->hits[p->n++] = number_of(line, "hits");
	}
	assert_int_equal(p->n, ELEMENTS);
	assert_int_equal(p->all, number_of(first_of(o, "end"), "hits"));
	/* moves take a little of it */
	if (p->sum > SLOTS + 1e-3 || p->sum < SLOTS * 0.7)
		fail_msg("%g slots", p->sum);
}

/* Each is of the element that its address says, by what the victim writes: the
   number of the write, so the element is that modulo 24. */
static void
expect_true_hits(const struct outcome *o, unsigned long long first)
{
	size_t i;
	json_t *hit;

	each_hit(o, i, hit) {
		const uint64_t element = (hex_of(hit, "addr") - first) / 8;
		char path[32];

		(void)snprintf(path, sizeof(path), "wide[%d]", (int)element);
		assert_string_equal(maybe_text(hit, "path"), path);
		assert_int_equal(number_of(hit, "len"), 8);
		assert_int_equal(number_of(hit, "watch"), 1);
		expect_function(hit, 0, "store");
		if (*maybe_text(hit, "new") != '\0')
			assert_int_equal(hex_of(hit, "new") % ELEMENTS,
			    element);
		/* one that was made 24 writes before; after a gap none */
		if (*maybe_text(hit, "new") != '\0' &&
		    strcmp(text_of(hit, "value_source"), "later") != 0 &&
		    *maybe_text(hit, "old") != '\0' && hex_of(hit, "old") != 0)
			assert_int_equal(hex_of(hit, "old") + ELEMENTS,
			    hex_of(hit, "new"));
	}
}

/* What the first line says of a watch, from 0, of so many. */
static void
expect_watch(const json_t *watches, size_t n, size_t i, unsigned long long addr,
    json_int_t len, json_int_t slots)
{
	const json_t *watch;

	assert_int_equal(json_array_size(watches), n);
	watch = json_array_get(watches, i);
	assert_int_equal(number_of(watch, "id"), i + 1);
	assert_int_equal(number_of(watch, "len"), len);
	assert_int_equal(number_of(watch, "slots"), slots);
	assert_int_equal(hex_of(watch, "addr"), addr);
}

/* How many elements the report has hits of, by now. */
static unsigned
elements_hit(void)
{
	bool seen[ELEMENTS] = {false};
	FILE *f = fopen(scratch_path("report"), "r");
	char *line = NULL, *path;
	unsigned i, n = 0;
	size_t size = 0;

	while (f != NULL && getline(&line, &size, f) > 0)
		if ((path = strstr(line, "\"path\":\"wide[")) != NULL &&
		    sscanf(path, "\"path\":\"wide[%u]", &i) == 1 &&
		    i < ELEMENTS && !seen[i]) {
			seen[i] = true;
			n++;
		}
	free(line);
	if (f != NULL)
		(void)fclose(f);
	return n;
}

/* Watch all of it while it does something, until there are hits of so many
   elements.  Result: where it lies. */
static unsigned long long
watch_wide(const char *more, const char *act, unsigned elements,
    struct outcome *o)
{
	unsigned tries = 0;
	struct running w;
	char addr[32];

	(void)unlink(scratch_path("report"));
	start(&w, LIST(watchctl(), "-w", "wide", "--slots", "rotate", "-o",
	    "json", "-O", scratch_path("report"), more != NULL ? more : "--",
	    victim("wide")));
	hear_address(&w, addr);
	do {
		assert_true(tries++ < 200);
		say(&w, act);
		(void)target_done(&w);
	} while (elements_hit() < elements);
	say(&w, "end\n");
	finish_status(&w, o, 7);
	outcome_take(o, scratch_path("report"));
	return strtoull(addr, NULL, 16);
}

static void
expect_all_parts(const char *more)
{
	struct outcome o;
	struct parts p;
	const unsigned long long first = watch_wide(more, "a 200\n",
	    ELEMENTS, &o);
	const json_t *watches = json_object_get(first_of(&o, "start"),
	    "watches");

	expect_watch(watches, 1, 0, first, 8 * ELEMENTS, SLOTS);
	take_parts(&o, first, &p);
	expect_true_hits(&o, first);
	for (size_t i = 0; i < p.n; i++)
		assert_true(p.hits[i] > 0 && p.share[i] > 0);
}

TEST(moves_over_all_parts)
{
	expect_all_parts(NULL);
}

TEST(moves_with_stops)
{
	expect_all_parts("--stop");
}

static int
order(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* An element that alone is hit keeps its slot longer than others usually do: on
   a machine that is so busy that slots seldom move, over several runs. */
TEST(dwells_where_hits_come)
{
	double share[ELEMENTS] = {0}, sorted[ELEMENTS], usual = 1, hot = 0;

	for (int run = 0; run < DWELLS_MAX && hot < 1.3 * usual; run++) {
		struct outcome o;
		struct parts p;
		const unsigned long long first = watch_wide(NULL, "h 800\n", 1,
		    &o);

		take_parts(&o, first, &p);
		assert_int_equal(p.n, ELEMENTS);
		for (size_t i = 0; i < p.n; i++) {
			assert_int_equal(p.hits[i] > 0, i == HOT);
			share[i] += p.share[i];
		}
		memcpy(sorted, share, sizeof(sorted));
		qsort(sorted, ELEMENTS, sizeof(*sorted), order);
		hot = share[HOT];
		usual = sorted[ELEMENTS / 2];
	}
	if (hot < 1.3 * usual)
		fail_msg("the hot one had a slot for %g, others for %g", hot,
		    usual);
}

/* What the kernel writes over several parts is a hit of each that has a
   slot. */
TEST(kernel_writes)
{
	struct outcome o;
	struct parts p;
	const unsigned long long first = watch_wide(NULL, "k 200\n", 0,
	    &o);
	size_t i;
	json_t *hit;

	take_parts(&o, first, &p);
	each_hit(&o, i, hit)
		assert_string_equal(text_of(hit, "syscall"), "read");
}

/* A run that is shorter than a round sees a stray write or does not; several
   do, for each begins elsewhere.  Its status is that of the stray write, or
   0. */
TEST(a_suite_finds_what_one_run_misses)
{
	enum { RUNS_MAX = 100 };
	unsigned seen = 0, runs = 0;
	struct outcome o;

	for (; runs < RUNS_MAX && seen == 0; runs++) {
		run(&o, LIST(watchctl(), "-w", "wide", "--slots", "rotate",
		    "--allow", "store", "--error-exitcode", "66", "-o", "json",
		    "-O", "/dev/null", victim("wide"), "once", "40", "60"));
		if (o.status != 0 && o.status != 66)
			fail_msg("status %d: %s", o.status, o.err);
		seen += o.status == 66;
	}
	assert_int_equal(seen, 1);
}

/* Two objects share the slots; one that fits has what it takes all the time. */
TEST(shares_slots)
{
	struct target t;
	struct running w;
	struct outcome o;
	unsigned long long first;
	char start[4096];
	json_t *line, *begin;
	size_t i, whole = 0, parts = 0;

	target_start(&t, LIST(victim("wide")));
	first = strtoull(t.addr, NULL, 16);
	watch_hear(&w, LIST(watchctl(), "-w", "wide[2]", "-w", "wide[4]:160",
	    "--slots", "rotate", "-o", "json", "-p", t.pid), start);
	begin = json_loads(start, 0, NULL);
	expect_watch(json_object_get(begin, "watches"), 2, 0, first + 16, 8, 1);
	expect_watch(json_object_get(begin, "watches"), 2, 1, first + 32, 160,
	    3);
	json_decref(begin);
	say(&t.run, "a 100\n");
	(void)target_done(&t.run);
	target_end(&t, 7);
	finish(&w, &o);
	json_array_foreach(o.lines, i, line) {
		if (strcmp(text_of(line, "type"), "coverage") != 0)
			continue;
		if (number_of(line, "watch") == 1) {
			whole++;
			assert_true(json_number_value(json_object_get(line,
			    "share")) == 1);
			assert_true(number_of(line, "hits") > 0);
		} else
			parts++;
	}
	assert_int_equal(whole, 1);
	assert_int_equal(parts, 20);
}

TEST(text_has_a_table)
{
	struct target t;
	struct running w;
	struct outcome o;

	target_start(&t, LIST(victim("wide")));
	start(&w, LIST(watchctl(), "-w", "wide", "--slots", "rotate", "-p",
	    t.pid));
	await(w.out, "watching wide (192 bytes at ");
	say(&t.run, "a 100\n");
	(void)target_done(&t.run);
	target_end(&t, 7);
	finish(&w, &o);
	assert_holds(o.out, "part of wide\n");
	assert_holds(o.out, "  24 parts, each watched for ");
}

/* What is refused says the way out. */
TEST(bad_input)
{
	struct target t;
	struct outcome o;

	target_start(&t, LIST(victim("wide")));
	run_status(&o, 125, LIST(watchctl(), "-w", "wide", "-p", t.pid));
	assert_holds(o.err, "or add --slots rotate\n");
	run_status(&o, 125, LIST(watchctl(), "-w", "wide", "-w", "wide[1]",
	    "-w", "wide[2]", "-w", "wide[3]", "-w", "wide[4]", "--slots",
	    "rotate", "-p", t.pid));
	assert_holds(o.err, "take 5 slots together");
	run_status(&o, 125, LIST(watchctl(), "-w", "0x404000:1000000",
	    "--slots", "rotate", "-p", t.pid));
	assert_holds(o.err, "1000000 bytes are ");
	target_end(&t, 7);
}

RUN_LIVE_TESTS(.before_all = scratch_make, .after_all = scratch_remove)
