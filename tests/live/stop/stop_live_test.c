/*
 * stop: each access stops its thread, and its values before and after are
 * known.
 *
 * The programs are children that log into memory shared with the test, so that
 * their accesses can be compared with what was reported.
 */
#include "test.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "child.h"
#include "live.h"
#include "proc/proc.h"
#include "ptrace/ptrace.h"
#include "stop/stop.h"
#include "stop/value_sample.h"

enum { THREADS = 5, RECORDS_MAX = 200000, VALUES = 1 << 16 };

/* What a program and the test share. */
static struct shared {
	_Alignas(64) volatile uint64_t word;
	atomic_int ready, go;
	uint32_t before[VALUES];	/* the value that this one replaced */
	atomic_uint made, handled;
	atomic_uint wanted, answered;	/* by a signal's handler */
	_Atomic uint64_t granted;	/* writes, in all, until more are
					   granted */
	bool uses[3];		/* of own_signals */
	unsigned lost;
} *shared;

/* What is watched: the program's own, or what it shares with others. */
static _Alignas(64) volatile uint64_t own[8];
static volatile uint64_t *word;

/* A sample, as its record has it. */
struct delivered {
	pid_t tid;
	uint64_t id;
	bool kernel, has;	/* a value */
	struct wp_stop_value value;
};

static struct watching {
	struct wp_target *target;
	struct wp_stops *stops;
	struct delivered *delivered;	/* n of them */
	size_t n, exact;
	unsigned executed, ended, warned, held;
	bool follow;
	pid_t bare;		/* attached before, without a watch; 0: none */
	int status;
} watching;

static bool
no_hit_asked(void *arg, pid_t pid, pid_t tid, bool kernel)
{
	(void)kernel;
	(void)arg;
	(void)pid;
	(void)tid;
	return false;
}

static bool
on_executed(void *arg, pid_t pid)
{
	(void)arg;
	(void)pid;
	watching.executed++;
	return false;
}

static void
on_ended(void *arg, pid_t pid, int status)
{
	(void)arg;
	child_note(pid, 0);
	watching.ended++;
	watching.status = status;
}

static void
on_warn(void *arg, pid_t unwatched, const char *text)
{
	(void)arg;
	assert_int_equal(unwatched, 0);
	assert_holds(text, "SIGURG");
	watching.warned++;
}

static const struct wp_stops_calls calls = {
	NULL, on_executed, on_ended, on_warn,
};
static bool
hold_all(void *arg, pid_t pid, pid_t tid, bool kernel)
{
	(void)kernel;
	(void)arg;
	watching.held += wp_stops_hold(watching.stops, pid) == 0 &&
	    wp_stops_is_stopped(watching.stops, pid, tid);
	return false;
}

static const struct wp_stops_calls calls_held = {
	no_hit_asked, on_executed, on_ended, on_warn,
};
static const struct wp_stops_calls calls_hold = {
	hold_all, on_executed, on_ended, on_warn,
};

static void
take_sample(const struct perf_event_header *header)
{
	const uint8_t *at = (const uint8_t *)header;
	struct delivered *delivered = &watching.delivered[watching.n];
	uint64_t chain = 0;
	uint32_t tid, raw;

	assert_true(watching.n < RECORDS_MAX);
	memset(delivered, 0, sizeof(*delivered));
	memcpy(&delivered->id, at + 8, 8);
	memcpy(&tid, at + 28, 4);
	delivered->tid = (pid_t)tid;
	delivered->kernel = (header->misc & PERF_RECORD_MISC_CPUMODE_MASK) ==
	    PERF_RECORD_MISC_KERNEL;
	at += 56;
	if (wp_target_options(watching.target)->callchain) {
		memcpy(&chain, at, 8);
		at += 8 + 8 * chain;
	}
	memcpy(&raw, at, 4);
	delivered->has = wp_stop_value_get(at + 4, raw, &delivered->value);
	watching.exact += delivered->has &&
	    (delivered->value.flags & WP_STOP_EXACT) != 0;
	watching.n++;
}

static void
take_records(uint64_t horizon)
{
	const struct perf_event_header *header;

	while ((header = wp_stops_next(watching.stops, horizon, false)) != NULL)
		if (header->type == PERF_RECORD_SAMPLE)
			take_sample(header);
}

