/*
 * stack: backtraces of this program are named, and each is kept once, with an
 * id that is the same in another run.
 */
#include "test.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "kernel_symbol.h"
#include "capture.h"
#include "space/space.h"
#include "stack/stack.h"

#define OWN __attribute__((noinline))

/* --- this program, caught by an int3 --- */

static struct capture caught;
static volatile long sink;

__attribute__((always_inline)) static inline long
inlined(long n)
{
	__asm__ volatile("int3\n	.globl after_trap\n"
	    "	.hidden after_trap\nafter_trap: nop");
	return n + sink;
}

extern const char after_trap[];

static OWN long
trap(long n)
{
	return inlined(n) + sink;
}

static OWN long
nest(long n)
{
	return (n == 0 ? trap(sink) : nest(n - 1)) + sink;
}

static void *
thread(void *arg)
{
	sink = nest((intptr_t)arg);
	return NULL;
}

/* In a thread of its own, so that its callers are the same for any test. */
static void
in_thread(long depth)
{
	pthread_t id;

	if (pthread_create(&id, NULL, thread, (void *)(intptr_t)depth) == 0)
		(void)pthread_join(id, NULL);
}

static void
catch(long depth)
{
	capture_call(&caught, CAPTURE_STACK, in_thread, depth);
}

static struct ex_space *space;
static struct ex_process *process;
static struct ex_stacks *stacks;

static const struct ex_stack *
stack_of(uint64_t first_pc, bool after)
{
	const struct ex_stack *stack = ex_stack_of(stacks, process,
	    &caught.sample, first_pc, after);

	assert_non_null(stack);
	return stack;
}

static void
assert_functions(const struct ex_stack *stack, const char *const *name,
    unsigned n)
{
	unsigned i;

	assert_true(stack->n >= n);
	for (i = 0; i < n; i++)
		if (stack->frame[i].function == NULL ||
		    strcmp(stack->frame[i].function, name[i]) != 0)
			fail_msg("frame %u: %s, not %s", i,
			    stack->frame[i].function, name[i]);
}

TEST(names_frames)
{
	static const char *const names[] = {
		"inlined", "trap", "nest", "nest", "thread"
	};
	const struct ex_stack *stack;
	const struct ex_frame *frame;

	catch(1);
	stack = stack_of(0, false);
	assert_functions(stack, names, 5);
	assert_int_equal(stack->end, EX_END_OUTERMOST);
	frame = stack->frame;
	assert_true(frame[0].inlined && !frame[1].inlined && !frame[2].inlined);
	assert_int_equal(frame[0].pc, (uintptr_t)after_trap);
	assert_int_equal(frame[1].pc, frame[0].pc);
	assert_int_equal(frame[1].vaddr, frame[0].vaddr);
	assert_int_equal(frame[1].offset, frame[1].pc - (uintptr_t)trap);
	assert_int_equal(frame[2].offset, frame[2].pc - (uintptr_t)nest);
	assert_string_equal(ex_module_name(frame[1].module), "stack_test");
	assert_holds(frame[0].file, "stack_test.c");
	/* a call's line, not that of what comes after it */
	assert_int_equal(frame[3].line, frame[2].line);
	assert_true(frame[0].line > 0 && frame[0].line < frame[1].line &&
	    frame[1].line < frame[2].line && frame[2].line < frame[4].line);
}

TEST(keeps_each_once)
{
	const struct ex_stack *one, *two;

	catch(1);
	one = stack_of(0, false);
	assert_ptr_equal(stack_of(0, false), one);
	catch(2);
	two = stack_of(0, false);
	assert_ptr_not_equal(one, two);
	assert_int_not_equal(one->id, two->id);
	assert_int_equal(two->n, one->n + 1);
	assert_int_equal(two->index, one->index + 1);
	assert_true(one->id != 0 && two->id != 0);

	/* a copy cut short is another backtrace */
	caught.sample.stack_asked = caught.sample.stack_len = 0;
	two = stack_of(0, false);
	assert_int_equal(two->n, 2);
	assert_int_equal(two->end, EX_END_STACK);
}

