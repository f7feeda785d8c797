/* open: invalid attributes are refused before anything is armed. */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "handler/watches.h"

static uint64_t word;

static void
handler(const struct wp_hit *hit, void *arg)
{
	(void)hit;
	(void)arg;
}

#define SIZED(n, length, ...)						\
	{.size = (n), .addr = &word, .len = (length), ##__VA_ARGS__}
#define ATTR(...)							\
	SIZED(sizeof(struct wp_attr), sizeof(word), ##__VA_ARGS__)
#define EMPTY(n) SIZED(n, 0)

static const struct refused {
	const char *what;
	struct wp_attr attr;
	const char *cause;
} refused[] = {
	{"no size", SIZED(0, 8), "sizeof(struct wp_attr)"},
	{"no room for a length", SIZED(offsetof(struct wp_attr, len), 8),
	    "sizeof(struct wp_attr)"},
	{"nothing to watch", EMPTY(sizeof(struct wp_attr)), "len is 0"},
	{"an access that is none", ATTR(.access = (enum wp_access)'z'),
	    "WP_WRITE, WP_READ, WP_ACCESS and WP_EXEC"},
	{"a length of code", ATTR(.access = WP_EXEC), "one instruction"},
	{"an action that is none", ATTR(.action = 8), "WP_ABORT"},
	{"nobody to call", ATTR(.action = WP_CALL), "handler is NULL"},
	{"a handler for nothing", ATTR(.action = WP_PRINT, .handler = handler),
	    "lacks WP_CALL"},
	{"threads that are none", ATTR(.threads = (enum wp_threads)2),
	    "WP_THIS_THREAD"},
	{"a flag that is none", ATTR(.flags = 32), "enum wp_flags"},
	{"a period beyond all", ATTR(.period = UINT64_MAX), "period"},
};

TEST(attributes_that_make_no_sense)
{
	for (size_t i = 0; i < COUNT(refused); i++) {
		struct wp_watch *w = (void *)&word;
		int err = wp_open(&refused[i].attr, &w);

		if (err != -EINVAL || w != NULL ||
		    strstr(wp_cause(), refused[i].cause) == NULL)
			fail_msg("%s: %d, %s", refused[i].what, err,
			    wp_cause());
	}
	assert_int_equal(wp_state.nopen, 0);
	assert_false(wp_state.handling);
}

/* An older program's struct ends earlier: what stands behind it is not ours. */
TEST(older_attributes_are_shorter)
{
	struct wp_attr attr = EMPTY(offsetof(struct wp_attr, action));
	struct wp_watch *w;

	attr.action = 8;
	attr.flags = ~0u;
	assert_int_equal(wp_open(&attr, &w), -EINVAL);
	assert_holds(wp_cause(), "len is 0");
}

/* A newer one's ends later: if nothing stands there it is understood. */
TEST(newer_attributes_are_longer)
{
	struct {
		struct wp_attr known;
		uint64_t unknown;
	} attr = {EMPTY(sizeof(attr)), 0};
	struct wp_watch *w;

	assert_int_equal(wp_open(&attr.known, &w), -EINVAL);
	assert_holds(wp_cause(), "len is 0");
	attr.unknown = 1ull << 63;
	assert_int_equal(wp_open(&attr.known, &w), -E2BIG);
	assert_holds(wp_cause(), "newer");
	attr.unknown = 0;
	attr.known.size = SIZE_MAX;
	assert_int_equal(wp_open(&attr.known, &w), -E2BIG);
}

static void *
ask_cause(void *arg)
{
	(void)arg;
	return (void *)(uintptr_t)wp_cause();
}

TEST(each_thread_has_its_own_cause)
{
	struct wp_attr attr = EMPTY(sizeof(attr));
	struct wp_watch *w;
	pthread_t thread;
	void *other;

	assert_int_equal(wp_open(&attr, &w), -EINVAL);
	assert_int_equal(pthread_create(&thread, NULL, ask_cause, NULL), 0);
	assert_int_equal(pthread_join(thread, &other), 0);
	assert_string_equal(other, "no error");
	assert_string_not_equal(wp_cause(), "no error");
}

TEST(there_need_not_be_a_watch)
{
	uint64_t count;

	wp_close(NULL);
	/* an entry that nobody has opened */
	assert_int_equal(wp_enable(&wp_state.watch[0]), -EINVAL);
	assert_string_equal(wp_cause(), "the watch is not open");
	assert_int_equal(wp_disable(&wp_state.watch[0]), -EINVAL);
	assert_int_equal(wp_count(&wp_state.watch[0], &count), -EINVAL);
	assert_int_equal(wp_move(&wp_state.watch[0], &word), -EINVAL);
	wp_close(&wp_state.watch[0]);
}

RUN_TESTS()
