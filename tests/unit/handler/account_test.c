/* account: which watches a step touched, by made counts. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/hw_breakpoint.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "handler/trap.h"

/* What the kernel has counted. */
static uint64_t counted[2];
static int refused;		/* -errno of counting */

static int
count(const struct wp_watch *w, uint64_t *n)
{
	*n = counted[w - wp_inside.watch];
	return refused;
}

static const struct wp_delivery deliver = {.name = "made", .count = count};

static struct wp_watch *
watch(unsigned i, uint64_t seen, unsigned nslots)
{
	struct wp_watch *w = &wp_inside.watch[i];

	memset(w, 0, sizeof(*w));
	w->delivery = &deliver;
	w->nslots = nslots;
	for (unsigned j = 0; j < nslots; j++)
		w->slot[j] = (struct wp_slot){0x1000 + 8 * j, 8,
		    HW_BREAKPOINT_W};
	atomic_store(&w->seen, seen);
	return w;
}

static void
a_signal_accounts_for_its_own(void **state)
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

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wp_watch *w = watch(0, cases[i].seen, cases[i].nslots);

		counted[0] = cases[i].counted;
		wp_account(w, cases[i].steps);
		if (atomic_load(&w->seen) != cases[i].then)
			fail_msg("%s: %llu", cases[i].what,
			    (unsigned long long)atomic_load(&w->seen));
	}
}

/* The slot that the signal told of; the other watch has 0x1000 to 0x1008. */
static const struct wp_slot same = {0x1000, 8, HW_BREAKPOINT_W},
    part = {0x1004, 2, HW_BREAKPOINT_W}, wider = {0x0ff8, 16, HW_BREAKPOINT_W},
    reads = {0x1000, 8, HW_BREAKPOINT_RW}, far = {0x9000, 8, HW_BREAKPOINT_W};

static const struct also {
	const char *what;
	uint64_t seen, counted;
	const struct wp_slot *told;
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
	{"elsewhere, several registers", 3, 7, &far, WP_STEP_ONE, true, 7},
	{"a system call", 3, 11, &same, WP_STEP_MANY, true, 11},
	{"not known where", 3, 4, NULL, WP_STEP_ONE, true, 4},
	{"more seen than counted", 4, 3, &same, WP_STEP_ONE, false, 3},
};

static void
try_all(void)
{
	for (unsigned i = 0; i < sizeof(alsos) / sizeof(alsos[0]); i++) {
		const struct also *a = &alsos[i];
		struct wp_watch *w = watch(1, a->seen, 1);

		counted[1] = a->counted;
		if (wp_account_also(w, a->told, a->steps) != a->is ||
		    atomic_load(&w->seen) != a->then)
			fail_msg("%s: %llu", a->what,
			    (unsigned long long)atomic_load(&w->seen));
	}
}

static void
one_that_is_ahead_was_touched(void **state)
{
	(void)state;
	try_all();
}

static void
nothing_is_claimed_of_what_cannot_be_counted(void **state)
{
	struct wp_watch *w = watch(1, 3, 1);

	(void)state;
	counted[1] = 9;
	refused = -5;
	assert_false(wp_account_also(w, &same, WP_STEP_ONE));
	refused = 0;
	atomic_store(&w->narmed, 1000);
	assert_false(wp_account_also(w, &same, WP_STEP_ONE));
	assert_int_equal(atomic_load(&w->seen), 3);
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
static void
what_others_account_for_is_theirs(void **state)
{
	pthread_mutex_t end = PTHREAD_MUTEX_INITIALIZER;
	pthread_t idle, other;
	unsigned theirs = 0;

	(void)state;
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_signal_accounts_for_its_own),
		cmocka_unit_test(one_that_is_ahead_was_touched),
		cmocka_unit_test(nothing_is_claimed_of_what_cannot_be_counted),
		cmocka_unit_test(what_others_account_for_is_theirs),
	};

	return cmocka_run_group_tests_name("account", tests, NULL, NULL);
}
