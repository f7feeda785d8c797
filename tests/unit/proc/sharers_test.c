/* sharers: which processes have the same memory, and where kcmp(2) is refused,
   which may have. */
#include "test.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "proc/proc.h"
#include "proc/sharers.h"
#include "refuse.h"

enum { STACK = 65536 };

static _Alignas(16) char stack[2][STACK];

static int
sleep_on(void *unused)
{
	(void)unused;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (pause() != 0)
		;
	return 0;
}

/* Its first thread ends, and another one sleeps on. */
static int
leave_a_thread(void *unused)
{
	(void)unused;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (clone(sleep_on, stack[1] + STACK, CLONE_VM | CLONE_THREAD |
	    CLONE_SIGHAND, NULL) < 0)
		_exit(1);
	(void)syscall(SYS_exit, 0);
	return 1;
}

static pid_t
start(int (*fn)(void *), int flags)
{
	const pid_t pid = clone(fn, stack[0] + STACK, flags | SIGCHLD, NULL);

	assert_true(pid > 0);
	return pid;
}

static void
await_first_end(pid_t pid)
{
	while (wp_proc_has_memory(pid))
		(void)usleep(1000);
}

static bool
is_found(pid_t pid, pid_t sharer)
{
	struct wp_sharer *sharers;
	const int n = wp_sharers(&pid, 1, &sharers);
	bool found = false;

	assert_true(n >= 0);
	for (int i = 0; i < n; i++)
		found = found || sharers[i].pid == sharer;
	free(sharers);
	assert_int_equal(n > 0, wp_sharers_any(pid));
	return found;
}

TEST(finds_processes_that_share_the_memory)
{
	pid_t pid;

	assert_false(wp_sharers_any(getpid()));
	pid = start(sleep_on, 0);
	assert_false(is_found(getpid(), pid));
	child_kill(pid);
	pid = start(sleep_on, CLONE_VM);
	assert_true(is_found(getpid(), pid));
	assert_true(is_found(pid, getpid()));
	child_kill(pid);
	assert_false(wp_sharers_any(getpid()));
}

/* A first thread that has ended has no memory to be compared, on either
   side. */
TEST(is_not_misled_by_a_first_thread)
{
	const pid_t pid = start(leave_a_thread, CLONE_VM);
	siginfo_t info;

	await_first_end(pid);
	assert_true(wp_sharers_has(getpid(), pid));
	assert_true(is_found(getpid(), pid));
	assert_true(wp_sharers_has(pid, getpid()));
	assert_true(is_found(pid, getpid()));
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT),
	    0);
	assert_false(wp_sharers_has(getpid(), pid));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_false(wp_sharers_has(getpid(), pid));
}

enum { TOGETHER = 24, GONE = 1, LEADERLESS = 2, LAST = TOGETHER - 1 };

/* Processes and who has their memory, 0: nobody. */
struct together {
	pid_t pid[TOGETHER], sharer[TOGETHER];
};

/* Whether all those are found; only: and no others. */
static bool
are_found(const struct together *t, bool only)
{
	struct wp_sharer *found;
	const int n = wp_sharers(t->pid, TOGETHER, &found);
	int wanted = 0, right = 0;

	assert_true(n >= 0);
	for (size_t i = 0; i < TOGETHER; i++)
		wanted += t->sharer[i] != 0;
	for (int i = 0; i < n; i++)
		right += found[i].pid != 0 &&
		    found[i].pid == t->sharer[found[i].i];
	free(found);
	return right == wanted && (!only || n == wanted);
}

/* A process that makes one with its memory, and says which. */
static int
have_a_sharer(void *arg)
{
	volatile pid_t *sharer = arg;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	*sharer = clone(sleep_on, stack[1] + STACK, CLONE_VM | SIGCHLD, NULL);
	return sleep_on(NULL);
}

/* Of two with one memory both are looked for. */
static void
start_together(struct together *t)
{
	volatile pid_t *sharer = t->sharer;

	memset(t, 0, sizeof(*t));
	for (size_t i = 0; i < LAST; i++) {
		const bool has = i % 3 == 0 || i == LAST - 1;

		t->pid[i] = clone(i == LEADERLESS ? leave_a_thread : has ?
		    have_a_sharer : sleep_on, stack[0] + STACK, SIGCHLD,
		    &t->sharer[i]);
		assert_true(t->pid[i] > 0);
		while (has && sharer[i] == 0)
			(void)usleep(1000);
	}
	await_first_end(t->pid[LEADERLESS]);
	t->pid[LAST] = t->sharer[LAST - 1];
	t->sharer[LAST] = t->pid[LAST - 1];
}

