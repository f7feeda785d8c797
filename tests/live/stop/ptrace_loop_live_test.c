/*
 * ptrace_loop: every thread is armed before it does anything, and the program
 * behaves as it would without a tracer, whatever happens to the tracer.
 */
#include "test.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

#include "child.h"
#include "live.h"
#include "proc/proc.h"
#include "ptrace/ptrace.h"
#include "stop/ptrace_loop.h"

enum {
	THREADS = 8, HOT = 12, KILLS = 100, CYCLES = 30, UPDATES = 200,
	STORM = 1500, SHOWN = 63,
};

static struct shared {
	volatile uint64_t word;		/* is watched */
	volatile unsigned writes;	/* as their makers count them */
	volatile unsigned hits;		/* as the tracer sees them */
	volatile unsigned raw;		/* the program's own SIGTRAPs */
	volatile unsigned shown;	/* signals the tracer's owner saw */
	volatile unsigned armed;	/* calls */
	volatile unsigned made, alive;	/* threads */
	volatile unsigned turns[THREADS];
	volatile pid_t tid[THREADS];
	volatile pid_t other;
	volatile int ready, result;
	volatile bool end, drop, update, updated;
	volatile bool tracing;		/* all are armed */
	volatile unsigned settled;
	char log[4096];			/* what a program noticed */
	volatile unsigned logged;
} *shared;

SHARED_FIXTURE

/* --- a tracing process, that watches the word --- */

static const struct wp_slot none[WP_DEBUG_REGISTERS];
static const struct wp_slot *slots;

static bool
arm(void *arg, struct wp_thread *thread)
{
	bool drop = shared->drop;

	(void)arg;
	add(&shared->armed, 1);
	if (wp_trace_registers(thread->tid, drop ? none : slots, 15) != 0)
		shared->result = -1;
	return !drop;
}

static int
get_signal(void *arg, struct wp_thread *thread, siginfo_t *info)
{
	(void)arg;
	if (info->si_signo == SHOWN)
		shared->shown++;
	if (info->si_signo != SIGTRAP || info->si_code != TRAP_HWBKPT)
		return info->si_signo;
	if (wp_trace_registers_hit(thread->tid, slots, 1) != 1)
		shared->result = -2;
	shared->hits++;
	return 0;
}

static void
end(void *arg, struct wp_thread *thread)
{
	(void)arg;
	(void)thread;
}

static const struct wp_ptrace_loop_calls calls = {
	.size = sizeof(struct wp_thread), .arm = arm, .signal = get_signal,
	.end = end,
};

static void
doze(const sigset_t *signals)
{
	const struct timespec limit = {.tv_nsec = 2000000};

	(void)sigtimedwait(signals, NULL, &limit);
}

/* Begin an update when a test wants it, and say when all have had it. */
static void
look(struct wp_ptrace_loop *tracer, bool *settling)
{
	if (shared->update) {
		shared->update = false;
		wp_ptrace_loop_update(tracer);
		*settling = true;
	}
	if (*settling && wp_ptrace_loop_settled(tracer) != 0) {
		*settling = false;
		shared->tracing = true;
		add(&shared->settled, 1);
	}
}

/* pid: whom; tid: only that thread, or 0. */
struct whom {
	pid_t pid, tid;
};

static void
be_tracer(void *arg)
{
	const struct whom *whom = arg;
	const struct wp_slot word[WP_DEBUG_REGISTERS] = {{
		(uintptr_t)&shared->word, sizeof(shared->word),
		HW_BREAKPOINT_W,
	}};
	struct wp_ptrace_loop loop, *tracer = &loop;
	bool settling = true;
	sigset_t signals;

	slots = word;
	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	wp_ptrace_loop_begin(&loop, whom->pid, 1ull << (SIGTRAP - 1) |
	    1ull << (SHOWN - 1), &calls, NULL);
	shared->result = whom->tid != 0 ? wp_ptrace_loop_one(tracer,
	    whom->tid) : wp_ptrace_loop_all(tracer);
	if (shared->result != 0)
		_exit(2);
	for (;;) {
		int more = wp_ptrace_loop_step(tracer);

		if (more < 0)
			break;
		look(tracer, &settling);
		if (!wp_ptrace_loop_busy(tracer))
			break;
		if (more == 0)
			doze(&signals);
	}
	wp_ptrace_loop_end(tracer);
}

/* Trace a process, and wait until it is armed. */
static pid_t
trace(pid_t pid, pid_t tid)
{
	struct whom whom = {pid, tid};
	pid_t tracer;

	shared->tracing = false;
	tracer = child_start(be_tracer, &whom);
	await(shared->tracing || shared->result != 0);
	assert_int_equal(shared->result, 0);
	return tracer;
}

