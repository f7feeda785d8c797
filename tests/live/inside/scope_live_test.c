/*
 * scope: a frozen variable is watched in its block and nowhere else, however
 * the block is left; and a freeze that was not in force is reported as missed.
 */
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "live.h"
#include "watchpoint.h"

static volatile uint64_t word, other;
static jmp_buf outside;
static unsigned all_slots;

static void __attribute__((noinline))
write_word(void)
{
	word++;
}

static void *
write_in_thread(void *unused)
{
	write_word();
	return unused;
}

static void
run_thread(void *(*body)(void *))
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, body, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static int
begin(void **state)
{
	(void)state;
	wp_stray_reset();
	return 0;
}

/* Nothing is left: no register is taken, and writes are nobody's business. */
static void
expect_thawed(uint64_t strays)
{
	write_word();
	assert_int_equal(wp_stray_count(), strays);
	assert_int_equal(wp_stray_missed(), 0);
	live_await_free_slots(0, all_slots);
}

TEST(a_write_in_the_block_is_stray)
{
	struct wp_place place;

	assert_string_equal(wp_stray_text(), "");
	WP_FREEZE(word) {
		write_word();
		assert_int_equal(wp_stray_count(), 1);
		other = word;
	}
	expect_thawed(1);
	wp_report_place(wp_stray_text(), &place);
	assert_string_equal(place.function, "write_word");
	assert_holds(place.file, "scope_live_test.c");
	assert_true(place.line > 0);
	wp_stray_reset();
	assert_string_equal(wp_stray_text(), "");
}

TEST(another_threads_write_is_stray)
{
	WP_FREEZE(word) {
		run_thread(write_in_thread);
		write_word();
	}
	expect_thawed(2);
}

static void *
write_permitted(void *unused)
{
	WP_PERMIT(word)
		write_word();
	write_word();
	return unused;
}

TEST(a_permit_is_the_threads_own)
{
	WP_FREEZE(word) {
		WP_PERMIT(word) {
			write_word();
			WP_PERMIT(other)
				write_word();
			assert_int_equal(wp_stray_count(), 0);
			run_thread(write_in_thread);
			assert_int_equal(wp_stray_count(), 1);
		}
		run_thread(write_permitted);
		assert_int_equal(wp_stray_count(), 2);
		WP_PERMIT(other)
			write_word();
	}
	expect_thawed(3);
}

TEST(a_member_may_be_permitted)
{
	static volatile struct { uint64_t port, limit; } config;

	WP_FREEZE(config) {
		WP_PERMIT(config.limit) {
			config.limit = 1;
			assert_int_equal(wp_stray_count(), 0);
			config.port = 1;
		}
	}
	assert_int_equal(wp_stray_count(), 1);
}

/* Ways to leave. */

static void
by_return(void)
{
	WP_FREEZE(word)
		return;
}

static void
by_break(void)
{
	WP_FREEZE(word)
		break;
}

static void
by_goto(void)
{
	WP_FREEZE(word)
		goto out;
out:
	return;
}

static void __attribute__((noinline))
jump(void)
{
	WP_FREEZE(word)
		longjmp(outside, 1);
}

static void
by_longjmp(void)
{
	if (setjmp(outside) == 0) {
		WP_FREEZE(other)
			jump();
	}
}

static void
by_longjmp_in_the_function(void)
{
	if (setjmp(outside) == 0) {
		WP_FREEZE(word)
			longjmp(outside, 1);
	}
}

static void *
end_frozen(void *unused)
{
	WP_FREEZE(word)
		pthread_exit(unused);
	return unused;
}

static void
by_the_threads_end(void)
{
	run_thread(end_frozen);
}

static void *
wait_frozen(void *unused)
{
	WP_FREEZE(word)
		for (;;)
			(void)sleep(100);
	return unused;
}

