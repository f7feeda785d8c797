/*
 * open: watches of this program on its own memory.  Each delivery is tested in
 * a process of its own, with the helper and without one.
 */
#include "test.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <linux/hw_breakpoint.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "beside.h"
#include "child.h"
#include "live.h"
#include "refuse.h"
#include "handler/watches.h"

/* What is used in a process. */
static const struct mode {
	const char *name, *delivery;
	bool helped;		/* has a helper */
	bool follows;		/* covers threads to come */
	bool kernel;		/* sees what the kernel touches */
	bool refused;		/* nothing is forced: an ordinary user is
				   refused perf_event_open */
} modes[] = {
	{"sigtrap", "sigtrap", true, true, true, false},
	{"sigtrap without a helper", "sigtrap", false, true, true, false},
	{"async", "async", true, true, true, false},
	{"async without a helper", "async", false, false, true, false},
	{"ptrace", "ptrace", true, true, false, false},
	{"refused", "ptrace", true, true, false, true},
	{"refused without a helper", "ptrace", false, false, false, true},
};
static const struct mode *mode;

enum { CREW = 5, WRITES = 3000 };

#ifdef __GLIBC__
/* As a sanitizer has it, which takes each for a fork(2): the helper's start is
   none. */
int
clone(int (*fn)(void *), void *stack, int flags, void *arg, ...)
{
	(void)fn;
	(void)stack;
	(void)flags;
	(void)arg;
	abort();
}
#endif

static volatile uint64_t word, other;

/* Where the program that is executed finds it, too. */
static volatile uint64_t *const fixed = (void *)0x12340000;

/* Hits. */

static struct access_tally {
	_Atomic uint64_t hits;
	_Atomic uint64_t wrong;	/* not as the test expects them */
	const volatile void *addr;	/* expected; NULL: any */
	struct {
		pid_t tid;
		_Atomic uint64_t hits;
	} of[2 * CREW];
} tally;

static void
count_hit(const struct wp_hit *hit, void *arg)
{
	struct access_tally *t = arg;

	(void)atomic_fetch_add(&t->hits, 1);
	if (hit->tid != gettid() || (t->addr != NULL && hit->addr != t->addr))
		(void)atomic_fetch_add(&t->wrong, 1);
	for (unsigned i = 0; i < 2 * CREW; i++)
		if (t->of[i].tid == hit->tid)
			(void)atomic_fetch_add(&t->of[i].hits, 1);
}

#define WATCH(at, ...) (struct wp_attr){				\
	.size = sizeof(struct wp_attr), .addr = (at), .len = sizeof(*(at)), \
	.handler = count_hit, .arg = &tally, ##__VA_ARGS__}

static struct wp_watch *
open_watch(const struct wp_attr *attr)
{
	struct wp_watch *w;

	memset(&tally, 0, sizeof(tally));
	if (wp_open(attr, &w) < 0)
		fail_msg("wp_open: %s", wp_cause());
	assert_string_equal(w->delivery->name, mode->delivery);
	return w;
}

static struct wp_watch *
open_word(unsigned flags)
{
	const struct wp_attr attr = WATCH(&word, .flags = flags);

	return open_watch(&attr);
}

static void
expect_count(const struct wp_watch *w, uint64_t count)
{
	uint64_t counted = 0;

	assert_int_equal(wp_count(w, &counted), 0);
	assert_int_equal(counted, count);
}

static void
write_word(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		word = i;
}

/* Threads that do what they are told, all at once. */

struct crew {
	unsigned n;
	pthread_t thread[CREW];
	pid_t tid[CREW];
	pthread_barrier_t begin, end;
	void (*job)(unsigned);	/* NULL: end */
	unsigned n_of_job;
	_Atomic unsigned next;
};

static void *
be_crew(void *arg)
{
	struct crew *c = arg;

	c->tid[atomic_fetch_add(&c->next, 1)] = gettid();
	for (;;) {
		(void)pthread_barrier_wait(&c->begin);
		if (c->job == NULL)
			return NULL;
		c->job(c->n_of_job);
		(void)pthread_barrier_wait(&c->end);
	}
}

static void
crew_start(struct crew *c, unsigned n)
{
	memset(c, 0, sizeof(*c));
	c->n = n;
	(void)pthread_barrier_init(&c->begin, NULL, n + 1);
	(void)pthread_barrier_init(&c->end, NULL, n + 1);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(pthread_create(&c->thread[i], NULL, be_crew,
		    c), 0);
	await(atomic_load(&c->next) == n);
}

