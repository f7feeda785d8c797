/* root: a process is asked for the root of its files as often as that may help,
   and no more. */
#include "test.h"

#include <errno.h>
#include <sys/mman.h>

#include "module/module.h"
#include "proc/roots.h"
#include "space/space.h"


/* in place of what asks */
static int answer;
static unsigned asked;

int
wp_roots_find(struct wp_roots *roots, pid_t pid, int *root)
{
	(void)roots;
	(void)pid;
	asked++;
	if (answer == 0)
		*root = -1;
	return answer;
}

bool
wp_roots_have(const struct wp_roots *roots, int root)
{
	(void)roots;
	(void)root;
	return false;
}

void
wp_roots_free(struct wp_roots *roots)
{
	(void)roots;
}

enum { PID = 4000000 };	/* there is none of this number */

static void
learn_mapping(struct ex_space *space, uint64_t start)
{
	struct ex_record record = {
		.type = PERF_RECORD_MMAP2, .pid = PID, .tid = PID, .time = 1,
		.mmap = {.start = start, .len = 0x1000, .path = "/none",
		    .prot = PROT_READ | PROT_EXEC},
	};

	ex_space_learn(space, &record);
}

static struct ex_space *
make(int err)
{
	struct ex_space *space = ex_space_new(EX_LIVE);
	struct ex_record record = {
		.type = PERF_RECORD_FORK, .pid = PID, .tid = PID,
		.task = {.pid = PID, .tid = PID, .ppid = 1, .ptid = 1},
	};

	assert_non_null(space);
	ex_space_learn(space, &record);
	asked = 0;
	answer = err;
	for (uint64_t i = 1; i <= 4; i++)
		learn_mapping(space, i << 20);
	return space;
}

TEST(what_may_be_known_later_is_asked_again)
{
	static const struct {
		int answer;
		unsigned asked;
	} cases[] = {
		{0, 1}, {-ESRCH, 1}, {-EPERM, 1}, {-EACCES, 4}, {-EMFILE, 4},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ex_space *space = make(cases[i].answer);

		assert_int_equal(asked, cases[i].asked);
		ex_space_free(space);
	}
}

TEST(another_program_may_have_another_root)
{
	struct ex_space *space = make(-EPERM);
	struct ex_record record = {
		.type = PERF_RECORD_COMM, .misc = PERF_RECORD_MISC_COMM_EXEC,
		.pid = PID, .tid = PID,
		.comm = {.pid = PID, .tid = PID, .name = "other"},
	};

	ex_space_learn(space, &record);
	learn_mapping(space, 9 << 20);
	assert_int_equal(asked, 2);
	ex_space_free(space);
}

RUN_TESTS()
