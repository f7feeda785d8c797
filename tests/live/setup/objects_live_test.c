/*
 * objects: what a function returns is watched from there on until it is freed.
 * The victim writes 1, 2 and 3 to each object.
 */
#include "test.h"

#include "attach/target.h"
#include "live.h"
#include "uprobes.h"
#include "watching.h"

enum { OBJECTS = 12, WRITES = 3 };

/* What the report says of each object. */
struct seen {
	double made, freed;	/* s; 0: it does not */
	unsigned long long addr;
	double reused;		/* when its memory was, s; 0: it does not */
	bool gap;		/* it was not watched at once */
	unsigned hits;
};

static struct seen *
object_of(struct seen seen[OBJECTS + 1], const json_t *line)
{
	const json_int_t number = number_of(line, "object");

	assert_in_range(number, 1, OBJECTS);
	return &seen[number];
}

static double
time_of(const json_t *line)
{
	return json_number_value(json_object_get(line, "time"));
}

static void
take_event(struct seen seen[OBJECTS + 1], const json_t *line)
{
	struct seen *s = object_of(seen, line);

	assert_int_equal(number_of(line, "watch"), 1);
	assert_true(number_of(line, "pid") == number_of(line, "tid"));
	if (strcmp(text_of(line, "event"), "new") == 0) {
		assert_true(s->made == 0);
		s->made = time_of(line);
		s->addr = hex_of(line, "addr");
	} else if (strcmp(text_of(line, "event"), "freed") == 0) {
		assert_true(s->made != 0 && s->freed == 0);
		assert_int_equal(hex_of(line, "addr"), s->addr);
		s->freed = time_of(line);
	} else {
		assert_string_equal(text_of(line, "event"), "reused");
		assert_true(s->freed != 0 && s->reused == 0);
		s->reused = time_of(line);
	}
}

/* The one that was there then. */
static void
take_gap(struct seen seen[OBJECTS + 1], const json_t *line)
{
	const double gap = json_number_value(json_object_get(line, "gap_us"));
	const double made = time_of(line) - gap / 1e6;

	assert_string_equal(text_of(line, "event"), "armed");
	for (unsigned i = 1; i <= OBJECTS; i++)
		if (made > seen[i].made - 2e-6 && made < seen[i].made + 2e-6)
			seen[i].gap = true;
}

/* A hit is one of the writes, in their order, while its object was there. */
static void
take_hit(struct seen seen[OBJECTS + 1], const json_t *hit)
{
	struct seen *s = object_of(seen, hit);
	const uint64_t value = hex_of(hit, "new");

	s->hits++;
	assert_true(time_of(hit) >= s->made && s->made != 0);
	assert_true(s->freed == 0 || time_of(hit) <= s->freed);
	assert_int_equal(hex_of(hit, "addr"), s->addr);
	assert_int_equal(number_of(hit, "watch"), 1);
	expect_function(hit, 0, "item_set");
	if (s->gap)
		assert_in_range(value, s->hits, WRITES);
	else
		assert_int_equal(value, s->hits);
}

static void
take_report(const struct outcome *o, struct seen seen[OBJECTS + 1])
{
	size_t i;
	json_t *line;

	memset(seen, 0, (OBJECTS + 1) * sizeof(*seen));
	json_array_foreach(o->lines, i, line)
		if (strcmp(text_of(line, "type"), "object") == 0)
			take_event(seen, line);
	json_array_foreach(o->lines, i, line)
		if (strcmp(text_of(line, "type"), "watch") == 0)
			take_gap(seen, line);
	each_hit(o, i, line)
		take_hit(seen, line);
}

static json_t *
coverage_of(const struct outcome *o)
{
	return first_of(o, "coverage");
}

/* Let it make all of them, and end. */
static void
let_make(struct target *t, const char *go)
{
	say(&t->run, go);
	assert_int_equal(target_done(&t->run), OBJECTS);
	target_end(t, 7);
}

/* Let it make some, each for so long. */
static void
watch_objects(const char *spec, const char *go, struct outcome *o)
{
	struct target t;
	struct running w;

	target_start(&t, LIST(victim("objects")));
	watch_target(&w, &t, "-w", spec, NULL);
	let_make(&t, go);
	finish_status(&w, o, 0);
}

/* Each access between the return and the free is a hit, and none before or
   after. */
TEST(from_the_return_to_the_free)
{
	struct seen seen[OBJECTS + 1];
	struct outcome o;
	unsigned whole = 0, made = 0;
	json_int_t hits = 0;
	double share;

	NEEDS_UPROBES;
	watch_objects("alloc:item_new:8", "go 12 6000\n", &o);
	take_report(&o, seen);
	for (unsigned i = 1; i <= OBJECTS; i++) {
		made += seen[i].made != 0;
		hits += seen[i].hits;
		assert_true(seen[i].made != 0 || seen[i].hits == 0);
		assert_true((seen[i].made != 0) == (seen[i].freed != 0));
		if (seen[i].made == 0 || seen[i].gap)
			continue;
		whole++;
		assert_int_equal(seen[i].hits, WRITES);
	}
	print_message("%u of %u were watched, %u from the first\n", made,
	    (unsigned)OBJECTS, whole);
	assert_true(made > 0);
	assert_int_equal(number_of(coverage_of(&o), "objects"), OBJECTS);
	assert_int_equal(number_of(coverage_of(&o), "hits"), hits);
	share = json_number_value(json_object_get(coverage_of(&o), "share"));
	assert_true(share > 0 && share <= 1);
	assert_int_equal(number_of(first_of(&o, "end"), "lost"), 0);
}

