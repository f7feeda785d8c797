/*
 * deliver_ptrace: watches of an ordinary user to whom perf_event_open(2) is
 * refused, through the real helper; and those of the async delivery that the
 * helper arms.  Tests that all deliveries share are in open_live_test.c.
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "child.h"
#include "live.h"
#include "refuse.h"
#include "proc/proc.h"
#include "handler/watches.h"

enum {
	THREADS = 4, SIGNALS = 64, KILLS = 30, SWITCHES = 100,
	CHAINS = 600, STORMS = 10,
};

static struct shared {
	volatile uint64_t word, other;	/* are watched */
	_Alignas(16) volatile uint64_t wide[2];	/* in two registers */
	volatile unsigned writes;	/* as their makers count them */
	volatile unsigned hits, outer;	/* as handlers do */
	volatile unsigned got[SIGNALS];	/* deliveries, by the value sent */
	volatile unsigned alarms, children, made, alive;
	volatile unsigned turns[THREADS];
	volatile pid_t helper;
	volatile int ready, step, result;
	volatile bool end;
	volatile uint64_t count;
	char cause[512];
} *shared;

SHARED_FIXTURE

static int
begin(void **state)
{
	(void)state;
	return getenv("WATCHCTL") == NULL ? -1 : 0;
}

static void
wait_for(int step)
{
	while (shared->step < step)
		nap_us(100);
}

/* --- programs --- */

static void
count_hit(const struct wp_hit *hit, void *arg)
{
	(void)hit;
	add(arg != NULL ? arg : &shared->hits, 1);
}

/* As attr, but on the word of all threads, with a handler; shared->result and
   cause say why it could not be had. */
static struct wp_watch *
watch(struct wp_attr attr)
{
	struct wp_watch *w;

	attr.size = sizeof(attr);
	attr.len = sizeof(shared->word);
	if (attr.addr == NULL)
		attr.addr = &shared->word;
	if (attr.handler == NULL && attr.action == 0)
		attr.handler = count_hit;
	shared->result = wp_open(&attr, &w);
	(void)snprintf(shared->cause, sizeof(shared->cause), "%s", wp_cause());
	if (atomic_load(&wp_state.channel) != NULL)
		shared->helper = atomic_load(&wp_state.channel)->helper_pid;
	return w;
}

/* What a program runs, and whom it is. */
struct program {
	void (*fn)(void);
	const char *delivery;	/* NULL: it is refused all but the last */
};

static void
be_program(void *arg)
{
	const struct program *program = arg;

	(void)setenv("WATCHPOINT_HELPER", getenv("WATCHCTL"), 1);
	if (program->delivery != NULL)
		(void)setenv("WATCHPOINT_DELIVERY", program->delivery, 1);
	else if (be_refused(NULL) != 0)
		_exit(99);
	program->fn();
}

static pid_t
start_program(void (*fn)(void), const char *delivery)
{
	struct program program = {fn, delivery};

	return child_start(be_program, &program);
}

static void
run_program(void (*fn)(void), const char *delivery)
{
	pid_t pid = start_program(fn, delivery);
	int status = child_wait(pid);

	if (shared->result != 0)
		fail_msg("%d: %s", shared->result, shared->cause);
	assert_int_equal(status, 0);
}

static void
write_word(void)
{
	shared->word = 1;
	add(&shared->writes, 1);
}

/* --- every access --- */

static void
thread(void *(*fn)(void *))
{
	add(&shared->alive, 1);
	child_thread(fn, NULL);
}

/* Each writes first of all, and makes its successor. */
static void *
chain(void *arg)
{
	write_word();
	add(&shared->made, 1);
	if (shared->made < CHAINS)
		thread(chain);
	add(&shared->alive, -1);
	return arg;
}

static void
storm(void)
{
	struct wp_watch *w = watch((struct wp_attr){0});
	uint64_t count = 0;

	for (int i = 0; i < THREADS; i++)
		thread(chain);
	while (shared->alive > 0)
		nap_us(100);
	write_word();
	(void)wp_count(w, &count);
	shared->count = count;
}

TEST(every_access_of_a_storm_of_threads)
{
	static const char *const deliveries[] = {NULL, "ptrace", "async"};

	for (size_t i = 0; i < COUNT(deliveries); i++) {
		(void)clear_shared(state);
		run_program(storm, deliveries[i]);
		assert_true(shared->writes > CHAINS);
		assert_int_equal(shared->hits, shared->writes);
		assert_int_equal(shared->count, shared->writes);
	}
}