static void
crew_begin(struct crew *c, void (*job)(unsigned), unsigned n)
{
	c->job = job;
	c->n_of_job = n;
	(void)pthread_barrier_wait(&c->begin);
}

static void
crew_finish(struct crew *c)
{
	(void)pthread_barrier_wait(&c->end);
}

static void
crew_do(struct crew *c, void (*job)(unsigned), unsigned n)
{
	crew_begin(c, job, n);
	crew_finish(c);
}

static void
crew_end(struct crew *c)
{
	crew_begin(c, NULL, 0);
	for (unsigned i = 0; i < c->n; i++)
		(void)pthread_join(c->thread[i], NULL);
}

/* The tests. */

/* It is known by what it preloads. */
static void
open_under_valgrind(void *arg)
{
	const struct wp_attr attr = WATCH(&word);
	struct wp_watch *w;

	(void)arg;
	(void)setenv("LD_PRELOAD",
	    "/usr/libexec/valgrind/vgpreload_core-amd64-linux.so", 1);
	if (wp_open(&attr, &w) != -ENOTSUP ||
	    strstr(wp_cause(), "valgrind") == NULL)
		_exit(1);
}

/* The first test: what the machine offers is found out once. */
TEST(valgrind_is_refused)
{
	assert_int_equal(child_wait(child_start(open_under_valgrind, NULL)),
	    0);
}

TEST(each_write_of_each_thread)
{
	struct wp_watch *w;
	struct crew old, new;
	unsigned n = 0;

	crew_start(&old, 3);
	w = open_word(WP_DISABLED);
	tally.addr = &word;
	crew_do(&old, write_word, 100);
	assert_int_equal(tally.hits, 0);
	assert_int_equal(wp_enable(w), 0);
	crew_start(&new, mode->follows ? 2 : 1);
	for (unsigned i = 0; i < old.n; i++)
		tally.of[n++].tid = old.tid[i];
	for (unsigned i = 0; i < new.n && mode->follows; i++)
		tally.of[n++].tid = new.tid[i];
	crew_begin(&old, write_word, WRITES);
	crew_do(&new, write_word, WRITES);
	crew_finish(&old);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(tally.of[i].hits, WRITES);
	assert_int_equal(tally.hits, n * WRITES);
	assert_int_equal(tally.wrong, 0);
	expect_count(w, n * WRITES);

	assert_int_equal(wp_disable(w), 0);
	crew_do(&old, write_word, 100);
	crew_do(&new, write_word, 100);
	assert_int_equal(tally.hits, n * WRITES);
	wp_close(w);
	crew_end(&old);
	crew_end(&new);
}

static void
write_both(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		word = other = i;
}

TEST(moved_in_all_threads)
{
	struct crew before, between, after;
	struct wp_watch *w;
	unsigned n;

	crew_start(&before, 2);
	w = open_word(0);
	crew_start(&between, 1);
	tally.addr = &other;
	assert_int_equal(wp_move(w, &other), 0);
	crew_start(&after, 2);
	n = mode->follows ? 5 : 2;
	crew_do(&before, write_both, 100);
	crew_do(&between, write_both, 100);
	crew_do(&after, write_both, 100);
	assert_int_equal(tally.hits, n * 100);
	assert_int_equal(tally.wrong, 0);

	/* disabled it stays */
	assert_int_equal(wp_disable(w), 0);
	assert_int_equal(wp_move(w, &word), 0);
	crew_do(&before, write_both, 100);
	assert_int_equal(tally.hits, n * 100);
	assert_int_equal(wp_enable(w), 0);
	tally.addr = &word;
	crew_do(&before, write_both, 100);
	assert_int_equal(tally.hits, (n + 2) * 100);
	assert_int_equal(tally.wrong, 0);
	wp_close(w);
	crew_end(&before);
	crew_end(&between);
	crew_end(&after);
}

static _Alignas(8) volatile unsigned char bytes[16];

static void
write_bytes(unsigned n)
{
	for (unsigned i = 0; i < n * sizeof(bytes); i++)
		bytes[i % sizeof(bytes)] = (unsigned char)i;
}

/* From any length to any other, and back. */
TEST(moved_with_another_length)
{
	static const struct { unsigned at, len; } places[] = {
		{13, 1}, {8, 8}, {10, 2}, {4, 4}, {0, 8}, {7, 1},
	};
	struct wp_watch *w;
	struct crew crew;

	crew_start(&crew, 2);
	w = open_word(0);
	for (size_t i = 0; i < COUNT(places); i++) {
		tally.addr = &bytes[places[i].at];
		assert_int_equal(wp_move(w, tally.addr, places[i].len), 0);
		tally.hits = 0;
		crew_do(&crew, write_bytes, 10);
		assert_int_equal(tally.hits, 2 * 10 * places[i].len);
	}
	/* its length is now this */
	assert_int_equal(wp_move(w, &bytes[3]), 0);
	tally.addr = &bytes[3];
	tally.hits = 0;
	write_bytes(10);
	assert_int_equal(tally.hits, 10);
	assert_int_equal(tally.wrong, 0);
	wp_close(w);
	crew_end(&crew);
}

