/*
 * arguments: execution watches, of a function with its arguments, and of a
 * line.  The same program with and without optimization: in registers, in
 * memory of the function's own, and on the stack.
 */
#include "test.h"

#include "live.h"
#include "watching.h"

enum { CALLS = 3 };

static const char *const programs[] = {"arguments", "arguments_plain"};

/* Its status is its own, whatever is watched. */
static void
watch_program(struct outcome *o, const char *name, const char *spec)
{
	run(o, LIST(watchctl(), "-x", spec, "-o", "json", "-O", "-", "--",
	    victim(name)));
	if (o->status != 3)
		fail_msg("%s %s: %d %s", name, spec, o->status, o->err);
}

/* "n:int:-5:0xfffffffb ...": text is compared without an address's digits. */
static void
put_arguments(const json_t *hit, char *text, size_t size)
{
	const json_t *args = json_object_get(hit, "args"), *arg;
	size_t i, len = 0;

	*text = '\0';
	json_array_foreach(args, i, arg) {
		const char *value = maybe_text(arg, "text");
		const char *name = strchr(value, '<');

		len += (size_t)snprintf(text + len, size - len, "%s%s:%s:%s",
		    i > 0 ? " " : "", text_of(arg, "name"),
		    text_of(arg, "type"), name != NULL ? name : value);
	}
}

static void
expect_arguments(const struct outcome *o, size_t i, const char *want)
{
	char got[1024];

	put_arguments(hit_at(o, i), got, sizeof(got));
	if (strcmp(got, want) != 0)
		fail_msg("hit %zu: want %s\ngot %s", i, want, got);
}

/* Hits alternate: one by main, and one by many. */
static void
expect_combine(const char *program)
{
	struct outcome o;

	watch_program(&o, program, "combine");
	expect_hits(&o, 2 * CALLS);
	for (int i = 0; i < CALLS; i++) {
		char want[256];

		(void)snprintf(want, sizeof(want), "n:int:%d "
		    "p:long *:<word> c:enum color:GREEN "
		    "at:struct point:{x = %d, y = %d} "
		    "letter:char:'x' (120) last:long:%d", i - 5, i, -i, i);
		expect_arguments(&o, (size_t)i * 2, want);
		expect_arguments(&o, (size_t)i * 2 + 1, "n:int:-9 "
		    "p:long *:<word> c:enum color:RED "
		    "at:struct point:{x = 1, y = 2} "
		    "letter:char:'a' (97) last:long:-9");
		expect_function(hit_at(&o, (size_t)i), 0, "combine");
	}
	assert_string_equal(text_of(json_array_get(json_object_get(
	    hit_at(&o, 0), "args"), 0), "value"), "0xfffffffb");
}

TEST(a_function_with_its_arguments)
{
	for (size_t k = 0; k < COUNT(programs); k++)
		expect_combine(programs[k]);
}

/* Its lists of locations are unpacked. */
TEST(a_function_with_packed_debug_information)
{
	expect_combine("arguments_packed");
}

static void
expect_many(const char *program, const char *want)
{
	struct outcome o;

	watch_program(&o, program, "many");
	expect_hits(&o, CALLS);
	for (size_t i = 0; i < CALLS; i++)
		expect_arguments(&o, i, want);
}

/* What a vector register has was not captured: that one is left out, where it
   is only there. */
TEST(arguments_on_the_stack)
{
	static const char on_stack[] = "a:long:1 b:long:2 c:long:3 d:long:4 "
	    "e:long:5 ratio:double:0.5 f:_Bool:true g:long:7 "
	    "h:unsigned char:8 i:long:-9";

	expect_many("arguments", "a:long:1 b:long:2 c:long:3 d:long:4 "
	    "e:long:5 f:_Bool:true g:long:7 h:unsigned char:8 i:long:-9");
	expect_many("arguments_plain", on_stack);
	/* one line table has a sequence for each function: one ends where the
	   next begins */
	expect_many("arguments_sections", on_stack);
}

/* Without arguments, and behind its beginning, a function has none. */
TEST(no_arguments)
{
	struct outcome o;

	for (size_t k = 0; k < COUNT(programs); k++) {
		watch_program(&o, programs[k], "none");
		expect_hits(&o, CALLS);
		assert_null(json_object_get(hit_at(&o, 0), "args"));
	}
	/* where memory of its own has not got them */
	watch_program(&o, "arguments_plain", "combine+0");
	expect_hits(&o, 2 * CALLS);
	assert_null(json_object_get(hit_at(&o, 0), "args"));
}

