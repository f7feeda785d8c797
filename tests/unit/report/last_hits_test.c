/*
 * held: the newest hits are held, up to so many, of so many samples.
 */
#include "test.h"

#include "report/last_hits.h"

enum { HITS = 3, SAMPLES = 10 };

/* As a session does: let go what is too much. */
static void
put(struct last_hits *held, uint64_t begun, unsigned samples)
{
	const struct ex_hit hit = {.begun = begun, .samples = samples};

	while (last_hits_is_full(held, &hit))
		last_hits_pop(held);
	last_hits_put(held, &hit);
}

static void
expect(struct last_hits *held, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i <= to; i++) {
		assert_non_null(last_hits_first(held));
		assert_int_equal(last_hits_first(held)->begun, i);
		last_hits_pop(held);
	}
	assert_null(last_hits_first(held));
}

TEST(the_newest_are_held)
{
	struct last_hits *held = last_hits_new(HITS, SAMPLES);

	assert_non_null(held);
	assert_null(last_hits_first(held));
	for (uint64_t i = 1; i <= 8; i++)
		put(held, i, 1);
	expect(held, 6, 8);
	put(held, 9, 1);
	expect(held, 9, 9);
	last_hits_free(held);
}

TEST(many_samples_are_too_much)
{
	struct last_hits *held = last_hits_new(HITS, SAMPLES);

	put(held, 1, 4);
	put(held, 2, 4);
	put(held, 3, 4);
	expect(held, 2, 3);
	/* one alone is held, whatever it is */
	put(held, 4, 4);
	put(held, 5, 2 * SAMPLES);
	expect(held, 5, 5);
	last_hits_free(held);
}

RUN_TESTS()
