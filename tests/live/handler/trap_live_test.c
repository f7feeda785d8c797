/*
 * trap: how the signal handler treats hits, which the kernel signals.  Whatever
 * may kill a program, or keep it running for ever, is tried in a child.
 */
#include "test.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "live.h"
#include "program.h"
#include "record/record.h"
#include "handler/trap.h"
#include "program/table.h"

#ifdef __x86_64__

#include <asm/perf_regs.h>

enum {
	THREADS = 4,
	TIMES = 1000,
	PAGE = 4096,
	/* what our handler may use of the stack; sanitizers make more of it */
	HANDLER_STACK = SANITIZED ? 65536 : 1536,
	DEAD_STACK = 4096,	/* bytes below the stack pointer */
	HELPER_RECORDS = 8,
};

/* What a handler was given. */
struct noted {
	_Atomic unsigned n;
	struct wp_hit last;	/* text and context are gone */
};
static struct noted noted, noted_other;

static enum wp_threads whose;

static _Alignas(64) volatile uint64_t word[8];

static void
note(const struct wp_hit *hit, void *arg)
{
	struct noted *t = arg;

	atomic_fetch_add(&t->n, 1);
	t->last = *hit;
}

static int
reset(void **state)
{
	(void)state;
	memset(&noted, 0, sizeof(noted));
	memset(&noted_other, 0, sizeof(noted_other));
	wp_stray_reset();
	return 0;
}

/* What a failed test left open. */
static int
close_all(void **state)
{
	for (unsigned i = 0; i < WP_WATCHES_MAX; i++)
		if (atomic_load(&wp_state.watch[i].serial) != 0)
			wp_close(&wp_state.watch[i]);
	return children_end(state);
}

static struct wp_watch *
open_attr(struct wp_attr attr)
{
	struct wp_watch *w;

	attr.size = sizeof(attr);
	attr.threads = whose;
	if (attr.len == 0 && attr.access != WP_EXEC)
		attr.len = sizeof(word[0]);
	if (attr.handler == NULL && attr.action == 0) {
		attr.handler = note;
		attr.arg = attr.arg == NULL ? &noted : attr.arg;
	}
	if (wp_open(&attr, &w) < 0)
		fail_msg("%s", wp_cause());
	return w;
}

#define open_watch(...) open_attr((struct wp_attr){__VA_ARGS__})

/*
 * Hits.
 */

TEST(a_store_is_a_hit)
{
	struct wp_watch *w = open_watch(.addr = &word[0], .label = "word");
	uint64_t count;

	word[0] = 1;
	assert_int_equal(noted.n, 1);
	assert_ptr_equal(noted.last.watch, w);
	assert_string_equal(noted.last.label, "word");
	assert_ptr_equal(noted.last.addr, &word[0]);
	assert_int_equal(noted.last.len, sizeof(word[0]));
	assert_int_equal(noted.last.tid, gettid());
	assert_int_equal(noted.last.nth, 1);
	assert_false(noted.last.stray);
	assert_false(noted.last.late);
	assert_in_range((uintptr_t)noted.last.pc, (uintptr_t)a_store_is_a_hit,
	    (uintptr_t)a_store_is_a_hit + 4096);
	word[1] = 1;
	assert_int_equal(noted.n, 1);
	assert_int_equal(wp_count(w, &count), 0);
	assert_int_equal(count, 1);
	wp_close(w);
	word[0] = 2;
	assert_int_equal(noted.n, 1);
}

__attribute__((noinline)) static void
called(void)
{
	__asm__ volatile("" : : : "memory");
}

TEST(each_execution_is_one_hit_before_it)
{
	struct wp_watch *w = open_watch(.addr = (void *)(uintptr_t)called,
	    .access = WP_EXEC);

	for (unsigned i = 0; i < TIMES; i++)
		called();
	assert_int_equal(noted.n, TIMES);
	assert_ptr_equal(noted.last.pc, (void *)(uintptr_t)called);
	wp_close(w);
}

TEST(errno_and_registers_are_kept)
{
	struct wp_watch *w = open_watch(.addr = &word[0]);
	uint64_t sum = 0;

	errno = 4711;
	for (uint64_t i = 0; i < 10; i++) {
		word[0] = i;
		sum += word[0];
	}
	assert_int_equal(errno, 4711);
	assert_int_equal(sum, 45);
	assert_int_equal(noted.n, 10);
	wp_close(w);
}

static _Atomic unsigned exact_limit;

static void
count_limited(const struct wp_hit *hit, void *arg)
{
	(void)arg;
	if (hit->nth >= 1 && hit->nth <= 100)
		(void)atomic_fetch_add(&exact_limit, 1);
	else
		(void)atomic_fetch_add(&exact_limit, 1000);
}

static void *
store_often(void *arg)
{
	for (unsigned i = 0; i < TIMES; i++)
		*(volatile uint64_t *)arg = i;
	return NULL;
}

static void
with_threads(void *(*fn)(void *), void *arg)
{
	pthread_t thread[THREADS];

	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, fn, arg), 0);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
}

