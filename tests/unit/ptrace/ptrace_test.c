/*
 * ptrace: processes are held and released at the worst moments, and must not
 * notice.
 */
#include "test.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "child.h"
#include "proc/proc.h"
#include "ptrace/ptrace.h"
#include "scratch.h"

enum { THREADS = 100, SIGNALS = 64, KILLS = 50, LAUNCHES = 25 };

/* What children report. */
static struct shared {
	volatile unsigned turns[THREADS];	/* of each thread */
	volatile pid_t tid[THREADS];
	volatile int ready;		/* threads, or steps, that are there */
	volatile bool end, alone;	/* alone: the first thread goes first */
	volatile unsigned got[SIGNALS];	/* deliveries, by the value sent */
	volatile unsigned usr1;
	volatile pid_t other;		/* a process of the child's */
	volatile int result;
} *shared;

SHARED_FIXTURE

/* --- what is tested calls this, so tests can choose the moment --- */

static void (*before_ptrace)(enum __ptrace_request, pid_t);

long
ptrace(enum __ptrace_request request, ...)
{
	long (*next)(enum __ptrace_request, ...) =
	    (long (*)(enum __ptrace_request, ...))(uintptr_t)
	    dlsym(RTLD_NEXT, "ptrace");
	void *addr, *data;
	va_list ap;
	pid_t tid;

	va_start(ap, request);
	tid = va_arg(ap, pid_t);
	addr = va_arg(ap, void *);
	data = va_arg(ap, void *);
	va_end(ap);
	if (before_ptrace != NULL)
		before_ptrace(request, tid);
	return next(request, tid, addr, data);
}

/* For a child: die at one of its calls. */
static int calls_left;

static void
die_at_last_call(enum __ptrace_request request, pid_t tid)
{
	(void)request;
	(void)tid;
	if (--calls_left == 0)
		(void)raise(SIGKILL);
}

/* --- */

static struct wp_proc_status
status_of(pid_t pid)
{
	struct wp_proc_status status;

	if (wp_proc_status(pid, &status) != 0)
		memset(&status, 0, sizeof(status));
	return status;
}

/* --- a process of busy threads --- */

static void *
turn(void *arg)
{
	size_t i = (size_t)(uintptr_t)arg;

	each_turn(i) {
		/* most sleep, some call, some run */
		if (i % 40 == 38)
			(void)sched_yield();
		else if (i % 40 != 39)
			nap_us(50);
	}
	if (shared->alone)
		_exit(0);
	return NULL;
}

static void
start_threads(size_t n)
{
	child_threads(n, turn);
	while (shared->ready < (int)n)
		nap_us(100);
}

/* arg: how many threads; the first is one more, which rests. */
static void
have_threads(void *arg)
{
	start_threads((size_t)(uintptr_t)arg);
	shared->other = 1;
	while (!shared->end)
		nap_us(1000);
}

static pid_t
start_process(size_t threads)
{
	pid_t pid = child_start(have_threads, (void *)(uintptr_t)threads);

	await(shared->other == 1);
	return pid;
}

/* Each thread has its turn again. */
static void
expect_running(size_t threads)
{
	for (size_t i = 0; i < threads; i++) {
		unsigned before = shared->turns[i];

		await(shared->turns[i] != before);
	}
}

/* It runs to its own end, untraced. */
static void
expect_own_end(pid_t pid)
{
	assert_int_equal(status_of(pid).tracer, 0);
	shared->end = true;
	assert_int_equal(child_wait(pid), 0);
}

TEST(every_thread_stands_still)
{
	unsigned turns[THREADS];
	struct wp_hold hold = {0};
	pid_t pid = start_process(THREADS);

	assert_int_equal(wp_hold_process(&hold, pid), 0);
	assert_int_equal(hold.n, THREADS + 1);
	for (size_t i = 0; i < hold.n; i++)
		assert_true(hold.thread[i].stopped);
	memcpy(turns, (const void *)shared->turns, sizeof(turns));
	for (size_t i = 0; i < THREADS; i++) {
		assert_int_equal(status_of(shared->tid[i]).state, 't');
		assert_int_equal(status_of(shared->tid[i]).tracer, getpid());
	}
	nap_us(20000);
	assert_memory_equal(turns, (const void *)shared->turns, sizeof(turns));
	wp_hold_release(&hold);
	assert_int_equal(hold.n, 0);
	assert_null(hold.thread);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(status_of(shared->tid[i]).tracer, 0);
	expect_running(THREADS);
	expect_own_end(pid);
}

