/* account: which watches a step touched, derived from made-up counts. */
#include "test.h"

#include <linux/hw_breakpoint.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <ucontext.h>

#include "handler/trap.h"

/* What the kernel has counted. */
static uint64_t counted[2];
static int refused;		/* -errno of counting */
static void (*meanwhile)(void);	/* what others do while this thread counts */

static int
count(const struct wp_watch *w, uint64_t *n)
{
	if (meanwhile != NULL)
		meanwhile();
	*n = counted[w - wp_state.watch];
	if (meanwhile != NULL)
		meanwhile();
	return refused;
}

/* What account.c waits by, instead of libc's. */
int
sched_yield(void)
{
	if (meanwhile != NULL)
		meanwhile();
	return 0;
}

long
syscall(long number, ...)
{
	assert_int_equal(number, SYS_nanosleep);
	if (meanwhile != NULL)
		meanwhile();
	else
		(void)nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
	return 0;
}

static const struct wp_delivery deliver = {.name = "made", .count = count};

static struct wp_watch *
watch(unsigned i, uint64_t seen, unsigned nslots)
{
	struct wp_watch *w = &wp_state.watch[i];

	memset(w, 0, sizeof(*w));
	w->delivery = &deliver;
	w->nslots = nslots;
	for (unsigned j = 0; j < nslots; j++)
		w->slot[j] = (struct wp_slot){0x1000 + 8 * j, 8,
		    HW_BREAKPOINT_W};
	atomic_store(&w->accounted, seen);
	return w;
}

TEST(a_signal_accounts_for_its_own)
{
	static const struct {
		const char *what;
		uint64_t seen, counted;
		unsigned nslots;
		enum wp_steps steps;
		uint64_t then;
	} cases[] = {
		{"one", 4, 5, 1, WP_STEP_ONE, 5},
		{"another is on its way", 4, 6, 1, WP_STEP_ONE, 5},
		{"both registers", 4, 6, 2, WP_STEP_ONE, 6},
		{"one of two registers", 4, 5, 2, WP_STEP_ONE, 5},
		{"no more than it has registers", 4, 9, 2, WP_STEP_ONE, 6},
		{"a system call", 4, 12, 1, WP_STEP_MANY, 12},
		{"a system call, both registers", 4, 20, 2, WP_STEP_MANY, 20},
		{"claimed before", 5, 5, 1, WP_STEP_ONE, 6},
	};

	for (unsigned i = 0; i < COUNT(cases); i++) {
		struct wp_watch *w = watch(0, cases[i].seen, cases[i].nslots);

		counted[0] = cases[i].counted;
		wp_account(w, cases[i].steps);
		if (wp_accounted(w) != cases[i].then)
			fail_msg("%s: %llu", cases[i].what,
			    (unsigned long long)wp_accounted(w));
	}
}

/* The slot that the signal named; the other watch has 0x1000 to 0x1008. */
static const struct wp_slot same = {0x1000, 8, HW_BREAKPOINT_W},
    part = {0x1004, 2, HW_BREAKPOINT_W}, wider = {0x0ff8, 16, HW_BREAKPOINT_W},
    reads = {0x1000, 8, HW_BREAKPOINT_RW}, far = {0x9000, 8, HW_BREAKPOINT_W};

static const struct also {
	const char *what;
	uint64_t seen, counted;
	const struct wp_slot *signalled;
	enum wp_steps steps;
	bool is;
	uint64_t then;
} alsos[] = {
	{"not ahead", 3, 3, &same, WP_STEP_ONE, false, 3},
	{"the same bytes", 3, 4, &same, WP_STEP_ONE, true, 4},
	{"the same bytes, others on their way", 3, 7, &same, WP_STEP_ONE, true,
	    4},
	{"a part of them", 3, 7, &part, WP_STEP_ONE, true, 4},
	{"more than them", 3, 4, &wider, WP_STEP_ONE, true, 4},
	{"they may have been read", 3, 4, &reads, WP_STEP_ONE, true, 4},
	{"elsewhere", 3, 4, &far, WP_STEP_ONE, true, 4},
	{"elsewhere, no more than it has registers", 3, 7, &far, WP_STEP_ONE,
	    true, 4},
	{"a system call", 3, 11, &same, WP_STEP_MANY, true, 11},
	{"not known where", 3, 4, NULL, WP_STEP_ONE, true, 4},
	{"more seen than counted", 4, 3, &same, WP_STEP_ONE, false, 3},
};

