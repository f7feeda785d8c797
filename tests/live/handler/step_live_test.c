/*
 * step: continuing after a trap that comes before its instruction.  On this
 * processor only execution traps so, and it continues only because the kernel
 * sets the resume flag.  A handler that clears the flag makes it behave like
 * processors that need a single step, and this program pretends to run on one.
 */
#include "test.h"

#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "live.h"
#include "program.h"
#include "refuse.h"
#include "handler/step.h"
#include "handler/watches.h"
#include "os/trap_cpu.h"

#ifdef __x86_64__

enum {
	TIMES = 1000,
	THREADS = 4,
	FEW = 50,
	RESUME = 1 << 16,	/* the flag, in eflags */
};

/* What the library's own step_x86_64.c and trap_x86_64.c would say otherwise.
   All instructions that are stepped over here are one byte long. */
static bool steps = true;

bool
wp_cpu_traps_before(void)
{
	return steps;
}

bool
wp_cpu_kernel_steps(void)
{
	return false;
}

bool
wp_cpu_traps_kernel(void)
{
	return true;
}

uint64_t
wp_cpu_next(const ucontext_t *context)
{
	return (uint64_t)context->uc_mcontext.gregs[REG_RIP] + 1;
}

bool
wp_cpu_at_syscall(const ucontext_t *context)
{
	(void)context;
	return false;
}

/* Counted in %rax, so that who calls it knows that all of it was executed. */
extern const char target[];
extern uint64_t call_target(uint64_t n);
extern void store(volatile uint64_t *to, uint64_t value);
__asm__(
    "	.text\n"
    "	.globl call_target, target, store\n"
    "call_target:\n"
    "	mov	%rdi, %rax\n"
    "target:\n"
    "	nop\n"
    "	inc	%rax\n"
    "	ret\n"
    "store:\n"
    "	mov	%rsi, (%rdi)\n"
    "	nop\n"
    "	ret\n");

static struct {
	_Atomic unsigned hits, other, signals, at_most;
	unsigned before;	/* hits when the signal's handler began */
} seen;
static volatile uint64_t word;
static enum wp_threads whose = WP_THIS_THREAD;
static sigset_t mask_before;

/* As the processor would find the flags without the kernel's help. */
static void
take_resume(const struct wp_hit *hit)
{
	ucontext_t *context = hit->context;

	context->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)RESUME;
}

static void
note(const struct wp_hit *hit, void *arg)
{
	_Atomic unsigned *count = arg;
	unsigned n = atomic_fetch_add(count, 1) + 1;

	if (seen.at_most == 0 || n < seen.at_most)
		take_resume(hit);
}

static int
reset(void **state)
{
	(void)state;
	memset(&seen, 0, sizeof(seen));
	steps = true;
	(void)pthread_sigmask(SIG_BLOCK, NULL, &mask_before);
	return 0;
}

/* What a failed test left open; and that none changes the thread. */
static int
close_all(void **state)
{
	sigset_t mask;

	(void)pthread_sigmask(SIG_BLOCK, NULL, &mask);
	for (unsigned i = 0; i < WP_WATCHES_MAX; i++)
		if (atomic_load(&wp_state.watch[i].serial) != 0)
			wp_close(&wp_state.watch[i]);
	return children_end(state) |
	    (memcmp(&mask, &mask_before, sizeof(uint64_t)) != 0);
}

/* On the execution of target, by this thread, if nothing else is said. */
static struct wp_watch *
open_attr(struct wp_attr attr)
{
	struct wp_watch *w;

	attr.size = sizeof(attr);
	attr.threads = whose;
	if (attr.addr == NULL) {
		attr.addr = target;
		attr.access = WP_EXEC;
	}
	if (attr.arg == NULL)
		attr.arg = &seen.hits;
	if (attr.handler == NULL)
		attr.handler = note;
	if (wp_open(&attr, &w) < 0)
		fail_msg("%s", wp_cause());
	return w;
}

#define open_watch(...)	open_attr((struct wp_attr){__VA_ARGS__})

static void
call_often(void)
{
	for (uint64_t i = 0; i < TIMES; i++)
		assert_int_equal(call_target(i), i + 1);
}

/* Else none of this would test anything. */
TEST(without_a_step_the_same_hit_comes_again)
{
	struct wp_watch *w;

	steps = false;
	w = open_watch(.label = "target");
	seen.at_most = FEW;
	assert_int_equal(call_target(1), 2);
	assert_int_equal(seen.hits, FEW);
	wp_close(w);
}

