/*
 * value_tracker: which old values are known, and which new ones follow from
 * them, given the order of hits and what was read from memory.
 */
#include "test.h"

#include <string.h>

#include "hit/value_tracker.h"
#include "stop/value_sample.h"

#define MS UINT64_C(1000000)
enum { AREA = 0x1000, UNKNOWN = -1 };

static const struct ex_watch watch = {
	.id = 1, .addr = AREA, .len = 8, .access = 'w', .slots = 1,
};
static const struct ex_watch wide = {
	.id = 2, .addr = AREA, .len = 32, .access = 'a', .slots = 4,
};

/* --- memory, and the time --- */

static struct {
	uint64_t now;
	uint8_t byte[32];
	ssize_t readable;	/* bytes from AREA on; < 0: none */
	unsigned reads;
} memory;

static ssize_t
read_memory(pid_t pid, uint64_t addr, void *to, size_t len)
{
	assert_int_equal(pid, 10);
	assert_int_equal(addr, AREA);
	memory.reads++;
	if (memory.readable < (ssize_t)len)
		len = memory.readable < 0 ? 0 : (size_t)memory.readable;
	memcpy(to, memory.byte, len);
	return memory.readable < 0 ? -1 : (ssize_t)len;
}

static uint64_t
now(void)
{
	return memory.now;
}

static const struct ex_value_options recorded = {.read = NULL};
static const struct ex_value_options live = {.read = read_memory, .now = now};
static const struct ex_value_options at_once = {.read = read_memory, .now = now,
	.at_once = true};
static const struct ex_value_options in_order = {.read = read_memory, .now =
    now,
	.at_once = true, .in_order = true};
static const struct ex_value_options crowds = {.now = now, .at_once = true,
	.crowds = true};

/* --- hits --- */

/* What a hit does to the watch's first bytes. */
enum what { STORE, ADD, OR, EXCHANGE, LOAD, COMPARE, VECTOR, KERNEL, VAGUE };

struct made {
	uint64_t time;		/* us; 0 ends a list */
	pid_t tid;
	uint32_t cpu;
	enum what what;
	uint64_t operand;
	int old, new;		/* what must be found; UNKNOWN */
};

#define HITS_MAX 8

static struct ex_value_tracker *tracker;
static struct ex_hit hits[HITS_MAX];
static struct ex_tentative tentative[HITS_MAX];

static void
set_effect(struct ex_hit *hit, enum what what, uint64_t operand)
{
	struct ex_effect *effect = &hit->insn.effect;

	effect->size = 8;
	switch (what) {
	case STORE:
		effect->operation = EX_OP_STORE;
		memcpy(effect->stored, &operand, sizeof(operand));
		break;
	case ADD:
	case OR:
		effect->operation = what == ADD ? EX_OP_ADD : EX_OP_OR;
		effect->operand = operand;
		break;
	case EXCHANGE:
	case LOAD:
		effect->has_loaded = true;
		effect->atomic = what == EXCHANGE;
		memcpy(effect->loaded, &operand, sizeof(operand));
		if (what == LOAD)
			effect->operation = EX_OP_NONE;
		break;
	case COMPARE:
		effect->operation = EX_OP_NONE;
		break;
	default:
		break;
	}
}

static void
make(struct ex_hit *hit, const struct made *m, const struct ex_watch *of)
{
	*hit = (struct ex_hit){
		.watch = of, .time = m->time * 1000, .pid = 10, .tid = m->tid,
		.cpu = m->cpu, .access = "write", .addr = AREA, .len = 8,
		.kernel = m->what == KERNEL,
		.insn = {.confidence = m->what == VAGUE ?
		    EX_ADDRESS_UNVERIFIED : EX_EXACT, .addr = AREA, .size = 8,
		    .writes = m->what != LOAD && m->what != COMPARE,
		    .reads = m->what == LOAD || m->what == COMPARE},
	};
	if (m->what != KERNEL && m->what != VAGUE)
		set_effect(hit, m->what, m->operand);
}

static void
put(unsigned i, const struct made *m)
{
	make(&hits[i], m, &watch);
	ex_tracker_hit(tracker, &hits[i], NULL, NULL, &tentative[i]);
}

static int
number_of(const struct ex_value *value)
{
	return ex_value_known(value, 0, 8) ? (int)ex_value_number(value, 0, 8) :
	    UNKNOWN;
}

/* Give a hit out: these must be its values. */
static void
expect(const char *name, unsigned i, int old, int new)
{
	const struct ex_hit *hit = &hits[i];
	int got;

	ex_tracker_given(&tentative[i]);
	got = hit->source == EX_VALUE_UNKNOWN ? UNKNOWN : number_of(&hit->new);
	if (number_of(&hit->old) != old || got != new)
		fail_msg("%s, hit %u: %d -> %d", name, i, number_of(&hit->old),
		    got);
}

static void
begin(const struct ex_value_options *values)
{
	memset(&memory, 0, sizeof(memory));
	ex_tracker_free(tracker);
	tracker = ex_tracker_new(values);
	assert_non_null(tracker);
}