/* --- threads that make threads --- */

static void *
chain(void *arg)
{
	__atomic_add_fetch(&shared->turns[0], 1, __ATOMIC_SEQ_CST);
	if (!shared->end)
		child_thread(chain, arg);
	return NULL;
}

static void
have_chains(void *arg)
{
	(void)arg;
	for (int i = 0; i < 4; i++)
		(void)chain(NULL);
	while (!shared->end)
		nap_us(1000);
	nap_us(10000);
}

/* No thread slips through by being made while the list is looked at. */
TEST(no_new_thread_escapes)
{
	pid_t pid = child_start(have_chains, NULL);

	await(shared->turns[0] > 100);
	for (int i = 0; i < 120; i++) {
		struct wp_hold hold = {0};
		unsigned before;

		assert_int_equal(wp_hold_process(&hold, pid), 0);
		before = shared->turns[0];
		nap_us(1000);
		assert_int_equal(shared->turns[0], before);
		wp_hold_release(&hold);
		await(shared->turns[0] != before);
	}
	expect_own_end(pid);
}

/* --- signals --- */

static void
count_value(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	shared->got[info->si_value.sival_int % SIGNALS]++;
}

static void
count_usr1(int sig)
{
	(void)sig;
	shared->usr1++;
}

static void
await_signals(void *arg)
{
	struct sigaction action = {.sa_sigaction = count_value,
	    .sa_flags = SA_SIGINFO | SA_RESTART};

	(void)sigaction(SIGRTMIN, &action, NULL);
	(void)signal(SIGUSR1, count_usr1);
	have_threads(arg);
}

static void
queue_value(pid_t pid, int value)
{
	assert_int_equal(sigqueue(pid, SIGRTMIN,
	    (union sigval){.sival_int = value}), 0);
}

static void
expect_each_once(int n)
{
	for (int i = 0; i < n; i++) {
		await(shared->got[i] != 0);
		assert_int_equal(shared->got[i], 1);
	}
}

TEST(signals_wait_while_held)
{
	pid_t pid = child_start(await_signals, (void *)(uintptr_t)3);
	struct wp_hold hold = {0};

	await(shared->other == 1);
	assert_int_equal(wp_hold_process(&hold, pid), 0);
	for (int i = 0; i < 20; i++)
		queue_value(pid, i);
	assert_int_equal(kill(pid, SIGUSR1), 0);
	nap_us(5000);
	assert_int_equal(shared->got[0], 0);
	assert_int_equal(shared->usr1, 0);
	wp_hold_release(&hold);
	expect_each_once(20);
	await(shared->usr1 == 1);
	expect_own_end(pid);
}

/* Signals that come just when the process is being held or let go. */
TEST(signals_come_once_however_they_race)
{
	pid_t pid = child_start(await_signals, (void *)(uintptr_t)3);

	await(shared->other == 1);
	for (int i = 0; i < SIGNALS; i++) {
		struct wp_hold hold = {0};

		queue_value(pid, i);
		for (int k = 0; k < i % 4; k++)
			(void)sched_yield();
		assert_int_equal(wp_hold_process(&hold, pid), 0);
		wp_hold_release(&hold);
	}
	expect_each_once(SIGNALS);
	expect_own_end(pid);
}

static void *
hold_and_leave(void *arg)
{
	struct wp_hold hold = {0};

	shared->result = wp_hold_process(&hold, *(pid_t *)arg);
	/* the end of this thread is all that lets go */
	free(hold.thread);
	return NULL;
}

static void
in_a_thread(void *(*fn)(void *), pid_t pid)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, fn, &pid), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* A signal comes when a thread is seized and not interrupted yet. */
static void
signal_before_interrupt(enum __ptrace_request request, pid_t tid)
{
	pid_t pid = status_of(tid).tgid;

	if (request != PTRACE_INTERRUPT || tid != pid)
		return;
	(void)sigqueue(pid, SIGRTMIN, (union sigval){.sival_int = 0});
	while (status_of(tid).state != 't')
		nap_us(10);
}

