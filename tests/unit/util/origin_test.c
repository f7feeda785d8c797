/* origin: host and rank, and file names made of them. */
#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "said.h"
#include "util/origin.h"

static const char *const variables[] = {
	"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID",
};

static void
no_ranks(void)
{
	for (size_t i = 0; i < COUNT(variables); i++)
		(void)unsetenv(variables[i]);
}

/* Each variable, the first of them before the others; and no other text. */
TEST(ranks)
{
	static const char *const bad[] = {
		"", "-1", "+1", " 1", "1 ", "x", "../../etc", "1000000000",
	};
	struct origin origin;

	no_ranks();
	origin_here(&origin);
	assert_false(origin.ranked);
	for (size_t i = COUNT(variables); i-- > 0;) {
		const char rank[] = {(char)('0' + i), '\0'};

		(void)setenv(variables[i], rank, 1);
		origin_here(&origin);
		assert_true(origin.ranked);
		assert_int_equal(origin.rank, i);
	}
	no_ranks();
	for (size_t i = 0; i < COUNT(bad); i++) {
		(void)setenv("PMI_RANK", bad[i], 1);
		origin_here(&origin);
		assert_false(origin.ranked);
	}
	(void)setenv("PMI_RANK", "999999999", 1);
	origin_here(&origin);
	assert_int_equal(origin.rank, 999999999);
	no_ranks();
}

TEST(names)
{
	char host[65] = "", want[256];
	char *name;

	assert_int_equal(gethostname(host, sizeof(host) - 1), 0);
	no_ranks();
	(void)snprintf(want, sizeof(want), "a/%s-12-0%%p", host);
	name = origin_name("a/%h-%p-%r%%p", 12);
	assert_string_equal(name, want);
	free(name);
	(void)setenv("SLURM_PROCID", "31", 1);
	name = origin_name("%r%r", 1);
	assert_string_equal(name, "3131");
	free(name);
	no_ranks();
	name = origin_name("plain", 1);
	assert_string_equal(name, "plain");
	free(name);
}

TEST(letters)
{
	static const char *const good[] = {"", "%%", "%h%p%r", "%%%%x", "x"};
	static const char *const bad[] = {"%", "%%%", "%x", "%H", "a%\n",
		"%%%d"};

	for (size_t i = 0; i < COUNT(good); i++)
		assert_int_equal(origin_name_check(good[i]), 0);
	for (size_t i = 0; i < COUNT(bad); i++) {
		char *said;

		said_begin(STDERR_FILENO);
		assert_true(origin_name_check(bad[i]) < 0);
		said = said_end(STDERR_FILENO);
		assert_holds(said, "watchctl: -O: ");
		assert_int_equal(strcspn(said, "\n") + 1, strlen(said));
	}
	assert_true(origin_name_has_pid("a%p"));
	assert_true(origin_name_has_pid("%%%p"));
	assert_false(origin_name_has_pid("%%p"));
	assert_false(origin_name_has_pid("%hp"));
	assert_false(origin_name_has_pid(NULL));
}

RUN_TESTS()
