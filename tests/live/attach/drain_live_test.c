/*
 * drain: records wait in memory, in order, and each is either there or counted
 * as lost.  They are of mappings that this process makes, each of another part
 * of a file.
 */
#include "test.h"

#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "attach/drain.h"
#include "ring/event_table.h"
#include "child.h"
#include "live.h"

enum {
	RING = 64 << 10,	/* the smallest */
	BATCH = 200,		/* mappings: less than half a ring */
	BATCHES = 15,		/* more than all rings hold */
	FLOOD = 60000,		/* more than memory and rings hold */
	PAGE = 4096,
};

static struct made {
	struct wp_rings *rings;
	struct wp_events events;
	uint64_t format;
	struct wp_drain *drain;
	void *page;		/* where they are made */
	int file;
	uint64_t done, taken, lost;
} made;

/* With so much memory. */
static void
begin(size_t memory)
{
	struct perf_event_attr attr;
	struct wp_cause cause;

	made = (struct made){
		.page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE |
		    MAP_ANONYMOUS, -1, 0),
		.file = memfd_create("drain", MFD_CLOEXEC),
	};
	assert_ptr_not_equal(made.page, MAP_FAILED);
	assert_true(made.file >= 0);
	assert_int_equal(wp_rings_open(&made.rings, RING, &cause), 0);
	wp_attr_side(&attr, false);
	if (!live_features.format_lost)
		attr.read_format = 0;
	made.format = attr.read_format;
	attr.inherit = 0;
	assert_int_equal(wp_events_open(&made.events, &attr, 0, 0, 0,
	    made.rings), 0);
	assert_int_equal(wp_drain_start(&made.drain, made.rings, memory,
	    &cause), 0);
}

static void
finish(void)
{
	wp_drain_free(made.drain);
	wp_events_close(&made.events, 0);
	wp_rings_close(made.rings);
	(void)munmap(made.page, PAGE);
	(void)close(made.file);
}

static void
map(uint64_t n)
{
	for (; n > 0; n--, made.done++)
		assert_ptr_equal(mmap(made.page, PAGE, PROT_READ, MAP_PRIVATE |
		    MAP_FIXED, made.file, (off_t)(made.done * PAGE)),
		    made.page);
}

/* Until all that has been recorded by now is out of the rings. */
static void
await_drained(void)
{
	const uint64_t now = wp_clock_ns();

	await(wp_drain_ready(made.drain) >= now);
}

/* Which of the mappings a record is of, from 0; others are none's. */
static bool
is_ours(const struct perf_event_header *header, uint64_t *i)
{
	const struct wp_mmap2_record *mmap2 = (const void *)header;

	*i = mmap2->pgoff / PAGE;
	return header->type == PERF_RECORD_MMAP2 &&
	    mmap2->addr == (uintptr_t)made.page && *i < made.done;
}

/* Take all there is: in order, and none twice. */
static void
take_all(void)
{
	const struct perf_event_header *header;
	static uint64_t next;
	uint64_t i;

	next = made.taken == 0 ? 0 : next;
	while ((header = wp_drain_next(made.drain)) != NULL) {
		if (!is_ours(header, &i))
			continue;
		assert_true(i >= next);
		next = i + 1;
		made.taken++;
	}
}

static uint64_t
lost(void)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < made.events.n; i++) {
		struct wp_perf_count count;

		assert_int_equal(wp_perf_read(made.events.event[i].fd,
		    made.format, &count), 0);
		sum += count.lost;
	}
	return sum;
}

TEST(holds_more_than_the_rings)
{
	begin(WP_DRAIN_USUAL);
	for (int i = 0; i < BATCHES; i++) {
		map(BATCH);
		await_drained();
	}
	take_all();
	assert_int_equal(made.taken, made.done);
	assert_int_equal(lost(), 0);
	finish();
}

TEST(delivers_records_in_order_of_arrival)
{
	struct pollfd p;
	uint64_t before;

	begin(WP_DRAIN_MIN);
	p = (struct pollfd){.fd = wp_drain_fd(made.drain), .events = POLLIN};
	for (int i = 0; i < 5; i++) {
		await_drained();
		take_all();
		before = made.taken;
		assert_int_equal(before, made.done);
		(void)poll(&p, 1, 0);
		map(1);
		assert_int_equal(poll(&p, 1, CHILD_PATIENCE_MS), 1);
		(void)wp_drain_ready(made.drain);
		take_all();
		assert_int_equal(made.taken, before + 1);
	}
	finish();
}

/* What was in memory, what found no room in it, and what is left in the rings,
   in this order. */
TEST(stops_anywhere)
{
	for (uint64_t n = 0; n < 2000; n = n * 3 / 2 + 1) {
		begin(WP_DRAIN_MIN);
		map(n % BATCH);
		wp_drain_stop(made.drain);
		map(n % 7);
		take_all();
		assert_int_equal(made.taken, made.done);
		assert_null(wp_drain_next(made.drain));
		finish();
	}
}

static void
fill_memory(void)
{
	map(FLOOD);
	if (live_features.format_lost)
		assert_true(lost() > 0);
}

static void
expect_account(void)
{
	if (live_features.format_lost)
		assert_int_equal(made.taken + lost(), made.done);
	assert_in_range(made.taken, 1, WP_DRAIN_MIN * 2 /
	    sizeof(struct wp_mmap2_record));
}

TEST(counts_what_it_has_no_room_for)
{
	begin(WP_DRAIN_MIN);
	fill_memory();
	wp_drain_stop(made.drain);
	take_all();
	expect_account();
	finish();
}

TEST(goes_on_when_there_is_room_again)
{
	begin(WP_DRAIN_MIN);
	fill_memory();
	for (uint64_t before = UINT64_MAX; before != made.taken;) {
		before = made.taken;
		take_all();
		await_drained();
	}
	expect_account();
	made.done = 0;
	map(BATCH);
	made.taken = 0;
	await_drained();
	take_all();
	assert_int_equal(made.taken, BATCH);
	finish();
}

static unsigned
mappings(void)
{
	unsigned n = 0;
	char line[512];
	FILE *f = fopen("/proc/self/maps", "r");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL)
		n++;
	(void)fclose(f);
	return n;
}

TEST(leaves_nothing_behind)
{
	const unsigned descriptors = open_descriptors();
	unsigned before = 0;

	/* the first thread's stack is kept by the C library, and more than that
	   by sanitizers */
	for (int i = 0; i < 3; i++) {
		begin(WP_DRAIN_USUAL);
		map(BATCH);
		await_drained();
		finish();
		assert_int_equal(open_descriptors(), descriptors);
		assert_true(SANITIZED || i < 2 || mappings() == before);
		before = mappings();
	}
	wp_drain_stop(NULL);
	wp_drain_free(NULL);
}

RUN_LIVE_TESTS()
