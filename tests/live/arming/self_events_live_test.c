/*
 * self_events: the table of watches, the threads of a program that keeps
 * creating more, and the state of both after fork(2).
 */
#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "live.h"
#include "proc/proc.h"
#include "program.h"
#include "ptrace/ptrace.h"
#include "handler/watches.h"
#include "program/table.h"
#include "arming/threads.h"
#include "arming/delivery.h"
#include "channel_server.h"

enum { STACK = 64 * 1024, CHAINS = 6, ROUNDS = 25, OPENED_MAX = 4096 };

static volatile uint64_t word;		/* watched */

/*
 * The table.
 */

TEST(the_lock_holds_signals_and_cancellation_off)
{
	sigset_t before, locked, after;
	int cancel;

	(void)sigemptyset(&before);
	(void)sigaddset(&before, SIGUSR2);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	wp_watches_lock();
	(void)pthread_sigmask(SIG_BLOCK, NULL, &locked);
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	wp_watches_unlock();
	(void)pthread_sigmask(SIG_BLOCK, NULL, &after);
	assert_int_equal(sigismember(&locked, SIGTRAP), 1);
	assert_int_equal(sigismember(&locked, SIGUSR1), 1);
	assert_int_equal(cancel, PTHREAD_CANCEL_DISABLE);
	assert_int_equal(sigismember(&after, SIGTRAP), 0);
	assert_int_equal(sigismember(&after, SIGUSR2), 1);
	(void)pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &cancel);
	assert_int_equal(cancel, PTHREAD_CANCEL_ENABLE);
	(void)sigemptyset(&before);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static struct wp_proc_status
status_of(pid_t tid)
{
	struct wp_proc_status status = {0};

	assert_int_equal(wp_proc_status(tid, &status), 0);
	return status;
}

/* A thread that was joined is listed until the kernel is done with it. */
static void
await_alone(void)
{
	await(status_of(getpid()).threads == 1);
}

static unsigned guarded;

static void *
add_often(void *arg)
{
	for (unsigned i = 0; i < 20000; i++) {
		wp_watches_lock();
		guarded++;
		wp_watches_unlock();
	}
	return arg;
}

