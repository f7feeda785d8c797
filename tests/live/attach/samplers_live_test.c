/*
 * samplers: what a BPF program writes of a hit is what the kernel writes of it,
 * and what no program writes is not lost in silence.
 */
#include "test.h"

#include <asm/perf_regs.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/hw_breakpoint.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "attach/samplers.h"
#include "watching.h"
#include "child.h"
#include "bpf/bpf.h"
#include "bpf/counters.h"
#include "bpf/known_stack_map.h"
#include "os/counter.h"
#include "bpf/sampler.h"
#include "random_condition.h"
#include "refuse.h"
#include "shot.h"
#include "spec/condition_filter.h"

enum {
	RINGS = 4 << 20,	/* bytes: half of it for programs */
	SMALL = 128 << 10,
	STACK = 256 << 10,	/* of a thread */
	SHAPES = 300,		/* THOROUGH: 10,000 */
};

static volatile long word, guarded;
static struct wp_tickets tickets = {.map = -1};
static struct wp_filter filter;		/* of all that is loaded, */
static struct wp_known known = {-1, -1};	/* and this */

/* Load what writes a ring's samples with this id. */
static int
load_sampler(const struct perf_event_attr *attr, uint64_t id,
    const struct wp_rings *rings, unsigned ring)
{
	const struct wp_sampler sampler = {
		.id = id, .cpu = wp_rings_cpu(rings, ring),
		.ringbuf = wp_rings_bpf(rings, ring), .tickets = tickets.map,
		.line = 1 + ring, .filter = &filter, .known = known,
	};

	return wp_sampler_load(attr, &sampler);
}

/* Anew, for all rings. */
static void
make_tickets(const struct wp_rings *rings)
{
	wp_tickets_close(&tickets);
	assert_int_equal(wp_tickets_open(&tickets, wp_rings_count(rings)), 0);
}

static bool
can(struct wp_rings **rings, size_t size)
{
	struct wp_options options = {.stack = 64};
	struct wp_cause cause;

	if (wp_samplers_rings(rings, &options, true, size, NULL,
	    &cause) == 0)
		return true;
	print_message("%s\n", cause.text);
	return false;
}

static bool
needs_bpf(void)
{
	struct wp_rings *rings;

	if (!can(&rings, SMALL))
		return false;
	wp_rings_close(rings);
	return true;
}

#define NEEDS_BPF if (!needs_bpf()) skip()

/* Not one that threads inherit, which is why each counter is a processor's. */
TEST(a_program_reads_the_processors_events)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr),
		.config = PERF_COUNT_SW_PAGE_FAULTS, .inherit = 1,
	};
	const uint32_t key = 0;
	int map, inherited, own;

	NEEDS_BPF;
	map = wp_bpf_events(1);
	inherited = wp_perf_open(&attr, 0, -1);
	own = wp_counter_open(WP_COUNTER_PAGE_FAULTS, 0);
	assert_true(map >= 0 && inherited >= 0 && own >= 0);
	assert_true(wp_bpf_update(map, &key, &inherited) < 0);
	assert_int_equal(wp_bpf_update(map, &key, &own), 0);
	(void)close(map);
	(void)close(inherited);
	(void)close(own);
}

/* Each counter that is there, and all of them in one program. */
TEST(all_counters_fit_into_a_program)
{
	struct wp_options options = {.stack = 64512};
	uint32_t all = (1u << WP_COUNTERS) - 1;
	struct wp_counters counters;
	struct wp_rings *rings;
	struct wp_cause cause;

	NEEDS_BPF;
	for (unsigned i = 0; i < WP_COUNTERS; i++) {
		const int fd = wp_counter_open(i, 0);

		if (fd < 0)
			all &= ~(1u << i);
		else
			(void)close(fd);
	}
	assert_true(all != 0);
	if (wp_counters_open(&counters, all, &cause) < 0)
		fail_msg("%s", cause.text);
	if (wp_samplers_rings(&rings, &options, true, RINGS, &counters,
	    &cause) < 0)
		fail_msg("%s", cause.text);
	assert_true(options.tickets);
	wp_rings_close(rings);
	wp_counters_close(&counters);
}

/* --- the same as the kernel's --- */

enum { OURS = 77 };

/* Have an event's samples of a ring written by a program, with our id. */
static void
add_program(const struct shot *s, const struct perf_event_attr *attr,
    unsigned ring)
{
	const int program = load_sampler(attr, OURS, s->rings, ring);

	assert_true(program >= 0);
	assert_int_equal(wp_perf_set_bpf(s->events.event[ring].fd, program),
	    0);
	(void)close(program);
}

