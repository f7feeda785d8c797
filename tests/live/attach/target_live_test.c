/*
 * target: the counts are exactly what the programs did, whatever their threads
 * and children are doing; and what fails leaves nothing behind.
 */
#include "test.h"

#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/ptrace.h>

#include "child.h"
#include "live.h"
#include "proc/proc.h"
#include "record/record.h"
#include "attach/target.h"
#include "ring/uptime.h"

/* Large rings take time to make: fewer attaches with them. */
enum { THREADS = 40, ATTACHES = 15, RING_ATTACHES = 6, RACES = 50,
    ROUNDS = 20 };

/* What children write to and report. */
static struct shared {
	volatile long word;		/* is watched */
	volatile uint8_t area[64];	/* parts of it are watched */
	volatile long far;		/* watched in another process */
	volatile unsigned writes;	/* to word, as their makers count */
	volatile unsigned made;		/* threads that were */
	volatile unsigned alive;	/* threads that are */
	volatile int ready;
	volatile bool go, end;
	volatile pid_t tid[THREADS];
	volatile unsigned turns[THREADS];
	volatile int result;
} *shared;

SHARED_FIXTURE

/* One write of the watched word, counted by who does it. */
static void
write_word(void)
{
	shared->word = 1;
	add(&shared->writes, 1);
}

/* --- targets --- */

static struct wp_target *
new_target(const struct wp_options *options)
{
	struct wp_target *target;
	struct wp_cause cause;

	if (wp_target_new(&target, &live_features, options, &cause) != 0)
		fail_msg("%s", cause.text);
	return target;
}

/* Watch regions.  Result: the index of the first. */
static size_t
watch(struct wp_target *target, const struct wp_region *regions, size_t n)
{
	struct wp_cause cause;
	int first = wp_target_watch(target, regions, n, &cause);

	if (first < 0)
		fail_msg("%s", cause.text);
	return (size_t)first;
}

static size_t
watch_at(struct wp_target *target, const volatile void *at, size_t len)
{
	const struct wp_region region = {(uintptr_t)at, len, WP_WRITE};

	return watch(target, &region, 1);
}

static void
attach(struct wp_target *target, pid_t pid, size_t first, size_t n)
{
	struct wp_cause cause;

	if (wp_target_attach(target, pid, first, n, &cause) != 0)
		fail_msg("%s", cause.text);
}

/* A target that watches the word in a process. */
static struct wp_target *
watch_word(pid_t pid, const struct wp_options *options)
{
	struct wp_target *target = new_target(options);

	attach(target, pid, watch_at(target, &shared->word, 8), 1);
	return target;
}

static struct wp_perf_count
counted(const struct wp_target *target, size_t i)
{
	struct wp_perf_count count;

	assert_int_equal(wp_target_count(target, i, &count), 0);
	return count;
}

static const struct wp_options counting = {.count = true};
static const struct wp_options sampling = {.stack = 256};

/* --- programs --- */

static void
detached(void *(*fn)(void *))
{
	add(&shared->alive, 1);
	child_thread(fn, NULL);
}

static void
live_and_write(void)
{
	add(&shared->made, 1);
	if (shared->go)
		write_word();
}

static void *
leaf(void *arg)
{
	live_and_write();
	add(&shared->alive, -1);
	return arg;
}

/* One that makes threads as fast as it can, but never too many. */
static void *
spawner(void *arg)
{
	while (!shared->end) {
		if (shared->alive < 200)
			detached(leaf);
		else
			(void)sched_yield();
	}
	add(&shared->alive, -1);
	return arg;
}

/* Each makes its successor: none lives long. */
static void *
chain(void *arg)
{
	live_and_write();
	if (!shared->end)
		detached(chain);
	add(&shared->alive, -1);
	return arg;
}

static void
make_threads(void *arg)
{
	void *(*fn)(void *) = *(void *(**)(void *))arg;

	detached(fn);
	detached(fn);
	while (!shared->end || shared->alive > 0)
		nap_us(200);
}

static void *
rest_in_thread(void *arg)
{
	size_t i = (size_t)(uintptr_t)arg;

	shared->tid[i] = gettid();
	add(&shared->alive, 1);
	while (!shared->end) {
		shared->turns[i]++;
		if (shared->go && i == 0)
			break;
		nap_us(1000);
	}
	return NULL;
}

/* arg: how many threads, besides the first. */
static void
have_threads(void *arg)
{
	pthread_t thread;

	for (uintptr_t i = 0; i < (uintptr_t)arg; i++)
		(void)pthread_create(&thread, NULL, rest_in_thread,
		    (void *)i);
	while (shared->alive < (unsigned)(uintptr_t)arg)
		nap_us(100);
	shared->ready = 1;
	while (!shared->end)
		nap_us(1000);
}

static pid_t
start_threads(size_t n)
{
	pid_t pid = child_start(have_threads, (void *)(uintptr_t)n);

	await(shared->ready == 1);
	return pid;
}

/* --- every thread, exactly --- */

static void *(*const makers[])(void *) = {spawner, chain};

