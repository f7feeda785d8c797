/* type: what the command reports of a victim's variables and their values. */
#include "test.h"

#include <unistd.h>

#include "live.h"
#include "watching.h"

/* What the victim changes, in this order. */
static const struct {
	const char *path, *type, *old, *new;	/* of pointers: from '<' on */
} changes[] = {
	{"conn.state", "enum state", "CONN_OPEN", "CONN_CLOSED"},
	{"bits", "unsigned int", "{on = 1, mode = 5}", "{on = 1, mode = 2}"},
	{"ratio", "float", "0.1", "2.5"},
	{"second", "struct conn *", "<conns[1]>", "<conns[2]>"},
};
enum { CHANGES = COUNT(changes) };

#define WATCHES "-w", "conn:4", "-w", "bits:2", "-w", "ratio", "-w", "second"

static void
expect_text(const json_t *hit, const char *key, const char *text)
{
	const char *found = text_of(hit, key);

	if (*text == '<') {
		assert_int_equal(strncmp(found, "0x", 2), 0);
		assert_non_null(strchr(found, '<'));
		found = strchr(found, '<');
	}
	assert_string_equal(found, text);
}

static void
expect_changes(const struct outcome *o)
{
	unsigned n = 0;
	size_t i;
	json_t *line;

	expect_hits(o, CHANGES);
	each_hit(o, i, line) {
		assert_true(n < CHANGES);
		assert_string_equal(text_of(line, "path"), changes[n].path);
		assert_string_equal(text_of(line, "value_type"),
		    changes[n].type);
		expect_text(line, "old_text", changes[n].old);
		expect_text(line, "new_text", changes[n].new);
		n++;
	}
	assert_int_equal(n, CHANGES);
}

static void
typed_start(struct target *t)
{
	target_start(t, LIST(victim("typed")));
}

TEST(reports_typed_values)
{
	struct target t;
	struct running w;
	struct outcome o;

	typed_start(&t);
	watch_start(&w, LIST(watchctl(), WATCHES, "-o", "json", "-p", t.pid));
	assert_int_equal(target_act(&t), CHANGES);
	target_end(&t, 7);
	finish_status(&w, &o, 0);
	expect_changes(&o);
}

TEST(reports_readers)
{
	struct target t;
	struct running w;
	struct outcome o;

	typed_start(&t);
	start(&w, LIST(watchctl(), WATCHES, "-p", t.pid));
	await(w.out, "1 thread");
	assert_int_equal(target_act(&t), CHANGES);
	target_end(&t, 7);
	finish_status(&w, &o, 0);
	assert_holds(o.out, "conn.state: CONN_OPEN -> CONN_CLOSED");
	assert_holds(o.out, "{on = 1, mode = 5} -> {on = 1, mode = 2}");
	assert_holds(o.out, " 0.1 -> 2.5");
	assert_holds(o.out, "<conns[1]> -> ");
}

RUN_LIVE_TESTS()
