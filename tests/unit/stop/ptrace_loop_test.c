/* ptrace_loop: threads that execute one instruction while they are interrupted.
   The live test is about threads that are watched. */
#include "test.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/clock.h"
#include "stop/ptrace_loop.h"

enum { STEPS = 2000 };

static unsigned ended, broken, traps;

static bool
step_once(void *arg, struct wp_thread *thread)
{
	(void)arg;
	thread->step = true;
	return true;
}

static int
count_trap(void *unused, struct wp_thread *thread, siginfo_t *info)
{
	(void)unused;
	(void)thread;
	traps += info->si_signo == SIGTRAP;
	return 0;
}

static void
count_step(void *unused, struct wp_thread *thread, bool done)
{
	(void)unused;
	(void)thread;
	ended += done;
	broken += !done;
}

static void
nothing(void *unused, struct wp_thread *thread)
{
	(void)unused;
	(void)thread;
}

/* Makes no system calls any more when this returns: their ends are no steps. */
static pid_t
spin(void)
{
	volatile unsigned long *n = mmap(NULL, sizeof(*n),
	    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	assert_ptr_not_equal(n, MAP_FAILED);
	if ((pid = fork()) == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			++*n;
	}
	assert_true(pid > 0);
	while (*n == 0)
		;
	assert_int_equal(munmap((void *)(uintptr_t)n, sizeof(*n)), 0);
	return pid;
}

/* When the thread is interrupted it may be about to report the end of the step:
   taken for another trap, that would kill the program. */
TEST(an_interruption_does_not_end_a_step)
{
	static const struct wp_ptrace_loop_calls calls = {
		.size = sizeof(struct wp_thread), .arm = step_once,
		.signal = count_trap, .stepped = count_step, .end = nothing,
	};
	struct wp_ptrace_loop loop;
	const pid_t pid = spin();
	sigset_t reports;

	(void)sigemptyset(&reports);
	(void)sigaddset(&reports, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &reports, NULL);
	ended = broken = traps = 0;
	wp_ptrace_loop_begin(&loop, pid, 1ull << (SIGTRAP - 1), &calls, NULL);
	assert_int_equal(wp_ptrace_loop_all(&loop), 0);
	for (unsigned i = 0; i < STEPS; i++) {
		const uint64_t until = wp_clock_ns() + i % 256 * 100;

		wp_ptrace_loop_update(&loop);
		assert_int_equal(wp_ptrace_loop_settle(&loop, &reports), 0);
		while (wp_clock_ns() < until)	/* now and then it is there */
			;
	}
	while (ended == 0 || loop.all.thread[0]->step)
		assert_true(wp_ptrace_loop_step(&loop) >= 0);
	assert_int_equal(broken, 0);
	assert_int_equal(traps, 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	wp_ptrace_loop_end(&loop);
}

RUN_TESTS()