/* What the rings hold of the word: samples. */
static uint64_t
drain(struct wp_target *target)
{
	const struct perf_event_header *header;
	uint64_t samples = 0;

	while ((header = wp_rings_next(wp_target_rings(target),
	    UINT64_MAX)) != NULL)
		samples += header->type == PERF_RECORD_SAMPLE;
	return samples;
}

/* Attach to a program in the midst of making threads; then have all of them
   write for a while, and end. */
static void
attach_to_maker(size_t maker, const struct wp_options *options)
{
	void *(*fn)(void *) = makers[maker];
	struct wp_target *target;
	struct wp_perf_count count;
	uint64_t samples = 0;
	unsigned before;
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	pid = child_start(make_threads, &fn);
	await(shared->made > 20);
	target = watch_word(pid, options);
	assert_false(wp_target_inexact(target));
	before = shared->made;
	shared->go = true;
	while (shared->made < before + 100) {
		samples += drain(target);
		nap_us(200);
	}
	shared->end = true;
	assert_int_equal(child_wait(pid), 0);
	samples += drain(target);
	count = counted(target, 0);
	if (count.value != shared->writes)
		fail_msg("%s: %llu of %u writes counted", maker == 0 ?
		    "spawner" : "chain", (unsigned long long)count.value,
		    shared->writes);
	if (options->count)
		assert_int_equal(samples, 0);
	else if (live_features.format_lost)
		assert_int_equal(samples + count.lost, count.value);
	wp_target_free(target);
}

TEST(counts_every_thread_once)
{
	for (int i = 0; i < ATTACHES; i++)
		for (size_t maker = 0; maker < COUNT(makers); maker++)
			attach_to_maker(maker, &counting);
}

TEST(samples_every_thread_once)
{
	for (int i = 0; i < RING_ATTACHES; i++)
		for (size_t maker = 0; maker < COUNT(makers); maker++)
			attach_to_maker(maker, &sampling);
}

/* --- children --- */

static void *
write_once(void *arg)
{
	write_word();
	return arg;
}

/* A family of three generations, each with a thread; when told to, each writes:
   process and thread so many times as its generation. */
static void
have_family(int generation)
{
	pthread_t thread;
	pid_t child = 0;

	if (generation < 3 && (child = fork()) == 0) {
		have_family(generation + 1);
		_exit(0);
	}
	for (int i = 0; i < generation; i++) {
		write_word();
		(void)pthread_create(&thread, NULL, write_once, NULL);
		(void)pthread_join(thread, NULL);
	}
	if (child != 0)
		(void)waitpid(child, NULL, 0);
}

static void
start_family(void *arg)
{
	(void)arg;
	shared->ready = 1;
	while (!shared->go)
		nap_us(100);
	have_family(1);
}

static void
watch_family(bool follow, bool count)
{
	const struct wp_options options = {.follow = follow, .count = count};
	struct wp_target *target;
	uint64_t want;
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	pid = child_start(start_family, NULL);
	await(shared->ready == 1);
	target = watch_word(pid, &options);
	shared->go = true;
	assert_int_equal(child_wait(pid), 0);
	assert_int_equal(shared->writes, 2 * (1 + 2 + 3));
	want = follow || !live_features.inherit_thread ? shared->writes : 2;
	assert_int_equal(counted(target, 0).value, want);
	assert_int_equal(drain(target), count ? 0 : want);
	wp_target_free(target);
}

TEST(follows_children_when_told_to)
{
	for (int i = 0; i < 4; i++)
		watch_family(i & 1, i & 2);
}

/* --- several watches, and regions of several slots --- */

static __attribute__((noinline)) void
be_executed(void)
{
	__asm__ volatile("");
}

static void
touch_all(void *arg)
{
	volatile uint8_t *area = shared->area;

	(void)arg;
	shared->ready = 1;
	while (!shared->go)
		nap_us(100);
	for (size_t i = 0; i < sizeof(shared->area); i++)
		area[i] = (uint8_t)i;
	for (size_t i = 0; i < sizeof(shared->area); i++)
		shared->result += area[i];
	for (int i = 0; i < 100; i++)
		be_executed();
}

static const struct {
	struct { size_t at, len; enum wp_access access; } region[4];
	unsigned count[4];
} layouts[] = {
	{{{0, 8, WP_WRITE}}, {8}},
	{{{0, 8, WP_WRITE}, {8, 8, WP_WRITE}, {16, 1, WP_WRITE},
	    {63, 1, WP_WRITE}}, {8, 8, 1, 1}},
	{{{1, 7, WP_WRITE}, {0, 1, WP_WRITE}}, {7, 1}},
	{{{3, 14, WP_WRITE}}, {14}},	/* 1, 4, 8 and 1 bytes */
	{{{0, 32, WP_WRITE}}, {32}},
	{{{4, 4, WP_WRITE}, {4, 4, WP_ACCESS}}, {4, 8}},
	{{{8, 8, WP_READ}}, {16}},	/* both, on x86 */
	{{{0, 0, WP_EXEC}, {2, 2, WP_WRITE}}, {100, 2}},
};