TEST(a_limit_is_exact_with_threads_racing)
{
	struct wp_watch *w = open_watch(.addr = &word[0], .limit = 100,
	    .handler = count_limited);

	exact_limit = 0;
	with_threads(store_often, (void *)(uintptr_t)&word[0]);
	assert_int_equal(exact_limit, 100);
	wp_close(w);
}

TEST(no_hit_of_many_threads_is_lost_or_doubled)
{
	struct wp_watch *w = open_watch(.addr = &word[0]);

	with_threads(store_often, (void *)(uintptr_t)&word[0]);
	assert_int_equal(noted.n, THREADS * TIMES);
	assert_int_equal(wp_accounted(w), THREADS * TIMES);
	wp_close(w);
}

static uint64_t
uncounted(const struct wp_watch *w)
{
	uint64_t count;

	assert_int_equal(wp_count(w, &count), 0);
	return count - wp_accounted(w);
}

/*
 * Late signals.
 */

static sigset_t
hit_signals(void)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTRAP);
	(void)sigaddset(&set, WP_SIGNAL);
	if (wp_state.event_signal != 0)
		(void)sigaddset(&set, wp_state.event_signal);
	return set;
}

TEST(hits_while_blocked_are_one_late_hit)
{
	struct wp_watch *w = open_watch(.addr = &word[0]);
	const sigset_t set = hit_signals();
	struct wp_cause cause;

	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	word[0] = 1;
	word[0] = 2;
	word[0] = 3;
	assert_int_equal(noted.n, 0);
	assert_int_equal(wp_trap_check(&cause), 1);
	assert_int_equal(cause.code, WP_CAUSE_TRAP_BLOCKED);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	assert_int_equal(noted.n, 1);
	assert_true(noted.last.late);
	assert_int_equal(wp_accounted(w), 3);
	assert_int_equal(wp_trap_check(&cause), 0);
	wp_close(w);
}

TEST(a_signal_of_a_closed_watch_does_nothing)
{
	struct wp_watch *w = open_watch(.addr = &word[0]), *other;
	const sigset_t set = hit_signals();

	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	word[0] = 1;
	wp_close(w);
	/* very likely in the same entry of the table */
	other = open_watch(.addr = &word[1], .arg = &noted_other);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	assert_int_equal(noted.n, 0);
	assert_int_equal(noted_other.n, 0);
	word[1] = 1;
	assert_int_equal(noted_other.n, 1);
	wp_close(other);
}

/*
 * The handler's own accesses.
 */

struct own {
	enum wp_access access;
	bool reads, writes;
	unsigned flags;
	unsigned phase;		/* which of the words of dead stack */
};

static void
touch(const struct wp_hit *hit, void *arg)
{
	const struct own *own = arg;
	volatile uint64_t *at = hit->addr;
	uint64_t value = 0;

	if (own->reads)
		for (unsigned i = 0; i < 3; i++)
			value += *at;
	if (own->writes)
		for (unsigned i = 0; i < 3; i++)
			*at = value + i;
	(void)atomic_fetch_add(&noted.n, 1);
}

TEST(what_a_handler_touches_is_no_hit)
{
	static struct own owns[] = {
		{WP_WRITE, true, false, 0}, {WP_WRITE, true, true, 0},
		{WP_ACCESS, true, false, 0}, {WP_ACCESS, true, true, 0},
		{WP_ACCESS, true, true, WP_USER_ONLY},
	};

	for (unsigned i = 0; i < COUNT(owns); i++) {
		struct wp_watch *w = open_watch(.addr = &word[0],
		    .access = owns[i].access, .flags = owns[i].flags,
		    .handler = touch, .arg = &owns[i]);
		uint64_t count;

		(void)reset(NULL);
		for (unsigned j = 0; j < 5; j++)
			word[0] = j;
		assert_int_equal(noted.n, 5);
		assert_int_equal(wp_count(w, &count), 0);
		assert_int_equal(count, wp_accounted(w));
		wp_close(w);
	}
}

/* Watch a word that lies offset bytes below the stack pointer, where signal
   frames and handlers will be, and have a signal: each word, or one of sixteen
   unless there is time. */
static void
watch_dead_stack(void *arg)
{
	const struct own *own = arg;
	const bool thorough = getenv("THOROUGH") != NULL;
	struct wp_watch *other = open_watch(.addr = &word[0]);
	uintptr_t sp = (uintptr_t)__builtin_frame_address(0) & ~(uintptr_t)7;

	/* of those that have to be disabled */
	wp_state.output = open("/dev/null", O_WRONLY | O_CLOEXEC);
	for (unsigned offset = 256 + (thorough ? 0 : own->phase);
	    offset < DEAD_STACK; offset += thorough ? 8 : 128) {
		unsigned before = noted.n;
		struct wp_watch *w = open_watch(
		    .addr = (void *)(sp - offset), .access = own->access,
		    .flags = own->flags, .arg = &noted_other);

		noted_other.n = 0;
		word[0] = offset;
		CHECK(noted.n == before + 1);
		/* calls here touch it, too: a few times, not for ever */
		CHECK(noted_other.n < 100);
		wp_close(w);
	}
	wp_close(other);
}