TEST(shows_the_instruction)
{
	const struct ex_stack *sampled, *before, *first;
	const uint64_t pc = (uintptr_t)after_trap;

	catch(1);
	sampled = stack_of(0, false);
	before = stack_of(0, true);
	assert_int_equal(before->frame[0].pc, pc);
	assert_int_not_equal(before->id, sampled->id);
	first = stack_of(pc - 1, false);
	assert_int_equal(first->frame[0].pc, pc - 1);
	assert_int_not_equal(first->id, sampled->id);
	assert_int_equal(first->n, sampled->n);
	assert_string_equal(first->frame[0].function, "inlined");
	assert_int_equal(first->frame[2].pc, sampled->frame[2].pc);
}

TEST(puts_the_kernel_first)
{
	const uint64_t read = kernel_symbol("ksys_read");
	static uint64_t chain[] = {
		PERF_CONTEXT_KERNEL, 0, 0, UINT64_C(1) << 63,
		PERF_CONTEXT_USER, 0x1000,
	};
	const struct ex_stack *user, *stack;

	catch(0);
	user = stack_of(0, false);
	chain[1] = read + 16;
	chain[2] = read;
	caught.sample.callchain = (const uint8_t *)chain;
	caught.sample.callchain_len = COUNT(chain);
	stack = stack_of(0, false);
	assert_int_equal(stack->n, user->n + 3);
	assert_true(stack->frame[0].kernel && stack->frame[2].kernel);
	assert_null(stack->frame[2].function);
	assert_int_equal(stack->frame[2].pc, UINT64_C(1) << 63);
	assert_false(stack->frame[3].kernel);
	assert_int_equal(stack->frame[3].pc, user->frame[0].pc);
	assert_int_not_equal(stack->id, user->id);
	if (read == 0)
		return;
	assert_string_equal(stack->frame[0].function, "ksys_read");
	assert_int_equal(stack->frame[0].offset, 16);
	/* a return address belongs to what is before it */
	if (stack->frame[1].function != NULL)
		assert_string_not_equal(stack->frame[1].function, "ksys_read");
}

/* Of a recording that does not say which kernel it was made by. */
TEST(names_no_other_kernels_functions)
{
	struct ex_space *recorded = ex_space_new(EX_RECORDED);
	struct ex_stacks *store = ex_stacks_new(recorded);
	const struct ex_sample sample = { .ip = kernel_symbol("ksys_read") };
	const struct ex_stack *stack;

	assert_non_null(store);
	stack = ex_stack_of(store, ex_space_process(recorded, 1), &sample, 0,
	    false);
	assert_non_null(stack);
	assert_int_equal(stack->n, sample.ip != 0);
	if (stack->n > 0)
		assert_null(stack->frame[0].function);
	ex_stacks_free(store);
	ex_space_free(recorded);
}

static void
learn_mapping(pid_t pid, uint64_t start, uint64_t pages, const char *path)
{
	const struct ex_record record = {
		.type = PERF_RECORD_MMAP2, .pid = pid, .tid = pid,
		.mmap = { .start = start, .len = pages * 4096,
		    .prot = PROT_EXEC, .path = path },
	};

	ex_space_learn(space, &record);
}

/* A backtrace without registers: it is the same whatever is mapped. */
static const struct ex_stack *
child_chain(pid_t child)
{
	const uint64_t chain[] = {
		PERF_CONTEXT_USER, (uintptr_t)after_trap
	};
	const struct ex_sample sample = {
		.callchain = (const uint8_t *)chain, .callchain_len = 2,
	};
	const struct ex_stack *stack = ex_stack_of(stacks,
	    ex_space_process(space, child), &sample, 0, false);

	assert_non_null(stack);
	return stack;
}

/* A forked child has its parent's code at its parent's addresses. */
TEST(shares_stacks_between_processes)
{
	const pid_t child = 1 << 30;
	const struct ex_record fork = {
		.type = PERF_RECORD_FORK, .pid = child, .tid = child,
		.task = { child, getpid(), child, getpid(), 0 },
	};
	const struct ex_stack *parents, *before, *after;

	catch(1);
	parents = stack_of(0, false);
	ex_space_learn(space, &fork);
	assert_ptr_equal(ex_stack_of(stacks, ex_space_process(space, child),
	    &caught.sample, 0, false), parents);

	/* until it maps something else there */
	before = child_chain(child);
	assert_non_null(before->frame[0].module);
	learn_mapping(child, (uintptr_t)after_trap / 4096 * 4096, 1, "//anon");
	after = child_chain(child);
	assert_int_equal(after->frame[0].pc, before->frame[0].pc);
	assert_null(after->frame[0].module);
	assert_ptr_equal(stack_of(0, false), parents);
}