static void
watch_layout(size_t row, const struct wp_options *options)
{
	struct wp_region regions[4];
	struct wp_target *target;
	size_t n = 0, got;
	uint64_t sum = 0;
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	for (; n < 4 && layouts[row].count[n] != 0; n++)
		regions[n] = (struct wp_region){
			layouts[row].region[n].access == WP_EXEC ?
			    (uintptr_t)be_executed :
			    (uintptr_t)shared->area + layouts[row].region[n].at,
			layouts[row].region[n].len,
			layouts[row].region[n].access,
		};
	pid = child_start(touch_all, NULL);
	await(shared->ready == 1);
	target = new_target(options);
	assert_int_equal(watch(target, regions, n), 0);
	assert_non_null(wp_target_watches(target, &got));
	assert_int_equal(got, n);
	attach(target, pid, 0, n);
	shared->go = true;
	assert_int_equal(child_wait(pid), 0);
	for (size_t i = 0; i < n; i++) {
		uint64_t value = counted(target, i).value;

		if (value != layouts[row].count[i])
			fail_msg("layout %zu, watch %zu: %llu", row, i,
			    (unsigned long long)value);
		sum += value;
	}
	assert_int_equal(drain(target), options->count ? 0 : sum);
	wp_target_free(target);
}

TEST(counts_each_watch)
{
	for (size_t row = 0; row < COUNT(layouts); row++) {
		watch_layout(row, &counting);
		if (row % 2 == 1)
			watch_layout(row, &sampling);
	}
}

/* --- several processes --- */

static void
write_both(void *arg)
{
	long times = (long)(intptr_t)arg;

	__atomic_add_fetch(&shared->ready, 1, __ATOMIC_SEQ_CST);
	while (!shared->go)
		nap_us(100);
	for (long i = 0; i < times; i++) {
		shared->word = i;
		shared->far = i;
	}
}

/* Of two that write both words, one is watched at each. */
TEST(watches_each_process_where_told)
{
	struct wp_target *target = new_target(&sampling);
	pid_t one = child_start(write_both, (void *)10);
	pid_t two = child_start(write_both, (void *)70);
	size_t first, second;

	await(shared->ready == 2);
	first = watch_at(target, &shared->word, 8);
	second = watch_at(target, &shared->far, 8);
	assert_int_equal(first, 0);
	assert_int_equal(second, 1);
	attach(target, one, first, 1);
	attach(target, two, second, 1);
	assert_int_equal(wp_target_threads(target), 2);
	shared->go = true;
	assert_int_equal(child_wait(one), 0);
	assert_int_equal(child_wait(two), 0);
	assert_int_equal(counted(target, first).value, 10);
	assert_int_equal(counted(target, second).value, 70);
	assert_int_equal(drain(target), 80);
	wp_target_free(target);
}

/* --- records can be told apart --- */

TEST(knows_its_events)
{
	const struct wp_region regions[] = {
		{(uintptr_t)shared->area + 4, 12, WP_WRITE},
		{(uintptr_t)shared->area + 16, 1, WP_WRITE},
	};
	struct wp_target *target = new_target(&sampling);
	struct ex_formats *formats = ex_formats_new();
	const struct perf_event_header *header;
	unsigned hits[3] = {0}, rings;
	struct ex_record record;
	pid_t pid = child_start(touch_all, NULL);

	await(shared->ready == 1);
	watch(target, regions, COUNT(regions));
	attach(target, pid, 0, COUNT(regions));
	rings = wp_rings_count(wp_target_rings(target));
	for (int i = 0; i < 3; i++) {
		struct perf_event_attr attr;
		uint64_t *ids;
		int n = wp_target_slot_ids(target, (size_t)i / 2,
		    (unsigned)i % 2, &attr, &ids);

		assert_int_equal(n, rings);
		assert_int_equal(ex_formats_add(formats, &attr, ids,
		    (size_t)n), i);
		free(ids);
	}
	shared->go = true;
	assert_int_equal(child_wait(pid), 0);
	while ((header = wp_rings_next(wp_target_rings(target),
	    UINT64_MAX)) != NULL) {
		assert_int_equal(ex_record_decode(formats, header,
		    header->size, &record), 1);
		if (record.type != PERF_RECORD_SAMPLE)
			continue;
		assert_in_range(record.attr, 0, 2);
		assert_int_equal(record.pid, pid);
		hits[record.attr]++;
	}
	assert_int_equal(hits[0], 4);
	assert_int_equal(hits[1], 8);
	assert_int_equal(hits[2], 1);
	ex_formats_free(formats);
	wp_target_free(target);
}