/* A word watched twice, by events with a program and without one. */
static void
arm_both(struct shot *s, const struct wp_options *options, pid_t tid)
{
	struct perf_event_attr attr = attr_of(slot(HW_BREAKPOINT_W, &word, 8),
	    *options);
	const uint64_t ours = OURS;

	attr.inherit = attr.inherit_thread = 0;
	shot_arm(s, attr, tid);
	for (unsigned i = 0; i < s->events.n; i++)
		add_program(s, &attr, i);
	assert_true(ex_formats_add(s->formats, &attr, &ours, 1) >= 0);
	shot_arm(s, attr, tid);
}

static void
expect_equal_regs(const struct ex_perf_regs *a, const struct ex_perf_regs *b)
{
	for (unsigned reg = 0; reg < PERF_REG_X86_64_MAX; reg++) {
		uint64_t one = 0, other = 0;

		assert_int_equal(ex_regs_get(a, reg, &one),
		    ex_regs_get(b, reg, &other));
		assert_int_equal(one, other);
	}
}

static void
expect_equal(const struct ex_record *a, const struct ex_record *b)
{
	assert_int_equal(a->misc, b->misc);
	assert_int_equal(a->pid, b->pid);
	assert_int_equal(a->tid, b->tid);
	assert_int_equal(a->cpu, b->cpu);
	assert_int_equal(a->sample.ip, b->sample.ip);
	assert_int_equal(a->sample.addr, b->sample.addr);
	assert_int_equal(a->sample.callchain_len, b->sample.callchain_len);
	expect_equal_regs(&a->sample.user, &b->sample.user);
	expect_equal_regs(&a->sample.intr, &b->sample.intr);
	assert_int_equal(a->sample.stack_len, b->sample.stack_len);
	assert_memory_equal(a->sample.stack, b->sample.stack,
	    a->sample.stack_len);
	/* it is written a little before the other, or after, by the same
	   clock */
	assert_true(llabs((long long)(a->time - b->time)) <
	    LIVE_PATIENCE_MS * INT64_C(1000000));
}

/* A hit so far below the stack's end, or farther. */
__attribute__((noinline)) static void
store_below(size_t bytes)
{
	volatile char *room = __builtin_alloca(bytes + 16);

	room[0] = 1;
	word++;
	room[bytes] = 1;
}

static const struct wp_options options_tried[] = {
	{.stack = 0},
	{.stack = 8},
	{.stack = 4096},
	{.stack = 16384, .kernel = true},
	{.stack = 4096, .kernel = true, .callchain = true},
	{.stack = 65528 - 1024, .for_perf = true, .kernel = true},
};

/* A thread that stores when it is asked to, until it is to end. */
static struct {
	volatile pid_t tid;
	volatile size_t depth;
	volatile int asked, done, end;
} storer;

static void *
store_when_asked(void *arg)
{
	(void)arg;
	storer.tid = gettid();
	while (!storer.end)
		if (storer.done != storer.asked) {
			store_below(storer.depth);
			storer.done = storer.asked;
		} else
			nap_us(100);
	return NULL;
}

static void
compare(const struct wp_options *options, size_t depth)
{
	struct shot s = {0};

	assert_non_null(s.formats = ex_formats_new());
	assert_true(can(&s.rings, RINGS));
	arm_both(&s, options, storer.tid);
	storer.depth = depth;
	storer.asked++;
	await(storer.done == storer.asked);
	shot_take(&s);
	assert_int_equal(s.kept, 2);
	assert_true((s.sample[0].id == OURS) != (s.sample[1].id == OURS));
	expect_equal(&s.sample[0], &s.sample[1]);
	shot_end(&s);
}

/* In a thread whose stack ends where nothing is mapped, so that some copies end
   there. */
