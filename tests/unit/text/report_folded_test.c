/* report_folded: lines that flamegraph tools read. */
#include "test.h"

#include <regex.h>

#include "made_hits.h"

static const struct report_end ended = {.hits = 1};

/* Each line: names without blanks or controls between ';', then a count. */
static void
assert_folded(char *text)
{
	regex_t folded;

	assert_int_equal(regcomp(&folded,
	    "^[^;[:space:][:cntrl:]]+(;[^;[:space:][:cntrl:]]+)+ [1-9][0-9]*$",
	    REG_EXTENDED | REG_NOSUB), 0);
	for (char *line = text; *line != '\0';) {
		char *end = strchr(line, '\n');

		assert_non_null(end);
		*end = '\0';
		if (regexec(&folded, line, 0, NULL, 0) != 0)
			fail_msg("not folded: \"%s\"", line);
		*end = '\n';
		line = end + 1;
	}
	regfree(&folded);
}

TEST(folds)
{
	struct ex_hit hits[] = {
		made_hit(1), made_kernel_hit(2), made_hit(3), made_hit(4),
		made_evil_hit(5), made_hit(6),
	};
	struct made_report m;

	/* a thread name has its own line, a thread or a watch has not */
	(void)strcpy(hits[2].comm, "a worker");
	hits[3].tid = 1;
	hits[5].watch = &made_watches[1];
	made_open(&m, &report_folded);
	assert_int_equal(report_folded.start(&m.report, &made_start), 0);
	made_hits(&m, hits, 6);
	made_close(&m, &ended);
	assert_visible(m.text);
	assert_folded(m.text);
#define EVIL "a\\x1b[2Jb\\n\"\\c\\xff\\xc0\\xaf\\t\\x7f\\u202e:d_e"
	assert_string_equal(m.text,
	    "[unknown];[truncated];[unknown];[libc.so.6];ksys_read_[k] 1\n"
	    EVIL ";[" EVIL "];" EVIL " 1\n"
	    "a_worker;__libc_start_call_main;main;ns::level<int,_long>_[i];"
	    "bump 1\n"
	    "victim;__libc_start_call_main;main;ns::level<int,_long>_[i];"
	    "bump 3\n");
}

/* The backtrace shows where the signal was unblocked. */
TEST(blames_no_function_for_late_hits)
{
	struct ex_hit hits[] = {made_hit(1), made_hit(2), made_hit(3)};
	struct made_report m;

	hits[1].late = hits[2].late = true;
	hits[2].stack = &made_tails;
	made_open(&m, &report_folded);
	assert_int_equal(report_folded.start(&m.report, &made_start), 0);
	made_hits(&m, hits, 3);
	made_close(&m, &ended);
	assert_folded(m.text);
	assert_string_equal(m.text, "victim;[late] 2\n"
	    "victim;__libc_start_call_main;main;ns::level<int,_long>_[i];"
	    "bump 1\n");
}

TEST(names_what_has_no_name)
{
	static const struct ex_module vdso = {"[vdso]", ""};
	static const struct ex_frame frames[] = {
		{.kernel = true}, {.module = &vdso}, {.function = ""},
	};
	static const struct ex_stack stack =
	    MADE_STACK(1, 0, frames, EX_END_OUTERMOST);
	struct ex_hit hit = made_hit(1);
	struct made_report m;

	hit.stack = &stack;
	made_write(&m, &report_folded, &made_start, &hit, 1, &ended);
	assert_folded(m.text);
	assert_string_equal(m.text, "victim;[unknown];[vdso];[kernel]_[k] 1\n");
}

TEST(writes_nothing_for_no_hits)
{
	struct ex_hit hit = made_hit(1);
	struct made_report m;

	made_write(&m, &report_folded, &made_start, NULL, 0, &ended);
	assert_int_equal(m.len, 0);
	/* nor when it is given up */
	made_write(&m, &report_folded, &made_start, &hit, 1, NULL);
	assert_int_equal(m.len, 0);
}

RUN_TESTS()
