/*
 * short_thread: runs a function in a thread of its own.
 *
 * Overview.  prctl(PR_TASK_PERF_EVENTS_DISABLE) switches off whatever events
 * the calling thread has opened, for itself or for others, and a program may
 * call it at any time, for events of its own.  But an event whose opener has
 * ended belongs to no thread.  So events are opened by a thread that ends at
 * once.
 *
 * The program does not notice it: the C library does not know of it, no tracer
 * is notified of it, all its signals are blocked, and its creator waits until
 * it is gone, from the list of threads too.  It uses its creator's thread-local
 * memory, that is errno, which the creator does not use in the meantime.
 */
#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/libc.h"
#include "program/short_thread.h"

enum {
	STACK = 32 * 1024,
	YIELDS = 100,
	NAPS = 50000,		/* a tracer may delay its end */
	NAP_NS = 20000,
};

struct thread_call {
	int (*fn)(void *);
	void *arg;
	int result;
};

static int
run(void *arg)
{
	struct thread_call *job = arg;

	job->result = job->fn(job->arg);
	return 0;
}

/* Wait until the thread is no longer listed. */
static void
await_end(pid_t tid)
{
	pid_t pid = getpid();

	for (unsigned i = 0; i < YIELDS + NAPS &&
	    syscall(SYS_tgkill, pid, tid, 0) == 0; i++)
		if (i < YIELDS)
			(void)sched_yield();
		else
			wp_clock_sleep(NAP_NS);
}

int
wp_short_thread(int (*fn)(void *), void *arg)
{
	static _Alignas(64) char stack[STACK];
	struct thread_call job = {.fn = fn, .arg = arg};
	pid_t tid = wp_libc_clone(run, stack + STACK, CLONE_VM | CLONE_FS |
	    CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
	    CLONE_VFORK | CLONE_UNTRACED, &job);

	if (tid < 0)
		return -ECHILD;
	await_end(tid);
	return job.result;
}
