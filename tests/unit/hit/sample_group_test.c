/*
 * sample_group: which samples belong to one access.  They are made by hand:
 * samples of two slots of a watch, touched by an instruction or by the kernel.
 */
#include "test.h"

#include <asm/perf_regs.h>
#include <string.h>

#include "hit/sample_group.h"

#define WORD	UINT64_C(0x1000)	/* the first slot; the other follows */
#define KERNEL	UINT64_C(0xffffffff81000000)
#define OWN	UINT64_C(0xffffffff82000000)	/* a slot of the kernel's
						   own memory */
#define SPAN	UINT64_C(100000000)	/* ns: samples of an access are no
					   further apart */

/* One sample; what is left out is the same in all. */
struct sample {
	bool kernel;
	int slot;		/* 0 or 1 */
	uint64_t di, si;	/* the kernel's */
	uint64_t ip;		/* the kernel's, from KERNEL on */
	uint64_t from[3];	/* its callers, innermost first */
	uint64_t ax;		/* a user register */
	uint64_t time;		/* ns */
	uint64_t pc;		/* the program's */
	bool bare;		/* it has no user registers */
	uint64_t cx, kernel_ax;	/* the kernel's */
};

static struct {
	uint64_t user[PERF_REG_X86_64_MAX], intr[4], chain[5];
	struct ex_record record;
} made;

static const struct ex_record *
make(const struct sample *s)
{
	struct ex_sample *sample = &made.record.sample;

	memset(&made, 0, sizeof(made));
	made.user[PERF_REG_X86_AX] = s->ax;
	made.user[PERF_REG_X86_IP] = 0x400000 + s->pc;
	made.intr[0] = s->kernel_ax;	/* by their numbers */
	made.intr[1] = s->cx;
	made.intr[2] = s->si;
	made.intr[3] = s->di;
	made.record = (struct ex_record){
		.type = PERF_RECORD_SAMPLE, .attr = 4 + s->slot,
		.time = s->time, .misc = s->kernel ? PERF_RECORD_MISC_KERNEL :
		    PERF_RECORD_MISC_USER,
	};
	sample->ip = s->kernel ? KERNEL + s->ip : 0x400000 + s->pc;
	sample->user = (struct ex_perf_regs){PERF_SAMPLE_REGS_ABI_64,
	    (UINT64_C(1) << PERF_REG_X86_64_MAX) - 1,
	    (const uint8_t *)made.user};
	if (s->bare)
		sample->user = (struct ex_perf_regs){0};
	if (!s->kernel)
		return &made.record;
	sample->intr = (struct ex_perf_regs){PERF_SAMPLE_REGS_ABI_64,
	    1u << PERF_REG_X86_DI | 1u << PERF_REG_X86_SI |
	    1u << PERF_REG_X86_CX | 1u << PERF_REG_X86_AX,
	    (const uint8_t *)made.intr};
	made.chain[0] = (uint64_t)PERF_CONTEXT_KERNEL;
	made.chain[1] = sample->ip;
	for (size_t i = 0; i < 3; i++)
		made.chain[2 + i] = KERNEL + s->from[i];
	sample->callchain = (const uint8_t *)made.chain;
	sample->callchain_len = 5;
	return &made.record;
}