static _Atomic bool stop;

static void
write_until_stop(unsigned n)
{
	(void)n;
	while (!atomic_load(&stop))
		word = 1;
}

TEST(toggled_while_others_hit)
{
	struct wp_watch *w;
	struct crew crew;
	uint64_t hits;

	crew_start(&crew, 4);
	w = open_word(WP_DISABLED);
	atomic_store(&stop, false);
	crew_begin(&crew, write_until_stop, 0);
	for (unsigned i = 0; i < 60; i++) {
		hits = tally.hits;
		assert_int_equal(wp_enable(w), 0);
		await(tally.hits > hits);
		assert_int_equal(wp_disable(w), 0);
	}
	atomic_store(&stop, true);
	crew_finish(&crew);
	hits = tally.hits;
	crew_do(&crew, write_word, 100);
	assert_int_equal(tally.hits, hits);
	assert_int_equal(wp_enable(w), 0);
	crew_do(&crew, write_word, 100);
	assert_int_equal(tally.hits, hits + 400);
	wp_close(w);
	crew_end(&crew);
}

TEST(one_hit_in_a_period)
{
	const struct wp_attr attr = WATCH(&word, .period = 100);
	struct wp_watch *w;

	w = open_watch(&attr);
	write_word(10000);
	assert_int_equal(tally.hits, 100);
	expect_count(w, 10000);
	wp_close(w);
}

TEST(no_more_hits_than_the_limit)
{
	const struct wp_attr attr = WATCH(&word, .limit = 5);
	struct wp_watch *w;

	w = open_watch(&attr);
	write_word(100);
	assert_int_equal(tally.hits, 5);
	assert_int_equal(wp_enable(w), 0);	/* so many again */
	write_word(100);
	assert_int_equal(tally.hits, 10);
	wp_close(w);
}

TEST(one_thread_alone)
{
	struct wp_watch *w;
	struct crew crew;

	crew_start(&crew, 2);
	{
		const struct wp_attr attr = WATCH(&word,
		    .threads = WP_THIS_THREAD);

		w = open_watch(&attr);
	}
	crew_do(&crew, write_word, 100);
	assert_int_equal(tally.hits, 0);
	write_word(100);
	assert_int_equal(tally.hits, 100);
	wp_close(w);
	crew_end(&crew);
}

/* Code whose first instruction writes. */

void store_first(volatile uint64_t *);
__asm__(".pushsection .text\n"
    ".globl store_first\n"
    ".type store_first, @function\n"
    "store_first:\n"
#if defined(__x86_64__)
    "	movq $7, (%rdi)\n"
    "	ret\n"
#else
    "	str xzr, [x0]\n"
    "	ret\n"
#endif
    ".size store_first, . - store_first\n"
    ".popsection\n");

static unsigned calls;

static void
count_call(const struct wp_hit *hit, void *arg)
{
	struct access_tally *t = arg;

	/* before it was executed */
	if (hit->pc != (void *)(uintptr_t)store_first || other != calls)
		(void)atomic_fetch_add(&t->wrong, 1);
	(void)atomic_fetch_add(&t->hits, 1);
}

TEST(an_execution_is_reported_once_and_before_it)
{
	const struct wp_attr attr = {
		.size = sizeof(attr), .addr = (void *)(uintptr_t)store_first,
		.access = WP_EXEC, .handler = count_call, .arg = &tally,
	};
	struct wp_watch *w;

	w = open_watch(&attr);
	other = 0;
	for (calls = 0; calls < 1000; calls++) {
		volatile uint64_t seen;

		store_first(&seen);
		assert_int_equal(seen, 7);
		other = calls + 1;
	}
	assert_int_equal(tally.hits, 1000);
	assert_int_equal(tally.wrong, 0);
	wp_close(w);
}

static char order[64];

static void
note_order(const struct wp_hit *hit, void *arg)
{
	(void)hit;
	(void)strncat(order, arg, sizeof(order) - strlen(order) - 1);
}