/* Attach to a program, by n words from the first on. */
static void
attach(pid_t pid, size_t n, const struct wp_stops_calls *how)
{
	const struct wp_options options = {
		.stop = true, .kernel = true, .stack = 256,
		.follow = watching.follow,
	};
	struct wp_region region[4];
	struct wp_cause cause;

	for (size_t i = 0; i < n; i++)
		region[i] = (struct wp_region){
			(uintptr_t)&word[i], 8, WP_WRITE,
		};
	await(shared->ready);
	assert_int_equal(wp_target_new(&watching.target, &live_features,
	    &options, &cause), 0);
	assert_int_equal(wp_target_watch(watching.target, region, n, &cause),
	    0);
	assert_int_equal(wp_stops_new(&watching.stops, watching.target, how,
	    NULL), 0);
	if ((watching.bare != 0 && wp_stops_attach(watching.stops,
	    watching.bare, 0, 0, &cause) < 0) ||
	    wp_stops_attach(watching.stops, pid, 0, n, &cause) < 0)
		fail_msg("%s", cause.text);
	wp_stops_lend(watching.stops, pid, false);
	shared->go = 1;
}

static void
doze(void)
{
	const struct timespec limit = {.tv_nsec = 5000000};
	sigset_t stops;

	(void)sigemptyset(&stops);
	(void)sigaddset(&stops, SIGCHLD);
	(void)sigtimedwait(&stops, NULL, &limit);
}

/* Until nobody is watched any more; then all that was counted is there.  How
   long that takes depends on who else wants the processors: patience is with
   each step. */
static void
watch_to_its_end(size_t n)
{
	const uint64_t patience = CHILD_PATIENCE_MS * 1000000ull;
	uint64_t give_up = wp_clock_ns() + patience;
	uint64_t counted = 0;

	while (wp_stops_busy(watching.stops) && wp_clock_ns() < give_up) {
		if (wp_stops_step(watching.stops) == 0)
			doze();
		else
			give_up = wp_clock_ns() + patience;
		take_records(wp_clock_ns() - 1000000);
	}
	assert_false(wp_stops_busy(watching.stops));
	take_records(UINT64_MAX);
	assert_false(wp_stops_pending(watching.stops));
	for (size_t i = 0; i < n; i++) {
		struct wp_perf_count count;

		assert_int_equal(wp_stops_count(watching.stops, i, &count), 0);
		assert_int_equal(count.lost, 0);
		counted += count.value;
	}
	assert_int_equal(watching.n, counted);
}

/* A program, watched all its life, which ends well. */
static void
watch_child(void (*fn)(void *), size_t n, const struct wp_stops_calls *how)
{
	attach(child_start(fn, NULL), n, how);
	watch_to_its_end(n);
	assert_int_equal(watching.ended, 1);
	assert_int_equal(watching.status, 0);
}

static int
setup(void **state)
{
	sigset_t stops;

	(void)state;
	(void)sigemptyset(&stops);
	(void)sigaddset(&stops, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &stops, NULL);
	shared = shared_memory(sizeof(*shared));
	word = own;
	watching = (struct watching){
		.delivered = calloc(RECORDS_MAX, sizeof(struct delivered)),
	};
	return watching.delivered == NULL ? -1 : 0;
}

static int
teardown(void **state)
{
	wp_stops_free(watching.stops);
	wp_target_free(watching.target);
	free(watching.delivered);
	(void)munmap(shared, sizeof(*shared));
	return children_end(state);
}

/* --- the programs --- */

static void
begin(void)
{
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	shared->ready = 1;
	while (!shared->go)
		nap_us(100);
}

static void
count_up(void *unused)
{
	(void)unused;
	begin();
	for (uint64_t i = 1; i <= 1000; i++)
		word[0] = i;
}

static void
same_again(void *unused)
{
	(void)unused;
	begin();
	for (int i = 0; i < 10; i++)
		word[0] = 7;
}

/* Each value is stored once; what it replaced is shown by the instruction. */
static void *
replace(void *unused)
{
	(void)unused;
	while (!shared->go)
		nap_us(100);
	for (int i = 0; i < 400; i++) {
		uint32_t value = atomic_fetch_add(&shared->made, 1) + 1;

		shared->before[value] = (uint32_t)__atomic_exchange_n(
		    &word[0], value, __ATOMIC_SEQ_CST);
		for (volatile int k = 0; k < (i % 7) * 100; k++)
			;
	}
	return NULL;
}

