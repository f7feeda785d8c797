/*
 * explain: samples of this program's own code and data, made by hand: which of
 * them are one hit, in which order hits come, and what happens to each sample.
 */
#include "test.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "kernel_symbol.h"
#include "capture.h"
#include "hit/hit.h"
#include "space/space.h"

#define MS UINT64_C(1000000)

/* What is sampled: nothing here is ever executed. */
__asm__("	.text\n"
"	.type	code, @function\n"
"code:\n"
"	mov	%rax, (%rdi)\n"
"after_store:\n"
"	mov	(%rdi), %rcx\n"
"after_load:\n"
"	add	%rax, (%rdi)\n"
"after_add:\n"
"	mov	(%rdi), %rdi\n"
"after_chase:\n"
"	movups	%xmm0, (%rdi)\n"
"after_wide:\n"
"	nop\n"
"at_fill:\n"
"	rep stosb\n"
"at_call:\n"
"	call	callee\n"
"after_call:\n"
"	ret\n"
"	.size	code, . - code\n"
"	.type	callee, @function\n"
"callee:\n"
"	nop\n"
"	ret\n"
"	.size	callee, . - callee\n"
"	int3\n"
"	.hidden	code, after_store, after_load, after_add, after_chase\n"
"	.hidden	after_wide, at_fill, at_call, after_call\n"
"	.hidden	callee\n"
"	.globl	code, after_store, after_load, after_add, after_chase\n"
"	.globl	after_wide, at_fill, at_call, after_call\n"
"	.globl	callee\n");

extern const char code[], after_store[], after_load[], after_add[],
    after_chase[], after_wide[], at_fill[], at_call[],
    after_call[], callee[];

/* An address that nothing is mapped at: its instruction is never known. */
static const char *const nowhere = (const char *)4096;

/* --- what is watched --- */

static uint64_t area[16];

/* The events, by their index in the formats; PAIR, READ and ANY have two. */
enum { NONE, ONE, PAIR, PAIR_2, READ, READ_2, ANY, ANY_2, EXEC, EVENTS };

static struct ex_watch watches[] = {
	{.id = 1, .len = 8, .access = 'w', .slots = 1},
	{.id = 2, .len = 16, .access = 'w', .slots = 2},
	{.id = 3, .len = 16, .access = 'r', .slots = 2},
	{.id = 4, .len = 16, .access = 'a', .slots = 2},
	{.id = 5, .len = 1, .access = 'x', .slots = 1},
};
static struct ex_slot slots[EVENTS];

static void
set_slot(int event, int watch, uint64_t addr, uint64_t len)
{
	slots[event] = (struct ex_slot){watch < 0 ? NULL : &watches[watch],
	    addr, len};
	if (watch >= 0 && watches[watch].addr == 0)
		watches[watch].addr = addr;
}

static void
set_slots(void)
{
	set_slot(NONE, -1, 0, 0);
	set_slot(ONE, 0, (uintptr_t)&area[0], 8);
	set_slot(PAIR, 1, (uintptr_t)&area[2], 8);
	set_slot(PAIR_2, 1, (uintptr_t)&area[3], 8);
	set_slot(READ, 2, (uintptr_t)&area[6], 8);
	set_slot(READ_2, 2, (uintptr_t)&area[7], 8);
	set_slot(ANY, 3, (uintptr_t)&area[10], 8);
	set_slot(ANY_2, 3, (uintptr_t)&area[11], 8);
	set_slot(EXEC, 4, (uintptr_t)code, 1);
}

/* --- samples --- */

struct sample {
	int event;		/* NONE ends a list */
	uint64_t time;		/* ns */
	pid_t tid;
	const char *pc;		/* as sampled, in user mode */
	int64_t at;		/* where rdi points, from the watch on */
	bool kernel;
	uint64_t reached;	/* kernel: its rdi, from the watch on; 0: not
				   sampled */
	uint32_t cpu;
	bool bare;		/* no registers were sampled */
};

/* The last sample that was made, and what a test adds to the next. */
static struct {
	struct ex_record record;
	uint64_t user[PERF_REG_X86_64_MAX];
	uint64_t di;		/* of the kernel's registers */
	uint64_t back;		/* the stack: a return address; 0: none */
	uint64_t cx;
	uint64_t chain[8];	/* the kernel's, innermost first; 0: its end */
} made;

static void
make_chain(struct ex_sample *sample)
{
	static uint64_t chain[COUNT(made.chain) + 1] =
	    {PERF_CONTEXT_KERNEL};
	size_t n = 0;

	while (made.chain[n] != 0) {
		chain[n + 1] = made.chain[n];
		n++;
	}
	if (n == 0)
		return;
	sample->callchain = (const uint8_t *)chain;
	sample->callchain_len = n + 1;
}

