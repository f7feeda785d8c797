#include "test.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

enum { TESTS_MAX = 256 };

static struct {
	struct CMUnitTest test[TESTS_MAX];
	int line[TESTS_MAX];
	size_t n;
} all;

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
test_add(int line, struct CMUnitTest test)
{
	size_t i = all.n++;

	if (all.n > TESTS_MAX)
		abort();
	for (; i > 0 && all.line[i - 1] > line; i--) {
		all.test[i] = all.test[i - 1];
		all.line[i] = all.line[i - 1];
	}
	all.line[i] = line;
	all.test[i] = test;
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
fitted(const struct test_group *group, struct CMUnitTest test, bool possible)
{
	if (!possible)
		return (struct CMUnitTest){
			.name = test.name, .test_func = skip_it,
		};
	if (test.setup_func == NULL && test.teardown_func == NULL) {
		test.setup_func = group->before_each;
		test.teardown_func = group->after_each;
	}
	return test;
}

int
test_run(const struct test_group *group)
{
	bool possible = group->possible == NULL || group->possible();
	struct CMUnitTest run[TESTS_MAX];
	const char *some = getenv("CASE");
	size_t n = 0;

	for (size_t i = 0; i < all.n; i++)
		if (is_in(group, all.test[i].test_func))
			run[n++] = fitted(group, all.test[i], possible);
	cmocka_set_test_filter(some == NULL || *some == '\0' ? NULL : some);
	return _cmocka_run_group_tests(program_invocation_short_name, run, n,
	    possible ? group->before_all : NULL,
	    possible ? group->after_all : NULL);
}