/* Have each thread brought up to date. */
static void
update(void)
{
	unsigned before = shared->settled;

	shared->update = true;
	await(shared->settled != before);
}

static pid_t
tracer_of(pid_t tid)
{
	struct wp_proc_status status;

	return wp_proc_status(tid, &status) == 0 ? status.tracer : -1;
}

/* --- programs --- */

static void
write_word(void)
{
	shared->word = 1;
	add(&shared->writes, 1);
}

static void
thread(void *(*fn)(void *), void *arg)
{
	add(&shared->alive, 1);
	child_thread(fn, arg);
}

static void
count_raw(int sig)
{
	(void)sig;
	shared->raw++;
}

static void *
turn(void *arg)
{
	each_turn((size_t)(uintptr_t)arg) {
		write_word();
		nap_us(200);
	}
	return NULL;
}

/* Threads that write now and then; the first one rests.  SIGTRAPs that no
   tracer takes are handled. */
static void
have_threads(void *arg)
{
	(void)signal(SIGTRAP, count_raw);
	for (size_t i = 0; i < (size_t)(uintptr_t)arg; i++)
		thread(turn, (void *)(uintptr_t)i);
	while (!shared->end)
		nap_us(1000);
	nap_us(10000);
}

static pid_t
start_threads(size_t n)
{
	pid_t pid = child_start(have_threads, (void *)(uintptr_t)n);

	await(shared->ready == (int)n);
	return pid;
}

static void
expect_turns(size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned before = shared->turns[i];

		await(shared->turns[i] - before > 1);
	}
}

/* Until the test has come so far. */
static void
wait_for(int step)
{
	while (shared->ready < step)
		nap_us(100);
}

/* It runs to its end, and the tracer ends with it. */
static void
expect_end(pid_t pid, pid_t tracer)
{
	shared->end = true;
	assert_int_equal(child_wait(pid), 0);
	assert_int_equal(child_wait(tracer), 0);
}

/* --- every thread --- */

static void *
leaf(void *arg)
{
	write_word();
	add(&shared->made, 1);
	add(&shared->alive, -1);
	return arg;
}

/* Makes threads as fast as it can, which write first of all. */
static void *
spawner(void *arg)
{
	while (!shared->end) {
		if (shared->alive < 50) {
			write_word();
			thread(leaf, NULL);
		} else {
			(void)sched_yield();
		}
	}
	add(&shared->alive, -1);
	return arg;
}

/* Each makes its successor, and ends. */
static void *
chain(void *arg)
{
	write_word();
	add(&shared->made, 1);
	if (!shared->end)
		thread(chain, arg);
	add(&shared->alive, -1);
	return arg;
}

/* Nobody writes before the tracer is there, though threads come and go. */
static void *
restless(void *arg)
{
	if (shared->tracing)
		return spawner(arg);
	thread(restless, arg);
	add(&shared->alive, -1);
	return arg;
}

static void
have_storm(void *arg)
{
	(void)arg;
	thread(restless, NULL);
	thread(restless, NULL);
	while (!shared->tracing)
		nap_us(100);
	thread(chain, NULL);
	while (!shared->end)
		nap_us(1000);
	while (shared->alive > 0)
		nap_us(100);
	write_word();
}

TEST(every_write_of_a_storm_of_threads)
{
	pid_t pid = child_start(have_storm, NULL), tracer;

	await(shared->alive > 0);
	tracer = trace(pid, 0);
	await(shared->made > STORM);
	expect_end(pid, tracer);
	assert_int_equal(shared->result, 0);
	assert_true(shared->writes > STORM);
	assert_int_equal(shared->hits, shared->writes);
}

TEST(one_thread_alone_is_traced)
{
	pid_t pid = start_threads(3), tracer = trace(pid, shared->tid[1]);
	unsigned hits;

	assert_int_equal(tracer_of(shared->tid[1]), tracer);
	assert_int_equal(tracer_of(shared->tid[0]), 0);
	assert_int_equal(tracer_of(pid), 0);
	expect_turns(3);
	hits = shared->hits;
	assert_true(hits > 0 && hits < shared->writes);
	expect_end(pid, tracer);
}

/* Threads that hit all the time do not keep the tracer from others. */
static void *
hit_all_the_time(void *arg)
{
	while (!shared->end)
		write_word();
	return arg;
}

static void
have_hot_threads(void *arg)
{
	thread(turn, NULL);
	while (shared->ready == 0)
		nap_us(100);
	for (int i = 0; i < HOT; i++)
		thread(hit_all_the_time, arg);
	shared->other = 1;
	while (!shared->end)
		nap_us(1000);
	nap_us(10000);
}