static void
write_periodically(void)
{
	struct wp_watch *w = watch((struct wp_attr){.period = 10});
	uint64_t count = 0;

	for (int i = 0; i < 105; i++)
		write_word();
	(void)wp_count(w, &count);
	shared->count = count;
}

/* Also those that are no hits. */
TEST(all_accesses_are_counted)
{
	static const char *const deliveries[] = {"ptrace", "async"};

	for (size_t i = 0; i < COUNT(deliveries); i++) {
		(void)clear_shared(state);
		run_program(write_periodically, deliveries[i]);
		assert_int_equal(shared->hits, 10);
		assert_int_equal(shared->count, 105);
	}
}

/* --- without locks --- */

static struct wp_watch *other_watch;

/* In a handler: of a watch that others are opening, closing and moving. */
static void
switch_other(const struct wp_hit *hit, void *arg)
{
	uint64_t count;

	(void)arg;
	if (wp_disable(other_watch) != 0 || wp_count(other_watch, &count) != 0)
		shared->ready = -1;
	if (hit->nth % 2 == 0 && (wp_enable(other_watch) != 0 ||
	    wp_count(hit->watch, &count) != 0 || count < hit->nth))
		shared->ready = -2;
	add(&shared->outer, 1);
}

static void *
write_all_the_time(void *arg)
{
	while (!shared->end)
		write_word();
	add(&shared->alive, -1);
	return arg;
}

static void
switch_while_opening(void)
{
	other_watch = watch((struct wp_attr){.addr = &shared->other});
	(void)watch((struct wp_attr){.handler = switch_other});
	thread(write_all_the_time);
	thread(write_all_the_time);
	while (shared->outer < SWITCHES) {
		static volatile uint64_t third[2];
		struct wp_watch *w = watch((struct wp_attr){.addr = third});

		third[0] = 1;
		if (wp_move(w, &third[1]) != 0)
			shared->ready = -3;
		wp_close(w);
		write_word();
	}
	shared->end = true;
	while (shared->alive > 0)
		nap_us(100);
	/* enabled is enabled, and so is the contrary */
	(void)wp_enable(other_watch);
	shared->hits = 0;
	shared->other = 1;
	(void)wp_disable(other_watch);
	shared->other = 2;
	(void)wp_enable(other_watch);
	shared->other = 3;
}

TEST(handlers_wait_for_no_request)
{
	static const char *const deliveries[] = {"ptrace", "async"};

	for (size_t i = 0; i < COUNT(deliveries); i++) {
		(void)clear_shared(state);
		run_program(switch_while_opening, deliveries[i]);
		assert_int_equal(shared->ready, 0);
		assert_int_equal(shared->hits, 2);
	}
}

/* --- what the program notices --- */

static void
on_value(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	add(&shared->got[info->si_value.sival_int % SIGNALS], 1);
	write_word();
}

static void
on_alarm(int sig)
{
	add(sig == SIGALRM ? &shared->alarms : &shared->children, 1);
}

static void *
turn(void *arg)
{
	unsigned i = __atomic_fetch_add(&shared->ready, 1, __ATOMIC_SEQ_CST);

	while (!shared->end) {
		shared->turns[i]++;
		write_word();
		nap_us(500);
	}
	return arg;
}

static void
get_signals(void)
{
	struct sigaction action = {.sa_sigaction = on_value,
	    .sa_flags = SA_SIGINFO | SA_RESTART};
	const struct itimerval often = {{.tv_usec = 1000}, {.tv_usec = 1000}};
	int status = -1;
	pid_t child;

	(void)sigaction(SIGRTMIN, &action, NULL);
	(void)signal(SIGALRM, on_alarm);
	(void)signal(SIGCHLD, on_alarm);
	(void)watch((struct wp_attr){0});
	for (int i = 0; i < THREADS; i++)
		thread(turn);
	(void)setitimer(ITIMER_REAL, &often, NULL);
	if ((child = fork()) == 0)
		_exit(17);
	while (waitpid(child, &status, 0) < 0)
		;
	if (status != 17 << 8)
		shared->step = -1;
	shared->step = 1;
	wait_for(2);
	shared->end = true;
	nap_us(10000);
	/* nobody else is a child of the program's */
	if (waitpid(-1, NULL, 0) != -1 || errno != ECHILD)
		shared->result = -1;
	_exit(23);
}

static void
expect_turns(void)
{
	for (int i = 0; i < THREADS; i++) {
		unsigned before = shared->turns[i];

		await(shared->turns[i] != before);
	}
}

