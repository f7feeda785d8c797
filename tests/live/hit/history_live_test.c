/*
 * history: what is claimed by the tickets of threads that race for a word, at
 * once and moved between processors, beside what each of them saw.
 *
 * Threads exchange and add, which shows them what they replaced.  Afterwards
 * their hits are taken as if the instruction had shown less.
 */
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "attach/drain.h"
#include "child.h"
#include "hit/history.h"
#include "live.h"
#include "bpf/ticket.h"
#include "record/record.h"
#include "ticketed.h"

enum { THREADS = 4, HITS = 20000 };	/* THOROUGH: 1,000,000 */

static volatile uint64_t word;		/* of the child */

/* What both processes see. */
static struct shared {
	atomic_int ready, go;
	unsigned each;			/* hits of a thread */
	struct {
		pid_t tid;
		bool adds;
		struct seen {
			uint64_t old, new;
		} *log;
	} thread[THREADS];
	unsigned n;
} *shared;

/* Hits and marks as they came. */
struct event {
	uint64_t all, upto;		/* of a mark; 0: it is a hit: */
	struct wp_ticket ticket;
	uint32_t cpu;
	unsigned thread;
	struct seen seen;
	struct ex_history_hit *hit;	/* while it is judged */
};

static struct race {
	struct event *event;
	size_t n, hits;
} race;

/* --- the child --- */

/* Move a thread to a processor. */
static void
move(unsigned thread, long cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((size_t)(cpu % sysconf(_SC_NPROCESSORS_ONLN)), &one);
	(void)sched_setaffinity(shared->thread[thread].tid, sizeof(one), &one);
}

static void *
stir(void *arg)
{
	unsigned random = 1;

	for (;;) {
		random = random * 1103515245 + 12345;
		move((random >> 16) % shared->n, random >> 24);
		nap_us(100);
	}
	return arg;
}

static void *
hit(void *arg)
{
	const unsigned number = (unsigned)(uintptr_t)arg;

	shared->thread[number].tid = gettid();
	move(number, number);
	(void)atomic_fetch_add(&shared->ready, 1);
	while (atomic_load(&shared->go) == 0)
		(void)sched_yield();
	for (unsigned i = 0; i < shared->each; i++) {
		struct seen *seen = &shared->thread[number].log[i];
		uint64_t value = (uint64_t)(number + 1) << 40 | (i + 1) << 8;

		if (shared->thread[number].adds) {
			value = 1;
			__asm__ volatile("lock xaddq %1,%0" : "+m"(word),
			    "+r"(value));
			seen->old = value;
			seen->new = value + 1;
		} else {
			seen->new = value;
			__asm__ volatile("xchgq %1,%0" : "+m"(word),
			    "+r"(value));
			seen->old = value;
		}
	}
	return NULL;
}

static void
run_threads(void *arg)
{
	pthread_t thread[THREADS], stirrer;

	for (unsigned i = 0; i < shared->n; i++)
		if (pthread_create(&thread[i], NULL, hit,
		    (void *)(uintptr_t)i) != 0)
			_exit(1);
	if (shared->n > 2 && pthread_create(&stirrer, NULL, stir, arg) != 0)
		_exit(1);
	for (unsigned i = 0; i < shared->n; i++)
		(void)pthread_join(thread[i], NULL);
}

/* --- watching it --- */

static void
share(const char *kinds)
{
	const unsigned hits = getenv("THOROUGH") != NULL ? 1000000 : HITS;

	shared = shared_memory(sizeof(*shared));
	shared->n = (unsigned)strlen(kinds);
	shared->each = hits / 4 / shared->n;
	for (unsigned i = 0; i < shared->n; i++) {
		shared->thread[i].adds = kinds[i] == 'a';
		shared->thread[i].log = shared_memory(shared->each *
		    sizeof(struct seen));
	}
}

static void
free_shared(void)
{
	for (unsigned i = 0; i < shared->n; i++)
		(void)munmap(shared->thread[i].log, shared->each *
		    sizeof(struct seen));
	(void)munmap(shared, sizeof(*shared));
}