static const struct ex_record *
make(const struct sample *s)
{
	const struct ex_slot *slot = &slots[s->event];
	const uint64_t region = slot->watch == NULL ? 0 :
	    slot->watch->addr;
	struct ex_sample *sample = &made.record.sample;

	made.record = (struct ex_record){
		.type = PERF_RECORD_SAMPLE, .attr = s->event,
		.pid = getpid(), .tid = s->tid, .time = s->time, .cpu = s->cpu,
		.misc = s->kernel ? PERF_RECORD_MISC_KERNEL :
		    PERF_RECORD_MISC_USER,
	};
	memset(made.user, 0, sizeof(made.user));
	made.user[PERF_REG_X86_IP] = (uintptr_t)s->pc;
	made.user[PERF_REG_X86_DI] = region + (uint64_t)s->at;
	made.user[PERF_REG_X86_CX] = made.cx;
	made.user[PERF_REG_X86_SP] = made.back != 0 ? region : 8192;
	sample->ip = s->kernel ? UINT64_C(0xffffffff81000000) :
	    (uintptr_t)s->pc;
	sample->user = (struct ex_perf_regs){PERF_SAMPLE_REGS_ABI_64,
	    (UINT64_C(1) << PERF_REG_X86_64_MAX) - 1,
	    (const uint8_t *)made.user};
	if (s->bare)
		sample->user = (struct ex_perf_regs){0};
	made.di = region + s->reached;
	if (s->reached != 0)
		sample->intr = (struct ex_perf_regs){PERF_SAMPLE_REGS_ABI_64,
		    UINT64_C(1) << PERF_REG_X86_DI,
		    (const uint8_t *)&made.di};
	if (made.back != 0) {
		sample->stack = (const uint8_t *)&made.back;
		sample->stack_len = sizeof(made.back);
	}
	make_chain(sample);
	return &made.record;
}

/* --- hits --- */

#define GIVEN_MAX 4096

static struct ex_space *space;
static struct ex_explainer *explainer;
static struct {
	struct ex_hit hit[GIVEN_MAX];	/* the first ones */
	size_t n;
	size_t refuse;		/* give's result is 7 for hit number so many */
} given;

static int
give(void *arg, struct ex_hit *hit)
{
	assert_ptr_equal(arg, &given);
	if (given.n < GIVEN_MAX)
		given.hit[given.n] = *hit;
	given.n++;
	assert_int_equal(hit->seq, given.n);
	return given.n == given.refuse ? 7 : 0;
}

static int
feed(const struct sample *s)
{
	return ex_explain(explainer, make(s));
}

static int
flush_all(void)
{
	return ex_explain_flush(explainer, UINT64_MAX);
}

static void
expect_tally(uint64_t samples, uint64_t hits, uint64_t joined,
    uint64_t dropped)
{
	const struct ex_tally *tally = ex_explain_tally(explainer);

	assert_int_equal(tally->samples, samples);
	assert_int_equal(tally->hits, hits);
	assert_int_equal(tally->joined, joined);
	assert_int_equal(tally->dropped, dropped);
	assert_int_equal(given.n, hits);
}

static int
begin(void **state)
{
	(void)state;
	memset(&given, 0, sizeof(given));
	memset(&made, 0, sizeof(made));
	explainer = ex_explainer_new(space, slots, EVENTS, give, &given);
	return explainer == NULL ? -1 : 0;
}

static int
end(void **state)
{
	(void)state;
	ex_explainer_free(explainer);
	explainer = NULL;
	return 0;
}

/* --- tests --- */

TEST(one_sample_is_a_hit_at_once)
{
	const struct ex_record name = {
		.type = PERF_RECORD_COMM, .pid = getpid(), .tid = 42,
		.comm = {getpid(), 42, "worker"},
	};
	const struct ex_hit *hit = &given.hit[2];

	assert_int_equal(ex_explain(explainer, &name), 0);
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(feed(&(struct sample){ONE, 100 + i, 42,
		    after_store, .cpu = 1}), 0);
		assert_int_equal(given.n, i + 1);
	}
	assert_int_equal(hit->seq, 3);
	assert_ptr_equal(hit->watch, &watches[0]);
	assert_int_equal(hit->time, 102);
	assert_int_equal(hit->pid, getpid());
	assert_int_equal(hit->tid, 42);
	assert_string_equal(hit->comm, "worker");
	assert_int_equal(hit->cpu, 1);
	assert_string_equal(hit->access, "write");
	assert_false(hit->kernel);
	assert_null(hit->call.name);
	assert_int_equal(hit->addr, (uintptr_t)&area[0]);
	assert_int_equal(hit->len, 8);
	assert_int_equal(hit->pc, (uintptr_t)after_store);
	assert_int_equal(hit->insn.confidence, EX_EXACT);
	assert_string_equal(hit->insn.text, "mov %rax, (%rdi)");
	assert_int_equal(hit->samples, 1);
	assert_non_null(hit->stack);
	expect_tally(3, 3, 0, 0);
}