static void
race(void *unused)
{
	pthread_t thread[THREADS];
	sigset_t none;

	(void)unused;
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, replace, NULL) != 0)
			_exit(1);
	shared->ready = 1;
	for (int i = 0; i < THREADS; i++)
		(void)pthread_join(thread[i], NULL);
}

static void
race_a_child(void *unused)
{
	begin();
	if (fork() == 0) {
		(void)replace(unused);
		_exit(0);
	}
	(void)replace(unused);
	(void)wait(NULL);
}

/* Threads that write once and end, some of them made by others. */
static void *
write_once(void *unused)
{
	word[0] = atomic_fetch_add(&shared->made, 1) + 1;
	return unused;
}

static void *
make_two(void *unused)
{
	pthread_t thread[2];

	for (int i = 0; i < 2; i++)
		if (pthread_create(&thread[i], NULL, write_once, NULL) != 0)
			_exit(1);
	for (int i = 0; i < 2; i++)
		(void)pthread_join(thread[i], NULL);
	return write_once(unused);
}

static void
make_threads(void *unused)
{
	pthread_t thread[4];

	(void)unused;
	begin();
	for (int n = 0; n < 25; n++) {
		for (int i = 0; i < 4; i++)
			if (pthread_create(&thread[i], NULL, make_two,
			    NULL) != 0)
				_exit(1);
		for (int i = 0; i < 4; i++)
			(void)pthread_join(thread[i], NULL);
	}
}

static void
handle(int sig)
{
	(void)sig;
	shared->handled++;
}

static void
use_both_signals(void *unused)
{
	const struct sigaction action = {.sa_handler = handle};

	(void)unused;
	(void)sigaction(SIGURG, &action, NULL);
	(void)sigaction(SIGWINCH, &action, NULL);
	(void)sigaction(SIGTRAP, &action, NULL);
	begin();
	for (uint64_t i = 1; i <= 100; i++) {
		word[0] = i;
		(void)raise(SIGURG);
		(void)raise(SIGWINCH);
		(void)raise(SIGTRAP);
	}
}

static void
use_one_later(void *unused)
{
	const struct sigaction action = {.sa_handler = handle};

	(void)unused;
	begin();
	word[0] = 1;
	(void)sigaction(SIGURG, &action, NULL);
	(void)raise(SIGURG);
	for (uint64_t i = 2; i <= 10; i++)
		word[0] = i;
}

static void *
nothing(void *unused)
{
	return unused;
}

/* That there is a handler is seen when a thread is made. */
static void
use_one_and_make_threads(void *unused)
{
	const struct sigaction action = {.sa_handler = handle};
	pthread_t thread;

	begin();
	(void)sigaction(SIGURG, &action, NULL);
	for (uint64_t i = 1; i <= 100; i++) {
		if (i <= 10 && (pthread_create(&thread, NULL, nothing,
		    unused) != 0 || pthread_join(thread, NULL) != 0))
			_exit(1);
		word[0] = i;
	}
}

static void
block_all(void *unused)
{
	sigset_t all;

	(void)unused;
	begin();
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	for (uint64_t i = 1; i <= 20; i++)
		word[0] = i;
}

static void
become_true(void *unused)
{
	(void)unused;
	begin();
	for (uint64_t i = 1; i <= 5; i++)
		word[0] = i;
	(void)execl("/bin/true", "true", (char *)NULL);
	_exit(1);
}

static void *
execute_true(void *unused)
{
	while (shared->go != 1)
		nap_us(100);
	word[0] = 1;
	(void)execl("/bin/true", "true", (char *)NULL);
	return unused;
}

static void
become_true_by_a_thread(void *unused)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, execute_true, NULL) != 0)
		_exit(1);
	begin();
	(void)pthread_join(thread, unused);
	_exit(1);
}

static void
read_into_it(void *unused)
{
	int fd[2];

	(void)unused;
	begin();
	word[0] = 1;
	if (pipe(fd) != 0 || write(fd[1], "01234567", 8) != 8 ||
	    read(fd[0], (void *)(uintptr_t)&word[0], 8) != 8)
		_exit(1);
	word[0] = 2;
}