static struct ex_formats *
attach(struct wp_target *target, pid_t pid)
{
	const struct wp_region region = {
		.addr = (uintptr_t)&word, .len = sizeof(word),
		.access = WP_WRITE,
	};
	struct ex_formats *formats = ex_formats_new();
	struct perf_event_attr attr;
	struct wp_cause cause;
	uint64_t *ids;
	int n;

	if (wp_target_watch(target, &region, 1, &cause) < 0 ||
	    wp_target_attach(target, pid, 0, 1, &cause) < 0)
		fail_msg("%s", cause.text);
	assert_non_null(formats);
	n = wp_target_slot_ids(target, 0, 0, &attr, &ids);
	assert_true(n > 0);
	assert_int_equal(ex_formats_add(formats, &attr, ids, (size_t)n), 0);
	free(ids);
	return formats;
}

static void
note_hit(const struct ex_record *r, unsigned at[THREADS])
{
	struct event *event = &race.event[race.n++];
	unsigned t = 0;

	assert_true(wp_ticket_get(r->sample.raw, r->sample.raw_len,
	    &event->ticket));
	while (t < shared->n && shared->thread[t].tid != r->tid)
		t++;
	assert_true(t < shared->n && at[t] < shared->each);
	event->thread = t;
	event->cpu = r->cpu;
	event->seen = shared->thread[t].log[at[t]++];
	race.hits++;
}

/* All that comes until the child has ended. */
static void
take_race(struct wp_drain *drain, const struct ex_formats *formats)
{
	const struct perf_event_header *header;
	unsigned at[THREADS] = {0};

	while ((header = wp_drain_next(drain)) != NULL) {
		struct ex_record r;

		assert_int_equal(ex_record_decode(formats, header,
		    header->size, &r), 1);
		if (r.type == PERF_RECORD_SAMPLE)
			note_hit(&r, at);
		if (r.type == PERF_RECORD_READ)
			race.event[race.n++] = (struct event){
				.all = r.read.running, .upto = r.read.value,
			};
		assert_true(r.type != PERF_RECORD_LOST);
	}
}

/* Threads of these kinds race.  False: they cannot be watched so. */
static bool
run_race(const char *kinds)
{
	struct wp_target *target = ticketed_target();
	struct ex_formats *formats;
	struct wp_drain *drain;
	struct wp_cause cause;
	pid_t pid;

	if (target == NULL)
		return false;
	share(kinds);
	pid = child_start(run_threads, NULL);
	await(atomic_load(&shared->ready) == (int)shared->n);
	race = (struct race){.event = calloc(2 * (size_t)shared->each *
	    shared->n + 1000, sizeof(*race.event))};
	assert_non_null(race.event);
	formats = attach(target, pid);
	assert_int_equal(wp_drain_start(&drain, wp_target_rings(target),
	    WP_DRAIN_USUAL * 4, &cause), 0);
	wp_drain_marks(drain, target);
	atomic_store(&shared->go, 1);
	assert_int_equal(child_wait(pid), 0);
	wp_target_stop(target);
	wp_drain_stop(drain);
	take_race(drain, formats);
	assert_int_equal(race.hits, (uint64_t)shared->each * shared->n);
	wp_drain_free(drain);
	ex_formats_free(formats);
	wp_target_free(target);
	return true;
}

/* --- judging it --- */

enum shown { STORED, COMPUTED, EXCHANGED, HALF_OF_THEM, NOTHING };

static void
describe(const struct event *event, enum shown shown)
{
	struct ex_history_hit *h = event->hit;
	const bool adds = shared->thread[event->thread].adds;

	h->read = (struct ex_bytes){event->ticket.bytes,
	    event->ticket.len == 8 ? UINT64_MAX : 0};
	h->tid = shared->thread[event->thread].tid;
	h->cpu = event->cpu;
	h->write.bits = UINT64_MAX;
	if (shown == NOTHING || (shown == HALF_OF_THEM &&
	    event->thread % 2 != 0))
		return;
	if (adds && shown != STORED) {
		h->effect = (struct ex_effect){
			.operation = EX_OP_ADD, .size = 8, .operand = 1,
		};
		h->write.effect = &h->effect;
	} else {
		h->write.stored = event->seen.new;
		h->write.stored_bits = UINT64_MAX;
	}
	if (shown == EXCHANGED) {
		h->write.loaded = event->seen.old;
		h->write.loaded_bits = UINT64_MAX;
	}
}

