/* tally: how many accesses were not reported, derived from made-up counts. */
#include "test.h"

#include <signal.h>
#include <string.h>

#include "helper/access_tally.h"

static struct wp_channel channel;

static struct wp_channel_watch *
begin(struct access_tally *t)
{
	struct wp_channel_watch *w = &channel.watch[3];
	const struct wp_cell_watch first = {.index = 3, .serial = 9},
	    other = {.index = 4, .serial = 10}, before = {.index = 3,
	    .serial = 8};

	memset(&channel, 0, sizeof(channel));
	memset(t, 0, sizeof(*t));
	w->signal = SIGTRAP;
	atomic_store(&w->serial, 9);
	access_tally_add(t, &before, 7);
	access_tally_add(t, &first, 1);
	access_tally_add(t, &other, 3);
	access_tally_add(t, &first, 2);
	return w;
}

TEST(accesses_without_a_hit_were_missed)
{
	struct access_tally t;
	uint64_t missed;

	(void)begin(&t);
	assert_true(access_tally_missed(&t, &channel, 3, 3, &missed));
	assert_int_equal(missed, 0);
	assert_true(access_tally_missed(&t, &channel, 3, 5, &missed));
	assert_int_equal(missed, 2);
	/* a hit that came after the count */
	assert_true(access_tally_missed(&t, &channel, 3, 2, &missed));
	assert_int_equal(missed, 0);
}

TEST(all_accesses_of_a_watch_without_hits_were_missed)
{
	struct access_tally t;
	uint64_t missed;

	atomic_store(&begin(&t)->serial, 11);
	assert_true(access_tally_missed(&t, &channel, 3, 4, &missed));
	assert_int_equal(missed, 4);
}

TEST(nothing_is_claimed_where_a_step_is_unknown)
{
	struct access_tally t;
	uint64_t missed;

	(void)begin(&t);
	t.unknown = true;
	assert_false(access_tally_missed(&t, &channel, 3, 5, &missed));
	begin(&t)->signal = SIGURG;
	assert_false(access_tally_missed(&t, &channel, 3, 5, &missed));
	begin(&t)->stray = 1;
	assert_false(access_tally_missed(&t, &channel, 3, 5, &missed));
	atomic_store(&begin(&t)->suppressed, 1);
	assert_false(access_tally_missed(&t, &channel, 3, 5, &missed));
	(void)begin(&t);
	atomic_store(&channel.handled, 1);
	assert_false(access_tally_missed(&t, &channel, 3, 5, &missed));
}

RUN_TESTS()
