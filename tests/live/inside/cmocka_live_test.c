/*
 * watchpoint-cmocka: test suites are run as programs, which an argument
 * selects, and the output of cmocka is checked.
 */
#include "test.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "live.h"
#include "watchpoint-cmocka.h"

/*
 * The suites.
 */

static volatile long word;
static char text[1024];

static void *
write_word(void *unused)
{
	word++;
	return unused;
}

static void
in_a_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, write_word, NULL) != 0 ||
	    pthread_join(thread, NULL) != 0)
		fail();
}

static void
keeps_off(void **state)
{
	(void)state;
	WP_FREEZE(word)
		WP_PERMIT(word)
			(void)write_word(NULL);
	(void)write_word(NULL);
}

static void
writes(void **state)
{
	(void)state;
	WP_FREEZE(word) {
		(void)write_word(NULL);
		print_message("not reached\n");
	}
}

static void
writes_in_a_thread(void **state)
{
	(void)state;
	WP_FREEZE(word) {
		in_a_thread();
		print_message("reached\n");
	}
}

/* memset writes, wherever the linker found it. */
static void
writes_in_libc(void **state)
{
	static char frozen[8];
	void *(*volatile set)(void *, int, size_t) = memset;

	(void)state;
	WP_FREEZE(frozen) {
		(void)set(frozen, 1, sizeof(frozen));
		print_message("reached\n");
	}
}

static void
cannot_freeze(void **state)
{
	(void)state;
	WP_FREEZE(text)
		print_message("reached\n");
}

static void
skips(void **state)
{
	(void)state;
	WP_FREEZE(text) {
		wp_cmocka_skip_unwatched();
		print_message("not reached\n");
	}
}

static void
fails_by_itself(void **state)
{
	(void)state;
	WP_FREEZE(word) {
		in_a_thread();
		fail();
	}
}

static int
write_frozen(void **state)
{
	(void)state;
	WP_FREEZE(word)
		in_a_thread();
	return 0;
}

static int
bring_group(void **state)
{
	static char group[] = "group";

	*state = group;
	return 0;
}

static int
bring_more(void **state)
{
	static char test[] = "test";

	print_message("setup %s\n", (const char *)*state);
	*state = test;
	return 0;
}

static void
show(void **state)
{
	print_message("test %s\n", *state == NULL ? "none" :
	    (const char *)*state);
}

static int
show_and_end(void **state)
{
	print_message("teardown %s\n", *state == NULL ? "none" :
	    (const char *)*state);
	return 0;
}

#define RUN(setup, teardown, ...)					\
	do {								\
		const struct CMUnitTest tests[] = {__VA_ARGS__};	\
									\
		return wp_cmocka_run_group_tests(tests, setup, teardown); \
	} while (0)
#define FIXTURE(...)							\
	do {								\
		const struct CMUnitTest tests[] = {__VA_ARGS__};	\
									\
		return cmocka_run_group_tests(tests, wp_cmocka_setup,	\
		    wp_cmocka_teardown);				\
	} while (0)

static int
suite(const char *name)
{
	if (strcmp(name, "own") == 0)
		RUN(NULL, NULL, cmocka_unit_test(writes),
		    cmocka_unit_test(keeps_off));
	if (strcmp(name, "thread") == 0)
		RUN(NULL, NULL, cmocka_unit_test(writes_in_a_thread),
		    cmocka_unit_test(keeps_off));
	if (strcmp(name, "libc") == 0)
		RUN(NULL, NULL, cmocka_unit_test(writes_in_libc));
	if (strcmp(name, "unarmed") == 0)
		RUN(NULL, NULL, cmocka_unit_test(cannot_freeze),
		    cmocka_unit_test(keeps_off));
	if (strcmp(name, "skip") == 0)
		RUN(NULL, NULL, cmocka_unit_test(skips));
	if (strcmp(name, "both") == 0)
		RUN(NULL, NULL, cmocka_unit_test(fails_by_itself),
		    cmocka_unit_test(keeps_off));
	if (strcmp(name, "outside") == 0)
		RUN(NULL, write_frozen, cmocka_unit_test(keeps_off));
	if (strcmp(name, "states") == 0)
		RUN(NULL, NULL, cmocka_unit_test_prestate_setup_teardown(show,
		    bring_more, show_and_end, (void *)"own"),
		    cmocka_unit_test(show));
	if (strcmp(name, "group state") == 0)
		RUN(bring_group, show_and_end, cmocka_unit_test_prestate(show,
		    (void *)"own"));
	if (strcmp(name, "fixture") == 0)
		FIXTURE(cmocka_unit_test(writes), cmocka_unit_test(keeps_off));
	if (strcmp(name, "fixture, thread") == 0)
		FIXTURE(cmocka_unit_test(writes_in_a_thread));
	if (strcmp(name, "two groups") == 0) {
		const struct CMUnitTest first[] = {
			cmocka_unit_test(cannot_freeze),
		};

		(void)wp_cmocka_run_group_tests(first, NULL, NULL);
		FIXTURE(cmocka_unit_test(writes_in_a_thread));
	}
	if (strcmp(name, "fixture, good") == 0)
		FIXTURE(cmocka_unit_test(keeps_off));
	return 99;
}

