/* trace_samples: what was added comes back. */
#include "test.h"

#include <limits.h>

#include "trace/trace_samples.h"

TEST(returns_what_was_added)
{
	static const struct trace_sample samples[] = {
		{0, 1, 1, 1}, {5, 1, 1, 1}, {UINT64_MAX, INT_MAX, 2, UINT_MAX},
		{UINT64_MAX, -1, INT_MAX, 0}, {UINT64_MAX, 7, -1, 300},
	};
	struct trace_samples s = {0};
	struct trace_sample got = {0};
	size_t at = 0;

	for (size_t i = 0; i < COUNT(samples); i++)
		trace_samples_add(&s, &samples[i]);
	for (size_t i = 0; i < COUNT(samples); i++) {
		assert_true(trace_samples_next(&s, &at, &got));
		assert_true(got.time == samples[i].time);
		assert_int_equal(got.pid, samples[i].pid);
		assert_int_equal(got.tid, samples[i].tid);
		assert_int_equal(got.frame, samples[i].frame);
	}
	assert_false(trace_samples_next(&s, &at, &got));
	assert_int_equal(s.left_out, 0);
	buffer_free(&s.packed);
}

/* Those of a hot loop take eight bytes each; what is too much is counted. */
TEST(is_small_and_has_an_end)
{
	struct trace_samples s = {0};
	uint64_t n = 0;

	for (; s.left_out == 0; n++)
		trace_samples_add(&s, &(struct trace_sample){
			n * 1000, 4335, 4340, 7,
		});
	assert_true(n > 8000000);
	assert_true(s.packed.len <= 64 << 20);
	buffer_free(&s.packed);
}

RUN_TESTS()
