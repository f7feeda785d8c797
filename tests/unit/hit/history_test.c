/*
 * history: what it claims of hits is what they did, in races that are played,
 * in which everything is known.
 */
#include "test.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "hit/history.h"

/* What threads do to the word. */
enum kind { MOV, HALF, XCHG, XADD, LOCK_ADD, ADD, OPAQUE, KINDS };

enum { CPUS = 8, HITS = 40000 };	/* THOROUGH: 1,000,000 */

/* A hit, as it was. */
struct truth {
	uint64_t old, new;
	struct ex_history_hit *hit;	/* NULL: its record was dropped */
	enum kind kind;
};

/* A processor: its thread has written and not taken a ticket yet, or not. */
struct cpu {
	bool flying;
	unsigned thread;
	struct truth truth;
	uint64_t operand;
	unsigned slow;		/* how often it is passed over */
};

struct play {
	unsigned cpus, threads;
	const enum kind *kinds;	/* of each thread */
	unsigned drop;		/* of so many records one; 0: none */
	bool read_fails;	/* now and then */
	bool few;		/* values, so that mistakes fit by chance */
	uint64_t random, word, unique, tickets;
	struct cpu cpu[CPUS];
	struct ex_history *history;
	struct truth *truth;	/* by ticket */
	uint64_t all, marked;	/* the mark to come; 0: none; tickets at the
				   last one */
	bool waits[CPUS];	/* for which it waits */
	unsigned both, some, dropped;
};

static uint64_t
draw(struct play *p, uint64_t n)
{
	p->random = p->random * 6364136223846793005u + 1442695040888963407u;
	return (p->random >> 33) % n;
}

static uint64_t
effect_of(const struct play *p, const struct cpu *cpu)
{
	switch (cpu->truth.kind) {
	case MOV:
	case XCHG:
	case OPAQUE:
		return cpu->operand;
	case HALF:
		return (p->word & UINT64_C(0xffffffff)) |
		    (cpu->operand & UINT64_C(0xffffffff)) << 32;
	default:
		return p->word + cpu->operand;
	}
}

/* A thread that is on no processor comes to this one, and writes. */
static void
fly(struct play *p, struct cpu *cpu)
{
	bool taken;

	do {
		cpu->thread = (unsigned)draw(p, p->threads);
		taken = false;
		for (unsigned i = 0; i < p->cpus; i++)
			taken |= p->cpu[i].flying &&
			    p->cpu[i].thread == cpu->thread;
	} while (taken);
	cpu->flying = true;
	cpu->slow = draw(p, 50) == 0 ? (unsigned)draw(p, 40) : 0;
	cpu->truth = (struct truth){.kind = p->kinds[cpu->thread]};
	cpu->operand = cpu->truth.kind == LOCK_ADD || cpu->truth.kind == XADD ||
	    cpu->truth.kind == ADD ? 1 : p->few && draw(p, 2) == 0 ?
	    draw(p, 4) : ++p->unique << 8;
	cpu->truth.old = p->word;
	p->word = cpu->truth.new = effect_of(p, cpu);
}

static void
add_effect(struct ex_history_hit *hit, uint64_t operand)
{
	hit->effect = (struct ex_effect){
		.operation = EX_OP_ADD, .size = 8, .operand = operand,
		.atomic = true,
	};
	hit->write.effect = &hit->effect;
}

/* What the instruction shows. */
static void
describe(struct ex_history_hit *hit, const struct cpu *cpu)
{
	struct ex_write *w = &hit->write;

	w->bits = UINT64_MAX;
	switch (cpu->truth.kind) {
	case MOV:
	case XCHG:
		w->stored = cpu->operand;
		w->stored_bits = UINT64_MAX;
		break;
	case HALF:
		w->bits = w->stored_bits = UINT64_MAX << 32;
		w->stored = cpu->operand << 32;
		break;
	case XADD:
	case LOCK_ADD:
		add_effect(hit, cpu->operand);
		break;
	default:
		break;
	}
	if (cpu->truth.kind == XCHG || cpu->truth.kind == XADD) {
		w->loaded = cpu->truth.old;
		w->loaded_bits = UINT64_MAX;
	}
}