static void
end_together(const struct together *t)
{
	for (size_t i = 0; i < LAST; i++) {
		if (t->sharer[i] != 0)
			assert_int_equal(kill(t->sharer[i], SIGKILL), 0);
		if (i != GONE)
			child_kill(t->pid[i]);
	}
}

TEST(finds_those_of_many_at_once)
{
	struct together *t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct wp_sharer *found;
	int status;
	pid_t pid;

	assert_true(t != MAP_FAILED);
	start_together(t);
	assert_true(are_found(t, true));
	/* those that cannot be compared seem to be alike, but none is missed */
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		assert_true(refuse_call(SYS_kcmp, EPERM, NULL, 0));
		_exit(!are_found(t, false));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	/* of one that has ended it is not known */
	child_kill(t->pid[GONE]);
	assert_int_equal(wp_sharers(&t->pid[GONE], 1, &found), 1);
	assert_int_equal(found->pid, 0);
	free(found);
	end_together(t);
	assert_int_equal(munmap(t, sizeof(*t)), 0);
}

static int
leave_soon(void *unused)
{
	(void)unused;
	(void)usleep(10000);
	_exit(0);
}

/* One that is about to execute a program, or to end, is given a moment; on a
   machine with no time it may take longer. */
TEST(a_process_that_leaves_soon_does_not_count)
{
	bool stays = true;
	pid_t pid;

	for (unsigned i = 0; i < 50 && stays; i++) {
		pid = start(leave_soon, CLONE_VM);
		stays = wp_sharers_stay(getpid());
		assert_int_equal(waitpid(pid, NULL, 0), pid);
	}
	assert_false(stays);
	pid = start(sleep_on, CLONE_VM);
	assert_true(wp_sharers_stay(getpid()));
	child_kill(pid);
}

/* In a child, because that cannot be undone. */
static void
look_without_kcmp(pid_t sharer, pid_t other, pid_t alike)
{
	assert_true(refuse_call(SYS_kcmp, EPERM, NULL, 0));
	assert_int_equal(syscall(SYS_kcmp, 1, 1, 1, 0, 0), -1);
	assert_true(wp_sharers_has(getppid(), sharer));
	assert_true(is_found(getppid(), sharer));
	assert_false(wp_sharers_has(getppid(), other));
	assert_false(is_found(getppid(), other));
	assert_false(wp_sharers_has(getppid(), alike));
	assert_false(is_found(getppid(), alike));
}

/* Another memory had less at most, since this one had more; or as much, if it
   was made later, and then it has not the same words. */
TEST(does_without_kcmp)
{
	const size_t more = 64 << 20;
	const pid_t other = start(sleep_on, 0);
	const pid_t sharer = start(sleep_on, CLONE_VM);
	void *at = mmap(NULL, more, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1,
	    0);
	pid_t pid, alike;
	int status;

	assert_true(at != MAP_FAILED);
	assert_int_equal(munmap(at, more), 0);
	alike = fork();
	assert_true(alike >= 0);
	if (alike == 0)
		_exit(sleep_on(NULL));
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		look_without_kcmp(sharer, other, alike);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	child_kill(sharer);
	child_kill(other);
	child_kill(alike);
}

static void
become_nobody(void)
{
	assert_int_equal(setgid(65534), 0);
	assert_int_equal(setuid(65534), 0);
	assert_int_equal(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), 0);
}

static int
sleep_as_nobody(void *ready)
{
	become_nobody();
	assert_int_equal(write(*(int *)ready, "", 1), 1);
	return sleep_on(NULL);
}

/* However alike they are. */
TEST(other_credentials_mean_another_memory)
{
	char byte;
	int ready[2], status;
	pid_t nobody, pid;

	if (geteuid() != 0)
		skip();
	assert_int_equal(pipe(ready), 0);
	nobody = clone(sleep_as_nobody, stack[0] + STACK, SIGCHLD, &ready[1]);
	assert_true(nobody > 0);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		become_nobody();
		assert_int_equal(syscall(SYS_kcmp, nobody, getppid(), 1, 0, 0),
		    -1);
		assert_false(wp_sharers_has(nobody, getppid()));
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	child_kill(nobody);
	(void)close(ready[0]);
	(void)close(ready[1]);
}

RUN_TESTS()