TEST(a_program_writes_what_the_kernel_would)
{
	static const size_t depths[] = {0, 100, 4000, 20000, 100000};
	pthread_attr_t attr;
	pthread_t thread;
	char *stack;

	NEEDS_BPF;
	LIVE_NEEDS_SEVERAL;
	stack = mmap(NULL, STACK + 4096, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(stack != MAP_FAILED);
	assert_int_equal(mprotect(stack + STACK, 4096, PROT_NONE), 0);
	(void)pthread_attr_init(&attr);
	assert_int_equal(pthread_attr_setstack(&attr, stack, STACK), 0);
	assert_int_equal(pthread_create(&thread, &attr, store_when_asked,
	    NULL), 0);
	await(storer.tid != 0);
	for (size_t i = 0; i < COUNT(options_tried); i++)
		for (size_t k = 0; k < COUNT(depths); k++)
			compare(&options_tried[i], depths[k]);
	storer.end = 1;
	assert_int_equal(pthread_join(thread, NULL), 0);
	(void)munmap(stack, STACK + 4096);
}

/* Have what a condition says of this thread decided. */
static void
make_filter(const char *format)
{
	struct condition_error error;
	struct condition condition;
	char text[64];

	(void)snprintf(text, sizeof(text), format, (int)gettid());
	assert_int_equal(condition_parse(text, &condition, &error), 0);
	assert_true(condition_filter(&condition, &filter));
	condition_free(&condition);
}

/* A hit for which the condition is surely false is all there but for its stack;
   others have that, too. */
TEST(rejected_hits_have_no_stack)
{
	static const struct {
		const char *condition;
		bool wanted;
	} cases[] = {
		{"tid == %d", true}, {"tid != %d", false},
		{"pid == %d && new < 0", true}, {"%d > tid", false},
		{"cpu < 0 && tid < %d", false}, {"!(cpu >= 0)", false},
		{"new < 0 && pid != %d", false},
		{"tid != %d || cpu < 0", false},
		{"tid <= %d && cpu >= 0 || pid == 1", true},
	};

	NEEDS_BPF;
	LIVE_NEEDS_SEVERAL;
	for (size_t i = 0; i < 2 * COUNT(cases); i++) {
		const bool wanted = cases[i / 2].wanted;
		const struct wp_options options = {
			.stack = 4096, .kernel = i % 2 != 0,
		};
		struct ex_record *ours;
		struct shot s = {0};

		make_filter(cases[i / 2].condition);
		assert_non_null(s.formats = ex_formats_new());
		assert_true(can(&s.rings, RINGS));
		arm_both(&s, &options, gettid());
		word = 1;
		shot_take(&s);
		filter.n = 0;
		assert_int_equal(s.kept, 2);
		ours = &s.sample[s.sample[1].id == OURS];
		assert_int_equal(ours->id, OURS);
		assert_int_equal(ours->sample.stack_len != 0, wanted);
		if (!wanted) {
			assert_true(ours->size < 512);
			s.sample[0].sample.stack_len = 0;
			s.sample[1].sample.stack_len = 0;
		}
		expect_equal(&s.sample[0], &s.sample[1]);
		shot_end(&s);
	}
}

/* --- stacks that are known --- */

enum { MARK = 0x6d61726b, WHOLE = 4096, SHORT = 256 };

static unsigned
processors(void)
{
	return (unsigned)sysconf(_SC_NPROCESSORS_CONF);
}

/* Of a hit, what a program has written. */
struct written {
	uint8_t stack[WHOLE];
	uint64_t asked, pc, sp, fp;
};

__attribute__((noinline)) static void
store(void)
{
	word++;
	__asm__ volatile("" ::: "memory");
}

/* Sanitized, its variable could be anywhere. */
__attribute__((noinline, no_sanitize_address)) static void
store_marked(void)
{
	volatile uint64_t mark[2] = {MARK, MARK};

	store();
	mark[0] = mark[1];
}

static uint64_t
register_of(const struct ex_sample *sample, unsigned reg)
{
	uint64_t value;

	assert_true(ex_regs_get(&sample->user, reg, &value));
	return value;
}

/* What a program copies is what the kernel copies. */
static void
make_written(struct written *written)
{
	const struct wp_options options = {.stack = WHOLE, .tickets = true};
	const struct ex_sample *ours, *kernels;
	struct shot s = {0};

	assert_non_null(s.formats = ex_formats_new());
	assert_true(can(&s.rings, RINGS));
	make_tickets(s.rings);
	arm_both(&s, &options, gettid());
	store_marked();
	shot_take(&s);
	assert_int_equal(s.kept, 2);
	ours = &s.sample[s.sample[1].id == OURS].sample;
	kernels = &s.sample[s.sample[1].id != OURS].sample;
	assert_int_equal(kernels->stack_len, WHOLE);
	assert_int_equal(ours->stack_asked, ours->stack_len);
	assert_memory_equal(ours->stack, kernels->stack, ours->stack_len);
	expect_equal_regs(&ours->user, &kernels->user);
	written->asked = ours->stack_asked;
	written->pc = register_of(ours, PERF_REG_X86_IP);
	written->sp = register_of(ours, PERF_REG_X86_SP);
	written->fp = register_of(ours, PERF_REG_X86_BP);
	memcpy(written->stack, ours->stack, ours->stack_len);
	shot_end(&s);
}

/* By the mark, and the return address. */
static struct wp_known_stack
stack_of(const struct written *written)
{
	struct wp_known_stack stack = {
		.pc = written->pc, .sp = written->sp, .pid = getpid(), .n = 2,
	};

	while (stack.word[0] != MARK && stack.place[0] < SHORT - 8) {
		stack.place[0] += 8;
		memcpy(&stack.word[0], written->stack + stack.place[0],
		    sizeof(stack.word[0]));
	}
	assert_int_equal(stack.word[0], MARK);
	memcpy(&stack.word[1], written->stack, sizeof(stack.word[1]));
	return stack;
}

/* From one place, so that they have all in common. */
__attribute__((noinline)) static void
make_all(struct written *written, unsigned n, void (*before)(unsigned, void *),
    void *arg)
{
	for (volatile unsigned i = 0; i < n; i++) {
		written[i] = (struct written){0};
		before(i, arg);
		make_written(&written[i]);
	}
}

enum { NOTHING, EQUAL, MOVED, FIRST, LAST, FRAME, PLACE, POINTER, STAYED,
	PLACED, PROCESS, CASES };

/* The stack of the first, which is the same, or is otherwise by this much. */
static void
know_one(unsigned number, void *arg)
{
	const struct written *first = arg;
	struct wp_known_stack stack;

	if (number == 0)
		return;
	stack = stack_of(first);
	stack.word[0] += number == FIRST;
	stack.word[1] += number == LAST;
	stack.by_fp = number == FRAME || number == MOVED;
	stack.fp = number == FRAME ? UINT64_MAX / 3 : first->fp;
	if (number == MOVED || number == STAYED) {
		stack.place[0] |= WP_KNOWN_RELATIVE;
		stack.word[0] += number == MOVED ? WP_KNOWN_PAGE : 0;
		stack.fp += WP_KNOWN_PAGE;
		stack.sp += WP_KNOWN_PAGE;
	}
	stack.by_sp = number == PLACED;
	stack.sp += number == PLACED ? WP_KNOWN_PAGE : 0;
	stack.pc += number == PLACE;
	stack.sp += number == POINTER;
	stack.pid += number == PROCESS;
	wp_known_forget(&known, getpid());
	(void)wp_known_add(&known, &stack, 0, 0);
}

/* Only if all is as it was, or has moved together with the stack where only its
   place there matters; and a copy is what the kernel has copied. */
TEST(of_a_known_stack_there_is_a_short_copy)
{
	static struct written written[CASES];

	NEEDS_BPF;
	LIVE_NEEDS_SEVERAL;
	assert_int_equal(wp_known_open(&known, processors()), 0);
	make_all(written, CASES, know_one, written);
	for (unsigned i = 0; i < CASES; i++)
		assert_int_equal(written[i].asked, i == EQUAL || i == MOVED ?
		    SHORT : WHOLE);
	wp_known_close(&known);
}

/* Another, of the same place and pointer; each twice. */
static void
know_more(unsigned number, void *arg)
{
	const struct written *first = arg;
	struct wp_known_stack stack;

	if (number == 0)
		return;
	stack = stack_of(first);
	stack.word[0] += number - 1;
	(void)wp_known_add(&known, &stack, 0, 0);
	(void)wp_known_add(&known, &stack, 0, 0);
}

/* The newest are. */
TEST(as_many_stacks_are_known_as_fit)
{
	static struct written written[WP_KNOWN_WAYS + 2];

	NEEDS_BPF;
	LIVE_NEEDS_SEVERAL;
	assert_int_equal(wp_known_open(&known, processors()), 0);
	make_all(written, COUNT(written), know_more, written);
	for (unsigned i = 0; i < COUNT(written); i++)
		assert_int_equal(written[i].asked,
		    i >= 1 && i <= WP_KNOWN_WAYS ? SHORT : WHOLE);
	wp_known_close(&known);
}

/* The kernel's accesses are written by the kernel, in their order. */
TEST(the_kernels_accesses_are_left_to_the_kernel)
{
	const struct wp_options options = {.kernel = true, .stack = 256};
	struct shot s = {0};
	unsigned ours = 0;
	int fds[2];

	NEEDS_BPF;
	LIVE_NEEDS_SEVERAL;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], "12345678", 8), 8);
	assert_non_null(s.formats = ex_formats_new());
	assert_true(can(&s.rings, RINGS));
	arm_both(&s, &options, gettid());
	word = 1;
	assert_int_equal(read(fds[0], (void *)(uintptr_t)&word, 8), 8);
	word = 2;
	shot_take(&s);
	for (unsigned i = 0; i < s.kept; i++) {
		const bool kernel = (s.sample[i].misc &
		    PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;

		assert_false(kernel && s.sample[i].id == OURS);
		assert_true(i == 0 ||
		    s.sample[i].time >= s.sample[i - 1].time);
		ours += s.sample[i].id == OURS;
	}
	assert_int_equal(ours, 2);
	assert_int_equal(s.count.value, s.samples);
	assert_true(s.samples > 4);
	shot_end(&s);
	(void)close(fds[0]);
	(void)close(fds[1]);
}

