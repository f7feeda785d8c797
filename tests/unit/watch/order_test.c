/* order: which hits are said to follow each other, by made cells. */
#include "test.h"

#include <string.h>

#include "watch/order.h"

#define MS UINT64_C(1000000)
enum {
	RACES = WP_CELL_COUNTED,
	ALONE = WP_CELL_COUNTED | WP_CELL_ALONE,
	ASYNC = 0,
	ASYNC_ALONE = WP_CELL_ALONE,
};

/* A hit of the watch; the end of a list has no nth. */
struct made {
	uint32_t flags;
	uint64_t nth, counted, silent;
	uint32_t settled;
	unsigned times;
	uint64_t ms;
	enum ordered ordered;
};

enum { HITS_MAX = 8 };

static const struct scenario {
	const char *what;
	struct {
		uint32_t number, alone;
		uint64_t nth, counted, silent;
	} at;				/* as it was settled; 0: not */
	struct made hit[HITS_MAX];
} scenarios[] = {
	{"settled, then one after the other", {1, 0, 0, 0, 0}, {
		{RACES, 1, 1, 0, 1, 1, 1, ORDER_AFTER_SETTLING},
		{RACES, 2, 2, 0, 1, 1, 2, ORDER_AFTER_HIT},
		{RACES, 3, 3, 0, 1, 1, 3, ORDER_AFTER_HIT}}},
	{"two at once", {1, 0, 0, 0, 0}, {
		{RACES, 1, 2, 0, 1, 1, 1, ORDER_UNKNOWN},
		{RACES, 2, 2, 0, 1, 1, 1, ORDER_UNKNOWN},
		{RACES, 3, 3, 0, 1, 1, 2, ORDER_AFTER_HIT}}},
	{"one before it was settled", {1, 0, 0, 1, 0}, {
		{RACES, 1, 1, 0, 1, 1, 1, ORDER_UNKNOWN},
		{RACES, 2, 2, 0, 1, 1, 2, ORDER_AFTER_HIT}}},
	{"one on his way all the while", {1, 1, 0, 0, 0}, {
		{RACES, 1, 1, 0, 1, 1, 1, ORDER_AFTER_SETTLING},
		{RACES, 2, 3, 0, 1, 1, 2, ORDER_UNKNOWN},
		{RACES, 3, 4, 0, 1, 1, 3, ORDER_UNKNOWN},
		{RACES, 4, 4, 0, 1, 1, 4, ORDER_UNKNOWN},
		{RACES, 5, 5, 0, 1, 1, 5, ORDER_AFTER_HIT}}},
	{"one that never tells", {1, 1, 0, 0, 0}, {
		{RACES, 1, 2, 0, 1, 1, 1, ORDER_UNKNOWN},
		{RACES, 2, 3, 0, 1, 1, 500, ORDER_UNKNOWN},
		{RACES, 3, 4, 0, 1, 1, 1001, ORDER_UNKNOWN},
		{RACES, 4, 5, 0, 1, 1, 1002, ORDER_AFTER_HIT}}},
	{"races with long pauses", {0, 0, 0, 0, 0}, {
		{RACES, 1, 2, 0, 1, 1, 1, ORDER_UNKNOWN},
		{RACES, 2, 2, 0, 1, 1, 2, ORDER_UNKNOWN},
		{RACES, 3, 4, 0, 1, 1, 2000, ORDER_UNKNOWN},
		{RACES, 4, 4, 0, 1, 1, 2001, ORDER_UNKNOWN},
		{RACES, 5, 6, 0, 1, 1, 4000, ORDER_UNKNOWN},
		{RACES, 6, 7, 0, 1, 1, 4001, ORDER_UNKNOWN}}},
	{"dropped ones", {1, 0, 0, 1, 1}, {
		{RACES, 1, 2, 1, 1, 1, 1, ORDER_AFTER_SETTLING},
		{RACES, 2, 4, 2, 1, 1, 2, ORDER_UNKNOWN},
		{RACES, 3, 5, 2, 1, 1, 3, ORDER_AFTER_HIT}}},
	{"begun to be settled anew", {2, 0, 0, 0, 0}, {
		{RACES, 1, 1, 0, 1, 1, 1, ORDER_UNKNOWN},
		{RACES, 2, 2, 0, 3, 1, 2, ORDER_UNKNOWN},
		{RACES, 3, 3, 0, 3, 1, 3, ORDER_AFTER_HIT}}},
	{"several registers", {1, 0, 0, 0, 0}, {
		{RACES, 1, 2, 0, 1, 2, 1, ORDER_AFTER_SETTLING},
		{RACES, 2, 3, 0, 1, 1, 2, ORDER_AFTER_HIT},
		{RACES, 3, 5, 0, 1, 1, 3, ORDER_UNKNOWN}}},
	{"by the kernel, once and often", {1, 0, 0, 0, 0}, {
		{RACES, 1, 1, 0, 1, 0, 1, ORDER_AFTER_SETTLING},
		{RACES, 2, 2, 0, 1, 1, 2, ORDER_AFTER_HIT},
		{RACES, 3, 9, 0, 1, 0, 3, ORDER_UNKNOWN},
		{RACES, 4, 10, 0, 1, 1, 4, ORDER_UNKNOWN},
		{RACES, 5, 11, 0, 1, 1, 1500, ORDER_UNKNOWN},
		{RACES, 6, 12, 0, 1, 1, 1501, ORDER_AFTER_HIT}}},
	{"one thread", {1, 1, 0, 0, 0}, {
		{ALONE, 1, 9, 0, 1, 0, 1, ORDER_AFTER_SETTLING},
		{ALONE, 2, 10, 0, 1, 1, 2, ORDER_AFTER_HIT},
		{ALONE, 3, 20, 0, 1, 0, 3, ORDER_AFTER_HIT},
		{RACES, 4, 21, 0, 1, 1, 4, ORDER_AFTER_HIT},
		{RACES, 5, 23, 0, 1, 1, 5, ORDER_UNKNOWN}}},
	{"one thread whose signal was blocked", {1, 1, 0, 0, 0}, {
		{ALONE, 1, 2, 0, 1, 1, 1, ORDER_UNKNOWN},
		{ALONE, 2, 3, 0, 1, 1, 2, ORDER_AFTER_HIT},
		{ALONE, 4, 4, 0, 1, 1, 2, ORDER_UNKNOWN}}},
	{"nobody counts", {1, 1, 0, 0, 0}, {
		{ASYNC_ALONE, 1, 0, 0, 1, 1, 1, ORDER_AFTER_SETTLING},
		{ASYNC_ALONE, 2, 0, 0, 1, 1, 2, ORDER_AFTER_HIT},
		{ASYNC, 3, 0, 0, 1, 1, 3, ORDER_UNKNOWN},
		{ASYNC, 4, 0, 0, 1, 1, 4, ORDER_UNKNOWN},
		{ASYNC_ALONE, 5, 0, 0, 1, 1, 5, ORDER_UNKNOWN}}},
};