static void
try_all(void)
{
	for (unsigned i = 0; i < COUNT(alsos); i++) {
		const struct also *a = &alsos[i];
		struct wp_watch *w = watch(1, a->seen, 1);

		counted[1] = a->counted;
		if (wp_account_also(w, a->signalled, a->steps) != a->is ||
		    wp_accounted(w) != a->then)
			fail_msg("%s: %llu", a->what,
			    (unsigned long long)wp_accounted(w));
	}
}

TEST(an_event_that_is_ahead_was_hit)
{
	try_all();
}

TEST(nothing_is_claimed_of_what_cannot_be_counted)
{
	struct wp_watch *w = watch(1, 3, 1);

	counted[1] = 9;
	refused = -5;
	assert_false(wp_account_also(w, &same, WP_STEP_ONE));
	refused = 0;
	atomic_store(&w->narmed, 1000);
	assert_false(wp_account_also(w, &same, WP_STEP_ONE));
	assert_int_equal(wp_accounted(w), 3);
}

/* Another thread, whose handler accounts for its own hit a little later. */
static void *
account_later(void *arg)
{
	const struct timespec ms = {.tv_nsec = 100000};

	(void)nanosleep(&ms, NULL);
	wp_account(arg, WP_STEP_ONE);
	return NULL;
}

static void *
wait_for_end(void *arg)
{
	pthread_mutex_t *end = arg;

	(void)pthread_mutex_lock(end);
	return NULL;
}

/* With several threads: what stays ahead was touched, too. */
TEST(hits_that_others_account_for_are_not_claimed)
{
	pthread_mutex_t end = PTHREAD_MUTEX_INITIALIZER;
	pthread_t idle, other;
	unsigned theirs = 0;

	(void)pthread_mutex_lock(&end);
	assert_int_equal(pthread_create(&idle, NULL, wait_for_end, &end), 0);
	try_all();
	/* a thread that is slow to be run is taken for no thread: try again */
	for (unsigned i = 0; i < 100 && theirs == 0; i++) {
		struct wp_watch *w = watch(1, 3, 1);

		counted[1] = 4;
		assert_int_equal(pthread_create(&other, NULL, account_later, w),
		    0);
		theirs += !wp_account_also(w, &far, WP_STEP_ONE);
		assert_int_equal(pthread_join(other, NULL), 0);
	}
	assert_int_equal(theirs, 1);
	(void)pthread_mutex_unlock(&end);
	assert_int_equal(pthread_join(idle, NULL), 0);
}

/* --- other threads, at given moments --- */

static unsigned looks;		/* at meanwhile, until something happens */

/* Another thread's step, and its handler from beginning to end. */
static void
another_touches_both(void)
{
	if (looks-- != 1)
		return;
	meanwhile = NULL;
	counted[1] += 2;
	(void)wp_account(&wp_state.watch[1], WP_STEP_ONE);
}

static void
another_touches_one(void)
{
	if (looks-- != 1)
		return;
	meanwhile = NULL;
	counted[1]++;
	(void)wp_account(&wp_state.watch[1], WP_STEP_ONE);
}

/* Of two steps that touch two registers each nothing is left over, wherever the
   one's handler comes between what the other's does. */
TEST(its_own_hits_leave_nothing_over)
{
	for (unsigned i = 1; i <= 4; i++) {
		struct wp_watch *w = watch(1, 0, 2);

		counted[1] = 2;
		looks = i;
		meanwhile = another_touches_both;
		(void)wp_account(w, WP_STEP_ONE);
		meanwhile = NULL;
		if (wp_accounted(w) < counted[1])
			fail_msg("%u: %u of %u", i, (unsigned)wp_accounted(w),
			    (unsigned)counted[1]);
	}
}

static pthread_mutex_t idle_end = PTHREAD_MUTEX_INITIALIZER;
static pthread_t idle;

/* The program has several threads. */
static int
begin_idle(void **state)
{
	(void)state;
	(void)pthread_mutex_lock(&idle_end);
	return pthread_create(&idle, NULL, wait_for_end, &idle_end);
}