TEST(a_watch_on_dead_stack_does_not_loop)
{
	static struct own owns[] = {
		{WP_WRITE, .flags = WP_USER_ONLY, .phase = 0},
		{WP_WRITE, .phase = 40},
		{WP_ACCESS, .flags = WP_USER_ONLY, .phase = 72},
		{WP_ACCESS, .phase = 104},
	};

	for (unsigned i = 0; i < COUNT(owns); i++)
		program(watch_dead_stack, &owns[i]);
}

static void
touch_in_signal(int sig)
{
	(void)sig;
	word[0] = 1;
}

TEST(hits_in_a_signal_handler_are_hits)
{
	struct sigaction action = {.sa_handler = touch_in_signal}, old;
	struct wp_watch *w = open_watch(.addr = &word[0]);

	(void)sigfillset(&action.sa_mask);
	(void)sigdelset(&action.sa_mask, SIGTRAP);
	if (wp_state.event_signal != 0)
		(void)sigdelset(&action.sa_mask, wp_state.event_signal);
	assert_int_equal(sigaction(SIGUSR1, &action, &old), 0);
	assert_int_equal(raise(SIGUSR1), 0);
	assert_int_equal(noted.n, 1);
	assert_false(noted.last.late);
	(void)sigaction(SIGUSR1, &old, NULL);
	wp_close(w);
}

/* The thread goes on where it was before the handler: that has nothing to do
   with the access. */
TEST(hits_in_a_handler_that_blocks_are_late)
{
	struct sigaction action = {.sa_handler = touch_in_signal}, old;
	struct wp_watch *w = open_watch(.addr = &word[0]);

	(void)sigfillset(&action.sa_mask);
	assert_int_equal(sigaction(SIGUSR1, &action, &old), 0);
	assert_int_equal(raise(SIGUSR1), 0);
	assert_int_equal(noted.n, 1);
	assert_true(noted.last.late);
	word[0] = 2;
	assert_int_equal(noted.n, 2);
	assert_false(noted.last.late);
	assert_int_equal(uncounted(w), 0);
	(void)sigaction(SIGUSR1, &old, NULL);
	wp_close(w);
}

/* As many as there may be are pending, of the program's own. */
static void
hit_with_a_full_queue(void *arg)
{
	const struct rlimit none = {0, 0};
	struct wp_watch *w = open_watch(.addr = &word[0]);
	const sigset_t set = hit_signals();

	(void)arg;
	CHECK(setrlimit(RLIMIT_SIGPENDING, &none) == 0);
	word[0] = 1;
	CHECK(noted.n == 1);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	word[0] = 2;
	word[0] = 3;
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	CHECK(noted.n == 2 && noted.last.late);
	CHECK(wp_accounted(w) == 3);
}

TEST(a_full_queue_of_signals_loses_nothing)
{
	program(hit_with_a_full_queue, NULL);
}

/*
 * Permits.
 */

TEST(a_permitted_access_is_no_hit)
{
	struct wp_scope inner = {.addr = &word[0], .len = sizeof(word[0])};
	struct wp_scope outer = {.addr = &word[5], .len = 1};
	struct wp_watch *w = open_watch(.addr = &word[0], .flags = WP_STRAY);
	struct wp_watch *plain = open_watch(.addr = &word[1],
	    .arg = &noted_other);

	(void)wp_scope_permit(&outer, &word[5], 1);
	word[0] = 1;
	assert_int_equal(noted.n, 1);
	assert_true(noted.last.stray);
	assert_int_equal(wp_stray_count(), 1);
	(void)wp_scope_permit(&inner, &word[0], 2 * sizeof(word[0]));
	word[0] = 2;
	word[1] = 2;
	assert_int_equal(noted.n, 1);
	assert_int_equal(noted_other.n, 1);
	assert_false(noted_other.last.stray);
	(void)wp_scope_leave(&inner);
	word[0] = 3;
	assert_int_equal(noted.n, 2);
	assert_int_equal(noted.last.nth, 2);
	assert_int_equal(wp_stray_count(), 2);
	assert_int_equal(wp_accounted(w), 3);
	(void)wp_scope_leave(&outer);
	wp_close(plain);
	wp_close(w);
}

/*
 * One step, several watches.
 */

static void
store_16(volatile uint64_t *at)
{
	__asm__ volatile("movaps %%xmm0, (%0)" : : "r"(at) : "memory");
}

static void
copy_between(volatile uint64_t *to, volatile uint64_t *from)
{
	__asm__ volatile("movsq" : "+D"(to), "+S"(from) : : "memory");
}

static void
read_into_both(volatile uint64_t *at)
{
	uint64_t pair[2] = {1, 2};
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], pair, 16), 16);
	assert_int_equal(read(fds[0], (void *)(uintptr_t)at, 16), 16);
	(void)close(fds[0]);
	(void)close(fds[1]);
}