TEST(each_execution_is_one_hit)
{
	struct wp_watch *w = open_watch(.label = "target");
	const unsigned descriptors = open_descriptors();
	uint64_t count;

	call_often();
	assert_int_equal(seen.hits, TIMES);
	assert_int_equal(wp_count(w, &count), 0);
	assert_int_equal(count, TIMES);
	assert_int_equal(open_descriptors(), descriptors);
	wp_close(w);
	call_often();
	assert_int_equal(seen.hits, TIMES);
}

/* As on kernels where the signal comes some instructions late. */
TEST(a_step_from_behind_the_access_does_no_harm)
{
	struct wp_watch *w = open_watch(.addr = &word, .len = sizeof(word));

	for (unsigned i = 0; i < TIMES; i++)
		store(&word, i);
	assert_int_equal(seen.hits, TIMES);
	wp_close(w);
}

TEST(all_watches_of_an_instruction_are_hit)
{
	struct wp_watch *a = open_watch(.label = "a");
	struct wp_watch *b = open_watch(.label = "b", .arg = &seen.other);

	call_often();
	assert_int_equal(seen.hits, TIMES);
	assert_int_equal(seen.other, TIMES);
	wp_close(a);
	wp_close(b);
}

TEST(every_tenth_is_a_hit)
{
	struct wp_watch *w = open_watch(.period = 10);

	call_often();
	assert_int_equal(seen.hits, TIMES / 10);
	wp_close(w);
}

TEST(a_limit_ends_it)
{
	struct wp_watch *w = open_watch(.limit = FEW);

	call_often();
	assert_int_equal(seen.hits, FEW);
	assert_int_equal(wp_enable(w), 0);
	call_often();
	assert_int_equal(seen.hits, 2 * FEW);
	wp_close(w);
}

/* A signal that waits for the handler's end does not come in between: what it
   does would not be seen. */
static void
on_signal(int sig)
{
	(void)sig;
	seen.signals++;
	seen.before = seen.hits;
	(void)call_target(0);
}

static void
note_and_signal(const struct wp_hit *hit, void *arg)
{
	(void)arg;
	if (seen.hits++ == 0)
		(void)pthread_kill(pthread_self(), SIGUSR1);
	take_resume(hit);
}

TEST(a_signal_waits_until_the_step_is_made)
{
	const struct sigaction action = {.sa_handler = on_signal};
	struct sigaction old;
	struct wp_watch *w = open_watch(.handler = note_and_signal);

	assert_int_equal(sigaction(SIGUSR1, &action, &old), 0);
	assert_int_equal(call_target(1), 2);
	assert_int_equal(seen.signals, 1);
	assert_int_equal(seen.before, 1);
	assert_int_equal(seen.hits, 2);
	(void)sigaction(SIGUSR1, &old, NULL);
	wp_close(w);
}

static jmp_buf out;

static void
leave(const struct wp_hit *hit, void *arg)
{
	(void)arg;
	seen.hits++;
	wp_leave(hit);
	longjmp(out, 1);
}

static __attribute__((noinline)) void
call_and_be_left(void)
{
	if (setjmp(out) == 0) {
		(void)call_target(1);
		fail();
	}
}

TEST(a_handler_that_is_left_makes_no_step)
{
	struct wp_watch *w = open_watch(.handler = leave);
	const unsigned descriptors = open_descriptors();

	for (unsigned i = 0; i < FEW; i++)
		call_and_be_left();
	assert_int_equal(seen.hits, FEW);
	assert_int_equal(open_descriptors(), descriptors);
	wp_close(w);
}

static void
close_it(const struct wp_hit *hit, void *arg)
{
	(void)arg;
	seen.hits++;
	take_resume(hit);
	wp_close(hit->watch);
}

TEST(a_watch_may_be_closed_by_its_handler)
{
	(void)open_watch(.handler = close_it);
	call_often();
	assert_int_equal(seen.hits, 1);
}

/* It cannot be distinguished from a loop, so it must not be one. */
TEST(without_a_free_breakpoint_the_watch_is_disabled)
{
	static volatile uint64_t others[3];
	struct wp_watch *w = open_watch(.label = "target"), *other[3];
	char line[256];
	FILE *said = tmpfile();

	assert_non_null(said);
	for (unsigned i = 0; i < 3; i++)
		other[i] = open_watch(.addr = &others[i],
		    .len = sizeof(others[i]));
	wp_state.output = fileno(said);
	call_often();
	wp_state.output = STDERR_FILENO;
	rewind(said);
	assert_non_null(fgets(line, sizeof(line), said));
	(void)fclose(said);
	if (strstr(line, "target is disabled: ") == NULL)
		fail_msg("%s", line);
	assert_int_equal(seen.hits, 1);
	wp_close(other[0]);
	assert_int_equal(wp_enable(w), 0);
	call_often();
	assert_int_equal(seen.hits, 1 + TIMES);
	for (unsigned i = 1; i < 3; i++)
		wp_close(other[i]);
	wp_close(w);
}

