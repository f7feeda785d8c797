/* report_trace: Trace Event JSON, as Perfetto and speedscope read it. */
#include "test.h"

#include <math.h>

#include "made_hits.h"
#include "report/summary.h"
#include "trace.h"

static const struct report_end ended = {.hits = 3, .reported = 3};

static const json_t *
event_of(const struct trace_contents *t, size_t i)
{
	return json_array_get(json_object_get(t->json, "traceEvents"), i);
}

static const json_t *
argument(const json_t *event, const char *name)
{
	return json_object_get(json_object_get(event, "args"), name);
}

static const char *
text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text == NULL ? "" : text;
}

TEST(has_values_hits_stacks_and_threads)
{
	const struct ex_hit hits[] = {
		made_hit(1), made_hit(2), made_kernel_hit(3),
	};
	struct trace_contents t;
	struct made_report m;

	made_write(&m, &report_trace, &made_start, hits, COUNT(hits), &ended);
	t = trace_check(m.text);
	assert_int_equal(t.names, 1);
	assert_int_equal(t.values, 2);
	assert_int_equal(t.hits, 3);
	assert_int_equal(t.samples, 3);
	assert_string_equal(text_of(event_of(&t, 1), "name"), "counter");
	assert_true(t.last_value == 42);
	assert_string_equal(text_of(event_of(&t, 2), "name"), "bump");
	assert_int_equal(json_integer_value(argument(event_of(&t, 2), "old")),
	    41);
	assert_int_equal(json_integer_value(argument(event_of(&t, 2), "new")),
	    42);
	assert_true(trace_number(event_of(&t, 2), "ts") == 12003417);
	assert_true(fabs(trace_number(event_of(&t, 5), "ts") - 12003417.5) <
	    1e-6);
	/* of backtraces that are the same there is one */
	assert_int_equal(json_object_size(json_object_get(t.json,
	    "stackFrames")), COUNT(made_plain_frames) +
	    COUNT(made_kernel_frames) + 1);
}

TEST(times_never_go_back)
{
	struct ex_hit hits[] = {made_hit(1), made_hit(2), made_hit(3)};
	struct trace_contents t;
	struct made_report m;

	hits[1].time -= 5000;
	hits[2].time = 1;
	made_write(&m, &report_trace, &made_start, hits, COUNT(hits), &ended);
	t = trace_check(m.text);
	assert_int_equal(t.hits, 3);
}

TEST(tracks_only_what_is_proved_and_of_one_object)
{
	struct ex_hit hits[] = {
		made_hit(1), made_hit(2), made_hit(3), made_hit(4),
	};
	struct trace_contents t;
	struct made_report m;

	hits[0].source = EX_VALUE_LATER;
	hits[1].new.known = 0;
	hits[2].len = 4;
	hits[2].addr += 4;
	hits[3].len = 2;
	hits[3].process = MADE_PROCESS;
	made_object.size = made_number.size = 2;
	made_object.path = "counter.state";
	made_write(&m, &report_trace, &made_start, hits, COUNT(hits), &ended);
	made_object.path = "counter";
	made_object.size = made_number.size = 8;
	t = trace_check(m.text);
	assert_int_equal(t.hits, 4);
	assert_int_equal(t.values, 2);
	assert_true(json_is_true(argument(event_of(&t, 1), "read_later")));
	assert_string_equal(text_of(event_of(&t, 3), "name"), "counter+4");
	assert_string_equal(text_of(event_of(&t, 5), "name"), "counter.state");
}

TEST(late_hits_have_no_functions)
{
	struct ex_hit hits[] = {made_hit(1), made_hit(2)};
	struct trace_contents t;
	struct made_report m;

	hits[0].late = true;
	hits[1].stack = NULL;
	hits[1].stray = true;
	made_write(&m, &report_trace, &made_start, hits, COUNT(hits), &ended);
	t = trace_check(m.text);
	assert_string_equal(text_of(event_of(&t, 2), "name"), "[late]");
	assert_true(json_is_true(argument(event_of(&t, 2), "late")));
	assert_string_equal(text_of(event_of(&t, 4), "name"),
	    "[no backtrace]");
	assert_true(json_is_true(argument(event_of(&t, 4), "stray")));
	assert_int_equal(t.samples, 2);
}

TEST(shows_what_hostile_names_hold)
{
	const struct ex_hit hit = made_evil_hit(1);
	struct trace_contents t;
	struct made_report m;

	made_open(&m, &report_trace);
	assert_int_equal(report_trace.start(&m.report, &made_start), 0);
	made_hits(&m, &hit, 1);
	assert_int_equal(report_trace.warning(&m.report, HOSTILE), 0);
	made_close(&m, &ended);
	assert_visible(m.text);
	t = trace_check(m.text);
	assert_int_equal(t.hits, 1);
}

TEST(is_complete_without_hits)
{
	const struct report_end lost = {.hits = 7, .lost = 7};
	struct trace_contents t;
	struct made_report m;

	made_write(&m, &report_trace, &made_start, NULL, 0, &lost);
	t = trace_check(m.text);
	assert_int_equal(t.hits + t.values + t.names + t.samples, 0);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(
	    t.json, "otherData"), "lost")), 7);
}

/* What it writes is behind what another one has written. */
TEST(goes_on_where_another_left_off)
{
	const struct summary_row past = {
		.count = 2, .first_seq = 1, .first = 13003417000,
		.last = 13003418000,
	};
	struct ex_hit before = made_hit(1), hit = made_kernel_hit(3);
	char *first, *whole = NULL;
	struct trace_contents t;
	struct made_report m;
	size_t len;

	made_open(&m, &report_trace);
	assert_int_equal(report_trace.start(&m.report, &made_start), 0);
	made_hits(&m, &before, 1);
	before.seq = 2;
	made_hits(&m, &before, 1);
	assert_int_equal(report_trace.flush(&m.report), 0);
	assert_int_equal(m.report.written, 2);
	assert_int_equal(fflush(m.report.out), 0);
	first = strdup(m.text);
	assert_non_null(first);
	made_close(&m, NULL);

	made_open(&m, &report_trace);
	assert_int_equal(report_trace.start(&m.report, &made_start), 0);
	assert_int_equal(fflush(m.report.out), 0);
	len = m.len;
	m.report.written = 2;
	assert_int_equal(report_trace.recall(&m.report, &before, &past), 0);
	made_hits(&m, &hit, 1);
	made_close(&m, &ended);
	assert_true(asprintf(&whole, "%s%s", first, m.text + len) > 0);
	t = trace_check(whole);
	assert_int_equal(t.hits, 3);
	assert_int_equal(t.samples, 1);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(
	    t.json, "otherData"), "hits_without_sample")), 2);
	free(first);
	free(whole);
}

RUN_TESTS()