TEST(signals_and_status_are_the_programs)
{
	unsigned before[THREADS];
	pid_t pid = start_program(get_signals, NULL);

	await(shared->step == 1);
	assert_true(wp_proc_tracer(pid) > 0);
	for (int i = 0; i < SIGNALS; i++)
		assert_int_equal(sigqueue(pid, SIGRTMIN,
		    (union sigval){.sival_int = i}), 0);
	for (int i = 0; i < SIGNALS; i++) {
		await(shared->got[i] != 0);
		assert_int_equal(shared->got[i], 1);
	}
	for (int i = 0; i < 5; i++) {
		expect_turns();
		assert_int_equal(kill(pid, SIGSTOP), 0);
		child_expect(pid, SIGSTOP << 8 | 0x7f);
		memcpy(before, (const void *)shared->turns, sizeof(before));
		nap_us(5000);
		assert_memory_equal(before, (const void *)shared->turns,
		    sizeof(before));
		assert_int_equal(kill(pid, SIGCONT), 0);
		child_expect(pid, 0xffff);
	}
	expect_turns();
	await(shared->alarms > 3);
	assert_int_equal(shared->children, 1);
	shared->step = 2;
	assert_int_equal(child_wait(pid), 23 << 8);
	assert_int_equal(shared->result, 0);
	assert_in_range(shared->hits, shared->writes, shared->writes + THREADS);
}

/* --- the helper --- */

static void
write_until_told(void)
{
	struct wp_watch *w = watch((struct wp_attr){.action = WP_PRINT});

	shared->ready = 1;
	while (shared->step < 1)
		write_word();
	(void)wp_disable(w);
	for (int i = 0; i < 1000; i++)
		write_word();
	(void)wp_enable(w);
	(void)wp_move(w, &shared->other);
	wp_close(w);
	shared->word = 1;
	_exit(29);
}

/* Reports go to nobody here; killed in the middle of one or not, it goes on. */
TEST(programs_outlive_their_helper)
{
	static const char *const deliveries[] = {NULL, "ptrace", "async"};
	unsigned short seed[3] = {7, 8, 9};

	(void)setenv("WATCHPOINT_OUTPUT", "/dev/null", 1);
	for (int i = 0; i < KILLS; i++) {
		unsigned before;
		pid_t pid;

		(void)clear_shared(state);
		pid = start_program(write_until_told,
		    deliveries[i % COUNT(deliveries)]);
		await(shared->ready == 1);
		if (shared->result != 0)
			fail_msg("%s", shared->cause);
		nap_us(nrand48(seed) % 5000);
		assert_int_equal(kill(shared->helper, SIGKILL), 0);
		before = shared->writes;
		await(shared->writes > before + 3);
		shared->step = 1;
		assert_int_equal(child_wait(pid), 29 << 8);
	}
	(void)unsetenv("WATCHPOINT_OUTPUT");
}

/* With the process that traces for it: at the same time, so that none can take
   over. */
static void
kill_both(bool tracer_first)
{
	const pid_t tracer = wp_proc_tracer(getpid());
	const pid_t both[] = {
		tracer_first ? tracer : shared->helper,
		tracer_first ? shared->helper : tracer,
	};

	(void)kill(both[1], SIGSTOP);
	for (int i = 0; i < 2; i++)
		if (both[i] <= 0 || kill(both[i], SIGKILL) != 0)
			_exit(1);
	while (wp_channel_alive(atomic_load(&wp_state.channel)) ||
	    wp_proc_tracer(getpid()) != 0)
		nap_us(1000);
}

/* Have the lines of our own hits in a file, which is read while it is
   written. */
static FILE *
keep_lines(void)
{
	FILE *said = tmpfile();

	if (said == NULL || fcntl(fileno(said), F_SETFL, O_APPEND) != 0)
		_exit(2);
	wp_state.output = fileno(said);
	return said;
}

/* How many lines there are with this in them. */
static unsigned
count_lines(FILE *said, const char *part)
{
	char line[512];
	off_t at = 0;
	unsigned n = 0;
	ssize_t len;

	while ((len = pread(fileno(said), line, sizeof(line) - 1, at)) > 0) {
		char *end;

		line[len] = '\0';
		if ((end = strchr(line, '\n')) != NULL)
			*end = '\0';
		n += strstr(line, part) != NULL;
		at += (off_t)strlen(line) + 1;
	}
	return n;
}

static void
lose_both(void)
{
	struct wp_watch *w = watch((struct wp_attr){.action = WP_PRINT});
	FILE *said;

	kill_both(true);
	said = keep_lines();
	write_word();
	wp_close(w);
	_exit(count_lines(said, " may go unreported: the helper, ") == 0);
}