/* What is done, and how often each of two watches is hit by it.  The first is
   on word[0], the second on word[1]; both is another one on word[0]. */
static const struct several {
	const char *name;
	enum wp_access access;
	void (*act)(void);
	unsigned hits, other;
} severals[];

static void act_16(void) { store_16(word); }
static void act_one(void) { word[0] = 1; }
static void act_other(void) { word[1] = 1; }
static void act_movs(void) { copy_between(&word[0], &word[1]); }
static void act_read(void) { read_into_both(word); }
static void
act_mixed(void)
{
	for (unsigned i = 0; i < 10; i++) {
		act_16();
		act_one();
		act_other();
		act_other();
	}
}
static void
act_blocked(void)
{
	const sigset_t set = hit_signals();

	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	act_one();
	act_one();
	act_other();
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	act_one();
}

static const struct several severals[] = {
	{"one", WP_WRITE, act_one, 1, 0},
	{"other", WP_WRITE, act_other, 0, 1},
	{"16 bytes", WP_WRITE, act_16, 1, 1},
	{"movs", WP_ACCESS, act_movs, 1, 1},
	{"mixed", WP_WRITE, act_mixed, 20, 30},
	{"blocked", WP_WRITE, act_blocked, 2, 1},
	{"read(2)", WP_WRITE, act_read, 1, 1},
};

TEST(each_watch_that_a_step_touches_is_hit)
{
	LIVE_NEEDS_SEVERAL;
	for (unsigned i = 0; i < COUNT(severals); i++) {
		const struct several *s = &severals[i];
		struct wp_watch *one = open_watch(.addr = &word[0],
		    .access = s->access);
		struct wp_watch *other = open_watch(.addr = &word[1],
		    .access = s->access, .arg = &noted_other);

		if (s->act == act_read && !one->kernel) {
			wp_close(one);
			wp_close(other);
			continue;
		}
		(void)reset(NULL);
		s->act();
		if (noted.n != s->hits || noted_other.n != s->other)
			fail_msg("%s: %u and %u hits", s->name, noted.n,
			    noted_other.n);
		wp_close(one);
		wp_close(other);
	}
}

TEST(two_watches_on_one_word_are_both_hit)
{
	LIVE_NEEDS_SEVERAL;
	struct wp_watch *one = open_watch(.addr = &word[0]);
	struct wp_watch *other = open_watch(.addr = (char *)(uintptr_t)&word[0],
	    .len = 4, .arg = &noted_other);

	with_threads(store_often, (void *)(uintptr_t)&word[0]);
	assert_int_equal(noted_other.n, THREADS * TIMES);
	assert_int_equal(noted.n, THREADS * TIMES);
	wp_close(one);
	wp_close(other);
}

static void *
store_one_or_the_other(void *arg)
{
	static _Atomic unsigned which;
	unsigned me = atomic_fetch_add(&which, 1);

	(void)arg;
	for (unsigned i = 0; i < TIMES / 4; i++)
		word[me % 2] = i;
	return NULL;
}

/* Threads that hit neighbours at the same time are not taken for one that hits
   both; but a thread that is kept from its handler may be. */
TEST(neighbouring_watches_are_distinguished)
{
	const unsigned all = THREADS * (TIMES / 4) / 2;
	struct wp_watch *one = open_watch(.addr = &word[0]);
	struct wp_watch *other = open_watch(.addr = &word[1],
	    .arg = &noted_other);

	with_threads(store_one_or_the_other, NULL);
	assert_in_range(noted.n, all, all + all / 10);
	assert_in_range(noted_other.n, all, all + all / 10);
	wp_close(one);
	wp_close(other);
}

TEST(a_watch_of_two_registers_is_hit_once)
{
	LIVE_NEEDS_SEVERAL;
	struct wp_watch *w = open_watch(.addr = &word[0], .len = 16);
	struct wp_watch *other = open_watch(.addr = &word[2],
	    .arg = &noted_other);

	store_16(word);
	assert_int_equal(noted.n, 1);
	word[2] = 1;
	assert_int_equal(noted_other.n, 1);
	word[0] = 1;
	word[1] = 1;
	assert_int_equal(noted.n, 3);
	assert_ptr_equal(noted.last.addr, &word[1]);
	assert_int_equal(wp_accounted(w), 4);
	wp_close(other);
	wp_close(w);
}

/* What one instruction does to several registers of several watches. */
TEST(overlapping_watches_miss_nothing)
{
	LIVE_NEEDS_SEVERAL;
	volatile char *bytes = (volatile char *)word;
	struct wp_watch *two = open_watch(.addr = bytes + 6, .len = 4);
	struct wp_watch *one = open_watch(.addr = bytes + 8, .len = 1,
	    .arg = &noted_other);

	assert_int_equal(two->nslots, 2);
	__asm__ volatile("movl $1, 6(%0)" : : "r"(bytes) : "memory");
	assert_int_equal(noted.n, 1);
	assert_int_equal(noted_other.n, 1);
	assert_int_equal(uncounted(two), 0);
	assert_int_equal(uncounted(one), 0);
	word[1] = 1;
	bytes[6] = 1;
	assert_int_equal(noted.n, 3);
	assert_int_equal(noted_other.n, 2);
	assert_int_equal(uncounted(two), 0);
	assert_int_equal(uncounted(one), 0);
	wp_close(one);
	wp_close(two);
}