TEST(executed_and_written_at_once)
{
	const struct wp_attr code = {
		.size = sizeof(code), .addr = (void *)(uintptr_t)store_first,
		.access = WP_EXEC, .handler = note_order,
		.arg = (void *)(uintptr_t)"x",
	};
	const struct wp_attr data = {
		.size = sizeof(data), .addr = &word, .len = sizeof(word),
		.handler = note_order, .arg = (void *)(uintptr_t)"w",
	};
	struct wp_watch *x, *w;

	order[0] = '\0';
	x = open_watch(&code);
	w = open_watch(&data);
	store_first(&word);
	store_first(&word);
	wp_close(w);
	wp_close(x);
	assert_string_equal(order, "xwxw");
}

TEST(reads_are_hits_where_wanted)
{
	const struct wp_attr attr = WATCH(&word, .access = WP_ACCESS);
	struct wp_watch *w;

	w = open_watch(&attr);
	for (unsigned i = 0; i < 10; i++)
		(void)word;
	assert_int_equal(tally.hits, 10);
	wp_close(w);
}

static void
touch_it(const struct wp_hit *hit, void *arg)
{
	count_hit(hit, arg);
	word += 1;		/* reads and writes */
}

/* Accesses that were reported to nobody. */
static uint64_t
undelivered(void)
{
	const struct wp_channel *channel = atomic_load(&wp_state.channel);

	return channel == NULL ? 0 : atomic_load(&channel->undelivered);
}

/* No hits, and none that are missed. */
TEST(what_a_handler_touches)
{
	struct wp_attr attr = WATCH(&word, .access = WP_ACCESS);
	const uint64_t before = undelivered();
	struct wp_watch *w;
	uint64_t count;

	attr.handler = touch_it;
	w = open_watch(&attr);
	write_word(100);
	assert_int_equal(tally.hits, 100);
	assert_int_equal(wp_count(w, &count), 0);
	assert_int_equal(wp_accounted(w), count);
	wp_close(w);
	assert_int_equal(undelivered(), before);
}

/* The program's own events are what it disables; watches of all its threads and
   of one, which another thread has opened. */
TEST(the_program_disables_its_events)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT, .size = sizeof(attr),
		.bp_type = HW_BREAKPOINT_W, .bp_len = sizeof(other),
		.bp_addr = (uintptr_t)&other, .exclude_kernel = 1,
	};
	int own = mode->refused ? -1 : wp_perf_open(&attr, 0, -1);
	struct wp_perf_count count;

	assert_true(own >= 0 || mode->refused);
	for (enum wp_threads threads = WP_ALL_THREADS;
	    threads <= WP_THIS_THREAD; threads++) {
		struct wp_attr of = WATCH(&word, .threads = threads);
		struct wp_watch *w = open_watch(&of);
		struct crew crew;

		crew_start(&crew, 1);
		assert_int_equal(prctl(PR_TASK_PERF_EVENTS_DISABLE), 0);
		write_word(10);
		other = 1;
		assert_int_equal(tally.hits, 10);
		crew_do(&crew, write_word, 10);
		assert_int_equal(tally.hits, mode->follows &&
		    threads == WP_ALL_THREADS ? 20 : 10);
		expect_count(w, tally.hits);
		wp_close(w);
		crew_end(&crew);
	}
	if (own < 0)
		return;
	assert_int_equal(wp_perf_read(own, 0, &count), 0);
	assert_int_equal(count.value, 0);
	(void)close(own);
}

/* Events of one watch become those of the next, which counts from 0; and when
   it is over, no register is taken. */
TEST(opened_in_quick_succession)
{
	for (unsigned i = 0; i < 60; i++) {
		volatile uint64_t *at = i % 3 == 0 ? &other : &word;
		const struct wp_attr attr = WATCH(at);
		struct wp_watch *w = open_watch(&attr);

		expect_count(w, 0);
		write_both(i % 4);
		assert_int_equal(tally.hits, i % 4);
		assert_int_equal(prctl(PR_TASK_PERF_EVENTS_DISABLE), 0);
		write_both(1);
		assert_int_equal(tally.hits, i % 4 + 1);
		expect_count(w, i % 4 + 1);
		assert_int_equal(wp_accounted(w), i % 4 + 1);
		wp_close(w);
		write_both(1);
		assert_int_equal(tally.hits, i % 4 + 1);
	}
	nap_us(2000);
	wp_close(open_word(0));
	/* the kernel keeps a register that a tracer has used */
	if (strcmp(mode->delivery, "ptrace") != 0)
		live_await_free_slots(0, live_features.caps.slots);
}

/* Several slots, several watches. */

static _Alignas(16) volatile uint32_t quad[4];