TEST(signals_that_stop_a_thread_reach_it)
{
	pid_t pid = child_start(await_signals, NULL);
	struct wp_hold hold = {0};

	await(shared->other == 1);
	before_ptrace = signal_before_interrupt;
	assert_int_equal(wp_hold_process(&hold, pid), 0);
	before_ptrace = NULL;
	assert_int_equal(hold.n, 1);
	assert_int_equal(hold.thread[0].signal, SIGRTMIN);
	assert_int_equal(shared->got[0], 0);
	wp_hold_release(&hold);
	expect_each_once(1);
	expect_own_end(pid);
}

/* Nor are they lost when the holder ends. */
TEST(signals_outlive_the_holder)
{
	pid_t pid = child_start(await_signals, NULL);

	await(shared->other == 1);
	before_ptrace = signal_before_interrupt;
	in_a_thread(hold_and_leave, pid);
	before_ptrace = NULL;
	assert_int_equal(shared->result, 0);
	expect_each_once(1);
	expect_own_end(pid);
}

/* --- stopped processes --- */

static void
expect_standing(void)
{
	unsigned before[2];

	nap_us(5000);
	memcpy(before, (const void *)shared->turns, sizeof(before));
	nap_us(10000);
	assert_memory_equal(before, (const void *)shared->turns,
	    sizeof(before));
}

TEST(a_stopped_process_remains_stopped)
{
	pid_t pid = start_process(2);
	int status;

	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	for (int i = 0; i < 20; i++) {
		struct wp_hold hold = {0};

		assert_int_equal(wp_hold_process(&hold, pid), 0);
		assert_int_equal(hold.n, 3);
		wp_hold_release(&hold);
		/* by way of a moment's waking */
		await(status_of(pid).state == 'T');
		await(status_of(shared->tid[1]).state == 'T');
	}
	expect_standing();
	assert_int_equal(kill(pid, SIGCONT), 0);
	expect_running(2);
	expect_own_end(pid);
}

TEST(stop_signals_work_while_held)
{
	pid_t pid = start_process(2);
	struct wp_hold hold = {0};

	assert_int_equal(wp_hold_process(&hold, pid), 0);
	assert_int_equal(kill(pid, SIGSTOP), 0);
	wp_hold_release(&hold);
	await(status_of(pid).state == 'T');
	await(status_of(shared->tid[0]).state == 'T');
	expect_standing();

	assert_int_equal(wp_hold_process(&hold, pid), 0);
	assert_int_equal(kill(pid, SIGCONT), 0);
	expect_standing();
	wp_hold_release(&hold);
	expect_running(2);
	expect_own_end(pid);
}

/* --- threads that cannot stop, or are no more --- */

static void
wait_in_vfork(void *arg)
{
	pid_t child;

	(void)arg;
	start_threads(2);
	shared->other = -1;
	if ((child = vfork()) == 0) {
		shared->other = getpid();
		while (!shared->end)
			(void)poll(NULL, 0, 1);
		_exit(0);
	}
	(void)waitpid(child, NULL, 0);
	shared->result = 77;
}

static void *
hold_and_release(void *arg)
{
	struct wp_hold hold = {0};

	shared->result = wp_hold_process(&hold, *(pid_t *)arg);
	shared->usr1 = (unsigned)hold.n;
	wp_hold_release(&hold);
	return NULL;
}

TEST(uninterruptible_sleep_does_not_hinder)
{
	pid_t pid = child_start(wait_in_vfork, NULL);

	await(shared->other > 0 && status_of(pid).state == 'D');
	in_a_thread(hold_and_release, pid);
	assert_int_equal(shared->result, 0);
	assert_int_equal(shared->usr1, 3);
	assert_int_equal(status_of(pid).tracer, 0);
	expect_running(2);
	/* and when it wakes, it is not stopped for good */
	shared->end = true;
	assert_int_equal(child_wait(pid), 0);
	assert_int_equal(shared->result, 77);
}

static void
leave_first(void *arg)
{
	shared->alone = true;
	start_threads((size_t)(uintptr_t)arg);
	pthread_exit(NULL);
}

TEST(holds_what_the_first_thread_left)
{
	pid_t pid = child_start(leave_first, (void *)(uintptr_t)4);
	struct wp_hold hold = {0};

	await(status_of(pid).state == 'Z');
	assert_int_equal(wp_hold_process(&hold, pid), 0);
	assert_int_equal(hold.n, 4);
	expect_standing();
	wp_hold_release(&hold);
	expect_running(4);
	shared->end = true;
	assert_int_equal(child_wait(pid), 0);
}

