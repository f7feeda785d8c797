/*
 * tracer_process: requests of the watched program that need ptrace(2).  See
 * tracer_process.h.
 *
 * Overview: the helper notices that there is work, and wakes or starts the
 * tracing process, which does the work and answers in the channel.
 *
 * The two share a state, because the tracing process may end only if the helper
 * has not woken it in the meantime:
 *
 *	helper		RUNS -> WOKEN, and signal it; GONE: start another
 *	tracing process	WOKEN -> RUNS, and look; idle: RUNS -> GONE, and end
 */
#include "helper/tracer_process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "handler/channel_futex.h"
#include "helper/debugreg_table.h"
#include "os/clock.h"
#include "stop/ptrace_loop.h"
#include "watch/ptrace_refused.h"

enum { GONE, RUNS, WOKEN };

enum {
	KICK = SIGURG,		/* from the helper: there is something to do,
				   or it has ended */
	LEAVE = SIGTERM,	/* from the helper: disarm and end */
	WATCH_HELPER = 100,	/* ms between checks that the helper lives */
	LINGER = 1000,		/* ms to stay for the next request */
	LAST_WORD = 5000,	/* ms to end after the program has ended */
	LIFELINE = 3,		/* its descriptor in a tracing process */
};

/* Shared by successive tracing processes. */
struct shared {
	_Atomic uint32_t state;
	_Atomic bool ended;		/* the program has ended, so no more
					   requests come */
	struct armed table[WP_WATCHES_MAX];
	struct wp_uptime uptime;  /* of them, in threads no longer traced */
	/* of all threads, when asked for */
	struct wp_uptime now;
	_Atomic uint32_t asked, answered;  /* counters; the second is a futex */
};

struct tracer_process {
	pid_t program;
	struct shared *shared;
	pid_t pid;			/* of the tracing process, or 0 */
	bool killed;		/* it was killed and has not been replaced */
	int lifeline;		/* see arming/lifeline.c; -1 if there is none */
	bool broken;			/* one was killed at any time */
};

int
tracer_process_open(struct tracer_process **out, pid_t program)
{
	struct tracer_process *tracer = calloc(1, sizeof(*tracer));
	void *shared;

	if (tracer == NULL)
		return -ENOMEM;
	shared = mmap(NULL, sizeof(*tracer->shared), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED) {
		free(tracer);
		return -ENOMEM;
	}
	tracer->program = program;
	tracer->shared = shared;
	tracer->lifeline = -1;
	*out = tracer;
	return 0;
}

/* Whether a request waits that is answered here; *what is set to its kind. */
static bool
is_asked(const struct wp_channel *channel, uint32_t *what)
{
	if (!wp_channel_asked(channel))
		return false;
	*what = channel->request.what;
	return *what == WP_ASK_HOLD || *what == WP_ASK_GO ||
	    *what == WP_ASK_ARM || *what == WP_ASK_DISARM ||
	    *what == WP_ASK_MOVE || *what == WP_ASK_LIFELINE;
}

static void
answer(struct wp_channel *channel, int result, const struct wp_cause *cause)
{
	if (result < 0)
		(void)snprintf(channel->request.cause,
		    sizeof(channel->request.cause), "%s", cause->text);
	wp_channel_answer(channel, result);
}

/* --- the tracing process --- */

struct serving {
	struct wp_channel *channel;
	struct shared *shared;
	struct debugreg_table *table;
	pid_t program, helper;
	int lifeline;			/* inherited, or -1 */
	sigset_t signals;		/* that wake this process */
	bool leave;			/* the helper wants it to end */
	bool spent;	/* threads are held that only its end releases */
};

/* Wait for at most ms.  Returns whether something has come. */
static bool
doze(struct serving *serving, int ms)
{
	const int sig = wp_ptrace_loop_await(&serving->signals, ms);

	serving->leave = serving->leave || sig == LEAVE;
	return sig > 0;
}

static bool
helper_lives(const struct serving *serving)
{
	return getppid() == serving->helper;
}

/* Nothing of the helper's is needed here, or kept open, except the lifeline.
   It must be closed after all events; as the kernel closes files from the
   highest number down, it gets the lowest. */
static void
take_descriptors(const struct serving *serving)
{
	const bool has = serving->lifeline >= 0 &&
	    dup2(serving->lifeline, LIFELINE) == LIFELINE;

	(void)close_range(0, LIFELINE - 1, 0);
	(void)close_range(LIFELINE + has, UINT32_MAX, 0);
	wp_ptrace_loop_null();
}

static void
settle_in(struct serving *serving)
{
	static const int limits[] = {RLIMIT_NOFILE, RLIMIT_MEMLOCK};
	struct rlimit limit;

	wp_ptrace_loop_process(&serving->signals, "wp-tracer", KICK);
	take_descriptors(serving);
	/* the events of each thread take descriptors, and a page each */
	for (unsigned i = 0; i < 2; i++)
		if (getrlimit(limits[i], &limit) == 0) {
			limit.rlim_cur = limit.rlim_max;
			(void)setrlimit(limits[i], &limit);
		}
}