static void
store_two(unsigned at)
{
	const uint64_t value = 1;

	__asm__ volatile("mov %0, (%1)" : : "r"(value), "r"(&quad[at]) :
	    "memory");
}

TEST(unaligned_over_two_slots)
{
	struct wp_attr attr = WATCH(&quad[1]);
	struct wp_watch *w;

	attr.len = 8;
	w = open_watch(&attr);
	assert_int_equal(w->nslots, 2);
	quad[0] = quad[3] = 1;
	assert_int_equal(tally.hits, 0);
	quad[1] = 1;
	quad[2] = 1;
	assert_int_equal(tally.hits, 2);
	store_two(1);		/* over both slots: one hit, counted twice */
	assert_int_equal(tally.hits, 3);
	expect_count(w, 4);
	for (unsigned i = 0; i < 100; i++)
		store_two(1);
	assert_int_equal(tally.hits, 103);
	expect_count(w, 204);
	assert_int_equal(wp_accounted(w), 204);
	wp_close(w);
}

/* A period is of each slot, and makes one hit of those that come together. */
TEST(one_hit_in_a_period_over_two_slots)
{
	struct wp_attr attr = WATCH(&quad[1], .period = 3);
	struct wp_watch *w;

	attr.len = 8;
	w = open_watch(&attr);
	for (unsigned i = 0; i < 300; i++)
		store_two(1);
	assert_int_equal(tally.hits, 100);
	expect_count(w, 600);
	wp_close(w);
}

TEST(one_instruction_hits_two_watches)
{
	const unsigned n = getenv("THOROUGH") != NULL ? 1000 : 200;
	struct wp_watch *a, *b;
	struct wp_attr attr;
	uint64_t hits[2];

	attr = WATCH(&quad[0]);
	a = open_watch(&attr);
	attr = WATCH(&quad[1]);
	b = open_watch(&attr);
	for (unsigned i = 0; i < n; i++)
		store_two(0);
	hits[0] = a->hits;
	hits[1] = b->hits;
	wp_close(b);
	wp_close(a);
	assert_int_equal(hits[0], n);
	assert_int_equal(hits[1], n);
	assert_int_equal(tally.hits, 2 * n);
}

/* Closing. */

static void
close_it(const struct wp_hit *hit, void *arg)
{
	count_hit(hit, arg);
	wp_close(hit->watch);
}

TEST(closed_by_its_handler)
{
	struct wp_attr attr = WATCH(&word);
	struct wp_watch *w[4];

	attr.handler = close_it;
	for (unsigned i = 0; i < 20; i++) {
		(void)open_watch(&attr);
		write_word(10);
		assert_int_equal(tally.hits, 1);
	}
	/* nothing is left of it */
	assert_int_equal(wp_state.nopen, 0);
	for (unsigned i = 0; i < 4; i++)
		w[i] = open_word(0);
	for (unsigned i = 0; i < 4; i++)
		wp_close(w[i]);
}

static _Atomic unsigned missed;

/* Each thread has a variable, and a watch, of its own. */
static void
open_hit_close(unsigned n)
{
	volatile uint64_t mine = 0;
	struct access_tally own;
	struct wp_attr attr = WATCH(&mine);
	struct wp_watch *w;

	attr.arg = &own;
	for (unsigned i = 0; i < n; i++) {
		memset(&own, 0, sizeof(own));
		if (wp_open(&attr, &w) < 0) {
			(void)atomic_fetch_add(&missed, 1);
			continue;
		}
		mine = i;
		if (own.hits != 1)
			(void)atomic_fetch_add(&missed, 1);
		wp_close(w);
		mine = i;
		if (own.hits != 1)
			(void)atomic_fetch_add(&missed, 1);
	}
}

TEST(opened_and_closed_by_many)
{
	struct crew crew;

	atomic_store(&missed, 0);
	crew_start(&crew, 4);
	crew_do(&crew, open_hit_close, 25);
	crew_end(&crew);
	assert_int_equal(missed, 0);
	assert_int_equal(wp_state.nopen, 0);
}

TEST(closed_while_others_hit)
{
	struct crew crew;

	crew_start(&crew, 3);
	atomic_store(&stop, false);
	crew_begin(&crew, write_until_stop, 0);
	for (unsigned i = 0; i < 20; i++) {
		struct wp_watch *w = open_word(0);
		uint64_t hits;

		await(tally.hits > 0);
		wp_close(w);
		hits = tally.hits;	/* no handler runs any more */
		nap_us(200);
		assert_int_equal(tally.hits, hits);
	}
	atomic_store(&stop, true);
	crew_finish(&crew);
	crew_end(&crew);
}

