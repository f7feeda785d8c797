/*
 * tracer_process: what the helper does for a program by ptrace(2), whichever of
 * the three processes is killed, and whatever the program asks for.
 *
 * The test acts as a helper that explains nothing; the programs are its
 * children, and watch themselves through wp_open.
 */
#include "test.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>

#include "child.h"
#include "live.h"
#include "proc/proc.h"
#include "helper/tracer_process.h"
#include "handler/watches.h"
#include "arming/helper.h"
#include "program/table.h"

enum { THREADS = 4, TRACER_KILLS = 100, HELPER_KILLS = 40 };

static struct shared {
	volatile uint64_t word[8];
	volatile unsigned hits, nth, late;	/* as the handler was given */
	volatile unsigned turns[THREADS];
	volatile pid_t tid[THREADS];
	volatile int ready, step, result;
	volatile uint64_t count;
	volatile bool end;
	char cause[512];
} *shared;

SHARED_FIXTURE

static struct wp_channel *channel;
static int channel_fd = -1;

static int
clear(void **state)
{
	(void)state;
	memset(shared, 0, sizeof(*shared));
	if (channel_fd >= 0) {
		wp_channel_unmap(channel);
		(void)close(channel_fd);
	}
	channel_fd = wp_channel_make(WP_STACK_USUAL);
	return channel_fd < 0 || wp_channel_map(channel_fd, &channel) < 0 ?
	    -1 : 0;
}

static void
wait_for(int step)
{
	while (shared->step < step)
		nap_us(100);
}

/* --- the helper --- */

static void
be_helper(void *arg)
{
	struct tracer_process *tracing;
	struct wp_cell *cell;
	uint32_t heard = 0;

	(void)arg;
	while (atomic_load(&channel->program) == 0)
		nap_us(100);
	if (tracer_process_open(&tracing, atomic_load(&channel->program)) != 0)
		_exit(1);
	wp_channel_serve(channel);
	while (!shared->end) {
		while ((cell = wp_channel_next(channel)) != NULL)
			wp_channel_done(channel, cell);
		tracer_process_request(tracing, channel);
		wp_channel_sleep(channel, &heard, 20);
	}
	tracer_process_close(tracing);
}

static pid_t
start_helper(void)
{
	return child_start(be_helper, NULL);
}

/* For an instant, while a thread is being attached to, the kernel shows its
   parent, us, as its tracer. */
static pid_t
tracer_of(pid_t tid)
{
	struct wp_proc_status status;

	if (wp_proc_status(tid, &status) < 0)
		return -1;
	return status.tracer == getpid() ? 0 : status.tracer;
}

/* --- programs --- */

static void
handler(const struct wp_hit *hit, void *arg)
{
	(void)arg;
	shared->nth = (unsigned)hit->nth;
	shared->late += (unsigned)hit->late;
	add(&shared->hits, 1);
}

/* A watch on a word; shared->result and cause say why not. */
static struct wp_watch *
watch_word(unsigned i, enum wp_threads threads)
{
	const struct wp_attr attr = {
		.size = sizeof(attr), .addr = &shared->word[i], .len = 8,
		.handler = handler, .threads = threads,
	};
	struct wp_watch *w;

	shared->result = wp_open(&attr, &w);
	(void)snprintf(shared->cause, sizeof(shared->cause), "%s", wp_cause());
	return w;
}

/* Run a program whose helper the test has; it gets as far as step 1 by
   itself. */
static pid_t
start_program(void (*fn)(void *), void *arg)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", channel_fd);
	(void)setenv("WATCHPOINT_CHANNEL", path, 1);
	(void)setenv("WATCHPOINT_DELIVERY", "ptrace", 1);
	return child_start(fn, arg);
}

/* Run it to its end, and its helper with it. */
static void
run_program(void (*fn)(void *))
{
	pid_t helper = start_helper(), program = start_program(fn, NULL);

	assert_int_equal(child_wait(program), 0);
	shared->end = true;
	assert_int_equal(child_wait(helper), 0);
}