/* It would make up for one that is lost. */
TEST(no_access_is_counted_twice)
{
	struct wp_watch *w = open_watch(.addr = &word[0], .len = 16);

	with_threads(store_one_or_the_other, NULL);
	assert_int_equal(uncounted(w), 0);
	wp_close(w);
}

/*
 * Stacks.
 */

/* Store a value with this stack pointer. */
static void
store_on(uintptr_t sp, volatile uint64_t *at, uint64_t value)
{
	__asm__ volatile(
	    "mov %%rsp, %%rbx\n\t"
	    "mov %[sp], %%rsp\n\t"
	    "mov %[value], (%[at])\n\t"
	    "mov %%rbx, %%rsp"
	    : : [sp] "r"(sp), [value] "r"(value), [at] "r"(at)
	    : "rbx", "memory");
}

/* Room for the kernel's frame, and for our own handler: no byte more. */
static void
hit_with_nearly_full_stack(struct wp_watch *w)
{
	size_t frame = getauxval(AT_MINSIGSTKSZ) + 128;
	char *stack = mmap(NULL, 16 * PAGE, PROT_NONE, MAP_PRIVATE |
	    MAP_ANONYMOUS, -1, 0);

	CHECK(mprotect(stack + 8 * PAGE, 4 * PAGE, PROT_READ |
	    PROT_WRITE) == 0);
	CHECK(getauxval(AT_MINSIGSTKSZ) != 0);
	for (unsigned i = 0; i < 3; i++)
		store_on(((uintptr_t)stack + 8 * PAGE + frame + HANDLER_STACK) &
		    ~(uintptr_t)15, &word[0], i);
	CHECK(atomic_load(&w->hits) == 3);
}

static void
hit_without_helper(void *arg)
{
	(void)arg;
	wp_state.output = open("/dev/null", O_WRONLY | O_CLOEXEC);
	hit_with_nearly_full_stack(open_watch(.addr = &word[0],
	    .action = WP_PRINT, .flags = WP_STRAY));
}

TEST(a_nearly_full_stack_survives)
{
	program(hit_without_helper, NULL);
}

/*
 * What is captured: the test is the helper.
 */

static struct {
	struct wp_channel *channel;
	struct ex_formats *formats;
	struct wp_cell cell[HELPER_RECORDS];
	_Atomic unsigned n;
	_Atomic bool end;
} helper;

static void *
help(void *arg)
{
	struct wp_cell *cell;
	uint32_t heard = 0;

	(void)arg;
	wp_channel_serve(helper.channel);
	while (!atomic_load(&helper.end)) {
		while ((cell = wp_channel_next(helper.channel)) != NULL) {
			if (helper.n < HELPER_RECORDS) {
				helper.cell[helper.n] = *cell;
				helper.n++;	/* now it is looked at */
			}
			(void)snprintf(cell->reply, sizeof(cell->reply),
			    "report %llu\n", (unsigned long long)cell->nth);
			wp_channel_done(helper.channel, cell);
		}
		if (wp_channel_asked(helper.channel))
			wp_channel_answer(helper.channel, -ENOTSUP);
		wp_channel_sleep(helper.channel, &heard, 10);
	}
	return NULL;
}

static pthread_t helper_thread;

static int
helper_begin(void **state)
{
	struct perf_event_attr attr;
	const uint64_t ids[] = {1};
	int fd = wp_channel_make(WP_STACK_USUAL);

	(void)reset(state);
	memset(&helper, 0, sizeof(helper));
	helper.formats = ex_formats_new();
	wp_channel_attr(&attr);
	(void)ids;
	if (fd < 0 || ex_formats_add(helper.formats, &attr, NULL, 0) < 0 ||
	    wp_channel_map(fd, &helper.channel) < 0 ||
	    wp_channel_join(helper.channel) < 0 ||
	    pthread_create(&helper_thread, NULL, help, NULL) != 0 ||
	    wp_channel_await(helper.channel, CHILD_PATIENCE_MS) < 0)
		return -1;
	(void)close(fd);
	atomic_store(&wp_state.channel, helper.channel);
	return 0;
}

static int
helper_end(void **state)
{
	(void)close_all(state);
	atomic_store(&helper.end, true);
	wp_channel_ring(helper.channel);
	(void)pthread_join(helper_thread, NULL);
	atomic_store(&wp_state.channel, NULL);
	wp_channel_unmap(helper.channel);
	ex_formats_free(helper.formats);
	return 0;
}