/*
 * What they are expected to say.
 */

static const struct {
	const char *name;
	int status;
	const char *says[6];	/* on stdout or stderr; "!": is not said */
} runs[] = {
	{"own", 1, {"[  FAILED  ] writes\n", "[       OK ] keeps_off",
	    "stray write  word (volatile long, 8 bytes at ",
	    ", by write_word\n", "!not reached"}},
	{"thread", 1, {"[  FAILED  ] writes_in_a_thread\n",
	    "[       OK ] keeps_off", ", by write_word\n", "reached"}},
	{"libc", 1, {"[  FAILED  ] writes_in_libc\n", "reached",
	    "cmocka_live_test.c:", ", by writes_in_libc\n"}},
	{"unarmed", 1, {"[  FAILED  ] cannot_freeze\n",
	    "[       OK ] keeps_off",
	    "cmocka_live_test.c:", ": WP_FREEZE(text) is not in force"}},
	{"skip", 0, {"[  SKIPPED ] skips\n", "!not reached"}},
	{"both", 2, {"[  FAILED  ] fails_by_itself\n",
	    "[       OK ] keeps_off", "reported by one: 1, the last:\n#"}},
	{"outside", 1, {"[       OK ] keeps_off", "reported by one: 1, the "
	    "last:\n#"}},
	{"states", 0, {"setup own\ntest test\nteardown test\n",
	    "test none\n"}},
	{"group state", 0, {"test group\n", "teardown group\n"}},
	{"fixture", 1, {"[  FAILED  ] writes\n", "[       OK ] keeps_off",
	    ", by write_word\n", "!not reached"}},
	{"fixture, thread", 1, {"[       OK ] writes_in_a_thread",
	    "reported by one: 1, the last:\n#", "reached"}},
	{"two groups", 1, {"[  FAILED  ] cannot_freeze\n",
	    "reported by one: 1, the last:\n#", "!may have been missed"}},
	{"fixture, good", 0, {"[       OK ] keeps_off", "!stray"}},
};

static void
expect_said(const struct outcome *o, const char *what)
{
	const bool not = what[0] == '!';
	bool said = strstr(o->out, what + not) != NULL ||
	    strstr(o->err, what + not) != NULL;

	if (said == not)
		fail_msg("said: %s, which is %s\n%s%s", what + not,
		    said ? "true" : "not true", o->out, o->err);
}

TEST(suites_fail)
{
	for (size_t i = 0; i < COUNT(runs); i++) {
		struct outcome o;

		run(&o, LIST("/proc/self/exe", runs[i].name));
		for (size_t j = 0; runs[i].says[j] != NULL; j++)
			expect_said(&o, runs[i].says[j]);
		assert_int_equal(o.status, runs[i].status);
	}
}

/* A file's format has the whole report, and the place of who did it. */
TEST(the_report_is_in_the_xml)
{
	struct outcome o;

	(void)setenv("CMOCKA_MESSAGE_OUTPUT", "XML", 1);
	run(&o, LIST("/proc/self/exe", "own"));
	(void)unsetenv("CMOCKA_MESSAGE_OUTPUT");
	assert_int_equal(o.status, 1);
	expect_said(&o, "failures=\"1\"");
	expect_said(&o, "<failure><![CDATA[stray write  word (volatile long, 8 "
	    "bytes at ");
	expect_said(&o, "cmocka_live_test.c:");
}

/* Without a helper there are addresses, and a red test all the same. */
TEST(cmocka_needs_no_helper)
{
	struct outcome o;

	(void)setenv("WATCHPOINT_HELPER", "", 1);
	run(&o, LIST("/proc/self/exe", "own"));
	(void)setenv("WATCHPOINT_HELPER", watchctl(), 1);
	assert_int_equal(o.status, 1);
	expect_said(&o, "stray access to word before 0x");
	expect_said(&o, "[  FAILED  ] writes\n");
}

int
main(int argc, char **argv)
{
	if (argc > 1)
		return suite(argv[1]);
	(void)setenv("WATCHPOINT_HELPER", watchctl(), 1);
	return run_live_tests();
}