static void
check_claim(const struct event *event)
{
	const struct ex_bytes old = event->hit->old, new = event->hit->new;

	if (((old.value ^ event->seen.old) & old.bits) == 0 &&
	    ((new.value ^ event->seen.new) & new.bits) == 0)
		return;
	fail_msg("ticket %llu of thread %u: %#llx -> %#llx, not "
	    "%#llx (%#llx) -> %#llx (%#llx)",
	    (unsigned long long)event->ticket.number, event->thread,
	    (unsigned long long)event->seen.old,
	    (unsigned long long)event->seen.new,
	    (unsigned long long)old.value, (unsigned long long)old.bits,
	    (unsigned long long)new.value, (unsigned long long)new.bits);
}

static void
feed(struct ex_history *h, enum shown shown, bool drop)
{
	uint32_t random = 1;

	for (size_t i = 0; i < race.n; i++) {
		struct event *event = &race.event[i];

		event->hit = NULL;
		random = random * 1103515245 + 12345;
		if (event->upto != 0) {
			ex_history_mark(h, event->all, event->upto);
		} else if (!drop || (random >> 16) % 100 != 0) {
			event->hit = ex_history_add(h, event->ticket.number);
			assert_non_null(event->hit);
			describe(event, shown);
		}
	}
}

/*
 * Hits that were made while another processor was held up, between its write
 * and its ticket, for longer than others take to hit LONG times: a virtual one
 * that was taken away.  Its write may hide behind each of theirs.
 */
enum { LONG = 8 };

static void
mark_held_up(bool *held)
{
	memset(held, 0, race.hits + 1);
	for (size_t i = 0; i < race.n; i++) {
		const struct event *event = &race.event[i];
		const uint64_t number = event->ticket.number;

		if (event->hit != NULL && number - event->hit->after > LONG)
			memset(held + event->hit->after + 1, true,
			    number - event->hit->after);
	}
}

/* Result: of how many percent of the others both values are claimed; all claims
   are right. */
static unsigned
judge(enum shown shown, bool drop)
{
	bool *held = calloc(race.hits + 1, sizeof(*held));
	struct ex_history *h = ex_history_new();
	size_t both = 0, others = 0, all = 0;

	assert_true(h != NULL && held != NULL);
	ex_history_known(h, (struct ex_bytes){0, UINT64_MAX});
	feed(h, shown, drop);
	mark_held_up(held);
	for (size_t i = 0; i < race.n; i++) {
		struct event *event = &race.event[i];
		bool claimed;

		if (event->hit == NULL)
			continue;
		assert_true(event->hit->settled);
		check_claim(event);
		claimed = event->hit->old.bits == UINT64_MAX &&
		    event->hit->new.bits == UINT64_MAX;
		all += claimed;
		if (!held[event->ticket.number]) {
			others++;
			both += claimed;
		}
		ex_history_release(event->hit);
	}
	ex_history_free(h);
	free(held);
	print_message("shown %d%s: both values of %zu of %zu; %zu of %zu\n",
	    (int)shown, drop ? ", 1% dropped" : "", all, race.hits, both,
	    others);
	return others == 0 ? 100 : (unsigned)(100 * both / others);
}

static void
judge_all(unsigned least)
{
	for (enum shown shown = STORED; shown <= NOTHING; shown++) {
		const unsigned share = judge(shown, false);

		if (shown <= EXCHANGED && share < least)
			fail_msg("both values of %u%%", share);
		(void)judge(shown, true);
	}
}

/* Two threads, and four that are moved between processors.  It is nine in ten
   of two threads where nobody else runs; where others do, writes hide for less
   time than LONG, too. */
TEST(claims_are_what_the_threads_saw)
{
	static const struct {
		const char *kinds;
		unsigned least;
	} cases[] = {{"xx", 75}, {"aa", 75}, {"xa", 75}, {"xxaa", 50}};

	for (size_t i = 0; i < COUNT(cases); i++) {
		if (!run_race(cases[i].kinds))
			skip();
		print_message("%s: %zu marks\n", cases[i].kinds, race.n -
		    race.hits);
		judge_all(cases[i].least);
		free(race.event);
		free_shared();
	}
}

RUN_LIVE_TESTS(.after_each = children_end)