/* The sample of a cell, decoded. */
static void
decode(unsigned i, struct ex_record *record)
{
	const struct wp_cell *cell = &helper.cell[i];

	assert_in_range(i, 0, helper.n - 1);
	assert_int_equal(ex_record_decode(helper.formats, cell->record.bytes,
	    sizeof(cell->record), record), 1);
	assert_int_equal(record->type, PERF_RECORD_SAMPLE);
}

static uint64_t
reg(const struct ex_record *record, unsigned number)
{
	uint64_t value;

	assert_true(ex_regs_get(&record->sample.user, number, &value));
	return value;
}

/* Others may be about: it is counted what they did, and read what was left. */
enum { READ = WP_CELL_COUNTED | WP_CELL_BYTES };

TEST_WITH(a_record_holds_registers_and_stack, helper_begin, helper_end)
{
	struct wp_watch *w = open_watch(.addr = &word[0], .label = "word",
	    .action = WP_PRINT);
	char mark[] = "a mark on the stack that can be found again";
	uint64_t before = wp_clock_ns();
	struct ex_record record;
	uintptr_t sp;

	__asm__ volatile("mov %%rsp, %[sp]\n\t"
	    "mov %[value], (%[at])"
	    : [sp] "=&r"(sp)
	    : [at] "D"(&word[0]), [value] "S"(0x5afeull), "r"(mark)
	    : "memory");
	decode(0, &record);
	assert_int_equal(record.pid, getpid());
	assert_int_equal(record.tid, gettid());
	assert_in_range(record.time, before, wp_clock_ns());
	assert_int_equal(record.id, atomic_load(&w->serial));
	assert_int_equal(record.sample.addr, (uintptr_t)&word[0]);
	assert_int_equal(record.misc & PERF_RECORD_MISC_CPUMODE_MASK,
	    PERF_RECORD_MISC_USER);
	assert_int_equal(reg(&record, PERF_REG_X86_SP), sp);
	assert_int_equal(reg(&record, PERF_REG_X86_DI), (uintptr_t)&word[0]);
	assert_int_equal(reg(&record, PERF_REG_X86_SI), 0x5afe);
	assert_int_equal(reg(&record, PERF_REG_X86_IP), record.sample.ip);
	assert_in_range(record.sample.stack_len, (uintptr_t)mark - sp +
	    sizeof(mark), WP_STACK_USUAL);
	assert_memory_equal(record.sample.stack + ((uintptr_t)mark - sp), mark,
	    sizeof(mark));
	assert_int_equal(helper.cell[0].flags, WP_CELL_WAITS | READ);
	assert_memory_equal(helper.cell[0].byte,
	    (const void *)(uintptr_t)&word[0], sizeof(word[0]));
	assert_int_equal(helper.cell[0].counted, 1);
	assert_int_equal(helper.cell[0].suppressed, 0);
	assert_string_equal(helper.cell[0].watch.label, "word");
	assert_int_equal(helper.cell[0].nth, 1);
	assert_string_equal(helper.cell[0].comm, "trap_live_test");
	wp_close(w);
}

/* Where the stack lies, and how much of it there is to be copied. */
TEST_WITH(the_copy_ends_where_the_stack_does, helper_begin, helper_end)
{
	struct wp_watch *w = open_watch(.addr = &word[0], .action = WP_PRINT);
	char *stack = mmap(NULL, 4 * PAGE, PROT_NONE, MAP_PRIVATE |
	    MAP_ANONYMOUS, -1, 0);
	char *alternate = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const stack_t ss = {.ss_sp = alternate, .ss_size = 16 * PAGE};
	const stack_t none = {.ss_flags = SS_DISABLE};
	const struct {
		uintptr_t sp;
		uint64_t len;
	} cases[] = {
		{(uintptr_t)stack + 3 * PAGE - 100, 96},
		{(uintptr_t)stack + 2 * PAGE, PAGE},
		{(uintptr_t)stack + 3 * PAGE - 8, 8},
		{(uintptr_t)stack + 3 * PAGE - 7, 0},
		{(uintptr_t)stack + 2 * PAGE + 3, PAGE - 8},
		{(uintptr_t)stack, 0},		/* may not be read */
		{16, 0},
		{UINT64_MAX - 64, 0},
		{1ull << 63 | 8, 0},		/* not an address */
	};
	struct ex_record record;

	assert_int_equal(mprotect(stack + PAGE, 2 * PAGE, PROT_READ |
	    PROT_WRITE), 0);
	assert_int_equal(sigaltstack(&ss, NULL), 0);
	for (unsigned i = 0; i < COUNT(cases); i++) {
		helper.n = 0;
		store_on(cases[i].sp, &word[0], i);
		decode(0, &record);
		assert_int_equal(reg(&record, PERF_REG_X86_SP), cases[i].sp);
		if (record.sample.stack_len != cases[i].len)
			fail_msg("case %u: %llu bytes", i, (unsigned long long)
			    record.sample.stack_len);
	}
	assert_int_equal(sigaltstack(&none, NULL), 0);
	(void)munmap(stack, 4 * PAGE);
	(void)munmap(alternate, 16 * PAGE);
	wp_close(w);
}