static void
take_ticket(struct play *p, struct cpu *cpu)
{
	struct truth *truth = &p->truth[++p->tickets];

	cpu->flying = false;
	*truth = cpu->truth;
	if (p->drop != 0 && draw(p, p->drop) == 0) {
		p->dropped++;
		return;
	}
	truth->hit = ex_history_add(p->history, p->tickets);
	assert_non_null(truth->hit);
	truth->hit->read = (struct ex_bytes){p->word, UINT64_MAX};
	if (p->read_fails && draw(p, 100) == 0)
		truth->hit->read.bits = 0;
	truth->hit->tid = (pid_t)(100 + cpu->thread);
	truth->hit->cpu = (uint32_t)(cpu - p->cpu);
	describe(truth->hit, cpu);
}

/* What is claimed of those that are settled. */
static void
check(struct play *p, uint64_t first)
{
	for (uint64_t i = first; i <= p->tickets; i++) {
		struct truth *t = &p->truth[i];
		bool old, new;

		if (t->hit == NULL || !t->hit->settled)
			continue;
		old = t->hit->old.bits == UINT64_MAX;
		new = t->hit->new.bits == UINT64_MAX;
		if (((t->hit->old.value ^ t->old) & t->hit->old.bits) != 0 ||
		    ((t->hit->new.value ^ t->new) & t->hit->new.bits) != 0)
			fail_msg("ticket %llu: %#llx -> %#llx is claimed to be "
			    "%#llx -> %#llx", (unsigned long long)i,
			    (unsigned long long)t->old,
			    (unsigned long long)t->new,
			    (unsigned long long)t->hit->old.value,
			    (unsigned long long)t->hit->new.value);
		p->both += old && new;
		p->some += old || new;
		ex_history_release(t->hit);
		t->hit = NULL;
	}
}

/* A mark is there when all have taken a ticket that were in flight when it
   began. */
static void
mark(struct play *p)
{
	bool waits = false;

	for (unsigned i = 0; i < p->cpus; i++) {
		p->waits[i] = p->waits[i] && p->cpu[i].flying;
		waits |= p->waits[i];
	}
	if (p->all != 0 && !waits) {
		ex_history_mark(p->history, p->all, p->tickets);
		check(p, p->marked > 2000 ? p->marked - 2000 : 1);
		p->marked = p->all;
		p->all = 0;
	} else if (p->all == 0 && p->tickets >= p->marked + 200) {
		p->all = p->tickets;
		for (unsigned i = 0; i < p->cpus; i++)
			p->waits[i] = p->cpu[i].flying;
	}
}

/* Result: of how many percent both values are claimed. */
static unsigned
play(struct play p)
{
	const unsigned n = getenv("THOROUGH") != NULL ? 1000000 : HITS;

	p.truth = calloc(n + CPUS + 1, sizeof(*p.truth));
	p.history = ex_history_new();
	assert_true(p.truth != NULL && p.history != NULL);
	ex_history_known(p.history, (struct ex_bytes){0, UINT64_MAX});
	while (p.tickets < n) {
		struct cpu *cpu = &p.cpu[draw(&p, p.cpus)];

		if (!cpu->flying)
			fly(&p, cpu);
		else if (cpu->slow > 0)
			cpu->slow--;
		else
			take_ticket(&p, cpu);
		mark(&p);
	}
	for (unsigned i = 0; i < p.cpus; i++)
		if (p.cpu[i].flying)
			take_ticket(&p, &p.cpu[i]);
	ex_history_mark(p.history, p.tickets, p.tickets);
	check(&p, 1);
	for (uint64_t i = 1; i <= p.tickets; i++)
		assert_null(p.truth[i].hit);
	print_message("%u threads, %u processors: both %u, some %u of %llu, "
	    "%u dropped\n", p.threads, p.cpus, p.both, p.some,
	    (unsigned long long)p.tickets, p.dropped);
	ex_history_free(p.history);
	free(p.truth);
	return (unsigned)(100 * (uint64_t)p.both / p.tickets);
}

