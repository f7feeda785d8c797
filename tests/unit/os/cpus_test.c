/* cpus: lists of processors, as the kernel writes them. */
#include "test.h"

#include <errno.h>
#include <string.h>

#include "os/cpus.h"

static struct wp_cpus cpus;

TEST(lists_of_processors)
{
	static const struct {
		const char *list;
		int n;			/* processors, or -errno */
		unsigned end;
		const char *has;	/* '1' for each of the first few */
	} cases[] = {
		{"0\n", 1, 1, "1"},
		{"0-1\n", 2, 2, "11"},
		{"0-2,5", 4, 6, "1110010"},
		{"1,3-4\n", 3, 5, "01011"},
		{"3,1-2,2", 3, 4, "0111"},
		{"8191", 1, 8192, "0"},
		{"", -EINVAL, 0, ""},
		{"\n", -EINVAL, 0, ""},
		{"0-", -EINVAL, 0, ""},
		{"0,", -EINVAL, 0, ""},
		{"-1", -EINVAL, 0, ""},
		{"0-1x", -EINVAL, 0, ""},
		{"8192", -EINVAL, 0, ""},
		{"0-99999999999999999999", -EINVAL, 0, ""},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		if (wp_cpus_parse(cases[i].list, &cpus) != cases[i].n)
			fail_msg("'%s'", cases[i].list);
		if (cases[i].n < 0)
			continue;
		assert_int_equal(cpus.end, cases[i].end);
		for (size_t k = 0; k < strlen(cases[i].has); k++)
			assert_int_equal(cpus.has[k], cases[i].has[k] == '1');
	}
}

/* Those that run are some of those that may. */
TEST(this_machine)
{
	static struct wp_cpus online;
	int n;

	assert_true(wp_cpus_possible(&cpus) > 0);
	n = wp_cpus_online(&online);
	if (n < 0)
		skip();		/* /sys is not mounted */
	assert_true(n > 0);
	for (unsigned cpu = 0; cpu < WP_CPUS_MAX; cpu++)
		assert_true(!online.has[cpu] || cpus.has[cpu]);
}

RUN_TESTS()