static void
hit_with_helper(void *arg)
{
	CHECK(helper_begin(NULL) == 0);
	hit_with_nearly_full_stack(open_watch(.addr = &word[0],
	    .action = WP_PRINT | WP_CALL, .flags = WP_STRAY, .handler = note,
	    .arg = arg));
	CHECK(helper.n == 3);
}

TEST(a_nearly_full_stack_is_reported)
{
	program(hit_with_helper, &noted);
}

static char text_seen[WP_REPLY_MAX];

static void
keep_text(const struct wp_hit *hit, void *arg)
{
	(void)arg;
	(void)snprintf(text_seen, sizeof(text_seen), "%s", hit->text);
}

/* What is posted to the helper, and how. */
TEST_WITH(posts_say_what_is_wanted, helper_begin, helper_end)
{
	static const struct {
		unsigned action, flags, want;
		const char *text;
	} cases[] = {
		{WP_PRINT, 0, WP_CELL_WAITS | READ, ""},
		{WP_PRINT, WP_ASYNC, 0, ""},
		{WP_PRINT | WP_CALL, 0, WP_CELL_WAITS | WP_CELL_REPLY |
		    READ, "report 1\n"},
		{WP_PRINT | WP_CALL, WP_ASYNC, 0, ""},
		{WP_CALL, 0, UINT32_MAX, ""},	/* nothing */
		{WP_CALL, WP_STRAY, WP_CELL_WAITS | WP_CELL_REPLY |
		    WP_CELL_STRAY | WP_CELL_QUIET | READ, ""},
		{WP_PRINT, WP_STRAY, WP_CELL_WAITS | WP_CELL_REPLY |
		    WP_CELL_STRAY | READ, ""},
	};

	for (unsigned i = 0; i < COUNT(cases); i++) {
		bool calls = (cases[i].action & WP_CALL) != 0;
		struct wp_watch *w = open_watch(.addr = &word[0],
		    .action = cases[i].action, .flags = cases[i].flags,
		    .handler = calls ? keep_text : NULL);

		(void)reset(NULL);
		helper.n = 0;
		text_seen[0] = '\0';
		word[0] = 1;
		wp_close(w);
		if (cases[i].want == UINT32_MAX) {
			assert_int_equal(helper.n, 0);
			continue;
		}
		await(helper.n == 1);
		assert_int_equal(helper.cell[0].flags, cases[i].want);
		assert_string_equal(text_seen, cases[i].text);
		if ((cases[i].flags & WP_STRAY) != 0) {
			assert_int_equal(wp_stray_count(), 1);
			assert_string_equal(wp_stray_text(), "report 1\n");
		}
	}
}

TEST_WITH(a_post_names_all_that_are_hit, helper_begin, helper_end)
{
	LIVE_NEEDS_SEVERAL;
	struct wp_watch *quiet = open_watch(.addr = &word[0], .label = "quiet");
	struct wp_watch *one = open_watch(.addr = &word[0], .label = "one",
	    .action = WP_PRINT);
	struct wp_watch *two = open_watch(.addr = &word[1], .label = "two",
	    .action = WP_PRINT);

	store_16(word);
	assert_int_equal(noted.n, 1);
	assert_int_equal(helper.n, 1);
	assert_int_equal(helper.cell[0].nalso, 1);
	if (strcmp(helper.cell[0].watch.label, "one") == 0)
		assert_string_equal(helper.cell[0].also[0].label, "two");
	else {
		assert_string_equal(helper.cell[0].watch.label, "two");
		assert_string_equal(helper.cell[0].also[0].label, "one");
	}
	wp_close(quiet);
	wp_close(one);
	wp_close(two);
}

/*
 * Leaving a handler.
 */

static sigjmp_buf away;

static void
leave_by_jump(const struct wp_hit *hit, void *arg)
{
	(void)arg;
	(void)atomic_fetch_add(&noted.n, 1);
	wp_leave(hit);
	siglongjmp(away, 1);
}

TEST(a_handler_may_be_left)
{
	struct wp_watch *w = open_watch(.addr = &word[0],
	    .handler = leave_by_jump);
	sigset_t before, after;

	(void)sigprocmask(SIG_BLOCK, NULL, &before);
	for (volatile unsigned i = 0; i < 3; i++)
		if (sigsetjmp(away, 0) == 0) {
			word[0] = i;
			fail();
		}
	(void)sigprocmask(SIG_BLOCK, NULL, &after);
	assert_memory_equal(&before, &after, 8);
	assert_int_equal(noted.n, 3);
	assert_false(wp_trap_inside());
	assert_int_equal(atomic_load(&w->users), 0);
	wp_close(w);
}

static void
jump_rudely(const struct wp_hit *hit, void *arg)
{
	(void)hit;
	(void)arg;
	(void)atomic_fetch_add(&noted.n, 1);
	siglongjmp(away, 1);
}