static int
tear_down(void **state)
{
	(void)state;
	ex_tracker_free(tracker);
	tracker = NULL;
	return 0;
}

/* --- a store, or a jump --- */

/* A jump found the address of where it went.  What a stop has read counts, as
   does what an ordered hit left. */
TEST(distinguishes_a_store_from_a_jump)
{
	static const struct made before = {1000, 1, 0, STORE, 5, UNKNOWN, 5};
	static const struct made then = {1010, 1, 0, STORE, 6, 5, 6};
	struct wp_stop_value stop = {
		.magic = WP_STOP_MAGIC, .version = WP_STOP_VERSION,
		.addr = AREA, .len = 8, .old = {5},
		.new = {6},
	};
	static const struct {
		bool before;	/* the old value is known by the hit before */
		bool stopped;	/* and this by a stop: */
		uint16_t flags;
		uint64_t pc;
		enum ex_confidence is;
		int old, new;
		enum ex_value_source source;
	} cases[] = {
		{true, false, 0, 7, EX_EXACT, 5, 6, EX_VALUE_REGISTER},
		{true, false, 0, 5, EX_AMBIGUOUS, 5, UNKNOWN, EX_VALUE_UNKNOWN},
		{false, false, 0, 7, EX_AMBIGUOUS, UNKNOWN, UNKNOWN,
		    EX_VALUE_UNKNOWN},
		{false, true, WP_STOP_EXACT, 7, EX_EXACT, 5, 6, EX_VALUE_STOP},
		/* it is not there any more */
		{false, true, WP_STOP_EXACT, 5, EX_EXACT, 5, 6, EX_VALUE_STOP},
		{false, true, WP_STOP_EXACT, 6, EX_EXACT, 5, 6, EX_VALUE_STOP},
		{false, true, WP_STOP_LEFT, 7, EX_EXACT, UNKNOWN, 6,
		    EX_VALUE_STOP},
		{false, true, WP_STOP_LEFT, 6, EX_AMBIGUOUS, UNKNOWN, 6,
		    EX_VALUE_STOP},
		/* another may have written since */
		{false, true, 0, 7, EX_AMBIGUOUS, UNKNOWN, 6,
		    EX_VALUE_LATER},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		begin(&recorded);
		if (cases[i].before)
			put(0, &before);
		make(&hits[1], &then, &watch);
		stop.flags = cases[i].flags;
		hits[1].pc = cases[i].pc;
		hits[1].insn.confidence = EX_AMBIGUOUS;
		hits[1].insn.jump = hits[1].insn.addr;
		hits[1].insn.addr = 0;
		ex_tracker_hit(tracker, &hits[1], cases[i].stopped ? &stop :
		    NULL, NULL, &tentative[1]);
		expect("jump", 1, cases[i].old, cases[i].new);
		assert_int_equal(hits[1].insn.confidence, cases[i].is);
		assert_int_equal(hits[1].source, cases[i].source);
		assert_int_equal(hits[1].insn.addr,
		    cases[i].is == EX_EXACT ? AREA : 0);
	}
}

/* --- order --- */

