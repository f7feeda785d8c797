/* remote_log: what is over is dropped, and what others inherit is not. */
#include "test.h"

#include <linux/perf_event.h>
#include <string.h>

#include "remote/remote_log.h"
#include "session/journal.h"

enum { BASE = 100, CHILDREN = 5000, MAPS = 20 };

static struct buffer text;
static pid_t wanted;		/* is needed though it has ended */
static unsigned gone;

static void
put(uint32_t type, uint32_t pid, uint32_t second, uint32_t tid)
{
	struct {
		struct perf_event_header header;
		uint32_t pid, second, tid, third;
		char rest[64];
	} record = {
		.header = {type, 0, sizeof(record)},
		.pid = pid, .second = second, .tid = tid,
	};
	const struct journal_entry e = {
		.size = (uint32_t)journal_padded(sizeof(e) + sizeof(record)),
		.what = JOURNAL_LEARN, .len = sizeof(record),
	};
	static const char zero[8];

	buffer_put(&text, &e, sizeof(e));
	buffer_put(&text, &record, sizeof(record));
	buffer_put(&text, zero, e.size - sizeof(e) - sizeof(record));
}

static bool
needs(void *arg, pid_t pid)
{
	(void)arg;
	return pid == wanted;
}

static void
count_gone(void *arg, pid_t pid)
{
	(void)arg;
	assert_int_not_equal(pid, BASE);
	gone++;
}

static size_t
shrink(void)
{
	static const struct remote_log_calls calls = {
		.needs = needs, .gone = count_gone,
	};

	gone = 0;
	remote_log_shrink(&text, &calls);
	return text.len;
}

static int
begin(void **state)
{
	(void)state;
	buffer_free(&text);
	text = (struct buffer){0};
	wanted = 0;
	put(PERF_RECORD_COMM, BASE, BASE, 0);
	put(PERF_RECORD_MMAP2, BASE, BASE, 0);
	return 0;
}

static void
start(uint32_t pid, uint32_t parent)
{
	put(PERF_RECORD_FORK, pid, parent, pid);
	put(PERF_RECORD_COMM, pid, pid, 0);
	for (unsigned i = 0; i < MAPS; i++)
		put(PERF_RECORD_MMAP2, pid, pid, 0);
}

/* Whatever the numbers are. */
TEST_WITH(does_not_grow_with_children, begin, NULL)
{
	const size_t before = text.len;
	size_t most = 0, forgotten = 0;

	for (uint32_t i = 0; i < CHILDREN; i++) {
		start(BASE + 1 + i % 1000, BASE);
		put(PERF_RECORD_EXIT, BASE + 1 + i % 1000, BASE,
		    BASE + 1 + i % 1000);
		most = text.len > most ? text.len : most;
		if (i % 100 == 99) {
			assert_int_equal(shrink(), before);
			forgotten += gone;
		}
	}
	assert_int_equal(forgotten, CHILDREN);
	assert_true(most < 1 << 20);
}

TEST_WITH(does_not_grow_with_threads, begin, NULL)
{
	const size_t before = text.len;

	for (uint32_t i = 0; i < CHILDREN; i++) {
		put(PERF_RECORD_FORK, BASE, BASE, BASE + 1);
		put(PERF_RECORD_COMM, BASE, BASE + 1, 0);
		put(PERF_RECORD_EXIT, BASE, BASE, BASE + 1);
	}
	assert_int_equal(shrink(), before);
	assert_int_equal(gone, 0);
}

/* A thread goes on where the first one has ended. */
TEST_WITH(who_lives_stays, begin, NULL)
{
	size_t all;

	start(BASE + 1, BASE);
	put(PERF_RECORD_FORK, BASE + 1, BASE + 1, BASE + 2);
	put(PERF_RECORD_EXIT, BASE + 1, BASE, BASE + 1);
	all = text.len;
	assert_int_equal(shrink(), all);
	put(PERF_RECORD_EXIT, BASE + 1, BASE, BASE + 2);
	assert_true(shrink() < all / 5);
	assert_int_equal(gone, 1);
}

/* A child has what its parent had mapped. */
TEST_WITH(what_is_inherited_stays, begin, NULL)
{
	const size_t before = text.len;
	size_t all;

	start(BASE + 1, BASE);
	put(PERF_RECORD_FORK, BASE + 2, BASE + 1, BASE + 2);
	put(PERF_RECORD_EXIT, BASE + 1, BASE, BASE + 1);
	all = text.len;
	assert_int_equal(shrink(), all);
	put(PERF_RECORD_EXIT, BASE + 2, BASE + 1, BASE + 2);
	assert_int_equal(shrink(), before);
	assert_int_equal(gone, 2);
}