/* --- tickets --- */

enum { RACE = 2000 };		/* stores of each thread */

static void *
race(void *arg)
{
	for (int i = 0; i < RACE; i++)
		word = (long)(uintptr_t)arg;
	return NULL;
}

static void
arm_tickets(struct shot *s, bool kernel)
{
	struct perf_event_attr attr = attr_of(slot(HW_BREAKPOINT_W, &word, 8),
	    (struct wp_options){.tickets = true, .kernel = kernel});
	const uint64_t ours = OURS;

	shot_arm(s, attr, gettid());
	for (unsigned i = 0; i < s->events.n; i++)
		add_program(s, &attr, i);
	assert_int_equal(ex_formats_ids(s->formats, 0, &ours, 1), 0);
}

/* Each number was taken once, and what was read was stored.  Few have no bytes,
   because the hits of others came between each attempt to read them. */
static void
take_tickets(struct shot *s, bool *taken, uint64_t n)
{
	const struct perf_event_header *header;
	unsigned unread = 0;

	while ((header = wp_rings_next(s->rings, UINT64_MAX)) != NULL) {
		struct wp_ticket ticket = {0};
		struct ex_record r;

		assert_int_equal(ex_record_decode(s->formats, header,
		    header->size, &r), 1);
		assert_int_equal(r.type, PERF_RECORD_SAMPLE);
		assert_true(wp_ticket_get(r.sample.raw, r.sample.raw_len,
		    &ticket));
		assert_true(ticket.number <= n && !taken[ticket.number]);
		taken[ticket.number] = true;
		if (ticket.len == 8)
			assert_true(ticket.bytes == 1 || ticket.bytes == 2);
		else
			assert_int_equal(ticket.len, 0);
		unread += ticket.len == 0;
		s->samples++;
	}
	if (unread > n / 20)
		fail_msg("%u of %u have no bytes", unread, s->samples);
}

