/* shared_vm: which children share their parent's memory. */
#include "test.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "proc/sharers.h"
#include "stop/shared_vm.h"

enum { STACK = 65536 };

static _Alignas(16) char stack[STACK];
static volatile int go;

static int
wait_for_go(void *unused)
{
	(void)unused;
	while (!go)
		(void)usleep(100);
	return 0;
}

static pid_t
start_child(int flags)
{
	const pid_t pid = clone(wait_for_go, stack + STACK, flags | SIGCHLD,
	    NULL);

	assert_true(pid > 0);
	return pid;
}

static void
lend(struct wp_shared_vm *lent, pid_t pid, pid_t child)
{
	wp_shared_vm_add(lent, &(struct wp_loan){pid, pid, child});
}

/* Until it ends, and not after that, reaped or not. */
TEST(asks_the_kernel)
{
	struct wp_shared_vm lent = {.n = 0};
	siginfo_t info;
	pid_t pid;

	go = 0;
	pid = start_child(CLONE_VM);
	lend(&lent, getpid(), pid);
	assert_true(wp_shared_vm_left(&lent, getpid(), wp_sharers_has));
	assert_true(wp_shared_vm_left(&lent, 0, wp_sharers_has));
	assert_false(wp_shared_vm_left(&lent, pid, wp_sharers_has));
	go = 1;
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT),
	    0);
	assert_false(wp_shared_vm_left(&lent, getpid(), wp_sharers_has));
	assert_int_equal(lent.n, 0);
	lend(&lent, getpid(), pid);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_false(wp_shared_vm_left(&lent, getpid(), wp_sharers_has));
}

/* A child of fork(2) has a memory of its own. */
TEST(ignores_fork)
{
	struct wp_shared_vm lent = {.n = 0};
	const pid_t pid = start_child(0);

	lend(&lent, getpid(), pid);
	assert_true(wp_shared_vm_left(&lent, getpid(), NULL));
	assert_false(wp_shared_vm_left(&lent, getpid(), wp_sharers_has));
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* What there is no room for may be. */
TEST(forgets_no_child)
{
	struct wp_shared_vm lent = {.n = 0};
	pid_t pid;

	go = 0;
	pid = start_child(CLONE_VM);
	for (unsigned i = 0; i < WP_LENT_MAX; i++)
		lend(&lent, getpid(), pid);
	assert_false(lent.more);
	lend(&lent, getpid(), pid);
	assert_true(lent.more);
	go = 1;
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(wp_shared_vm_left(&lent, getpid(), wp_sharers_has));
	assert_int_equal(lent.n, 0);
}

RUN_TESTS()
