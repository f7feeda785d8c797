/*
 * ring: hits of real breakpoints are read complete and in order, and each is
 * either read or accounted for as lost.
 */
#include "test.h"

#include <asm/perf_regs.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>

#include "child.h"
#include "probe/probe.h"
#include "ring/event_table.h"
#include "live.h"
#include "proc/proc.h"
#include "record/record.h"

enum {
	RING = 64 << 10,	/* the smallest */
	TURNS = 300,		/* of two threads on two processors */
	WRITES = 4000,		/* in a row */
	PATTERN = 48 << 10,	/* bytes on the writer's stack */
	ON_ITS_WAY = 1000000,	/* how long a record may take, ns */
	NOBODIES = 61000,	/* a range of users that nobody is */
	NOBODIES_MAX = 4000,
};

static struct shared {
	volatile long word;	/* is watched */
	volatile long done;	/* so many writes there were */
	volatile long wanted;	/* so many there may be */
	volatile int ready;
	volatile uintptr_t pattern;	/* on the writer's stack */
	/* what an unprivileged child found */
	volatile int result, n;
	volatile size_t size;
	struct wp_cause cause;
} *shared;

SHARED_FIXTURE

/* --- processes that write, each time a value one more than before --- */

static void
write_value(long value)
{
#ifdef __x86_64__
	__asm__ volatile("mov %%rax, (%1)" : : "a"(value), "r"(&shared->word) :
	    "memory");
#else
	shared->word = value;
#endif
	__atomic_add_fetch(&shared->done, 1, __ATOMIC_SEQ_CST);
}

#ifdef __x86_64__
enum { REG_VALUE = PERF_REG_X86_AX, REG_SP = PERF_REG_X86_SP };
#else
enum { REG_VALUE = PERF_REG_ARM64_X0, REG_SP = PERF_REG_ARM64_SP };
#endif

/* A thread stays on one of the processors that may be used: the nth, or the
   first. */
static void
pin(pid_t tid, int nth)
{
	cpu_set_t all, one;

	(void)sched_getaffinity(0, sizeof(all), &all);
	for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		if (seen == 0 || seen == nth) {
			CPU_ZERO(&one);
			CPU_SET(cpu, &one);
		}
		if (seen++ == nth)
			break;
	}
	(void)sched_setaffinity(tid, sizeof(one), &one);
}

/* Whether more than one may be used. */
static bool
several_processors(void)
{
	cpu_set_t all;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	return CPU_COUNT(&all) > 1;
}

/* Write as many as are wanted, then wait for more to be. */
static void
write_on_demand(void *arg)
{
	long i = 0;

	(void)arg;
	pin(0, 0);
	shared->ready = 1;
	for (;;) {
		while (i < shared->wanted)
			write_value(i++);
		nap_us(100);
	}
}

/* The same with much on the stack: byte i of the pattern is i * 7. */
__attribute__((no_sanitize_address)) static void
write_with_stack(void *arg)
{
	volatile uint8_t pattern[PATTERN] = {0};

	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)(i * 7);
	shared->pattern = (uintptr_t)pattern;
	write_on_demand(arg);
	shared->word = pattern[0];
}

static void *
take_turns(void *arg)
{
	long me = (long)(intptr_t)arg;

	pin(0, (int)me);
	while (shared->wanted == 0)
		nap_us(100);
	for (long i = me; i < TURNS; i += 2) {
		while (shared->done != i)
			(void)sched_yield();
		write_value(i);
	}
	return NULL;
}

static void
write_by_turns(void *arg)
{
	pthread_t thread[2];

	(void)arg;
	for (long i = 0; i < 2; i++)
		(void)pthread_create(&thread[i], NULL, take_turns,
		    (void *)(intptr_t)i);
	shared->ready = 1;
	for (int i = 0; i < 2; i++)
		(void)pthread_join(thread[i], NULL);
}