TEST(each_hit_takes_the_next_ticket)
{
	struct wp_options options = {.tickets = true};
	bool taken[2 * RACE + 1] = {false};
	struct wp_ticket_mark mark;
	struct shot s = {0};
	pthread_t thread;

	NEEDS_BPF;
	assert_non_null(s.formats = ex_formats_new());
	assert_true(can(&s.rings, RINGS));
	make_tickets(s.rings);
	wp_options_fit(&options, &live_features);
	arm_tickets(&s, false);
	assert_int_equal(pthread_create(&thread, NULL, race, (void *)1), 0);
	(void)race((void *)2);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(wp_tickets_mark(&tickets, &s.events, &options, 0, OURS,
	    &mark));
	assert_int_equal(mark.upto, 2 * RACE);
	assert_int_equal(mark.all, 2 * RACE);
	assert_int_equal(mark.missed, 0);
	take_tickets(&s, taken, 2 * RACE);
	assert_int_equal(s.samples, 2 * RACE);
	shot_end(&s);
}

/* The kernel writes the samples of its own hits, which have none. */
TEST(a_hit_by_the_kernel_takes_a_ticket)
{
	struct wp_options options = {.tickets = true};
	struct wp_ticket_mark mark;
	struct shot s = {0};
	int fds[2];

	NEEDS_BPF;
	assert_non_null(s.formats = ex_formats_new());
	assert_true(can(&s.rings, SMALL));
	make_tickets(s.rings);
	wp_options_fit(&options, &live_features);
	arm_tickets(&s, true);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], "12345678", 8), 8);
	word = 1;
	assert_int_equal(read(fds[0], (void *)(uintptr_t)&word, 8), 8);
	assert_true(wp_tickets_mark(&tickets, &s.events, &options, 0, OURS,
	    &mark));
	shot_take(&s);
	assert_true(s.samples > 1);
	assert_int_equal(mark.upto, s.samples);
	assert_int_equal(mark.missed, 0);
	for (unsigned i = 0; i < s.kept; i++) {
		const struct ex_sample *sample = &s.sample[i].sample;
		struct wp_ticket ticket;

		assert_int_equal(wp_ticket_get(sample->raw, sample->raw_len,
		    &ticket), i == 0);
	}
	shot_end(&s);
	(void)close(fds[0]);
	(void)close(fds[1]);
}

/* --- every program can be loaded --- */