static void
leave_first_soon(void *arg)
{
	shared->alone = true;
	start_threads(1);
	shared->other = 1;
	nap_us((long)(uintptr_t)arg * 2);
	pthread_exit(NULL);
}

/* The first thread ends while it is being held. */
TEST(first_threads_may_end_meanwhile)
{
	for (int i = 0; i < 40; i++) {
		pid_t pid;

		(void)clear_shared(state);
		pid = child_start(leave_first_soon, (void *)(uintptr_t)i);
		await(shared->other == 1);
		in_a_thread(hold_and_release, pid);
		assert_int_equal(shared->result, 0);
		expect_running(1);
		shared->end = true;
		assert_int_equal(child_wait(pid), 0);
	}
}

/* It does so when it is seized and not interrupted yet. */
static void
leave_before_interrupt(enum __ptrace_request request, pid_t tid)
{
	if (request != PTRACE_INTERRUPT || tid != shared->other)
		return;
	shared->result = 1;
	while (strchr("ZX?", status_of(tid).state) == NULL)
		nap_us(10);
}

static void
leave_when_told(void *arg)
{
	bool all = *(bool *)arg;

	shared->alone = true;
	start_threads(1);
	shared->other = getpid();
	while (shared->result == 0)
		nap_us(10);
	if (all)
		_exit(42);
	pthread_exit(NULL);
}

TEST(first_threads_may_end_when_seized)
{
	bool all = false;
	pid_t pid = child_start(leave_when_told, &all);

	await(shared->other == pid);
	before_ptrace = leave_before_interrupt;
	in_a_thread(hold_and_release, pid);
	before_ptrace = NULL;
	assert_int_equal(shared->result, 0);
	expect_running(1);
	shared->end = true;
	assert_int_equal(child_wait(pid), 0);
}

TEST(processes_may_end_when_seized)
{
	bool all = true;
	pid_t pid = child_start(leave_when_told, &all);
	int status;

	await(shared->other == pid);
	before_ptrace = leave_before_interrupt;
	in_a_thread(hold_and_release, pid);
	before_ptrace = NULL;
	assert_int_equal(shared->result, -ESRCH);
	status = child_wait(pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 42);
}

static void
end_soon(void *arg)
{
	start_threads(5);
	shared->other = 1;
	nap_us((long)(uintptr_t)arg * 25);
	_exit(42);
}

/* It ends as it would have, for its parent to see. */
TEST(processes_may_end_meanwhile)
{
	for (int i = 0; i < 40; i++) {
		pid_t pid;
		int status;

		(void)clear_shared(state);
		pid = child_start(end_soon, (void *)(uintptr_t)i);
		await(shared->other == 1);
		in_a_thread(hold_and_release, pid);
		assert_true(shared->result == 0 || shared->result == -ESRCH);
		status = child_wait(pid);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 42);
	}
}

static void *
hold_and_kill(void *arg)
{
	struct wp_hold hold = {0};
	pid_t pid = *(pid_t *)arg;

	shared->result = wp_hold_process(&hold, pid);
	(void)kill(pid, SIGKILL);
	wp_hold_release(&hold);
	return NULL;
}

TEST(held_processes_can_be_killed)
{
	for (int i = 0; i < 20; i++) {
		pid_t pid;
		int status;

		(void)clear_shared(state);
		pid = start_process(5);
		in_a_thread(hold_and_kill, pid);
		assert_int_equal(shared->result, 0);
		status = child_wait(pid);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGKILL);
	}
}

TEST(refuses_what_is_not_there)
{
	struct wp_hold hold = {0};
	pid_t pid = start_process(1);

	assert_int_equal(kill(pid, SIGKILL), 0);
	await(status_of(pid).state == 'Z');
	assert_int_equal(wp_hold_process(&hold, pid), -ESRCH);
	assert_int_equal(hold.n, 0);
	(void)child_wait(pid);
	assert_int_equal(wp_hold_process(&hold, pid), -ESRCH);
	assert_int_equal(hold.n, 0);
	wp_hold_release(&hold);
}

static void
trace_one(void *arg)
{
	pid_t tid = *(pid_t *)arg;

	shared->result = ptrace(PTRACE_SEIZE, tid, 0, 0) == 0 ? 1 : -errno;
	for (;;)
		(void)pause();
}