/* Hold the other threads until the thread that asked lets them go, or it or the
   helper has ended. */
static void
hold(struct serving *serving, pid_t tid)
{
	struct wp_channel *channel = serving->channel;
	struct wp_cause cause = {0};
	struct wp_hold held = {0};
	uint32_t what = 0;
	int err;

	if (debugreg_table_busy(serving->table))
		err = wp_cause_set(&cause, WP_CAUSE_TRACE_BUSY);
	else if ((err = wp_hold_others(&held, serving->program, tid)) < 0)
		(void)ptrace_refused(serving->program, -err, &cause);
	answer(channel, err, &cause);
	if (err < 0)
		return;
	for (size_t i = 0; i < held.n; i++)
		serving->spent = serving->spent || !held.thread[i].stopped;
	while (!(is_asked(channel, &what) && what == WP_ASK_GO) &&
	    !serving->leave && helper_lives(serving) &&
	    tgkill(serving->program, tid, 0) == 0)
		(void)doze(serving, WATCH_HELPER);
	wp_hold_release(&held);
	if (what == WP_ASK_GO)
		answer(channel, 0, NULL);
}

/* The request is copied, because the program can write to it at any time. */
static void
serve_request(struct serving *serving, uint32_t what)
{
	static struct wp_request request;
	struct wp_cause cause = {0};
	int result = 0;

	memcpy(&request, &serving->channel->request, sizeof(request));
	switch (what) {
	case WP_ASK_HOLD:
		hold(serving, request.tid);
		return;
	case WP_ASK_ARM:
		result = debugreg_table_arm(serving->table, &request, &cause);
		break;
	case WP_ASK_MOVE:
		result = debugreg_table_move(serving->table, &request, &cause);
		break;
	case WP_ASK_DISARM:
		if ((result = debugreg_table_disarm(serving->table,
		    request.index)) < 0)
			(void)wp_cause_errno(&cause, "disarming the program's "
			    "threads", -result);
		break;
	default:		/* WP_ASK_GO while no thread is held */
		break;
	}
	answer(serving->channel, result, &cause);
}

/* The helper asks for how long the watches have been on. */
static void
answer_uptime(struct serving *serving)
{
	struct shared *shared = serving->shared;
	const uint32_t asked = atomic_load(&shared->asked);

	if (asked == atomic_load(&shared->answered))
		return;
	debugreg_table_uptime(serving->table, &shared->now);
	atomic_store(&shared->answered, asked);
	wp_futex_wake(&shared->answered);
}

/* Wait for something to do.  Returns false if this process should end because
   nothing is traced and the helper has not woken it for a while. */
static bool
await_work(struct serving *serving, bool more)
{
	uint32_t runs = RUNS;

	if (debugreg_table_busy(serving->table)) {
		(void)doze(serving, more ? 0 : -1);
		return true;
	}
	if (!serving->spent && !atomic_load(&serving->shared->ended) &&
	    helper_lives(serving) && doze(serving, LINGER))
		return true;
	return !atomic_compare_exchange_strong(&serving->shared->state, &runs,
	    GONE);
}

/* Serve until there is nothing left to do, or the program has ended or executed
   another one. */
static void
serve(struct serving *serving)
{
	bool goes_on = true;

	while (goes_on && !serving->leave) {
		uint32_t woken = WOKEN, what;
		int more = debugreg_table_step(serving->table);

		if (more < 0)
			return;
		(void)atomic_compare_exchange_strong(&serving->shared->state,
		    &woken, RUNS);
		debugreg_table_look(serving->table);
		answer_uptime(serving);
		if (is_asked(serving->channel, &what))
			serve_request(serving, what);
		else
			goes_on = await_work(serving, more > 0);
	}
}

/* Requests are refused once the program has executed another one. */
static _Noreturn void
be_tracer(struct serving *serving, bool again)
{
	const struct wp_cause gone = {.text = "watching has ended"};
	uint32_t what;

	settle_in(serving);
	if (debugreg_table_open(&serving->table, serving->channel,
	    serving->program, serving->shared->table,
	    &serving->shared->uptime, again) < 0)
		_exit(1);
	serve(serving);
	debugreg_table_close(serving->table);
	if (is_asked(serving->channel, &what) &&
	    atomic_load(&serving->shared->state) != GONE)
		answer(serving->channel, -ESRCH, &gone);
	atomic_store(&serving->shared->state, GONE);
	_exit(0);
}

/* --- the helper --- */

/* Wake the tracing process.  Returns false if it is about to end. */
static bool
wake(const struct tracer_process *tracer)
{
	uint32_t runs = RUNS;

	if (!atomic_compare_exchange_strong(&tracer->shared->state, &runs,
	    WOKEN) && runs == GONE)
		return false;
	return kill(tracer->pid, KICK) == 0;
}

