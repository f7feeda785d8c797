/* contrast: whether two processes show different bytes. */
#include "test.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "proc/memory_compare.h"

enum { STACK = 65536, OFTEN = 500, WORDS = 512 };

static _Alignas(16) char stack[STACK];
/* Only the first words that differ are compared, and one of them has to stay
   what it is. */
static struct {
	volatile pid_t of;
	volatile unsigned long word[WORDS];
} own;

static int
write_on(void *unused)
{
	(void)unused;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	own.of = getpid();
	for (;;)
		for (unsigned i = 0; i < WORDS; i++)
			own.word[i] = ~own.word[i];
	return 0;
}

static pid_t
start(int flags)
{
	const pid_t pid = clone(write_on, stack + STACK, flags | SIGCHLD, NULL);

	assert_true(pid > 0);
	return pid;
}

/* One that is found and lost all the time is no contrast. */
TEST(one_memory_has_none)
{
	const pid_t pid = start(CLONE_VM);

	for (unsigned i = 0; i < OFTEN; i++)
		assert_false(wp_memory_differs(getpid(), pid));
	child_kill(pid);
}

TEST(a_child_has_its_own_words)
{
	const pid_t pid = start(0);

	/* as soon as it has begun */
	while (!wp_memory_differs(getpid(), pid))
		;
	for (unsigned i = 0; i < OFTEN / 10; i++)
		assert_true(wp_memory_differs(pid, getpid()));
	child_kill(pid);
	assert_false(wp_memory_differs(getpid(), pid));
}

/* As sanitizers, Go and the JVM reserve it: all of its page tables would take
   longer than anybody waits. */
TEST(what_is_reserved_is_not_looked_through)
{
	const size_t len = (size_t)1 << 45;
	void *reserved = mmap(NULL, len, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	const pid_t pid = start(CLONE_VM);

	assert_ptr_not_equal(reserved, MAP_FAILED);
	(void)alarm(20);
	assert_false(wp_memory_differs(getpid(), pid));
	(void)alarm(0);
	child_kill(pid);
	assert_int_equal(munmap(reserved, len), 0);
}

RUN_TESTS()