TEST(busy_threads_do_not_hide_others)
{
	pid_t pid = child_start(have_hot_threads, NULL), tracer;

	await(shared->other != 0);
	tracer = trace(pid, 0);
	for (int i = 0; i < 5; i++)
		expect_turns(1);
	expect_end(pid, tracer);
}

/* Whoever is let go has no debug register set any more, and no trap pending, of
   which it would die. */
TEST(nothing_is_left_behind)
{
	pid_t pid = child_start(have_hot_threads, NULL);

	await(shared->other != 0);
	for (int i = 0; i < CYCLES; i++) {
		pid_t tracer = trace(pid, 0);

		shared->drop = true;
		shared->update = true;
		assert_int_equal(child_wait(tracer), 0);
		assert_int_equal(tracer_of(pid), 0);
		shared->drop = false;
		expect_turns(1);
	}
	shared->end = true;
	assert_int_equal(child_wait(pid), 0);
}

static void
have_threads_that_end(void *arg)
{
	wait_for(1);
	for (int i = 0; i < 50; i++)
		thread(leaf, arg);
	while (!shared->end)
		nap_us(1000);
}

/* The zombie of a traced thread would keep an execve(2) from going on. */
TEST(ended_threads_are_reaped)
{
	pid_t pid = child_start(have_threads_that_end, NULL);
	pid_t tracer = trace(pid, 0);
	struct wp_proc_status status;

	shared->ready = 1;
	await(shared->made == 50);
	await(wp_proc_status(pid, &status) == 0 && status.threads == 1);
	expect_end(pid, tracer);
}

TEST(updates_reach_everybody)
{
	pid_t pid = child_start(have_storm, NULL), tracer;
	unsigned hits;

	await(shared->alive > 0);
	tracer = trace(pid, 0);
	for (int i = 0; i < UPDATES; i++)
		update();
	assert_int_equal(shared->result, 0);
	/* and the last one lets all go, who have nothing left */
	shared->drop = true;
	shared->update = true;
	assert_int_equal(child_wait(tracer), 0);
	hits = shared->hits;
	shared->made = 0;
	await(shared->made > 100);
	assert_int_equal(shared->hits, hits);
	assert_int_equal(tracer_of(pid), 0);
	shared->end = true;
	assert_int_equal(child_wait(pid), 0);
}

/* --- what a program notices --- */

__attribute__((format(printf, 1, 2)))
static void
note(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	shared->logged += (unsigned)vsnprintf(shared->log + shared->logged,
	    sizeof(shared->log) - shared->logged, format, ap);
	va_end(ap);
}

static void
note_signal(int sig, siginfo_t *info, void *context)
{
	(void)context;
	note("%d: code %d", sig, info->si_code);
	if (info->si_code == SI_QUEUE)
		note(" value %d from %s", info->si_value.sival_int,
		    info->si_pid == getpid() ? "me" : "another");
	if (sig == SIGCHLD)
		note(" status %d", info->si_status);
	if (sig == SIGSEGV)
		note(" at %p", info->si_addr);
	note("\n");
	if (sig == SIGSEGV)
		_exit(41);
}

static const int handled[] = {
	SIGUSR1, SIGALRM, SIGCHLD, SIGSEGV, SIGTRAP, SIGCONT, SHOWN, 40,
};

static void
handle_all(void)
{
	struct sigaction action = {.sa_sigaction = note_signal,
	    .sa_flags = SA_SIGINFO | SA_RESTART};

	for (size_t i = 0; i < COUNT(handled); i++)
		(void)sigaction(handled[i], &action, NULL);
}

/* A child: write when its sibling's end has been noted. */
static _Noreturn void
write_after_note(int fd)
{
	while (strstr(shared->log, "17: ") == NULL)
		nap_us(100);
	(void)!write(fd, "", 1);
	while (!shared->end)
		nap_us(100);
	_exit(0);
}

/* Signals of all kinds, each of which is noted. */
static int *volatile nowhere = (int *)16;