static void *
turn(void *arg)
{
	each_turn((size_t)(uintptr_t)arg) {
		nap_us(200);
	}
	return NULL;
}

static void
start_threads(void)
{
	child_threads(THREADS, turn);
	while (shared->ready < THREADS)
		nap_us(100);
}

static bool
all_turn(void)
{
	for (unsigned i = 0; i < THREADS; i++) {
		unsigned before = shared->turns[i];

		for (unsigned n = 0; shared->turns[i] == before; n++) {
			if (n > CHILD_PATIENCE_MS * 10)
				return false;
			nap_us(100);
		}
	}
	return true;
}

static bool
all_stand(void)
{
	unsigned before[THREADS];

	memcpy(before, (const void *)shared->turns, sizeof(before));
	nap_us(10000);
	return memcmp(before, (const void *)shared->turns,
	    sizeof(before)) == 0;
}

/* --- holding --- */

static int
ask(uint32_t what, struct wp_cause *cause)
{
	struct wp_request *request;
	int err = -EPIPE;

	wp_watches_lock();
	if (wp_helper_start(cause) == 0 &&
	    (request = wp_helper_request(what)) != NULL) {
		request->tid = gettid();
		err = wp_helper_ask(cause);
	}
	wp_watches_unlock();
	return err;
}

/* arg: the helper is killed while they are held. */
static void
hold_others(void *arg)
{
	start_threads();
	for (int i = 0; i < 10; i++) {
		if (ask(WP_ASK_HOLD, NULL) != 0 || !all_stand())
			shared->result = -1;
		if (arg != NULL) {
			shared->ready = 99;
			(void)all_turn();
			break;
		}
		if (ask(WP_ASK_GO, NULL) != 0 || !all_turn())
			shared->result = -2;
	}
	/* of nobody */
	if (arg == NULL && ask(WP_ASK_GO, NULL) != 0)
		shared->result = -3;
	if (!all_turn())
		shared->result = -4;
}

TEST(all_other_threads_are_held)
{
	run_program(hold_others);
	assert_int_equal(shared->result, 0);
}

TEST(held_threads_continue_without_a_helper)
{
	pid_t helper = start_helper();
	pid_t program = start_program(hold_others, channel);

	await(shared->ready == 99);
	child_kill(helper);
	assert_int_equal(child_wait(program), 0);
	assert_int_equal(shared->result, 0);
}

/* --- killed processes --- */

/* Threads that write all the time. */
static void *
write_on(void *arg)
{
	while (!shared->end) {
		shared->word[0] = (uintptr_t)arg;
		add(&shared->turns[(uintptr_t)arg], 1);
	}
	return NULL;
}

static void
write_all_the_time(void *arg)
{
	pthread_t thread;
	struct wp_watch *w = watch_word(0, WP_ALL_THREADS);

	(void)arg;
	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&thread, NULL, write_on, (void *)i) != 0)
			_exit(1);
	shared->ready = 1;
	wait_for(1);
	shared->end = true;
	nap_us(10000);
	wp_close(w);
	shared->word[0] = 5;
}

/* Hits are reported, and all threads make progress. */
static void
expect_hits(void)
{
	unsigned before = shared->hits;

	await(shared->hits > before + 10);
	assert_true(all_turn());
}

/* Killed at any moment, another takes its place and arms all again. */
TEST(killed_tracers_are_replaced)
{
	pid_t helper = start_helper();
	pid_t program = start_program(write_all_the_time, NULL);
	pid_t tracer, last = 0;
	unsigned short seed[3] = {1, 2, 3};

	await(shared->ready == 1);
	assert_int_equal(shared->result, 0);
	for (int i = 0; i < TRACER_KILLS; i++) {
		await((tracer = tracer_of(program)) > 0 && tracer != last);
		if (i % 10 == 0)
			expect_hits();
		nap_us(nrand48(seed) % 2000);
		assert_int_equal(kill(tracer, SIGKILL), 0);
		last = tracer;
	}
	await((tracer = tracer_of(program)) > 0 && tracer != last);
	expect_hits();
	assert_int_equal(channel->gaps, TRACER_KILLS);
	shared->step = 1;
	assert_int_equal(child_wait(program), 0);
	child_kill(helper);
}