static int
start(struct tracer_process *tracer, struct wp_channel *channel)
{
	struct serving serving = {
		.channel = channel, .shared = tracer->shared,
		.program = tracer->program, .helper = getpid(),
		.lifeline = tracer->lifeline,
	};
	pid_t pid;

	atomic_store(&tracer->shared->state, WOKEN);
	if ((pid = fork()) == 0)
		be_tracer(&serving, tracer->killed);
	if (pid < 0)
		return -errno;
	tracer->pid = pid;
	tracer->killed = false;
	return 0;
}

static bool
is_armed(const struct tracer_process *tracer)
{
	for (uint32_t i = 0; i < WP_WATCHES_MAX; i++)
		if (atomic_load(&tracer->shared->table[i].serial) != 0)
			return true;
	return false;
}

/* Check whether the tracing process has ended.  Until it is replaced, new
   threads are not watched, and hits of others may be lost. */
static void
reap(struct tracer_process *tracer, struct wp_channel *channel)
{
	int how = atomic_load(&tracer->shared->state) == GONE ? 0 : WNOHANG;

	if (tracer->pid == 0 ||
	    waitpid(tracer->pid, NULL, how) != tracer->pid)
		return;
	tracer->pid = 0;
	if (atomic_load(&tracer->shared->state) == GONE)
		return;
	tracer->killed = tracer->broken = true;
	if (is_armed(tracer))
		(void)atomic_fetch_add(&channel->gaps, 1);
}

/* Take the writing end of the program's pipe.  Tracing processes inherit it
   when they are started. */
static int
take_lifeline(struct tracer_process *tracer, int theirs)
{
	const int pidfd = pidfd_open(tracer->program, 0);
	const int fd = pidfd < 0 ? -1 : pidfd_getfd(pidfd, theirs, 0);
	const int err = fd < 0 ? -errno : 0;
	struct stat st;

	if (pidfd >= 0)
		(void)close(pidfd);
	if (err < 0)
		return err;
	if (tracer->pid != 0 || fstat(fd, &st) != 0 ||
	    !S_ISFIFO(st.st_mode)) {
		(void)close(fd);
		return -EBUSY;
	}
	if (tracer->lifeline >= 0)
		(void)close(tracer->lifeline);
	tracer->lifeline = fd;
	return 0;
}

static bool
wants_look(const struct wp_channel *channel)
{
	for (uint32_t i = 0; i < WP_WATCHES_MAX; i++)
		if (atomic_load(&channel->watch[i].asked) !=
		    atomic_load(&channel->watch[i].done))
			return true;
	return false;
}

void
tracer_process_request(struct tracer_process *tracer,
    struct wp_channel *channel)
{
	const struct wp_cause none = {0};
	struct wp_cause cause;
	uint32_t what = 0;
	int err;

	reap(tracer, channel);
	if (!is_asked(channel, &what) && !wants_look(channel) &&
	    !tracer->killed)
		return;
	if (what == WP_ASK_LIFELINE) {
		answer(channel, take_lifeline(tracer, channel->request.fd),
		    &none);
		return;
	}
	while (tracer->pid != 0) {
		if (wake(tracer))
			return;
		reap(tracer, channel);
	}
	if (what == WP_ASK_GO && !tracer->killed) {
		answer(channel, 0, NULL);
	} else if ((err = start(tracer, channel)) < 0 && what != 0) {
		(void)wp_cause_errno(&cause, "a tracing process", -err);
		answer(channel, err, &cause);
	}
}

/* Returns whether the tracing process has answered. */
static bool
ask_uptime(struct tracer_process *tracer)
{
	struct shared *shared = tracer->shared;
	const uint32_t before = atomic_load(&shared->answered);
	const long limit = wp_clock_ms() + LAST_WORD;

	atomic_store(&shared->asked, before + 1);
	while (wake(tracer) && atomic_load(&shared->answered) == before &&
	    wp_clock_ms() < limit)
		(void)wp_futex_wait(&shared->answered, before, WATCH_HELPER);
	return atomic_load(&shared->answered) != before;
}

void
tracer_process_uptime(struct tracer_process *tracer, struct wp_uptime *uptime)
{
	*uptime = (struct wp_uptime){0};
	if (tracer->broken)
		return;
	if (tracer->pid != 0 && ask_uptime(tracer))
		*uptime = tracer->shared->now;
	else if (tracer->pid == 0 ||
	    atomic_load(&tracer->shared->state) == GONE)
		*uptime = tracer->shared->uptime;
}

void
tracer_process_await_end(struct tracer_process *tracer)
{
	atomic_store(&tracer->shared->ended, true);
	if (tracer->pid != 0)
		(void)wake(tracer);
	for (int ms = 0; ms < LAST_WORD && tracer->pid != 0; ms++)
		if (waitpid(tracer->pid, NULL, WNOHANG) != 0)
			tracer->pid = 0;
		else
			wp_clock_sleep(1000000);
}

void
tracer_process_close(struct tracer_process *tracer)
{
	if (tracer == NULL)
		return;
	if (tracer->pid != 0) {
		(void)kill(tracer->pid, LEAVE);
		while (waitpid(tracer->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	(void)munmap(tracer->shared, sizeof(*tracer->shared));
	if (tracer->lifeline >= 0)
		(void)close(tracer->lifeline);
	free(tracer);
}