static void
touch_two(void *unused)
{
	typedef uint64_t pair __attribute__((vector_size(16)));

	(void)unused;
	begin();
	for (uint64_t i = 1; i <= 50; i++)
		*(volatile pair *)(uintptr_t)&word[0] =
		    (pair){i, i + 1000};
}

/* --- the tests --- */

static uint64_t
number(const uint8_t *byte)
{
	uint64_t value;

	memcpy(&value, byte, sizeof(value));
	return value;
}

static void
expect(const struct delivered *delivered, uint64_t old, uint64_t new)
{
	assert_true(delivered->has);
	assert_true(delivered->value.flags & WP_STOP_EXACT);
	assert_int_equal(delivered->value.len, 8);
	assert_int_equal(number(delivered->value.old), old);
	assert_int_equal(number(delivered->value.new), new);
}

TEST(each_value_is_exact)
{
	watch_child(count_up, 1, &calls);
	assert_int_equal(watching.n, 1000);
	for (uint64_t i = 0; i < 1000; i++) {
		expect(&watching.delivered[i], i, i + 1);
		assert_int_equal(watching.delivered[i].value.addr,
		    (uintptr_t)&word[0]);
		assert_int_equal(watching.delivered[i].value.call, -1);
	}
}

TEST(values_are_exact_with_a_read_at_each_stop)
{
	watch_child(count_up, 1, &calls_held);
	assert_int_equal(watching.n, 1000);
	for (uint64_t i = 0; i < 1000; i++)
		expect(&watching.delivered[i], i, i + 1);
}

TEST(a_value_that_is_stored_again)
{
	watch_child(same_again, 1, &calls);
	assert_int_equal(watching.n, 10);
	expect(&watching.delivered[0], 0, 7);
	for (int i = 1; i < 10; i++)
		expect(&watching.delivered[i], 7, 7);
}

static void
expect_replaced(size_t n)
{
	assert_int_equal(watching.n, n);
	assert_int_equal(shared->made, n);
	for (size_t i = 0; i < n; i++) {
		const struct wp_stop_value *v = &watching.delivered[i].value;

		if ((v->flags & WP_STOP_EXACT) == 0)
			continue;
		assert_in_range(number(v->new), 1, n);
		assert_int_equal(number(v->old),
		    shared->before[number(v->new)]);
	}
	print_message("%zu of %zu values are exact\n", watching.exact, n);
}

/* Of racing threads each access is delivered once, and what is called exact is
   what the instructions saw. */
TEST(racing_threads)
{
	watch_child(race, 1, &calls);
	expect_replaced(THREADS * 400);
	for (size_t i = 0; i < watching.n; i++)
		assert_true(watching.delivered[i].has);
}

/* What processes share is written by all of them. */
TEST(racing_processes)
{
	watching.follow = true;
	word = &shared->word;
	attach(child_start(race_a_child, NULL), 1, &calls);
	watch_to_its_end(1);
	expect_replaced(2 * 400);
	/* others may have it, too, whom nobody watches */
	assert_int_equal(watching.exact, 0);
}

TEST(threads_made_meanwhile)
{
	watch_child(make_threads, 1, &calls);
	assert_int_equal(watching.n, 300);
	assert_int_equal(shared->made, 300);
}

TEST(signals_of_the_program)
{
	watch_child(use_both_signals, 1, &calls);
	assert_int_equal(watching.n, 100);
	assert_int_equal(shared->handled, 300);
	assert_int_equal(watching.warned, 0);
	for (uint64_t i = 0; i < 100; i++)
		expect(&watching.delivered[i], i, i + 1);
}

TEST(a_signal_taken_into_use)
{
	watch_child(use_one_later, 1, &calls);
	assert_int_equal(shared->handled, 1);
	assert_int_equal(watching.n, 10);
	for (uint64_t i = 0; i < 10; i++)
		expect(&watching.delivered[i], i, i + 1);
}

/* The handler is called once, if at all: from then on another signal stops. */
TEST(a_signal_taken_into_use_while_threads_are_made)
{
	watch_child(use_one_and_make_threads, 1, &calls);
	assert_true(shared->handled <= 1);
	assert_int_equal(watching.n, 100);
}

/* --- signals that mean something --- */

/* Of each of four kinds. */
#define HANDSHAKES (getenv("THOROUGH") != NULL ? 2500 : 1000)
enum { WRITES_EACH = RECORDS_MAX / 2500 };