/* Whether a line's backtrace has a function. */
static bool
has_function(const json_t *of, const char *name)
{
	size_t i;
	json_t *frame;

	json_array_foreach(json_object_get(of, "frames"), i, frame)
		if (json_object_get(frame, "function") != NULL &&
		    strcmp(text_of(frame, "function"), name) == 0)
			return true;
	return false;
}

/* Where it was made, and where it was freed. */
TEST(backtraces)
{
	struct outcome o;
	size_t i;
	json_t *line;
	unsigned made = 0, freed = 0;

	NEEDS_UPROBES;
	watch_objects("alloc:item_new:8", "go 12 6000\n", &o);
	json_array_foreach(o.lines, i, line) {
		if (strcmp(text_of(line, "type"), "object") != 0)
			continue;
		if (strcmp(text_of(line, "event"), "new") == 0) {
			made++;
			assert_int_equal(number_of(line, "size"), 48);
			assert_true(has_function(line, "main"));
			assert_false(has_function(line, "item_free"));
		} else {
			freed++;
			assert_true(has_function(line, "item_free"));
			assert_true(has_function(line, "main"));
		}
	}
	assert_true(made > 0 && made == freed);
}

/* The function's type says where a member is. */
TEST(members)
{
	unsigned long long at[OBJECTS + 1] = {0};
	struct outcome o;
	unsigned hits = 0;
	size_t i;
	json_t *line;

	NEEDS_UPROBES;
	watch_objects("alloc:item_new->more[1]", "go 12 6000\n", &o);
	json_array_foreach(o.lines, i, line)
		if (strcmp(text_of(line, "type"), "object") == 0)
			at[number_of(line, "object")] = hex_of(line, "addr");
	each_hit(&o, i, line) {
		hits++;
		assert_int_equal(hex_of(line, "addr"),
		    at[number_of(line, "object")] + 16);
		assert_int_equal(number_of(line, "len"), 8);
		expect_function(line, 0, "item_set");
	}
	assert_true(hits > 0);
}

/* What is written between the free and the next owner is a use after free, with
   where it was freed; what the allocator and the next owner write is no hit. */
static void
expect_uses_after_free(const struct outcome *o, const char *freer)
{
	struct seen seen[OBJECTS + 1] = {{0}};
	unsigned uses = 0, reused = 0;
	size_t i;
	json_t *line;

	json_array_foreach(o->lines, i, line)
		if (strcmp(text_of(line, "type"), "object") == 0)
			take_event(seen, line);
	for (i = 1; i <= OBJECTS; i++)
		reused += seen[i].reused != 0;
	each_hit(o, i, line) {
		const struct seen *s = object_of(seen, line);
		const json_t *freed = json_object_get(line, "freed");
		const uint64_t value = hex_of(line, "new");

		assert_in_range(value, 1, 4);
		expect_function(line, 0, "item_set");
		if ((freed != NULL) != (value == 4))
			fail_msg("%s", json_dumps(line, 0));
		assert_true((json_object_get(line, "after_free") != NULL) ==
		    (value == 4));
		if (value != 4)
			continue;
		uses++;
		assert_true(time_of(freed) == s->freed);
		assert_true(time_of(line) > s->freed);
		assert_true(s->reused == 0 || time_of(line) < s->reused);
		assert_true(has_function(freed, freer));
		assert_true(json_object_get(freed, "stack") != NULL);
	}
	print_message("%u uses, %u handed out again\n", uses, reused);
	assert_true(uses > 0 && reused > 0);
	assert_int_equal(number_of(first_of(o, "end"), "lost"), 0);
}

/* A realloc for which there is no memory frees nothing. */
TEST(after_it_is_freed)
{
	struct outcome o;
	struct target t;
	struct running w;

	NEEDS_UPROBES;
	target_start(&t, LIST(victim("objects")));
	watch_target(&w, &t, "-w", "alloc:item_new->value", "--after-free");
	let_make(&t, "late 12 30000\n");
	finish(&w, &o);
	expect_uses_after_free(&o, "item_free");
}

/* One that the program has itself, to which the object is the second
   argument. */
TEST(an_allocator_of_its_own)
{
	struct outcome o;
	struct target t;
	struct running w;

	NEEDS_UPROBES;
	target_start(&t, LIST(victim("objects")));
	watch_start(&w, LIST(watchctl(), "-w", "alloc:pool_take->value",
	    "--after-free", "--free-function", "pool_put", "-o", "json", "-p",
	    t.pid));
	let_make(&t, "pool 12 30000\n");
	finish(&w, &o);
	expect_uses_after_free(&o, "pool_put");
}