static struct perf_event_attr
any_shape(uint64_t *state)
{
	static const uint32_t types[] = {HW_BREAKPOINT_W, HW_BREAKPOINT_X};
	struct wp_options options = {
		.kernel = random_below(state, 2),
		.follow = random_below(state, 2),
		.for_perf = random_below(state, 2),
		.stack = random_below(state, 4) == 0 ?
		    random_below(state, 20) * 4096 / 8 * 8 :
		    random_below(state, 8064) * 8,
	};
	struct wp_slot at = {
		(uint64_t)random_below(state, UINT32_MAX) << 16 & ~UINT64_C(7),
		UINT64_C(1) << random_below(state, 4),
		types[random_below(state, 2)],
	};
	struct perf_event_attr attr;

	options.callchain = options.kernel && random_below(state, 2);
	options.tickets = random_below(state, 2) != 0;
	if (options.stack > 65528 - 1024)
		options.stack = 65528 - 1024;
	wp_attr_watch(&attr, &at, &options, random_below(state, 2));
	return attr;
}

/* Of a condition, as far as it has one. */
static void
any_filter(uint64_t *state, char *text, size_t size)
{
	struct condition_error error;
	struct condition condition;

	random_condition(state, 1u << random_below(state, 7), text, size);
	assert_int_equal(condition_parse(text, &condition, &error), 0);
	(void)condition_filter(&condition, &filter);
	condition_free(&condition);
}

TEST(the_verifier_accepts_every_shape)
{
	const unsigned n = getenv("THOROUGH") != NULL ? 10000 : SHAPES;
	struct wp_rings *rings;
	uint64_t random = 1;

	if (!can(&rings, SMALL))
		skip();
	make_tickets(rings);
	assert_int_equal(wp_known_open(&known, wp_rings_count(rings)), 0);
	for (unsigned i = 0; i < n; i++) {
		const struct perf_event_attr attr = any_shape(&random);
		char text[4096];
		int program;

		any_filter(&random, text, sizeof(text));
		program = load_sampler(&attr, random, rings, 0);
		if (program < 0)
			fail_msg("shape %u: type %u, stack %u, --if '%s': %d",
			    i, attr.bp_type, attr.sample_stack_user, text,
			    program);
		(void)close(program);
	}
	filter.n = 0;
	wp_known_close(&known);
	wp_rings_close(rings);
}

TEST(reads_are_delivered_without_a_program)
{
	const struct perf_event_attr attr = attr_of(slot(HW_BREAKPOINT_RW,
	    &word, 8), (struct wp_options){.stack = 64});
	struct wp_rings *rings;

	if (!can(&rings, SMALL))
		skip();
	assert_int_equal(load_sampler(&attr, 1, rings, 0), -ENOTSUP);
	wp_rings_close(rings);
}

/* --- where there is no room --- */

static void
store_often(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		word++;
}

/* Full rings lose hits, which is counted.  The first sample after that comes
   through a ring in which the kernel cannot say so; yet a record says it. */
TEST(a_loss_is_reported_before_the_next_sample)
{
	const struct wp_options options = {.stack = 4096};
	struct perf_event_attr attr = attr_of(slot(HW_BREAKPOINT_W, &word, 8),
	    options);
	const struct perf_event_header *header;
	struct shot s = {0};
	const uint64_t ours = OURS;
	bool said = false;
	cpu_set_t before;

	NEEDS_BPF;
	/* the buffer that is full is that of the processor of the next hit */
	stay_here(&before);
	assert_non_null(s.formats = ex_formats_new());
	assert_true(can(&s.rings, SMALL));
	shot_arm(&s, attr, gettid());
	for (unsigned i = 0; i < s.events.n; i++)
		add_program(&s, &attr, i);
	assert_int_equal(ex_formats_ids(s.formats, 0, &ours, 1), 0);
	assert_false(wp_rings_were_full(s.rings));
	store_often(100);
	shot_read(&s);
	assert_true(wp_rings_were_full(s.rings));
	assert_true(s.samples < 100);
	nap_us(20000);
	store_often(1);
	while ((header = wp_rings_next(s.rings, UINT64_MAX)) != NULL &&
	    header->type != PERF_RECORD_SAMPLE)
		said = said || header->type == PERF_RECORD_LOST;
	assert_non_null(header);
	assert_int_equal(((const struct wp_sample *)(const void *)header)->id,
	    ours);
	assert_true(said);
	shot_count(&s);
	assert_int_equal(s.count.value, 101);
	shot_end(&s);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

/* Bytes of BPF ring buffers that this process maps. */
static size_t
mapped_bytes(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long start, end;
	char line[512];
	size_t sum = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL)
		if (strstr(line, "bpf-map") != NULL &&
		    sscanf(line, "%lx-%lx", &start, &end) == 2)
			sum += end - start;
	(void)fclose(f);
	return sum;
}

/* What hits did not come to yet is not mapped; and all arrive, around the end
   and again. */