TEST(the_lock_excludes)
{
	pthread_t thread[4];

	for (size_t i = 0; i < COUNT(thread); i++)
		assert_int_equal(pthread_create(&thread[i], NULL, add_often,
		    NULL), 0);
	for (size_t i = 0; i < COUNT(thread); i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	assert_int_equal(guarded, COUNT(thread) * 20000);
	await_alone();
}

/* A use has 24 bits of a serial, beside the copy's number; one whose 24 are 0
   would be nobody's. */
TEST(a_serial_number_is_never_zero)
{
	uint32_t serial;

	atomic_store(&wp_state.serials, 0xfffffe);
	wp_watches_lock();
	for (unsigned i = 0; i < 4; i++) {
		assert_non_null(wp_watches_new(&serial));
		assert_int_not_equal(serial & 0xffffff, 0);
	}
	wp_watches_unlock();
	assert_int_equal(serial, 3);
}

TEST(the_table_has_an_end)
{
	static const struct wp_delivery some;
	struct wp_watch *w = NULL;
	uint32_t serial;

	wp_watches_lock();
	for (unsigned i = 0; i < WP_WATCHES_MAX; i++) {
		w = wp_watches_new(&serial);
		assert_ptr_equal(w, &wp_state.watch[i]);
		w->delivery = &some;
	}
	assert_null(wp_watches_new(&serial));
	/* closed, but not done with */
	wp_state.watch[7].delivery = NULL;
	atomic_store(&wp_state.watch[7].serial, serial);
	assert_null(wp_watches_new(&serial));
	atomic_store(&wp_state.watch[7].serial, 0);
	assert_ptr_equal(wp_watches_new(&serial), &wp_state.watch[7]);
	for (unsigned i = 0; i < WP_WATCHES_MAX; i++)
		wp_state.watch[i].delivery = NULL;
	wp_watches_unlock();
}

TEST(events_of_a_watch_come_and_go)
{
	struct wp_watch *w = &wp_state.watch[0];
	const unsigned before = open_descriptors();
	const struct wp_armed *first;

	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(wp_watch_add(w, open("/dev/null",
		    O_RDONLY | O_CLOEXEC), i % 4, (pid_t)i), 0);
	assert_int_equal(w->narmed, 1000);
	for (unsigned i = 0; i < 1000; i++) {
		assert_int_equal(w->armed[i].tid, i);
		assert_int_equal(w->armed[i].slot, i % 4);
		assert_int_not_equal(fcntl(w->armed[i].fd, F_GETFD), -1);
	}
	wp_watch_drop(w, 10);
	assert_int_equal(w->narmed, 10);
	assert_int_equal(open_descriptors(), before + 10);
	wp_watch_drop(w, 0);
	assert_int_equal(open_descriptors(), before);
	/* one page of it stays for the next use */
	first = w->armed;
	assert_int_equal(wp_watch_add(w, open("/dev/null", O_RDONLY), 0, 1), 0);
	assert_ptr_equal(w->armed, first);
	wp_watch_drop(w, 0);
}

TEST(descriptors_are_out_of_the_way)
{
	static const struct { rlim_t limit; int lowest; } cases[] = {
		{20000, 3072}, {4096, 3072}, {1024, 768}, {256, 192}, {64, 48},
	};
	const unsigned before = open_descriptors();
	struct rlimit limit, was;
	int fd, lowest;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	for (size_t i = 0; i < COUNT(cases); i++) {
		limit = was;
		limit.rlim_cur = cases[i].limit;
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
		lowest = open("/dev/null", O_RDONLY);
		fd = wp_descriptor_high(lowest);
		assert_in_range(fd, cases[i].lowest, cases[i].limit - 1);
		assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
		assert_int_equal(fcntl(lowest, F_GETFD), -1);
		(void)close(fd);
	}
	/* where there is none but this, it is */
	limit.rlim_cur = (rlim_t)open("/dev/null", O_RDONLY) + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	fd = (int)limit.rlim_cur - 1;
	assert_int_equal(wp_descriptor_high(fd), fd);
	assert_int_not_equal(fcntl(fd, F_GETFD), -1);
	(void)close(fd);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(open_descriptors(), before);
}

/*
 * Threads.
 */

struct calls {
	size_t n;
	pid_t tid[OPENED_MAX];
	unsigned undone;
	int answer;		/* to all but the first */
};

static int
note(void *arg, pid_t tid)
{
	struct calls *calls = arg;

	if (calls->n == OPENED_MAX)
		return -ENOMEM;
	calls->tid[calls->n++] = tid;
	return calls->n > 1 ? calls->answer : 0;
}

static void
unnote(void *arg)
{
	struct calls *calls = arg;

	calls->n = 0;
	calls->undone++;
}

static int
each(struct calls *calls, int (*fn)(void *, pid_t), void (*undo)(void *))
{
	int result;

	wp_watches_lock();
	result = wp_threads_each(fn, undo, NULL, calls);
	wp_watches_unlock();
	return result;
}

TEST(a_callback_runs_once_in_a_single_thread)
{
	static struct calls calls;

	assert_int_equal(each(&calls, note, unnote), 0);
	assert_int_equal(calls.n, 1);
	assert_int_equal(calls.tid[0], gettid());
	assert_int_equal(calls.undone, 0);
}

/* Threads that rest, the last ones made while others are called. */
enum { RESTING = 300, MORE = 3 };

static struct {
	pthread_t thread[RESTING + MORE];
	_Atomic pid_t tid[RESTING + MORE];
	unsigned n;
	pthread_attr_t attr;
	sem_t go;
} resting;

static void *
rest(void *arg)
{
	*(_Atomic pid_t *)arg = gettid();
	(void)sem_wait(&resting.go);
	return NULL;
}

static void
rest_one(void)
{
	unsigned i = resting.n++;

	assert_int_equal(pthread_create(&resting.thread[i], &resting.attr, rest,
	    (void *)&resting.tid[i]), 0);
	await(resting.tid[i] != 0 && status_of(resting.tid[i]).state == 'S');
}

static int
rest_begin(void **state)
{
	(void)state;
	memset(&resting, 0, sizeof(resting));
	(void)sem_init(&resting.go, 0, 0);
	(void)pthread_attr_init(&resting.attr);
	(void)pthread_attr_setstacksize(&resting.attr, STACK);
	while (resting.n < RESTING)
		rest_one();
	return 0;
}

static int
rest_end(void **state)
{
	(void)state;
	for (unsigned i = 0; i < resting.n; i++)
		(void)sem_post(&resting.go);
	for (unsigned i = 0; i < resting.n; i++)
		(void)pthread_join(resting.thread[i], NULL);
	await_alone();
	return 0;
}

TEST_WITH(each_thread_is_called_once, rest_begin, rest_end)
{
	static struct calls calls;
	unsigned found = 0;

	assert_int_equal(each(&calls, note, unnote), 0);
	assert_int_equal(calls.n, RESTING + 1);
	assert_int_equal(calls.undone, 0);
	for (unsigned i = 0; i < RESTING; i++)
		for (size_t k = 0; k < calls.n; k++)
			found += calls.tid[k] == resting.tid[i];
	assert_int_equal(found, RESTING);
}

TEST_WITH(an_ended_thread_is_passed_over_and_an_error_is_not, rest_begin,
    rest_end)
{
	static struct calls ended = {.answer = -ESRCH};
	static struct calls full = {.answer = -ENOSPC};

	assert_int_equal(each(&ended, note, unnote), 0);
	assert_int_equal(ended.n, RESTING + 1);
	assert_int_equal(each(&full, note, unnote), -ENOSPC);
	assert_int_equal(full.n, 2);
}

/* In each of the first tries, answer of them, a thread is made. */
static int
note_and_make(void *arg, pid_t tid)
{
	struct calls *calls = arg;

	if (calls->n == 0 && (int)calls->undone < calls->answer)
		rest_one();
	if (calls->n == OPENED_MAX)
		return -ENOMEM;
	calls->tid[calls->n++] = tid;
	return 0;
}

/* The second list has the new one: another try, which calls it. */
TEST_WITH(who_is_made_meanwhile_is_called, rest_begin, rest_end)
{
	static struct calls calls = {.answer = 1};
	unsigned found = 0;

	assert_int_equal(each(&calls, note_and_make, unnote), 0);
	assert_int_equal(calls.undone, 1);
	assert_int_equal(calls.n, 1 + RESTING + 1);
	for (size_t k = 0; k < calls.n; k++)
		found += calls.tid[k] == resting.tid[RESTING];
	assert_int_equal(found, 1);
}

/* The last to be made is missed. */
TEST_WITH(without_a_helper_unsettled_threads_are_reported, rest_begin, rest_end)
{
	static struct calls calls = {.answer = MORE};

	assert_int_equal(each(&calls, note_and_make, unnote), 1);
	assert_int_equal(calls.undone, MORE - 1);
	assert_int_equal(calls.n, 1 + RESTING + MORE - 1);
}

/*
 * A helper that holds threads still.
 */

static struct shared {
	volatile unsigned held;
} *shared;

SHARED_FIXTURE

static int
answer(struct wp_channel *mine)
{
	static struct wp_hold hold;

	switch (mine->request.what) {
	case WP_ASK_HOLD:
		shared->held++;
		return wp_hold_others(&hold, mine->program, mine->request.tid);
	case WP_ASK_GO:
		wp_hold_release(&hold);
		return 0;
	default:
		return -ENOSYS;
	}
}

static const struct server server = {.answer = answer};

static int
helper_begin(void **state)
{
	(void)state;
	memset((void *)shared, 0, sizeof(*shared));
	channel_open();
	assert_int_equal(wp_channel_join(channel), 0);
	channel_start_helper(&server);
	atomic_store(&wp_state.channel, channel);
	return 0;
}

static int
helper_end(void **state)
{
	channel_end_helper();
	atomic_store(&wp_state.channel, NULL);
	channel_close();
	return children_end(state);
}

static unsigned moving;

static int
note_and_look(void *arg, pid_t tid)
{
	struct calls *calls = arg;
	struct wp_proc_status status;

	if (calls->undone == MORE && tid != getpid())	/* the caller */
		moving += wp_proc_status(tid, &status) != 0 ||
		    status.state != 't';
	return note_and_make(arg, tid);
}

TEST_WITH(a_helper_holds_unsettled_threads, helper_begin, helper_end)
{
	static struct calls calls = {.answer = MORE};

	(void)rest_begin(state);
	assert_int_equal(each(&calls, note_and_look, unnote), 0);
	assert_int_equal(shared->held, 1);
	assert_int_equal(calls.undone, MORE);
	assert_int_equal(calls.n, 1 + RESTING + MORE);
	assert_int_equal(moving, 0);
	(void)rest_end(state);
}

/*
 * A storm: threads that make threads and end.  When all are covered they begin
 * to store, and to count their stores.
 */

static struct {
	_Atomic bool go, end;
	long pause;		/* us that each sleeps before it makes others */
	_Atomic unsigned alive;
	_Atomic uint64_t stores;
	pthread_attr_t attr;
} storm;

static void storm_make(void *(*)(void *));

static void
storm_store(void)
{
	for (unsigned i = 0; i < 8 && atomic_load(&storm.go); i++) {
		word = i;
		atomic_fetch_add(&storm.stores, 1);
	}
}

static void *
storm_leaf(void *arg)
{
	storm_store();
	atomic_fetch_sub(&storm.alive, 1);
	return arg;
}

static void *
storm_link(void *arg)
{
	storm_store();
	if (storm.pause > 0)
		nap_us(storm.pause);
	if (!atomic_load(&storm.end)) {
		storm_make(storm_leaf);
		storm_make(storm_link);
	}
	storm_store();
	atomic_fetch_sub(&storm.alive, 1);
	return arg;
}

/* When there are many just ending, memory for one more may be short. */
static void
storm_make(void *(*fn)(void *))
{
	pthread_t thread;

	atomic_fetch_add(&storm.alive, 1);
	while (pthread_create(&thread, &storm.attr, fn, NULL) != 0)
		nap_us(100);
}

static void
storm_begin(void)
{
	atomic_store(&storm.go, false);
	atomic_store(&storm.end, false);
	atomic_store(&storm.stores, 0);
	(void)pthread_attr_init(&storm.attr);
	(void)pthread_attr_setstacksize(&storm.attr, STACK);
	(void)pthread_attr_setdetachstate(&storm.attr, PTHREAD_CREATE_DETACHED);
	for (unsigned i = 0; i < CHAINS; i++)
		storm_make(storm_link);
	nap_us(1000);
}

static void
storm_end(void)
{
	atomic_store(&storm.end, true);
	await(storm.alive == 0);
}

static int
open_counting(void *arg, pid_t tid)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT, .size = sizeof(attr),
		.bp_type = HW_BREAKPOINT_W, .bp_len = sizeof(word),
		.bp_addr = (uintptr_t)&word, .exclude_kernel = 1,
		.inherit = 1, .inherit_thread = 1,
	};
	int fd = wp_perf_open(&attr, tid, -1);

	return fd < 0 ? fd : wp_watch_add(arg, wp_descriptor_high(fd), 0, tid);
}