static void
map_and_touch(void *arg)
{
	(void)arg;
	__atomic_add_fetch(&shared->ready, 1, __ATOMIC_SEQ_CST);
	while (!shared->go)
		nap_us(100);
	(void)mmap(NULL, 4096, PROT_READ | PROT_EXEC,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	shared->word = 1;
}

/* Of several processes: what is said of an event is what it was opened with, so
   that one whose records of mappings and ends come has asked for them. */
TEST(says_what_each_event_records)
{
	enum { PROCESSES = 3, WATCHES = 2 };
	const struct wp_region regions[WATCHES] = {
		{(uintptr_t)&shared->far, 8, WP_WRITE},
		{(uintptr_t)&shared->word, 8, WP_WRITE},
	};
	struct wp_target *target = new_target(&sampling);
	struct ex_formats *formats = ex_formats_new();
	struct perf_event_attr attr[PROCESSES * WATCHES];
	unsigned of[PROCESSES * WATCHES][PERF_RECORD_MAX] = {{0}};
	const struct perf_event_header *header;
	struct ex_record r;
	pid_t pid[PROCESSES];

	for (unsigned i = 0; i < PROCESSES; i++)
		pid[i] = child_start(map_and_touch, NULL);
	await(shared->ready == PROCESSES);
	for (unsigned i = 0; i < PROCESSES; i++)
		attach(target, pid[i], watch(target, regions, WATCHES),
		    WATCHES);
	for (unsigned i = 0; i < PROCESSES * WATCHES; i++) {
		uint64_t *ids;
		int n = wp_target_slot_ids(target, i, 0, &attr[i], &ids);

		assert_int_equal(ex_formats_add(formats, &attr[i], ids,
		    (size_t)n), i);
		free(ids);
	}
	shared->go = true;
	for (unsigned i = 0; i < PROCESSES; i++)
		assert_int_equal(child_wait(pid[i]), 0);
	while ((header = wp_rings_next(wp_target_rings(target),
	    UINT64_MAX)) != NULL) {
		assert_int_equal(ex_record_decode(formats, header,
		    header->size, &r), 1);
		assert_in_range(r.attr, 0, PROCESSES * WATCHES - 1);
		of[r.attr][r.type]++;
	}
	for (unsigned i = 0; i < PROCESSES * WATCHES; i++) {
		assert_int_equal(of[i][PERF_RECORD_EXIT] > 0, attr[i].task);
		assert_int_equal(of[i][PERF_RECORD_MMAP2] > 0, attr[i].mmap2);
		assert_int_equal(attr[i].task, i % WATCHES == 0);
	}
	ex_formats_free(formats);
	wp_target_free(target);
}

/* --- what is reported of it --- */

TEST(reports_the_attach)
{
	struct wp_target *target = new_target(&counting);
	pid_t pid = start_threads(THREADS);
	uint64_t began, took;

	assert_int_equal(wp_target_threads(target), 0);
	assert_true(wp_target_frozen_ms(target) < 0);
	assert_false(wp_target_alive(target, 0, 1));
	began = wp_clock_ns();
	attach(target, pid, watch_at(target, &shared->word, 8), 1);
	took = wp_clock_ns() - began;
	assert_int_equal(wp_target_threads(target), THREADS + 1);
	assert_false(wp_target_inexact(target));
	assert_true(wp_target_frozen_ms(target) > 0);
	assert_true(wp_target_frozen_ms(target) <= (double)took / 1e6);
	assert_true(wp_target_options(target)->count);
	for (int i = 0; i < THREADS; i++) {
		struct wp_proc_status status;

		assert_int_equal(wp_proc_status(shared->tid[i], &status), 0);
		assert_int_equal(status.tracer, 0);
	}
	assert_true(wp_target_alive(target, 0, 1));
	shared->end = true;
	assert_int_equal(child_wait(pid), 0);
	await(!wp_target_alive(target, 0, 1));
	wp_target_free(target);
}

static void
write_slowly(void *arg)
{
	(void)arg;
	while (!shared->end) {
		write_word();
		nap_us(200);
	}
}

TEST(counts_no_more_when_stopped)
{
	pid_t pid = child_start(write_slowly, NULL);
	struct wp_target *target = watch_word(pid, &sampling);
	uint64_t before;
	unsigned writes;

	await(counted(target, 0).value > 10);
	wp_target_stop(target);
	before = counted(target, 0).value;
	writes = shared->writes;
	await(shared->writes > writes + 10);
	assert_int_equal(counted(target, 0).value, before);
	assert_int_equal(drain(target), before);
	wp_target_stop(target);
	assert_int_equal(live_free_slots(pid),
	    live_features.caps.slots - 1);
	wp_target_free(target);
	assert_int_equal(live_free_slots(pid), live_features.caps.slots);
	child_kill(pid);
}

static void *
write_both_once(void *arg)
{
	shared->word = 1;
	shared->far = 1;
	add(&shared->alive, -1);
	return arg;
}

/* Both words, by threads that live on and by new ones. */
static void
write_both_slowly(void *arg)
{
	(void)arg;
	while (!shared->end) {
		shared->word = 1;
		shared->far = 1;
		detached(write_both_once);
		while (shared->alive > 0)
			nap_us(50);
		add(&shared->writes, 1);
	}
}

static uint64_t
forks(struct wp_target *target)
{
	const struct perf_event_header *header;
	uint64_t n = 0;

	while ((header = wp_rings_next(wp_target_rings(target),
	    UINT64_MAX)) != NULL)
		n += header->type == PERF_RECORD_FORK;
	return n;
}

/* Its hits end in all threads, and nothing else does: not even what its events
   report besides. */
TEST(one_watch_is_turned_off)
{
	const pid_t pid = child_start(write_both_slowly, NULL);
	struct wp_target *target = new_target(&sampling);
	const struct wp_region regions[] = {
		{(uintptr_t)&shared->word, 8, WP_WRITE},
		{(uintptr_t)&shared->far, 8, WP_WRITE},
	};
	struct wp_uptime uptime = {0};
	uint64_t before, other, forked = 0;
	unsigned writes;

	attach(target, pid, watch(target, regions, 2), 2);
	await(counted(target, 0).value > 10);
	wp_target_turn_off(target, 0);
	/* a thread that was being created may still hit, until it ends */
	writes = shared->writes;
	await(shared->writes > writes + 1);
	before = counted(target, 0).value;
	other = counted(target, 1).value;
	(void)forks(target);
	writes = shared->writes;
	await(shared->writes > writes + 10);
	assert_int_equal(counted(target, 0).value, before);
	assert_true(counted(target, 1).value >= other + 20);
	await((forked += forks(target)) >= 10);
	wp_target_stop(target);
	wp_target_uptime(target, &uptime);
	assert_true(uptime.known);
	assert_int_equal(uptime.off, 0);
	wp_target_free(target);
	child_kill(pid);
}

/* --- what fails leaves nothing --- */

TEST(leaves_nothing_when_slots_are_taken)
{
	const struct wp_region region = {
		(uintptr_t)shared->area + 1, 7, WP_WRITE,
	};
	struct wp_target *target = new_target(&sampling);
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT, .size = sizeof(attr),
		.bp_type = HW_BREAKPOINT_W, .bp_len = 8, .exclude_kernel = 1,
		.bp_addr = (uintptr_t)&shared->word, .sample_period = 1,
	};
	const unsigned all = live_features.caps.slots;
	pid_t pid = start_threads(THREADS), last = shared->tid[THREADS - 1];
	struct wp_cause cause = {0};
	char thread[32];
	unsigned before;
	int taken[WP_SLOTS_MAX];

	if (all < 4) {
		print_message("only %u slots are free here\n", all);
		wp_target_free(target);
		skip();
	}
	for (unsigned i = 0; i < all - 2; i++)
		assert_true((taken[i] = wp_perf_open(&attr, last, -1)) >= 0);
	watch(target, &region, 1);	/* takes three */
	before = open_descriptors();
	assert_int_equal(wp_target_attach(target, pid, 0, 1, &cause), -ENOSPC);
	assert_int_equal(cause.code, WP_CAUSE_NO_SLOT);
	(void)snprintf(thread, sizeof(thread), "thread %d:", last);
	assert_holds(cause.text, thread);
	/* we were its tracer at that time, which is no reason */
	assert_lacks(cause.text, "tracer");
	assert_int_equal(open_descriptors(), before);
	assert_int_equal(wp_target_threads(target), 0);
	assert_int_equal(live_free_slots(pid), all);
	for (int i = 0; i < THREADS - 1; i++)
		assert_int_equal(live_free_slots(shared->tid[i]), all);
	assert_int_equal(live_free_slots(last), 2);
	for (int i = 0; i < THREADS; i++) {
		unsigned turns = shared->turns[i];

		await(shared->turns[i] != turns);
	}
	/* it can be attached as soon as they are free */
	for (unsigned i = 0; i < all - 2; i++)
		(void)close(taken[i]);
	assert_int_equal(wp_target_attach(target, pid, 0, 1, &cause), 0);
	assert_int_equal(wp_target_threads(target), THREADS + 1);
	wp_target_free(target);
	shared->end = true;
	assert_int_equal(child_wait(pid), 0);
}