/* The function is found where gdb breaks. */
TEST(behind_the_prologue_as_gdb)
{
	for (size_t k = 0; k < COUNT(programs); k++) {
		struct outcome o, g;
		const char *at, *start;
		char addr[64];

		run(&g, LIST("/usr/bin/gdb", "-q", "-nx", "-batch", "-iex",
		    "set debuginfod enabled off", "-ex", "break combine", "-ex",
		    "run", "-ex", "print/x (long)$pc - (long)combine", "-ex",
		    "kill", victim(programs[k])));
		at = strstr(g.out, "$1 = ");
		if (at == NULL)
			fail_msg("gdb: %s%s", g.out, g.err);
		watch_program(&o, programs[k], "combine");
		start = text_of(frame_of(hit_at(&o, 0), 0), "pc");
		(void)snprintf(addr, sizeof(addr), "%#llx", (unsigned long long)
		    number_of(frame_of(hit_at(&o, 0), 0), "offset"));
		assert_non_null(start);
		if (strncmp(at + strlen("$1 = "), addr, strlen(addr)) != 0)
			fail_msg("%s: +%s, gdb: %s", programs[k], addr, at);
	}
}

/* Of a line that is in two places each takes a slot. */
TEST(a_line)
{
	static const struct {
		const char *spec;
		json_int_t slots, hits;
	} rows[] = {
		{"places.c:109", 1, CALLS},
		{"places.c:103", 2, 2 * CALLS},
	};
	const json_t *watches;

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct outcome o;

		watch_program(&o, "arguments_plain", rows[i].spec);
		expect_hits(&o, rows[i].hits);
		watches = json_object_get(first_of(&o, "start"), "watches");
		assert_int_equal(number_of(json_array_get(watches, 0),
		    "slots"), rows[i].slots);
	}
}

TEST(a_line_in_text)
{
	struct outcome o;

	run_status(&o, 3, LIST(watchctl(), "-x", "places.c:103", "-x",
	    "combine", "-n", "3", "--", victim("arguments_plain")));
	assert_holds(o.err, "#1   execute  combine (at 0x");
	assert_holds(o.err, ")  n = -5, p = 0x");
	assert_holds(o.err, "execute  places.c:103 (at 0x");
}

TEST(lines_that_cannot_be_watched)
{
	static const struct {
		const char *specs[3], *words;
	} rows[] = {
		{{"places.c:101"}, "'places.c:101': this line has no code; the "
		    "next one that has some is 103"},
		{{"places.c:100000"}, "this line has no code, nor has one "
		    "behind it"},
		{{"nowhere.c:5"}, "no debug information has lines of such a "
		    "source file"},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *argv[ARGS] = {watchctl()};
		struct outcome o;
		size_t n = 1;

		for (size_t k = 0; k < 3 && rows[i].specs[k] != NULL; k++) {
			argv[n++] = "-x";
			argv[n++] = rows[i].specs[k];
		}
		argv[n] = victim("arguments_plain");
		run_status(&o, 125, argv);
		if (strstr(o.err, rows[i].words) == NULL)
			fail_msg("want %s, got %s", rows[i].words, o.err);
	}
	/* one place only, from inside */
	{
		struct outcome o;

		run_status(&o, 125, LIST(watchctl(), "--inside", "-x",
		    "places.c:103", victim("arguments_plain")));
		assert_holds(o.err, "--inside takes one for a SPEC");
	}
}

/* Where a thread is stopped at each. */
TEST(arguments_at_stops)
{
	struct outcome o;

	run_status(&o, 3, LIST(watchctl(), "--stop", "-x", "combine", "-x",
	    "places.c:103", "-o", "json", "-O", "-", "--",
	    victim("arguments_plain")));
	expect_hits(&o, 4 * CALLS);
	expect_arguments(&o, 0, "n:int:-5 p:long *:<word> c:enum color:GREEN "
	    "at:struct point:{x = 0, y = 0} letter:char:'x' (120) "
	    "last:long:0");
}

RUN_LIVE_TESTS()