TEST(what_is_no_watch_is_no_sample)
{
	struct ex_record record = *make(&(struct sample){NONE, 1, 1, nowhere});

	assert_int_equal(ex_explain(explainer, &record), 0);
	record.attr = -1;
	assert_int_equal(ex_explain(explainer, &record), 0);
	record.attr = EVENTS;
	assert_int_equal(ex_explain(explainer, &record), 0);
	record.type = PERF_RECORD_LOST;
	assert_int_equal(ex_explain(explainer, &record), 0);
	assert_int_equal(flush_all(), 0);
	expect_tally(0, 0, 0, 0);
}

/* Samples, and the hits that they are. */
static const struct scenario {
	const char *name;
	struct sample sample[6];
	struct {
		uint64_t time;	/* of the first sample; 0 ends the list */
		int64_t from;	/* bytes touched, from the watch on */
		uint64_t len;
		unsigned samples;
	} hit[6];
} scenarios[] = {
	{"two slots of one instruction that is not known",
	    {{PAIR, 1, 1, nowhere}, {PAIR_2, 2, 1, nowhere}},
	    {{1, 0, 16, 2}}},
	{"the second slot first",
	    {{PAIR_2, 1, 1, nowhere}, {PAIR, 2, 1, nowhere}},
	    {{1, 0, 16, 2}}},
	{"one slot of two",
	    {{PAIR_2, 1, 1, nowhere}},
	    {{1, 8, 8, 1}}},
	{"two slots, narrowed by the instruction",
	    {{PAIR, 1, 1, after_store, 4}, {PAIR_2, 2, 1, after_store, 4}},
	    {{1, 4, 8, 2}}},
	{"an instruction that touches more than is watched",
	    {{PAIR, 1, 1, after_wide, -8}},
	    {{1, 0, 8, 1}}},
	{"an instruction that touches the end and more",
	    {{PAIR, 1, 1, after_wide, 4}, {PAIR_2, 1, 1, after_wide, 4}},
	    {{1, 4, 12, 2}}},
	{"on another processor",
	    {{PAIR, 1, 1, nowhere, .cpu = 0}, {PAIR_2, 2, 1, nowhere,
	    .cpu = 1}},
	    {{1, 0, 16, 2}}},
	{"the same slot again",
	    {{PAIR, 1, 1, nowhere}, {PAIR, 2, 1, nowhere}},
	    {{1, 0, 8, 1}, {2, 0, 8, 1}}},
	{"both slots twice",
	    {{PAIR, 1, 1, nowhere}, {PAIR_2, 2, 1, nowhere},
	    {PAIR, 3, 1, nowhere}, {PAIR_2, 4, 1, nowhere}},
	    {{1, 0, 16, 2}, {3, 0, 16, 2}}},
	{"other registers",
	    {{PAIR, 1, 1, nowhere, 0}, {PAIR_2, 2, 1, nowhere, 8}},
	    {{1, 0, 8, 1}, {2, 8, 8, 1}}},
	{"another pc",
	    {{PAIR, 1, 1, nowhere}, {PAIR_2, 2, 1, nowhere + 1}},
	    {{1, 0, 8, 1}, {2, 8, 8, 1}}},
	{"no registers were sampled",
	    {{PAIR, 1, 1, nowhere, .bare = true}, {PAIR_2, 2, 1, nowhere,
	    .bare = true}},
	    {{1, 0, 16, 2}}},
	{"another pc, and no registers were sampled",
	    {{PAIR, 1, 1, nowhere, .bare = true}, {PAIR_2, 2, 1, nowhere + 1,
	    .bare = true}},
	    {{1, 0, 8, 1}, {2, 8, 8, 1}}},
	{"another watch",	/* and the registers are the same */
	    {{PAIR, 1, 1, nowhere, 32}, {READ_2, 2, 1, nowhere, 0}},
	    {{1, 0, 8, 1}, {2, 8, 8, 1}}},
	{"at the end of time",
	    {{PAIR, UINT64_MAX - 1, 1, nowhere}, {PAIR_2, UINT64_MAX - 1, 1,
	    nowhere}},
	    {{UINT64_MAX - 1, 0, 16, 2}}},
	{"another thread",
	    {{PAIR, 1, 1, nowhere}, {PAIR_2, 2, 2, nowhere}},
	    {{1, 0, 8, 1}, {2, 8, 8, 1}}},
	{"another watch in between",
	    {{PAIR, 1, 1, nowhere}, {ONE, 2, 1, nowhere}},
	    {{1, 0, 8, 1}, {2, 0, 8, 1}}},
	{"as far apart as one access can be",
	    {{PAIR, 1, 1, nowhere}, {PAIR_2, 1 + 100 * MS, 1, nowhere}},
	    {{1, 0, 16, 2}}},
	{"further apart",
	    {{PAIR, 1, 1, nowhere}, {PAIR_2, 2 + 100 * MS, 1, nowhere}},
	    {{1, 0, 8, 1}, {2 + 100 * MS, 8, 8, 1}}},
	{"threads interleaved",
	    {{PAIR, 1, 1, nowhere}, {PAIR, 2, 2, nowhere},
	    {PAIR_2, 3, 1, nowhere}, {PAIR_2, 4, 2, nowhere}},
	    {{1, 0, 16, 2}, {2, 0, 16, 2}}},
	{"a hit of one slot behind one of two keeps its place",
	    {{PAIR, 1, 1, nowhere}, {ONE, 2, 2, nowhere},
	    {PAIR_2, 3, 1, nowhere}, {ONE, 4, 1, nowhere}},
	    {{1, 0, 16, 2}, {2, 0, 8, 1}, {4, 0, 8, 1}}},
	{"the kernel copies, byte by byte",
	    {{PAIR, 1, 1, nowhere, 0, true, 1}, {PAIR, 2, 1, nowhere, 0,
	    true, 2}, {PAIR, 3, 1, nowhere, 0, true, 3}},
	    {{1, 0, 3, 3}}},
	{"the kernel copies two parts, the later bytes first",
	    {{PAIR, 1, 1, nowhere, 0, true, 5}, {PAIR, 2, 1, nowhere, 0,
	    true, 8}, {PAIR, 3, 1, nowhere, 0, true, 1}, {PAIR, 4, 1, nowhere,
	    0, true, 4}},
	    {{1, 0, 8, 4}}},
	{"the kernel copies, and sleeps in between",
	    {{PAIR, 1, 1, nowhere, 0, true, 1}, {PAIR, 60 * MS, 1, nowhere, 0,
	    true, 2}, {PAIR, 120 * MS, 1, nowhere, 0, true, 3}},
	    {{1, 0, 3, 3}}},
	{"into the next slot",
	    {{PAIR, 1, 1, nowhere, 0, true, 8}, {PAIR_2, 2, 1, nowhere, 0,
	    true, 9}, {PAIR_2, 3, 1, nowhere, 0, true, 16}},
	    {{1, 0, 16, 3}}},
	{"over both slots at once",
	    {{PAIR, 1, 1, nowhere, 0, true, 64}, {PAIR_2, 2, 1, nowhere, 0,
	    true, 64}},
	    {{1, 0, 16, 2}}},
	{"an identical system call",
	    {{PAIR, 1, 1, nowhere, 0, true, 1}, {PAIR, 2, 1, nowhere, 0,
	    true, 8}, {PAIR, 3, 1, nowhere, 0, true, 1}, {PAIR, 4, 1, nowhere,
	    0, true, 8}},
	    {{1, 0, 8, 2}, {3, 0, 8, 2}}},
	{"an identical system call that copies at once",
	    {{ONE, 1, 1, nowhere, 0, true, 8}, {ONE, 2, 1, nowhere, 0, true,
	    8}},
	    {{1, 0, 8, 1}, {2, 0, 8, 1}}},
	{"an identical system call of one byte",
	    {{ONE, 1, 1, nowhere, 0, true, 1}, {ONE, 2, 1, nowhere, 0, true,
	    1}},
	    {{1, 0, 1, 1}, {2, 0, 1, 1}}},
	{"another system call goes on there",
	    {{PAIR, 1, 1, nowhere, 0, true, 8}, {PAIR_2, 2, 1, nowhere, 8,
	    true, 16}},
	    {{1, 0, 8, 1}, {2, 8, 8, 1}}},
	{"two threads in the kernel",
	    {{ONE, 1, 1, nowhere, 0, true, 1}, {ONE, 2, 2, nowhere, 0, true,
	    1}, {ONE, 3, 1, nowhere, 0, true, 2}, {ONE, 4, 2, nowhere, 0, true,
	    2}},
	    {{1, 0, 2, 2}, {2, 0, 2, 2}}},
	{"the kernel, then the program",
	    {{PAIR, 1, 1, nowhere, 0, true, 1}, {PAIR_2, 2, 1, nowhere}},
	    {{1, 0, 1, 1}, {2, 8, 8, 1}}},
	{"copies whose progress was not sampled",
	    {{ONE, 1, 1, nowhere, 0, true}, {ONE, 2, 1, nowhere, 0, true}},
	    {{1, 0, 8, 1}, {2, 0, 8, 1}}},
};