/* The same places at other addresses have the same id, and can be
   distinguished; the first of them again is itself. */
TEST(numbers_those_of_one_id)
{
	enum { PROCESSES = 3, PAGE = 4096 };
	const struct ex_stack *stack[PROCESSES];

	for (unsigned i = 0; i < 2 * PROCESSES; i++) {
		const pid_t pid = (1 << 29) + (pid_t)(i % PROCESSES);
		const uint64_t start = UINT64_C(1) << (40 + i % PROCESSES);
		const uint64_t chain[] = {PERF_CONTEXT_USER, start + PAGE + 8};
		const struct ex_sample sample = {
			.callchain = (const uint8_t *)chain,
			.callchain_len = 2,
		};
		const struct ex_stack *found;

		if (i < PROCESSES)
			learn_mapping(pid, start, 2, "/proc/self/exe");
		found = ex_stack_of(stacks, ex_space_process(space, pid),
		    &sample, 0, false);
		assert_non_null(found);
		if (i >= PROCESSES) {
			assert_ptr_equal(found, stack[i % PROCESSES]);
			continue;
		}
		stack[i] = found;
		assert_int_equal(found->id, stack[0]->id);
		assert_int_equal(found->variant, i);
		assert_int_equal(found->frame[0].pc, chain[1]);
	}
}

TEST(distinguishes_how_stacks_end)
{
	static const uint64_t chain[] = { PERF_CONTEXT_USER, 0x5000 };
	const struct ex_sample chained = {
		.callchain = (const uint8_t *)chain, .callchain_len = 2,
	};
	const struct ex_sample compat = {
		.user = { PERF_SAMPLE_REGS_ABI_32, 1 << PERF_REG_X86_IP,
		    (const uint8_t *)&chain[1] },
	};
	const struct ex_stack *one, *other;

	one = ex_stack_of(stacks, process, &chained, 0, false);
	other = ex_stack_of(stacks, process, &compat, 0, false);
	assert_true(one->n == 1 && other->n == 1);
	assert_int_equal(one->frame[0].pc, other->frame[0].pc);
	assert_int_equal(one->end, EX_END_NO_REGS);
	assert_int_equal(other->end, EX_END_NO_CFI);
	assert_int_not_equal(one->id, other->id);
}

/* What is mapped over the code that a sample was in takes its names away,
   though nothing in the sample differs; and gives them back. */
TEST(remembers_nothing_of_other_generations)
{
	const struct ex_stack *stack, *other;

	catch(1);
	stack = stack_of(0, false);
	for (int i = 0; i < 3; i++) {
		assert_non_null(stack->frame[0].module);
		learn_mapping(getpid(), (uintptr_t)after_trap / 4096 * 4096, 1,
		    "//anon");
		other = stack_of(0, false);
		assert_null(other->frame[0].module);
		assert_ptr_equal(stack_of(0, false), other);
		capture_maps(space, getpid());
		assert_ptr_equal(stack_of(0, false), stack);
	}
}

/* A process that keeps changing its code: no key is good for long. */
TEST(survives_many_generations)
{
	const uint64_t start = UINT64_C(1) << 40, pages = 70000;
	const struct ex_stack *stack;
	uint64_t i, generation;

	catch(1);
	stack = stack_of(0, false);
	learn_mapping(getpid(), start, pages, "/no/such/file");
	generation = ex_process_generation(process);
	for (i = 0; i < pages; i++) {
		learn_mapping(getpid(), start + i * 4096, 1, "//anon");
		assert_ptr_equal(stack_of(0, false), stack);
	}
	assert_true(ex_process_generation(process) >= generation + pages);
}