/* One process of a target that already has another. */
TEST(keeps_what_was_attached_before)
{
	struct wp_target *target = new_target(&counting);
	pid_t pid = child_start(write_slowly, NULL);
	struct wp_cause cause;

	attach(target, pid, watch_at(target, &shared->word, 8), 1);
	assert_true(wp_target_attach(target, getpid(), 0, 1, &cause) < 0);
	assert_int_equal(cause.code, WP_CAUSE_SELF);
	assert_int_equal(wp_target_threads(target), 1);
	await(counted(target, 0).value > 10);
	wp_target_free(target);
	child_kill(pid);
}

static void
end_soon(void *arg)
{
	shared->ready = 1;
	nap_us((long)(intptr_t)arg);
	_exit(42);
}

static bool
is_end(enum wp_cause_code code)
{
	return code == WP_CAUSE_GONE || code == WP_CAUSE_NO_PROCESS ||
	    code == WP_CAUSE_ZOMBIE;
}

TEST(survives_processes_that_end)
{
	unsigned before = open_descriptors();

	for (int i = 0; i < RACES; i++) {
		struct wp_target *target = new_target(&counting);
		struct wp_cause cause = {0};
		int err, status;
		pid_t pid;

		shared->ready = 0;
		pid = child_start(end_soon, (void *)(intptr_t)(i * 20));
		await(shared->ready == 1);
		watch_at(target, &shared->word, 8);
		err = wp_target_attach(target, pid, 0, 1, &cause);
		if (err != 0 && !is_end(cause.code))
			fail_msg("%s", cause.text);
		status = child_wait(pid);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 42);
		assert_int_equal(counted(target, 0).value, 0);
		wp_target_free(target);
	}
	assert_int_equal(open_descriptors(), before);
}