static int
end_idle(void **state)
{
	(void)state;
	meanwhile = NULL;
	(void)pthread_mutex_unlock(&idle_end);
	(void)pthread_join(idle, NULL);
	return pthread_mutex_unlock(&idle_end);
}

/* Of another watch that the step touched, too, whether that is certain or
   not. */
TEST_WITH(nothing_is_left_over_of_others, begin_idle, end_idle)
{
	static const struct wp_slot *const signalled[] = {&far, &same};

	for (unsigned i = 0; i < 24; i++) {
		const unsigned nslots = 1 + i / 12;
		struct wp_watch *w = watch(1, 0, nslots);

		counted[1] = nslots;
		looks = 1 + i % 6;
		meanwhile = nslots == 1 ? another_touches_one :
		    another_touches_both;
		(void)wp_account_also(w, signalled[i / 6 % 2], WP_STEP_ONE);
		meanwhile = NULL;
		if (wp_accounted(w) < counted[1])
			fail_msg("%u: %u of %u", i, (unsigned)wp_accounted(w),
			    (unsigned)counted[1]);
	}
}

/* --- other threads, at any moment --- */

enum { THREADS = 3, STEPS = 3, STACK = 64 << 10 };

/* Threads that take turns by chance, all in this one. */
static ucontext_t ended, thread[THREADS];
static bool runs[THREADS];
static unsigned now_runs;
static uint64_t chance;

static unsigned
below(unsigned n)
{
	chance = chance * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(chance >> 33) % n;
}

static void
run_another(void)
{
	const unsigned was = now_runs, next = below(THREADS);

	if (below(2) == 0 || !runs[next] || next == was)
		return;
	now_runs = next;
	(void)swapcontext(&thread[was], &thread[next]);
}

/* A step touches some of both watches' registers, and is signalled by one of
   them; its handler. */
static void
step(void)
{
	struct wp_watch *const w = wp_state.watch;
	unsigned touched[2], by;

	do {
		touched[0] = below(w[0].nslots + 1);
		touched[1] = below(w[1].nslots + 1);
	} while (touched[0] + touched[1] == 0);
	by = touched[0] == 0 || (touched[1] != 0 && below(2) == 0);
	counted[0] += touched[0];
	counted[1] += touched[1];
	run_another();
	(void)wp_account(&w[by], WP_STEP_ONE);
	run_another();
	(void)wp_account_also(&w[!by], touched[!by] != 0 && below(2) == 0 ?
	    &same : &far, WP_STEP_ONE);
	run_another();
}

static void
run_thread(void)
{
	for (unsigned i = 0; i < STEPS; i++)
		step();
	runs[now_runs] = false;
	for (unsigned i = 0; i < THREADS; i++)
		if (runs[i]) {
			now_runs = i;
			(void)setcontext(&thread[i]);
		}
	(void)setcontext(&ended);
}

TEST_WITH(nothing_is_left_over_by_chance, begin_idle, end_idle)
{
	static _Alignas(64) char stack[THREADS][STACK];

	atomic_store(&wp_state.nopen, 2);
	for (unsigned seed = 0; seed < 2000; seed++) {
		volatile bool over = false;

		chance = seed;
		for (unsigned i = 0; i < 2; i++)
			(void)watch(i, counted[i] = 0, 1 + (seed >> i) % 2);
		for (unsigned i = 0; i < THREADS; i++) {
			runs[i] = true;
			(void)getcontext(&thread[i]);
			thread[i].uc_stack.ss_sp = stack[i];
			thread[i].uc_stack.ss_size = STACK;
			makecontext(&thread[i], run_thread, 0);
		}
		now_runs = 0;
		meanwhile = run_another;
		(void)getcontext(&ended);
		if (!over) {
			over = true;
			(void)setcontext(&thread[0]);
		}
		meanwhile = NULL;
		for (unsigned i = 0; i < 2; i++)
			if (wp_accounted(&wp_state.watch[i]) < counted[i])
				fail_msg("seed %u, watch %u: %u of %u", seed, i,
				    (unsigned)wp_accounted(&wp_state.watch[i]),
				    (unsigned)counted[i]);
	}
	atomic_store(&wp_state.nopen, 0);
}

RUN_TESTS()