/* Hits by threads 1, 2, 3 on processors 0, 1, 2; all wait until the last. */
static const struct scenario {
	const char *name;
	struct made hit[HITS_MAX];
} scenarios[] = {
	{"one thread", {
	    {1000, 1, 0, STORE, 5, UNKNOWN, 5},
	    {1010, 1, 0, STORE, 6, 5, 6},
	    {1020, 1, 1, ADD, 4, 6, 10},
	    {1030, 1, 0, ADD, 1, 10, 11}}},
	{"threads on one processor", {
	    {1000, 1, 0, STORE, 5, UNKNOWN, 5},
	    {1010, 2, 0, STORE, 6, 5, 6},
	    {1020, 1, 0, ADD, 1, 6, 7}}},
	{"a processor that is not known is not the same", {
	    {1000, 1, UINT32_MAX, STORE, 5, UNKNOWN, 5},
	    {1010, 2, UINT32_MAX, STORE, 6, UNKNOWN, 6}}},
	{"others, long after", {
	    {1000, 1, 0, STORE, 5, UNKNOWN, 5},
	    {11000, 2, 1, STORE, 6, 5, 6},
	    {21000, 1, 0, ADD, 1, 6, 7},
	    {31000, 3, 2, ADD, 1, 7, 8}}},
	{"others, soon after", {
	    {1000, 1, 0, STORE, 5, UNKNOWN, 5},
	    {2999, 2, 1, STORE, 6, UNKNOWN, 6}}},
	{"others, just late enough", {
	    {1000, 1, 0, STORE, 5, UNKNOWN, 5},
	    {3000, 2, 1, STORE, 6, 5, 6}}},
	{"another that comes too soon takes values back", {
	    {1000, 1, 0, STORE, 5, UNKNOWN, 5},
	    {1010, 1, 0, STORE, 6, UNKNOWN, 6},
	    {1020, 1, 0, ADD, 1, UNKNOWN, UNKNOWN},
	    {1030, 2, 1, STORE, 7, UNKNOWN, 7}}},
	{"and what was left is not known", {
	    {1000, 1, 0, STORE, 5, UNKNOWN, 5},
	    {1010, 2, 1, STORE, 6, UNKNOWN, 6},
	    {200000, 2, 1, STORE, 7, UNKNOWN, 7},
	    {200010, 2, 1, STORE, 8, 7, 8}}},
	{"not before it is quiet again", {
	    {1000, 1, 0, STORE, 5, UNKNOWN, 5},
	    {1010, 2, 1, STORE, 6, UNKNOWN, 6},
	    {51000, 2, 1, STORE, 7, UNKNOWN, 7},
	    {101009, 2, 1, STORE, 8, UNKNOWN, 8},
	    {101010, 2, 1, STORE, 9, 8, 9}}},
	{"the clock went back", {
	    {1000, 1, 0, STORE, 5, UNKNOWN, 5},
	    {999, 1, 0, STORE, 6, UNKNOWN, 6}}},
	{"a vector store", {
	    {1000, 1, 0, STORE, 5, UNKNOWN, 5},
	    {1010, 1, 0, VECTOR, 0, 5, UNKNOWN},
	    {1020, 1, 0, ADD, 1, UNKNOWN, UNKNOWN},
	    {1030, 1, 0, STORE, 6, UNKNOWN, 6},
	    {1040, 1, 0, ADD, 1, 6, 7}}},
	{"which the next loads", {
	    {1000, 1, 0, STORE, 5, UNKNOWN, 5},
	    {1010, 1, 0, VECTOR, 0, 5, 9},
	    {1020, 2, 0, EXCHANGE, 9, 9, 8},
	    {1030, 2, 1, LOAD, 8, 8, UNKNOWN}}},
	{"or somebody else, who may not be the next", {
	    {1000, 1, 0, STORE, 5, UNKNOWN, 5},
	    {1010, 1, 0, VECTOR, 0, UNKNOWN, UNKNOWN},
	    {1020, 2, 0, EXCHANGE, 9, 9, UNKNOWN},
	    {1030, 3, 1, EXCHANGE, 8, 8, UNKNOWN},
	    {1040, 3, 1, EXCHANGE, 7, 7, UNKNOWN}}},
	{"the kernel", {
	    {1000, 1, 0, STORE, 5, UNKNOWN, 5},
	    {1010, 1, 0, KERNEL, 0, 5, UNKNOWN},
	    {1020, 1, 0, STORE, 6, UNKNOWN, 6}}},
	{"an instruction that is not exactly known", {
	    {1000, 1, 0, STORE, 5, UNKNOWN, 5},
	    {1010, 1, 0, VAGUE, 0, 5, UNKNOWN},
	    {1020, 1, 0, STORE, 6, UNKNOWN, 6}}},
	{"what was loaded is known whatever others do", {
	    {1000, 1, 0, STORE, 5, UNKNOWN, 5},
	    {1010, 2, 1, EXCHANGE, 3, 3, UNKNOWN},
	    {1020, 1, 0, EXCHANGE, 4, 4, UNKNOWN},
	    {1030, 1, 0, STORE, 6, UNKNOWN, 6}}},
	{"and where what was tracked is wrong, somebody writes unseen", {
	    {1000, 1, 0, STORE, 5, UNKNOWN, 5},
	    {1010, 1, 0, STORE, 6, UNKNOWN, 6},
	    {1020, 1, 0, EXCHANGE, 3, 3, UNKNOWN},
	    {1030, 1, 0, STORE, 6, UNKNOWN, 6},
	    {1040, 1, 0, STORE, 7, UNKNOWN, 7}}},
	{"a read leaves what there is", {
	    {1000, 1, 0, STORE, 5, UNKNOWN, 5},
	    {1010, 1, 0, LOAD, 5, 5, UNKNOWN},
	    {1020, 1, 0, ADD, 1, 5, 6}}},
};

TEST(tracks_by_order)
{
	for (size_t i = 0; i < COUNT(scenarios); i++) {
		const struct scenario *s = &scenarios[i];
		unsigned n = 0;

		begin(&recorded);
		for (; n < HITS_MAX && s->hit[n].time != 0; n++)
			put(n, &s->hit[n]);
		for (unsigned h = 0; h < n; h++)
			expect(s->name, h, s->hit[h].old, s->hit[h].new);
	}
}

/* What a hit itself shows is told from what the one before left. */
TEST(an_old_value_that_is_inferred)
{
	static const struct {
		enum what what;
		bool inferred;
	} cases[] = {
		{STORE, true}, {ADD, true}, {VECTOR, true}, {KERNEL, true},
		{LOAD, false}, {EXCHANGE, false},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		begin(&recorded);
		put(0, &(struct made){1000, 1, 0, STORE, 5, 0, 0});
		put(1, &(struct made){1010, 1, 0, cases[i].what, 5, 0, 0});
		ex_tracker_given(&tentative[0]);
		ex_tracker_given(&tentative[1]);
		assert_false(hits[0].old_inferred);	/* there is none */
		assert_int_equal(hits[1].old.byte[0], 5);
		assert_int_equal(hits[1].old_inferred, cases[i].inferred);
	}
}

