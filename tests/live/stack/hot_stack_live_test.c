/*
 * known: a stack that is known already needs no whole copy: with a short one
 * the callers are the same, for hits from recursion, with alloca, in signal
 * handlers, inlined, behind tail calls, called by libraries, and of several
 * threads.
 *
 * Each hit of which a short copy would be made is copied whole, and unwound
 * both ways.
 */
#include "test.h"

#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/drain.h"
#include "bpf/known_stack_map.h"
#include "bpf/ticket.h"
#include "capture.h"
#include "child.h"
#include "hit/hit.h"
#include "record/record.h"
#include "space/space.h"
#include "ticketed.h"
#include "unwind/unwind.h"

enum {
	HITS = 9000,		/* THOROUGH: 1,000,000 */
	THREADS_MAX = 24,
	AHEAD = 1000,		/* hits that are not looked at yet */
	STACK = 4096, FRAMES = 256,
};

#define OWN __attribute__((noinline))

static volatile uint64_t word;		/* of the child */

/* What both processes see. */
static struct shared {
	atomic_int ready, go, ended;	/* threads */
	atomic_uint made, taken;	/* hits */
	int threads;
	unsigned each;			/* hits of a thread */
	void (*act)(unsigned random);	/* makes hits */
} *shared;

/* --- the child --- */

static _Thread_local unsigned made;	/* hits of this thread */

__attribute__((always_inline)) static inline void
store_inlined(long n)
{
	word = (uint64_t)n;
	made++;
	(void)atomic_fetch_add(&shared->made, 1);
}

static OWN void
store(long n)
{
	store_inlined(n);
	__asm__ volatile("" ::: "memory");
}

static OWN void
recurse(long n)
{
	if (n == 0)
		store(n);
	else
		recurse(n - 1);
	__asm__ volatile("" ::: "memory");
}

static OWN void
allocate(long n)
{
	volatile char *room = alloca((size_t)n * 48 + 16);

	room[n] = 1;
	store(n);
	room[0] = 1;
}

static OWN void
inlined(long n)
{
	store_inlined(n);
	if (n > 2)
		store_inlined(n + 1);
	else
		store(n);
	__asm__ volatile("" ::: "memory");
}

static OWN void
jump_on(long n)
{
	recurse(n & 1);
}

static OWN void
jump(long n)
{
	jump_on(n + 1);
}

static void
on_signal(int sig)
{
	store(sig);
}

static int
compare(const void *a, const void *b)
{
	store(0);
	return *(const int *)a - *(const int *)b;
}

static OWN void
call_back(long n)
{
	int both[] = {2, (int)n};

	qsort(both, 2, sizeof(both[0]), compare);
}

/* All of these. */
static OWN void
act_any(unsigned random)
{
	const long n = random >> 4 & 3;

	switch (random & 7) {
	case 0:
	case 1:
		recurse(n * 3);
		break;
	case 2:
		allocate(n);
		break;
	case 3:
		inlined(1);
		break;
	case 4:
		inlined(3);
		break;
	case 5:
		jump(n);
		break;
	case 6:
		(void)raise(SIGUSR1);
		break;
	default:
		call_back(n);
		break;
	}
}

/* With more callers, and more words for them, than a function usually has. */
static OWN void
act_deep(unsigned random)
{
	recurse(24 + (random & 7));
}

static OWN void
act_recurse(unsigned random)
{
	recurse(random & 7);
}

static void *
hit(void *arg)
{
	unsigned random = 1 + (unsigned)(uintptr_t)arg;

	(void)atomic_fetch_add(&shared->ready, 1);
	while (atomic_load(&shared->go) == 0)
		nap_us(100);
	while (made < shared->each) {
		random = random * 1103515245 + 12345;
		shared->act(random >> 16);
		while (atomic_load(&shared->made) -
		    atomic_load(&shared->taken) > AHEAD)
			nap_us(100);
	}
	(void)atomic_fetch_add(&shared->ended, 1);
	return NULL;
}

static void
run_threads(void *arg)
{
	pthread_t thread[THREADS_MAX];

	(void)arg;
	(void)signal(SIGUSR1, on_signal);
	for (int i = 0; i < shared->threads; i++)
		if (pthread_create(&thread[i], NULL, hit,
		    (void *)(uintptr_t)i) != 0)
			_exit(1);
	for (int i = 0; i < shared->threads; i++)
		(void)pthread_join(thread[i], NULL);
}

/* --- looking at its hits --- */

static struct looker {
	struct wp_target *target;
	struct ex_formats *formats;
	struct ex_space *space;
	struct ex_explainer *explainer;
	unsigned hits, tried;
} looker;

static void
know(const struct wp_known_stack *stack)
{
	assert_true(wp_target_know(looker.target, stack));
}

static void
forget(pid_t pid)
{
	wp_target_forget(looker.target, pid);
}

static int
take_hit(void *arg, struct ex_hit *h)
{
	(void)arg;
	assert_non_null(h->stack);
	return 0;
}

/* How long a short copy would be; 0: there would be none. */
static uint64_t
trial_of(const struct ex_sample *sample)
{
	struct wp_known_trial trial = {0};

	if (sample->raw_len > sizeof(struct wp_ticket))
		memcpy(&trial, sample->raw + sizeof(struct wp_ticket),
		    sizeof(trial));
	return trial.size;
}