static void
watch_and_wait(void *arg)
{
	struct wp_target *target;
	struct wp_cause cause;

	if (wp_target_new(&target, &live_features, &sampling, &cause) != 0)
		_exit(1);
	watch_at(target, &shared->word, 8);
	shared->result = wp_target_attach(target, *(pid_t *)arg, 0, 1, &cause);
	shared->ready = 2;
	for (;;)
		(void)pause();
}

/* Whoever watches is killed: the watched go on as if nothing had been. */
TEST(targets_outlive_their_watcher)
{
	pid_t pid = start_threads(5);
	pid_t watcher = child_start(watch_and_wait, &pid);

	await(shared->ready == 2);
	assert_int_equal(shared->result, 0);
	assert_int_equal(live_free_slots(pid), live_features.caps.slots - 1);
	child_kill(watcher);
	assert_int_equal(live_free_slots(pid), live_features.caps.slots);
	for (int i = 0; i < 5; i++)
		assert_int_equal(live_free_slots(shared->tid[i]),
		    live_features.caps.slots);
	shared->end = true;
	assert_int_equal(child_wait(pid), 0);
}

/* --- where the process cannot be held --- */

static void
trace(void *arg)
{
	shared->result = ptrace(PTRACE_SEIZE, *(pid_t *)arg, 0, 0) == 0 ? 1 :
	    -errno;
	for (;;)
		(void)pause();
}

static void
start_tracer(pid_t *pid, pid_t *tracer)
{
	*tracer = child_start(trace, pid);
	await(shared->result != 0);
	assert_int_equal(shared->result, 1);
}

TEST(attaches_without_holding)
{
	struct wp_target *target;
	pid_t pid = child_start(write_slowly, NULL), tracer;
	uint64_t before;
	unsigned writes;

	start_tracer(&pid, &tracer);
	target = watch_word(pid, &counting);
	assert_true(wp_target_inexact(target));
	assert_true(wp_target_frozen_ms(target) < 0);
	assert_int_equal(wp_target_threads(target), 1);
	before = counted(target, 0).value;
	writes = shared->writes;
	await(counted(target, 0).value > before + 10);
	assert_true(shared->writes > writes);
	child_kill(tracer);
	shared->end = true;
	assert_int_equal(child_wait(pid), 0);
	wp_target_free(target);
}

/* It makes threads faster than they can be looked at: that has an end. */
TEST(searches_for_threads_for_a_limited_time)
{
	void *(*fn)(void *) = chain;
	pid_t pid = child_start(make_threads, &fn), tracer;
	struct wp_target *target;
	uint64_t began;

	await(shared->made > 20);
	start_tracer(&pid, &tracer);
	began = wp_clock_ns();
	target = watch_word(pid, &counting);
	assert_true(wp_clock_ns() - began < CHILD_PATIENCE_MS * 1000000ull);
	assert_true(wp_target_inexact(target));
	wp_target_free(target);
	child_kill(tracer);
	shared->end = true;
	assert_int_equal(child_wait(pid), 0);
}

/* As a test that fails leaves them. */
TEST(a_traced_process_ends_after_its_tracer)
{
	pid_t pid = child_start(write_slowly, NULL), tracer;

	start_tracer(&pid, &tracer);
	assert_int_equal(children_end(NULL), 0);
	assert_int_equal(kill(pid, 0), -1);
	assert_int_equal(kill(tracer, 0), -1);
}

/* --- what can be known beforehand --- */

static pid_t
start_zombie(void)
{
	pid_t pid = child_start(end_soon, NULL);
	siginfo_t info;

	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT),
	    0);
	return pid;
}

static void
expect_checked(pid_t pid, enum wp_cause_code code)
{
	struct wp_cause cause = {0};
	int err = wp_target_check(pid, &cause);

	assert_int_equal(cause.code, code);
	assert_int_equal(err, -cause.err);
}

TEST(checks_what_can_be_attached)
{
	struct wp_proc_status status;
	pid_t pid = start_threads(2), zombie = start_zombie();

	expect_checked(pid, WP_CAUSE_NONE);
	expect_checked(shared->tid[0], WP_CAUSE_NOT_A_PROCESS);
	expect_checked(zombie, WP_CAUSE_ZOMBIE);
	(void)child_wait(zombie);
	expect_checked(zombie, WP_CAUSE_NO_PROCESS);
	expect_checked(0, WP_CAUSE_NO_PROCESS);
	expect_checked(-1, WP_CAUSE_NO_PROCESS);
	expect_checked(INT_MAX, WP_CAUSE_NO_PROCESS);
	expect_checked(getpid(), WP_CAUSE_SELF);
	if (wp_proc_status(2, &status) == 0 &&
	    strcmp(status.comm, "kthreadd") == 0)
		expect_checked(2, WP_CAUSE_KERNEL_THREAD);
	shared->end = true;
	assert_int_equal(child_wait(pid), 0);
}

