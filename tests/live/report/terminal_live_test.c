/*
 * terminal: what is written to one fits its width; what is written elsewhere is
 * whole.
 */
#include "test.h"

#include "live.h"
#include "scratch.h"
#include "terminal.h"
#include "watching.h"

static const char source[] =
	"#include <map>\n"
	"#include <string>\n"
	"#include <vector>\n"
	"long word;\n"
	"template<typename... Kind> struct holder {\n"
	"	__attribute__((noinline))"
	" void store_what_was_given(long value)\n"
	"	{ word = value; }\n"
	"};\n"
	"int main() {\n"
	"	holder<std::map<std::string, std::vector<long>>,\n"
	"	    std::vector<std::string>> all;\n"
	"	for (long i = 1; i < 4; i++)\n"
	"		all.store_what_was_given(i);\n"
	"}\n";

enum { WIDTH = 60 };

/* What is written to a terminal of so many columns: 0: one that does not
   say. */
static void
watch_on_terminal(unsigned short columns, const char *term, struct outcome *o)
{
	run_on_terminal(o, columns, LIST("/usr/bin/env", term, watchctl(), "-w",
	    "word", "--", scratch_path("program")));
	assert_int_equal(o->status, 0);
}

/* How much of a line a terminal shows. */
static size_t
shown(const char *line)
{
	size_t columns = 0;

	for (; *line != '\r' && *line != '\n' && *line != '\0'; line++) {
		if (*line == '\033')
			line = strchr(line, 'm');
		else
			columns++;
	}
	return columns;
}

/* The lines of the hits: from the first one's to the table. */
static size_t
widest_of_hits(const char *text)
{
	const char *end = strstr(text, ": 3 hits, ");
	size_t widest = 0;

	assert_non_null(text = strstr(text, "#1 "));
	assert_non_null(end);
	for (; text < end; text = strchr(text, '\n') + 1)
		widest = shown(text) > widest ? shown(text) : widest;
	return widest;
}

TEST(hits_fit)
{
	struct outcome o;

	watch_on_terminal(WIDTH, "TERM=dumb", &o);
	assert_int_equal(widest_of_hits(o.err), WIDTH);
	assert_holds(o.err, "...\r\n");
	assert_holds(o.err, " holder<...>::store_what_was_given  ");
	assert_lacks(o.err, "\033[");
	watch_on_terminal(WIDTH, "TERM=xterm", &o);
	assert_int_equal(widest_of_hits(o.err), WIDTH);
	assert_holds(o.err, "\033[0m...\r\n");
}

TEST(nothing_is_cut_at_an_unknown_width)
{
	struct outcome o;

	watch_on_terminal(0, "TERM=dumb", &o);
	assert_true(widest_of_hits(o.err) > WIDTH);
	assert_lacks(o.err, "...\r\n");
}

TEST(nothing_is_cut_elsewhere)
{
	struct outcome o;

	run(&o, LIST(watchctl(), "-w", "word", "--", scratch_path("program")));
	assert_true(widest_of_hits(o.err) > WIDTH);
	assert_holds(o.err, " holder<...>::store_what_was_given  ");
	run(&o, LIST(watchctl(), "-w", "word", "-o", "json", "-O",
	    scratch_path("hits"), "--", scratch_path("program")));
	outcome_take(&o, scratch_path("hits"));
	assert_holds(text_of(json_array_get(json_object_get( first_of(&o,
	    "hit"), "frames"), 0), "function"), "std::allocator");
}

static int
begin(void **state)
{
	if (scratch_make(state) != 0)
		return -1;
	scratch_write("program.cc", source);
	scratch_run("g++ -g -O1 -o program program.cc");
	return 0;
}

RUN_LIVE_TESTS(.before_all = begin, .after_all = scratch_remove)
