/* hit_order: which hits are known to follow each other, with made-up cells. */
#include "test.h"

#include <string.h>

#include "watch/hit_order.h"

#define MS UINT64_C(1000000)
enum {
	RACES = WP_CELL_COUNTED,
	ALONE = WP_CELL_COUNTED | WP_CELL_ALONE,
	ASYNC = 0,
	ASYNC_ALONE = WP_CELL_ALONE,
};

/* A hit of the watch, and what is to be said of it; the end of a list has no
   nth. */
struct made {
	uint32_t flags;
	enum ordered ordered;
	uint64_t nth, counted, suppressed;
	uint32_t settled;	/* 0: 1 */
	unsigned times;		/* 0: 1 */
	bool repeated;		/* the times are unknown */
	uint64_t ms;
};

enum { HITS_MAX = 8 };

static const struct scenario {
	const char *what;
	struct {
		uint32_t number, alone;
		uint64_t nth, counted, suppressed;
	} at;				/* as it was settled; 0: not */
	struct made hit[HITS_MAX];
} scenarios[] = {
	{"settled, then one after the other", .at = {.number = 1}, .hit = {
		{RACES, ORDER_AFTER_BASELINE, .nth = 1, .counted = 1, .ms = 1},
		{RACES, ORDER_AFTER_HIT, .nth = 2, .counted = 2, .ms = 2},
		{RACES, ORDER_AFTER_HIT, .nth = 3, .counted = 3, .ms = 3}}},
	{"two at once", .at = {.number = 1}, .hit = {
		{RACES, ORDER_UNKNOWN, .nth = 1, .counted = 2, .ms = 1},
		{RACES, ORDER_UNKNOWN, .nth = 2, .counted = 2, .ms = 1},
		{RACES, ORDER_AFTER_HIT, .nth = 3, .counted = 3, .ms = 2}}},
	{"one before it was settled", .at = {.number = 1, .counted = 1},
	    .hit = {
		{RACES, ORDER_UNKNOWN, .nth = 1, .counted = 1, .ms = 1},
		{RACES, ORDER_AFTER_HIT, .nth = 2, .counted = 2, .ms = 2}}},
	{"one on its way all the while", .at = {.number = 1, .alone = 1},
	    .hit = {
		{RACES, ORDER_AFTER_BASELINE, .nth = 1, .counted = 1, .ms = 1},
		{RACES, ORDER_UNKNOWN, .nth = 2, .counted = 3, .ms = 2},
		{RACES, ORDER_UNKNOWN, .nth = 3, .counted = 4, .ms = 3},
		{RACES, ORDER_UNKNOWN, .nth = 4, .counted = 4, .ms = 4},
		{RACES, ORDER_AFTER_HIT, .nth = 5, .counted = 5, .ms = 5}}},
	{"one that never tells", .at = {.number = 1, .alone = 1}, .hit = {
		{RACES, ORDER_UNKNOWN, .nth = 1, .counted = 2, .ms = 1},
		{RACES, ORDER_UNKNOWN, .nth = 2, .counted = 3, .ms = 500},
		{RACES, ORDER_UNKNOWN, .nth = 3, .counted = 4, .ms = 1001},
		{RACES, ORDER_AFTER_HIT, .nth = 4, .counted = 5, .ms = 1002}}},
	{"races with long pauses", .hit = {
		{RACES, ORDER_UNKNOWN, .nth = 1, .counted = 2, .ms = 1},
		{RACES, ORDER_UNKNOWN, .nth = 2, .counted = 2, .ms = 2},
		{RACES, ORDER_UNKNOWN, .nth = 3, .counted = 4, .ms = 2000},
		{RACES, ORDER_UNKNOWN, .nth = 4, .counted = 4, .ms = 2001},
		{RACES, ORDER_UNKNOWN, .nth = 5, .counted = 6, .ms = 4000},
		{RACES, ORDER_UNKNOWN, .nth = 6, .counted = 7, .ms = 4001}}},
	{"dropped ones", .at = {.number = 1, .counted = 1, .suppressed = 1},
	    .hit = {
		{RACES, ORDER_AFTER_BASELINE, .nth = 1, .counted = 2,
		    .suppressed = 1, .ms = 1},
		{RACES, ORDER_UNKNOWN, .nth = 2, .counted = 4, .suppressed = 2,
		    .ms = 2},
		{RACES, ORDER_AFTER_HIT, .nth = 3, .counted = 5,
		    .suppressed = 2, .ms = 3}}},
	{"begun to be settled anew", .at = {.number = 2}, .hit = {
		{RACES, ORDER_UNKNOWN, .nth = 1, .counted = 1, .ms = 1},
		{RACES, ORDER_UNKNOWN, .nth = 2, .counted = 2, .settled = 3,
		    .ms = 2},
		{RACES, ORDER_AFTER_HIT, .nth = 3, .counted = 3, .settled = 3,
		    .ms = 3}}},
	{"several registers", .at = {.number = 1}, .hit = {
		{RACES, ORDER_AFTER_BASELINE, .nth = 1, .counted = 2,
		    .times = 2, .ms = 1},
		{RACES, ORDER_AFTER_HIT, .nth = 2, .counted = 3, .ms = 2},
		{RACES, ORDER_UNKNOWN, .nth = 3, .counted = 5, .ms = 3}}},
	{"by the kernel, once and often", .at = {.number = 1}, .hit = {
		{RACES, ORDER_AFTER_BASELINE, .nth = 1, .counted = 1,
		    .repeated = true, .ms = 1},
		{RACES, ORDER_AFTER_HIT, .nth = 2, .counted = 2, .ms = 2},
		{RACES, ORDER_UNKNOWN, .nth = 3, .counted = 9, .repeated = true,
		    .ms = 3},
		{RACES, ORDER_UNKNOWN, .nth = 4, .counted = 10, .ms = 4},
		{RACES, ORDER_UNKNOWN, .nth = 5, .counted = 11, .ms = 1500},
		{RACES, ORDER_AFTER_HIT, .nth = 6, .counted = 12, .ms = 1501}}},
	{"one thread", .at = {.number = 1, .alone = 1}, .hit = {
		{ALONE, ORDER_AFTER_BASELINE, .nth = 1, .counted = 9,
		    .repeated = true, .ms = 1},
		{ALONE, ORDER_AFTER_HIT, .nth = 2, .counted = 10, .ms = 2},
		{ALONE, ORDER_AFTER_HIT, .nth = 3, .counted = 20,
		    .repeated = true, .ms = 3},
		{RACES, ORDER_AFTER_HIT, .nth = 4, .counted = 21, .ms = 4},
		{RACES, ORDER_UNKNOWN, .nth = 5, .counted = 23, .ms = 5}}},
	{"one thread whose signal was blocked", .at = {.number = 1, .alone = 1},
	    .hit = {
		{ALONE, ORDER_UNKNOWN, .nth = 1, .counted = 2, .ms = 1},
		{ALONE, ORDER_AFTER_HIT, .nth = 2, .counted = 3, .ms = 2},
		{ALONE, ORDER_UNKNOWN, .nth = 4, .counted = 4, .ms = 2}}},
	{"nobody counts", .at = {.number = 1, .alone = 1}, .hit = {
		{ASYNC_ALONE, ORDER_AFTER_BASELINE, .nth = 1, .ms = 1},
		{ASYNC_ALONE, ORDER_AFTER_HIT, .nth = 2, .ms = 2},
		{ASYNC, ORDER_UNKNOWN, .nth = 3, .ms = 3},
		{ASYNC, ORDER_UNKNOWN, .nth = 4, .ms = 4},
		{ASYNC_ALONE, ORDER_UNKNOWN, .nth = 5, .ms = 5}}},
};