static void
close_counting(void *arg)
{
	wp_watch_drop(arg, 0);
}

/* Whether all threads could be covered; then what was counted is exact. */
static bool
storm_is_counted(long pause)
{
	struct wp_watch *w = &wp_state.watch[0];
	struct wp_perf_count one;
	uint64_t counted = 0;
	int result;

	storm.pause = pause;
	storm_begin();
	wp_watches_lock();
	result = wp_threads_each(open_counting, close_counting, NULL, w);
	wp_watches_unlock();
	assert_in_range(result, 0, 1);
	if (result == 0) {
		atomic_store(&storm.go, true);
		await(storm.stores > 1000);
	}
	storm_end();
	for (size_t i = 0; i < w->narmed && result == 0; i++) {
		assert_int_equal(wp_perf_read(w->armed[i].fd, 0, &one), 0);
		counted += one.value;
	}
	wp_watch_drop(w, 0);
	if (result == 0)
		assert_int_equal(counted, storm.stores);
	return result == 0;
}

TEST(a_calm_storm_is_counted_exactly)
{
	unsigned settled = 0;

	for (unsigned i = 0; i < ROUNDS; i++)
		settled += storm_is_counted(1000);
	print_message("settled by themselves: %u of %d\n", settled, ROUNDS);
}

TEST_WITH(a_storm_is_held_and_counted_exactly, helper_begin, helper_end)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		assert_true(storm_is_counted(i % 2 == 0 ? 0 : 1000));
	print_message("held: %u of %d\n", shared->held, ROUNDS);
}