static void
by_cancellation(void)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, wait_frozen, NULL), 0);
	assert_int_equal(pthread_cancel(thread), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* From the handler of the stray write itself. */
static void
leave_hit(const struct wp_hit *hit, void *arg)
{
	assert_int_equal(wp_may_leave(hit), 1);
	wp_leave(hit);
	longjmp(*(jmp_buf *)arg, 1);
}

static void
by_a_handler(void)
{
	wp_stray_handler(leave_hit, &outside);
	if (setjmp(outside) == 0) {
		WP_FREEZE(word) {
			write_word();
			fail();
		}
	}
	wp_stray_handler(NULL, NULL);
	assert_int_equal(wp_stray_count(), 1);
	wp_stray_reset();
}

TEST(a_block_may_be_left_in_any_way)
{
	void (*const ways[])(void) = {
		by_return, by_break, by_goto,
#ifdef __GLIBC__	/* others know nothing of what is left */
		by_longjmp, by_longjmp_in_the_function, by_the_threads_end,
		by_cancellation, by_a_handler,
#endif
	};

	for (size_t i = 0; i < COUNT(ways); i++) {
		ways[i]();
		expect_thawed(0);
	}
}

static pthread_barrier_t barrier;

static void *
freeze_in_thread(void *unused)
{
	WP_FREEZE(word) {
		(void)pthread_barrier_wait(&barrier);
		(void)pthread_barrier_wait(&barrier);
	}
	return unused;
}

/* Also when the one that opened it leaves first. */
TEST(freezes_of_one_object_share_a_register)
{
	pthread_t thread;

	assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
	WP_FREEZE(word) WP_FREEZE(word) {
		assert_int_equal(pthread_create(&thread, NULL,
		    freeze_in_thread, NULL), 0);
		(void)pthread_barrier_wait(&barrier);
		live_await_free_slots(0, all_slots - 1);
		write_word();
		assert_int_equal(wp_stray_count(), 1);
	}
	write_word();
	assert_int_equal(wp_stray_count(), 2);
	(void)pthread_barrier_wait(&barrier);
	assert_int_equal(pthread_join(thread, NULL), 0);
	expect_thawed(2);
}

TEST(an_impossible_freeze_is_counted)
{
	static volatile uint64_t taken[WP_SLOTS_MAX];
	volatile unsigned ran = 0;
	unsigned n = 0;

	while (n < all_slots && WP_WATCH(taken[n]) == 0)
		n++;
	assert_int_equal(n, all_slots);
	for (unsigned i = 0; i < 2; i++)
		WP_FREEZE(word)
			ran++;
	assert_int_equal(ran, 2);
	assert_int_equal(wp_stray_missed(), 2);
	assert_int_equal(wp_stray_count(), 0);
	assert_holds(wp_stray_missed_text(), "scope_live_test.c:");
	assert_holds(wp_stray_missed_text(),
	    "WP_FREEZE(word) is not in force: no free slot");
	assert_holds(wp_stray_missed_text(),
	    "this program's other watches hold ");
	while (n-- > 0)
		assert_int_equal(WP_UNWATCH(taken[n]), 0);
	wp_stray_reset();
	assert_string_equal(wp_stray_missed_text(), "");
	expect_thawed(0);
}

TEST(a_freeze_that_is_too_long_is_counted)
{
	static char text[1024];

	WP_FREEZE(text)
		text[0] = 'x';
	assert_int_equal(wp_stray_missed(), 1);
	assert_int_equal(wp_stray_count(), 0);
}

/* It is no permit: that a permitted write was made is still known where it
   ends. */
TEST(a_permit_without_a_freeze_permits_nothing)
{
	static volatile char too_large[1024];

	word = 0;
	WP_FREEZE(word) {
		WP_PERMIT(word) {
			word = 1;
			WP_SCOPE(too_large)
				other = word;
		}
		word = 2;
	}
	assert_int_equal(wp_stray_count(), 1);
	if (strstr(wp_stray_text(), "  1 -> 2") == NULL)
		fail_msg("%s", wp_stray_text());
}

static void *
end_watched(void *unused)
{
	volatile uint64_t local = 0;

	WP_SCOPE(local) {
		live_await_free_slots(0, all_slots - 1);
		pthread_exit(unused);
	}
	return unused;
}

/* It is no freeze: nothing is stray, and it has a register of its own. */
TEST(a_watched_block_gives_up_its_register)
{
	volatile uint64_t local = 0;

	WP_SCOPE(local) {
		WP_SCOPE(local) {
			live_await_free_slots(0, all_slots - 1);
			WP_FREEZE(local)
				live_await_free_slots(0, all_slots - 2);
			local++;
		}
		live_await_free_slots(0, all_slots - 1);
	}
	expect_thawed(0);
#ifdef __GLIBC__
	run_thread(end_watched);
	expect_thawed(0);
#else
	(void)end_watched;
#endif
}

TEST(one_object_is_watched_once)
{
	assert_int_equal(WP_WATCH(word), 0);
	assert_int_equal(WP_WATCH(word), 0);
	live_await_free_slots(0, all_slots - 1);
	write_word();
	assert_int_equal(WP_UNWATCH(word), 0);
	assert_int_equal(WP_UNWATCH(word), -ENOENT);
	expect_thawed(0);
}

/* The exit status of a function in a child. */
static int
in_child(int (*body)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(body());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) :
	    128 + WTERMSIG(status);
}

static int
write_in_child(void)
{
	write_word();
	if (wp_stray_count() != 0)
		return 1;
	WP_FREEZE(word)
		write_word();
	write_word();
	return wp_stray_count() == 1 && wp_stray_missed() == 0 ? 0 : 2;
}

TEST(a_child_is_not_frozen_but_can_freeze)
{
	WP_FREEZE(word) {
		assert_int_equal(in_child(write_in_child), 0);
		write_word();
	}
	expect_thawed(1);
}

TEST(writes_that_no_signal_shows_are_counted)
{
	sigset_t trap, before;

	(void)sigemptyset(&trap);
	(void)sigaddset(&trap, SIGTRAP);
	assert_int_equal(pthread_sigmask(SIG_BLOCK, &trap, &before), 0);
	WP_FREEZE(word)
		write_word();
	assert_int_equal(wp_stray_count() + wp_stray_missed(), 1);
	/* and the signal that comes too late does no harm */
	assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
	assert_int_equal(wp_stray_count() + wp_stray_missed(), 1);
	wp_stray_reset();
	expect_thawed(0);
}

static int
assert_after_a_stray_write(void)
{
	WP_FREEZE(word) {
		WP_ASSERT_NO_STRAY();
		write_word();
	}
	WP_ASSERT_NO_STRAY();
	return 0;
}

static int
assert_after_a_freeze_that_was_none(void)
{
	static char text[1024];

	WP_FREEZE(text)
		text[0] = 'x';
	WP_ASSERT_NO_STRAY();
	return 0;
}

static int
assert_after_nothing(void)
{
	WP_FREEZE(word)
		WP_PERMIT(word)
			write_word();
	WP_ASSERT_NO_STRAY();
	return 0;
}

TEST(the_assertion_aborts)
{
	assert_int_equal(in_child(assert_after_a_stray_write), 128 + SIGABRT);
	assert_int_equal(in_child(assert_after_a_freeze_that_was_none),
	    128 + SIGABRT);
	assert_int_equal(in_child(assert_after_nothing), 0);
}

int
main(void)
{
	(void)setenv("WATCHPOINT_HELPER", watchctl(), 1);
	all_slots = live_free_slots(0);
	return run_live_tests(.before_each = begin);
}