/* One thread is traced by another: then none is held, or stays so. */
TEST(refuses_what_others_trace)
{
	pid_t pid = start_process(20), tid = shared->tid[10];
	pid_t tracer = child_start(trace_one, &tid);

	await(shared->result != 0);
	assert_int_equal(shared->result, 1);
	for (int i = 0; i < 10; i++) {
		struct wp_hold hold = {0};

		assert_int_equal(wp_hold_process(&hold, pid), -EPERM);
		assert_int_equal(hold.n, 0);
		for (size_t t = 0; t < 20; t++)
			assert_int_not_equal(status_of(shared->tid[t]).tracer,
			    getpid());
		expect_running(20);
	}
	child_kill(tracer);
	expect_own_end(pid);
}

/* --- the holder is killed --- */

static void
hold_for_ever(void *arg)
{
	pid_t pid = *(pid_t *)arg;

	for (;;) {
		struct wp_hold hold = {0};

		shared->result = wp_hold_process(&hold, pid);
		wp_hold_release(&hold);
		shared->usr1++;
	}
}

TEST(targets_outlive_their_holder)
{
	pid_t pid = start_process(10);
	unsigned short seed[3] = {1, 2, 3};

	for (int i = 0; i < KILLS; i++) {
		pid_t holder = child_start(hold_for_ever, &pid);
		unsigned before = shared->usr1;

		await(shared->usr1 != before);
		nap_us(nrand48(seed) % 3000);
		child_kill(holder);
		await(status_of(pid).tracer == 0);
		expect_running(10);
	}
	expect_own_end(pid);
}

static void
hold_once(void *arg)
{
	struct wp_hold hold = {0};

	before_ptrace = die_at_last_call;
	if (wp_hold_process(&hold, *(pid_t *)arg) != 0)
		_exit(1);
	wp_hold_release(&hold);
}

/* The holder dies at each of its calls. */
TEST(targets_outlive_each_call)
{
	pid_t pid = start_process(3);
	int status = -1, calls;

	for (calls = 1; status != 0; calls++) {
		calls_left = calls;
		status = child_wait(child_start(hold_once, &pid));
		assert_true(status == 0 || WIFSIGNALED(status));
		await(status_of(pid).tracer == 0);
		expect_running(3);
	}
	/* seized, interrupted and let go, four threads */
	assert_true(calls > 3 * 4);
	expect_own_end(pid);
}

/* --- what is made --- */

static void
fork_once(void *arg)
{
	(void)arg;
	await(shared->ready == 1);
	if (fork() == 0)
		_exit(0);
	child_rest(NULL);
}

/* Until a traced thread has something to report. */
static struct wp_trace
report_of(pid_t tid)
{
	struct wp_trace trace = {.tid = 0};

	await(wp_trace_next(tid, &trace) > 0);
	return trace;
}