static size_t
count_hits(const struct scenario *s)
{
	size_t n = 0;

	while (n < 6 && s->hit[n].time != 0)
		n++;
	return n;
}

static void
play(const struct scenario *s)
{
	const struct ex_tally *tally = ex_explain_tally(explainer);
	size_t n = 0;

	given.n = 0;
	while (n < 6 && s->sample[n].event != NONE)
		assert_int_equal(feed(&s->sample[n++]), 0);
	assert_int_equal(flush_all(), 0);
	if (given.n != count_hits(s))
		fail_msg("%s: %zu hits, not %zu", s->name, given.n,
		    count_hits(s));
	for (size_t i = 0; i < given.n; i++) {
		const struct ex_hit *hit = &given.hit[i];

		if (hit->time != s->hit[i].time ||
		    hit->addr != hit->watch->addr + (uint64_t)s->hit[i].from ||
		    hit->len != s->hit[i].len ||
		    hit->samples != s->hit[i].samples)
			fail_msg("%s: hit %zu: time %" PRIu64 ", %" PRId64
			    ":%" PRIu64 ", %u samples", s->name, i + 1,
			    hit->time, (int64_t)(hit->addr - hit->watch->addr),
			    hit->len, hit->samples);
	}
	assert_int_equal(tally->samples, n);
	assert_int_equal(tally->joined, n - given.n);
}