/* Pairs of samples: whether the second is of the first's access. */
static const struct {
	const char *what;
	struct sample a, b;
	bool joined;
} pairs[] = {
	{"an instruction, two slots", {.slot = 0}, {.slot = 1}, true},
	{"two slots, the later first", {.slot = 1}, {.slot = 0}, true},
	{"a thread of the kernel's", {true, 0, WORD + 7, .ip = 1, .bare = true},
	    {true, 0, WORD + 8, .ip = 3, .bare = true}, true},
	{"an instruction again", {0}, {0}, false},
	{"other registers", {.ax = 1}, {.slot = 1, .ax = 2}, false},
	{"another place", {.pc = 1}, {.slot = 1, .pc = 2}, false},
	{"as late as can be", {.time = 1}, {.slot = 1, .time = 1 + SPAN},
	    true},
	{"too late", {.time = 1}, {.slot = 1, .time = 2 + SPAN}, false},
	{"earlier, by another clock", {.time = 2 + SPAN}, {.slot = 1,
	    .time = 1}, true},
	{"the program, then the kernel", {0}, {true, 1}, false},
	{"a copy goes on", {true, 0, WORD + 1}, {true, 0, WORD + 2}, true},
	{"a copy out goes on", {true, 0, KERNEL, WORD + 1}, {true, 0,
	    KERNEL + 1, WORD + 2}, true},
	{"a copy out is made again", {true, 0, KERNEL, WORD + 1}, {true, 0,
	    KERNEL + 4096, WORD + 1}, false},
	{"a copy goes on in the next slot", {true, 0, WORD + 8}, {true, 1,
	    WORD + 9}, true},
	{"a copy of one byte is made again", {true, 0, WORD + 1}, {true, 0,
	    WORD + 1}, false},
	{"made again, and now longer", {true, 0, WORD + 1, .ip = 5}, {true, 0,
	    WORD + 1, .ip = 3}, false},
	{"a part before that", {true, 0, WORD + 5}, {true, 0, WORD + 1}, true},
	{"other work on the same bytes", {true, 0, .ip = 1}, {true, 0,
	    .ip = 2}, true},
	{"that work again", {true, 0, .ip = 1}, {true, 0, .ip = 1}, false},
	{"a function called from two places", {true, 0, .ip = 1,
	    .from = {10, 20, 30}}, {true, 0, .ip = 1, .from = {11, 20, 30}},
	    true},
	{"another call with the same arguments", {true, 0, WORD + 1,
	    .from = {10, 20, 30}}, {true, 0, WORD + 2, .from = {10, 21, 30}},
	    false},
	{"another entry", {true, 0, WORD + 1, .from = {10, 20, 30}}, {true, 0,
	    WORD + 2, .from = {10, 20, 31}}, false},
};

/* The same of the kernel's own memory, with what is left of a copy. */
static const struct {
	const char *what;
	struct sample a, b;
	bool joined;
} steps[] = {
	{"a copy goes on", {true, 0, OWN + 1, .cx = 7, .ip = 5}, {true, 0,
	    OWN + 2, .cx = 6, .ip = 5}, true},
	{"and ends", {true, 0, OWN + 7, .cx = 1, .ip = 5}, {true, 0, OWN + 8,
	    .ip = 7}, true},
	{"it ends, elsewhere", {true, 0, OWN + 7, .cx = 1, .ip = 5}, {true, 0,
	    OWN + 8, .ip = 100}, false},
	{"it ends in the next slot", {true, 0, OWN + 8, .cx = 1, .ip = 5},
	    {true, 1, OWN + 9, .ip = 7}, true},
	{"another copy of what follows", {true, 0, OWN + 4, .ip = 7}, {true, 0,
	    OWN + 5, .cx = 3, .ip = 5}, false},
	{"another copy, by a worker", {true, 0, OWN + 4, .cx = 4, .ip = 5,
	    .bare = true}, {true, 0, OWN + 5, .cx = 4, .ip = 5, .bare = true},
	    false},
	{"a store again", {true, 0, KERNEL, .ip = 5}, {true, 0, KERNEL,
	    .ip = 5}, false},
	{"another store", {true, 0, KERNEL, .ip = 5}, {true, 0, KERNEL,
	    .ip = 9}, false},
	{"one store, two slots", {true, 0, KERNEL, .ip = 5}, {true, 1, KERNEL,
	    .ip = 5}, true},
	{"two stores, two slots", {true, 0, KERNEL, .ip = 5}, {true, 1, KERNEL,
	    .ip = 9}, false},
	{"a loop, two slots", {true, 0, KERNEL, .ip = 5}, {true, 1, KERNEL,
	    .ip = 5, .kernel_ax = 1}, false},
};

TEST(steps_of_the_kernels_own)
{
	for (size_t i = 0; i < COUNT(steps); i++) {
		struct ex_sample_group a;
		const struct ex_record *record = make(&steps[i].a);

		ex_group_begin(&a, record, OWN + 8 * (uint64_t)steps[i].a.slot,
		    8);
		record = make(&steps[i].b);
		if (ex_group_goes_on(&a, record, true,
		    OWN + 8 * (uint64_t)steps[i].b.slot, 8) != steps[i].joined)
			fail_msg("%s", steps[i].what);
	}
}

static bool
goes_on(struct ex_sample_group *a, const struct sample *s)
{
	return ex_group_goes_on(a, make(s), true,
	    WORD + 8 * (uint64_t)s->slot, 8);
}

TEST(samples_of_one_access)
{
	for (size_t i = 0; i < COUNT(pairs); i++) {
		const struct sample *s = &pairs[i].a;
		struct ex_sample_group a;

		ex_group_begin(&a, make(s), WORD + 8 * (uint64_t)s->slot, 8);
		if (goes_on(&a, &pairs[i].b) != pairs[i].joined)
			fail_msg("%s: %d", pairs[i].what, !pairs[i].joined);
	}
}