/* Let it write n more. */
static void
let_write(long n)
{
	shared->wanted += n;
	await(shared->done == shared->wanted);
}

/* --- watching them --- */

struct watched {
	pid_t pid;
	struct wp_rings *rings;
	struct wp_events events;
	struct ex_formats *formats;
};

static void
watch_start(struct watched *w, void (*fn)(void *), uint32_t stack)
{
	const struct wp_slot slot = {
		(uintptr_t)&shared->word, sizeof(long), HW_BREAKPOINT_W,
	};
	struct wp_options options = {.stack = stack};
	struct perf_event_attr attr;
	struct wp_cause cause;
	pid_t *tids = NULL;
	size_t cap = 0;
	int n;

	memset(w, 0, sizeof(*w));
	w->pid = child_start(fn, NULL);
	await(shared->ready == 1);
	assert_int_equal(wp_rings_open(&w->rings, RING, &cause), 0);
	wp_options_fit(&options, &live_features);
	wp_attr_watch(&attr, &slot, &options, false);
	w->formats = ex_formats_new();
	assert_int_equal(ex_formats_add(w->formats, &attr, NULL, 0), 0);
	/* threads that are there already have events of their own */
	n = wp_proc_threads(w->pid, &tids, &cap);
	assert_true(n > 0);
	for (int i = 0; i < n; i++)
		assert_int_equal(wp_events_open(&w->events, &attr, 0, 0,
		    tids[i], w->rings), 0);
	free(tids);
	for (size_t i = 0; i < w->events.n; i++) {
		uint64_t id;

		assert_int_equal(wp_perf_id(w->events.event[i].fd, &id), 0);
		assert_int_equal(ex_formats_ids(w->formats, 0, &id, 1), 0);
	}
}

static void
watch_end(struct watched *w)
{
	wp_events_close(&w->events, 0);
	wp_rings_close(w->rings);
	ex_formats_free(w->formats);
	child_kill(w->pid);
}

static struct wp_perf_count
counted(const struct watched *w)
{
	struct wp_perf_count sum = {0}, one;

	for (size_t i = 0; i < w->events.n; i++) {
		assert_int_equal(wp_perf_read(w->events.event[i].fd,
		    live_format(), &one), 0);
		sum.value += one.value;
		sum.lost += one.lost;
	}
	return sum;
}

/* The next record, decoded.  False: there is none. */
static bool
next_of_all(const struct watched *w, uint64_t horizon, struct ex_record *record)
{
	const struct perf_event_header *header =
	    wp_rings_next(w->rings, horizon);

	if (header == NULL)
		return false;
	assert_int_equal(ex_record_decode(w->formats, header, header->size,
	    record), 1);
	return true;
}

/* The next one of the kernel's. */
static bool
next(const struct watched *w, uint64_t horizon, struct ex_record *record)
{
	do {
		if (!next_of_all(w, horizon, record))
			return false;
	} while (record->type == PERF_RECORD_LOST && record->lost.count == 0);
	return true;
}

static uint64_t
reg(const struct ex_record *record, unsigned n)
{
	uint64_t value = 0;

	assert_true(ex_regs_get(&record->sample.user, n, &value));
	return value;
}

/* --- order --- */

TEST(merges_processors_by_time)
{
	struct watched w;
	struct ex_record record;
	uint64_t before = 0, seen = 0, horizon = 0;
	uint32_t cpu[2] = {UINT32_MAX, UINT32_MAX};
	bool ended = false;

	watch_start(&w, write_by_turns, 0);
	shared->wanted = 1;
	while (horizon != UINT64_MAX) {
		/* all there is, when nothing more comes */
		horizon = ended ? UINT64_MAX : wp_clock_ns() - ON_ITS_WAY;
		ended = shared->done == TURNS;
		while (next(&w, horizon, &record)) {
			assert_int_equal(record.type, PERF_RECORD_SAMPLE);
			assert_true(record.time >= before);
			assert_true(record.time <= horizon);
			assert_int_equal(reg(&record, REG_VALUE), seen);
			cpu[seen % 2] = record.cpu;
			before = record.time;
			seen++;
		}
		nap_us(500);
	}
	assert_int_equal(seen, TURNS);
	assert_int_equal(counted(&w).value, TURNS);
	assert_int_equal(counted(&w).lost, 0);
	assert_int_equal(cpu[0] != cpu[1], several_processors());
	watch_end(&w);
}