TEST(joins_what_is_one_access)
{
	for (size_t i = 0; i < COUNT(scenarios); i++) {
		(void)end(state);
		assert_int_equal(begin(state), 0);
		play(&scenarios[i]);
	}
}

TEST(waits_no_longer_than_an_access)
{
	assert_int_equal(feed(&(struct sample){PAIR, 10, 1, nowhere}), 0);
	assert_int_equal(ex_explain_flush(explainer, 10 + 100 * MS), 0);
	expect_tally(1, 0, 0, 0);
	assert_int_equal(ex_explain_flush(explainer, 11 + 100 * MS), 0);
	expect_tally(1, 1, 0, 0);

	/* a sample of another thread shows it, too */
	assert_int_equal(feed(&(struct sample){PAIR, 300 * MS, 1, nowhere}),
	    0);
	assert_int_equal(feed(&(struct sample){ONE, 400 * MS, 2, nowhere}), 0);
	expect_tally(3, 1, 0, 0);
	assert_int_equal(feed(&(struct sample){ONE, 400 * MS + 1, 2, nowhere}),
	    0);
	expect_tally(4, 4, 0, 0);
	assert_int_equal(flush_all(), 0);
	expect_tally(4, 4, 0, 0);
}

/* What give refuses is reported to whoever caused it, and the rest comes
   later. */
TEST(stops_when_asked_to)
{
	given.refuse = 1;
	assert_int_equal(feed(&(struct sample){ONE, 1, 1, nowhere}), 7);
	given.refuse = 3;
	assert_int_equal(feed(&(struct sample){PAIR, 2, 1, nowhere}), 0);
	assert_int_equal(feed(&(struct sample){ONE, 3, 2, nowhere}), 0);
	assert_int_equal(feed(&(struct sample){ONE, 4, 2, nowhere}), 0);
	assert_int_equal(given.n, 1);
	assert_int_equal(flush_all(), 7);
	assert_int_equal(given.n, 3);
	assert_int_equal(flush_all(), 0);
	expect_tally(4, 4, 0, 0);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(given.hit[i].time, i + 1);

	/* and when a sample closes a hit */
	given.refuse = 5;
	assert_int_equal(feed(&(struct sample){PAIR, 5, 1, nowhere}), 0);
	assert_int_equal(feed(&(struct sample){PAIR, 6, 1, nowhere}), 7);
	assert_int_equal(flush_all(), 0);
	expect_tally(6, 6, 0, 0);
}