static void
expect_mapped(pid_t pid, uint64_t addr, uint64_t len, enum wp_access access,
    enum wp_cause_code code)
{
	const struct wp_region region = {addr, len, access};
	struct wp_cause cause = {0};
	int err = wp_target_mapped(pid, &region, &cause);

	if (cause.code != code)
		fail_msg("%#llx: %s", (unsigned long long)addr,
		    wp_cause_name(cause.code));
	assert_int_equal(err, -cause.err);
}

TEST(checks_what_is_mapped)
{
	const uint64_t end = wp_slot_user_end();
	uint64_t at = (uintptr_t)mmap(NULL, 3 * 4096, PROT_READ, MAP_PRIVATE |
	    MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	/* two mappings side by side, and then none */
	assert_int_equal(mprotect((void *)at, 4096, PROT_NONE), 0);
	assert_int_equal(munmap((void *)(at + 2 * 4096), 4096), 0);
	pid = start_threads(0);
	expect_mapped(pid, at, 8192, WP_WRITE, WP_CAUSE_NONE);
	expect_mapped(pid, at + 4092, 8, WP_WRITE, WP_CAUSE_NONE);
	expect_mapped(pid, at + 8191, 1, WP_WRITE, WP_CAUSE_NONE);
	expect_mapped(pid, at + 8191, 2, WP_WRITE, WP_CAUSE_UNMAPPED);
	expect_mapped(pid, at + 8192, 1, WP_WRITE, WP_CAUSE_UNMAPPED);
	expect_mapped(pid, at + 8191, 4096, WP_EXEC, WP_CAUSE_NONE);
	expect_mapped(pid, 0, 8, WP_WRITE, WP_CAUSE_UNMAPPED);
	expect_mapped(pid, end - 1, 1, WP_WRITE, WP_CAUSE_UNMAPPED);
	expect_mapped(pid, end, 1, WP_WRITE, WP_CAUSE_NON_CANONICAL);
	expect_mapped(pid, end - 1, 2, WP_WRITE, WP_CAUSE_NON_CANONICAL);
	expect_mapped(pid, 0xdeadbeefdeadbeef, 1, WP_WRITE,
	    WP_CAUSE_NON_CANONICAL);
	expect_mapped(pid, UINT64_MAX, 2, WP_WRITE, WP_CAUSE_NON_CANONICAL);
	expect_mapped(pid, 0xffffffff81000000, 8, WP_WRITE,
	    WP_CAUSE_KERNEL_ADDRESS);
	child_kill(pid);
	expect_mapped(pid, at, 8, WP_WRITE, WP_CAUSE_NO_PROCESS);
	(void)munmap((void *)at, 8192);
}

TEST(refuses_more_than_there_are_slots)
{
	const uint64_t at = (uintptr_t)shared->area;
	const struct wp_region regions[] = {
		{at, 8, WP_WRITE}, {at + 9, 7, WP_WRITE}, {at + 16, 1, WP_READ},
		{at + 17, 1, WP_READ},
	};
	const struct wp_region kernel = {UINT64_MAX - 4095, 8, WP_WRITE};
	const struct wp_slot_caps usual = wp_slot_usual;
	struct wp_features features = live_features;
	struct wp_target *target;
	struct wp_cause cause;
	struct wp_perf_count count;
	size_t n;

	features.caps = usual;
	assert_int_equal(wp_target_new(&target, &features, &counting, &cause),
	    0);
	assert_int_equal(wp_target_watch(target, regions, 3, &cause),
	    -ENOSPC);	/* 1 + 3 + 1 */
	assert_int_equal(cause.code, WP_CAUSE_TOO_MANY);
	assert_int_equal(wp_target_watch(target, &kernel, 1, &cause), -EPERM);
	assert_int_equal(cause.code, WP_CAUSE_KERNEL_ADDRESS);
	(void)wp_target_watches(target, &n);
	assert_int_equal(n, 0);
	assert_int_equal(wp_target_watch(target, regions, 2, &cause), 0);
	/* another process has slots of its own */
	assert_int_equal(wp_target_watch(target, &regions[1], 2, &cause), 2);
	(void)wp_target_watches(target, &n);
	assert_int_equal(n, 4);
	assert_int_equal(wp_target_count(target, 3, &count), 0);
	assert_int_equal(count.value, 0);
	assert_int_equal(wp_target_count(target, 4, &count), -EINVAL);
	wp_target_free(target);
	wp_target_free(NULL);
}

TEST(refuses_more_than_can_be_told_apart)
{
	const struct wp_region region = {(uintptr_t)shared->area, 8, WP_WRITE};
	struct wp_target *target = new_target(&counting);
	struct wp_cause cause;

	for (int i = 0; i < 65535; i++)
		if (wp_target_watch(target, &region, 1, &cause) != i)
			fail_msg("%d: %s", i, cause.text);
	assert_int_equal(wp_target_watch(target, &region, 1, &cause), -ENOSPC);
	assert_int_equal(cause.code, WP_CAUSE_RUN_FULL);
	wp_target_free(target);
}

static void
write_each_turn(void *arg)
{
	(void)arg;
	shared->ready = 1;
	for (unsigned i = 0; !shared->end; i++) {
		await(shared->made > i || shared->end);
		shared->word = 1;
		shared->turns[0] = i + 1;
	}
}

/* Mappings of this process that it shares with programs of the kernel. */
static unsigned
count_bpf_maps(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned n = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps) != NULL)
		n += strstr(line, "bpf-map") != NULL;
	(void)fclose(maps);
	return n;
}