TEST(gives_nothing_younger_than_asked)
{
	struct ex_record record;
	struct watched w;
	uint64_t start, between;
	int n = 0;

	watch_start(&w, write_on_demand, 0);
	start = wp_clock_ns();
	let_write(5);
	between = wp_clock_ns();
	let_write(5);
	assert_false(next(&w, start, &record));
	while (next(&w, between, &record)) {
		assert_true(record.time > start && record.time < between);
		assert_int_equal(reg(&record, REG_VALUE), n++);
	}
	assert_int_equal(n, 5);
	assert_false(next(&w, between, &record));
	while (next(&w, UINT64_MAX, &record)) {
		assert_true(record.time > between);
		assert_int_equal(reg(&record, REG_VALUE), n++);
	}
	assert_int_equal(n, 10);
	/* nothing is given twice, and what comes later is */
	assert_false(next(&w, UINT64_MAX, &record));
	let_write(1);
	assert_true(next(&w, UINT64_MAX, &record));
	assert_int_equal(reg(&record, REG_VALUE), 10);
	assert_false(next(&w, UINT64_MAX, &record));
	watch_end(&w);
}

/* --- records that do not lie in one piece --- */

static void
check_stack(const struct ex_record *record)
{
	uint64_t sp = reg(record, REG_SP);
	uint64_t skip = shared->pattern - sp;

	assert_true(shared->pattern > sp);
	assert_int_equal(record->sample.stack_len, record->sample.stack_asked);
	assert_true(skip < record->sample.stack_len / 2);
	for (uint64_t i = 0; i + skip < record->sample.stack_len; i++)
		if (record->sample.stack[skip + i] != (uint8_t)(i * 7))
			fail_msg("byte %llu of the stack",
			    (unsigned long long)(skip + i));
}

TEST(joins_records_that_wrap)
{
	static const uint32_t stacks[] = {512, 4096, 20000, 32768, 60000};
	struct ex_record record;
	struct watched w;

	for (size_t i = 0; i < COUNT(stacks); i++) {
		const int each = stacks[i] <= 4096 ? 10 : 1;
		size_t at = 0, wrapped = 0;
		int n = 0;

		(void)clear_shared(state);
		watch_start(&w, write_with_stack, stacks[i]);
		for (int round = 0; round < 40; round++) {
			let_write(each);
			while (next(&w, UINT64_MAX, &record)) {
				assert_int_equal(record.type,
				    PERF_RECORD_SAMPLE);
				assert_int_equal(reg(&record, REG_VALUE), n++);
				if (stacks[i] < PATTERN)
					check_stack(&record);
				wrapped += at + record.size > RING;
				at = (at + record.size) % RING;
			}
			assert_int_equal(n, (round + 1) * each);
		}
		assert_true(wrapped >= 2);
		assert_int_equal(counted(&w).lost, 0);
		watch_end(&w);
	}
}

/* --- what is lost --- */