/* What an instruction does, as each kind of watch has it; NULL: dropped. */
TEST(says_what_kind_of_access)
{
	static const struct {
		int event;
		const char *pc;
		bool kernel;
		const char *access;
	} cases[] = {
		{ONE, after_store, false, "write"},
		{ONE, after_add, false, "write"},
		{ONE, nowhere, false, "write"},
		{ONE, nowhere, true, "write"},
		{ANY, after_store, false, "write"},
		{ANY, after_load, false, "read"},
		{ANY, after_add, false, "read-write"},
		{ANY, after_chase, false, "read"},
		{ANY, nowhere, false, "access"},
		{ANY, nowhere, true, "access"},
		{READ, after_store, false, NULL},
		{READ, after_load, false, "read"},
		{READ, after_add, false, "read-write"},
		{READ, after_chase, false, "read"},
		{READ, nowhere, false, "access"},
		{READ, nowhere, true, "access"},
		{EXEC, code, false, "execute"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		given.n = 0;
		(void)end(state);
		assert_int_equal(begin(state), 0);
		assert_int_equal(feed(&(struct sample){cases[i].event, 1, 1,
		    cases[i].pc, 0, cases[i].kernel}), 0);
		assert_int_equal(flush_all(), 0);
		if (cases[i].access == NULL) {
			expect_tally(1, 0, 0, 1);
			continue;
		}
		expect_tally(1, 1, 0, 0);
		if (strcmp(given.hit[0].access, cases[i].access) != 0)
			fail_msg("case %zu: %s", i, given.hit[0].access);
	}
}

/* Writes are dropped, slot by slot; what was read before is complete. */
TEST(drops_writes_where_reads_are_watched)
{
	assert_int_equal(feed(&(struct sample){READ, 1, 1, after_load}), 0);
	assert_int_equal(feed(&(struct sample){READ, 2, 1, after_store, 4}),
	    0);
	assert_int_equal(given.n, 1);
	assert_int_equal(feed(&(struct sample){READ_2, 3, 1, after_store, 4}),
	    0);
	assert_int_equal(feed(&(struct sample){READ_2, 4, 1, after_load, 8}),
	    0);
	assert_int_equal(flush_all(), 0);
	expect_tally(4, 2, 0, 2);
	assert_int_equal(given.hit[1].time, 4);
}

TEST(shows_the_instruction_first)
{
	static const struct {
		const char *name;
		int event;
		const char *pc;
		int64_t at;
		uint64_t cx;	/* rep: what is left */
		const char *back;	/* on top of the stack, or NULL */
		enum ex_confidence confidence;
		const char *insn;	/* its address */
		const char *first;	/* the pc of frame 0 */
		const char *function;	/* its name */
	} cases[] = {
		{"the instruction before", ONE, after_store, 0, 0, NULL,
		    EX_EXACT, code, code, "code"},
		{"what is executed", EXEC, code, 0, 0, NULL,
		    EX_EXACT, code, code, "code"},
		{"a rep that goes on", ONE, at_fill, 1, 7, NULL,
		    EX_EXACT, at_fill, at_fill, "code"},
		{"a call that wrote where to return", ONE, callee, 0, 0,
		    after_call, EX_EXACT, at_call, callee, "callee"},
		{"none in a function", ONE, after_store, 100, 0, NULL,
		    EX_UNKNOWN, NULL, after_store, "code"},
		{"none at its end", ONE, callee, 100, 0, NULL,
		    EX_UNKNOWN, NULL, callee, "callee"},
		{"none in no function", ONE, nowhere, 0, 0, NULL,
		    EX_UNKNOWN, NULL, nowhere, NULL},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct ex_hit *hit = &given.hit[i];
		const struct ex_frame *frame;

		made.cx = cases[i].cx;
		made.back = (uintptr_t)cases[i].back;
		assert_int_equal(feed(&(struct sample){cases[i].event, 1, 1,
		    cases[i].pc, cases[i].at}), 0);
		assert_int_equal(given.n, i + 1);
		assert_true(hit->stack->n > 0);
		frame = hit->stack->frame;
		if (hit->insn.confidence != cases[i].confidence ||
		    hit->insn.pc != (uintptr_t)cases[i].insn ||
		    frame->pc != (uintptr_t)cases[i].first)
			fail_msg("%s: %s at %#" PRIx64 ", first %#" PRIx64,
			    cases[i].name,
			    ex_confidence_text(hit->insn.confidence),
			    hit->insn.pc, frame->pc);
		if (cases[i].function == NULL)
			assert_null(frame->function);
		else
			assert_string_equal(frame->function,
			    cases[i].function);
	}
}

/* What comes after a function's last instruction is still called by it. */
TEST(names_a_function_by_the_byte_before)
{
	const char *past = (const char *)((uintptr_t)callee + 2);
	const struct ex_frame *frame;

	assert_int_equal(feed(&(struct sample){ONE, 1, 1, past, 100}), 0);
	frame = given.hit[0].stack->frame;
	assert_int_equal(frame->pc, (uintptr_t)past);
	assert_non_null(frame->function);
	assert_string_equal(frame->function, "callee");
	assert_int_equal(frame->offset, 2);
}

TEST(names_the_system_call)
{
	static const struct {
		const char *chain[4];	/* innermost first */
		const char *name;
	} cases[] = {
		{{"ksys_read"}, "read"},
		{{"vfs_read", "ksys_read", "__x64_sys_pread64"}, "pread64"},
		{{"vfs_read", "__x64_sys_pread64", "do_syscall_64"}, "pread64"},
		{{"__x64_sys_newfstat"}, "fstat"},
		{{"__x64_sys_newfstatat"}, "newfstatat"},
		{{"__x64_sys_newuname"}, "uname"},
		{{"vfs_read", "do_syscall_64"}, NULL},
	};

	if (kernel_symbol("ksys_read") == 0) {
		print_message("/proc/kallsyms tells no addresses\n");
		skip();
	}
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct ex_hit *hit = &given.hit[i];

		memset(made.chain, 0, sizeof(made.chain));
		for (size_t k = 0; k < 4 && cases[i].chain[k] != NULL; k++)
			made.chain[k] = kernel_symbol(cases[i].chain[k]) + 8;
		assert_int_equal(feed(&(struct sample){ONE, i, 1, after_store,
		    0, true}), 0);
		assert_int_equal(flush_all(), 0);
		assert_int_equal(given.n, i + 1);
		assert_true(hit->kernel);
		assert_int_equal(hit->pc, (uintptr_t)after_store);
		assert_int_equal(hit->insn.confidence, EX_UNKNOWN);
		assert_true(hit->stack->n > 1);
		assert_true(hit->stack->frame[0].kernel);
		if (cases[i].name == NULL)
			assert_null(hit->call.name);
		else
			assert_string_equal(hit->call.name, cases[i].name);
	}
}