static void
freeze(void *arg)
{
	(void)setenv("WATCHPOINT_DELIVERY", arg, 1);
	WP_FREEZE(shared->word[0]) {
		shared->ready = 1;
		wait_for(1);
	}
	shared->count = wp_stray_missed();
	(void)snprintf(shared->cause, sizeof(shared->cause), "%s",
	    wp_stray_missed_text());
}

/* Nobody can know what was written in the meantime. */
TEST(a_freeze_without_a_tracer_for_a_while_is_doubtful)
{
	static const struct {
		const char *delivery;
		bool kill;
	} cases[] = {
		{"ptrace", false}, {"ptrace", true},
		{"async", false}, {"async", true},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		pid_t helper, program, tracer;

		(void)clear(NULL);
		helper = start_helper();
		program = start_program(freeze, (void *)(uintptr_t)
		    cases[i].delivery);
		await(shared->ready == 1);
		await((tracer = tracer_of(program)) > 0);
		if (cases[i].kill) {
			assert_int_equal(kill(tracer, SIGKILL), 0);
			await(tracer_of(program) != tracer);
		}
		shared->step = 1;
		assert_int_equal(child_wait(program), 0);
		if (shared->count != cases[i].kill ||
		    (strstr(shared->cause, "was killed") != NULL) !=
		    cases[i].kill)
			fail_msg("%s: %llu missed: \"%s\"", cases[i].delivery,
			    (unsigned long long)shared->count, shared->cause);
		child_kill(helper);
	}
}

static void
count_without_helper(void *arg)
{
	struct wp_watch *w;
	uint64_t count;

	(void)setenv("WATCHPOINT_DELIVERY", arg, 1);
	w = watch_word(0, WP_ALL_THREADS);
	shared->word[0] = 1;
	if (wp_count(w, &count) != 0 || count != 1)
		_exit(1);
	shared->ready = 1;
	wait_for(1);
	shared->result = wp_count(w, &count);
	(void)snprintf(shared->cause, sizeof(shared->cause), "%s", wp_cause());
	wp_close(w);
}

TEST(a_count_needs_the_helper)
{
	static const char *const deliveries[] = {"ptrace", "async"};

	for (size_t i = 0; i < COUNT(deliveries); i++) {
		pid_t helper, program;

		(void)clear(NULL);
		helper = start_helper();
		program = start_program(count_without_helper,
		    (void *)(uintptr_t)deliveries[i]);
		await(shared->ready == 1);
		child_kill(helper);
		shared->step = 1;
		assert_int_equal(child_wait(program), 0);
		assert_int_equal(shared->result, -EPIPE);
		assert_holds(shared->cause, "helper");
	}
}

/* The watch goes on without the helper, until the program ends. */
TEST(helpers_can_be_killed_at_any_moment)
{
	unsigned short seed[3] = {4, 5, 6};
	unsigned watched = 0;

	for (int i = 0; i < HELPER_KILLS; i++) {
		pid_t helper, program, tracer;

		(void)clear(state);
		helper = start_helper();
		program = start_program(write_all_the_time, NULL);
		await(atomic_load(&channel->ready) != 0);
		if (i % 2 == 0)
			await(shared->ready == 1);
		nap_us(nrand48(seed) % 3000);
		child_kill(helper);
		await(shared->ready == 1);
		tracer = tracer_of(program);
		watched += shared->result == 0;
		if (shared->result == 0 && tracer > 0)
			expect_hits();
		assert_true(all_turn());
		shared->step = 1;
		assert_int_equal(child_wait(program), 0);
		if (tracer > 0)
			await(is_gone(tracer));
	}
	assert_true(watched >= HELPER_KILLS / 2);
}