/* Flags that contradict say that what was tracked is wrong. */
TEST(believes_flags)
{
	static const struct made store = {1000, 1, 0, STORE, 5, 0, 0};
	static const struct made add = {1010, 1, 0, ADD, 1, 0, 0};

	begin(&recorded);
	put(0, &store);
	make(&hits[1], &add, &watch);
	hits[1].insn.effect.has_flags = true;
	hits[1].insn.effect.flags = 1 << 6;	/* zero */
	ex_tracker_hit(tracker, &hits[1], NULL, NULL, &tentative[1]);
	expect("store", 0, UNKNOWN, 5);
	expect("add", 1, UNKNOWN, UNKNOWN);
}

TEST(waits_until_it_is_settled)
{
	static const struct made store = {1000, 1, 0, STORE, 5, 0, 0};

	begin(&recorded);
	put(0, &store);
	assert_false(ex_tracker_settled(tracker, &tentative[0], 0));
	assert_false(ex_tracker_settled(tracker, &tentative[0], 1 * MS));
	assert_false(ex_tracker_settled(tracker, &tentative[0], 3 * MS - 1));
	assert_true(ex_tracker_settled(tracker, &tentative[0], 3 * MS));
	assert_true(ex_tracker_settled(tracker, &tentative[0], UINT64_MAX));
	begin(&at_once);
	put(0, &store);
	assert_true(ex_tracker_settled(tracker, &tentative[0], 0));
	/* without values there is nothing to wait for, nor to take */
	begin(NULL);
	put(0, &store);
	put(1, &store);
	assert_true(ex_tracker_settled(tracker, &tentative[0], 0));
	expect("none", 0, UNKNOWN, 5);
	expect("none", 1, UNKNOWN, 5);
}

/* Times show nothing then: only what is said to be in order is. */
TEST(tracks_at_once)
{
	static const struct {
		struct made hit;
		int in_order;		/* its old value */
		bool missed, unread;	/* before it */
	} cases[] = {
		{{1000, 1, 0, STORE, 5, UNKNOWN, 5}, UNKNOWN, false, false},
		{{1010, 2, 1, STORE, 6, UNKNOWN, 6}, 5, false, false},
		{{1005, 1, 0, STORE, 7, UNKNOWN, 7}, 6, false, false},
		{{900000, 1, 0, STORE, 8, UNKNOWN, 8}, UNKNOWN, true, false},
		{{900010, 2, 0, STORE, 9, UNKNOWN, 9}, 8, false, true},
		{{900020, 2, 0, VECTOR, 0, UNKNOWN, 1}, 9, false, false},
		{{900030, 2, 0, STORE, 3, UNKNOWN, 3}, 1, false, false},
		{{900040, 2, 0, VECTOR, 0, UNKNOWN, 1}, 3, false, false},
		{{900050, 2, 0, STORE, 3, UNKNOWN, 3}, UNKNOWN, false, true},
	};
	const struct ex_value_options *const values[] = {&at_once, &in_order};

	for (size_t v = 0; v < 2; v++) {
		begin(values[v]);
		memory.readable = 8;
		memory.byte[0] = 1;
		for (size_t i = 0; i < COUNT(cases); i++) {
			memory.now = cases[i].hit.time * 1000 + 1000;
			if (cases[i].missed)
				ex_tracker_doubt(tracker, &watch, EX_MISSED);
			if (cases[i].unread)
				ex_tracker_doubt(tracker, &watch, EX_UNREAD);
			put(0, &cases[i].hit);
			ex_tracker_look(tracker);
			expect("at once", 0, v == 0 ? UNKNOWN :
			    cases[i].in_order, cases[i].hit.new);
			if (cases[i].hit.what == VECTOR)
				assert_int_equal(hits[0].source,
				    EX_VALUE_LATER);
		}
		tear_down(NULL);
	}
	tracker = NULL;
}

TEST(keeps_to_one_process)
{
	static const struct made a = {1000, 1, 0, STORE, 5, 0, 0};
	static const struct made b = {1010, 1, 0, STORE, 6, 0, 0};

	begin(&recorded);
	put(0, &a);
	make(&hits[1], &b, &watch);
	hits[1].pid = 11;
	ex_tracker_hit(tracker, &hits[1], NULL, NULL, &tentative[1]);
	expect("the first", 0, UNKNOWN, 5);
	expect("another process", 1, UNKNOWN, 6);
}

static void
put_ticket(unsigned i, const struct made *m, uint64_t number, uint64_t read)
{
	const struct wp_ticket ticket = {
		WP_TICKET_MAGIC, number, read, WP_TICKET_VERSION, 8, -1,
	};

	make(&hits[i], m, &watch);
	ex_tracker_hit(tracker, &hits[i], NULL, &ticket, &tentative[i]);
}