/* --- any sequence --- */

static uint64_t
next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed >> 16;
}

/* Often the next one of the access that the last one was of. */
static void
random_sample(uint64_t *seed, struct sample *s)
{
	static const char *const pc[] = {
		(const char *)4096, (const char *)8192, after_store,
		after_load, after_add, after_wide,
	};
	const uint64_t time = s->time + (next_random(seed) % 8 == 0 ?
	    next_random(seed) % (90 * MS) : next_random(seed) % 1000);

	if (next_random(seed) % 2 == 0) {
		s->time = time;
		s->event = s->event < PAIR || s->event == EXEC ? s->event :
		    s->event ^ 1;
		s->reached += s->kernel ? next_random(seed) % 3 : 0;
		return;
	}
	*s = (struct sample){
		.event = (int)(next_random(seed) % EVENTS), .time = time,
		.tid = (pid_t)(1 + next_random(seed) % 4),
		.pc = pc[next_random(seed) % 6],
		.at = (int64_t)(next_random(seed) % 3 * 4),
		.kernel = next_random(seed) % 4 == 0, .reached = 1,
		.cpu = (uint32_t)(next_random(seed) % 4),
	};
}

/* Hits come in order, lie within their watches, and leave no sample out. */
static void
expect_order(void)
{
	const struct ex_tally *tally = ex_explain_tally(explainer);
	uint64_t samples = 0;

	assert_int_equal(tally->samples, tally->hits + tally->joined +
	    tally->dropped);
	assert_int_equal(tally->hits, given.n);
	for (size_t i = 0; i < given.n; i++) {
		const struct ex_hit *hit = &given.hit[i];

		if (i > 0)
			assert_true(hit->time >= hit[-1].time);
		samples += hit->samples;
		assert_true(hit->len > 0);
		assert_true(hit->addr >= hit->watch->addr);
		assert_true(hit->addr + hit->len <= hit->watch->addr +
		    hit->watch->len);
	}
	assert_int_equal(samples, tally->samples - tally->dropped);
}

TEST(leaves_no_sample_out)
{
	uint64_t seed = 88172645463325252, joined = 0, dropped = 0;

	for (unsigned round = 0; round < 200; round++) {
		struct sample s = {.event = ONE, .pc = nowhere, .time = 1};
		uint64_t samples = 0;

		(void)end(state);
		assert_int_equal(begin(state), 0);
		for (unsigned i = 0; i < 300; i++) {
			random_sample(&seed, &s);
			samples += s.event != NONE;
			assert_int_equal(feed(&s), 0);
			if (next_random(&seed) % 32 == 0)
				assert_int_equal(ex_explain_flush(explainer,
				    s.time), 0);
		}
		assert_int_equal(flush_all(), 0);
		assert_int_equal(ex_explain_tally(explainer)->samples, samples);
		expect_order();
		joined += ex_explain_tally(explainer)->joined;
		dropped += ex_explain_tally(explainer)->dropped;
	}
	assert_true(joined > 1000 && dropped > 1000);
}