static const int own_signals[] = {SIGURG, SIGWINCH, SIGCHLD};

static void
answer(int sig)
{
	(void)sig;
	shared->answered = shared->wanted;
	shared->handled++;
}

/* As language runtimes do who preempt threads by a signal. */
static void
use_signal(int sig, bool use)
{
	struct sigaction action = {
		.sa_handler = use ? answer : SIG_DFL,
		.sa_flags = SA_ONSTACK | SA_RESTART,
	};

	(void)sigaction(sig, &action, NULL);
}

static void *
write_on(void *over)
{
	while (!*(atomic_bool *)over) {
		if (word[0] == shared->granted) {
			(void)sched_yield();
			continue;
		}
		word[0]++;
		for (volatile int i = 0; i < 2000; i++)
			;
	}
	return NULL;
}

/* A thread that has written twice since has been to the kernel, and cannot have
   missed a signal.  It is granted only so many writes for each: who waits may
   have no processor for long, and all the records have to find room. */
static void
shake_hands(pthread_t thread, int sig)
{
	uint64_t writes;

	shared->wanted++;
	(void)pthread_kill(thread, sig);
	writes = word[0];
	shared->granted = writes + WRITES_EACH;
	while (shared->answered != shared->wanted &&
	    word[0] - writes < 3)
		(void)sched_yield();
	shared->lost += shared->answered != shared->wanted;
}

static void
shake_many_hands(void *unused)
{
	atomic_bool over = false;
	pthread_t thread;

	(void)unused;
	for (size_t i = 0; i < 3; i++)
		use_signal(own_signals[i], shared->uses[i]);
	begin();
	if (pthread_create(&thread, NULL, write_on, &over) != 0)
		_exit(1);
	for (int i = 0; i < HANDSHAKES; i++)
		shake_hands(thread, SIGURG);
	over = true;
	(void)pthread_join(thread, NULL);
}

/* What a handler is called for is there, and nothing else if one of the signals
   is not handled. */
TEST(no_signal_is_lost)
{
	static const bool uses[][3] = {
		{true, false, false}, {true, true, false}, {true, true, true},
	};

	for (size_t i = 0; i < COUNT(uses); i++) {
		const bool all = uses[i][2];

		memcpy(shared->uses, uses[i], sizeof(uses[i]));
		watch_child(shake_many_hands, 1, &calls);
		assert_int_equal(shared->lost, 0);
		if (!all)
			assert_int_equal(shared->handled, HANDSHAKES);
		assert_int_equal(watching.warned, all);
		(void)teardown(state);
		(void)setup(state);
	}
}

static void
shake_hands_by_turns(void *unused)
{
	atomic_bool over = false;
	pthread_t thread;

	(void)unused;
	begin();
	if (pthread_create(&thread, NULL, write_on, &over) != 0)
		_exit(1);
	for (int i = 0; i < HANDSHAKES; i++) {
		use_signal(own_signals[i % 2], true);
		use_signal(own_signals[1 - i % 2], false);
		shake_hands(thread, own_signals[i % 2]);
	}
	over = true;
	(void)pthread_join(thread, NULL);
}

TEST(no_signal_is_lost_while_handlers_change)
{
	watch_child(shake_hands_by_turns, 1, &calls);
	assert_int_equal(shared->lost, 0);
	assert_int_equal(watching.warned, 0);
}

static void
write_at_signal(int sig)
{
	(void)sig;
	word[0]++;
}

static void
write_in_handlers(void *unused)
{
	const struct sigaction action = {.sa_handler = write_at_signal};

	(void)unused;
	for (size_t i = 0; i < 3; i++)
		(void)sigaction(own_signals[i], &action, NULL);
	begin();
	for (int i = 0; i < 20; i++)
		word[0]++;
}

/* Who is called at each hit and hits is not called for ever. */
TEST(handlers_that_hit)
{
	watch_child(write_in_handlers, 1, &calls);
	assert_int_equal(watching.warned, 1);
	assert_in_range(watching.n, 20, 100);
}

/* By the same instruction and without a stop in between: which of them did
   what cannot be delivered. */
static void
block_for_a_moment(void *unused)
{
	sigset_t all;

	(void)unused;
	begin();
	(void)sigfillset(&all);
	for (int k = 0; k < 20; k++) {
		(void)sigprocmask(SIG_BLOCK, &all, NULL);
		for (int i = 0; i < 5; i++)
			word[0]++;
		(void)sigprocmask(SIG_UNBLOCK, &all, NULL);
	}
}