/* --- the program's own signals --- */

/* Which dispositions and masks of SIGTRAP and of the signal of hits lose
   none. */
static void
take_signals_away(void *arg)
{
	struct wp_watch *w = watch_word(0, WP_ALL_THREADS);
	sigset_t set;

	(void)arg;
	(void)w;
	shared->word[0] = 1;
	(void)signal(SIGTRAP, SIG_IGN);
	shared->word[0] = 2;
	(void)signal(SIGTRAP, SIG_DFL);
	shared->word[0] = 3;
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTRAP);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	shared->word[0] = 4;
	shared->result += shared->hits != 4 || shared->late != 0;
	/* blocked: one comes later, for all */
	(void)sigfillset(&set);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	shared->word[0] = 5;
	shared->word[0] = 6;
	shared->result += shared->hits != 4;
	(void)sigemptyset(&set);
	(void)sigprocmask(SIG_SETMASK, &set, NULL);
	shared->result += shared->hits != 5 || shared->late != 1;
	shared->word[0] = 7;
	shared->result += shared->hits != 6;
	/* a signal without a handler kills: it is not sent */
	(void)signal(WP_SIGNAL, SIG_DFL);
	nap_us(2000);
	shared->word[0] = 8;
	shared->word[0] = 9;
	shared->result += shared->hits != 6;
	(void)wp_count(w, (uint64_t *)(uintptr_t)&shared->count);
}

TEST(the_programs_signals_are_its_own)
{
	run_program(take_signals_away);
	assert_int_equal(shared->result, 0);
	assert_int_equal(shared->count, 9);
	assert_holds(channel->warning, "SIGRTMAX-1");
}

/* The tracer is killed, and no other comes: what is planted fires on, and the
   program, which has kept its handler through a hit with SIGTRAP blocked,
   lives. */
static void
lose_everybody(void *arg)
{
	struct wp_watch *w = watch_word(0, WP_ALL_THREADS);
	sigset_t set;

	(void)arg;
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTRAP);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	shared->word[0] = 1;
	shared->ready = 1;
	wait_for(1);
	for (int i = 0; i < 5; i++)
		shared->word[0] = 2;
	shared->result += shared->hits != 6;
	wp_close(w);
	shared->word[0] = 3;
	shared->result += shared->hits != 6;
}

TEST(hits_go_on_when_all_are_killed)
{
	pid_t helper = start_helper(), tracer;
	pid_t program = start_program(lose_everybody, NULL);

	await(shared->ready == 1);
	assert_int_equal(shared->hits, 1);
	tracer = tracer_of(program);
	assert_true(tracer > 0);
	child_kill(helper);
	assert_int_equal(kill(tracer, SIGKILL), 0);
	await(tracer_of(program) == 0);
	shared->step = 1;
	assert_int_equal(child_wait(program), 0);
	assert_int_equal(shared->result, 0);
}

/* --- refusals --- */

static void
open_one(void *arg)
{
	shared->ready = 1;
	wait_for(1);
	(void)watch_word(0, arg != NULL ? WP_THIS_THREAD : WP_ALL_THREADS);
	shared->ready = 2;
	wait_for(2);
}

static void
trace_one(void *arg)
{
	shared->result = ptrace(PTRACE_SEIZE, *(pid_t *)arg, 0, 0) == 0 ?
	    1 : -1;
	while (!shared->end)
		nap_us(1000);
}

static void
expect_refused(int err, const char *const words[])
{
	assert_int_equal(shared->result, err);
	for (; *words != NULL; words++)
		if (strstr(shared->cause, *words) == NULL)
			fail_msg("\"%s\" does not say %s", shared->cause,
			    *words);
}