/* Thread 2 has added when its processor is taken away, long before its hit;
   thread 1 stores meanwhile.  What was there before either is not known: at the
   end neither, where no mark comes for them any more. */
static void
expect_no_order(bool marked)
{
	static const struct made quiet = {1000000, 1, 0, STORE, 5, UNKNOWN, 5};
	static const struct made store = {1200000, 1, 0, STORE, 6, UNKNOWN, 6};
	static const struct made held_up = {
		1205000, 2, 1, ADD, 1, UNKNOWN, UNKNOWN,
	};
	const uint64_t now = marked ? (uint64_t)2000 * MS : UINT64_MAX;

	begin(&live);
	memory.now = 2000 * MS;
	memory.readable = -1;
	put_ticket(0, &quiet, 1, 5);
	ex_tracker_mark(tracker, &watch, 1, 1);
	put_ticket(1, &store, 2, 6);
	put_ticket(2, &held_up, 3, 6);
	if (marked)
		ex_tracker_mark(tracker, &watch, 3, 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_true(ex_tracker_settled(tracker, &tentative[i], now));
		ex_tracker_given(&tentative[i]);
	}
	assert_int_equal(number_of(&hits[0].new), 5);
	assert_int_equal(number_of(&hits[1].old), UNKNOWN);
	assert_int_equal(number_of(&hits[1].new), 6);
	assert_int_equal(number_of(&hits[2].old), UNKNOWN);
	assert_int_equal(number_of(&hits[2].new), UNKNOWN);
}

TEST(the_order_of_hits_is_not_that_of_stores)
{
	expect_no_order(true);
	expect_no_order(false);
}

/* --- who writes unseen --- */

TEST(knows_no_unseen_writers)
{
	static const struct made hit[] = {
		{1000, 1, 0, STORE, 5, UNKNOWN, 5},
		{1010, 1, 0, VECTOR, 0, UNKNOWN, UNKNOWN},
		{1020, 1, 0, EXCHANGE, 6, 6, UNKNOWN},
		{1030, 1, 0, ADD, 1, UNKNOWN, UNKNOWN},
	};
	const uint8_t bytes[8] = {4};

	begin(&recorded);
	ex_tracker_doubt(tracker, &watch, EX_UNSEEN);
	ex_tracker_known(tracker, &watch, 10, bytes, 8, 0);
	for (unsigned i = 0; i < 4; i++)
		put(i, &hit[i]);
	for (unsigned i = 0; i < 4; i++)
		expect("unseen", i, hit[i].old, hit[i].new);
}

static bool shared;

static bool
shares(pid_t tid, pid_t child)
{
	assert_int_equal(tid, 12);
	assert_int_equal(child, 20);
	return shared;
}

/* From a child's birth until it certainly has not its parent's memory. */
TEST(knows_of_children)
{
	static const struct ex_value_options alone = {.read = read_memory,
	    .now = now,
	    .shares = shares};
	static const struct ex_value_options followed = {.read = read_memory,
	    .now = now, .shares = shares, .follows = true};
	static const struct ex_value_options *const values[] = {&alone,
	    &followed,
	    &recorded};
	static const struct made hit[] = {
		{1000, 1, 0, STORE, 5, UNKNOWN, 5},
		{1010, 1, 0, STORE, 6, 5, 6},
		{1020, 1, 0, STORE, 7, UNKNOWN, 7},	/* born before this */
		{1030, 1, 0, STORE, 8, UNKNOWN, 8},
		{1040, 1, 0, STORE, 9, UNKNOWN, 9},	/* not looked before */
		{1060, 1, 0, STORE, 10, UNKNOWN, 10},
		{1070, 1, 0, STORE, 11, 10, 11},
	};
	const struct ex_record thread = {.type = PERF_RECORD_FORK,
	    .task = {.pid = 10, .ppid = 10, .tid = 13, .ptid = 12}};
	const struct ex_record child = {.type = PERF_RECORD_FORK,
	    .task = {.pid = 20, .ppid = 10, .tid = 20, .ptid = 12}};

	for (size_t v = 0; v < 3; v++) {
		begin(values[v]);
		shared = true;
		memory.readable = -1;
		for (unsigned i = 0; i < 7; i++) {
			memory.now = 1050 * 1000;
			if (i == 1)
				ex_tracker_born(tracker, &thread);
			if (i == 2)
				ex_tracker_born(tracker, &child);
			shared = shared && i < 4;
			put(i, &hit[i]);
		}
		for (unsigned i = 0; i < 7; i++)
			expect("children", i, v == 1 && i > 0 ?
			    (int)i + 4 : v == 2 && i > 1 ? UNKNOWN :
			    hit[i].old, hit[i].new);
		tear_down(NULL);
	}
}