/* A system call wrote while signals were blocked: it is not the one that the
   thread stops behind. */
static void
read_while_blocked(void *unused)
{
	const int fd = open("/proc/self/comm", O_RDONLY);
	sigset_t all;

	(void)unused;
	begin();
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, NULL);
	(void)!read(fd, (void *)(uintptr_t)&word[0], 4);
	(void)sigprocmask(SIG_UNBLOCK, &all, NULL);
}

TEST(signals_blocked_for_a_moment)
{
	watch_child(block_for_a_moment, 1, &calls);
	assert_int_equal(watching.n, 100);
	assert_int_equal(watching.exact, 0);
}

TEST(a_call_while_signals_are_blocked)
{
	watch_child(read_while_blocked, 1, &calls);
	assert_int_equal(watching.exact, 0);
	for (size_t i = 0; i < watching.n; i++)
		assert_true(!watching.delivered[i].has ||
		    watching.delivered[i].value.call < 0);
}

enum { ORPHANS = 100 };

/* As daemons are made. */
static void
leave_orphans(void *unused)
{
	(void)unused;
	begin();
	for (int i = 0; i < ORPHANS; i++) {
		const pid_t pid = fork();

		if (pid == 0) {
			if (fork() == 0)
				word[0]++;
			_exit(0);
		}
		(void)waitpid(pid, NULL, 0);
	}
}

/* Children whose parents have ended before these are heard of. */
TEST(orphans_are_followed)
{
	watching.follow = true;
	attach(child_start(leave_orphans, NULL), 1, &calls);
	watch_to_its_end(1);
	assert_int_equal(watching.n, ORPHANS);
	assert_int_equal(watching.ended, 1 + 2 * ORPHANS);
}

/* The process may come to be in the meantime; 0: there is none yet. */
static void
step_until_asleep(const pid_t *pid)
{
	const uint64_t give_up = wp_clock_ns() +
	    CHILD_PATIENCE_MS * 1000000ull;

	while (*pid == 0 || state_of(*pid) != 'S') {
		assert_true(wp_clock_ns() < give_up);
		if (wp_stops_step(watching.stops) == 0)
			doze();
	}
}

static void
on_orphan(void *arg, pid_t unwatched, const char *text)
{
	(void)arg;
	assert_int_not_equal(unwatched, 0);
	assert_holds(text, "is not watched");
	watching.warned++;
}

static const struct wp_stops_calls calls_orphan = {
	NULL, on_executed, on_ended, on_orphan,
};

static void
begin_and_pause(void *unused)
{
	(void)unused;
	begin();
	for (;;)
		(void)pause();
}

/* Whatever is done before the first step. */
TEST(an_attached_process_continues)
{
	const pid_t pid = child_start(begin_and_pause, NULL);

	attach(pid, 1, &calls);
	assert_int_not_equal(state_of(pid), 't');
}

static void
fork_when_asked(void *unused)
{
	(void)unused;
	shared->ready = 1;
	while (!shared->wanted)
		nap_us(100);
	(void)fork();
	for (;;)
		(void)pause();
}

/* Of two programs, of which the first has no watch, it is not known either what
   an orphan is to have. */
TEST(an_orphan_of_one_without_watches)
{
	const pid_t maker = child_start(fork_when_asked, NULL);
	char name[64], text[64];
	pid_t orphan;

	watching.follow = true;
	watching.bare = maker;
	attach(child_start(begin_and_pause, NULL), 1, &calls_orphan);
	step_until_asleep(&maker);
	shared->wanted = 1;
	await(state_of(maker) == 't');
	(void)snprintf(name, sizeof(name), "task/%d/children", maker);
	assert_true(wp_proc_text(maker, name, text, sizeof(text)) > 0);
	orphan = (pid_t)atol(text);
	assert_int_equal(kill(maker, SIGKILL), 0);
	await(state_of(maker) == 'Z');
	step_until_asleep(&orphan);
	assert_int_equal(wp_proc_tracer(orphan), 0);
	assert_int_equal(watching.warned, 1);
	assert_int_equal(kill(orphan, SIGKILL), 0);
}

enum { EXECUTIONS = 40 };