/* Not as documented: but the next hit is one. */
TEST(a_handler_left_by_longjmp_is_forgotten)
{
	struct wp_watch *w = open_watch(.addr = &word[0],
	    .handler = jump_rudely);

	for (volatile unsigned i = 0; i < 3; i++)
		if (sigsetjmp(away, 1) == 0) {
			word[0] = i;
			fail();
		}
	assert_int_equal(noted.n, 3);
	wp_close(w);
}

/* Others' signals while a handler runs come when it is done. */
static volatile sig_atomic_t theirs, theirs_inside;

static void
their_trap(int sig)
{
	(void)sig;
	theirs++;
	theirs_inside += wp_trap_inside();
}

static void
raise_trap(const struct wp_hit *hit, void *arg)
{
	(void)hit;
	(void)arg;
	(void)syscall(SYS_tgkill, getpid(), gettid(), SIGTRAP);
	noted.n++;
	if (theirs != 0)
		noted.n += 100;
}

TEST(a_foreign_signal_waits_for_the_handler)
{
	const struct sigaction old = wp_program_action(&wp_state.old_trap);
	const struct sigaction their = {.sa_handler = their_trap};
	struct wp_watch *w = open_watch(.addr = &word[0],
	    .handler = raise_trap);

	theirs = theirs_inside = 0;
	wp_program_action_set(&wp_state.old_trap, &their);
	word[0] = 1;
	assert_int_equal(noted.n, 1);
	assert_int_equal(theirs, 1);
	assert_int_equal(theirs_inside, 0);
	wp_program_action_set(&wp_state.old_trap, &old);
	wp_close(w);
}

static void
abort_on_hit(void *arg)
{
	(void)arg;
	(void)prctl(PR_SET_DUMPABLE, 0);
	(void)open_watch(.addr = &word[0], .handler = note, .arg = &noted,
	    .action = WP_CALL | WP_ABORT);
	word[0] = 1;
}

TEST(a_hit_may_abort)
{
	pid_t pid;

	pid = child_start(abort_on_hit, NULL);
	assert_int_equal(child_wait(pid) & 0x7f, SIGABRT);
}

/*
 * No helper.
 */

TEST(a_hit_without_helper_is_reported_in_plain_lines)
{
	struct wp_watch *w = open_watch(.addr = &word[0], .label = "config",
	    .action = WP_PRINT, .flags = WP_STRAY);
	char text[16384], first[256];
	int fds[2];
	ssize_t n;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	wp_state.output = fds[1];
	atomic_signal_fence(memory_order_seq_cst);
	word[0] = 1;
	atomic_signal_fence(memory_order_seq_cst);
	wp_state.output = 2;
	n = read(fds[0], text, sizeof(text) - 1);
	assert_in_range(n, 1, sizeof(text) - 1);
	text[n] = '\0';
	(void)snprintf(first, sizeof(first), " write config (8 bytes at %#llx) "
	    "by %s[%d/%d] (stray)\n", (unsigned long long)(uintptr_t)&word[0],
	    "trap_live_test", getpid(), gettid());
	if (strncmp(text, "watchpoint: #", 13) != 0 ||
	    strstr(text, first) == NULL || strstr(text, "frame 0 0x") == NULL ||
	    strstr(text, "/trap_live_test+0x") == NULL)
		fail_msg("%s instead of %s", text, first);
	assert_string_equal(wp_stray_text(), text);
	(void)close(fds[0]);
	(void)close(fds[1]);
	wp_close(w);
}

int
main(void)
{
	const CMUnitTestFunction by_async[] = {
		a_store_is_a_hit, each_execution_is_one_hit_before_it,
		what_a_handler_touches_is_no_hit,
		a_watch_on_dead_stack_does_not_loop,
		a_permitted_access_is_no_hit,
		each_watch_that_a_step_touches_is_hit,
		hits_while_blocked_are_one_late_hit,
		a_signal_of_a_closed_watch_does_nothing,
		hits_in_a_signal_handler_are_hits,
		hits_in_a_handler_that_blocks_are_late,
		a_full_queue_of_signals_loses_nothing,
		a_watch_of_two_registers_is_hit_once,
		overlapping_watches_miss_nothing, a_handler_may_be_left,
		NULL,
	};
	int status = -1;
	pid_t pid;

	(void)setenv("WATCHPOINT_HELPER", "", 1);
	(void)prctl(PR_SET_NAME, "trap_live_test");
	/* a process has one delivery */
	pid = fork();
	if (pid == 0) {
		(void)setenv("WATCHPOINT_DELIVERY", "async", 1);
		whose = WP_THIS_THREAD;
		exit(run_live_tests(.only = by_async, .before_each = reset,
		    .after_each = close_all));
	}
	if (waitpid(pid, &status, 0) != pid || status != 0)
		(void)fprintf(stderr, "by async: status %#x\n", status);
	(void)setenv("WATCHPOINT_DELIVERY", "sigtrap", 1);
	return run_live_tests(.before_each = reset, .after_each = close_all) +
	    (status != 0);
}

#else
int
main(void)
{
	return 0;
}
#endif