/* Backtraces without registers, of addresses that nobody knows. */
static const struct ex_stack *
chain_stack(uint64_t *chain, unsigned n, unsigned number)
{
	struct ex_sample sample = { .callchain = (const uint8_t *)chain };

	chain[0] = PERF_CONTEXT_USER;
	chain[1] = 0x100000 + number % 1000;
	chain[n] = 0x200000 + number / 1000;
	sample.callchain_len = n + 1;
	return ex_stack_of(stacks, process, &sample, 0, false);
}

TEST(keeps_many)
{
	const unsigned many = 100000;
	const struct ex_stack **stack = calloc(many, sizeof(stack[0]));
	uint64_t chain[12] = { 0 };
	unsigned i, base;

	assert_non_null(stack);
	for (i = 0; i < many; i++) {
		stack[i] = chain_stack(chain, 10, i);
		assert_non_null(stack[i]);
	}
	base = stack[0]->index;
	for (i = 0; i < many; i++) {
		assert_ptr_equal(chain_stack(chain, 10, i), stack[i]);
		assert_int_equal(stack[i]->index, base + i);
		assert_int_equal(stack[i]->n, 10);
		assert_int_equal(stack[i]->frame[9].pc, 0x200000 + i / 1000);
		assert_int_equal(stack[i]->end, EX_END_NO_REGS);
	}
	free(stack);
}

/* What nobody holds is forgotten when there is too much; what is held is found
   again, and so is what is seen all the time. */
TEST(forgets)
{
	enum { FRAMES = 10, LIMIT = 1 << 20, MANY = 20000 };
	struct ex_stacks *const all = stacks;
	const struct ex_stack *held, *often, *again;
	uint64_t chain[12] = { 0 };
	unsigned often_index, first = 0;

	ex_stacks_limit(LIMIT);
	assert_non_null(stacks = ex_stacks_new(space));
	held = chain_stack(chain, FRAMES, 0);
	ex_stack_hold(held);
	often_index = chain_stack(chain, FRAMES, 1)->index;
	for (unsigned i = 2; i < MANY; i++) {
		again = chain_stack(chain, FRAMES, i);
		if (i == 2)
			first = again->index;
		assert_int_equal(again->index, i);
		assert_int_equal(again->variant, 0);
		often = chain_stack(chain, FRAMES, 1);
		assert_int_equal(often->index, often_index);
		assert_int_equal(often->n, FRAMES);
	}
	assert_ptr_equal(chain_stack(chain, FRAMES, 0), held);
	again = chain_stack(chain, FRAMES, 2);
	assert_int_not_equal(again->index, first);
	assert_int_equal(again->n, FRAMES);
	assert_int_equal(again->frame[9].pc, 0x200000);
	ex_stack_let_go(held);
	ex_stacks_free(stacks);
	ex_stacks_limit((size_t)128 << 20);
	stacks = all;
}

TEST(has_no_frames_without_a_sample)
{
	const struct ex_sample sample = { .ip = 0 };
	const struct ex_stack *stack;

	stack = ex_stack_of(stacks, process, &sample, 0x1234, true);
	assert_non_null(stack);
	assert_int_equal(stack->n, 0);
	assert_int_equal(stack->end, EX_END_NO_REGS);
}

static uint64_t
id_here(void)
{
	catch(3);
	return stack_of(0, false)->id;
}

/* Another run, which the loader puts elsewhere. */
TEST(gives_the_same_id_in_another_run)
{
	uint64_t id = 0;
	FILE *run;

	run = popen("exec ./stack_test id", "r");
	assert_non_null(run);
	assert_int_equal(fscanf(run, "%" SCNx64, &id), 1);
	assert_int_equal(pclose(run), 0);
	assert_int_equal(id, id_here());
}

static int
set_up(void **state)
{
	(void)state;
	process = capture_self(&space);
	if (process == NULL || (stacks = ex_stacks_new(space)) == NULL)
		return -1;
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	ex_stacks_free(stacks);
	ex_space_free(space);
	return 0;
}

int
main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "id") == 0) {
		if (set_up(NULL) != 0)
			return 1;
		(void)printf("%" PRIx64 "\n", id_here());
		(void)tear_down(NULL);
		return 0;
	}
	return run_all_tests(.before_all = set_up, .after_all = tear_down);
}