TEST(buffers_are_mapped_as_they_fill)
{
	enum { EACH = 64, ROUNDS = 30 };
	const struct wp_options options = {.stack = 32768};
	struct perf_event_attr attr = attr_of(slot(HW_BREAKPOINT_W, &word, 8),
	    options);
	const uint64_t ours = OURS;
	struct shot s = {0};
	cpu_set_t before;
	size_t few;

	NEEDS_BPF;
	stay_here(&before);
	assert_non_null(s.formats = ex_formats_new());
	assert_true(can(&s.rings, RINGS));
	few = mapped_bytes();
	assert_true(few < wp_rings_count(s.rings) * (RINGS / 2) / 16);
	shot_arm(&s, attr, gettid());
	for (unsigned i = 0; i < s.events.n; i++)
		add_program(&s, &attr, i);
	assert_int_equal(ex_formats_ids(s.formats, 0, &ours, 1), 0);
	for (unsigned round = 1; round <= ROUNDS; round++) {
		for (unsigned i = 0; i < EACH; i++)
			store_below(20000);
		shot_read(&s);
		assert_int_equal(s.samples, round * EACH);
	}
	assert_int_equal(s.lost, 0);
	assert_true(mapped_bytes() > few + RINGS / 2);
	for (unsigned i = 0; i < s.kept; i++) {
		assert_int_equal(s.sample[i].id, OURS);
		assert_int_equal(s.sample[i].sample.addr, (uintptr_t)&word);
	}
	shot_end(&s);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

/* --- where the kernel runs no program --- */

/* A program that reads the guarded word, and lets the sample pass. */
static int
load_reader(void)
{
	const uint64_t from = (uintptr_t)&guarded;
	const struct bpf_insn insns[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_1,
		    .src_reg = BPF_REG_10},
		{.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_1,
		    .imm = -8},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_2,
		    .imm = 8},
		{.code = BPF_LD | BPF_IMM | BPF_DW, .dst_reg = BPF_REG_3,
		    .imm = (int)(uint32_t)from},
		{.imm = (int)(uint32_t)(from >> 32)},
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_probe_read_user},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0,
		    .imm = 1},
		{.code = BPF_JMP | BPF_EXIT},
	};

	return wp_bpf_load(insns, COUNT(insns));
}

/* Watch accesses to the guarded word, and have a program read it amid a hit of
   another one: hits are those of its events, samples those of both. */
static void
shoot_amid(struct shot *s, bool program)
{
	const int reader = load_reader();
	size_t amid;

	assert_true(reader >= 0);
	shot_begin(s);
	shot_arm(s, attr_of(slot(HW_BREAKPOINT_RW, &guarded, 8),
	    (struct wp_options){.kernel = true}), gettid());
	amid = s->events.n;
	for (size_t i = 0; program && i < amid; i++)
		assert_int_equal(wp_perf_set_bpf(s->events.event[i].fd,
		    reader), 0);
	shot_arm(s, attr_of(slot(HW_BREAKPOINT_W, &word, 8),
	    (struct wp_options){.kernel = true}), gettid());
	for (size_t i = amid; i < s->events.n; i++)
		assert_int_equal(wp_perf_set_bpf(s->events.event[i].fd,
		    reader), 0);
	word = 1;
	shot_take(s);
	(void)close(reader);
}

/* So a program that itself reads what is watched would make hits that nobody
   delivers. */
TEST(no_program_runs_inside_another_and_no_sample_is_written)
{
	struct shot s;

	NEEDS_BPF;
	shoot_amid(&s, false);
	assert_true(s.count.value > 1);
	assert_int_equal(s.samples, s.count.value);
	shot_end(&s);
	shoot_amid(&s, true);
	assert_true(s.count.value > 1);
	assert_int_equal(s.samples, 1);
	assert_int_equal(s.lost, 0);
	shot_end(&s);
}

/* --- what is said of it --- */

static void
start_line(const char *option, const char *way, const char *env,
    const char *delivery, const char *access)
{
	struct outcome o;

	run_status(&o, 0, LIST("/usr/bin/env", env, watchctl(), "-o", "json",
	    "-O", "-", access, strcmp(access, "-x") == 0 ? "0x10000" :
	    "0x10000:8", option, way, "--", "/bin/true"));
	assert_string_equal(text_of(first_of(&o, "start"), "delivery"),
	    delivery);
}

TEST(the_start_line_names_the_delivery)
{
	NEEDS_BPF;
	start_line("--delivery", "bpf", "A=B", "bpf", "-w");
	start_line("--delivery", "bpf", "WATCHCTL_DELIVERY=ring", "bpf", "-w");
	start_line("--delivery", "ring", "A=B", "ring", "-w");
	start_line("-t", "60", "WATCHCTL_DELIVERY=bpf", "bpf", "-w");
	start_line("-t", "60", "WATCHCTL_DELIVERY=bpf", "bpf", "-x");
	start_line("-t", "60", "WATCHCTL_DELIVERY=bpf", "ring", "-a");
	start_line("-t", "60", "WATCHCTL_DELIVERY=ring", "ring", "-w");
	start_line("-t", "60", "A=B", "ring", "-a");
}