TEST(forgets)
{
	static const struct made a = {1000, 1, 0, STORE, 5, 0, 0};
	static const struct made b = {1010, 1, 0, STORE, 6, 0, 0};
	static const struct made c = {1020, 1, 0, STORE, 7, 0, 0};

	begin(&recorded);
	put(0, &a);
	put(1, &b);
	ex_tracker_lost(tracker, 1015000);
	put(2, &c);
	expect("before", 0, UNKNOWN, 5);
	expect("taken back", 1, UNKNOWN, 6);
	expect("after a loss", 2, UNKNOWN, 7);
	begin(&recorded);
	put(0, &a);
	ex_tracker_doubt(tracker, &watch, EX_MISSED);
	put(1, &b);
	put(2, &c);
	expect("before", 0, UNKNOWN, 5);
	expect("forgotten", 1, UNKNOWN, 6);
	expect("anew", 2, 6, 7);
}

/* --- bytes --- */

/* A store somewhere about a watch of 32 bytes, all of which are 0xff before:
   what is known after it. */
TEST(knows_the_bytes_that_overlap)
{
	static const struct {
		int64_t from;		/* of the store, from the watch on */
		uint8_t size;
		bool repeated;
		uint32_t known;		/* of the next hit's old value */
		unsigned first, n;	/* bytes that were stored */
	} cases[] = {
		{0, 8, false, UINT32_MAX, 0, 8},
		{28, 4, false, UINT32_MAX, 28, 4},
		{-4, 8, false, UINT32_MAX, 0, 4},
		{28, 8, false, UINT32_MAX, 28, 4},
		{-15, 16, false, UINT32_MAX, 0, 1},
		{5, 1, false, UINT32_MAX, 5, 1},
		{8, 4, true, 0xf00, 8, 4},
	};
	static const struct made load = {1010, 1, 0, VECTOR, 0, 0, 0};
	uint8_t ones[32];

	memset(ones, 0xff, sizeof(ones));
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ex_hit *hit = &hits[0];

		begin(&recorded);
		ex_tracker_known(tracker, &wide, 10, ones, 32, 0);
		make(hit, &(struct made){1000, 1, 0, STORE, 0, 0, 0}, &wide);
		hit->insn.addr = AREA + (uint64_t)cases[i].from;
		hit->insn.size = hit->insn.effect.size = cases[i].size;
		hit->insn.effect.repeated = cases[i].repeated;
		for (unsigned b = 0; b < cases[i].size; b++)
			hit->insn.effect.stored[b] = (uint8_t)(b + 1);
		hit->addr = AREA + cases[i].first;
		hit->len = cases[i].n;
		ex_tracker_hit(tracker, hit, NULL, NULL, &tentative[0]);
		make(&hits[1], &load, &wide);
		ex_tracker_hit(tracker, &hits[1], NULL, NULL, &tentative[1]);
		ex_tracker_given(&tentative[0]);
		assert_int_equal(hit->source, EX_VALUE_REGISTER);
		assert_int_equal(hits[1].old.known, cases[i].known);
		for (unsigned b = 0; b < 32; b++) {
			const int64_t at = (int64_t)b - cases[i].from;
			const bool stored = b >= cases[i].first &&
			    b < cases[i].first + cases[i].n;

			if ((cases[i].known >> b & 1) != 0 &&
			    hits[1].old.byte[b] != (stored ? at + 1 : 0xff))
				fail_msg("case %zu, byte %u: %#x", i, b,
				    hits[1].old.byte[b]);
		}
		ex_tracker_given(&tentative[1]);
	}
}

TEST(reports_what_is_unchanged)
{
	static const struct made store = {1000, 1, 0, STORE, 5, 0, 0};
	static const struct made again = {1010, 1, 0, STORE, 5, 0, 0};
	static const struct made other = {1020, 1, 0, STORE, 0x105, 0, 0};
	static const struct made load = {1030, 1, 0, LOAD, 0x105, 0, 0};

	begin(&recorded);
	put(0, &store);
	put(1, &again);
	put(2, &other);
	hits[2].len = 1;	/* as if it had touched but the first byte */
	put(3, &load);
	for (unsigned i = 0; i < 4; i++)
		ex_tracker_given(&tentative[i]);
	assert_false(hits[0].unchanged);
	assert_true(hits[1].unchanged);
	assert_true(hits[2].unchanged);
	assert_false(hits[3].unchanged);
}

/* --- what was there before, and memory --- */

TEST(begins_with_initial_values)
{
	static const struct {
		uint64_t read, hit;	/* us */
		int old;
	} cases[] = {
		{0, 1, 3}, {1000, 1001, UNKNOWN}, {1000, 999, UNKNOWN},
		{1000, 2999, UNKNOWN}, {1000, 3000, 3},
	};
	const uint64_t three = 3;

	for (size_t i = 0; i < COUNT(cases); i++) {
		begin(&recorded);
		ex_tracker_known(tracker, &watch, 10,
		    (const uint8_t *)&three, 8, cases[i].read * 1000);
		put(0, &(struct made){cases[i].hit, 1, 0, STORE, 4, 0, 0});
		expect("first", 0, cases[i].old, 4);
	}
}

