/* stray: counting stray accesses, keeping the last report. */
#include "test.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "handler/trap.h"

enum { THREADS = 4, TIMES = 20000 };

static int
reset(void **state)
{
	(void)state;
	wp_stray_handler(NULL, NULL);
	wp_stray_reset();
	return 0;
}

TEST(the_last_stray_is_kept)
{
	static char longer[2 * WP_REPLY_MAX];

	assert_int_equal(wp_stray_count(), 0);
	assert_string_equal(wp_stray_text(), "");
	wp_stray_note("one");
	assert_string_equal(wp_stray_text(), "one");
	wp_stray_note("two");
	assert_string_equal(wp_stray_text(), "two");
	assert_int_equal(wp_stray_count(), 2);
	memset(longer, 'x', sizeof(longer) - 1);
	wp_stray_note(longer);
	assert_int_equal(strlen(wp_stray_text()), WP_REPLY_MAX - 1);
	wp_stray_reset();
	assert_int_equal(wp_stray_count(), 0);
	assert_string_equal(wp_stray_text(), "");
}

static void *
note_often(void *arg)
{
	for (unsigned i = 0; i < TIMES; i++)
		wp_stray_note(arg);
	return NULL;
}

/* All are counted, and the text is one of them. */
TEST(several_threads_take_turns)
{
	static char texts[THREADS][16] = {"aaaaaaaa", "bbbb", "cc", "d"};
	pthread_t thread[THREADS];
	bool found = false;

	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, note_often,
		    texts[i]), 0);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	assert_int_equal(wp_stray_count(), THREADS * TIMES);
	for (unsigned i = 0; i < THREADS; i++)
		found |= strcmp(wp_stray_text(), texts[i]) == 0;
	assert_true(found);
}

/* fork(2) may come while a thread writes: its child has no such thread. */
TEST(a_child_does_not_wait_for_its_parents_threads)
{
	static char theirs[] = "theirs";
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, note_often, theirs),
	    0);
	for (unsigned i = 0; i < 20; i++) {
		int status = -1;
		pid_t pid = fork();

		if (pid == 0) {
			wp_stray_note("mine");
			_exit(strcmp(wp_stray_text(), "mine") != 0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static const struct wp_hit *called_with;
static void *called_arg;

static void
remember(const struct wp_hit *hit, void *arg)
{
	called_with = hit;
	called_arg = arg;
}

TEST(a_handler_is_called)
{
	const struct wp_hit hit = {.nth = 1};
	int arg;

	wp_stray_call(&hit);
	assert_null(called_with);
	wp_stray_handler(remember, &arg);
	wp_stray_call(&hit);
	assert_ptr_equal(called_with, &hit);
	assert_ptr_equal(called_arg, &arg);
	called_with = NULL;
	wp_stray_handler(NULL, NULL);
	wp_stray_call(&hit);
	assert_null(called_with);
}

RUN_TESTS(.before_each = reset)