/*
 * fork(2).  These programs have no helper; their handlers count.
 */

static volatile unsigned hits;
static volatile pid_t hit_by;

static void
count_hit(const struct wp_hit *hit, void *arg)
{
	(void)arg;
	hits++;
	hit_by = hit->tid;
}

static struct wp_watch *
watch_word(wp_handler *handler, enum wp_threads threads, unsigned flags)
{
	const struct wp_attr attr = {
		.size = sizeof(attr), .addr = &word, .len = sizeof(word),
		.label = "word", .handler = handler, .threads = threads,
		.flags = flags,
	};
	struct wp_watch *w;

	CHECK(wp_open(&attr, &w) == 0);
	return w;
}

/* How many of this process's descriptors are perf events. */
static unsigned
perf_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;
	char to[64];
	unsigned n = 0;

	CHECK(dir != NULL);
	while ((entry = readdir(dir)) != NULL) {
		memset(to, 0, sizeof(to));
		if (readlinkat(dirfd(dir), entry->d_name, to,
		    sizeof(to) - 1) > 0)
			n += strstr(to, "perf_event") != NULL;
	}
	(void)closedir(dir);
	return n;
}

static void
check_child(pid_t pid)
{
	int status;

	CHECK(pid > 0);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void
fork_plainly(void *arg)
{
	struct wp_watch *w = watch_word(count_hit, WP_ALL_THREADS, 0);
	uint64_t count;
	pid_t pid;

	(void)arg;
	word = 1;
	CHECK(hits == 1);
	pid = fork();
	if (pid == 0) {
		CHECK(perf_descriptors() == 0);
		word = 2;
		CHECK(hits == 1);
		/* it can be used, and watches nothing */
		CHECK(wp_enable(w) == 0);
		CHECK(wp_count(w, &count) == 0 && count == 0);
		word = 3;
		CHECK(hits == 1);
		CHECK(watch_word(count_hit, WP_ALL_THREADS, 0) != w);
		word = 4;
		CHECK(hits == 2 && hit_by == getpid());
		wp_close(w);
		CHECK(watch_word(count_hit, WP_ALL_THREADS, 0) == w);
		_exit(0);
	}
	check_child(pid);
	word = 5;
	CHECK(hits == 2);
	CHECK(wp_count(w, &count) == 0 && count == 2);
}

TEST_WITH(a_child_is_not_watched, NULL, children_end)
{
	program(fork_plainly, NULL);
}

/* A copy of the descriptor in a child that lives on would keep the register. */
static void
close_before_child_ends(void *arg)
{
	const unsigned before = live_free_slots(0);
	struct wp_watch *w = watch_word(count_hit, WP_ALL_THREADS, 0);
	int go[2], ready[2];
	pid_t pid;
	char c;

	(void)arg;
	CHECK(pipe(go) == 0 && pipe(ready) == 0);
	CHECK(live_free_slots(0) == before - 1);
	pid = fork();
	if (pid == 0) {
		(void)close(go[1]);
		CHECK(write(ready[1], "", 1) == 1);
		CHECK(read(go[0], &c, 1) == 0);
		_exit(0);
	}
	CHECK(read(ready[0], &c, 1) == 1);
	wp_close(w);
	CHECK(live_free_slots(0) == before);
	(void)close(go[1]);
	check_child(pid);
}

TEST_WITH(a_child_keeps_no_register_taken, NULL, children_end)
{
	program(close_before_child_ends, NULL);
}

/* Children, and theirs. */
static void
follow(struct wp_watch *w, unsigned depth)
{
	unsigned before = hits;
	uint64_t count;
	pid_t pid;

	word = depth;
	CHECK(hits == before + 1);
	CHECK(hit_by == getpid());
	if (depth == 0)
		return;
	pid = fork();
	if (pid == 0) {
		follow(w, depth - 1);
		wp_close(w);
		before = hits;
		word = depth;
		CHECK(hits == before);
		_exit(0);
	}
	check_child(pid);
	CHECK(hits == before + 1);
	word = depth;
	CHECK(hits == before + 2);
	CHECK(wp_count(w, &count) == 0 && count == 2);
}

static void
fork_followed(void *arg)
{
	const enum wp_threads threads = *(const enum wp_threads *)arg;

	follow(watch_word(count_hit, threads, WP_FORK), 3);
}

TEST_WITH(with_wp_fork_children_are_watched, NULL, children_end)
{
	static const enum wp_threads threads[] = {
		WP_ALL_THREADS, WP_THIS_THREAD,
	};

	for (size_t i = 0; i < COUNT(threads); i++)
		program(fork_followed, &threads[i]);
}

/* Another thread's watch means nothing in the child, which has not that one. */
static void *
fork_in_thread(void *arg)
{
	pid_t pid = fork();

	if (pid == 0) {
		word = 2;
		CHECK(hits == 1);
		_exit(0);
	}
	*(pid_t *)arg = pid;
	return NULL;
}

static void
fork_by_another(void *arg)
{
	pthread_t thread;
	pid_t pid;

	(void)arg;
	(void)watch_word(count_hit, WP_THIS_THREAD, WP_FORK);
	word = 1;
	CHECK(hits == 1);
	CHECK(pthread_create(&thread, NULL, fork_in_thread, &pid) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	check_child(pid);
	word = 3;
	CHECK(hits == 2);
}

TEST_WITH(another_threads_watch_is_not_followed, NULL, children_end)
{
	program(fork_by_another, NULL);
}

static volatile pid_t forked_pid = -1;

static void
fork_once(const struct wp_hit *hit, void *arg)
{
	count_hit(hit, arg);
	if (forked_pid < 0)
		forked_pid = fork();
}

/* In the child, the handler returns in the midst of a hit of its parent's. */
static void
fork_in_handler(void *arg)
{
	const unsigned flags = *(const unsigned *)arg;
	struct wp_watch *w = watch_word(fork_once, WP_ALL_THREADS, flags);
	const bool follows = (flags & WP_FORK) != 0;

	(void)alarm(CHILD_PATIENCE_MS / 1000);
	word = 1;
	CHECK(hits == 1);
	word = 2;
	CHECK(hits == (forked_pid == 0 && !follows ? 1 : 2));
	wp_close(w);
	word = 3;
	CHECK(hits == (forked_pid == 0 && !follows ? 1 : 2));
	CHECK(watch_word(count_hit, WP_ALL_THREADS, 0) == w);
	if (forked_pid == 0)
		_exit(0);
	check_child(forked_pid);
}

TEST_WITH(a_handler_may_fork, NULL, children_end)
{
	static const unsigned flags[] = {0, WP_FORK};

	for (size_t i = 0; i < COUNT(flags); i++)
		program(fork_in_handler, &flags[i]);
}

static _Atomic bool in_handler, leave_handler;

static void
stay(const struct wp_hit *hit, void *arg)
{
	count_hit(hit, arg);
	atomic_store(&in_handler, true);
	while (!atomic_load(&leave_handler))
		nap_us(100);
}

static void *
store_one(void *arg)
{
	word = 1;
	return arg;
}

/* wp_close waits for handlers; but not in the child for one of its parent's. */
static void
fork_while_handled(void *arg)
{
	struct wp_watch *w = watch_word(stay, WP_ALL_THREADS, 0);
	pthread_t thread;
	pid_t pid;

	(void)arg;
	CHECK(pthread_create(&thread, NULL, store_one, NULL) == 0);
	while (!atomic_load(&in_handler))
		nap_us(100);
	pid = fork();
	if (pid == 0) {
		(void)alarm(CHILD_PATIENCE_MS / 1000);
		wp_close(w);
		_exit(0);
	}
	check_child(pid);
	atomic_store(&leave_handler, true);
	wp_close(w);
	CHECK(pthread_join(thread, NULL) == 0);
}

TEST_WITH(a_parents_handler_is_not_waited_for, NULL, children_end)
{
	program(fork_while_handled, NULL);
}

/* These run no handlers of pthread_atfork(3). */
static pid_t
by_vfork(void)
{
	pid_t pid = vfork();

	if (pid == 0) {
		word = 2;
		_exit(0);
	}
	return pid;
}

static pid_t
by_spawn(void)
{
	char name[] = "true", *argv[] = {name, NULL};
	pid_t pid;

	CHECK(posix_spawnp(&pid, "true", NULL, NULL, argv, environ) == 0);
	return pid;
}

static pid_t
by_system_call(void)
{
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	if (pid == 0) {
		word = 2;
		_exit(hits == 1 ? 0 : 1);
	}
	return pid;
}

static void
make_otherwise(void *arg)
{
	pid_t (*const make)(void) = *(pid_t (*const *)(void))arg;
	uint64_t count;
	struct wp_watch *w = watch_word(count_hit, WP_ALL_THREADS, WP_FORK);

	word = 1;
	CHECK(hits == 1);
	check_child(make());
	CHECK(hits == 1);
	word = 3;
	CHECK(hits == 2);
	CHECK(wp_count(w, &count) == 0 && count == 2);
}

TEST_WITH(children_made_otherwise_are_not_watched, NULL, children_end)
{
	static pid_t (*const make[])(void) = {
		by_vfork, by_spawn, by_system_call,
	};

	for (size_t i = 0; i < COUNT(make); i++)
		program(make_otherwise, &make[i]);
}

static _Atomic bool enough;

static void *
open_and_close(void *arg)
{
	while (!enough)
		wp_close(watch_word(count_hit, WP_THIS_THREAD, 0));
	return arg;
}

/* The child has the table whole, and can lock it. */
static void
fork_meanwhile(void *arg)
{
	pthread_t thread[2];
	pid_t pid;

	(void)arg;
	for (size_t i = 0; i < COUNT(thread); i++)
		CHECK(pthread_create(&thread[i], NULL, open_and_close, NULL) ==
		    0);
	for (unsigned i = 0; i < 100; i++) {
		pid = fork();
		if (pid == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			CHECK(perf_descriptors() == 0);
			(void)watch_word(count_hit, WP_ALL_THREADS, 0);
			word = i;
			CHECK(hits == 1);
			_exit(0);
		}
		check_child(pid);
	}
	enough = true;
	for (size_t i = 0; i < COUNT(thread); i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
}

TEST_WITH(forking_while_others_open_is_safe, NULL, children_end)
{
	program(fork_meanwhile, NULL);
}

int
main(void)
{
	if (setenv("WATCHPOINT_HELPER", "", 1) != 0)
		return 1;
	return run_live_tests();
}