/* As one is whose hits are to be told again; of another with its number nothing
   is gone. */
TEST_WITH(what_is_needed_stays, begin, NULL)
{
	const size_t before = text.len;
	size_t all;

	start(BASE + 1, BASE);
	put(PERF_RECORD_EXIT, BASE + 1, BASE, BASE + 1);
	all = text.len;
	wanted = BASE + 1;
	assert_int_equal(shrink(), all);
	start(BASE + 1, BASE);
	wanted = 0;
	assert_true(shrink() < all && text.len > before);
	assert_int_equal(gone, 0);
}

/* --- mappings --- */

static struct remote_log_use use[1];
static size_t nuses;

static void
map(uint32_t pid, uint64_t time, uint64_t addr, uint64_t len)
{
	const struct {
		struct perf_event_header header;
		uint32_t pid, tid;
		uint64_t addr, len;
		char rest[40];
	} record = {
		.header = {PERF_RECORD_MMAP2, 0, sizeof(record)},
		.pid = pid, .tid = pid, .addr = addr, .len = len,
	};
	const struct journal_entry e = {
		.size = (uint32_t)journal_padded(sizeof(e) + sizeof(record)),
		.what = JOURNAL_LEARN, .len = sizeof(record),
		.value = {0, time},
	};

	buffer_put(&text, &e, sizeof(e));
	buffer_put(&text, &record, sizeof(record));
}

static size_t
shrink_used(void)
{
	const struct remote_log_calls calls = {
		.use = use, .nuses = nuses, .needs = needs, .gone = count_gone,
	};

	remote_log_shrink(&text, &calls);
	return text.len;
}

static int
begin_maps(void **state)
{
	nuses = 0;
	return begin(state);
}

/* Whatever it maps, one after the other, where another was. */
TEST_WITH(does_not_grow_with_mappings, begin_maps, NULL)
{
	size_t before;

	map(BASE, 1, 0x1000, 0x4000);
	before = text.len;
	for (unsigned i = 0; i < CHILDREN; i++)
		map(BASE, 2 + i, 0x1000 + i % 3 * 0x1000, 0x2000);
	/* the last three, of which the first has something of its own */
	assert_true(shrink_used() <= before + 2 * (before / 3 + 200));
	map(BASE, 2 * CHILDREN, 0, 0x10000);
	assert_true(shrink_used() <= before);
}

/* Several that are beside each other replace one; what they leave does not
   go. */
TEST_WITH(what_is_not_replaced_stays, begin_maps, NULL)
{
	size_t all;

	map(BASE, 1, 0x1000, 0x4000);
	map(BASE, 2, 0x1000, 0x1000);
	map(BASE, 3, 0x4000, 0x1000);
	map(BASE + 1, 4, 0x2000, 0x2000);
	all = text.len;
	assert_int_equal(shrink_used(), all);
	map(BASE, 5, 0x2000, 0x2000);
	assert_true(shrink_used() == all);
}

/* A hit, or a child, has what was there before. */
TEST_WITH(what_was_used_stays, begin_maps, NULL)
{
	size_t all;

	map(BASE, 1, 0x1000, 0x1000);
	map(BASE, 3, 0x1000, 0x1000);
	all = text.len;
	use[0] = (struct remote_log_use){2, BASE};
	nuses = 1;
	assert_int_equal(shrink_used(), all);
	use[0] = (struct remote_log_use){2, BASE + 1};
	assert_true(shrink_used() < all);
	(void)begin(NULL);
	map(BASE, 1, 0x1000, 0x1000);
	put(PERF_RECORD_FORK, BASE + 1, BASE, BASE + 1);
	map(BASE, 3, 0x1000, 0x1000);
	all = text.len;
	nuses = 0;
	assert_int_equal(shrink_used(), all);
	put(PERF_RECORD_EXIT, BASE + 1, BASE, BASE + 1);
	assert_true(shrink_used() < all);
}

/* What is not of this kind is not looked at. */
TEST_WITH(others_stay, begin, NULL)
{
	const struct journal_entry e = {
		.size = sizeof(e), .what = JOURNAL_READY,
	};
	size_t all;

	buffer_put(&text, &e, sizeof(e));
	put(PERF_RECORD_LOST, BASE + 1, 0, 0);
	put(PERF_RECORD_MMAP, UINT32_MAX, 0, 0);
	all = text.len;
	assert_int_equal(shrink(), all);
}

RUN_TESTS()