static void *
execute_others(void *unused)
{
	for (int i = 0; i < EXECUTIONS; i++) {
		const pid_t pid = vfork();

		if (pid == 0) {
			(void)execl("/bin/true", "true", (char *)NULL);
			_exit(1);
		}
		(void)waitpid(pid, NULL, 0);
	}
	return unused;
}

static void
execute_by_threads(void *unused)
{
	pthread_t thread[THREADS];

	begin();
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, execute_others,
		    unused) != 0)
			_exit(1);
	for (int i = 0; i < THREADS; i++)
		(void)pthread_join(thread[i], NULL);
}

/* A child may be let go before it is heard of who made it. */
TEST(children_that_execute)
{
	watching.follow = true;
	attach(child_start(execute_by_threads, NULL), 1, &calls);
	watch_to_its_end(1);
	assert_int_equal(watching.n, 0);
	assert_int_equal(watching.executed, THREADS * EXECUTIONS);
}

static pid_t let_run;	/* what executed a program, and stays traced */

/* As when it cannot be let go: it has a stop to come. */
static bool
on_executed_asleep(void *arg, pid_t pid)
{
	(void)arg;
	let_run = pid;
	wp_trace_interrupt(pid);
	wp_trace_continue(pid, 0);
	return true;
}

static const struct wp_stops_calls calls_asleep = {
	NULL, on_executed_asleep, on_ended, on_warn,
};

static void
become_sleep(void *unused)
{
	(void)unused;
	begin();
	(void)execl("/bin/sleep", "sleep", "1000", (char *)NULL);
	_exit(1);
}

static void
make_sleep(void *unused)
{
	begin();
	if (fork() == 0)
		become_sleep(unused);
	while (wait(NULL) < 0)
		;
}

/* The addresses are another program's: it is let go when it stops. */
static void
expect_let_go(void (*fn)(void *))
{
	let_run = 0;
	watching.follow = true;
	attach(child_start(fn, NULL), 1, &calls_asleep);
	step_until_asleep(&let_run);
	assert_int_equal(wp_proc_tracer(let_run), 0);
	assert_int_equal(kill(let_run, SIGKILL), 0);
}

TEST(another_program_that_could_not_be_let_go)
{
	expect_let_go(become_sleep);
}

TEST(another_program_of_a_child_that_could_not_be_let_go)
{
	expect_let_go(make_sleep);
}

/* Its child has its memory, and writes to it. */
static void
share_with_a_child(void *unused)
{
	(void)unused;
	begin();
	word[0] = 1;
	if (vfork() == 0) {
		word[0] = 77;
		_exit(0);
	}
	word[0] += 1000;
	(void)wait(NULL);
}

TEST(values_that_a_child_left)
{
	watching.follow = true;
	attach(child_start(share_with_a_child, NULL), 1, &calls);
	watch_to_its_end(1);
	assert_int_equal(watching.n, 3);
	for (size_t i = 0; i < watching.n; i++) {
		const struct wp_stop_value *value =
		    &watching.delivered[i].value;
		uint64_t old;

		if ((value->flags & WP_STOP_EXACT) == 0)
			continue;
		memcpy(&old, value->old, sizeof(old));
		assert_int_equal(old, i == 0 ? 0 : i == 1 ? 1 : 77);
	}
}

static void *
outlive(void *unused)
{
	(void)unused;
	while (!wp_proc_exiting(getpid()))
		nap_us(1000);
	word[0] = 1;
	_exit(0);
}

static void
end_first(void *unused)
{
	pthread_t thread;

	begin();
	if (pthread_create(&thread, NULL, outlive, NULL) != 0)
		_exit(1);
	pthread_exit(unused);
}

/* The first thread has ended, others have not: nobody else can be held. */
TEST(a_process_held_without_its_first_thread)
{
	watch_child(end_first, 1, &calls_hold);
	assert_int_equal(watching.n, 1);
	assert_int_equal(watching.held, 1);
}

TEST(signals_blocked)
{
	watch_child(block_all, 1, &calls);
	assert_int_equal(watching.n, 20);
	for (size_t i = 0; i < 19; i++)
		assert_false(watching.delivered[i].has &&
		    watching.delivered[i].value.flags & WP_STOP_EXACT);
}

