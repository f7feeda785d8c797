/*
 * helper: what a program that ends leaves in the channel about its open
 * watches.
 *
 * The test makes the channel and has it served; programs join it, so it can be
 * inspected after they have ended.
 */
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "channel_server.h"
#include "live.h"
#include "program.h"
#include "watchpoint.h"

enum { STORES = 20 };

static struct shared {
	volatile unsigned served;
} *shared;

SHARED_FIXTURE
static volatile uint64_t word;		/* watched */

static void
take_hit(struct wp_cell *cell)
{
	(void)cell;
	shared->served++;
}

static int
answer(struct wp_channel *mine)
{
	(void)mine;
	return -ENOSYS;
}

static const struct server server = {take_hit, answer};

static int
begin(void **state)
{
	char path[64];

	(void)state;
	memset((void *)shared, 0, sizeof(*shared));
	channel_open();
	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(),
	    channel_memory);
	assert_int_equal(setenv("WATCHPOINT_CHANNEL", path, 1), 0);
	channel_start_helper(&server);
	return 0;
}

static int
finish(void **state)
{
	channel_end_helper();
	channel_close();
	return children_end(state);
}

static struct wp_watch *
watch_word(uint64_t period, unsigned flags)
{
	const struct wp_attr attr = {
		.size = sizeof(attr), .addr = &word, .len = sizeof(word),
		.label = "word", .period = period, .flags = flags,
	};
	struct wp_watch *w;

	CHECK(wp_open(&attr, &w) == 0);
	return w;
}

static void
store(void)
{
	for (unsigned i = 0; i < STORES; i++)
		word = i;
}

/* Ways in which SIGTRAP does not arrive, or does. */

static void
arrives(void)
{
	store();
}

static void
is_blocked(void)
{
	sigset_t trap;

	(void)sigemptyset(&trap);
	(void)sigaddset(&trap, SIGTRAP);
	(void)pthread_sigmask(SIG_BLOCK, &trap, NULL);
	store();
}

static void
is_ignored(void)
{
	(void)signal(SIGTRAP, SIG_IGN);
	store();
}

static void
take(int sig)
{
	(void)sig;
}

static void
is_taken(void)
{
	(void)signal(SIGTRAP, take);
	store();
}

static void
is_blocked_for_a_while(void)
{
	sigset_t old;

	(void)pthread_sigmask(SIG_SETMASK, NULL, &old);
	is_blocked();
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* What a thread that goes on while exit(3) runs does. */
static _Atomic unsigned storing;

static void *
store_on(void *arg)
{
	atomic_fetch_add(&storing, 1);
	for (;;)
		store();
	return arg;
}

static void
goes_on(void)
{
	pthread_t thread;

	for (unsigned i = 0; i < 3; i++)
		CHECK(pthread_create(&thread, NULL, store_on, NULL) == 0);
	while (atomic_load(&storing) < 3)
		nap_us(100);
	store();
}

static const struct scene {
	void (*act)(void);
	uint64_t period;
	bool abrupt;		/* _exit(2) */
	unsigned undelivered, warned, goodbye;
	const char *warning;	/* part of it */
} scenes[] = {
	{arrives, 0, false, 0, 0, 1, ""},
	{arrives, 7, false, 0, 0, 1, ""},
	{arrives, 0, true, 0, 0, 0, ""},
	{is_blocked, 0, false, STORES, 1, 1, "blocked"},
	{is_ignored, 0, false, STORES, 1, 1, "ignored"},
	{is_taken, 0, false, STORES, 1, 1, "program itself"},
	{is_blocked_for_a_while, 0, false, 0, 0, 1, ""},
	{goes_on, 0, false, 0, 0, 1, ""},
};

static void
act(void *arg)
{
	const struct scene *scene = arg;

	(void)watch_word(scene->period, WP_USER_ONLY);
	CHECK(channel->program == getpid());
	scene->act();
	if (scene->abrupt)
		_exit(0);
	exit(0);
}

TEST(what_was_not_delivered_is_reported_at_the_end)
{
	for (size_t i = 0; i < COUNT(scenes); i++) {
		const struct scene *scene = &scenes[i];

		if (i > 0)
			(void)begin(state);
		program(act, scene);
		if (channel->undelivered != scene->undelivered ||
		    channel->warned != scene->warned ||
		    channel->goodbye != scene->goodbye ||
		    strstr(channel->warning, scene->warning) == NULL)
			fail_msg("scene %zu: %llu undelivered, %u warnings "
			    "(%s), goodbye %u", i,
			    (unsigned long long)channel->undelivered,
			    channel->warned, channel->warning,
			    channel->goodbye);
		assert_int_equal(channel->watch[0].exact, scene->period == 0);
		if (i + 1 < COUNT(scenes))
			(void)finish(state);
	}
}

/* It ends with nothing open: there is nothing to report. */
static void
close_and_exit(void *arg)
{
	struct wp_watch *w = watch_word(0, 0);

	(void)arg;
	store();
	wp_close(w);
	CHECK(channel->watch[0].serial == 0);
	exit(0);
}

TEST(a_program_without_watches_ends_plainly)
{
	program(close_and_exit, NULL);
	assert_int_equal(channel->undelivered, 0);
	assert_int_equal(shared->served, STORES);
}

/* The child of a fork ends by exit(3), too; that is no end of the program. */
static void
child_exits(void *arg)
{
	pid_t pid;

	(void)arg;
	(void)watch_word(0, 0);
	pid = fork();
	if (pid == 0)
		exit(0);
	CHECK(waitpid(pid, NULL, 0) == pid);
	CHECK(channel->goodbye == 0);
	store();
	exit(0);
}

TEST(a_child_that_ends_is_not_the_program)
{
	program(child_exits, NULL);
	assert_int_equal(channel->goodbye, 1);
	assert_int_equal(shared->served, STORES);
}

RUN_LIVE_TESTS(.before_each = begin, .after_each = finish)