static struct wp_channel shared;
static struct wp_channel *const channel = &shared;
static struct hit_order order;
static uint64_t gap;		/* of its watch */
static struct wp_channel_watch looked;

static const struct wp_cell_watch watch = {
	.addr = 0x1000, .len = 8, .serial = 7, .access = 'w', .nslots = 1,
	.index = 3,
};

static enum ordered
take(const struct made *m, uint8_t bytes[WP_BASELINE_MAX])
{
	struct wp_cell_watch of = watch;
	const struct hit_order_hit hit = {
		.watch = &of, .open = &looked, .gap = gap,
		.gaps = atomic_load(&channel->gaps),
		.flags = m->flags, .nth = m->nth,
		.counted = m->counted, .suppressed = m->suppressed,
		.times = m->repeated ? 0 : m->times == 0 ? 1 : m->times,
		.time = m->ms * MS,
	};

	of.settled = m->settled == 0 ? 1 : m->settled;
	hit_order_look(&looked, &channel->watch[watch.index]);
	return hit_order_take(&order, &hit, bytes);
}

static void
begin(void)
{
	struct wp_channel_watch *open = &channel->watch[watch.index];

	memset(&order, 0, sizeof(order));
	gap = 0;
	atomic_store(&open->serial, watch.serial);
	open->exact = open->kernel = 1;
	memset(open->settled.byte, 5, sizeof(open->settled.byte));
}

