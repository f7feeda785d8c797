/*
 * event: the events of a region are all opened, or none is, whatever is asked
 * for.
 */
#include "test.h"

#include <errno.h>
#include <sys/resource.h>

#include "child.h"
#include "ring/event_table.h"
#include "live.h"

enum { RING = 64 << 10, MANY = 300 };

static struct shared {
	volatile int ready;
	volatile int result;
	volatile unsigned n;
	volatile bool all_raised;
	volatile long word;
} *shared;

SHARED_FIXTURE

static struct wp_rings *rings;

static int
begin(void **state)
{
	struct wp_cause cause;

	(void)state;
	if (wp_rings_open(&rings, RING, &cause) == 0)
		return 0;
	print_message("%s\n", cause.text);
	return -1;
}

static int
end(void **state)
{
	(void)state;
	wp_rings_close(rings);
	return 0;
}

/* A child that rests, and how many slots it has. */
static pid_t
start_resting(unsigned *slots)
{
	pid_t pid = child_start(child_rest, (void *)&shared->ready);

	await(shared->ready == 1);
	*slots = live_free_slots(pid);
	assert_true(*slots > 0);
	return pid;
}

static struct perf_event_attr
watch(const struct wp_options *options, bool side)
{
	const struct wp_slot slot = {
		(uintptr_t)&shared->word, 8, HW_BREAKPOINT_W,
	};
	struct perf_event_attr attr;

	wp_attr_watch(&attr, &slot, options, side);
	return attr;
}

/* An event that takes no slot. */
static struct perf_event_attr
dummy(void)
{
	struct perf_event_attr attr;

	wp_attr_ring(&attr, 4096);
	return attr;
}

/* --- what is asked for is what the kernel takes --- */

static void
try_combination(pid_t pid, unsigned bits)
{
	struct wp_options options = {
		.count = bits & 1, .kernel = bits & 2, .follow = bits & 4,
		.for_perf = bits & 8, .stack = bits & 16 ? 1024 : 0,
	};
	struct wp_events events = {0};
	struct perf_event_attr attr;
	int err;

	wp_options_fit(&options, &live_features);
	attr = watch(&options, bits & 32);
	err = wp_events_open(&events, &attr, 3, 2, pid, rings);
	if (err != 0)
		fail_msg("combination %#x: %d", bits, err);
	assert_int_equal(events.n, wp_rings_count(rings));
	for (size_t i = 0; i < events.n; i++) {
		assert_int_equal(events.event[i].watch, 3);
		assert_int_equal(events.event[i].slot, 2);
		assert_int_equal(events.event[i].tid, pid);
		assert_true(events.event[i].fd >= 0);
	}
	wp_events_close(&events, 0);
}

TEST(every_combination_is_taken)
{
	unsigned slots, before = open_descriptors();
	pid_t pid = start_resting(&slots);

	for (unsigned bits = 0; bits < 64; bits++)
		try_combination(pid, bits);
	assert_int_equal(live_free_slots(pid), slots);
	assert_int_equal(open_descriptors(), before);
	child_kill(pid);
}

TEST(covers_each_processor)
{
	const struct wp_options options = {.stack = 512};
	struct perf_event_attr attr = watch(&options, true);
	struct wp_events events = {0};
	unsigned slots;
	pid_t pid = start_resting(&slots);

	assert_int_equal(wp_events_open(&events, &attr, 0, 0, pid, rings), 0);
	assert_int_equal(events.n, wp_rings_count(rings));
	/* one slot, on whichever of them the thread runs */
	assert_int_equal(live_free_slots(pid), slots - 1);
	for (size_t i = 0; i < events.n; i++) {
		uint64_t id, other;

		assert_int_equal(wp_perf_id(events.event[i].fd, &id), 0);
		for (size_t k = 0; k < i; k++) {
			assert_int_equal(wp_perf_id(events.event[k].fd,
			    &other), 0);
			assert_true(id != other);
		}
	}
	wp_events_close(&events, 0);
	assert_int_equal(live_free_slots(pid), slots);
	child_kill(pid);
}

/* --- what fails leaves nothing --- */