TEST(without_helper_and_tracer_a_line_says_so)
{
	(void)setenv("WATCHPOINT_OUTPUT", "/dev/null", 1);
	assert_int_equal(child_wait(start_program(lose_both, "ptrace")), 0);
	(void)unsetenv("WATCHPOINT_OUTPUT");
}

/* --- async without anybody --- */

#define TAKEN_OVER "threads created later are not watched"

enum {
	ROUNDS = 20,
	PATIENCE = 60,		/* seconds for a program to end */
};

static struct {
	struct wp_watch *word, *wide;
	FILE *said;
	bool by_order, blocks;
} lost;

static void
set_blocked(int sig, int how)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, sig);
	(void)pthread_sigmask(how, &set, NULL);
}

/* Each a hit of one register or the other, or of both. */
static void
write_all(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		shared->word = 1;
		shared->wide[0] = 1;
		shared->wide[1] = 2;
		/* in one instruction */
		__asm__ volatile("movdqu %%xmm0, (%0)" :
		    : "r"(shared->wide) : "memory");
	}
}

static void *
write_when_told(void *arg)
{
	(void)arg;
	__atomic_add_fetch(&shared->ready, 1, __ATOMIC_SEQ_CST);
	wait_for(1);
	write_all();
	return NULL;
}

static struct wp_watch *
watch_wide(void)
{
	const struct wp_attr attr = {
		.size = sizeof(attr), .addr = shared->wide,
		.len = sizeof(shared->wide), .action = WP_PRINT | WP_CALL,
		.handler = count_hit,
		.arg = (void *)(uintptr_t)&shared->outer,
	};
	struct wp_watch *w;

	shared->result = wp_open(&attr, &w);
	(void)snprintf(shared->cause, sizeof(shared->cause), "%s", wp_cause());
	return w;
}

/* Hits, and their lines. */
static void
expect_hits(unsigned word, unsigned wide)
{
	const unsigned lines = count_lines(lost.said, "watchpoint: #");

	if (shared->hits == word && shared->outer == wide &&
	    lines == word + wide && count_lines(lost.said, "(late)") == 0)
		return;
	(void)fprintf(stderr, "%u and %u hits and %u lines, not %u and %u\n",
	    shared->hits, shared->outer, lines, word, wide);
	_exit(3);
}

/* What can be done with a watch still can be done; but its count is not
   known. */
static void
use_watches(unsigned word, unsigned wide)
{
	uint64_t count;

	if (wp_count(lost.word, &count) != -EPIPE)
		_exit(4);
	(void)wp_disable(lost.word);
	shared->word = 2;
	expect_hits(word, wide);
	if (wp_enable(lost.word) != 0 ||
	    wp_move(lost.word, &shared->other) != 0)
		_exit(5);
	shared->word = 3;
	shared->other = 4;
	expect_hits(word + 1, wide);
	wp_close(lost.word);
	shared->other = 5;
	expect_hits(word + 1, wide);
	wp_close(lost.wide);
}

static void
lose_all_and_go_on(void)
{
	pthread_t thread[THREADS], late;

	(void)alarm(PATIENCE);
	if (lost.blocks)	/* and so in the threads */
		set_blocked(SIGURG, SIG_BLOCK);
	lost.word = watch((struct wp_attr){
		.action = WP_PRINT | WP_CALL, .handler = count_hit});
	lost.wide = watch_wide();
	for (int i = 0; i < THREADS; i++)
		(void)pthread_create(&thread[i], NULL, write_when_told, NULL);
	while (shared->ready < THREADS)
		nap_us(100);
	lost.said = keep_lines();
	kill_both(lost.by_order);
	if (lost.blocks)
		set_blocked(SIGURG, SIG_UNBLOCK);
	while (count_lines(lost.said, TAKEN_OVER) == 0)
		nap_us(1000);
	expect_hits(0, 0);
	write_all();
	expect_hits(ROUNDS, 3 * ROUNDS);
	shared->step = 1;
	for (int i = 0; i < THREADS; i++)
		(void)pthread_join(thread[i], NULL);
	if (lost.blocks)	/* by the threads */
		_exit(count_lines(lost.said, TAKEN_OVER) != 1);
	expect_hits((1 + THREADS) * ROUNDS, (1 + THREADS) * 3 * ROUNDS);
	(void)pthread_create(&late, NULL, write_when_told, NULL);
	(void)pthread_join(late, NULL);
	expect_hits((1 + THREADS) * ROUNDS, (1 + THREADS) * 3 * ROUNDS);
	use_watches((1 + THREADS) * ROUNDS, (1 + THREADS) * 3 * ROUNDS);
	_exit(count_lines(lost.said, TAKEN_OVER) != 1);
}

