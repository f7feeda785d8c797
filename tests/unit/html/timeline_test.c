/* timeline: bins that are joined, and places of writers. */
#include "test.h"

#include "made_hits.h"
#include "html/timeline.h"

static void
add(struct timeline *t, uint64_t time, uint8_t value, const struct ex_stack *by)
{
	struct ex_hit hit = made_hit(1);

	hit.time = time;
	hit.stack = by;
	hit.new.byte[0] = value;
	ex_hit_change(&hit);
	timeline_add(t, &hit, timeline_place(t, &hit));
}

static uint64_t
count_all(const struct timeline *t)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < t->nbins; i++)
		n += timeline_hits(&t->bin[i]);
	return n;
}

TEST(has_every_hit_whatever_time_passes)
{
	struct timeline *t = timeline_new(1);
	uint64_t time = 1000;

	assert_non_null(t);
	for (unsigned i = 0; i < 2000; i++, time += (uint64_t)1 << i % 40)
		add(t, time, (uint8_t)i, &made_plain);
	add(t, UINT64_MAX, 0, &made_plain);
	add(t, 0, 0, &made_plain);
	assert_int_equal(count_all(t), 2002);
	assert_true(t->nbins <= TIMELINE_BINS);
	timeline_coarsen(t, 16);
	assert_true(t->nbins <= 16);
	assert_int_equal(count_all(t), 2002);
	timeline_free(t);
}

TEST(bins_have_the_least_and_the_largest)
{
	struct timeline *t = timeline_new(1);

	add(t, 0, 5, &made_plain);
	add(t, 1, 9, &made_plain);
	add(t, 2, 3, &made_plain);
	assert_int_equal(t->nbins, 3);
	timeline_coarsen(t, 1);
	assert_int_equal(t->bin[0].of[1].count, 3);
	assert_true(t->bin[0].of[1].least == 3);
	assert_true(t->bin[0].of[1].largest == 9);
	assert_true(t->bin[0].last == 3);
	assert_true(timeline_has_values(t));
	assert_int_equal(t->least.byte[0], 3);
	assert_int_equal(t->largest.byte[0], 9);
	timeline_free(t);
}

TEST(values_of_other_bytes_make_none)
{
	struct timeline *t = timeline_new(1);
	struct ex_hit hit = made_hit(1);

	add(t, 0, 5, &made_plain);
	hit.len = 4;
	ex_hit_change(&hit);
	timeline_add(t, &hit, 0);
	assert_false(timeline_has_values(t));
	timeline_free(t);
}

/* The frequent keep theirs. */
TEST(the_rarest_writer_gives_up_its_place)
{
	static struct ex_frame frame[40];
	static struct ex_stack stack[40];
	struct timeline *t = timeline_new(1);
	struct ex_hit hit = made_hit(1);
	uint64_t all = 0;

	for (unsigned i = 0; i < COUNT(frame); i++) {
		frame[i] = (struct ex_frame){.pc = i + 1};
		stack[i] = (struct ex_stack){.id = i + 1, .n = 1,
		    .frame = &frame[i], .index = i};
		for (unsigned k = 0; k < (i < 5 ? 10 : 1); k++, all++)
			add(t, all, 0, &stack[i]);
	}
	assert_int_equal(count_all(t), all);
	for (unsigned i = 0; i < 5; i++) {
		hit.stack = &stack[i];
		assert_int_equal(timeline_place(t, &hit), i + 1);
		assert_int_equal(t->writer[i + 1].count, 10);
	}
	assert_true(t->writer[0].count > 0);
	timeline_free(t);
}

/* Whose backtraces are not theirs. */
TEST(late_hits_are_of_the_others)
{
	struct timeline *t = timeline_new(1);
	struct ex_hit hit = made_hit(1);

	hit.late = true;
	assert_int_equal(timeline_place(t, &hit), 0);
	hit.late = false;
	hit.stack = NULL;
	assert_int_equal(timeline_place(t, &hit), 0);
	timeline_free(t);
}

RUN_TESTS()