/* The kernel's accesses. */

static void
read_into_word(void)
{
	const uint64_t value = 5;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], &value, sizeof(value)), sizeof(value));
	assert_int_equal(read(fds[0], (void *)(uintptr_t)&word, sizeof(word)),
	    sizeof(word));
	(void)close(fds[0]);
	(void)close(fds[1]);
}

TEST(what_the_kernel_writes)
{
	struct wp_watch *w;

	if (!live_features.kernel)
		skip();
	w = open_word(0);
	read_into_word();
	assert_int_equal(tally.hits, 1);
	write_word(1);
	assert_int_equal(tally.hits, 2);
	wp_close(w);
	w = open_word(WP_USER_ONLY);
	read_into_word();
	assert_int_equal(tally.hits, 0);
	wp_close(w);
}

/* Children, and programs executed. */

static void
expect_child(pid_t pid)
{
	int status = child_wait(pid);

	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fail_msg("child: wait status %#x", (unsigned)status);
}

static void
write_untold(void *arg)
{
	uint64_t hits = tally.hits, count = 1;

	write_word(10);
	if (tally.hits != hits || wp_count(arg, &count) < 0 || count != 0)
		_exit(1);
	wp_close(arg);		/* as the parent does */
}

/* A watch with flags, children that do something, and hits of their parent. */
static void
watch_with_children(unsigned flags, void (*fn)(void *))
{
	struct wp_watch *w = open_word(flags);

	for (unsigned i = 0; i < 3; i++) {
		expect_child(child_start(fn, w));
		write_word(1);
		assert_int_equal(tally.hits, i + 1);
	}
	wp_close(w);
}

TEST(children_are_not_watched)
{
	watch_with_children(0, write_untold);
}

static void
write_told(void *arg)
{
	uint64_t hits = tally.hits;

	write_word(10);
	if (tally.hits != hits + 10)
		_exit(1);
	wp_close(arg);
	write_word(10);
	if (tally.hits != hits + 10)
		_exit(2);
}

TEST(children_may_be_followed)
{
	watch_with_children(WP_FORK, write_told);
}

/* What a program that is executed does with the address. */
static int
be_executed(void)
{
	if (mmap((void *)(uintptr_t)fixed, 4096, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) !=
	    (void *)(uintptr_t)fixed)
		return 1;
	for (unsigned i = 0; i < 10; i++)
		*fixed = i;
	return 0;
}

static void
execute(void *arg)
{
	(void)arg;
	(void)execl("/proc/self/exe", "inside", "--executed", NULL);
	_exit(3);
}

TEST(executed_programs_are_not_watched)
{
	const struct wp_attr attr = WATCH(fixed);
	struct wp_watch *w;

	assert_ptr_equal(mmap((void *)(uintptr_t)fixed, 4096,
	    PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS |
	    MAP_FIXED_NOREPLACE, -1, 0), (void *)(uintptr_t)fixed);
	w = open_watch(&attr);
	for (unsigned i = 0; i < 30; i++) {
		pid_t pid = i % 2 == 0 ? child_start(execute, NULL) : vfork();

		if (pid == 0)
			execute(NULL);
		if (i % 2 == 0)
			expect_child(pid);
		else
			assert_int_equal(waitpid(pid, NULL, 0), pid);
		*fixed = i;
		assert_int_equal(tally.hits, i + 1);
	}
	wp_close(w);
	(void)munmap((void *)(uintptr_t)fixed, 4096);
}

/* A storm of threads: chains in which each makes the next, and ends. */

enum { CHAINS = 3 };

static struct {
	_Atomic unsigned made[CHAINS];	/* threads so far, by its chain */
	_Atomic unsigned alive;		/* chains */
	_Atomic uint64_t writes;
	_Atomic bool write, stop;
} storm;

static void *
be_storm(void *arg)
{
	pthread_attr_t small;
	pthread_t next;

	(void)atomic_fetch_add((_Atomic unsigned *)arg, 1);
	if (atomic_load(&storm.write)) {
		(void)atomic_fetch_add(&storm.writes, 1);
		word = 1;
	}
	(void)pthread_attr_init(&small);
	(void)pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
	(void)pthread_attr_setstacksize(&small, 128 << 10);
	if (atomic_load(&storm.stop) ||
	    pthread_create(&next, &small, be_storm, arg) != 0)
		(void)atomic_fetch_sub(&storm.alive, 1);
	return NULL;
}

