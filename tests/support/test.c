#include "test.h"

#include <errno.h>
#include <stdlib.h>

enum { TESTS_MAX = 256 };

static struct {
	struct CMUnitTest test[TESTS_MAX];
	int line[TESTS_MAX];
	size_t n;
} all;

void
test_add(int line, const char *name, CMUnitTestFunction fn,
    CMFixtureFunction before, CMFixtureFunction after)
{
	size_t i = all.n++;

	if (all.n > TESTS_MAX)
		abort();
	for (; i > 0 && all.line[i - 1] > line; i--) {
		all.test[i] = all.test[i - 1];
		all.line[i] = all.line[i - 1];
	}
	all.line[i] = line;
	all.test[i] = (struct CMUnitTest){name, fn, before, after, NULL};
}

static void
skip_it(void **state)
{
	(void)state;
	skip();
}

int
test_run(const struct test_group *group)
{
	bool possible = group->possible == NULL || group->possible();
	struct CMUnitTest run[TESTS_MAX];

	for (size_t i = 0; i < all.n; i++) {
		run[i] = all.test[i];
		if (!possible)
			run[i] = (struct CMUnitTest){
				.name = run[i].name, .test_func = skip_it,
			};
		else if (run[i].setup_func == NULL &&
		    run[i].teardown_func == NULL) {
			run[i].setup_func = group->before_each;
			run[i].teardown_func = group->after_each;
		}
	}
	cmocka_set_test_filter(getenv("CASE"));
	return _cmocka_run_group_tests(program_invocation_short_name, run,
	    all.n, possible ? group->before_all : NULL,
	    possible ? group->after_all : NULL);
}