TEST(another_tracer_is_named)
{
	pid_t helper = start_helper();
	pid_t program = start_program(open_one, NULL), other;
	char id[16];

	await(shared->ready == 1);
	other = child_start(trace_one, &program);
	await(shared->result == 1);
	shared->step = 1;
	await(shared->ready == 2);
	(void)snprintf(id, sizeof(id), "%d", other);
	expect_refused(-EPERM, (const char *[]){id, "tracer", NULL});
	assert_int_equal(tracer_of(program), other);
	shared->end = true;
	assert_int_equal(child_wait(other), 0);
	shared->step = 2;
	assert_int_equal(child_wait(program), 0);
	child_kill(helper);
}

/* Perf events hold slots of one of the program's threads. */
TEST(slots_taken_by_others)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT, .size = sizeof(attr),
		.disabled = 1, .exclude_kernel = 1,
		.bp_type = HW_BREAKPOINT_W, .bp_len = 8,
		.bp_addr = (uintptr_t)&shared->word[7],
	};
	pid_t helper = start_helper();
	pid_t program = start_program(open_one, NULL);
	char id[16];
	int fd[4];

	await(shared->ready == 1);
	for (size_t i = 0; i < COUNT(fd); i++) {
		fd[i] = wp_perf_open(&attr, program, -1);
		assert_true(fd[i] >= 0);
	}
	shared->step = 1;
	await(shared->ready == 2);
	(void)snprintf(id, sizeof(id), "thread %d", program);
	expect_refused(-ENOSPC, (const char *[]){id, "slot", NULL});
	/* nothing of it is left */
	await(tracer_of(program) == 0);
	for (size_t i = 0; i < COUNT(fd); i++)
		(void)close(fd[i]);
	shared->step = 2;
	assert_int_equal(child_wait(program), 0);
	child_kill(helper);
}

static void *
take_four(void *arg)
{
	struct wp_watch *w[5];
	const unsigned before = shared->hits;

	(void)arg;
	for (unsigned i = 0; i < 4; i++) {
		w[i] = watch_word(i, WP_THIS_THREAD);
		shared->word[i] = i;
	}
	if (shared->hits != before + 4)
		shared->step = -1;
	w[4] = watch_word(4, WP_THIS_THREAD);
	if (shared->result != -ENOSPC)
		shared->step = -2;
	if (strstr(shared->cause, "4") == NULL)
		shared->step = -3;
	shared->ready++;
	while (shared->ready < 2)
		nap_us(100);
	for (unsigned i = 0; i < 4; i++)
		wp_close(w[i]);
	return NULL;
}

/* Each thread has its own four, as long as none is watched in all. */
static void
have_two_threads(void *arg)
{
	pthread_t thread;
	struct wp_watch *w;

	if (pthread_create(&thread, NULL, take_four, arg) != 0)
		_exit(1);
	while (shared->ready < 1)
		nap_us(100);
	(void)take_four(NULL);
	(void)pthread_join(thread, NULL);
	w = watch_word(0, WP_ALL_THREADS);
	shared->word[0] = 1;
	wp_close(w);
}

TEST(each_thread_has_four_slots)
{
	run_program(have_two_threads);
	assert_int_equal(shared->step, 0);
	assert_int_equal(shared->result, 0);
	assert_int_equal(shared->hits, 9);
}

/* --- what no library asks --- */

