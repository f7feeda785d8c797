/* signal_check: what can be seen of a program from outside. */
#include "test.h"

#include <string.h>
#include <sys/syscall.h>

#include "child.h"
#include "watch/signal_check.h"

static struct shared {
	volatile bool ready;
} *shared;

/* A program whose only thread deals with SIGTRAP so. */
struct dealing {
	bool caught, ignored, blocked;
	bool all;			/* signals, as only libc blocks them */
	uint32_t locks, unlocks;	/* of the library's lock, so far */
	const char *threads, *alone;	/* what is said if threads are looked
					   at, and if not; NULL: nothing */
};

static void
nothing(int sig)
{
	(void)sig;
}

static void
be_like(void *arg)
{
	const struct dealing *c = arg;
	const uint64_t all = UINT64_MAX;
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTRAP);
	(void)signal(SIGTRAP, c->caught ? nothing :
	    c->ignored ? SIG_IGN : SIG_DFL);
	(void)sigprocmask(c->blocked ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
	if (c->all)
		(void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL,
		    sizeof(all));
	shared->ready = true;
	(void)pause();
}

static void
expect(struct wp_channel *channel, const struct dealing *c, bool threads,
    const char *said)
{
	char why[200] = "";
	bool blocked = signal_check_blocked(channel, SIGTRAP, threads, why,
	    sizeof(why));

	if (blocked != (said != NULL) || (blocked && strstr(why, said) == NULL))
		fail_msg("%d %d %d: %s", c->caught, c->ignored, c->blocked,
		    why);
}

TEST(programs_that_block_the_signal)
{
	static const struct dealing cases[] = {
		{true, false, false, false, 0, 0, NULL, NULL},
		{true, false, true, false, 0, 0, "blocks SIGTRAP", NULL},
		{true, false, true, false, 7, 7, "blocks SIGTRAP", NULL},
		{true, false, true, true, 0, 0, NULL, NULL},
		/* a thread has it, or waits for it */
		{true, false, true, false, 7, 6, NULL, NULL},
		{false, true, false, false, 0, 0, "ignores", "ignores"},
		{false, false, false, false, 0, 0, "no longer catches",
		    "no longer catches"},
	};
	struct wp_channel *channel = shared_memory(sizeof(*channel));

	shared = shared_memory(sizeof(*shared));
	for (size_t i = 0; i < COUNT(cases); i++) {
		pid_t pid;

		shared->ready = false;
		pid = child_start(be_like, (void *)(uintptr_t)&cases[i]);
		await(shared->ready);
		atomic_store(&channel->program, pid);
		atomic_store(&channel->locks, cases[i].locks);
		atomic_store(&channel->unlocks, cases[i].unlocks);
		expect(channel, &cases[i], true, cases[i].threads);
		expect(channel, &cases[i], false, cases[i].alone);
		child_kill(pid);
	}
	(void)munmap(channel, sizeof(*channel));
	(void)munmap(shared, sizeof(*shared));
}

RUN_TESTS(.after_each = children_end)