/* Its creator is killed before it has reported it. */
TEST(what_has_reported_nothing_is_traced)
{
	const pid_t pid = child_start(fork_once, NULL);
	struct wp_hold hold = {0};
	pid_t made;

	assert_false(wp_trace_any());
	assert_int_equal(wp_trace_process(&hold, pid, true), 0);
	assert_true(wp_trace_any());
	shared->ready = 1;
	wp_trace_continue(pid, 0);
	free(hold.thread);
	made = report_of(pid).made;
	assert_int_not_equal(made, 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(report_of(pid).what, WP_TRACE_END);
	child_kill(pid);
	assert_true(wp_trace_any());
	assert_int_equal(report_of(made).what, WP_TRACE_STOP);
	wp_trace_let_go(made, 0);
	assert_false(wp_trace_any());
}

/* --- commands --- */

/* Run a held command to its end.  Result: its wait status. */
static int
let_run(struct wp_hold *hold, pid_t pid)
{
	wp_hold_release(hold);
	return child_wait(pid);
}

static bool
maps_libc(pid_t pid)
{
	char line[4096], name[64];
	bool found = false;
	FILE *f;

	(void)snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	f = fopen(name, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL)
		found = found || strstr(line, "/libc.") != NULL;
	(void)fclose(f);
	return found;
}

TEST(commands_start_held)
{
	char *const argv[] = {(char *)"sh", (char *)"-c", (char *)"exit 7",
	    NULL};
	struct wp_hold hold = {0};
	unsigned before = open_descriptors();
	char comm[64];
	pid_t pid;
	int status;

	assert_int_equal(wp_hold_command(&hold, argv, &pid), 0);
	assert_int_equal(hold.n, 1);
	assert_int_equal(hold.thread[0].tid, pid);
	assert_true(hold.thread[0].stopped);
	/* execve has been: it is the command; but not even its loader ran */
	assert_int_equal(wp_proc_comm(pid, pid, comm), 0);
	assert_string_equal(comm, "sh");
	assert_int_equal(status_of(pid).state, 't');
	assert_false(maps_libc(pid));
	assert_int_equal(open_descriptors(), before);
	status = let_run(&hold, pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

/* Its owner decides whether it runs on. */
TEST(a_command_whose_threads_cannot_be_listed_stays_held)
{
	char *const argv[] = {(char *)"sh", (char *)"-c", (char *)"exit 7",
	    NULL};
	struct wp_hold hold = {0};
	struct rlimit usual, none;
	pid_t pid;
	int err, status;

	assert_int_equal(wp_hold_command(&hold, argv, &pid), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
	none = (struct rlimit){0, usual.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	err = wp_hold_process(&hold, pid);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
	assert_int_equal(err, -EMFILE);
	assert_int_equal(hold.n, 1);
	assert_int_equal(status_of(pid).state, 't');
	status = let_run(&hold, pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static const struct {
	const char *name;	/* in the scratch directory if it has no '/' */
	int err;
} failures[] = {
	{"no-such-command", -ENOENT},
	{"/no/such/command", -ENOENT},
	{"", -ENOENT},
	{"./plain", -EACCES},
	{"./", -EACCES},
	{"./plain/below", -ENOTDIR},
	{"./loop", -ELOOP},
	{"./no-interpreter", -ENOENT},
};

TEST(commands_fail_as_execve_does)
{
	unsigned before = open_descriptors();

	assert_int_equal(chdir(scratch_dir), 0);
	scratch_write("plain", "not a program\n");
	scratch_write("no-interpreter", "#!/no/such/interpreter\n");
	assert_int_equal(chmod("no-interpreter", 0755), 0);
	assert_int_equal(symlink("loop", "loop"), 0);
	for (size_t i = 0; i < COUNT(failures); i++) {
		char *const argv[] = {(char *)(uintptr_t)failures[i].name,
		    NULL};
		struct wp_hold hold = {0};
		pid_t pid;
		int err = wp_hold_command(&hold, argv, &pid);

		if (err != failures[i].err)
			fail_msg("'%s': %d", failures[i].name, err);
		assert_int_equal(hold.n, 0);
		assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
		assert_int_equal(errno, ECHILD);
		wp_hold_release(&hold);
	}
	assert_int_equal(open_descriptors(), before);
	assert_int_equal(chdir("/"), 0);
}

/* Everything about a process that it could notice, except ids and times. */
static const char *const about[] = {
	"cmdline", "environ", "limits", "personality", "oom_score_adj",
	"timerslack_ns", "coredump_filter",
};
static const char *const about_status[] = {
	"Name", "Umask", "State", "PPid", "TracerPid", "Uid", "Gid",
	"Groups", "Threads", "SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt",
	"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs",
	"Seccomp", "Cpus_allowed", "Mems_allowed",
};

static void
tell_status(FILE *to, pid_t pid)
{
	char name[64], line[1 << 14];
	FILE *f;

	(void)snprintf(name, sizeof(name), "/proc/%d/status", pid);
	f = fopen(name, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL) {
		char *colon = strchr(line, ':');

		*colon = '\0';
		for (size_t i = 0; i < COUNT(about_status); i++)
			if (strcmp(line, about_status[i]) == 0)
				(void)fprintf(to, "%s%s", line, colon + 1);
	}
	(void)fclose(f);
}

static void
tell_file(FILE *to, pid_t pid, const char *what)
{
	char name[64];
	FILE *f;
	int c;

	(void)snprintf(name, sizeof(name), "/proc/%d/%s", pid, what);
	f = fopen(name, "r");
	assert_non_null(f);
	(void)fprintf(to, "%s:\n", what);
	while ((c = getc(f)) != EOF)
		(void)putc(c == '\0' ? '|' : c, to);
	(void)putc('\n', to);
	(void)fclose(f);
}

static void
tell_descriptors(FILE *to, pid_t pid)
{
	char name[64], link[PATH_MAX];

	for (int fd = -1; fd < 1024; fd++) {
		ssize_t n;

		(void)snprintf(name, sizeof(name),
		    fd < 0 ? "/proc/%d/cwd" : "/proc/%d/fd/%d", pid, fd);
		if ((n = readlink(name, link, sizeof(link) - 1)) < 0)
			continue;
		link[n] = '\0';
		(void)fprintf(to, "%d: %s\n", fd, link);
	}
}

/* Report of `sleep' when it does; started plainly, or held first. */
static char *
tell(bool held)
{
	char *const argv[] = {(char *)"sleep", (char *)" 0", (char *)"1000",
	    NULL};
	struct wp_hold hold = {0};
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);
	pid_t pid;

	assert_non_null(to);
	if (held) {
		assert_int_equal(wp_hold_command(&hold, argv, &pid), 0);
		wp_hold_release(&hold);
	} else if ((pid = fork()) == 0) {
		(void)execvp(argv[0], argv);
		_exit(127);
	}
	await(strcmp(status_of(pid).comm, "sleep") == 0 &&
	    maps_libc(pid) && status_of(pid).state == 'S');
	for (size_t i = 0; i < COUNT(about); i++)
		tell_file(to, pid, about[i]);
	tell_status(to, pid);
	tell_descriptors(to, pid);
	(void)fprintf(to, "group %d session %d nice %d policy %d\n",
	    getpgid(pid), getsid(pid), getpriority(PRIO_PROCESS,
	    (id_t)pid), sched_getscheduler(pid));
	(void)fclose(to);
	child_kill(pid);
	return text;
}

TEST(commands_run_as_without_a_tracer)
{
	char *env[] = {(char *)"PATH=/usr/bin:/bin", (char *)"EMPTY=",
	    (char *)"ODD=two words", (char *)"ODD=again", NULL};
	char **environ_before = environ, *plain, *held;
	struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
	sigset_t block, mask;
	int extra = open("/dev/null", O_RDWR);	/* for commands too */

	(void)sigemptyset(&block);
	(void)sigaddset(&block, SIGUSR1);
	(void)sigaddset(&block, SIGRTMIN + 3);
	(void)sigprocmask(SIG_BLOCK, &block, &mask);
	(void)sigaction(SIGPIPE, &ignore, &before);
	environ = env;
	plain = tell(false);
	held = tell(true);
	environ = environ_before;
	(void)sigaction(SIGPIPE, &before, NULL);
	(void)sigprocmask(SIG_SETMASK, &mask, NULL);
	(void)close(extra);
	/* what we did is seen, so what we did not would be */
	assert_holds(plain, "sleep| 0|1000|");
	assert_holds(plain, "EMPTY=|ODD=two words|ODD=again|");
	assert_holds(plain, "SigBlk\t0000001000000200\n");
	assert_holds(plain, "SigIgn\t0000000000001000\n");
	assert_holds(plain, ": /dev/null\n");
	assert_holds(plain, "TracerPid\t0\n");
	assert_string_equal(held, plain);
	free(plain);
	free(held);
}

TEST(commands_get_their_signals)
{
	char *const argv[] = {(char *)"sh", (char *)"-c",
	    (char *)"trap 'exit 9' TERM; kill -TERM $$; exit 1", NULL};
	char *const fatal[] = {(char *)"sleep", (char *)"1000", NULL};
	struct wp_hold hold = {0};
	pid_t pid;
	int status;

	assert_int_equal(wp_hold_command(&hold, argv, &pid), 0);
	status = let_run(&hold, pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 9);
	/* one that came while it was held */
	assert_int_equal(wp_hold_command(&hold, fatal, &pid), 0);
	assert_int_equal(kill(pid, SIGTERM), 0);
	status = let_run(&hold, pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

TEST(reports_how_a_command_goes_on)
{
	char *const argv[] = {(char *)"sh", (char *)"-c",
	    (char *)"trap 'exit 9' USR1; kill -USR1 $$; exit 1", NULL};
	struct wp_hold hold = {0};
	struct wp_stop stop;
	pid_t pid;

	assert_int_equal(wp_hold_command(&hold, argv, &pid), 0);
	assert_int_equal(wp_hold_continue(&hold, NULL, &stop), 0);
	assert_false(stop.ended);
	assert_int_equal(stop.signal, SIGUSR1);
	assert_int_equal(stop.fd, -1);
	assert_int_equal(hold.thread[0].signal, SIGUSR1);
	/* it is delivered on the way */
	assert_int_equal(wp_hold_continue(&hold, NULL, &stop), 0);
	assert_true(stop.ended);
	assert_true(WIFEXITED(stop.status));
	assert_int_equal(WEXITSTATUS(stop.status), 9);
	assert_int_equal(hold.n, 0);
	wp_hold_release(&hold);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), -1);
}

static void
continue_later(void *arg)
{
	pid_t pid = *(pid_t *)arg;

	while (shared->ready == 0)
		nap_us(100);
	nap_us(20000);
	shared->ready = 2;
	(void)kill(pid, SIGCONT);
}

/* A command that stops itself stays so until it is continued. */
TEST(commands_can_be_stopped)
{
	char *const argv[] = {(char *)"sh", (char *)"-c",
	    (char *)"kill -STOP $$; exit 5", NULL};
	struct wp_hold hold = {0};
	struct wp_stop stop;
	pid_t pid, other;

	assert_int_equal(wp_hold_command(&hold, argv, &pid), 0);
	other = child_start(continue_later, &pid);
	assert_int_equal(wp_hold_continue(&hold, NULL, &stop), 0);
	assert_int_equal(stop.signal, SIGSTOP);
	shared->ready = 1;
	do
		assert_int_equal(wp_hold_continue(&hold, NULL, &stop), 0);
	while (!stop.ended);
	assert_int_equal(shared->ready, 2);
	assert_true(WIFEXITED(stop.status));
	assert_int_equal(WEXITSTATUS(stop.status), 5);
	wp_hold_release(&hold);
	assert_int_equal(child_wait(other), 0);
}

static bool
launch_once(void)
{
	char *const argv[] = {(char *)"/bin/true", NULL};
	struct wp_hold hold = {0};
	pid_t pid;

	if (wp_hold_command(&hold, argv, &pid) != 0)
		return false;
	wp_hold_release(&hold);
	return waitpid(pid, NULL, 0) == pid;
}

static void
launch_for_ever(void *arg)
{
	(void)arg;
	while (launch_once())
		shared->usr1++;
}

static void
launch_and_die(void *arg)
{
	(void)arg;
	before_ptrace = die_at_last_call;
	_exit(launch_once() ? 0 : 1);
}

/* Start a launcher.  *alive: a pipe that is open for writing as long as it or
   its command lives. */
static pid_t
start_launcher(void (*fn)(void *), int *alive)
{
	pid_t pid;
	int fd[2];

	assert_int_equal(pipe(fd), 0);
	pid = child_start(fn, NULL);
	(void)close(fd[1]);
	*alive = fd[0];
	return pid;
}

static void
expect_all_ended(int alive)
{
	struct pollfd p = {.fd = alive, .events = POLLIN};
	char c;

	assert_int_equal(poll(&p, 1, CHILD_PATIENCE_MS), 1);
	assert_int_equal(read(alive, &c, 1), 0);
	(void)close(alive);
}

/* Whoever launches is killed: the command runs or not, but never hangs. */
TEST(commands_outlive_their_launcher)
{
	unsigned short seed[3] = {4, 5, 6};

	for (int i = 0; i < LAUNCHES; i++) {
		unsigned before = shared->usr1;
		int alive;
		pid_t launcher = start_launcher(launch_for_ever, &alive);

		await(shared->usr1 != before);
		nap_us(nrand48(seed) % 2000);
		child_kill(launcher);
		expect_all_ended(alive);
	}
}

TEST(commands_outlive_each_call)
{
	int status = -1, calls;

	for (calls = 1; status != 0; calls++) {
		int alive;

		calls_left = calls;
		status = child_wait(start_launcher(launch_and_die, &alive));
		assert_true(status == 0 || WIFSIGNALED(status));
		expect_all_ended(alive);
	}
	assert_true(calls > 2);
}

static int
begin(void **state)
{
	(void)setenv("PATH", "/usr/bin:/bin", 1);
	return scratch_make(state);
}

RUN_TESTS(.before_all = begin, .after_all = scratch_remove,
    .before_each = clear_shared, .after_each = children_end)