/* A vector store, what is read after it, and the next hit. */
TEST(reads_what_nothing_else_shows)
{
	static const struct {
		uint64_t read, next;	/* us; the store is at 1000 */
		ssize_t readable;
		int new, old;		/* of the store; of the next */
	} cases[] = {
		{1500, 5000, 8, 9, 9},
		{1500, 3500, 8, 9, 9},
		{1500, 3499, 8, UNKNOWN, UNKNOWN},
		{1500, 1400, 8, UNKNOWN, UNKNOWN},
		{999, 5000, 8, UNKNOWN, UNKNOWN},
		{1500, 5000, 4, UNKNOWN, UNKNOWN},
		{1500, 5000, -1, UNKNOWN, UNKNOWN},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		begin(&live);
		memory.byte[0] = 9;
		memory.readable = cases[i].readable;
		memory.now = cases[i].read * 1000;
		put(0, &(struct made){1000, 1, 0, VECTOR, 0, 0, 0});
		assert_false(ex_tracker_settled(tracker, &tentative[0],
		    100 * MS));
		ex_tracker_look(tracker);
		ex_tracker_look(tracker);
		assert_int_equal(memory.reads, 1);
		put(1, &(struct made){cases[i].next, 1, 0, STORE, 4, 0, 0});
		if (cases[i].next > 1400)
			expect("vector", 0, UNKNOWN, cases[i].new);
		else
			ex_tracker_given(&tentative[0]);
		assert_int_equal(hits[0].source, cases[i].new == UNKNOWN ?
		    EX_VALUE_UNKNOWN : EX_VALUE_LATER);
		assert_false(hits[0].unchanged);
		expect("next", 1, cases[i].old, 4);
	}
}

/* Once for the last hit, however many there were, and only if it is of use. */
TEST(reads_little)
{
	begin(&live);
	memory.readable = 8;
	memory.now = 2 * MS;
	for (unsigned i = 0; i < HITS_MAX; i++)
		put(i, &(struct made){1000 + i, 1, 0, VECTOR, 0, 0, 0});
	ex_tracker_look(tracker);
	assert_int_equal(memory.reads, 1);
	begin(&live);
	put(0, &(struct made){1000, 1, 0, STORE, 4, 0, 0});
	ex_tracker_look(tracker);
	assert_int_equal(memory.reads, 0);
	assert_true(ex_tracker_settled(tracker, &tentative[0], 3 * MS));
}

/* --- stops --- */

TEST(believes_a_stop)
{
	static const struct {
		uint16_t flags;
		uint64_t addr;
		enum what what;
		int old, new;
		enum ex_value_source source;
	} cases[] = {
		{WP_STOP_EXACT, AREA, VECTOR, 3, 4, EX_VALUE_STOP},
		{WP_STOP_EXACT, AREA, KERNEL, 3, 4, EX_VALUE_STOP},
		{WP_STOP_EXACT, AREA, STORE, 3, 4, EX_VALUE_STOP},
		/* it loaded 5 */
		{WP_STOP_EXACT, AREA, LOAD, 5, UNKNOWN, EX_VALUE_UNKNOWN},
		{WP_STOP_EXACT, AREA, EXCHANGE, 5, 4, EX_VALUE_STOP},
		/* it cannot have found 3 */
		{WP_STOP_EXACT, AREA, ADD, -1, 4, EX_VALUE_STOP},
		{WP_STOP_EXACT, AREA, OR, UNKNOWN, 4, EX_VALUE_STOP},
		{WP_STOP_LEFT, AREA, VECTOR, UNKNOWN, 4, EX_VALUE_STOP},
		{WP_STOP_LEFT, AREA, ADD, -1, 4, EX_VALUE_STOP},
		{WP_STOP_LEFT, AREA, COMPARE, 4, UNKNOWN, EX_VALUE_UNKNOWN},
		{0, AREA, VECTOR, UNKNOWN, 4, EX_VALUE_LATER},
		{0, AREA, COMPARE, UNKNOWN, UNKNOWN, EX_VALUE_UNKNOWN},
		{0, AREA, STORE, UNKNOWN, 5, EX_VALUE_REGISTER},
		{WP_STOP_EXACT, AREA + 8, VECTOR, UNKNOWN, UNKNOWN,
		    EX_VALUE_UNKNOWN},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct wp_stop_value stop = {
			.magic = WP_STOP_MAGIC, .version = WP_STOP_VERSION,
			.flags = cases[i].flags, .addr = cases[i].addr,
			.len = 8, .old = {3}, .new = {4},
		};

		begin(&at_once);
		make(&hits[0], &(struct made){1000, 1, 0, cases[i].what, 5, 0,
		    0}, &watch);
		ex_tracker_hit(tracker, &hits[0], &stop, NULL, &tentative[0]);
		expect("stop", 0, cases[i].old, cases[i].new);
		assert_int_equal(hits[0].source, cases[i].source);
	}
}

/* Two samples of one access, the second with a value; between them memory may
   be read.  Before it there was another hit of this thread, and perhaps others
   that nobody has reported yet. */