TEST(an_access_ends_where_it_began)
{
	struct ex_sample_group a;

	for (int round = 0; round < 2; round++) {
		ex_group_begin(&a, make(&(struct sample){true, 0, WORD + 1}),
		    WORD, 8);
		for (uint64_t n = 2; n <= 16; n++)
			assert_true(goes_on(&a, &(struct sample){true, n > 8,
			    WORD + n}));
		assert_false(goes_on(&a, &(struct sample){true, 0, WORD + 1}));
		assert_false(goes_on(&a, &(struct sample){true, 1, WORD + 9}));
		assert_int_equal(a.slots, 3);
	}
}

/* A slot longer than is noted: what goes up goes on. */
TEST(many_places_cost_little)
{
	struct ex_sample_group a;
	uint64_t n;

	ex_group_begin(&a, make(&(struct sample){true, 0, WORD + 1}), WORD,
	    4096);
	for (n = 2; n <= 4096; n++) {
		const struct ex_record *record =
		    make(&(struct sample){true, 0, WORD + n});

		assert_true(ex_group_goes_on(&a, record, true, WORD, 4096));
	}
	assert_false(ex_group_goes_on(&a, make(&(struct sample){true, 0,
	    WORD + 100}), true, WORD, 4096));
	assert_false(ex_group_goes_on(&a, make(&(struct sample){true, 0}), true,
	    WORD, 4096));
}

TEST(where_a_copy_has_come_to)
{
	static const struct {
		uint64_t di, si, reached;
	} cases[] = {
		{WORD, 0, WORD}, {WORD + 8, 0, WORD + 8}, {WORD + 9, 0, 0},
		{WORD - 1, 0, 0}, {KERNEL, WORD + 3, WORD + 3},
		{WORD + 1, WORD + 3, WORD + 1}, {KERNEL, KERNEL, 0},
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(ex_group_reached(make(&(struct sample){true,
		    0, cases[i].di, cases[i].si}), WORD, 8), cases[i].reached);
}

TEST(what_one_store_or_load_touched)
{
	static const struct {
		const char *function;
		uint64_t addr, len;	/* len 0: not known */
	} cases[] = {
		{"__put_user_4", WORD + 2, 4}, {"__put_user_1", WORD + 2, 1},
		{"__put_user_nocheck_8", WORD + 2, 8},
		{"__get_user_2", WORD + 4, 2},
		{"__get_user_nocheck_4", WORD + 4, 4},
		{"__put_user_", 0, 0}, {"__put_user_3", 0, 0},
		{"__put_user_bad", 0, 0}, {"__put_user_44", 0, 0},
		{"__put_user_nocheck_", 0, 0}, {"_copy_to_user", 0, 0},
		{"", 0, 0}, {NULL, 0, 0},
	};
	const struct ex_record *record = make(&(struct sample){true,
	    .cx = WORD + 2, .kernel_ax = WORD + 4});

	for (size_t i = 0; i < COUNT(cases); i++) {
		uint64_t addr = 0, len = 0;

		assert_int_equal(ex_group_single(record, cases[i].function,
		    &addr, &len), cases[i].len != 0);
		assert_int_equal(addr, cases[i].addr);
		assert_int_equal(len, cases[i].len);
	}
}

TEST(which_way_the_kernels_functions_go)
{
	static const struct {
		const char *function;
		char way;
	} cases[] = {
		{"_copy_to_user", 'w'}, {"_copy_from_user", 'r'},
		{"_copy_to_iter", 'w'}, {"_copy_from_iter", 'r'},
		{"__put_user_nocheck_4", 'w'}, {"__get_user_8", 'r'},
		{"rep_movs_alternative", '\0'}, {"", '\0'}, {NULL, '\0'},
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(ex_group_way(cases[i].function),
		    cases[i].way);
}

TEST(the_kernels_samples_have_the_programs_pc)
{
	assert_int_equal(ex_group_pc(make(&(struct sample){.pc = 5})),
	    0x400005);
	assert_int_equal(ex_group_pc(make(&(struct sample){true, .pc = 5,
	    .ip = 7})), 0x400005);
	assert_false(ex_group_kernel(make(&(struct sample){0})));
	assert_true(ex_group_kernel(make(&(struct sample){true})));
}

RUN_TESTS()