static void
play(const struct scenario *s)
{
	struct wp_baseline *at = &channel->watch[watch.index].settled;

	begin();
	at->alone = s->at.alone;
	at->nth = s->at.nth;
	at->counted = s->at.counted;
	at->suppressed = s->at.suppressed;
	at->time = 1;
	atomic_store(&at->number, s->at.number);
	for (unsigned i = 0; i < HITS_MAX && s->hit[i].nth != 0; i++) {
		uint8_t bytes[WP_BASELINE_MAX] = {0};
		enum ordered ordered = take(&s->hit[i], bytes);

		if (ordered != s->hit[i].ordered)
			fail_msg("%s: hit %u: %d", s->what, i + 1, ordered);
		assert_int_equal(bytes[0],
		    ordered == ORDER_AFTER_BASELINE ? 5 : 0);
	}
}

TEST(finds_what_follows)
{
	for (size_t i = 0; i < COUNT(scenarios); i++)
		play(&scenarios[i]);
}

/* What is not counted, not seen, or of another use of the table's entry. */
TEST(forgets_with_a_watch)
{
	struct wp_channel_watch *open = &channel->watch[watch.index];
	struct made m = {RACES, ORDER_UNKNOWN, .nth = 1, .counted = 1, .ms = 1};
	uint8_t bytes[WP_BASELINE_MAX];

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
	struct made m = {RACES, ORDER_UNKNOWN, .nth = 1, .counted = 1, .ms = 1};
	struct hit_order_hit hit = {.watch = &watch, .open = &looked,
	    .flags = RACES, .times = 1};
	uint8_t bytes[WP_BASELINE_MAX];

	begin();
	open->settled.alone = 0;
	open->settled.nth = open->settled.counted = open->settled.suppressed =
	    0;
	open->settled.time = 2 * MS / 2;
	atomic_store(&open->settled.number, 1);
	assert_int_equal(take(&m, bytes), ORDER_AFTER_BASELINE);
	m = (struct made){RACES, ORDER_UNKNOWN, .nth = 2, .counted = 2,
	    .ms = 3};
	assert_int_equal(take(&m, bytes), ORDER_AFTER_HIT);
	gap = 2 * MS;
	m = (struct made){RACES, ORDER_UNKNOWN, .nth = 3, .counted = 3,
	    .ms = 4};
	assert_int_equal(take(&m, bytes), ORDER_AFTER_HIT);
	gap = 4 * MS;
	m = (struct made){RACES, ORDER_UNKNOWN, .nth = 4, .counted = 4,
	    .ms = 5};
	assert_int_equal(take(&m, bytes), ORDER_UNKNOWN);
	m = (struct made){RACES, ORDER_UNKNOWN, .nth = 5, .counted = 5,
	    .ms = 6};
	assert_int_equal(take(&m, bytes), ORDER_AFTER_HIT);
	/* settled before it, or after */
	for (unsigned i = 0; i < 2; i++) {
		begin();
		gap = MS + i - 1;
		m = (struct made){RACES, ORDER_UNKNOWN, .nth = 1, .counted = 1,
		    .ms = 5};
		assert_int_equal(take(&m, bytes), i == 0 ?
		    ORDER_AFTER_BASELINE : ORDER_UNKNOWN);
	}
	for (unsigned i = 0; i < 2; i++) {
		begin();
		open->kernel = i;
		hit.unseen = i == 1;
		for (hit.nth = 1; hit.nth < 4; hit.nth++) {
			hit.counted = hit.nth;
			hit.time = hit.nth * MS;
			hit_order_look(&looked, open);
			assert_int_equal(hit_order_take(&order, &hit, bytes),
			    ORDER_UNKNOWN);
		}
	}
}

RUN_TESTS()