static void
expect_same(pid_t pid, const struct ex_sample *sample, uint64_t size)
{
	struct ex_process *process = ex_space_process(looker.space, pid);
	struct ex_pc whole[FRAMES], cut[FRAMES];
	struct ex_sample shorter = *sample;
	enum ex_end whole_end, cut_end;
	unsigned n;

	assert_in_range(size, 256, STACK / 2);
	/* a thread's own stack may end before */
	assert_in_range(sample->stack_len, size, STACK);
	shorter.stack_asked = shorter.stack_len = size;
	n = ex_unwind(process, sample, whole, FRAMES, &whole_end);
	assert_int_equal(ex_unwind(process, &shorter, cut, FRAMES, &cut_end),
	    n);
	assert_int_equal(whole_end, cut_end);
	for (unsigned i = 0; i < n; i++)
		assert_true(whole[i].pc == cut[i].pc &&
		    whole[i].exact == cut[i].exact &&
		    whole[i].signal == cut[i].signal);
	looker.tried++;
}

static void
look_at(const struct perf_event_header *header)
{
	struct ex_record r;
	uint64_t size;

	assert_int_equal(ex_record_decode(looker.formats, header, header->size,
	    &r), 1);
	assert_int_equal(ex_explain(looker.explainer, &r), 0);
	if (r.type != PERF_RECORD_SAMPLE)
		return;
	looker.hits++;
	(void)atomic_fetch_add(&shared->taken, 1);
	if ((size = trial_of(&r.sample)) != 0)
		expect_same(r.pid, &r.sample, size);
}

/* A target by BPF which says how short copies would be.  False, and the reason
   is printed: that cannot be. */
static bool
make_target(void)
{
	const struct wp_options options = {
		.bpf = true, .stack = STACK, .try_known = true,
	};
	struct wp_cause cause;

	if (wp_target_new(&looker.target, &live_features, &options,
	    &cause) < 0)
		fail_msg("%s", cause.text);
	if (wp_target_options(looker.target)->tickets)
		return true;
	print_message("%s\n", wp_target_no_bpf(looker.target)->text);
	wp_target_free(looker.target);
	return false;
}

static void
attach(pid_t pid)
{
	const struct wp_region region = {
		.addr = (uintptr_t)&word, .len = sizeof(word),
		.access = WP_WRITE,
	};
	struct perf_event_attr attr;
	struct wp_cause cause;
	uint64_t *ids;
	int n;

	if (wp_target_watch(looker.target, &region, 1, &cause) < 0 ||
	    wp_target_attach(looker.target, pid, 0, 1, &cause) < 0)
		fail_msg("%s", cause.text);
	assert_non_null(looker.formats = ex_formats_new());
	n = wp_target_slot_ids(looker.target, 0, 0, &attr, &ids);
	assert_true(n > 0);
	assert_int_equal(ex_formats_add(looker.formats, &attr, ids,
	    (size_t)n), 0);
	free(ids);
}

static void
look_until_ended(struct wp_drain *drain, pid_t pid)
{
	const struct perf_event_header *header;

	while (atomic_load(&shared->ended) < shared->threads) {
		while ((header = wp_drain_next(drain)) != NULL)
			look_at(header);
		nap_us(100);
	}
	assert_int_equal(child_wait(pid), 0);
	wp_target_stop(looker.target);
	wp_drain_stop(drain);
	while ((header = wp_drain_next(drain)) != NULL)
		look_at(header);
}

/* Let threads make so many hits each, and return the hundredths of them of
   which short copies would be made, after comparing these. */
static unsigned
known_of_hits(void (*act)(unsigned), int threads, unsigned each)
{
	static const struct ex_listener listener = {know, forget};
	static const struct ex_watch watch = {
		.id = 1, .spec = "word", .addr = (uintptr_t)&word,
		.len = sizeof(word), .access = WP_WRITE, .slots = 1,
	};
	static const struct ex_slot slot = {
		&watch, (uintptr_t)&word, sizeof(word),
	};
	struct wp_drain *drain;
	struct wp_cause cause;
	pid_t pid;

	looker.hits = looker.tried = 0;
	shared = shared_memory(sizeof(*shared));
	shared->act = act;
	shared->threads = threads;
	shared->each = each;
	pid = child_start(run_threads, NULL);
	await(atomic_load(&shared->ready) == threads);
	attach(pid);
	assert_non_null(looker.space = ex_space_new(EX_LIVE));
	capture_maps(looker.space, pid);
	assert_non_null(looker.explainer = ex_explainer_new(looker.space,
	    &slot, 1, take_hit, NULL));
	ex_explain_listen(looker.explainer, &listener);
	assert_int_equal(wp_drain_start(&drain, wp_target_rings(looker.target),
	    WP_DRAIN_USUAL, &cause), 0);
	atomic_store(&shared->go, 1);
	look_until_ended(drain, pid);
	print_message("%u hits, of %u short copies would be made\n",
	    looker.hits, looker.tried);
	assert_int_equal(looker.hits, atomic_load(&shared->made));
	wp_drain_free(drain);
	ex_explainer_free(looker.explainer);
	ex_space_free(looker.space);
	ex_formats_free(looker.formats);
	wp_target_free(looker.target);
	return looker.tried * 100 / looker.hits;
}

TEST(a_short_copy_is_enough)
{
	const unsigned hits = getenv("THOROUGH") != NULL ? 1000000 : HITS;

	if (!make_target())
		skip();
	assert_true(known_of_hits(act_any, 3, hits / 3) > 50);
}

/* Their stacks are the same, but for where they are. */
TEST(what_one_thread_has_shown_is_known_of_others)
{
	if (!make_target())
		skip();
	assert_true(known_of_hits(act_recurse, THREADS_MAX, 200) > 60);
}

/* Of more words than one of the others has. */
TEST(a_deep_stack_is_known)
{
	if (!make_target())
		skip();
	assert_true(known_of_hits(act_deep, 2, 2400) > 60);
}

int
main(void)
{
	return run_live_tests();
}