/* --- many threads --- */

/* CPU time in ns of samples that all come from another thread, each of which
   has a hit that may get more. */
static uint64_t
time_threads(unsigned threads, unsigned samples)
{
	struct timespec from, to;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	for (unsigned i = 0; i < samples; i++)
		assert_int_equal(feed(&(struct sample){
		    i / threads % 2 == 0 ? PAIR : PAIR_2, i,
		    (pid_t)(1 + i % threads), nowhere}), 0);
	assert_int_equal(flush_all(), 0);
	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	return (uint64_t)(to.tv_sec - from.tv_sec) * 1000000000 +
	    (uint64_t)to.tv_nsec - (uint64_t)from.tv_nsec;
}

/* With values every hit waits; without them it has but its own. */
TEST(waits_for_values)
{
	static const struct ex_value_options values = {.read = NULL};
	const struct ex_record lost = {.type = PERF_RECORD_LOST, .attr = -1,
	    .time = 3 * MS + 100, .lost = {.count = 1}};
	const struct ex_hit *hit = given.hit;

	assert_int_equal(feed(&(struct sample){ONE, 1, 1, after_store}), 0);
	assert_int_equal(given.n, 1);
	assert_true(ex_value_known(&hit[0].new, 0, 8));
	assert_int_equal(hit[0].source, EX_VALUE_REGISTER);
	assert_int_equal(ex_explainer_values(explainer, &values), 0);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(feed(&(struct sample){ONE, (1 + i) * MS, 1,
		    after_store}), 0);
	assert_int_equal(given.n, 2);
	assert_int_equal(ex_explain_flush(explainer, 4 * MS - 1), 0);
	assert_int_equal(given.n, 2);
	assert_int_equal(ex_explain_flush(explainer, 4 * MS), 0);
	assert_int_equal(given.n, 3);
	assert_int_equal(ex_explain(explainer, &lost), 0);
	assert_int_equal(feed(&(struct sample){ONE, 4 * MS, 1, after_store}),
	    0);
	assert_int_equal(flush_all(), 0);
	expect_tally(5, 5, 0, 0);
	assert_false(ex_value_known(&hit[1].old, 0, 8));
	assert_true(ex_value_known(&hit[2].old, 0, 8));
	assert_int_equal(ex_value_number(&hit[2].old, 0, 8), 0);
	assert_true(hit[2].unchanged);
	/* that one had been given out only if nothing could follow */
	assert_false(ex_value_known(&hit[3].old, 0, 8));
	assert_false(ex_value_known(&hit[4].old, 0, 8));
}

/* A write that is dropped has written all the same. */
TEST(values_of_dropped_writes_count)
{
	static const struct ex_value_options values = {.read = NULL};
	const uint8_t ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
	    1};

	assert_int_equal(ex_explainer_values(explainer, &values), 0);
	ex_explain_known(explainer, &watches[2], getpid(), ones, 16, 0);
	assert_int_equal(feed(&(struct sample){READ, 1, 1, after_store}), 0);
	assert_int_equal(feed(&(struct sample){READ, 2, 1, after_load}), 0);
	assert_int_equal(feed(&(struct sample){READ, 3, 1, after_wide, 0}), 0);
	assert_int_equal(feed(&(struct sample){READ, 4, 1, after_load}), 0);
	assert_int_equal(flush_all(), 0);
	expect_tally(4, 2, 0, 2);
	assert_int_equal(given.hit[0].old.known, 0xffff);
	assert_int_equal(given.hit[0].old.byte[7], 0);
	assert_int_equal(given.hit[0].old.byte[8], 1);
	assert_int_equal(given.hit[1].old.known, 0xff);
}

TEST(many_threads_cost_little)
{
	enum { FEW = 10, MANY = 10000, SAMPLES = 200000 };
	uint64_t few, many;

	few = time_threads(FEW, SAMPLES);
	expect_tally(SAMPLES, SAMPLES / 2, SAMPLES / 2, 0);
	many = time_threads(MANY, SAMPLES);
	expect_tally(2 * SAMPLES, SAMPLES, SAMPLES, 0);
	if (many > 10 * few)
		fail_msg("%d threads: %" PRIu64 " ns a sample; %d threads: %"
		    PRIu64, MANY, many / SAMPLES, FEW, few / SAMPLES);
}

static int
set_up(void **state)
{
	(void)state;
	set_slots();
	space = ex_space_new(EX_LIVE);
	if (space == NULL)
		return -1;
	capture_maps(space, getpid());
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	ex_space_free(space);
	return 0;
}

RUN_TESTS(.before_all = set_up, .after_all = tear_down, .before_each = begin,
    .after_each = end)