/* Until each chain has so many more. */
static void
storm_go_on(unsigned n)
{
	for (unsigned i = 0; i < CHAINS; i++) {
		unsigned made = storm.made[i];

		await(storm.made[i] - made >= n);
	}
}

static void
storm_start(void)
{
	pthread_t thread;

	memset(&storm, 0, sizeof(storm));
	storm.alive = CHAINS;
	for (unsigned i = 0; i < CHAINS; i++) {
		assert_int_equal(pthread_create(&thread, NULL, be_storm,
		    &storm.made[i]), 0);
		(void)pthread_detach(thread);
	}
	storm_go_on(20);
}

/* Let it write for so many threads of each chain, and compare. */
static void
storm_write(unsigned n)
{
	uint64_t before = tally.hits, writes = storm.writes;

	atomic_store(&storm.write, true);
	storm_go_on(n);
	atomic_store(&storm.write, false);
	storm_go_on(1);		/* whoever still writes has made no other */
	await(tally.hits - before == storm.writes - writes);
	assert_true(storm.writes - writes >= CHAINS * (n - 1));
}

TEST(exact_in_a_storm_of_threads)
{
	struct wp_watch *w;

	storm_start();
	for (unsigned i = 0; i < 3; i++) {
		w = open_word(0);
		storm_write(20);
		for (unsigned k = 0; k < 10; k++) {
			assert_int_equal(wp_disable(w), 0);
			nap_us(500);
			assert_int_equal(wp_enable(w), 0);
			storm_write(10);
			assert_int_equal(wp_move(w, &other), 0);
			nap_us(500);
			assert_int_equal(wp_move(w, &word), 0);
			storm_write(10);
		}
		assert_false(w->inexact);
		wp_close(w);
	}
	atomic_store(&storm.stop, true);
	await(storm.alive == 0);
}

/* What is refused. */

static void
expect_refused(const struct wp_attr *attr, int err, const char *cause)
{
	struct wp_watch *w;
	int got = wp_open(attr, &w);

	if (got != err || strstr(wp_cause(), cause) == NULL)
		fail_msg("%s: %d, %s", cause, got, wp_cause());
	assert_null(w);
}

TEST(impossible_regions)
{
	static _Alignas(64) volatile char many[64];
	struct wp_attr attr = WATCH(&word);
	char *gone = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
	    -1, 0);

	assert_ptr_not_equal(gone, MAP_FAILED);
	assert_int_equal(munmap(gone + 4096, 4096), 0);
	attr.addr = NULL;
	expect_refused(&attr, -EFAULT, "not mapped");
	attr.addr = gone + 4092;	/* into what is not */
	expect_refused(&attr, -EFAULT, "not mapped");
	attr.addr = (void *)(uintptr_t)0xffffffff81000000;
	expect_refused(&attr, -EPERM, "lies in the kernel");
	attr.addr = (void *)(uintptr_t)0x7fff000000000000;
	expect_refused(&attr, -EFAULT, "user addresses end");
	attr.addr = many;
	attr.len = sizeof(many);
	expect_refused(&attr, -E2BIG, "debug registers");
	assert_int_equal(wp_state.nopen, 0);
	(void)munmap(gone, 4096);
}

TEST(no_more_slots)
{
	const struct wp_attr attr = WATCH(&word);
	struct wp_watch *w[4];

	for (unsigned i = 0; i < 4; i++)
		w[i] = open_word(0);
	expect_refused(&attr, -ENOSPC, "slot");
	write_word(1);		/* what is open is not touched */
	assert_int_equal(tally.hits, 4);
	for (unsigned i = 0; i < 4; i++)
		wp_close(w[i]);
	wp_close(open_word(0));
}

TEST(no_more_descriptors)
{
	const struct wp_attr attr = WATCH(&word);
	struct rlimit limit, none;
	struct wp_watch *w;

	wp_close(open_word(0));	/* what the first one needs is there */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	expect_refused(&attr, -EMFILE, "descriptors");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	w = open_word(0);
	write_word(1);
	assert_int_equal(tally.hits, 1);
	wp_close(w);
}

TEST(impossible_moves)
{
	struct wp_watch *w;

	w = open_word(0);
	assert_int_equal(wp_move(w, (volatile char *)&other + 2), -EINVAL);
	assert_holds(wp_cause(), "same alignment");
	assert_int_equal(wp_move(w, &bytes[1], 2), -EINVAL);
	assert_holds(wp_cause(), "debug registers");
	assert_int_equal(wp_move(w, &bytes[1], 0), -EINVAL);
	assert_int_equal(wp_move(w, NULL), -EFAULT);
	assert_int_equal(wp_move(w, &word, sizeof(word)), 0);
	write_word(5);		/* it is where it was */
	other = 1;
	assert_int_equal(tally.hits, 5);
	wp_close(w);
	assert_int_equal(wp_move(w, &other), -EINVAL);
	assert_int_equal(wp_enable(w), -EINVAL);
}

