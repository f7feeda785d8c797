/*
 * follow: watches that move when a pointer on the way to their object changes.
 * The victim changes pointers between its writes, and waits for each move to be
 * reported: then every write is a hit, at the address that it was made to.
 * With --stop it need not wait.
 */
#include "test.h"

#include "live.h"
#include "watching.h"

enum { HITS_MAX = 128, ITEM = 16, NOWHERE = -1 };

/* What has been said so far, and is to be. */
struct moving {
	struct target t;
	struct running w;
	unsigned long long items;	/* where they lie */
	size_t hits, wanted;
	unsigned long long at[HITS_MAX], want[HITS_MAX];
	int item;			/* that is pointed to; NOWHERE */
	double gap_us;			/* of the last move; < 0: it has none */
};

static void
take_line(struct moving *m, const char *line, json_t **object)
{
	json_error_t error;
	json_t *json = json_loads(line, 0, &error);

	if (json == NULL)
		fail_msg("no line: %s", line);
	if (is_hit(json)) {
		assert_true(m->hits < HITS_MAX);
		m->at[m->hits++] = hex_of(json, "addr");
	}
	*object = json;
}

/* Wait until it has moved to where the item is. */
static void
await_move(struct moving *m)
{
	char line[8192], want[32] = "";
	bool moved = false;

	if (m->item != NOWHERE)
		(void)snprintf(want, sizeof(want), "%#llx", m->items +
		    (unsigned)m->item * ITEM);
	while (!moved) {
		json_t *json;

		hear(&m->w, line, sizeof(line));
		take_line(m, line, &json);
		moved = strcmp(maybe_text(json, "event"), "retarget") == 0;
		if (moved) {
			assert_string_equal(maybe_text(json, "addr"), want);
			assert_int_equal(number_of(json, "id"), 1);
			m->gap_us = json_object_get(json, "gap_us") == NULL ?
			    -1 : json_number_value(json_object_get(json,
			    "gap_us"));
		}
		json_decref(json);
	}
}

/* It writes three times, and then changes a pointer to point to this item. */
static void
step(struct moving *m, const char *what, int item)
{
	/* another box's pointer may have been another one, too */
	const bool moves = item != m->item || *what == 'o';

	for (int i = 0; i < 3 && m->item != NOWHERE; i++)
		m->want[m->wanted++] = m->items + (unsigned)m->item * ITEM;
	m->item = item;
	say(&m->t.run, what);
	(void)target_done(&m->t.run);
	if (moves)
		await_move(m);
}

/* What is said last; every write was a hit, in order. */
static void
expect_all(struct moving *m, struct outcome *o)
{
	size_t i;
	json_t *hit;

	target_end(&m->t, 7);
	finish(&m->w, o);
	each_hit(o, i, hit) {
		assert_true(m->hits < HITS_MAX);
		m->at[m->hits++] = hex_of(hit, "addr");
		expect_function(hit, 0, "touch");
		assert_string_equal(text_of(hit, "value_type"), "long");
	}
	assert_int_equal(m->hits, m->wanted);
	for (size_t k = 0; k < m->hits; k++)
		if (m->at[k] != m->want[k])
			fail_msg("hit %zu is at %#llx, not %#llx", k, m->at[k],
			    m->want[k]);
	assert_int_equal(number_of(first_of(o, "end"), "hits"), m->wanted);
	assert_int_equal(number_of(first_of(o, "end"), "lost"), 0);
}

static void
start_moving(struct moving *m, const char *argument)
{
	*m = (struct moving){.item = argument == NULL ||
	    strcmp(argument, "null") != 0 ? 0 : NOWHERE};
	target_start(&m->t, LIST(victim("moving"), argument));
	m->items = strtoull(m->t.addr, NULL, 16);
}

TEST(moves_with_each_pointer)
{
	struct moving m;
	struct outcome o;

	start_moving(&m, NULL);
	watch_start(&m.w, LIST(watchctl(), "-w", "box->item->count",
	    "--follow", "-o", "json", "-p", m.t.pid));
	step(&m, "i\n", 1);
	assert_true(m.gap_us > 0);
	step(&m, "i\n", 2);
	step(&m, "o\n", 2);	/* the other box has the same */
	step(&m, "i\n", 3);
	step(&m, "i\n", 0);	/* where it was before */
	step(&m, "n\n", NOWHERE);
	assert_true(m.gap_us < 0);
	step(&m, "k\n", NOWHERE);
	step(&m, "o\n", 2);
	step(&m, "o\n", NOWHERE);
	step(&m, "i\n", 0);
	step(&m, "k\n", 0);
	expect_all(&m, &o);
}

/* How many gaps were reported. */
static size_t
gaps_of(const struct outcome *o)
{
	size_t i, n = 0;
	json_t *line;

	json_array_foreach(o->lines, i, line)
		n += strcmp(maybe_text(line, "event"), "retarget") == 0 &&
		    json_number_value(json_object_get(line, "gap_us")) > 0;
	return n;
}