static void
signal_itself(void *arg)
{
	const struct itimerval soon = {.it_value = {.tv_usec = 2000}};
	sigset_t set, old;
	int pipes[2];
	pid_t child, other;
	char c;

	(void)arg;
	handle_all();
	(void)signal(SIGPIPE, SIG_IGN);
	wait_for(1);
	/* queued ones come in order, with what they carry */
	(void)sigemptyset(&set);
	(void)sigaddset(&set, 40);
	(void)sigaddset(&set, SHOWN);
	(void)sigprocmask(SIG_BLOCK, &set, &old);
	for (int i = 0; i < 10; i++) {
		(void)sigqueue(getpid(), 40, (union sigval){.sival_int = i});
		(void)sigqueue(getpid(), SHOWN, (union sigval){.sival_int = i});
	}
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	(void)raise(SIGUSR1);
	(void)raise(SIGTRAP);
	__asm__ volatile("int3");
	/* an alarm that comes while this one waits for it */
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGALRM);
	(void)sigprocmask(SIG_BLOCK, &set, &old);
	(void)setitimer(ITIMER_REAL, &soon, NULL);
	note("sigsuspend: %d", sigsuspend(&old));
	note(" %s\n", strerror(errno));
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	/* a child's end, while this one reads what comes after that */
	(void)!pipe(pipes);
	if ((other = fork()) == 0)
		write_after_note(pipes[1]);
	if ((child = fork()) == 0)
		_exit(17);
	note("read: %zd\n", read(pipes[0], &c, 1));
	shared->end = true;
	note("waited: %d %d\n", waitpid(child, NULL, 0) == child,
	    waitpid(other, NULL, 0) == other);
	(void)!pipe(pipes);
	(void)close(pipes[0]);
	note("write: %zd", write(pipes[1], "", 1));
	note(" %s\n", strerror(errno));
	write_word();
	*nowhere = 0;
}

/* What a program notes, traced or not, and its wait status. */
static int
run_noted(void (*fn)(void *), bool traced, char log[4096])
{
	pid_t pid, tracer = 0;
	int status;

	(void)clear_shared(NULL);
	pid = child_start(fn, NULL);
	if (traced)
		tracer = trace(pid, 0);
	shared->ready = 1;
	status = child_wait(pid);
	if (traced) {
		assert_int_equal(child_wait(tracer), 0);
		assert_int_equal(shared->hits, shared->writes);
	}
	memcpy(log, shared->log, sizeof(shared->log));
	return status;
}

TEST(signals_are_as_without_it)
{
	static char alone[4096], traced[4096];
	int status = run_noted(signal_itself, false, alone);

	assert_int_equal(status, 41 << 8);
	assert_holds(alone, "40: code -1 value 9 from me\n");
	assert_holds(alone, "17: code 1 status 17\n");
	assert_int_equal(run_noted(signal_itself, true, traced), status);
	assert_int_equal(shared->shown, 10);
	assert_string_equal(traced, alone);
}

static void
exit_of_a_thread(void *arg)
{
	(void)arg;
	wait_for(1);
	_exit(3);
}

static void *
exit_here(void *arg)
{
	nap_us(2000);
	exit_of_a_thread(arg);
	return NULL;
}

static void
exit_after_the_first(void *arg)
{
	wait_for(1);
	thread(exit_here, arg);
	pthread_exit(NULL);
}

static void
die_of_signal(void *arg)
{
	(void)arg;
	wait_for(1);
	(void)raise(SIGTERM);
}

static void
die_of_kill(void *arg)
{
	(void)arg;
	thread(turn, NULL);
	wait_for(2);
	(void)kill(getpid(), SIGKILL);
	(void)pause();
}

static void
execute_another(void *arg)
{
	(void)arg;
	thread(turn, NULL);
	wait_for(2);
	(void)execl("/bin/sh", "sh", "-c", "exit 6", NULL);
}

static void *
execute_here(void *arg)
{
	execute_another(arg);
	return NULL;
}

static void
execute_in_a_thread(void *arg)
{
	thread(execute_here, arg);
	(void)pause();
}

static const struct ending {
	void (*fn)(void *);
	int status;
	int ready;		/* when it is */
} endings[] = {
	{exit_of_a_thread, 3 << 8, 0},
	{exit_after_the_first, 3 << 8, 0},
	{die_of_signal, SIGTERM, 0},
	{die_of_kill, SIGKILL, 1},
	{execute_another, 6 << 8, 1},
	{execute_in_a_thread, 6 << 8, 1},
};

TEST(programs_end_as_without_it)
{
	for (size_t i = 0; i < COUNT(endings); i++) {
		pid_t pid, tracer;

		(void)clear_shared(state);
		pid = child_start(endings[i].fn, NULL);
		await(shared->ready == endings[i].ready);
		tracer = trace(pid, 0);
		__atomic_add_fetch(&shared->ready, 1, __ATOMIC_SEQ_CST);
		assert_int_equal(child_wait(pid), endings[i].status);
		/* nobody is left to trace: also after execve(2) */
		assert_int_equal(child_wait(tracer), 0);
	}
}