/* Ways to be refused BPF programs. */
/* Root, without what BPF takes. */
static bool
be_limited(int what)
{
	(void)what;
	return prctl(PR_CAPBSET_DROP, CAP_BPF, 0, 0, 0) == 0 &&
	    prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0) == 0;
}

/* As in a container. */
static bool
be_filtered(int err)
{
	return refuse_call(SYS_bpf, err, NULL, 0);
}

static const struct refused {
	bool (*way)(int what);
	int what;
	const char *const *command;
	int status, hits;
} ordinary = {be_nobody, 0, (const char *[]){"/bin/true", NULL}, 0, 0};

static void
run_refused(struct outcome *o, const struct refused *how,
    const char *const *argv, bool with_command)
{
	const char *all[ARGS];
	size_t n = append(all, 0, argv);
	struct running r;

	if (with_command)
		n = append(all, n, how->command);
	all[n] = NULL;
	start_prepared(&r, all, how->way, how->what);
	finish(&r, o);
}

/* The kernel executes nothing of a program's. */
TEST(an_ordinary_user_who_watches_execution_is_not_warned_of_the_kernel)
{
	struct outcome o;

	run_refused(&o, &ordinary, LIST(watchctl(), "-x", "0x10000", "--"),
	    true);
	assert_holds(o.err, "watching 0x10000 (at 0x10000) for execution");
	assert_lacks(o.err, "the kernel's accesses");
}

/* Whatever refuses programs, hits come by rings, without a complaint; who
   insists on BPF gets the reason, as from doctor. */
static void
expect_rings(const struct refused *how)
{
	const char *const watched = how->hits > 0 ? "counter" : "0x10000:8";
	const json_t *doctor;
	char reported[64];
	struct outcome o;

	run_refused(&o, how, LIST(watchctl(), "--user-only", "-w", watched,
	    "-o", "json", "-O", "-", "--"), true);
	assert_int_equal(o.status, how->status);
	assert_lacks(o.err, "BPF");
	(void)snprintf(reported, sizeof(reported),
	    "\"reported\":%d,\"lost\":0,", how->hits);
	assert_holds(o.out, "\"delivery\":\"ring\"");
	assert_holds(o.out, reported);

	run_refused(&o, how, LIST(watchctl(), "--user-only", "--delivery",
	    "bpf", "-w", watched, "--"), true);
	assert_int_equal(o.status, 125);
	assert_holds(o.err, "watchctl: --delivery bpf: ");
	assert_holds(o.err, "CAP_BPF");

	run_refused(&o, how, LIST("/usr/bin/env", "WATCHCTL_DELIVERY=bpf",
	    watchctl(), "doctor", "-o", "json"), false);
	assert_non_null(doctor = first_of(&o, "doctor"));
	assert_string_equal(text_of(doctor, "delivery"), "ring");
	assert_holds(text_of(doctor, "delivery_reason"), "CAP_BPF");
}

TEST(without_rights_rings_deliver)
{
	struct outcome o;

	NEEDS_BPF;
	run_refused(&o, &ordinary, LIST(watchctl(), "--user-only", "-w",
	    "0x10000:8", "--"), true);
	if (o.status == 125) {
		print_message("%s", o.err);
		skip();
	}
	expect_rings(&ordinary);
}

TEST(when_bpf_is_refused_rings_deliver)
{
	const char *const command[] = {victim("counter"), "1", "5", NULL};
	const struct refused refused[] = {
		{be_limited, 0, command, 7, 5},
		{be_filtered, EPERM, command, 7, 5},
		{be_filtered, ENOSYS, command, 7, 5},
	};

	NEEDS_BPF;
	for (size_t i = 0; i < COUNT(refused); i++)
		expect_rings(&refused[i]);
}

TEST(doctor_names_the_delivery)
{
	struct outcome o;

	NEEDS_BPF;
	run(&o, LIST("/usr/bin/env", "WATCHCTL_DELIVERY=bpf", watchctl(),
	    "doctor", "-o", "json"));
	assert_string_equal(text_of(first_of(&o, "doctor"), "delivery"), "bpf");
	run(&o, LIST("/usr/bin/env", "WATCHCTL_DELIVERY=ring", watchctl(),
	    "doctor", "-o", "json"));
	assert_string_equal(text_of(first_of(&o, "doctor"), "delivery"),
	    "ring");
	assert_string_equal(text_of(first_of(&o, "doctor"),
	    "delivery_reason"), "WATCHCTL_DELIVERY: ring");
}

RUN_LIVE_TESTS(.after_each = children_end)
