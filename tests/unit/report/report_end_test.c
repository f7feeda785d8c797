/* report_end: what a form writes at its end goes out in one piece, so that the
   death of its process leaves all of it out, or nothing; and a failure to write
   is reported. */
#include "test.h"

#include <errno.h>

#include "made_hits.h"

enum { STACKS = 8000 };

static size_t writes, written;

static ssize_t
count_write(void *cookie, const char *text, size_t len)
{
	(void)cookie;
	(void)text;
	writes++;
	written += len;
	return (ssize_t)len;
}

/* Hits with so many backtraces; then the end, which takes more room than what
   is held back before it. */
static void
assert_one_piece(const struct report_ops *ops, bool summary_only)
{
	static const cookie_io_functions_t functions = {.write = count_write};
	static const struct report_end end = {.hits = STACKS};
	static struct ex_stack stacks[STACKS];
	struct report report = {
		.ops = ops, .out = fopencookie(NULL, "w", functions),
		.summary_only = summary_only, .stacks_once = summary_only,
		.verbose = true,
	};

	assert_non_null(report.out);
	assert_int_equal(setvbuf(report.out, NULL, _IONBF, 0), 0);
	assert_int_equal(ops->start(&report, &made_start), 0);
	for (unsigned i = 0; i < STACKS; i++) {
		struct ex_hit hit = made_hit(i + 1);

		stacks[i] = made_plain;
		stacks[i].id = stacks[i].index = i + 1;
		hit.stack = &stacks[i];
		assert_int_equal(ops->hit(&report, &hit), 0);
	}
	assert_int_equal(report_flush(&report), 0);
	writes = written = 0;
	report.ending = true;
	assert_int_equal(ops->end(&report, &end), 0);
	assert_int_equal(writes, 1);
	assert_in_range(written, REPORT_WRITE_AT + 1, REPORT_END_WRITE_AT);
	assert_int_equal(fclose(report.out), 0);
}

TEST(ends_in_one_piece)
{
	assert_one_piece(&report_text, false);
	assert_one_piece(&report_text, true);
	assert_one_piece(&report_json, false);
	assert_one_piece(&report_json, true);
	assert_one_piece(&report_folded, false);
}

/* Some forms write nothing before the end. */
TEST(says_when_the_stream_fails)
{
	static const struct report_end end = {.hits = 1};
	static const struct {
		const struct report_ops *ops;
		int start;
	} forms[] = {
		{&report_text, -ENOSPC}, {&report_json, -ENOSPC},
		{&report_trace, -ENOSPC}, {&report_gcc, 0},
		{&report_folded, 0}, {&report_html, 0},
	};

	for (size_t i = 0; i < COUNT(forms); i++) {
		const struct report_ops *ops = forms[i].ops;
		struct report r = {.ops = ops, .out = fopen("/dev/full", "w")};
		struct ex_hit hit = made_hit(1);

		assert_non_null(r.out);
		assert_int_equal(ops->start(&r, &made_start), forms[i].start);
		assert_int_equal(ops->hit(&r, &hit), 0);
		if (forms[i].start < 0)
			assert_int_equal(ops->flush(&r), -ENOSPC);
		assert_int_equal(ops->end(&r, &end), -ENOSPC);
		(void)fclose(r.out);
	}
}

RUN_TESTS()