TEST(another_program)
{
	attach(child_start(become_true, NULL), 1, &calls);
	watch_to_its_end(1);
	assert_int_equal(watching.executed, 1);
	assert_int_equal(watching.n, 5);
}

/* What executes it has another id from then on. */
TEST(another_program_by_a_thread)
{
	const pid_t pid = child_start(become_true_by_a_thread, NULL);

	attach(pid, 1, &calls);
	watch_to_its_end(1);
	assert_int_equal(watching.executed, 1);
	assert_int_equal(wp_proc_tracer(pid), 0);
	assert_int_equal(watching.ended ? watching.status : child_wait(pid),
	    0);
}

/* The kernel's copy is several samples: the last has value and call. */
TEST(what_the_kernel_writes)
{
	const struct delivered *last;

	watch_child(read_into_it, 1, &calls);
	if (!live_features.kernel) {
		assert_int_equal(watching.n, 2);
		return;
	}
	assert_true(watching.n >= 3);
	expect(&watching.delivered[0], 0, 1);
	last = &watching.delivered[watching.n - 2];
	assert_true(last->kernel);
	expect(last, 1, 0x3736353433323130);
	assert_int_equal(last->value.call, SYS_read);
	assert_int_equal(last->value.result, 8);
	for (size_t i = 1; i < watching.n - 2; i++)
		assert_false(watching.delivered[i].has);
	expect(&watching.delivered[watching.n - 1], 0x3736353433323130, 2);
}

TEST(two_watches_at_once)
{
	uint64_t seen[2] = {0, 1000};

	watch_child(touch_two, 2, &calls);
	assert_int_equal(watching.n, 100);
	for (size_t i = 0; i < 100; i++) {
		const struct delivered *delivered = &watching.delivered[i];
		const size_t w = delivered->id == wp_target_stop_id(1, 0);

		expect(delivered, seen[w] == 1000 ? 0 : seen[w], seen[w] + 1);
		seen[w]++;
	}
	assert_int_equal(seen[0], 50);
	assert_int_equal(seen[1], 1050);
}

static void
sleep_on(void *unused)
{
	(void)unused;
	begin();
	while (shared->go != 2)
		nap_us(100);
}

/* Without a free slot nobody is watched, and the program runs on. */
TEST(no_slot)
{
	const struct wp_options options = {.stop = true, .stack = 256};
	const struct wp_region region = {
		(uintptr_t)&word[0], 8, WP_WRITE,
	};
	struct perf_event_attr attr;
	struct wp_cause cause;
	int fd[WP_SLOTS_MAX], n = 0;
	pid_t pid;

	pid = child_start(sleep_on, NULL);
	await(shared->ready);
	shared->go = 1;
	wp_attr_inside(&attr, &(struct wp_slot){(uintptr_t)&word[1], 8,
	    HW_BREAKPOINT_W}, 1, false);
	while (n < WP_SLOTS_MAX && (fd[n] = wp_perf_open(&attr, pid, -1)) >= 0)
		n++;
	assert_int_equal(wp_target_new(&watching.target, &live_features,
	    &options, &cause), 0);
	assert_int_equal(wp_target_watch(watching.target, &region, 1, &cause),
	    0);
	assert_int_equal(wp_stops_new(&watching.stops, watching.target, &calls,
	    NULL), 0);
	assert_int_equal(wp_stops_attach(watching.stops, pid, 0, 1, &cause),
	    -ENOSPC);
	assert_int_equal(cause.code, WP_CAUSE_NO_SLOT);
	assert_false(wp_stops_busy(watching.stops));
	while (n > 0)
		(void)close(fd[--n]);
	assert_int_equal(live_free_slots(pid), live_features.caps.slots);
	assert_int_equal(wp_proc_tracer(pid), 0);
	shared->go = 2;
	assert_int_equal(child_wait(pid), 0);
}

/* Ended early, the program runs on as it was. */
TEST(a_process_is_released)
{
	pid_t pid;

	pid = child_start(sleep_on, NULL);
	attach(pid, 1, &calls);
	wp_stops_end(watching.stops);
	assert_false(wp_stops_busy(watching.stops));
	assert_int_equal(wp_proc_tracer(pid), 0);
	assert_int_equal(live_free_slots(pid), live_features.caps.slots);
	shared->go = 2;
	assert_int_equal(child_wait(pid), 0);
}

RUN_LIVE_TESTS(.before_each = setup, .after_each = teardown)
