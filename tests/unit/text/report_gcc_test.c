/* report_gcc: a line for each hit, as editors read a compiler's warnings. */
#include "test.h"

#include <unistd.h>

#include "made_hits.h"

static const struct report_end ended = {.hits = 1};

TEST(names_the_place_to_blame)
{
	static const struct ex_frame copied[] = {
		{.function = "memcpy", .module = &made_libc, .file = "memcpy.S",
		 .line = 5},
		{.function = "store", .module = &made_victim, .file = "s.c",
		 .line = 7},
	};
	static const struct ex_stack copy =
	    MADE_STACK(7, 7, copied, EX_END_OUTERMOST);
	struct ex_hit hits[] = {
		made_hit(1), made_kernel_hit(2), made_hit(3), made_hit(4),
		made_hit(5), made_tail_hit(6),
	};
	struct made_report m;

	hits[2].stack = &copy;
	hits[2].source = EX_VALUE_LATER;
	hits[2].old.known = 0;
	hits[3].late = true;
	hits[4].stray = true;
	hits[4].new = hits[4].old;
	hits[4].unchanged = true;
	made_open(&m, &report_gcc);
	assert_int_equal(report_gcc.start(&m.report, &made_start), 0);
	made_hits(&m, hits, COUNT(hits));
	assert_int_equal(report_gcc.lost(&m.report, 3), 0);
	assert_int_equal(report_gcc.warning(&m.report, "a\nb"), 0);
	assert_int_equal(report_gcc.flush(&m.report), 0);
	assert_int_equal(m.report.written, COUNT(hits));
	made_close(&m, &ended);
	assert_string_equal(m.text,
	    "victim.c:10:3: warning: counter: 41 -> 42 by bump\n"
	    "(no module): warning: 0x4040c0:64: write by 0x12340\n"
	    "s.c:7:1: warning: counter: -> 42 (value read later) by store\n"
	    "watchctl: warning: counter: 41 -> 42, delivered late\n"
	    "victim.c:10:3: warning: counter: 41 (unchanged) by bump (stray)\n"
	    "victim.c:3:1: warning: counter: 41 -> 42 by set (unjudged)\n"
	    "lost 3 hits here\n"
	    "watchctl: warning: a\\nb\n");
}

TEST(names_the_member_that_was_hit)
{
	struct ex_hit hits[] = {made_hit(1), made_hit(2)};
	struct made_report m;

	hits[0].process = hits[1].process = MADE_PROCESS;
	made_open(&m, &report_gcc);
	assert_int_equal(report_gcc.start(&m.report, &made_start), 0);
	made_object.path = "counter.state";
	made_hits(&m, hits, 1);
	made_object.path = "counter";
	made_hits(&m, hits + 1, 1);
	made_close(&m, &ended);
	assert_string_equal(m.text,
	    "victim.c:10:3: warning: counter: counter.state: <41> -> <42> by "
	    "bump\n"
	    "victim.c:10:3: warning: counter: <41> -> <42> by bump\n");
}

TEST(shows_what_hostile_names_hold)
{
	const struct ex_hit hit = made_evil_hit(1);
	struct made_report m;

	made_write(&m, &report_gcc, &made_start, &hit, 1, &ended);
	assert_visible(m.text);
	assert_string_equal(strchr(m.text, '\n'), "\n");
}

TEST(names_files_from_the_current_directory)
{
	char directory[4096], path[8192];
	struct ex_frame frame = made_plain_frames[0];
	const struct ex_stack stack = {.id = 1, .n = 1, .frame = &frame,
	    .end = EX_END_OUTERMOST};
	struct ex_hit hit = made_hit(1);
	struct made_report m;

	assert_non_null(getcwd(directory, sizeof(directory)));
	(void)snprintf(path, sizeof(path), "%s/src/it.c", directory);
	frame.file = path;
	hit.stack = &stack;
	made_write(&m, &report_gcc, &made_start, &hit, 1, &ended);
	assert_string_equal(m.text,
	    "src/it.c:10:3: warning: counter: 41 -> 42 by bump\n");
}

RUN_TESTS()