TEST(accounts_for_what_is_lost)
{
	struct wp_perf_count count;
	struct ex_record record;
	struct watched w;
	uint64_t samples = 0, lost = 0;

	watch_start(&w, write_on_demand, 8192);
	let_write(1000);		/* and nobody reads */
	for (; next(&w, UINT64_MAX, &record); samples++) {
		assert_int_equal(record.type, PERF_RECORD_SAMPLE);
		assert_int_equal(reg(&record, REG_VALUE), samples);
	}
	assert_in_range(samples, 1, RING / 8192);
	count = counted(&w);
	assert_int_equal(count.value, 1000);
	if (live_features.format_lost)
		assert_int_equal(count.lost, 1000 - samples);

	/* with the next hit there is room again, also to say what was lost */
	let_write(1);
	while (next(&w, UINT64_MAX, &record)) {
		if (record.type == PERF_RECORD_LOST) {
			lost += record.lost.count;
			continue;
		}
		assert_int_equal(record.type, PERF_RECORD_SAMPLE);
		assert_int_equal(reg(&record, REG_VALUE), 1000);
		samples++;
	}
	count = counted(&w);
	assert_int_equal(count.value, 1001);
	assert_int_equal(lost, count.value - samples);
	if (live_features.format_lost)
		assert_int_equal(count.lost, lost);
	watch_end(&w);
}

/* The kernel says so only before the next sample of the same processor. */
TEST(a_loss_is_said_before_another_processors_sample)
{
	struct ex_record record;
	struct watched w;
	uint64_t samples = 0;

	if (!several_processors())
		skip();
	watch_start(&w, write_on_demand, 8192);
	let_write(100);
	while (next(&w, UINT64_MAX, &record))
		samples++;
	assert_in_range(samples, 1, RING / 8192);
	pin(w.pid, 1);
	nap_us(20000);		/* it is said every 10 ms at most */
	let_write(1);
	assert_true(next_of_all(&w, UINT64_MAX, &record));
	assert_int_equal(record.type, PERF_RECORD_LOST);
	assert_true(next(&w, UINT64_MAX, &record));
	assert_int_equal(record.type, PERF_RECORD_SAMPLE);
	assert_int_equal(reg(&record, REG_VALUE), 100);
	assert_false(next(&w, UINT64_MAX, &record));
	watch_end(&w);
}

/* The kernel writes as fast as it can while we read. */
TEST(keeps_account_while_reading)
{
	struct wp_perf_count count;
	struct ex_record record;
	struct watched w;
	uint64_t samples = 0, lost = 0, value, expected = 0;
	bool ended = false, more = true;

	watch_start(&w, write_on_demand, 256);
	shared->wanted = WRITES;
	while (more) {
		more = !ended;
		ended = shared->done == WRITES;
		while (next(&w, UINT64_MAX, &record)) {
			if (record.type == PERF_RECORD_LOST) {
				lost += record.lost.count;
				expected += record.lost.count;
				continue;
			}
			assert_int_equal(record.type, PERF_RECORD_SAMPLE);
			value = reg(&record, REG_VALUE);
			assert_int_equal(value, expected);
			expected = value + 1;
			samples++;
		}
		(void)sched_yield();
	}
	count = counted(&w);
	assert_int_equal(count.value, WRITES);
	assert_true(samples + lost <= WRITES);
	if (live_features.format_lost)
		assert_int_equal(samples + count.lost, WRITES);
	watch_end(&w);
}

/* --- rings themselves --- */

TEST(has_a_ring_for_each_processor)
{
	static const struct {
		size_t asked, got;
	} sizes[] = {
		{0, RING}, {1, RING}, {RING, RING}, {RING + 1, RING},
		{2 * RING - 1, RING}, {2 * RING, 2 * RING},
		{3 << 20, 2 << 20},
	};
	unsigned before = open_descriptors();

	for (size_t i = 0; i < COUNT(sizes); i++) {
		struct wp_rings *rings;
		struct wp_cause cause;

		assert_int_equal(wp_rings_open(&rings, sizes[i].asked,
		    &cause), 0);
		assert_int_equal(wp_rings_size(rings), sizes[i].got);
		assert_int_equal(wp_rings_count(rings),
		    sysconf(_SC_NPROCESSORS_ONLN));
		for (unsigned n = 1; n < wp_rings_count(rings); n++)
			assert_true(wp_rings_cpu(rings, n) >
			    wp_rings_cpu(rings, n - 1));
		assert_null(wp_rings_next(rings, UINT64_MAX));
		wp_rings_close(rings);
		assert_int_equal(open_descriptors(), before);
	}
	wp_rings_close(NULL);
	assert_in_range(wp_rings_usual_size(), RING, 64 << 20);
}