/* Of one thread nothing is missed; of several that is not known, since another
   one may have gone on until it was held. */
static void
expect_moves_while_held(const char *argument, bool gaps)
{
	struct moving m;
	struct outcome o;
	size_t i;
	json_t *hit;

	start_moving(&m, argument);
	watch_start(&m.w, LIST(watchctl(), "-w", "box->item->count",
	    "--follow", "--stop", "-o", "json", "-p", m.t.pid));
	step(&m, "i\n", 1);
	assert_int_equal(m.gap_us > 0, gaps);
	step(&m, "o\n", 2);
	assert_int_equal(m.gap_us > 0, gaps);
	step(&m, "i\n", 3);
	step(&m, "n\n", NOWHERE);
	assert_true(m.gap_us < 0);
	step(&m, "k\n", NOWHERE);
	step(&m, "i\n", 0);
	assert_int_equal(m.gap_us > 0, gaps);
	step(&m, "s\n", 0);
	step(&m, "k\n", 0);
	expect_all(&m, &o);
	each_hit(&o, i, hit)
		assert_string_equal(text_of(hit, "value_source"), "stop");
}

TEST(moves_while_held)
{
	expect_moves_while_held("alone", false);
	expect_moves_while_held(NULL, true);
}

/* Two objects that the same pointer leads to: each write to it is recorded for
   both. */
TEST(two_pointers_move_while_held)
{
	struct moving m;
	struct outcome o;

	start_moving(&m, "alone");
	watch_start(&m.w, LIST(watchctl(), "-w", "box->color", "-w",
	    "box->item", "--follow", "--stop", "-o", "json", "-p", m.t.pid,
	    "--allow", "change", "--error-exitcode", "9"));
	for (int i = 0; i < 2; i++) {
		say(&m.t.run, "o\ni\n");
		(void)target_done(&m.t.run);
		(void)target_done(&m.t.run);
	}
	target_end(&m.t, 7);
	finish(&m.w, &o);
	if (o.status != 0)
		fail_msg("status %d: %s%s", o.status, o.err, o.out);
	assert_int_equal(count_of(&o, "watch"), 4);
	assert_int_equal(count_of(&o, "hit"), 2);
	assert_lacks(o.out, "gap_us");
}

/* What the next instruction writes is a hit already, and so is what comes after
   the pointer was written back. */
TEST(held_at_once)
{
	struct moving m;
	struct outcome o;
	json_t *hit;

	start_moving(&m, "alone");
	watch_start(&m.w, LIST(watchctl(), "-w", "box->item->name",
	    "--follow", "--stop", "-o", "json", "-p", m.t.pid, "--allow",
	    "stray", "--error-exitcode", "9"));
	say(&m.t.run, "a\n");
	(void)target_done(&m.t.run);
	target_end(&m.t, 7);
	finish_status(&m.w, &o, 0);
	assert_int_equal(count_of(&o, "hit"), 1);
	assert_int_equal(count_of(&o, "watch"), 2);
	hit = first_of(&o, "hit");
	assert_int_equal(strtoull(text_of(hit, "addr"), NULL, 16), m.items +
	    ITEM + ITEM / 2);
	assert_string_equal(text_of(hit, "old"), "0x0");
	assert_string_equal(text_of(hit, "new"), "0x1");
	assert_lacks(o.out, "gap_us");
}

/* Not all threads can be held: nobody knows what those write meanwhile. */
TEST(what_runs_on_is_a_gap)
{
	struct moving m;
	struct outcome o;

	start_moving(&m, "vfork");
	watch_start(&m.w, LIST(watchctl(), "-w", "box->item->count",
	    "--follow", "--stop", "-o", "json", "-p", m.t.pid, "--allow",
	    "touch", "--error-exitcode", "9"));
	say(&m.t.run, "s\n");
	(void)target_done(&m.t.run);
	target_end(&m.t, 7);
	finish_status(&m.w, &o, 120);
	if (gaps_of(&o) != 1)
		fail_msg("%zu gaps: %s", gaps_of(&o), o.err);
}

/* Null pointers are waited for; a gap is no green exit. */
TEST(waits_for_a_null_pointer)
{
	struct moving m;
	struct outcome o;
	char line[4096];

	start_moving(&m, "null");
	watch_hear(&m.w, LIST(watchctl(), "-w", "box->item->count",
	    "--follow", "-o", "json", "-p", m.t.pid, "--allow", "touch",
	    "--error-exitcode", "9"), line);
	assert_holds(line, "\"pending\":true");
	assert_lacks(line, "\"addr\"");
	step(&m, "k\n", NOWHERE);
	step(&m, "i\n", 0);
	step(&m, "k\n", 0);
	expect_all(&m, &o);
	assert_int_equal(o.status, 120);
	assert_holds(o.err, "after a pointer on the way to it had " "changed");
}

