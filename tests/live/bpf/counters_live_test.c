/*
 * counters: what is kept of a thread is gone when the thread is, whatever the
 * kernel writes for it as it ends.
 */
#include "test.h"

#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "attach/target_private.h"
#include "bpf/bpf.h"
#include "child.h"
#include "live.h"
#include "os/clock.h"
#include "os/counter.h"
#include "proc/proc.h"

enum { THREADS = 20 };

static struct shared {
	volatile bool begin, go, end;
	volatile unsigned made;
} *shared;

SHARED_FIXTURE

/* Watched: each thread writes it, and the kernel for it when it has ended. */
static volatile int word;

static int
end_with_the_others(void *arg)
{
	(void)arg;
	word = 1;
	add(&shared->made, 1);
	while (!shared->go)
		nap_us(1000);
	return (int)syscall(SYS_exit, 0);
}

/* Threads that are there at the same time, and end. */
static void
make_threads(void *arg)
{
	static uint8_t stack[THREADS][1 << 14] __attribute__((aligned(16)));
	const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
	    CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;

	(void)arg;
	while (!shared->begin)
		nap_us(1000);
	for (unsigned i = 0; i < THREADS; i++)
		if (clone(end_with_the_others, stack[i + 1], flags, NULL,
		    NULL, NULL, &word) < 0)
			_exit(1);
	while (!shared->end)
		nap_us(1000);
}

static unsigned
count_known(int map)
{
	uint64_t key[2] = {0};
	unsigned n = 0;

	for (int err = wp_bpf_next(map, NULL, &key[0]); err == 0;
	    err = wp_bpf_next(map, &key[1], &key[0])) {
		key[1] = key[0];
		n++;
	}
	return n;
}

TEST(nothing_is_kept_of_threads_that_have_ended)
{
	const struct wp_options options = {
		.bpf = true, .kernel = true,
		.with = 1 << WP_COUNTER_PAGE_FAULTS,
	};
	const struct wp_region region = {
		.addr = (uintptr_t)&word, .len = sizeof(word),
		.access = WP_WRITE,
	};
	struct wp_target *target;
	struct wp_cause cause;
	int status, watch;
	pid_t pid;

	if (wp_target_new(&target, &live_features, &options, &cause) < 0) {
		print_message("%s\n", cause.text);
		skip();
	}
	pid = child_start(make_threads, NULL);
	watch = wp_target_watch(target, &region, 1, &cause);
	assert_true(watch >= 0);
	assert_int_equal(wp_target_attach(target, pid, (size_t)watch, 1,
	    &cause), 0);
	assert_true(wp_target_options(target)->bpf);
	shared->begin = true;
	await(shared->made == THREADS);
	/* a switch that was not seen has one be forgotten */
	assert_true(count_known(target->counters.threads) > 0);
	shared->go = true;
	await(count_known(target->counters.threads) == 0);
	assert_false(wp_proc_has_threads(pid));
	shared->end = true;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	wp_target_free(target);
}

RUN_LIVE_TESTS()