TEST(async_goes_on_in_plain_lines_without_both)
{
	(void)setenv("WATCHPOINT_OUTPUT", "/dev/null", 1);
	for (int i = 0; i < 3; i++) {
		(void)clear_shared(state);
		lost.by_order = i % 2 != 0;
		lost.blocks = i == 2;
		assert_int_equal(child_wait(start_program(lose_all_and_go_on,
		    "async")), 0);
	}
	(void)unsetenv("WATCHPOINT_OUTPUT");
}

static void *
write_on(void *arg)
{
	while (!shared->end) {
		write_all();
		add(&shared->turns[(uintptr_t)arg], 1);
	}
	return NULL;
}

/* A storm of hits. */
static void
lose_all_in_a_storm(void)
{
	pthread_t thread[THREADS];
	unsigned before;

	(void)alarm(PATIENCE);
	lost.word = watch((struct wp_attr){
		.action = WP_PRINT | WP_CALL, .handler = count_hit});
	lost.wide = watch_wide();
	for (uintptr_t i = 0; i < THREADS; i++)
		(void)pthread_create(&thread[i], NULL, write_on, (void *)i);
	shared->ready = 1;
	wait_for(1);
	kill_both(lost.by_order);
	before = shared->hits;
	while (shared->hits < before + 100)
		nap_us(1000);
	shared->end = true;
	for (int i = 0; i < THREADS; i++)
		(void)pthread_join(thread[i], NULL);
	wp_close(lost.word);
	wp_close(lost.wide);
	_exit(30);
}

TEST(async_goes_on_when_they_die_in_a_storm)
{
	unsigned short seed[3] = {10, 11, 12};

	(void)setenv("WATCHPOINT_OUTPUT", "/dev/null", 1);
	for (int i = 0; i < STORMS; i++) {
		pid_t pid;

		(void)clear_shared(state);
		lost.by_order = i % 2 != 0;
		pid = start_program(lose_all_in_a_storm, "async");
		await(shared->ready == 1);
		nap_us(nrand48(seed) % 5000);
		shared->step = 1;
		assert_int_equal(child_wait(pid), 30 << 8);
	}
	(void)unsetenv("WATCHPOINT_OUTPUT");
}

/* A filter of system calls that kills whoever opens an event, or prepares
   to. */
static void
be_filtered(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
		    offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getdents64, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ppoll, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = {COUNT(code), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) != 0)
		_exit(2);
}

static void
lose_all_behind_a_filter(void)
{
	(void)alarm(PATIENCE);
	(void)watch((struct wp_attr){.action = WP_PRINT});
	be_filtered();
	lost.said = keep_lines();
	kill_both(true);
	while (count_lines(lost.said, "seccomp") == 0)
		nap_us(1000);
	shared->word = 1;
	_exit(count_lines(lost.said, "watchpoint: #") != 0);
}

TEST(a_filter_that_kills_is_not_met)
{
	(void)setenv("WATCHPOINT_OUTPUT", "/dev/null", 1);
	assert_int_equal(child_wait(start_program(lose_all_behind_a_filter,
	    "async")), 0);
	(void)unsetenv("WATCHPOINT_OUTPUT");
}

/* The signal of their death does a program no harm that has taken our handler
   away, nor a child of fork(2). */
static void
lose_all_without_handler(void)
{
	pid_t child;

	(void)watch((struct wp_attr){.action = WP_PRINT});
	if ((child = fork()) == 0) {
		wait_for(1);
		shared->word = 1;
		_exit(atomic_load(&wp_state.look_after) != NULL);
	}
	(void)signal(SIGURG, SIG_DFL);
	lost.said = keep_lines();
	kill_both(true);
	shared->step = 1;
	if (child_wait(child) != 0)
		_exit(6);
	shared->word = 1;
	_exit(31);
}

TEST(the_death_of_helper_and_tracer_does_no_harm)
{
	(void)setenv("WATCHPOINT_OUTPUT", "/dev/null", 1);
	assert_int_equal(child_wait(start_program(lose_all_without_handler,
	    "async")), 31 << 8);
	(void)unsetenv("WATCHPOINT_OUTPUT");
}

static void
watch_without(void)
{
	(void)setenv("WATCHPOINT_HELPER", "", 1);
	(void)watch((struct wp_attr){0});
}

TEST(without_a_helper_the_cause_says_so)
{
	assert_int_equal(child_wait(start_program(watch_without, "ptrace")), 0);
	assert_int_equal(shared->result, -ENOTSUP);
	assert_holds(shared->cause, "helper");
}

RUN_LIVE_TESTS(.before_all = begin, .before_each = clear_shared,
    .after_each = children_end)