/* A process can have only so many mappings; what was known at the end stays
   so. */
TEST(what_is_disarmed_takes_no_mapping)
{
	const struct wp_options options = {.bpf = true};
	struct wp_target *target = new_target(&options);
	const bool tickets = wp_target_options(target)->tickets;
	const unsigned before = count_bpf_maps();
	pid_t pid = child_start(write_each_turn, NULL);

	await(shared->ready == 1);
	for (unsigned i = 0; i < 3; i++) {
		const size_t w = watch_at(target, &shared->word, 8);
		struct wp_ticket_mark mark;

		attach(target, pid, w, 1);
		assert_int_equal(count_bpf_maps(), before + tickets);
		shared->made = i + 1;
		await(shared->turns[0] == i + 1);
		wp_target_disarm(target, w, 1);
		assert_int_equal(count_bpf_maps(), before);
		assert_int_equal(counted(target, w).value, 1);
		assert_int_equal(wp_target_mark(target, w, 0, &mark), tickets ?
		    1 : -ENOENT);
		assert_true(!tickets || (mark.all == 1 && mark.upto == 1));
	}
	child_kill(pid);
	wp_target_free(target);
}

/* Bytes that were allocated and are not freed; sanitized there is no such
   count, but 0. */
static size_t
allocated(void)
{
	const struct mallinfo2 all = mallinfo2();

	return all.uordblks + all.hblkhd;
}

/* Watches of processes that have ended add up, in a run that takes in whoever
   comes: what stays of one is what is known of it, and no room for slots that
   it never had. */
TEST(what_is_disarmed_takes_little_memory)
{
	enum { FEW = 64, MANY = 192 };
	const struct wp_options options = {.bpf = true};
	struct wp_target *target = new_target(&options);
	pid_t pid = child_start(write_each_turn, NULL);
	size_t before = 0;

	await(shared->ready == 1);
	for (unsigned i = 0; i < MANY; i++) {
		const size_t w = watch_at(target, &shared->word, 8);

		if (i == FEW)
			before = allocated();
		attach(target, pid, w, 1);
		wp_target_disarm(target, w, 1);
	}
	/* arrays have up to twice the room that they need */
	assert_true(allocated() - before < (MANY - FEW) * 3072);
	child_kill(pid);
	wp_target_free(target);
}

static void
write_always(void *arg)
{
	(void)arg;
	while (!shared->end)
		shared->word = 1;
}

/* It may hit while it is being turned off, which its last mark does not vouch
   for. */
TEST(what_is_turned_off_is_marked_once)
{
	const struct wp_options options = {.bpf = true};
	struct wp_target *target = new_target(&options);
	const bool tickets = wp_target_options(target)->tickets;
	pid_t pid = child_start(write_always, NULL);

	for (unsigned i = 0; i < ROUNDS; i++) {
		const size_t w = watch_at(target, &shared->word, 8);
		struct wp_ticket_mark mark = {0};

		attach(target, pid, w, 1);
		await(counted(target, w).value > 100);
		wp_target_turn_off(target, w);
		assert_int_equal(wp_target_mark(target, w, 0, &mark), tickets ?
		    1 : -ENOENT);
		assert_int_equal(wp_target_mark(target, w, mark.taken,
		    &mark), tickets ? 0 : -ENOENT);
		wp_target_disarm(target, w, 1);
	}
	child_kill(pid);
	wp_target_free(target);
}

/* What nobody has read is not known, whatever the memory held before. */
TEST(knows_no_events_before_attaching)
{
	const struct wp_options options = {.count = true};
	const struct wp_watched *watched;
	struct wp_target *target;
	size_t n;

	(void)mallopt(M_PERTURB, 0x5a);
	target = new_target(&options);
	(void)watch_at(target, &shared->word, 8);
	(void)mallopt(M_PERTURB, 0);
	watched = wp_target_watches(target, &n);
	assert_int_equal(n, 1);
	assert_int_equal(watched->nbefore, 0);
	wp_target_free(target);
}

RUN_LIVE_TESTS(.before_each = clear_shared,
    .after_each = children_end)