static void
expect_standing(size_t n)
{
	unsigned before[THREADS];

	memcpy(before, (const void *)shared->turns, sizeof(before));
	nap_us(20000);
	assert_memory_equal(before, (const void *)shared->turns,
	    n * sizeof(before[0]));
}

TEST(job_control_is_as_without_it)
{
	static const int stops[] = {SIGSTOP, SIGTSTP, SIGSTOP};
	pid_t pid = start_threads(3), tracer;

	/* in a group without a parent outside, SIGTSTP would stop nobody: ours
	   may be one */
	assert_int_equal(setpgid(pid, pid), 0);
	tracer = trace(pid, 0);
	for (size_t i = 0; i < COUNT(stops); i++) {
		expect_turns(3);
		assert_int_equal(kill(pid, stops[i]), 0);
		child_expect(pid, stops[i] << 8 | 0x7f);
		expect_standing(3);
		if (i == 1) {		/* and stays so */
			update();
			expect_standing(3);
		}
		assert_int_equal(kill(pid, SIGCONT), 0);
		child_expect(pid, 0xffff);
	}
	expect_turns(3);
	/* one that is stopped already */
	assert_int_equal(kill(pid, SIGSTOP), 0);
	child_expect(pid, SIGSTOP << 8 | 0x7f);
	child_kill(tracer);
	tracer = trace(pid, 0);
	expect_standing(3);
	assert_int_equal(kill(pid, SIGCONT), 0);
	child_expect(pid, 0xffff);
	expect_turns(3);
	expect_end(pid, tracer);
}

/* --- children --- */

static int
write_and_end(void *arg)
{
	shared->tid[0] = getpid();
	shared->word = 2;
	while (!shared->end)
		nap_us(100);
	(void)arg;
	return 5;
}

/* By fork(2), and by a clone(2) that the kernel takes for a thread's. */
static void
have_child(void *arg)
{
	static char stack[64 << 10];
	int status = -1;
	pid_t pid;

	wait_for(1);
	write_word();
	if (arg != NULL)
		pid = clone(write_and_end, stack + sizeof(stack), 0, NULL);
	else if ((pid = fork()) == 0)
		_exit(write_and_end(NULL));
	(void)waitpid(pid, &status, __WALL);
	shared->result = status == 5 << 8 ? 0 : -3;
	write_word();
}

TEST(children_are_neither_traced_nor_armed)
{
	for (uintptr_t i = 0; i < 2; i++) {
		pid_t pid, tracer;

		(void)clear_shared(state);
		pid = child_start(have_child, (void *)i);
		tracer = trace(pid, 0);
		shared->ready = 1;
		/* no handler: it would die of a hit */
		await(shared->word == 2);
		assert_int_equal(tracer_of(shared->tid[0]), 0);
		expect_end(pid, tracer);
		assert_int_equal(shared->result, 0);
		assert_int_equal(shared->hits, 2);
	}
}

static void
wait_in_vfork(void *arg)
{
	pid_t child;

	(void)arg;
	if ((child = vfork()) == 0) {
		shared->other = getpid();
		while (!shared->end)
			(void)usleep(1000);
		_exit(0);
	}
	write_word();
	(void)waitpid(child, NULL, 0);
}

/* A vfork parent cannot stop: it counts as armed, and is, when it wakes. */
TEST(uninterruptible_sleep_is_not_waited_for)
{
	pid_t pid = child_start(wait_in_vfork, NULL), tracer;

	await(shared->other > 0 && state_of(pid) == 'D');
	tracer = trace(pid, 0);
	update();
	assert_int_equal(shared->armed, 0);
	expect_end(pid, tracer);
	assert_int_equal(shared->armed, 1);
	assert_int_equal(shared->hits, 1);
}

/* --- the tracer is killed --- */

TEST(programs_outlive_their_tracer)
{
	pid_t pid = start_threads(THREADS);
	unsigned short seed[3] = {1, 2, 3};

	for (int i = 0; i < KILLS; i++) {
		unsigned before = shared->hits;
		struct whom whom = {pid, 0};
		pid_t tracer = child_start(be_tracer, &whom);

		if (i % 2 == 0)
			await(shared->hits > before);
		nap_us(nrand48(seed) % 3000);
		child_kill(tracer);
		await(tracer_of(pid) == 0);
		assert_int_equal(shared->result, 0);
		expect_turns(1);
	}
	expect_turns(THREADS);
	/* what was left set still fires, in their own hands */
	assert_true(shared->raw > 0);
	shared->end = true;
	assert_int_equal(child_wait(pid), 0);
}

RUN_LIVE_TESTS(.before_each = clear_shared,
    .after_each = children_end)
