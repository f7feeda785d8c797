/*
 * scope: blocks are left properly, whichever way.  This can be tested without
 * breakpoints: permits form a list, which must be restored.
 */
#include "test.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "handler/watches.h"

static int x, y;
static jmp_buf outside;

/* How many permits this thread is in; the innermost is of *addr. */
static unsigned
depth(const void *addr)
{
	unsigned n = 0;

	for (struct wp_scope *s = *wp_permits(); s != NULL; s = s->outer)
		n++;
	if (n > 0 && addr != NULL)
		assert_ptr_equal((*wp_permits())->addr, addr);
	return n;
}

/* Write over the stack where other functions had their frames. */
static void __attribute__((noinline))
overwrite_stack(void)
{
	unsigned char junk[4096];

	memset(junk, 0xa5, sizeof(junk));
	__asm__ volatile("" : : "r"(junk) : "memory");
}

/* Nothing of a block is left: also not in what longjmp and the end of a thread
   walk along. */
static void
expect_outside(void)
{
	jmp_buf here;

	assert_int_equal(depth(NULL), 0);
	overwrite_stack();
	if (setjmp(here) == 0)
		longjmp(here, 1);
	assert_int_equal(depth(NULL), 0);
}

TEST(blocks_nest)
{
	unsigned times = 0;

	WP_PERMIT(x) {
		assert_int_equal(depth(&x), 1);
		WP_PERMIT(y) WP_PERMIT(x) {
			assert_int_equal(depth(&x), 3);
			assert_ptr_equal((*wp_permits())->outer->addr, &y);
			assert_int_equal((*wp_permits())->len, sizeof(x));
			times++;
		}
		assert_int_equal(depth(&x), 1);
	}
	assert_int_equal(times, 1);
	expect_outside();
}

static int
leave_by_return(int n)
{
	WP_PERMIT(x) WP_PERMIT(y)
		if (n > 0)
			return (int)depth(&y);
	return (int)depth(NULL);
}

TEST(break_continue_goto_and_return)
{
	unsigned rounds = 0;

	assert_int_equal(leave_by_return(1), 2);
	expect_outside();
	assert_int_equal(leave_by_return(0), 0);
	for (unsigned i = 0; i < 3; i++) {
		WP_PERMIT(x) {
			WP_PERMIT(y) {
				if (i == 0)
					break;
				if (i == 1)
					continue;
				goto out;
			}
			assert_int_equal(depth(&x), 1);
			rounds++;
		}
		assert_int_equal(depth(NULL), 0);
	}
out:
	assert_int_equal(rounds, 2);
	expect_outside();
}

TEST(the_argument_is_evaluated_once)
{
	int table[4], i = 0;

	WP_PERMIT(table[i++])
		assert_int_equal(depth(&table[0]), 1);
	assert_int_equal(i, 1);
	expect_outside();
}

/* Whether a block is entered a million times on the same stack. */
TEST(a_block_releases_its_place)
{
	for (volatile unsigned i = 0; i < 1000000; i++)
		WP_PERMIT(x)
			if (i % 2 == 0)
				continue;
	expect_outside();
}

static void __attribute__((noinline))
jump_out(void)
{
	WP_PERMIT(x)
		longjmp(outside, 1);
}

TEST(longjmp_to_another_function)
{
	if (setjmp(outside) == 0) {
		WP_PERMIT(y)
			jump_out();
	}
	expect_outside();
}

TEST(longjmp_to_the_same_function)
{
	volatile unsigned n = 0;

	if (setjmp(outside) == 0) {
		WP_PERMIT(x) WP_PERMIT(y) {
			n = depth(&y);
			longjmp(outside, 1);
		}
	}
	assert_int_equal(n, 2);
	expect_outside();
}

TEST(longjmp_inside_a_block_does_not_leave_it)
{
	WP_PERMIT(x) {
		if (setjmp(outside) == 0) {
			WP_PERMIT(y)
				jump_out();
		}
		assert_int_equal(depth(&x), 1);
	}
	expect_outside();
}

/* What was left when a thread ended: seen by a destructor of its own. */
static unsigned left_over = 99;

static void
look(void *unused)
{
	(void)unused;
	left_over = depth(NULL);
}

static void *
run_and_look(void (*run)(void))
{
	static pthread_key_t key;
	static int made;

	if (!made && pthread_key_create(&key, look) == 0)
		made = 1;
	(void)pthread_setspecific(key, &key);
	left_over = 99;
	run();
	return NULL;
}

static void __attribute__((noinline))
end_inside(void)
{
	WP_PERMIT(y)
		pthread_exit(NULL);
}

static void
end_in_blocks(void)
{
	WP_PERMIT(x)
		end_inside();
}

static void
wait_in_a_block(void)
{
	WP_PERMIT(x)
		for (;;)
			(void)sleep(100);
}

static void *
ends(void *unused)
{
	(void)unused;
	return run_and_look(end_in_blocks);
}

static void *
is_cancelled(void *unused)
{
	(void)unused;
	return run_and_look(wait_in_a_block);
}

TEST(a_thread_ends_in_a_block)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, ends, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(left_over, 0);
	assert_int_equal(pthread_create(&thread, NULL, is_cancelled, NULL), 0);
	assert_int_equal(pthread_cancel(thread), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(left_over, 0);
}

/* Two coroutines leave their blocks in the order in which they entered them. */
static ucontext_t contexts[3];

static void
coroutine(int self, int next)
{
	WP_PERMIT(x) {
		(void)swapcontext(&contexts[self], &contexts[next]);
	}
	(void)swapcontext(&contexts[self], &contexts[next]);
}

static void *
run_coroutines(void *unused)
{
	const size_t size = 65536;
	unsigned char *stacks = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (stacks == MAP_FAILED)
		return unused;
	for (int i = 0; i < 2; i++) {
		(void)getcontext(&contexts[i]);
		contexts[i].uc_stack.ss_sp = &stacks[(size_t)i * size];
		contexts[i].uc_stack.ss_size = size;
		makecontext(&contexts[i], (void (*)(void))coroutine, 2, i,
		    i + 1);
	}
	for (int i = 0; i < 2; i++)
		(void)swapcontext(&contexts[2], &contexts[0]);
	left_over = depth(NULL);
	(void)munmap(stacks, 2 * size);
	pthread_exit(NULL);
}

TEST(coroutines_leave_in_any_order)
{
	pthread_t thread;

	left_over = 99;
	assert_int_equal(pthread_create(&thread, NULL, run_coroutines, NULL),
	    0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(left_over, 0);
}

TEST(a_scope_is_left_once)
{
	struct wp_scope first = {.state = 0}, second = {.state = 0};

	assert_ptr_equal(wp_scope_permit(&first, &x, sizeof(x)), &first);
	assert_ptr_equal(wp_scope_permit(&second, &y, sizeof(y)), &second);
	assert_null(wp_scope_leave(&first));
	assert_int_equal(depth(&y), 1);
	assert_null(wp_scope_leave(&first));
	assert_int_equal(depth(&y), 1);
	assert_null(wp_scope_leave(&second));
	expect_outside();
}

RUN_TESTS()