static volatile uint64_t frozen;

/* What arms events again is refused from now on; not so for a step's, which
   have low numbers. */
static bool
refuse_refresh(void)
{
	return refuse_call(SYS_ioctl, EPERM, (const struct refuse_arg[]){
		{0, 100, true}, {1, PERF_EVENT_IOC_REFRESH, false},
	}, 2);
}

static void
hit_once_more(void *arg)
{
	FILE *said = tmpfile();
	char line[256] = "";

	(void)arg;
	CHECK(said != NULL);
	WP_FREEZE(frozen) {
		(void)open_watch(.addr = &word, .len = sizeof(word),
		    .label = "word");
		wp_state.output = fileno(said);
		CHECK(refuse_refresh());
		store(&word, 1);
		CHECK(seen.hits == 1);
		store(&word, 2);
		CHECK(seen.hits == 1);
		rewind(said);
		CHECK(fgets(line, sizeof(line), said) != NULL);
		CHECK(strstr(line, "word is no longer watched in a thread: ") !=
		    NULL);
		/* a freeze that was fine so far */
		CHECK(wp_stray_missed() == 1);	/* all threads, no helper */
		store(&frozen, 1);
	}
	CHECK(wp_stray_missed() == 2);
	CHECK(strstr(wp_stray_missed_text(), "by a thread") != NULL);
}

TEST(an_event_that_is_not_armed_again_is_reported)
{
	program(hit_once_more, NULL);
}

TEST(by_sigtrap_is_refused)
{
	const struct wp_attr attr = {
		.size = sizeof(attr), .addr = &word, .len = sizeof(word),
	};
	struct wp_watch *w;

	assert_int_equal(wp_open(&attr, &w), -ENOTSUP);
	assert_holds(wp_cause(), "takes async");
}

static void *
call_in_thread(void *arg)
{
	for (uint64_t i = 0; i < TIMES; i++)
		if (call_target(i) != i + 1)
			return arg;
	return NULL;
}

TEST(later_threads_step_too)
{
	struct wp_watch *w = open_watch(.label = "target");
	pthread_t thread[THREADS];
	uint64_t count;
	void *wrong;

	assert_false(w->inexact);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL,
		    call_in_thread, &seen), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(thread[i], &wrong), 0);
		assert_null(wrong);
	}
	assert_int_equal(seen.hits, THREADS * TIMES);
	assert_int_equal(wp_count(w, &count), 0);
	assert_int_equal(count, THREADS * TIMES);
	wp_close(w);
}

/* A process has one delivery, and one helper or none. */
static int
in_process(int (*fn)(void), const char *delivery, bool helped)
{
	const char *helper = getenv("WATCHCTL");
	int status = -1;
	pid_t pid;

	(void)fflush(NULL);
	if ((pid = fork()) == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)setenv("WATCHPOINT_DELIVERY", delivery, 1);
		(void)setenv("WATCHPOINT_HELPER", helped && helper != NULL ?
		    helper : "", 1);
		exit(fn());
	}
	if (waitpid(pid, &status, 0) != pid || status != 0)
		(void)fprintf(stderr, "%s: status %#x\n", delivery, status);
	return status != 0;
}

static int
with_none(void)
{
	return run_live_tests(.except = (const CMUnitTestFunction[]){
	    by_sigtrap_is_refused, later_threads_step_too, NULL},
	    .before_each = reset, .after_each = close_all);
}

static int
by_sigtrap(void)
{
	return run_live_tests(.only = (const CMUnitTestFunction[]){
	    by_sigtrap_is_refused, NULL},
	    .before_each = reset, .after_each = close_all);
}

static int
with_helper(void)
{
	whose = WP_ALL_THREADS;
	return run_live_tests(.only = (const CMUnitTestFunction[]){
	    later_threads_step_too, each_execution_is_one_hit, NULL},
	    .before_each = reset, .after_each = close_all);
}

int
main(void)
{
	int failed = in_process(with_none, "async", false);

	failed += in_process(by_sigtrap, "sigtrap", false);
	return failed + in_process(with_helper, "async", true);
}

#else
int
main(void)
{
	return 0;
}
#endif