static struct wp_channel shared;
static struct wp_channel *const channel = &shared;
static struct order order;

static const struct wp_cell_watch watch = {
	.addr = 0x1000, .len = 8, .serial = 7, .access = 'w', .nslots = 1,
	.index = 3,
};

static enum ordered
take(const struct made *m, uint8_t bytes[WP_SETTLED_MAX])
{
	struct wp_cell_watch of = watch;
	const struct order_hit hit = {
		.watch = &of, .flags = m->flags, .nth = m->nth,
		.counted = m->counted, .silent = m->silent,
		.times = m->times, .time = m->ms * MS,
	};

	of.settled = m->settled;
	return order_take(&order, channel, &hit, bytes);
}

static void
begin(void)
{
	struct wp_channel_watch *open = &channel->watch[watch.index];

	memset(&order, 0, sizeof(order));
	atomic_store(&open->serial, watch.serial);
	open->exact = open->kernel = 1;
	memset(open->settled.byte, 5, sizeof(open->settled.byte));
}

static void
play(const struct scenario *s)
{
	struct wp_settled *at = &channel->watch[watch.index].settled;

	begin();
	at->alone = s->at.alone;
	at->nth = s->at.nth;
	at->counted = s->at.counted;
	at->silent = s->at.silent;
	at->time = 1;
	atomic_store(&at->number, s->at.number);
	for (unsigned i = 0; i < HITS_MAX && s->hit[i].nth != 0; i++) {
		uint8_t bytes[WP_SETTLED_MAX] = {0};
		enum ordered ordered = take(&s->hit[i], bytes);

		if (ordered != s->hit[i].ordered)
			fail_msg("%s: hit %u: %d", s->what, i + 1, ordered);
		assert_int_equal(bytes[0],
		    ordered == ORDER_AFTER_SETTLING ? 5 : 0);
	}
}

