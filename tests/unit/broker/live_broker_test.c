/* live_broker: questions about running processes, and explainers that die of
   them. */
#include "test.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker/live_broker.h"
#include "child.h"
#include "said.h"
#include "scratch.h"
#include "processes/synthetic_records.h"

static struct {
	int ready;
} *shared;
SHARED_FIXTURE

uint64_t watched_words[3];
static uint32_t watched_own = 1;
static __thread int watched_thread;

static struct live_broker live;
static pid_t child;

static int
begin(void **state)
{
	struct synthetic_records e = {0};

	(void)state;
	memset(shared, 0, sizeof(*shared));
	live = (struct live_broker){0};
	live_broker_make(&live, 0, NULL);
	child = child_start(child_rest, &shared->ready);
	await(*(volatile int *)&shared->ready == 1);
	assert_int_equal(synthetic_records_take(&e, child), 0);
	assert_int_equal(live_broker_learn(&live, child, e.bytes, e.len,
	    0), 0);
	synthetic_records_free(&e);
	return 0;
}

static int
finish(void **state)
{
	live_broker_close(&live);
	return children_end(state);
}

static int
resolve(const char *text, struct spec_place *place, struct wp_cause *cause)
{
	struct spec spec;
	int err;

	*cause = (struct wp_cause){0};
	assert_int_equal(spec_parse(text, WP_WRITE, &spec, cause), 0);
	err = live_broker_resolve(&live, child, &spec, false, place, cause);
	spec_free(&spec);
	return err;
}

static void
expect_place(const char *text, const volatile void *addr, uint64_t len,
    const char *symbol)
{
	struct spec_place place;
	struct wp_cause cause;

	if (resolve(text, &place, &cause) != 0)
		fail_msg("%s: %s", text, cause.text);
	assert_int_equal(place.addr, (uintptr_t)addr);
	assert_int_equal(place.len, len);
	assert_string_equal(place.symbol, symbol);
	free(place.symbol);
}

static void
expect_cause(const char *text, int err, const char *said)
{
	struct spec_place place;
	struct wp_cause cause;

	assert_int_equal(resolve(text, &place, &cause), err);
	assert_int_equal(cause.err, -err);
	if (strstr(cause.text, said) == NULL)
		fail_msg("%s: %s", text, cause.text);
}

TEST_WITH(finds_what_a_name_means, begin, finish)
{
	char text[64];

	expect_place("watched_words", watched_words, 24, "watched_words");
	expect_place("watched_words+8:4", watched_words + 1, 4,
	    "watched_words+8");
	expect_place("live_broker_test!watched_own", &watched_own, 4,
	    "watched_own");
	(void)snprintf(text, sizeof(text), "%p:2", (void *)&watched_words[2]);
	expect_place(text, &watched_words[2], 2, "watched_words+16");
}

/* A module may be named by a path that leads to it. */
TEST_WITH(follows_links_to_modules, begin, finish)
{
	char exe[PATH_MAX] = "", text[PATH_MAX + 64], link[64];

	assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	(void)snprintf(link, sizeof(link), "/tmp/watchctl-link-%d", getpid());
	assert_int_equal(symlink(exe, link), 0);
	(void)snprintf(text, sizeof(text), "%s!watched_own", link);
	expect_place(text, &watched_own, 4, "watched_own");
	(void)unlink(link);
}

TEST_WITH(says_why_a_name_means_nothing, begin, finish)
{
	watched_thread++;
	expect_cause("watched_word", -ENOENT, "nearest: watched_words");
	expect_cause("watched_thread", -ENOTSUP, "thread-local");
	expect_cause("watched_words+24", -ERANGE, "beyond the symbol's end");
	expect_cause("none!watched_own", -ENOENT, "no module 'none'");
}

/* Its successor has been told the same. */
TEST_WITH(the_explainers_death_is_survived, begin, finish)
{
	expect_place("watched_words", watched_words, 24, "watched_words");
	for (unsigned i = 0; i < 5; i++) {
		assert_true(live.broker.pid > 0);
		(void)kill(live.broker.pid, SIGKILL);
		expect_place("watched_own", &watched_own, 4, "watched_own");
	}
	(void)kill(live.broker.pid, SIGSTOP);
	(void)kill(live.broker.pid, SIGCONT);
	expect_cause("watched_word", -ENOENT, "nearest");
}

/* After too many there is none, and the SPEC is named. */
TEST_WITH(too_many_deaths_are_an_error, begin, finish)
{
	live.broker.ran = live.broker.given_up = true;
	expect_cause("watched_words", -ECHILD, "'watched_words': reading "
	    "symbols");
}

#if !SANITIZED	/* whose library must come first */
/* Ask while the intruder does this. */
static void
expect_no_answer(const char *what)
{
	char *said, intruder[PATH_MAX];

	assert_int_equal(scratch_make(NULL), 0);
	(void)snprintf(intruder, sizeof(intruder), "%s/intruder",
	    getenv("VICTIMS"));
	assert_int_equal(symlink(intruder, scratch_path(what)), 0);
	(void)setenv("LD_PRELOAD", scratch_path(what), 1);
	live.broker.patience = 0.1;
	said_begin(STDERR_FILENO);
	expect_cause("watched_words", -ECHILD, "reading symbols");
	said = said_end(STDERR_FILENO);
	(void)unsetenv("LD_PRELOAD");
	assert_holds(said, "gave no answer for 0.1 seconds");
	(void)scratch_remove(NULL);
}

/* Progress without end is none. */
TEST_WITH(an_answer_has_to_come, begin, finish)
{
	expect_no_answer("every-asks");
}

/* Not even if it takes no processor time. */
TEST_WITH(an_answer_has_to_come_from_who_sleeps, begin, finish)
{
	expect_no_answer("every-naps");
}
#endif

static void
keep_module(void *arg, const char *path, const char *build_id)
{
	char exe[PATH_MAX] = "";

	assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	if (strcmp(path, exe) == 0)
		(void)snprintf(arg, 256, "%s", build_id);
}

TEST_WITH(lists_modules, begin, finish)
{
	char build_id[256] = "", command[512], said[256] = "";
	FILE *f;

	live_broker_modules(&live, child, keep_module, build_id);
	(void)snprintf(command, sizeof(command), "readelf -n /proc/%d/exe | "
	    "sed -n 's/.*Build ID: //p'", getpid());
	f = popen(command, "r");
	assert_non_null(f);
	if (fscanf(f, "%255s", said) != 1)
		said[0] = '\0';
	(void)pclose(f);
	assert_string_equal(build_id, said);
}

RUN_TESTS()