TEST(both_refusals_are_reported)
{
	const struct wp_attr attr = WATCH(&word);

	expect_refused(&attr, -EPERM, "perf_event_open is refused");
	assert_holds(wp_cause(), "helper");
}

static uint64_t
ticks_of(int fd)
{
	struct wp_perf_count count = {0};

	assert_int_equal(wp_perf_read(fd, 0, &count), 0);
	return count.value;
}

/* The program closes everything, and opens something of its own under the same
   number: that is left alone. */
TEST(descriptors_that_are_reused)
{
	struct perf_event_attr clock = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(clock),
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.exclude_kernel = 1, .exclude_hv = 1,
	};
	struct wp_attr attr = WATCH(&word);
	struct wp_watch *w;
	uint64_t count, ticks;
	int fd, own;

	attr.threads = WP_THIS_THREAD;
	assert_int_equal(wp_open(&attr, &w), 0);
	if (w->narmed > 0) {	/* else they are the helper's */
		fd = w->armed[0].fd;
		assert_true((own = wp_perf_open(&clock, 0, -1)) >= 0);
		assert_int_equal(dup2(own, fd), fd);
		(void)close(own);
		assert_int_equal(wp_disable(w), -EBADF);
		assert_int_equal(wp_enable(w), -EBADF);
		assert_int_equal(wp_move(w, &other), -EBADF);
		assert_int_equal(wp_count(w, &count), -EBADF);
		ticks = ticks_of(fd);
		for (volatile unsigned i = 0; i < 1000000; i++)
			;
		assert_true(ticks_of(fd) > ticks);
		wp_close(w);
		assert_int_not_equal(fcntl(fd, F_GETFD), -1);
		(void)close(fd);
	} else
		wp_close(w);
}

/* Running them. */

/* What a failed test left. */
static int
close_all(void **state)
{
	for (unsigned i = 0; i < WP_WATCHES_MAX; i++)
		wp_close(&wp_state.watch[i]);
	atomic_store(&stop, true);
	atomic_store(&storm.stop, true);
	return children_end(state);
}

static int
run_refused(const struct mode *m)
{
	static const CMUnitTestFunction helped[] = {
		each_write_of_each_thread, moved_in_all_threads,
		one_instruction_hits_two_watches, children_may_be_followed,
		exact_in_a_storm_of_threads, NULL,
	};
	static const CMUnitTestFunction alone[] = {both_refusals_are_reported,
	    NULL};

	return run_live_tests(.only = m->helped ? helped : alone,
	    .before_all = be_refused, .after_each = close_all);
}

/* But for what this mode cannot do. */
static int
run_all(const struct mode *m)
{
	CMUnitTestFunction not[5] = {both_refusals_are_reported};
	size_t n = 1;

	if (!m->kernel)		/* a debug register does not see it */
		not[n++] = what_the_kernel_writes;
	if (!m->helped || !m->follows)
		not[n++] = exact_in_a_storm_of_threads;
	/* else they are the helper's */
	if (m->helped && strcmp(m->delivery, "sigtrap") != 0)
		not[n++] = no_more_descriptors;
	return run_live_tests(.except = not, .after_each = close_all);
}

static int
run_mode(const struct mode *m)
{
	const char *helper = getenv("WATCHCTL");

	mode = m;
	if (!m->refused)
		(void)setenv("WATCHPOINT_DELIVERY", m->delivery, 1);
	(void)setenv("WATCHPOINT_HELPER", m->helped ? helper : "", 1);
	(void)setenv("WATCHPOINT_OUTPUT", "/dev/null", 1);
	print_message("%s\n", m->name);
	return m->refused ? run_refused(m) : run_all(m);
}

static int
run_part(unsigned part)
{
	return run_mode(&modes[part]);
}

/* With the name of a mode, in that one only. */
int
main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "--executed") == 0)
		return be_executed();
	if (getenv("WATCHCTL") == NULL) {
		print_error("WATCHCTL has to name the helper\n");
		return 1;
	}
	for (size_t i = 0; argc > 1 && i < COUNT(modes); i++)
		if (strcmp(argv[1], modes[i].name) == 0)
			return run_mode(&modes[i]);
	return argc > 1 ? 2 : run_beside(COUNT(modes), run_part);
}