TEST(tells_what_follows)
{
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
		play(&scenarios[i]);
}

/* What is not counted, not seen, or of another use of the table's entry. */
TEST(forgets_with_a_watch)
{
	struct wp_channel_watch *open = &channel->watch[watch.index];
	struct made m = {RACES, 1, 1, 0, 1, 1, 1, ORDER_UNKNOWN};
	uint8_t bytes[WP_SETTLED_MAX];

	begin();
	atomic_store(&open->settled.number, 0);
	(void)take(&m, bytes);
	m.counted = ++m.nth;
	assert_int_equal(take(&m, bytes), ORDER_AFTER_HIT);
	atomic_store(&channel->gaps, 1);
	m.counted = ++m.nth;
	assert_int_equal(take(&m, bytes), ORDER_UNKNOWN);
	m.counted = ++m.nth;
	assert_int_equal(take(&m, bytes), ORDER_AFTER_HIT);
	open->exact = 0;
	m.counted = ++m.nth;
	assert_int_equal(take(&m, bytes), ORDER_UNKNOWN);
	open->exact = 1;
	m.counted = ++m.nth;
	assert_int_equal(take(&m, bytes), ORDER_UNKNOWN);
	atomic_store(&open->serial, watch.serial + 1);
	m.counted = ++m.nth;
	assert_int_equal(take(&m, bytes), ORDER_UNKNOWN);
}

/* Who is not counted writes, or may. */
TEST(knows_of_unseen_writers)
{
	struct wp_channel_watch *open = &channel->watch[watch.index];
	struct made m = {RACES, 1, 1, 0, 1, 1, 1, ORDER_UNKNOWN};
	struct order_hit hit = {.watch = &watch, .flags = RACES, .times = 1};
	uint8_t bytes[WP_SETTLED_MAX];

	begin();
	open->settled.alone = 0;
	open->settled.nth = open->settled.counted = open->settled.silent = 0;
	open->settled.time = 2 * MS / 2;
	atomic_store(&open->settled.number, 1);
	/* others' watches are others' */
	order_forget(&order, watch.index + 1, 9 * MS);
	assert_int_equal(take(&m, bytes), ORDER_AFTER_SETTLING);
	m = (struct made){RACES, 2, 2, 0, 1, 1, 3, ORDER_UNKNOWN};
	assert_int_equal(take(&m, bytes), ORDER_AFTER_HIT);
	order_forget(&order, watch.index, 2 * MS);
	m = (struct made){RACES, 3, 3, 0, 1, 1, 4, ORDER_UNKNOWN};
	assert_int_equal(take(&m, bytes), ORDER_AFTER_HIT);
	order_forget(&order, watch.index, 4 * MS);
	order_forget(&order, watch.index, 1 * MS);
	m = (struct made){RACES, 4, 4, 0, 1, 1, 5, ORDER_UNKNOWN};
	assert_int_equal(take(&m, bytes), ORDER_UNKNOWN);
	m = (struct made){RACES, 5, 5, 0, 1, 1, 6, ORDER_UNKNOWN};
	assert_int_equal(take(&m, bytes), ORDER_AFTER_HIT);
	/* settled before it, or after */
	for (unsigned i = 0; i < 2; i++) {
		begin();
		order_forget(&order, watch.index, MS + i - 1);
		m = (struct made){RACES, 1, 1, 0, 1, 1, 5, ORDER_UNKNOWN};
		assert_int_equal(take(&m, bytes), i == 0 ?
		    ORDER_AFTER_SETTLING : ORDER_UNKNOWN);
	}
	for (unsigned i = 0; i < 2; i++) {
		begin();
		open->kernel = i;
		hit.unseen = i == 1;
		for (hit.nth = 1; hit.nth < 4; hit.nth++) {
			hit.counted = hit.nth;
			hit.time = hit.nth * MS;
			assert_int_equal(order_take(&order, channel, &hit,
			    bytes), ORDER_UNKNOWN);
		}
	}
}

RUN_TESTS()