static const struct bad {
	const char *name;
	struct wp_request request;
	int err;
} bads[] = {
	{"index", {.what = WP_ASK_ARM, .index = WP_WATCHES_MAX, .serial = 1,
	    .nslots = 1, .slot = {{0x1000, 8, HW_BREAKPOINT_W}}}, -EINVAL},
	{"index and a byte", {.what = WP_ASK_ARM, .index = 255, .serial = 1,
	    .nslots = 1, .slot = {{0x1000, 8, HW_BREAKPOINT_W}}}, -EMFILE},
	{"no slots", {.what = WP_ASK_ARM, .serial = 1}, -EINVAL},
	{"many slots", {.what = WP_ASK_ARM, .serial = 1, .nslots = 17},
	    -EINVAL},
	{"more slots", {.what = WP_ASK_ARM, .serial = 1, .nslots = UINT32_MAX},
	    -EINVAL},
	{"no serial", {.what = WP_ASK_ARM, .nslots = 1,
	    .slot = {{0x1000, 8, HW_BREAKPOINT_W}}}, -EINVAL},
	{"another's signal", {.what = WP_ASK_ARM, .serial = 1, .by_signal = 9,
	    .nslots = 1, .slot = {{0x1000, 8, HW_BREAKPOINT_W}}}, -EINVAL},
	{"the kernel's address", {.what = WP_ASK_ARM, .serial = 1, .nslots = 1,
	    .slot = {{0xffffffff81000000, 8, HW_BREAKPOINT_W}}}, -EINVAL},
	{"no address", {.what = WP_ASK_ARM, .serial = 1, .nslots = 1,
	    .slot = {{0x8000000000000000, 8, HW_BREAKPOINT_W}}}, -EINVAL},
	{"a length", {.what = WP_ASK_ARM, .serial = 1, .nslots = 1,
	    .slot = {{0x1000, 3, HW_BREAKPOINT_W}}}, -EINVAL},
	{"a long length", {.what = WP_ASK_ARM, .serial = 1, .nslots = 1,
	    .slot = {{0x1000, UINT64_MAX, HW_BREAKPOINT_W}}}, -EINVAL},
	{"another's thread", {.what = WP_ASK_ARM, .serial = 1, .tid = 1,
	    .nslots = 1, .slot = {{0x1000, 8, HW_BREAKPOINT_W}}}, -ESRCH},
	{"no thread", {.what = WP_ASK_ARM, .serial = 1, .tid = -1,
	    .nslots = 1, .slot = {{0x1000, 8, HW_BREAKPOINT_W}}}, -EINVAL},
	{"nothing to move", {.what = WP_ASK_MOVE, .index = 3, .nslots = 1,
	    .slot = {{0x1000, 8, HW_BREAKPOINT_W}}}, -EINVAL},
	{"nowhere to move", {.what = WP_ASK_MOVE, .index = 9999, .nslots = 1},
	    -EINVAL},
	{"nothing to disarm", {.what = WP_ASK_DISARM, .index = 9999}, 0},
};

static void
ask_badly(void *arg)
{
	struct wp_cause cause;

	(void)arg;
	wp_watches_lock();
	for (size_t i = 0; i < COUNT(bads); i++) {
		struct wp_request *request;

		cause.text[0] = '\0';
		if (wp_helper_start(&cause) < 0 ||
		    (request = wp_helper_request(bads[i].request.what)) == NULL)
			_exit(1);
		memcpy((char *)request + sizeof(request->state),
		    (const char *)&bads[i].request + sizeof(request->state),
		    sizeof(*request) - sizeof(request->state));
		/* that nobody asked for what it is on does not matter */
		atomic_store(&channel->watch[0].on, 1);
		shared->result = wp_helper_ask(&cause);
		if (shared->result != bads[i].err ||
		    (bads[i].err < 0 && cause.text[0] == '\0')) {
			shared->step = (int)i + 1;
			break;
		}
	}
	wp_watches_unlock();
	(void)watch_word(0, WP_ALL_THREADS);
	shared->word[0] = 1;
}

TEST(bad_requests_are_refused)
{
	run_program(ask_badly);
	if (shared->step != 0)
		fail_msg("%s: %d", bads[shared->step - 1].name, shared->result);
	assert_int_equal(shared->result, 0);
	assert_int_equal(shared->hits, 1);
}

RUN_LIVE_TESTS(.before_each = clear,
    .after_each = children_end)