TEST(text_after_it_is_freed)
{
	struct running w;
	struct outcome o;

	NEEDS_UPROBES;
	start(&w, LIST(watchctl(), "-w", "alloc:item_new->value",
	    "--after-free", "--", victim("objects")));
	say(&w, "late 12 30000\nend\n");
	finish_status(&w, &o, 7);
	assert_holds(o.err, ", freed (8 bytes at 0x");
	assert_holds(o.err, "     freed by thread ");
	assert_holds(o.err, "  item_free");
	assert_holds(o.err, ": its memory is handed out again by " "thread ");
}

TEST(the_one_of_a_number)
{
	struct seen seen[OBJECTS + 1];
	struct outcome o;

	NEEDS_UPROBES;
	watch_objects("alloc:item_new#7:8", "go 12 6000\n", &o);
	take_report(&o, seen);
	for (unsigned i = 1; i <= OBJECTS; i++)
		assert_int_equal(seen[i].made != 0, i == 7);
	assert_true(seen[7].freed > seen[7].made);
	if (!seen[7].gap)
		assert_int_equal(seen[7].hits, WRITES);
	assert_int_equal(number_of(coverage_of(&o), "objects"), OBJECTS);
}

/* A command, from its first object on; and what nobody writes has no hits. */
TEST(text)
{
	struct running w;
	struct outcome o;

	NEEDS_UPROBES;
	start(&w, LIST(watchctl(), "-w", "alloc:item_new+8:8", "--",
	    victim("objects")));
	await(w.err, "watching alloc:item_new+8:8 (when it is there) for "
	    "writes");
	say(&w, "go 2 30000\nend\n");
	finish_status(&w, &o, 7);
	assert_holds(o.err, "object 1 of alloc:item_new+8:8 at 0x");
	assert_holds(o.err, ": made by thread ");
	assert_holds(o.err, ": freed by thread ");
	assert_holds(o.err, "  alloc:item_new+8:8: 2 objects, of " "which ");
	assert_holds(o.err, "watchctl: 0 hits, 0 reported, 0 lost");
}

/* A write that is stray is judged, and that objects were not all watched is no
   reason for 120; that none was is one.  They live for so long that one is
   watched also where watchctl has no right to run before others. */
TEST(statuses)
{
	static const struct {
		const char *spec, *go;
		int status;
	} runs[] = {
		{"alloc:item_new:8", "go 12 30000\n", 66},
		{"alloc:item_new+8:8", "go 12 30000\n", 7},
		{"alloc:item_new#9:8", "go 2 1000\n", 120},
	};

	NEEDS_UPROBES;
	for (size_t i = 0; i < COUNT(runs); i++) {
		struct running w;
		struct outcome o;

		start(&w, LIST(watchctl(), "-w", runs[i].spec, "--allow",
		    "item_free", "--error-exitcode", "66", "-o", "json", "-O",
		    "/dev/null", victim("objects")));
		say(&w, runs[i].go);
		say(&w, "end\n");
		finish(&w, &o);
		if (o.status != runs[i].status)
			fail_msg("%s: %d: %s", runs[i].spec, o.status, o.err);
	}
}

TEST(bad_input)
{
	static const struct {
		const char *spec, *line;
	} bad[] = {
		{"alloc:item_neu", "no symbol 'item_neu'"},
		{"alloc:item_new:64", "take 8 slots"},
		{"alloc:item_new->valeu", "struct item has no member 'valeu', "
		    "nearest: value; give +OFF:LEN for what its type has not "
		    "(column 17)"},
		{"alloc:item_new#2->more.x", "'item_new#2->more' is of type "
		    "long[5]: that has no members (column 24)"},
		{"alloc:item_new->", "a member's name is expected"},
		{"alloc:item_new->value+1",
		    "an operator, or :LEN, is expected"},
		{"alloc:main->x", "'main' is of type int: it returns no "
		    "pointer"},
		{"alloc:malloc->x", "'malloc' "},
		{"alloc:none.so!f", "none.so"},
	}, names[] = {
		{"pool_putt", "no symbol 'pool_putt'"},
		{"0x1000", "--free-function 0x1000: give the name of a "
		    "function"},
		{"pool_put+4", "give the name of a function"},
		{"", "--free-function: "},
	};
	struct target t;

	NEEDS_UPROBES;
	target_start(&t, LIST(victim("objects")));
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct outcome o;

		run_status(&o, 125, LIST(watchctl(), "-w", bad[i].spec, "-p",
		    t.pid));
		if (strstr(o.err, bad[i].line) == NULL)
			fail_msg("%s: %s", bad[i].spec, o.err);
	}
	for (size_t i = 0; i < COUNT(names); i++) {
		struct outcome o;

		run_status(&o, 125, LIST(watchctl(), "-w", "alloc:item_new",
		    "--free-function", names[i].spec, "-p", t.pid));
		if (strstr(o.err, names[i].line) == NULL)
			fail_msg("%s: %s", names[i].spec, o.err);
	}
	target_end(&t, 7);
}

RUN_LIVE_TESTS()
