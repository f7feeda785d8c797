#include "test.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TESTS_MAX = 256 };

static struct {
	struct CMUnitTest test[TESTS_MAX];
	CMFixtureFunction end[TESTS_MAX];
	int line[TESTS_MAX];
	size_t n;
	const struct test_group *group;	/* as which they are run */
} all;

/* What is freed when the test has ended, the latest first; and when all
   have. */
static struct kept {
	struct kept *next;
	void *what;
	void (*how)(void *);
} *kept, *kept_for_all;

/* As an interactive shell starts a program: nohup(1), or a script in whose
   background it runs, has some signals ignored. */
static __attribute__((constructor)) void
reset_signals(void)
{
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++) {
		struct sigaction now;

		if (sigaction(sig, NULL, &now) == 0 &&
		    now.sa_handler == SIG_IGN)
			(void)signal(sig, SIG_DFL);
	}
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

void
test_holds(const char *text, const char *part, bool does, const char *file,
    int line)
{
	if ((strstr(text, part) != NULL) == does)
		return;
	print_error("%s\"%s\" in \"%s\"\n", does ? "no " : "", part, text);
	_fail(file, line);
}

void
test_frees(void *what, void (*how)(void *))
{
	struct kept *k = malloc(sizeof(*k));

	if (k == NULL)
		abort();
	*k = (struct kept){kept, what, how};
	kept = k;
}

void
test_frees_now(void)
{
	while (kept != NULL) {
		struct kept *k = kept;

		kept = k->next;
		k->how(k->what);
		free(k);
	}
}

/* Those of all tests are for a test that has none of its own. */
static bool
has_own(CMFixtureFunction before, CMFixtureFunction after)
{
	return before != NULL || after != NULL;
}

int
test_end(void **state, CMFixtureFunction before, CMFixtureFunction after)
{
	int err = 0;

	if (!has_own(before, after))
		after = all.group->after_each;
	if (after != NULL)
		err = after(state);
	test_frees_now();
	return err;
}

/* Have --inside take the library as users have it, for a sanitized one would
   want the sanitizers' own before it. */
static void
take_plain_library(void)
{
	const char *top = getenv("TOP");
	char library[512];

	(void)snprintf(library, sizeof(library),
	    "%s/lib/watchpoint/libwatchpoint.so.0", top);
	if (top != NULL && setenv("WATCHPOINT_LIBRARY", library, 0) != 0)
		abort();
}

void
test_add(int line, struct CMUnitTest test, CMFixtureFunction end)
{
	size_t i = all.n++;

	if (all.n > TESTS_MAX)
		abort();
	for (; i > 0 && all.line[i - 1] > line; i--) {
		all.test[i] = all.test[i - 1];
		all.end[i] = all.end[i - 1];
		all.line[i] = all.line[i - 1];
	}
	all.line[i] = line;
	all.test[i] = test;
	all.end[i] = end;
}

static void
skip_it(void **state)
{
	(void)state;
	skip();
}

static bool
listed(const CMUnitTestFunction *list, CMUnitTestFunction fn)
{
	while (*list != NULL && *list != fn)
		list++;
	return *list != NULL;
}

static bool
is_in(const struct test_group *group, CMUnitTestFunction fn)
{
	return (group->only == NULL || listed(group->only, fn)) &&
	    (group->except == NULL || !listed(group->except, fn));
}

/* As the group has it run. */
static struct CMUnitTest
fitted(const struct test_group *group, size_t i, bool possible)
{
	struct CMUnitTest test = all.test[i];

	if (!possible)
		return (struct CMUnitTest){
			.name = test.name, .test_func = skip_it,
		};
	if (!has_own(test.setup_func, test.teardown_func))
		test.setup_func = group->before_each;
	test.teardown_func = all.end[i];
	return test;
}

static int
begin_all(void **state)
{
	int err = all.group->before_all == NULL ? 0 :
	    all.group->before_all(state);

	kept_for_all = kept;
	kept = NULL;
	return err;
}

static int
end_all(void **state)
{
	int err = all.group->after_all == NULL ? 0 :
	    all.group->after_all(state);

	kept = kept_for_all;
	test_frees_now();
	return err;
}

int
test_run(const struct test_group *group)
{
	bool possible = group->possible == NULL || group->possible();
	struct CMUnitTest run[TESTS_MAX];
	const char *some = getenv("CASE");
	size_t n = 0;

	take_plain_library();
	all.group = group;
	for (size_t i = 0; i < all.n; i++)
		if (is_in(group, all.test[i].test_func))
			run[n++] = fitted(group, i, possible);
	cmocka_set_test_filter(some == NULL || *some == '\0' ? NULL : some);
	return _cmocka_run_group_tests(program_invocation_short_name, run, n,
	    possible ? begin_all : NULL, possible ? end_all : NULL);
}