TEST(two_threads_race)
{
	static const struct {
		enum kind kinds[2];
		unsigned least;
	} cases[] = {
		{{MOV, MOV}, 60}, {{LOCK_ADD, LOCK_ADD}, 40},
		{{XCHG, XCHG}, 95},
		{{XADD, XADD}, 95}, {{MOV, LOCK_ADD}, 60}, {{HALF, MOV}, 30},
		{{OPAQUE, OPAQUE}, 0}, {{OPAQUE, XADD}, 10}, {{ADD, ADD}, 0},
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		assert_true(play((struct play){
			.cpus = 2, .threads = 2, .kinds = cases[i].kinds,
			.random = i,
		}) >= cases[i].least);
}

static const enum kind mixed[] = {
	MOV, XADD, LOCK_ADD, HALF, MOV, OPAQUE, XCHG, ADD,
};

TEST(many_threads_race)
{
	for (unsigned cpus = 1; cpus <= 4; cpus++)
		(void)play((struct play){
			.cpus = cpus, .threads = 8, .kinds = mixed,
			.random = cpus, .few = true,
		});
	assert_true(play((struct play){
		.cpus = 2, .threads = 4, .kinds = (enum kind[]){
		MOV, LOCK_ADD, XADD, XCHG}, .random = 1,
	}) >= 50);
}

TEST(what_is_lost_is_not_guessed)
{
	for (unsigned cpus = 2; cpus <= 4; cpus++)
		(void)play((struct play){
			.cpus = cpus, .threads = 8, .kinds = mixed,
			.random = cpus, .drop = 100, .read_fails = true,
			.few = true,
		});
	(void)play((struct play){
		.cpus = 2, .threads = 4, .kinds = (enum kind[]){
		MOV, LOCK_ADD, XADD, XCHG}, .random = 1, .drop = 100,
	});
}

/* One thread at a time: nothing is in doubt. */
TEST(all_is_known_of_a_single_thread)
{
	assert_int_equal(play((struct play){
		.cpus = 1, .threads = 1, .kinds = mixed,
	}), 100);
}

/* --- what cannot be known --- */

static struct ex_history_hit *
store(struct ex_history *h, uint64_t number, uint64_t value)
{
	struct ex_history_hit *hit = ex_history_add(h, number);

	assert_non_null(hit);
	hit->read = (struct ex_bytes){value, UINT64_MAX};
	hit->tid = 7;
	hit->write.bits = hit->write.stored_bits = UINT64_MAX;
	hit->write.stored = value;
	return hit;
}

TEST(nothing_is_claimed_across_a_doubt)
{
	struct ex_history *h = ex_history_new();
	struct ex_history_hit *hit[5];

	assert_non_null(h);
	for (uint64_t i = 1; i <= 2; i++)
		hit[i] = store(h, i, i);
	ex_history_mark(h, 1, 2);
	assert_true(hit[1]->settled && !hit[2]->settled);
	assert_int_equal(hit[1]->new.value, 1);
	ex_history_doubt(h);
	hit[3] = store(h, 3, 3);
	ex_history_mark(h, 3, 3);
	assert_true(hit[2]->settled && hit[3]->settled);
	assert_int_equal(hit[2]->old.bits | hit[3]->old.bits, 0);
	hit[4] = store(h, 4, 4);
	ex_history_mark(h, 4, 4);
	/* its reading was in doubt, too */
	assert_true(hit[4]->settled);
	assert_int_equal(hit[4]->old.bits, 0);
	/* which is no proof of a writer without hits */
	for (size_t i = 1; i <= 4; i++)
		assert_false(hit[i]->refuted);
	for (size_t i = 1; i <= 4; i++)
		ex_history_release(hit[i]);
	ex_history_free(h);
}

/* An addition that left something else than what was there and its operand:
   nothing wrote in between with a hit, so something did without one. */
TEST(an_addition_refutes_what_was_there)
{
	static const struct {
		uint64_t found;		/* by the addition of 3 */
		bool split, other;	/* another's write may be in between */
		bool refuted;
	} cases[] = {
		{5, true, false, false}, {84, true, false, true},
		{84, false, false, true}, {84, true, true, false},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ex_history *h = ex_history_new();
		struct ex_history_hit *hit[4];

		assert_non_null(h);
		hit[1] = store(h, 1, 5);
		hit[2] = store(h, 2, cases[i].found + 3);
		hit[3] = store(h, 3, cases[i].found + 3);
		hit[2]->write.stored_bits = 0;
		hit[2]->write.effect = &hit[2]->effect;
		hit[2]->write.split = cases[i].split;
		hit[2]->effect = (struct ex_effect){
			.operation = EX_OP_ADD, .size = 8, .operand = 3,
			.atomic = !cases[i].split,
		};
		for (unsigned k = 1; k <= 3; k++)
			hit[k]->cpu = k == 3;
		hit[3]->tid += cases[i].other;
		hit[3]->write.stored = cases[i].found;
		hit[3]->write.stored_bits = cases[i].other ? UINT64_MAX : 0;
		ex_history_mark(h, 3, 3);
		assert_int_equal(hit[2]->refuted, cases[i].refuted);
		if (cases[i].refuted)
			assert_int_equal(hit[2]->old.bits | hit[2]->new.bits,
			    0);
		for (unsigned k = 1; k <= 3; k++)
			ex_history_release(hit[k]);
		ex_history_free(h);
	}
}

/* Marks and numbers that cannot be, as in a recording that was changed. */
TEST(impossible_ticket_numbers)
{
	static const uint64_t numbers[] = {
		1, 1, 3, 2, UINT64_MAX, UINT64_MAX / 2, 5, 4, 4, 1000000000000,
	};
	struct ex_history *h = ex_history_new();
	struct ex_history_hit *hit;
	uint64_t random = 1;

	assert_non_null(h);
	for (unsigned i = 0; i < 2000; i++) {
		const uint64_t a = numbers[random >> 33 & 7];
		const uint64_t b = numbers[random >> 40 & 7];

		random = random * 6364136223846793005u + 1;
		if ((hit = ex_history_add(h, numbers[(random >> 45) %
		    COUNT(numbers)])) != NULL)
			ex_history_release(hit);
		if ((random >> 60) == 0)
			ex_history_mark(h, a, b);
	}
	ex_history_free(h);
}

/* There is one for each watch that is hit, however seldom that is. */
TEST(a_history_is_small_as_long_as_few_hit)
{
	enum { MANY = 200 };
	struct ex_history *all[MANY];
	const size_t before = mallinfo2().uordblks;

	for (unsigned i = 0; i < MANY; i++) {
		assert_non_null(all[i] = ex_history_new());
		for (uint64_t k = 1; k <= 3; k++)
			ex_history_release(store(all[i], k, k));
		ex_history_mark(all[i], 3, 3);
	}
	assert_true(mallinfo2().uordblks - before < MANY * 16384);
	for (unsigned i = 0; i < MANY; i++)
		ex_history_free(all[i]);
}

/* The order of one thread's hits holds whatever other threads there are: room
   is made for all of these. */
TEST(a_thread_is_remembered_among_many)
{
	enum { MANY = 600 };
	struct ex_history *h = ex_history_new();
	struct ex_history_hit *hit[MANY];

	assert_non_null(h);
	for (unsigned i = 0; i < MANY; i++) {
		hit[i] = store(h, i + 1, i);
		hit[i]->tid = 100 + (pid_t)(i % (MANY / 2));
		hit[i]->cpu = UINT32_MAX;
	}
	ex_history_mark(h, MANY, MANY);
	for (unsigned i = 0; i < MANY; i++) {
		assert_int_equal(hit[i]->after, i < MANY / 2 ? 0 :
		    i + 1 - MANY / 2);
		ex_history_release(hit[i]);
	}
	ex_history_free(h);
}

/* As of an explainer that begins amid a run. */
TEST(marks_without_hits)
{
	struct ex_history *h = ex_history_new();

	assert_non_null(h);
	ex_history_mark(h, 0, 0);
	ex_history_mark(h, 1000, 1000);
	ex_history_doubt(h);
	ex_history_mark(h, 1000, 1010);
	ex_history_mark(h, 1010, 1010);
	ex_history_free(h);
}

RUN_TESTS()
