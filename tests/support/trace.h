/* trace: checks that a text is a trace, by all rules that tools have for it. */
#ifndef TRACE_H
#define TRACE_H

#include <jansson.h>
#include <string.h>

/* The contents of a trace. */
struct trace_contents {
	json_t *json;
	size_t hits, values, names, samples;
	double last_value;
};

static inline double
trace_number(const json_t *object, const char *name)
{
	const json_t *number = json_object_get(object, name);

	if (!json_is_number(number))
		fail_msg("%s: no number", name);
	return json_number_value(number);
}

/* Check a frame of the trace, whose callers must exist and must not form a
   cycle. */
static inline void
trace_check_frame(const json_t *frames, json_int_t id)
{
	size_t depth = 0;

	while (id != 0) {
		char key[24];
		const json_t *frame;

		(void)snprintf(key, sizeof(key), "%lld", (long long)id);
		frame = json_object_get(frames, key);
		assert_non_null(frame);
		assert_non_null(json_string_value(json_object_get(frame,
		    "name")));
		id = json_integer_value(json_object_get(frame, "parent"));
		assert_true(++depth <= json_object_size(frames));
	}
}

static inline void
trace_check_event(struct trace_contents *t, const json_t *event,
    const json_t *frames)
{
	const char *kind = json_string_value(json_object_get(event, "ph"));
	const json_t *args = json_object_get(event, "args");

	assert_non_null(kind);
	assert_non_null(json_string_value(json_object_get(event, "name")));
	assert_true(json_is_integer(json_object_get(event, "pid")));
	assert_true(json_is_integer(json_object_get(event, "tid")));
	if (strcmp(kind, "C") == 0) {
		t->last_value = trace_number(args, "value");
		t->values++;
	} else if (strcmp(kind, "M") == 0) {
		assert_string_equal(json_string_value(json_object_get(event,
		    "name")), "thread_name");
		assert_non_null(json_string_value(json_object_get(args,
		    "name")));
		t->names++;
	} else {
		assert_string_equal(kind, "i");
		assert_string_equal(json_string_value(json_object_get(event,
		    "s")), "t");
		trace_check_frame(frames, json_integer_value(json_object_get(
		    event, "sf")));
		assert_true(json_is_object(args));
		t->hits++;
	}
}

/* Check that the time of an event or sample is not before */
static inline void
trace_check_time(const json_t *event, double *last)
{
	const double time = trace_number(event, "ts");

	assert_true(time >= *last);
	*last = time;
}

TEST_KEEPS(trace_kept, json_t *, json_decref)

/* Check that each hit has a sample. */
static inline struct trace_contents
trace_check(const char *text)
{
	struct trace_contents t = {0};
	json_error_t error;
	const json_t *frames, *it;
	double last = 0;
	size_t i;

	t.json = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	if (t.json == NULL)
		fail_msg("line %d: %s", error.line, error.text);
	(void)trace_kept(t.json);
	frames = json_object_get(t.json, "stackFrames");
	assert_true(json_is_object(frames));
	assert_true(json_is_array(json_object_get(t.json, "traceEvents")));
	json_array_foreach(json_object_get(t.json, "traceEvents"), i, it) {
		trace_check_event(&t, it, frames);
		trace_check_time(it, &last);
	}
	last = 0;
	json_array_foreach(json_object_get(t.json, "samples"), i, it) {
		trace_check_time(it, &last);
		assert_true(json_is_integer(json_object_get(it, "pid")));
		assert_true(json_is_integer(json_object_get(it, "tid")));
		assert_int_equal(trace_number(it, "weight"), 1);
		assert_int_not_equal(trace_number(it, "sf"), 0);
		trace_check_frame(frames, json_integer_value(json_object_get(it,
		    "sf")));
		t.samples++;
	}
	return t;
}

#endif