TEST(joins_a_stop)
{
	static const struct {
		uint16_t flags;
		enum what what;
		bool look;
		int old, new;
		enum ex_value_source source;
	} cases[] = {
		{WP_STOP_EXACT, VECTOR, false, 3, 4, EX_VALUE_STOP},
		{WP_STOP_EXACT, VECTOR, true, 3, 4, EX_VALUE_STOP},
		{WP_STOP_EXACT, STORE, true, 3, 4, EX_VALUE_STOP},
		{0, VECTOR, false, UNKNOWN, 4, EX_VALUE_LATER},
		{0, STORE, false, UNKNOWN, 5, EX_VALUE_REGISTER},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct wp_stop_value stop = {
			.magic = WP_STOP_MAGIC, .version = WP_STOP_VERSION,
			.flags = cases[i].flags, .addr = AREA,
			.len = 8, .old = {3}, .new = {4},
		};
		const struct ex_record record = {
			.time = 1100 * 1000,
		};

		begin(&at_once);
		memory.byte[0] = 9;
		memory.readable = 8;
		memory.now = 1500 * 1000;
		put(0, &(struct made){1000, 1, 0, STORE, 6, 0, 0});
		put(1, &(struct made){1100, 1, 0, cases[i].what, 5, 0, 0});
		if (cases[i].look)
			ex_tracker_look(tracker);
		ex_tracker_joined(tracker, &tentative[1], &record, &stop);
		put(2, &(struct made){1200, 2, 1, STORE, 7, 0, 0});
		expect("stop", 1, cases[i].old, cases[i].new);
		assert_int_equal(hits[1].source, cases[i].source);
		expect("other", 2, UNKNOWN, 7);
	}
}

/* --- threads that stopped make a crowd --- */

static const struct crowded {
	const char *name;
	enum what other;	/* what the second did */
	uint64_t crowd;		/* its */
	uint32_t all;
	bool may_wait;
	bool waits;		/* for more */
	int new[2];
} crowded[] = {
	{"all", EXCHANGE, 7, 2, true, false, {5, 9}},
	{"one is missing", EXCHANGE, 7, 3, true, true, {UNKNOWN, UNKNOWN}},
	{"one is another's", EXCHANGE, 8, 2, true, true, {UNKNOWN, UNKNOWN}},
	{"others wrote, too", EXCHANGE, 7, 0, true, false, {UNKNOWN, UNKNOWN}},
	{"one may be interrupted", LOAD, 7, 2, true, false,
	    {UNKNOWN, UNKNOWN}},
	{"one is not known", VAGUE, 7, 2, true, false, {UNKNOWN, UNKNOWN}},
	{"none may wait", EXCHANGE, 7, 2, false, false, {UNKNOWN, UNKNOWN}},
};

static struct wp_stop_value
stop_in(uint64_t crowd)
{
	return (struct wp_stop_value){
		.magic = WP_STOP_MAGIC, .version = WP_STOP_VERSION,
		.addr = AREA, .crowd = crowd, .samples = 1,
	};
}

/* The crowd ends when the second one stops, which made its access first. */
TEST(waits_for_many_threads)
{
	for (size_t i = 0; i < COUNT(crowded); i++) {
		const struct crowded *c = &crowded[i];
		const struct made second = {1010, 2, 1, c->other, 1, 0, 0};
		struct wp_stop_value stop = stop_in(7);

		begin(c->may_wait ? &crowds : &at_once);
		make(&hits[0], &(struct made){1000, 1, 0, EXCHANGE, 1, 0, 0},
		    &watch);
		ex_tracker_hit(tracker, &hits[0], &stop, NULL, &tentative[0]);
		assert_int_equal(ex_tracker_settled(tracker, &tentative[0],
		    2000 * 1000), !c->may_wait);
		stop = stop_in(c->crowd);
		stop.ended = 7;
		stop.all = c->all;
		stop.flags = WP_STOP_BEGAN;
		stop.old[0] = 1;
		stop.new[0] = 9;
		make(&hits[1], &second, &watch);
		if (c->other != VAGUE)
			hits[1].insn.effect.loaded[0] = 5;
		ex_tracker_hit(tracker, &hits[1], &stop, NULL, &tentative[1]);
		for (unsigned h = 0; h < 2; h++) {
			assert_int_equal(ex_tracker_settled(tracker,
			    &tentative[h], 2000 * 1000), !c->waits);
			assert_true(ex_tracker_settled(tracker, &tentative[h],
			    200 * MS));
			assert_true(ex_tracker_settled(tracker, &tentative[h],
			    UINT64_MAX));
		}
		expect(c->name, 0, 1, c->new[0]);
		ex_tracker_given(&tentative[1]);
		assert_int_equal(hits[1].source == EX_VALUE_UNKNOWN ? UNKNOWN :
		    number_of(&hits[1].new), c->new[1]);
		assert_int_equal(hits[0].source, c->new[0] == UNKNOWN ?
		    EX_VALUE_UNKNOWN : EX_VALUE_PROVED);
	}
}

RUN_TESTS(.after_each = tear_down)
