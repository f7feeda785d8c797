/*
 * child: processes forked by a test, which share memory with it and end with
 * it.  They report through that memory, because only the test itself may fail
 * an assertion.
 */
#ifndef CHILD_H
#define CHILD_H

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "state.h"

/* Long enough for a busy machine; only a failure waits so long. */
#define CHILD_PATIENCE_MS 60000

static inline void
nap_us(long us)
{
	(void)nanosleep(&(struct timespec){us / 1000000,
	    us % 1000000 * 1000}, NULL);
}

/* Wait until a condition holds; the test fails if it never does. */
#define await(condition)						\
	do {								\
		uint64_t give_up = wp_clock_ns() +			\
		    CHILD_PATIENCE_MS * 1000000ull;			\
		bool holds;						\
		while (!(holds = (condition)) &&			\
		    wp_clock_ns() < give_up)				\
			nap_us(100);					\
		if (!holds)						\
			fail_msg("never: %s", #condition);		\
	} while (0)

/* Zeroed memory that children share. */
static inline void *
shared_memory(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	return at;
}

/* Use this after `static struct ... *shared`: it is allocated before main(),
   and clear_shared() can be called before each test. */
#define SHARED_FIXTURE							\
	static __attribute__((constructor)) void			\
	make_shared(void)						\
	{								\
		shared = shared_memory(sizeof(*shared));		\
	}								\
	static __attribute__((unused)) int				\
	clear_shared(void **state)					\
	{								\
		(void)state;						\
		memset(shared, 0, sizeof(*shared));			\
		return 0;						\
	}

/* Add to a count of several threads or processes. */
static inline void
add(volatile unsigned *n, int by)
{
	__atomic_add_fetch(n, by, __ATOMIC_SEQ_CST);
}

/* The loop of a thread until shared->end.  It counts its turns, and announces
   itself: shared has turns[] and tid[] for each thread, and ready for all. */
#define each_turn(i)							\
	for (shared->tid[i] = gettid(),					\
	    (void)__atomic_add_fetch(&shared->ready, 1, __ATOMIC_SEQ_CST); \
	    !shared->end; shared->turns[i]++)

/* Children that were started and not waited for. */
static pid_t child_running[64];

static inline void
child_note(pid_t from, pid_t to)
{
	for (size_t i = 0; i < 64; i++) {
		if (child_running[i] == from) {
			child_running[i] = to;
			return;
		}
	}
}

/* Let a crash end a child: cmocka's handlers would continue there with the next
   test. */
static inline void
child_may_crash(void)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGSYS};

	for (unsigned i = 0; i < COUNT(signals); i++)
		(void)signal(signals[i], SIG_DFL);
}

/* Run fn(arg) in a new process, which exits 0 when fn returns. */
static inline pid_t
child_start(void (*fn)(void *), void *arg)
{
	pid_t parent = getpid(), pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		child_may_crash();
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
		if (getppid() == parent)
			fn(arg);
		_exit(0);
	}
	child_note(0, pid);
	return pid;
}

/* A function for such a process: announce itself, and wait. */
static inline void
child_rest(void *ready)
{
	++*(volatile int *)ready;
	for (;;)
		(void)pause();
}

/* Wait for a child's next change of state, which must be this one. */
static inline void
child_expect(pid_t pid, int expected)
{
	int status = 0;

	assert_int_equal(waitpid(pid, &status, WUNTRACED | WCONTINUED), pid);
	assert_int_equal(status, expected);
}

/* In a child: start a thread with a small stack, for which nobody waits; or n
   threads, which run fn(0), fn(1), ... */
static inline void
child_thread(void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;

	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	(void)pthread_attr_setstacksize(&attr, 128 << 10);
	if (pthread_create(&thread, &attr, fn, arg) != 0)
		_exit(1);
}

static inline void
child_threads(size_t n, void *(*fn)(void *))
{
	for (size_t i = 0; i < n; i++)
		child_thread(fn, (void *)(uintptr_t)i);
}

/* Wait for a child's end.  Result: its wait status. */
static inline int
child_wait(pid_t pid)
{
	int status = -1;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	child_note(pid, 0);
	return status;
}

static inline void
child_kill(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	(void)child_wait(pid);
}

/* A process that has ended and been waited for. */
static inline pid_t
child_gone(void)
{
	const pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pid;
}

/* A test's teardown: end what a failed test left behind. */
static inline int
children_end(void **state)
{
	(void)state;
	for (size_t i = 0; i < 64; i++)
		if (child_running[i] != 0 &&
		    waitpid(child_running[i], NULL, WNOHANG) == 0)
			(void)kill(child_running[i], SIGKILL);
		else
			child_running[i] = 0;
	/* a traced child exists until its tracer has ended */
	for (size_t i = 0; i < 64; i++) {
		if (child_running[i] != 0)
			(void)waitpid(child_running[i], NULL, 0);
		child_running[i] = 0;
	}
	return 0;
}

/* The number of this process's descriptors. */
static inline unsigned
open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(dir);
	while (readdir(dir) != NULL)
		n++;
	(void)closedir(dir);
	return n;
}

#endif