TEST(wakes_whoever_polls)
{
	struct pollfd p[256] = {0};
	struct watched w;
	unsigned n;

	watch_start(&w, write_on_demand, 4096);
	n = wp_rings_count(w.rings) < COUNT(p) ? wp_rings_count(w.rings) :
	    COUNT(p);
	for (unsigned i = 0; i < n; i++)
		p[i] = (struct pollfd){
			.fd = wp_rings_fd(w.rings, i), .events = POLLIN,
		};
	assert_int_equal(poll(p, n, 0), 0);
	shared->wanted = 15;		/* nearly full */
	assert_int_equal(poll(p, n, CHILD_PATIENCE_MS), 1);
	watch_end(&w);
}

/* Without a right to locked memory but the kernel's allowance, which is for all
   that a user has: as one who has nothing else. */
static bool
become_nobody(void)
{
	const uid_t nobody = NOBODIES + (uid_t)getpid() % NOBODIES_MAX;
	const struct rlimit none = {0, 0};
	struct wp_features features;

	if (getuid() == 0 && (setgroups(0, NULL) != 0 ||
	    setresgid(nobody, nobody, nobody) != 0 ||
	    setresuid(nobody, nobody, nobody) != 0))
		return false;
	(void)setrlimit(RLIMIT_MEMLOCK, &none);
	/* files in /proc/self are ours again */
	(void)prctl(PR_SET_DUMPABLE, 1);
	return wp_probe_features(&features, &shared->cause) == 0;
}

static void
open_as_nobody(void *arg)
{
	struct wp_rings *rings[64];
	int n = 0;

	(void)arg;
	if (!become_nobody())
		return;
	shared->ready = 1;
	shared->result = wp_rings_open(&rings[n], 64 << 20, &shared->cause);
	if (shared->result != 0)
		return;
	shared->size = wp_rings_size(rings[n++]);
	/* until there is no more to be had at all */
	while (n < 64 && (shared->result = wp_rings_open(&rings[n], RING,
	    &shared->cause)) == 0)
		n++;
	while (n > 0)
		wp_rings_close(rings[--n]);
	shared->n = wp_rings_open(&rings[0], 64 << 20, NULL) == 0 &&
	    wp_rings_size(rings[0]) == shared->size;
}

TEST(shrinks_where_memory_is_short)
{
	assert_int_equal(child_wait(child_start(open_as_nobody, NULL)), 0);
	if (shared->ready == 0) {
		print_message("as nobody: %s\n", shared->cause.text);
		skip();
	}
	assert_in_range(shared->size, RING, 32 << 20);
	/* then it says so, and nothing is kept of what failed */
	assert_int_equal(shared->result, -ENOMEM);
	assert_int_equal(shared->cause.code, WP_CAUSE_RING);
	assert_holds(shared->cause.text, "64 KiB");
	assert_int_equal(shared->n, 1);
}

TEST(leaves_nothing_behind)
{
	unsigned before = open_descriptors(), mapped = 0;
	struct watched w;
	char line[512];
	FILE *f;

	watch_start(&w, write_on_demand, 512);
	let_write(3);
	assert_non_null(wp_rings_next(w.rings, UINT64_MAX));
	watch_end(&w);
	assert_int_equal(open_descriptors(), before);
	f = fopen("/proc/self/maps", "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL)
		mapped += strstr(line, "[perf_event]") != NULL;
	(void)fclose(f);
	assert_int_equal(mapped, 0);
}

RUN_LIVE_TESTS(.before_each = clear_shared,
    .after_each = children_end)