TEST(fails_whole)
{
	const struct wp_options options = {.stack = 512};
	struct perf_event_attr attr = watch(&options, false), plain = dummy();
	unsigned slots, before, last = wp_rings_count(rings) - 1;
	pid_t pid = start_resting(&slots);
	struct wp_events events = {0};
	int taken[WP_SLOTS_MAX];

	/* all slots are taken on the last processor only */
	for (unsigned i = 0; i < slots; i++) {
		taken[i] = wp_perf_open(&attr, pid, wp_rings_cpu(rings, last));
		assert_true(taken[i] >= 0);
	}
	assert_int_equal(wp_events_open(&events, &plain, 7, 0, pid, rings), 0);
	before = open_descriptors();
	assert_int_equal(wp_events_open(&events, &attr, 8, 0, pid, rings),
	    -ENOSPC);
	assert_int_equal(open_descriptors(), before);
	assert_int_equal(events.n, last + 1);
	assert_int_equal(events.event[last].watch, 7);
	for (unsigned i = 0; i < slots; i++)
		(void)close(taken[i]);
	assert_int_equal(live_free_slots(pid), slots);
	wp_events_close(&events, 0);
	child_kill(pid);
}

/* An event whose clock is another cannot share a ring. */
TEST(keeps_no_event_without_its_ring)
{
	struct perf_event_attr attr = dummy();
	unsigned before = open_descriptors();
	struct wp_events events = {0};

	attr.clockid = CLOCK_REALTIME;
	assert_int_equal(wp_events_open(&events, &attr, 0, 0, 0, rings),
	    -EINVAL);
	assert_int_equal(events.n, 0);
	assert_int_equal(open_descriptors(), before);
	wp_events_close(&events, 0);
}

TEST(reports_that_a_thread_has_ended)
{
	const struct wp_options options = {.count = true};
	struct perf_event_attr attr = watch(&options, false);
	struct wp_events events = {0};
	unsigned slots;
	pid_t pid = start_resting(&slots);

	child_kill(pid);
	assert_int_equal(wp_events_open(&events, &attr, 0, 0, pid, rings),
	    -ESRCH);
	assert_int_equal(events.n, 0);
	wp_events_close(&events, 0);
}

/* --- many --- */

TEST(closes_those_from_an_index_on)
{
	struct perf_event_attr attr = dummy();
	struct wp_events events = {0};
	const unsigned each = wp_rings_count(rings);
	unsigned before = open_descriptors();

	for (int i = 0; i < MANY; i++)
		assert_int_equal(wp_events_open(&events, &attr, (uint16_t)i,
		    (uint16_t)(i + 1), 0, rings), 0);
	assert_int_equal(events.n, MANY * each);
	assert_int_equal(open_descriptors(), before + MANY * each);
	wp_events_close(&events, MANY / 3 * each);
	assert_int_equal(events.n, MANY / 3 * each);
	assert_int_equal(open_descriptors(), before + MANY / 3 * each);
	for (size_t i = 0; i < events.n; i++) {
		assert_int_equal(events.event[i].watch, i / each);
		assert_int_equal(events.event[i].slot, i / each + 1);
	}
	assert_int_equal(wp_events_open(&events, &attr, 1, 1, 0, rings), 0);
	wp_events_close(&events, events.n);
	assert_int_equal(events.n, (MANY / 3 + 1) * each);
	wp_events_close(&events, 0);
	assert_int_equal(open_descriptors(), before);
	assert_null(events.event);
	wp_events_close(&events, 0);
}

/* arg: the limit that cannot be raised. */
static void
open_many(void *arg)
{
	struct perf_event_attr attr = dummy();
	struct rlimit limit = {64, *(rlim_t *)arg};
	struct wp_events events = {0};

	(void)setrlimit(RLIMIT_NOFILE, &limit);
	while (shared->result == 0 && events.n < MANY)
		shared->result = wp_events_open(&events, &attr, 0, 0, 0,
		    rings);
	shared->n = (unsigned)events.n;
	(void)getrlimit(RLIMIT_NOFILE, &limit);
	shared->all_raised = limit.rlim_cur == limit.rlim_max;
}

TEST(takes_as_many_descriptors_as_it_may)
{
	rlim_t most = MANY + 1000;

	assert_int_equal(child_wait(child_start(open_many, &most)), 0);
	assert_int_equal(shared->result, 0);
	assert_true(shared->n >= MANY);
	assert_true(shared->all_raised);

	clear_shared(state);
	most = 128;
	assert_int_equal(child_wait(child_start(open_many, &most)), 0);
	assert_int_equal(shared->result, -EMFILE);
	assert_true(shared->n > 64 && shared->n < 128);
	assert_int_equal(shared->n % wp_rings_count(rings), 0);
}

RUN_LIVE_TESTS(.before_all = begin, .after_all = end,
    .before_each = clear_shared, .after_each = children_end)