/* Whether it ends green if a pointer is written so, by n hits or with the
   victim; both: by that way two SPECs are followed, and each takes two
   slots. */
static void
expect_status(const char *argument, bool both, const char *what, const char *n,
    int status)
{
	struct moving m;
	struct outcome o;

	start_moving(&m, argument);
	watch_start(&m.w, LIST(watchctl(), "-w", both ?
	    "boxes[0].item->count" : "box->item->count", "--follow", "-o",
	    "json", "-p", m.t.pid, "--allow", "touch", "--allow", "stray",
	    "--error-exitcode", "9", "-n", n, both ? "-w" : NULL,
	    "boxes[0].item->name"));
	say(&m.t.run, what);
	(void)target_done(&m.t.run);
	if (strcmp(n, "4") != 0)
		target_end(&m.t, 7);
	finish(&m.w, &o);
	if (strcmp(n, "4") == 0)
		target_end(&m.t, 7);
	if (o.status != status || (gaps_of(&o) > 0) != (status == 120))
		fail_msg("status %d, %zu gaps: %s", o.status, gaps_of(&o),
		    o.err);
}

TEST(changed_and_changed_back)
{
	expect_status(NULL, false, "a\n", "99", 120);
	expect_status("null", false, "a\n", "99", 120);
}

/* It is looked at while the process runs, at the latest at the end. */
TEST(a_pointer_is_written_unchanged)
{
	expect_status(NULL, false, "s\nk\n", "4", 0);
}

/* Two SPECs whose way leads through the same pointer: each write to it is
   recorded for both, and is one. */
TEST(a_write_recorded_twice_is_one)
{
	expect_status(NULL, true, "s\nk\n", "4", 0);
	expect_status("null", true, "a\n", "99", 120);
}

/* A member of what follows in this text. */
static double
number_in(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	if (at == NULL)
		fail_msg("no %s in %s", name, text);
	return strtod(at + strlen(name), NULL);
}

/* A command's pointer is null until it is written: there is no gap before. */
TEST(a_gap_begins_with_a_write)
{
	struct outcome o;
	const char *move;
	double gap;

	run(&o, LIST(watchctl(), "-w", "late->count", "--follow", "-o", "json",
	    "-O", "-", "--", victim("moving")));
	/* the victim speaks, too */
	move = strstr(o.out, "\"event\":\"retarget\"");
	if (move == NULL)
		fail_msg("it has not moved: %s", o.out);
	gap = number_in(move, "\"gap_us\":");
	if (number_in(move, "\"time\":") * 1e6 - gap < 50)
		fail_msg("it began before the command: %s", o.out);
}

/* From a command's start on, before its thread is there that writes. */
static void
expect_command_is_followed(const char *how)
{
	struct running w;
	struct outcome o;
	size_t n = 0;

	start(&w, LIST(watchctl(), "-w", "box->item->count", "--follow", how,
	    "-o", "json", "-O", "-", "--", victim("moving")));
	say(&w, "k\nk\ne\n");
	finish_status(&w, &o, 7);
	/* the victim speaks, too */
	for (const char *p = o.out; (p = strstr(p, "\"type\":\"hit\"")) != NULL;
	    p++)
		n++;
	assert_int_equal(n, 6);
}

TEST(a_command_is_followed)
{
	expect_command_is_followed("--follow");
	expect_command_is_followed("--stop");
}

TEST(three_pointers_and_no_more)
{
	static const struct {
		const char *spec, *words;
	} rows[] = {
		{"chain_first->next->next->next->value", "4 pointers lead "
		    "there, each of which takes a slot, as does the object, "
		    "and there are 4"},
		{"item[chosen].count", "'chosen' is no pointer, and what it is "
		    "decides which object is meant"},
		{"chain_first->next->next", NULL},
		{"chain_first->next->next->value", NULL},
	};
	struct target t;

	target_start(&t, LIST(victim("moving")));
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct outcome o;

		run(&o, LIST(watchctl(), "-w", rows[i].spec, "--follow", "-t",
		    "0.05", "-p", t.pid));
		assert_int_equal(o.status, rows[i].words != NULL ? 125 : 0);
		if (rows[i].words != NULL &&
		    strstr(o.err, rows[i].words) == NULL)
			fail_msg("%s: %s", rows[i].spec, o.err);
	}
	/* the others leave no slot for the last pointer */
	for (size_t i = 0; i < 2; i++) {
		struct outcome o;

		run_status(&o, 125, LIST(watchctl(), "-w",
		    "chain_first->next->next->value", "-w", "times", "--follow",
		    i == 0 ? "--follow" : "--stop", "-p", t.pid));
		assert_holds(o.err, "take 5 slots together");
	}
	live_await_free_slots(t.run.pid, live_features.caps.slots);
	target_end(&t, 7);
}

RUN_LIVE_TESTS()
