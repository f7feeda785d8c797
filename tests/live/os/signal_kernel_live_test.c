/*
 * signal_kernel: how Linux treats breakpoint events that signal their own
 * program, and whatever else watching from inside depends on: one test for each
 * fact of docs/kernel.md from "Signals" on, in its order.
 */
#include "test.h"

#ifdef __x86_64__

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <ucontext.h>

#include "child.h"
#include "live.h"
#include "proc/proc.h"
#include "ptrace/ptrace.h"
#include "shot.h"

enum {
	THREADS = 5,
	TIMES = 3000,		/* stores of a thread in a round */
	SWITCHES = 1000,
	KEPT = 64,		/* signals */
	ENDLESS = 20,		/* runs of a handler that would go on */

	CODE_PERF = 6,		/* TRAP_PERF, which glibc 2.36 has not got */
	FLAG_ASYNC = 1,		/* TRAP_PERF_FLAG_ASYNC: it had been blocked */
};

/* A siginfo_t of CODE_PERF. */
struct perf_info {
	int signo, error, code;
	uint64_t addr, data;
	uint32_t type, flags;
};
_Static_assert(offsetof(struct perf_info, flags) == 36, "as the kernel has it");

/* A signal as the handler saw it. */
struct trap {
	int code;
	int fd;			/* of a descriptor's signal (F_SETSIG) */
	uint64_t addr;
	uint64_t data;		/* sig_data */
	uint32_t flags;
	uint64_t pc;		/* where the thread was interrupted */
	bool blocked;		/* it had SIGTRAP blocked there */
};

/* What children share with their test. */
static struct {
	volatile unsigned n;	/* runs of on_trap */
	struct trap trap[KEPT];	/* the first of them, and the last */
	volatile int line;	/* of a condition that did not hold */
	volatile int told, did;	/* orders of a victim: given, carried out */
	volatile int deed;	/* the last order */
	volatile int fd;	/* of a victim's event */
	volatile uint64_t pc;	/* where a victim goes on after its store */
	struct robust_list_head robust;
	struct {
		struct robust_list link;
		volatile int word;
	} lock;			/* on that list */
} *shared;

SHARED_FIXTURE

/* In a child: this must be so. */
#define need(condition)							\
	do {								\
		if (!(condition)) {					\
			shared->line = __LINE__;			\
			_exit(1);					\
		}							\
	} while (0)

/* A child that must find all as it needs it. */
static void
run_child(void (*fn)(void *), void *arg)
{
	int status = child_wait(child_start(fn, arg));

	if (status != 0)
		fail_msg("line %d: status %x", shared->line, (unsigned)status);
}

/* What is watched: words of one cache line. */
static _Alignas(64) volatile uint64_t area[8];

static volatile unsigned passed;	/* landmark was executed */

/* Called by pointer, so that there is one copy of it. */
static void
landmark(void)
{
	passed++;
}
static void (*volatile call_landmark)(void) = landmark;

/* Events of this thread. */

static int armed[16];
static unsigned narmed;

static int
arm(struct perf_event_attr attr)
{
	int fd = wp_perf_open(&attr, 0, -1);

	assert_true(fd >= 0);
	assert_true(narmed < 16);
	armed[narmed++] = fd;
	return fd;
}

static void
disarm(void)
{
	while (narmed > 0)
		(void)close(armed[--narmed]);
}

static uint64_t
count_of(int fd)
{
	struct wp_perf_count count = {0};

	return wp_perf_read(fd, live_format(), &count) < 0 ?
	    UINT64_MAX : count.value;
}

static struct perf_event_attr
watch_attr(uint32_t type, volatile const void *at, bool kernel)
{
	return attr_of(slot(type, at, 8),
	    (struct wp_options){.kernel = kernel});
}

/* An event that sends SIGTRAP, with data, to the thread that hit. */
static struct perf_event_attr
trap_attr(uint32_t type, volatile const void *at, uint64_t data)
{
	struct perf_event_attr attr = watch_attr(type, at, false);

	attr.sigtrap = 1;
	attr.sig_data = data;
	return attr;
}

static struct perf_event_attr
landmark_attr(uint64_t data)
{
	return trap_attr(HW_BREAKPOINT_X, (void *)(uintptr_t)landmark, data);
}

/* An event that raises a signal of its descriptor in this thread. */
static int
arm_signal(struct perf_event_attr attr, int sig)
{
	int fd;

	attr.inherit = attr.inherit_thread = 0;
	attr.disabled = 1;
	fd = arm(attr);
	assert_int_equal(wp_perf_signal(fd, gettid(), sig), 0);
	assert_int_equal(wp_perf_enable(fd), 0);
	return fd;
}

/* Handling. */

static void (*volatile and_then)(const struct trap *);	/* in the handler */

static void
on_trap(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *uc = context;
	struct trap *t = &shared->trap[shared->n < KEPT ? shared->n : KEPT - 1];
	struct perf_info perf;

	(void)sig;
	memcpy(&perf, info, sizeof(perf));
	*t = (struct trap){info->si_code, info->si_fd,
	    (uintptr_t)info->si_addr, perf.data, perf.flags,
	    (uint64_t)uc->uc_mcontext.gregs[REG_RIP],
	    sigismember(&uc->uc_sigmask, SIGTRAP) == 1};
	shared->n++;
	if (and_then != NULL)
		and_then(t);
}

static void
handle_by(int sig, int flags, void (*fn)(int, siginfo_t *, void *))
{
	struct sigaction sa = {.sa_sigaction = fn,
	    .sa_flags = SA_SIGINFO | flags};

	(void)sigaction(sig, &sa, NULL);
}

static void
handle(int sig, int flags)
{
	handle_by(sig, flags, on_trap);
}

static void
mask(int how, int sig)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, sig);
	(void)pthread_sigmask(how, &set, NULL);
}

/* Take a SIGTRAP that is pending.  It writes nothing to memory, so that it does
   not make another. */
static inline __attribute__((always_inline)) bool
take_trap(void)
{
	static const uint64_t set = 1ull << (SIGTRAP - 1);
	static const struct timespec now;
	register long size __asm__("r10") = sizeof(set);
	long sig;

	__asm__ volatile("syscall" : "=a"(sig) : "0"((long)SYS_rt_sigtimedwait),
	    "D"(&set), "S"(0L), "d"(&now), "r"(size) : "rcx", "r11", "memory");
	return sig == SIGTRAP;
}

/* Each test begins with the handler installed and nothing caught. */
static int
begin(void **state)
{
	(void)state;
	memset(shared, 0, sizeof(*shared));
	and_then = NULL;
	passed = 0;
	handle(SIGTRAP, 0);
	handle(SIGRTMIN, 0);
	return 0;
}

static int
end(void **state)
{
	static const stack_t none = {.ss_flags = SS_DISABLE};

	disarm();
	mask(SIG_UNBLOCK, SIGTRAP);
	mask(SIG_UNBLOCK, SIGRTMIN);
	(void)signal(SIGTRAP, SIG_DFL);
	(void)signal(SIGRTMIN, SIG_DFL);
	(void)sigaltstack(&none, NULL);
	return children_end(state);
}

static void
must_have_sigtrap(void)
{
	if (!live_features.sigtrap) {
		print_message("this kernel sends no SIGTRAP for events\n");
		skip();
	}
}

/* Whether the kernel's accesses may be watched; if not, that is so. */
static bool
may_watch_kernel(void)
{
	struct perf_event_attr attr = watch_attr(HW_BREAKPOINT_W, area, false);

	if (live_features.kernel)
		return true;
	attr.exclude_kernel = 0;
	assert_int_equal(wp_perf_open(&attr, 0, -1), -EACCES);
	return false;
}

/* Store.  Result: the address after that instruction. */
static __attribute__((noinline)) uint64_t
store(volatile void *at)
{
	uint64_t after;

	__asm__ volatile("leaq 1f(%%rip), %0\n\tmovq $1, (%1)\n1:" :
	    "=&r"(after) : "r"(at) : "memory");
	return after;
}

/* Store into the first two words at once. */
static uint64_t
store_both(void)
{
	uint64_t after;

	__asm__ volatile("leaq 1f(%%rip), %0\n\tmovups %%xmm0, (%1)\n1:" :
	    "=&r"(after) : "r"(area) : "memory");
	return after;
}

/* Threads that store, round by round. */

static _Thread_local volatile unsigned my_stores, my_hits;
static _Thread_local volatile int my_fd;	/* of its event; 0: inherited */
static volatile uint64_t due_data, due_addr;	/* what signals must say */
static volatile unsigned astray;	/* signals that were not as they must */

/* In a thread of the crew, between one store and the next. */
static void
on_member_trap(int sig, siginfo_t *info, void *context)
{
	struct perf_info perf;

	(void)context;
	memcpy(&perf, info, sizeof(perf));
	my_hits++;
	if (my_hits != my_stores || (sig == SIGTRAP ?
	    perf.data != due_data || perf.addr != due_addr ||
	    perf.code != CODE_PERF || perf.flags != 0 :
	    info->si_fd != my_fd))
		(void)__atomic_add_fetch(&astray, 1, __ATOMIC_SEQ_CST);
}

struct crew {
	pthread_barrier_t gate;	/* before and after each round */
	volatile bool over;	/* no more rounds */
	volatile bool on;	/* the round goes on past TIMES */
	struct member {
		pthread_t thread;
		struct crew *crew;
		bool signalled;	/* has an event of its own */
		volatile unsigned hits;	/* in the last round */
	} member[THREADS];
};

static void
arm_member(void)
{
	struct perf_event_attr attr = watch_attr(HW_BREAKPOINT_W, area, false);

	attr.inherit = attr.inherit_thread = 0;
	attr.disabled = 1;
	my_fd = wp_perf_open(&attr, 0, -1);
	(void)wp_perf_signal(my_fd, gettid(), SIGRTMIN);
	(void)wp_perf_enable(my_fd);
}

static void *
be_member(void *arg)
{
	struct member *m = arg;

	if (m->signalled)
		arm_member();
	for (;;) {
		(void)pthread_barrier_wait(&m->crew->gate);
		if (m->crew->over)
			break;
		my_stores = my_hits = 0;
		for (uint64_t i = 0; i < TIMES || m->crew->on; i++) {
			my_stores++;
			area[0] = i;
			area[1] = i;
		}
		m->hits = my_hits;
		(void)pthread_barrier_wait(&m->crew->gate);
	}
	if (m->signalled)
		(void)close(my_fd);
	return NULL;
}

static void
crew_start(struct crew *crew, bool signalled)
{
	*crew = (struct crew){0};
	astray = 0;
	handle_by(signalled ? SIGRTMIN : SIGTRAP, 0, on_member_trap);
	need(pthread_barrier_init(&crew->gate, NULL, THREADS + 1) == 0);
	for (int i = 0; i < THREADS; i++) {
		struct member *m = &crew->member[i];

		m->crew = crew;
		m->signalled = signalled;
		need(pthread_create(&m->thread, NULL, be_member, m) == 0);
	}
}

/* A round.  Result: hits of all; each member must have had each of them. */
static uint64_t
crew_round(struct crew *crew, unsigned each)
{
	uint64_t hits = 0;

	(void)pthread_barrier_wait(&crew->gate);
	(void)pthread_barrier_wait(&crew->gate);
	for (int i = 0; i < THREADS; i++) {
		need(crew->member[i].hits == each);
		hits += crew->member[i].hits;
	}
	need(astray == 0);
	return hits;
}

static void
crew_end(struct crew *crew)
{
	crew->over = true;
	(void)pthread_barrier_wait(&crew->gate);
	for (int i = 0; i < THREADS; i++)
		(void)pthread_join(crew->member[i].thread, NULL);
	(void)pthread_barrier_destroy(&crew->gate);
}

/* Signals. */

/* In a child, where a watch is on the first word and disabled. */
static int
arm_first_word(void)
{
	struct perf_event_attr attr = trap_attr(HW_BREAKPOINT_W, area, 11);
	int fd;

	attr.disabled = 1;
	due_data = 11;
	due_addr = (uintptr_t)area;
	need((fd = wp_perf_open(&attr, 0, -1)) >= 0);
	return fd;
}

static void
count_hits_of_threads(void *unused)
{
	struct crew crew;
	int fd = arm_first_word();

	(void)unused;
	crew_start(&crew, false);
	need(crew_round(&crew, 0) == 0);
	need(count_of(fd) == 0);
	need(wp_perf_enable(fd) == 0);
	need(crew_round(&crew, TIMES) == (uint64_t)THREADS * TIMES);
	need(count_of(fd) == (uint64_t)THREADS * TIMES);
	need(wp_perf_disable(fd) == 0);
	need(crew_round(&crew, 0) == 0);
	crew_end(&crew);
	need(count_of(fd) == (uint64_t)THREADS * TIMES);
}

TEST(each_hit_signals_its_thread_at_once)
{
	must_have_sigtrap();
	run_child(count_hits_of_threads, NULL);
}

static void
move_watch_of_threads(void *unused)
{
	struct perf_event_attr attr = trap_attr(HW_BREAKPOINT_W, &area[1], 22);
	struct crew crew;
	int fd = arm_first_word();

	(void)unused;
	crew_start(&crew, false);
	need(wp_perf_enable(fd) == 0);
	need(crew_round(&crew, TIMES) == (uint64_t)THREADS * TIMES);
	need(wp_perf_modify(fd, &attr) == 0);
	due_data = 22;
	due_addr = (uintptr_t)&area[1];
	need(crew_round(&crew, TIMES) == (uint64_t)THREADS * TIMES);
	crew_end(&crew);
	need(count_of(fd) == 2ull * THREADS * TIMES);
}

TEST(moving_reaches_threads_that_inherited)
{
	must_have_sigtrap();
	run_child(move_watch_of_threads, NULL);
}

static void
switch_while_others_hit(void *unused)
{
	const int fd = arm_first_word();
	uint64_t signals = 0;
	unsigned switched = 0;
	struct crew crew;

	(void)unused;
	crew_start(&crew, false);
	crew.on = true;
	(void)pthread_barrier_wait(&crew.gate);
	do {
		need(wp_perf_enable(fd) == 0);
		need(wp_perf_disable(fd) == 0);
	} while (++switched < SWITCHES || count_of(fd) < SWITCHES);
	crew.on = false;
	(void)pthread_barrier_wait(&crew.gate);
	for (int i = 0; i < THREADS; i++)
		signals += crew.member[i].hits;
	need(signals == count_of(fd));
	crew_end(&crew);
}

TEST(switching_while_others_hit_does_not_hang)
{
	must_have_sigtrap();
	run_child(switch_while_others_hit, NULL);
}

TEST(a_period_signals_every_so_many_hits)
{
	for (int by_descriptor = 0; by_descriptor <= 1; by_descriptor++)
		for (int exec = 0; exec <= 1; exec++) {
			struct perf_event_attr attr = exec ?
			    landmark_attr(0) :
			    trap_attr(HW_BREAKPOINT_W, area, 0);
			int fd;

			if (!by_descriptor && !live_features.sigtrap)
				continue;
			shared->n = 0;
			attr.sample_period = 100;
			attr.sigtrap = !by_descriptor;
			fd = by_descriptor ? arm_signal(attr, SIGRTMIN) :
			    arm(attr);
			for (uint64_t i = 0; i < 10000; i++) {
				call_landmark();
				area[0] = i;
			}
			assert_int_equal(count_of(fd), 10000);
			assert_int_equal(shared->n, 100);
			disarm();
		}
}

static volatile unsigned premature;	/* runs after the instruction */

static void
look_whether_passed(const struct trap *t)
{
	if (passed != shared->n - 1 || t->pc != (uintptr_t)landmark ||
	    t->addr != (uintptr_t)landmark || t->flags != 0)
		premature++;
}

TEST(an_execution_signal_comes_before_the_instruction)
{
	int fd;

	must_have_sigtrap();
	fd = arm(landmark_attr(1));
	and_then = look_whether_passed;
	premature = 0;
	for (int i = 0; i < 1000; i++)
		call_landmark();
	assert_int_equal(passed, 1000);
	assert_int_equal(shared->n, 1000);
	assert_int_equal(premature, 0);
	assert_int_equal(count_of(fd), 1000);
}

/* In the handler of a store (data 1): run into the other watch. */
static void
call_landmark_after_store(const struct trap *t)
{
	if (t->data == 1)
		call_landmark();
	else
		premature = passed;
}

TEST(hits_in_a_handler_nest_with_nodefer)
{
	must_have_sigtrap();
	for (int nodefer = 0; nodefer <= 1; nodefer++) {
		const struct trap *inner = &shared->trap[1];
		uint64_t after;

		(void)begin(NULL);
		handle(SIGTRAP, nodefer ? SA_NODEFER : 0);
		and_then = call_landmark_after_store;
		(void)arm(landmark_attr(2));
		(void)arm(trap_attr(HW_BREAKPOINT_W, area, 1));
		after = store(area);
		assert_int_equal(shared->n, 2);
		assert_int_equal(passed, 1);
		assert_int_equal(shared->trap[0].data, 1);
		assert_int_equal(shared->trap[0].pc, after);
		assert_int_equal(inner->data, 2);
		assert_int_equal(inner->addr, (uintptr_t)landmark);
		assert_int_equal(inner->flags, nodefer ? 0 : FLAG_ASYNC);
		assert_int_equal(inner->pc, nodefer ? (uintptr_t)landmark :
		    after);
		/* without: when the outer run is over */
		assert_int_equal(premature, nodefer ? 0 : 1);
		disarm();
	}
}

/* One instruction that is watched, and stores into what is watched. */
extern void signal_test_increment(volatile uint64_t *);
__asm__(".pushsection .text\n"
    ".globl signal_test_increment\n"
    ".type signal_test_increment, @function\n"
    "signal_test_increment:\n\tincq (%rdi)\n\tret\n"
    ".size signal_test_increment, . - signal_test_increment\n"
    ".popsection\n");

static volatile unsigned second_runs;

static void
on_second(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	(void)context;
	second_runs++;
}

TEST(a_watched_handler_signals_at_each_run)
{
	int function, word, handler;

	second_runs = 0;
	handle_by(SIGRTMIN + 1, 0, on_second);
	function = arm_signal(watch_attr(HW_BREAKPOINT_X,
	    (void *)(uintptr_t)signal_test_increment, false), SIGRTMIN);
	word = arm_signal(watch_attr(HW_BREAKPOINT_W, area, false), SIGRTMIN);
	handler = arm_signal(watch_attr(HW_BREAKPOINT_X,
	    (void *)(uintptr_t)on_trap, false), SIGRTMIN + 1);
	signal_test_increment(area);
	area[0] = 5;
	assert_int_equal(count_of(function), 1);
	assert_int_equal(count_of(word), 2);
	assert_int_equal(count_of(handler), 3);
	assert_int_equal(shared->n, 3);
	assert_int_equal(second_runs, 3);
	assert_int_equal(shared->trap[0].fd, function);
	assert_int_equal(shared->trap[1].fd, word);
	(void)signal(SIGRTMIN + 1, SIG_DFL);
}

TEST(a_blocked_signal_comes_once_and_says_so)
{
	const struct trap *t = &shared->trap[0];
	uint64_t after;
	int fd;

	must_have_sigtrap();
	fd = arm(trap_attr(HW_BREAKPOINT_W, area, 7));
	(void)arm(trap_attr(HW_BREAKPOINT_W, &area[1], 8));
	mask(SIG_BLOCK, SIGTRAP);
	after = store(area);
	(void)store(&area[1]);
	(void)store(area);
	(void)store(area);
	assert_int_equal(shared->n, 0);
	assert_int_equal(count_of(fd), 3);
	mask(SIG_UNBLOCK, SIGTRAP);
	assert_int_equal(shared->n, 1);
	assert_int_equal(t->code, CODE_PERF);
	assert_int_equal(t->addr, (uintptr_t)area);
	assert_int_equal(t->data, 7);
	assert_int_equal(t->flags, FLAG_ASYNC);
	assert_int_not_equal(t->pc, after);
	assert_false(t->blocked);
}

TEST(an_ignored_signal_is_lost)
{
	int fd;

	must_have_sigtrap();
	fd = arm(trap_attr(HW_BREAKPOINT_W, area, 7));
	(void)signal(SIGTRAP, SIG_IGN);
	(void)store(area);
	(void)store(area);
	handle(SIGTRAP, 0);
	assert_int_equal(count_of(fd), 2);
	assert_int_equal(shared->n, 0);
	(void)store(area);
	assert_int_equal(shared->n, 1);
}

TEST(a_signal_outlives_its_event)
{
	const struct trap *t = &shared->trap[0];

	must_have_sigtrap();
	(void)arm(trap_attr(HW_BREAKPOINT_W, area, 7));
	mask(SIG_BLOCK, SIGTRAP);
	(void)store(area);
	disarm();
	mask(SIG_UNBLOCK, SIGTRAP);
	assert_int_equal(shared->n, 1);
	assert_int_equal(t->code, CODE_PERF);
	assert_int_equal(t->addr, (uintptr_t)area);
	assert_int_equal(t->data, 7);
	assert_int_equal(t->flags, FLAG_ASYNC);
	(void)store(area);
	assert_int_equal(shared->n, 1);
}

/* One instruction, several watches. */

TEST(one_step_over_two_watches_is_one_signal)
{
	must_have_sigtrap();
	for (unsigned first = 0; first <= 1; first++) {
		const unsigned last = 1 - first;
		uint64_t after;
		int fd[2];

		shared->n = 0;
		fd[first] = arm(trap_attr(HW_BREAKPOINT_W, &area[first],
		    first));
		fd[last] = arm(trap_attr(HW_BREAKPOINT_W, &area[last], last));
		after = store_both();
		assert_int_equal(shared->n, 1);
		assert_int_equal(shared->trap[0].pc, after);
		assert_int_equal(shared->trap[0].data, last);
		assert_int_equal(shared->trap[0].addr,
		    (uintptr_t)&area[last]);
		assert_int_equal(count_of(fd[0]), 1);
		assert_int_equal(count_of(fd[1]), 1);
		disarm();
	}
}

static unsigned told_of[3];	/* signals that bore this data */

static void
tell_apart(const struct trap *t)
{
	if (t->data < 3)
		told_of[t->data]++;
}

TEST(a_rep_signals_at_each_step)
{
	static const char from[sizeof(area)];
	volatile void *to = area;
	const void *at = from;
	uint64_t n = sizeof(area);
	int fd[3];

	must_have_sigtrap();
	memset(told_of, 0, sizeof(told_of));
	and_then = tell_apart;
	for (unsigned i = 0; i < 3; i++)
		fd[i] = arm(trap_attr(HW_BREAKPOINT_W, &area[1 + i], i));
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(at), "+c"(n) : :
	    "memory");
	for (unsigned i = 0; i < 3; i++) {
		assert_in_range(told_of[i], 1, 8);
		assert_int_equal(told_of[i], count_of(fd[i]));
	}
	assert_int_equal(shared->n, told_of[0] + told_of[1] + told_of[2]);
}

TEST(each_watch_queues_a_signal_of_its_descriptor)
{
	uint64_t after;
	int fd[2];

	for (unsigned i = 0; i < 2; i++)
		fd[i] = arm_signal(watch_attr(HW_BREAKPOINT_W, &area[i],
		    false), SIGRTMIN);
	after = store_both();
	assert_int_equal(shared->n, 2);
	assert_int_equal(shared->trap[0].fd, fd[1]);
	assert_int_equal(shared->trap[1].fd, fd[0]);
	assert_int_equal(shared->trap[0].pc, after);
	assert_int_equal(shared->trap[1].pc, after);
}

/* Handlers that hit. */

static bool taking;		/* the handler takes what it caused */
static volatile unsigned taken;

static void
look_at_watched(const struct trap *t)
{
	(void)t;
	if (shared->n == ENDLESS)
		(void)wp_perf_disable(armed[0]);
	(void)area[0];
	if (taking && take_trap())
		taken++;
}

TEST(a_handler_that_hits_is_run_again)
{
	const struct trap *t = shared->trap;

	must_have_sigtrap();
	taking = false;
	and_then = look_at_watched;
	(void)arm(trap_attr(HW_BREAKPOINT_RW, area, 1));
	(void)store(area);
	assert_int_equal(shared->n, ENDLESS);
	assert_int_equal(t[0].flags, 0);
	for (unsigned i = 1; i < ENDLESS; i++) {
		assert_int_equal(t[i].flags, FLAG_ASYNC);
		assert_int_equal(t[i].pc, t[0].pc);
		assert_false(t[i].blocked);
	}
}

TEST(a_handler_can_take_the_signal_it_caused)
{
	int fd;

	must_have_sigtrap();
	taking = true;
	taken = 0;
	and_then = look_at_watched;
	fd = arm(trap_attr(HW_BREAKPOINT_RW, area, 1));
	for (unsigned i = 1; i <= 3; i++) {
		(void)store(area);
		assert_int_equal(shared->n, i);
		assert_int_equal(taken, i);
		assert_int_equal(count_of(fd), 2 * i);
	}
}

/* A stack of our own to be interrupted on, and which words a signal uses there:
   they are dead until then. */
static _Alignas(64) char own_stack[64 << 10];
static char *const own_sp = own_stack + (56 << 10);

static struct {
	volatile uint64_t *word[3];
	volatile unsigned runs;
} frame;
enum { OF_HANDLER, OF_CONTEXT, OF_RETURN };

static __attribute__((no_sanitize("address"))) void
on_own_stack(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	volatile uint64_t local;

	(void)sig;
	(void)info;
	if (++frame.runs == ENDLESS)
		(void)wp_perf_disable(armed[0]);
	local = 1;
	if (frame.word[OF_HANDLER] == NULL) {
		frame.word[OF_HANDLER] = &local;
		frame.word[OF_CONTEXT] =
		    (volatile uint64_t *)&uc->uc_mcontext.gregs[REG_RIP];
		/* the return address of the handler is just below that */
		frame.word[OF_RETURN] = (volatile uint64_t *)context - 1;
	}
	if (taking)
		(void)take_trap();
}

/* Store with rsp at own_sp. */
static void
store_on_own_stack(volatile void *at)
{
	__asm__ volatile("movq %%rsp, %%rbx\n\tmovq %0, %%rsp\n\t"
	    "movq $1, (%1)\n\tmovq %%rbx, %%rsp" : : "r"(own_sp), "r"(at) :
	    "rbx", "memory");
}

/* Learn which words it uses. */
static void
learn_frame(void)
{
	memset(&frame, 0, sizeof(frame));
	handle_by(SIGTRAP, 0, on_own_stack);
	(void)arm(trap_attr(HW_BREAKPOINT_W, area, 1));
	store_on_own_stack(area);
	disarm();
	assert_int_equal(frame.runs, 1);
}

struct frame_watch {
	const char *what;
	unsigned word;
	uint32_t type;
	bool kernel;		/* the kernel's accesses too */
	bool endless;		/* the handler runs without end if nothing is
				   taken */
	bool incurable;		/* and even if something is */
};

/* Store into what is watched.  Result: runs of the handler. */
static unsigned
runs_on_watched_frame(const struct frame_watch *w, bool take, int flags)
{
	volatile uint64_t *word = frame.word[w->word];
	struct perf_event_attr attr = watch_attr(w->type, word, w->kernel);

	attr.sigtrap = 1;
	frame.runs = 0;
	taking = take;
	handle_by(SIGTRAP, flags, on_own_stack);
	(void)arm(attr);
	store_on_own_stack(word);
	disarm();
	return frame.runs;
}

TEST(the_signals_own_frame_hits)
{
	enum { W = HW_BREAKPOINT_W, RW = HW_BREAKPOINT_RW };
	static const struct frame_watch watches[] = {
		{"W, handler", OF_HANDLER, W, false, true, false},
		{"W, context", OF_CONTEXT, W, false, false, false},
		{"RW, handler", OF_HANDLER, RW, false, true, false},
		{"RW, context", OF_CONTEXT, RW, false, false, false},
		{"RW, return address", OF_RETURN, RW, false, true, true},
		{"W, handler, kernel", OF_HANDLER, W, true, true, false},
		{"W, context, kernel", OF_CONTEXT, W, true, true, false},
		{"RW, context, kernel", OF_CONTEXT, RW, true, true, true},
	};
	static _Alignas(64) char elsewhere[32 << 10];
	const stack_t stack = {.ss_sp = elsewhere,
	    .ss_size = sizeof(elsewhere)};
	const bool kernel = may_watch_kernel();

	must_have_sigtrap();
	learn_frame();
	assert_int_equal(sigaltstack(&stack, NULL), 0);
	for (size_t i = 0; i < COUNT(watches); i++) {
		const struct frame_watch *w = &watches[i];
		unsigned bare, took, apart;

		if (w->kernel && !kernel)
			continue;
		bare = runs_on_watched_frame(w, false, 0);
		took = runs_on_watched_frame(w, true, 0);
		apart = runs_on_watched_frame(w, false, SA_ONSTACK);
		if ((w->endless ? bare < ENDLESS : bare != 1) ||
		    (w->incurable ? took < ENDLESS : took != 1) || apart != 1)
			fail_msg("%s: %u, %u, %u", w->what, bare, took, apart);
	}
}

/* The kernel's accesses. */

/* read(2); the address after the system call's instruction is put at after. */
static ssize_t
read_and_say(int fd, volatile void *to, size_t len, uint64_t *after)
{
	uint64_t pc;
	ssize_t n;

	__asm__ volatile("leaq 1f(%%rip), %1\n\tsyscall\n1:" : "=a"(n),
	    "=&r"(pc) : "0"((long)SYS_read), "D"((long)fd), "S"(to), "d"(len) :
	    "rcx", "r11", "memory");
	*after = pc;
	return n;
}

TEST(the_kernels_hits_are_one_signal_after_the_call)
{
	struct perf_event_attr attr = watch_attr(HW_BREAKPOINT_W, area, true);
	uint64_t after;
	int fd[2], event;

	must_have_sigtrap();
	if (!may_watch_kernel())
		return;
	attr.sigtrap = 1;
	attr.sig_data = 5;
	assert_int_equal(pipe(fd), 0);
	assert_int_equal(write(fd[1], "12345678", 8), 8);
	event = arm(attr);
	assert_int_equal(read_and_say(fd[0], area, 8, &after), 8);
	assert_int_equal(shared->n, 1);
	assert_int_equal(shared->trap[0].code, CODE_PERF);
	assert_int_equal(shared->trap[0].data, 5);
	assert_int_equal(shared->trap[0].flags, 0);
	assert_int_equal(shared->trap[0].pc, after);
	assert_in_range(count_of(event), 1, 8);
	(void)close(fd[0]);
	(void)close(fd[1]);
}

/* In a child: send 8 bytes when the test sleeps. */
static void
send_to_sleeper(void *fd)
{
	while (state_of(getppid()) != 'S')
		nap_us(100);
	need(send(*(int *)fd, "87654321", 8, 0) == 8);
}

/* Receive twice 8 bytes, the first of which hit.  Result: recv(2)'s. */
static ssize_t
receive(void)
{
	ssize_t n;
	int fd[2];
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	assert_int_equal(send(fd[1], "12345678", 8, 0), 8);
	pid = child_start(send_to_sleeper, &fd[1]);
	n = recv(fd[0], (void *)(uintptr_t)area, 16, MSG_WAITALL);
	assert_int_equal(child_wait(pid), 0);
	(void)close(fd[0]);
	(void)close(fd[1]);
	return n;
}

TEST(only_signals_of_descriptors_shorten_the_call)
{
	struct perf_event_attr attr = watch_attr(HW_BREAKPOINT_W, area, true);

	if (!may_watch_kernel())
		return;
	if (live_features.sigtrap) {
		attr.sigtrap = 1;
		(void)arm(attr);
		assert_int_equal(receive(), 16);
		assert_int_equal(shared->n, 1);
		disarm();
		attr.sigtrap = 0;
	}
	shared->n = 0;
	handle(SIGRTMIN, SA_RESTART);
	(void)arm_signal(attr, SIGRTMIN);
	assert_int_equal(receive(), 8);
	assert_in_range(shared->n, 1, 8);
}

/* Signals of descriptors. */

static void
count_signals_of_threads(void *unused)
{
	struct crew crew;

	(void)unused;
	crew_start(&crew, true);
	need(crew_round(&crew, TIMES) == (uint64_t)THREADS * TIMES);
	crew_end(&crew);
}

TEST(a_descriptors_signal_comes_at_the_very_instruction)
{
	const struct trap *t = &shared->trap[0];
	uint64_t after;
	int fd;

	run_child(count_signals_of_threads, NULL);
	fd = arm_signal(watch_attr(HW_BREAKPOINT_W, area, false), SIGRTMIN);
	for (int i = 0; i < TIMES; i++) {
		shared->n = 0;
		after = store(area);
		assert_int_equal(shared->n, 1);
		assert_int_equal(t->fd, fd);
		assert_int_equal(t->code, POLL_IN);
		assert_int_equal(t->pc, after);
	}
}

TEST(a_descriptors_signals_queue)
{
	(void)arm_signal(watch_attr(HW_BREAKPOINT_W, area, false), SIGRTMIN);
	mask(SIG_BLOCK, SIGRTMIN);
	for (int i = 0; i < 8; i++)
		(void)store(area);
	assert_int_equal(shared->n, 0);
	mask(SIG_UNBLOCK, SIGRTMIN);
	assert_int_equal(shared->n, 8);
}

TEST(a_refreshed_event_needs_its_period_again)
{
	int fd;

	fd = arm_signal(watch_attr(HW_BREAKPOINT_W, area, false), SIGRTMIN);
	assert_int_equal(wp_perf_disable(fd), 0);
	assert_int_equal(ioctl(fd, PERF_EVENT_IOC_REFRESH, 1), 0);
	(void)store(area);
	(void)store(area);
	assert_int_equal(shared->n, 1);
	assert_int_equal(shared->trap[0].code, POLL_HUP);
	for (int round = 0; round < 4; round++) {
		shared->n = 0;
		assert_int_equal(ioctl(fd, PERF_EVENT_IOC_REFRESH, 1), 0);
		if (round % 2 == 0)
			(void)store(area);	/* fires, or not: by kernel */
		if (round == 0)
			print_message("armed by REFRESH alone: %s\n",
			    shared->n == 0 ? "no" : "yes");
		if (shared->n == 0)
			assert_int_equal(wp_perf_period(fd, 1), 0);
		(void)store(area);
		(void)store(area);
		assert_int_equal(shared->n, 1);
		assert_int_equal(shared->trap[0].code, POLL_HUP);
	}
}

static void *
renew_period(void *fd)
{
	need(wp_perf_period(*(int *)fd, 1) == 0);
	return NULL;
}

/* Where REFRESH alone arms again, it has done so already. */
TEST(only_its_own_thread_revives_an_event)
{
	pthread_t thread;
	int fd;

	fd = arm_signal(watch_attr(HW_BREAKPOINT_W, area, false), SIGRTMIN);
	assert_int_equal(wp_perf_disable(fd), 0);
	assert_int_equal(ioctl(fd, PERF_EVENT_IOC_REFRESH, 1), 0);
	(void)store(area);
	shared->n = 0;
	assert_int_equal(ioctl(fd, PERF_EVENT_IOC_REFRESH, 1), 0);
	(void)store(area);
	if (shared->n == 1) {
		print_message("armed by REFRESH alone: yes\n");
		return;
	}
	assert_int_equal(pthread_create(&thread, NULL, renew_period, &fd), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	(void)store(area);
	assert_int_equal(shared->n, 0);
	(void)renew_period(&fd);
	(void)store(area);
	assert_int_equal(shared->n, 1);
}

TEST(a_new_period_begins_with_an_overflow)
{
	struct perf_event_attr attr = watch_attr(HW_BREAKPOINT_W, area, false);
	int fd;

	attr.sample_period = 4;
	fd = arm_signal(attr, SIGRTMIN);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(shared->n, 0);
		(void)store(area);
	}
	assert_int_equal(shared->n, 1);
	assert_int_equal(wp_perf_period(fd, 4), 0);
	(void)store(area);
	assert_int_equal(shared->n, 2);
	/* taken off the processor and put on again it is right */
	assert_int_equal(wp_perf_period(fd, 4), 0);
	assert_int_equal(wp_perf_disable(fd), 0);
	assert_int_equal(wp_perf_enable(fd), 0);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(shared->n, 2);
		(void)store(area);
	}
	assert_int_equal(shared->n, 3);
}

/* Children and other processes. */

static void
store_and_execute(void *at)
{
	(void)store(at);
	need(shared->n == 0);
	(void)execl("/proc/self/exe", "test", "--exec", NULL);
}

/* The path is watched, with the kernel's accesses. */
static void
execute_what_is_watched(void *path)
{
	struct perf_event_attr attr = watch_attr(HW_BREAKPOINT_RW, path, true);

	attr.sigtrap = 1;
	(void)arm(attr);
	(void)execl(path, "test", "--exec", NULL);
}

TEST(what_execve_reads_signals_the_next_program)
{
	static _Alignas(8) char path[] = "/proc/self/exe";
	int status;

	if (!live_features.sigtrap || !may_watch_kernel())
		return;
	status = child_wait(child_start(execute_what_is_watched, path));
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGTRAP);
}

TEST(children_and_their_programs_are_untouched)
{
	void *at = mmap((void *)FIXED, 4096, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	int fd;

	must_have_sigtrap();
	assert_true(at == (void *)FIXED);
	fd = arm(trap_attr(HW_BREAKPOINT_W, at, 3));
	for (unsigned i = 1; i <= 30; i++) {
		shared->n = 0;
		run_child(store_and_execute, at);
		assert_int_equal(shared->n, 0);
		(void)store(at);
		assert_int_equal(shared->n, 1);
		assert_int_equal(count_of(fd), i);
	}
	(void)munmap(at, 4096);
}

/* A victim: it carries out one order after the other. */
enum deed { STORE, STORE_SECOND, STORE_BOTH, THREAD_STORES, CHILD_STORES };
enum how { HANDLED, BLOCKED, IGNORED };	/* SIGTRAP in it */

static void *
store_in_thread(void *unused)
{
	(void)unused;
	(void)store_both();
	return NULL;
}

static void
carry_out(enum deed deed)
{
	pthread_t thread;

	switch (deed) {
	case STORE:
		shared->pc = store(area);
		break;
	case STORE_SECOND:
		shared->pc = store(&area[1]);
		break;
	case STORE_BOTH:
		shared->pc = store_both();
		break;
	case THREAD_STORES:
		need(pthread_create(&thread, NULL, store_in_thread, NULL) == 0);
		(void)pthread_join(thread, NULL);
		break;
	case CHILD_STORES:
		if (fork() == 0) {
			(void)store_both();
			_exit(0);
		}
		(void)wait(NULL);
		break;
	}
}

static void
be_victim(void *how)
{
	static const struct rlimit no_core = {0, 0};

	(void)setrlimit(RLIMIT_CORE, &no_core);
	if (*(enum how *)how == BLOCKED)
		mask(SIG_BLOCK, SIGTRAP);
	if (*(enum how *)how == IGNORED)
		(void)signal(SIGTRAP, SIG_IGN);
	for (;;) {
		while (shared->told == shared->did)
			nap_us(100);
		carry_out((enum deed)shared->deed);
		shared->did++;
	}
}

static pid_t
victim_start(enum how how)
{
	shared->told = shared->did = 0;
	shared->n = 0;
	return child_start(be_victim, &how);
}

static void
tell(enum deed deed)
{
	shared->deed = (int)deed;
	shared->told++;
}

static void
order(enum deed deed)
{
	tell(deed);
	await(shared->did == shared->told);
}

/* Hold a victim, and plant debug registers for the first two words. */
static void
plant(struct wp_hold *hold, pid_t pid)
{
	const struct wp_slot two[WP_DEBUG_REGISTERS] = {
		{(uintptr_t)&area[0], 8, HW_BREAKPOINT_W},
		{(uintptr_t)&area[1], 8, HW_BREAKPOINT_W},
	};

	*hold = (struct wp_hold){0};
	assert_int_equal(wp_hold_process(hold, pid), 0);
	assert_int_equal(wp_trace_registers(pid, two, 3), 0);
}

TEST(debug_registers_signal_their_thread)
{
	static const enum deed by_others[] = {THREAD_STORES, CHILD_STORES};
	static const enum deed deeds[] = {STORE, STORE_SECOND, STORE_BOTH};
	struct wp_hold hold;
	pid_t pid;

	pid = victim_start(HANDLED);
	plant(&hold, pid);
	wp_hold_release(&hold);
	for (size_t i = 0; i < COUNT(deeds); i++) {
		shared->n = 0;
		order(deeds[i]);
		assert_int_equal(shared->n, 1);
		assert_int_equal(shared->trap[0].code, TRAP_HWBKPT);
		assert_int_equal(shared->trap[0].addr, shared->pc);
		assert_int_equal(shared->trap[0].pc, shared->pc);
	}
	for (size_t i = 0; i < COUNT(by_others); i++) {
		shared->n = 0;
		order(by_others[i]);
		assert_int_equal(shared->n, 0);
	}
	child_kill(pid);
}

static unsigned long
registers_hit(pid_t tid)
{
	errno = 0;
	return (unsigned long)ptrace(PTRACE_PEEKUSER, tid,
	    offsetof(struct user, u_debugreg[6]), 0) & 15;
}

TEST(a_tracer_learns_which_registers_hit)
{
	static const struct {
		enum deed deed;
		unsigned long registers;
	} hits[] = {{STORE, 1}, {STORE_BOTH, 3}, {STORE_SECOND, 2}, {STORE, 1}};
	struct wp_hold hold;
	struct wp_stop stop;
	pid_t pid;

	pid = victim_start(HANDLED);
	plant(&hold, pid);
	for (size_t i = 0; i < COUNT(hits); i++) {
		tell(hits[i].deed);
		assert_int_equal(wp_hold_continue(&hold, NULL, &stop), 0);
		assert_false(stop.ended);
		assert_int_equal(stop.signal, SIGTRAP);
		assert_int_equal(registers_hit(pid), hits[i].registers);
		assert_int_equal(shared->n, i);
	}
	wp_hold_release(&hold);
	await(shared->did == shared->told);
	assert_int_equal(shared->n, COUNT(hits));
	child_kill(pid);
}

TEST(a_debug_register_signal_cannot_be_blocked_or_ignored)
{
	struct wp_hold hold;

	for (enum how how = BLOCKED; how <= IGNORED; how++) {
		pid_t pid = victim_start(how);
		int status;

		plant(&hold, pid);
		wp_hold_release(&hold);
		tell(STORE);
		status = child_wait(pid);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGTRAP);
		assert_int_equal(shared->n, 0);
		assert_int_equal(shared->did, 0);
	}
}

TEST(a_tracer_can_avert_that_but_the_handler_is_gone)
{
	static const uint64_t trap = 1ull << (SIGTRAP - 1);

	for (enum how how = HANDLED; how <= IGNORED; how++) {
		const pid_t pid = victim_start(how);
		const uint64_t caught = how == HANDLED ? trap : 0;
		struct wp_proc_status status;
		struct wp_hold hold;
		struct wp_stop stop;

		plant(&hold, pid);
		tell(STORE);
		assert_int_equal(wp_hold_continue(&hold, NULL, &stop), 0);
		assert_int_equal(stop.signal, SIGTRAP);
		hold.thread[0].signal = 0;	/* go on without it */
		tell(STORE);
		assert_int_equal(wp_hold_continue(&hold, NULL, &stop), 0);
		assert_int_equal(stop.signal, SIGTRAP);
		assert_int_equal(shared->did, 1);
		assert_int_equal(shared->n, 0);
		assert_int_equal(wp_proc_status(pid, &status), 0);
		assert_int_equal(status.caught & trap, caught);
		assert_int_equal(status.blocked & trap, 0);
		assert_int_equal(status.ignored & trap, 0);
		wp_hold_release(&hold);		/* with the signal */
		if (how == HANDLED) {
			await(shared->did == 2);
			assert_int_equal(shared->n, 1);
			child_kill(pid);
		} else
			assert_int_equal(WTERMSIG(child_wait(pid)), SIGTRAP);
	}
}

/* In a child: arm a watch, then be a victim. */
static void
be_armed_victim(void *how)
{
	struct perf_event_attr attr = trap_attr(HW_BREAKPOINT_W, area, 1);

	need((shared->fd = wp_perf_open(&attr, 0, -1)) >= 0);
	be_victim(how);
}

TEST(another_process_may_hold_an_event)
{
	enum how how = HANDLED;
	siginfo_t info;
	int pidfd, fd;
	pid_t pid;

	must_have_sigtrap();
	pid = child_start(be_armed_victim, &how);
	order(STORE);
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	assert_true(pidfd >= 0);
	fd = (int)syscall(SYS_pidfd_getfd, pidfd, shared->fd, 0);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(count_of(fd), 1);
	order(STORE);
	assert_int_equal(count_of(fd), 2);
	assert_int_equal(wp_perf_disable(fd), 0);
	order(STORE);
	assert_int_equal(count_of(fd), 2);
	assert_int_equal(shared->n, 2);
	(void)kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(count_of(fd), 2);
	assert_int_equal(syscall(SYS_pidfd_getfd, pidfd, shared->fd, 0), -1);
	assert_int_equal(errno, ESRCH);
	(void)child_wait(pid);
	assert_int_equal(count_of(fd), 2);
	(void)close(fd);
	(void)close(pidfd);
}

static struct perf_event_attr
counting_attr(void)
{
	return (struct perf_event_attr){
		.type = PERF_TYPE_BREAKPOINT, .size = sizeof(struct
		    perf_event_attr), .bp_type = HW_BREAKPOINT_W,
		.bp_len = sizeof(area[0]), .bp_addr = (uintptr_t)&area[0],
		.exclude_kernel = 1, .inherit = 1,
		.read_format = live_format(),
	};
}

static void *
open_for(void *arg)
{
	struct perf_event_attr attr = counting_attr();

	*(int *)arg = wp_perf_open(&attr, getpid(), -1);
	return NULL;
}

static void *
store_in_area(void *unused)
{
	area[0]++;
	return unused;
}

TEST(a_thread_disables_what_it_opened_but_not_what_others_did)
{
	pthread_t thread;
	int own, others;

	own = arm(counting_attr());
	assert_int_equal(pthread_create(&thread, NULL, open_for, &others), 0);
	(void)pthread_join(thread, NULL);
	assert_true(others >= 0);
	area[0]++;
	assert_int_equal(prctl(PR_TASK_PERF_EVENTS_DISABLE), 0);
	area[0]++;
	assert_int_equal(pthread_create(&thread, NULL, store_in_area, NULL), 0);
	(void)pthread_join(thread, NULL);
	assert_int_equal(count_of(own), 1);
	assert_int_equal(count_of(others), 3);
	assert_int_equal(prctl(PR_TASK_PERF_EVENTS_ENABLE), 0);
	area[0]++;
	assert_int_equal(count_of(own), 2);
	assert_int_equal(count_of(others), 4);
	(void)close(others);
	disarm();
}

/* Helpers that nobody sees. */

static void
on_child(int sig)
{
	(void)sig;
	shared->n++;
}

/* A child that sends no signal when it ends. */
static pid_t
fork_unseen(void)
{
	return (pid_t)syscall(SYS_clone, 0, 0, 0, 0, 0);
}

static void
have_unseen_child(void *on_sigchld)
{
	int status;
	pid_t pid;

	(void)signal(SIGCHLD, on_sigchld == NULL ? SIG_IGN : on_child);
	if ((pid = fork_unseen()) == 0)
		_exit(7);
	need(pid > 0);
	need(waitpid(-1, &status, 0) == -1 && errno == ECHILD);
	need(waitpid(pid, &status, 0) == -1 && errno == ECHILD);
	need(waitpid(pid, &status, __WCLONE) == pid);
	need(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	need(shared->n == 0);
}

TEST(a_child_without_exit_signal_is_not_seen)
{
	run_child(have_unseen_child, NULL);
	run_child(have_unseen_child, shared);
}

static void
have_unseen_child_that_executes(void *unused)
{
	siginfo_t info;
	pid_t pid;

	(void)unused;
	(void)signal(SIGCHLD, on_child);
	if ((pid = fork_unseen()) == 0) {
		(void)execl("/proc/self/exe", "test", "--exec", NULL);
		_exit(1);
	}
	need(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT | __WALL) == 0);
	need(waitpid(-1, NULL, 0) == pid);
	need(shared->n == 1);
}

TEST(execve_makes_such_a_child_seen)
{
	run_child(have_unseen_child_that_executes, NULL);
}

/* A child's child, whose parent ends, lives as long as a pipe, and executes
   another program. */
enum reaper { NO_REAPER, REAPER, REAPER_BUT_THEN };

static void
fork_twice(int fd)
{
	if (fork() == 0) {
		(void)dup2(fd, 0);
		(void)execl("/proc/self/exe", "test", "--read", NULL);
	}
	_exit(0);
}

static void
have_unseen_grandchild(void *arg)
{
	const enum reaper reaper = *(enum reaper *)arg;
	int fd[2], status;
	pid_t pid;

	(void)signal(SIGCHLD, on_child);
	(void)prctl(PR_SET_CHILD_SUBREAPER, reaper == REAPER);
	need(pipe2(fd, O_CLOEXEC) == 0);
	if ((pid = fork_unseen()) == 0)
		fork_twice(fd[0]);
	need(waitpid(pid, &status, __WCLONE) == pid && status == 0);
	(void)prctl(PR_SET_CHILD_SUBREAPER, reaper != NO_REAPER);
	if (reaper == REAPER) {
		need(waitpid(-1, &status, WNOHANG) == 0);
		(void)close(fd[1]);
		need(waitpid(-1, &status, 0) > 0 && status == 0);
		need(shared->n == 1);
	} else {
		need(waitpid(-1, &status, WNOHANG) == -1 && errno == ECHILD);
		need(shared->n == 0);
	}
}

TEST(such_a_childs_child_returns_to_a_subreaper_only)
{
	for (enum reaper r = NO_REAPER; r <= REAPER_BUT_THEN; r++) {
		shared->n = 0;
		run_child(have_unseen_grandchild, &r);
	}
}

/* Own a word in shared memory, for ever. */
static void
own_word(void *unused)
{
	(void)unused;
	shared->robust.list.next = &shared->lock.link;
	shared->lock.link.next = &shared->robust.list;
	shared->robust.futex_offset = (char *)&shared->lock.word -
	    (char *)&shared->lock.link;
	need(syscall(SYS_set_robust_list, &shared->robust,
	    sizeof(shared->robust)) == 0);
	shared->lock.word = gettid();
	for (;;)
		(void)pause();
}

/* In a child: kill the owner when the test sleeps. */
static void
kill_for_sleeper(void *owner)
{
	while (state_of(getppid()) != 'S')
		nap_us(100);
	(void)kill(*(pid_t *)owner, SIGKILL);
}

TEST(a_robust_word_shows_its_owners_death)
{
	static const struct timespec patience = {CHILD_PATIENCE_MS / 1000, 0};
	siginfo_t info;
	pid_t owner, killer;
	int word;

	owner = child_start(own_word, NULL);
	await(shared->lock.word == owner);
	(void)kill(owner, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)owner, &info, WEXITED | WNOWAIT),
	    0);
	assert_int_equal(shared->lock.word, FUTEX_OWNER_DIED);
	(void)child_wait(owner);

	owner = child_start(own_word, NULL);
	await(shared->lock.word == owner);
	word = __atomic_or_fetch(&shared->lock.word, (int)FUTEX_WAITERS,
	    __ATOMIC_SEQ_CST);
	killer = child_start(kill_for_sleeper, &owner);
	assert_int_equal(syscall(SYS_futex, &shared->lock.word, FUTEX_WAIT,
	    word, &patience, NULL, 0), 0);
	assert_int_equal((unsigned)shared->lock.word, FUTEX_OWNER_DIED |
	    FUTEX_WAITERS);
	(void)child_wait(killer);
	(void)child_wait(owner);
}

/* Reading oneself. */

static ssize_t
read_oneself(volatile const void *at, void *to, size_t len)
{
	const struct iovec from = {(void *)(uintptr_t)at, len};
	const struct iovec into = {to, len};

	return process_vm_readv(getpid(), &into, 1, &from, 1, 0);
}

static uint64_t seen;

static void
read_watched(const struct trap *t)
{
	(void)t;
	if (read_oneself(area, &seen, 8) != 8)
		seen = UINT64_MAX;
}

TEST(reading_oneself_hits_only_where_it_is_read_to)
{
	const bool kernel = may_watch_kernel();
	struct perf_event_attr attr = watch_attr(HW_BREAKPOINT_RW, area,
	    kernel);
	int fd;

	must_have_sigtrap();
	attr.sigtrap = 1;
	fd = arm(attr);
	and_then = read_watched;
	seen = 0;
	(void)store(area);
	assert_int_equal(shared->n, 1);
	assert_int_equal(seen, 1);
	assert_int_equal(count_of(fd), 1);
	assert_int_equal(read_oneself(&area[1], (void *)(uintptr_t)area, 8), 8);
	assert_int_equal(shared->n, kernel ? 2 : 1);
}

TEST(reading_oneself_ends_where_nothing_is_mapped)
{
	enum { PAGE = 4096 };
	static char to[6 * PAGE];
	char *at = mmap(NULL, 6 * PAGE, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *file;
	int fd = memfd_create("short", MFD_CLOEXEC);

	assert_true(at != MAP_FAILED && fd >= 0);
	/* 0..2 of them mapped and 1..2 never touched, 4 readable, 5 not */
	assert_int_equal(munmap(at + 3 * PAGE, PAGE), 0);
	assert_int_equal(mprotect(at + 5 * PAGE, PAGE, PROT_NONE), 0);
	memset(at, 1, PAGE);
	assert_int_equal(read_oneself(at + 100, to, 6 * PAGE - 100),
	    3 * PAGE - 100);
	assert_int_equal(to[0], 1);
	assert_int_equal(to[PAGE], 0);
	assert_int_equal(read_oneself(at + 5 * PAGE - 8, to, 16), 8);
	assert_int_equal(read_oneself(at + 3 * PAGE, to, PAGE + 1), -1);
	assert_int_equal(errno, EFAULT);
	assert_int_equal(read_oneself((void *)(UINTPTR_MAX - 15), to, 16), -1);
	assert_int_equal(errno, EFAULT);
	(void)munmap(at, 6 * PAGE);

	assert_int_equal(ftruncate(fd, 100), 0);
	file = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(file != MAP_FAILED);
	assert_int_equal(read_oneself(file, to, 2 * PAGE), PAGE);
	(void)munmap(file, 2 * PAGE);
	(void)close(fd);
}

/* The C library. */

extern void _pthread_cleanup_push(struct _pthread_cleanup_buffer *,
    void (*)(void *), void *);
extern void _pthread_cleanup_pop(struct _pthread_cleanup_buffer *, int);

static unsigned cleaned;	/* digits: 1, then 2 is 12 */
static unsigned digit[] = {0, 1, 2};
static jmp_buf back;
static sigjmp_buf sigback;

static void
clean(void *which)
{
	cleaned = cleaned * 10 + *(unsigned *)which;
}

enum leaving { RETURN, RETURN_AND_RUN, JUMP, SIGJUMP, JUMP_FROM_HANDLER, EXIT,
	CANCEL };

static void
jump_back(int sig)
{
	(void)sig;
	siglongjmp(sigback, 1);
}

static void
leave(enum leaving how)
{
	switch (how) {
	case JUMP:
		longjmp(back, 1);	/* NOLINT(cert-err52-cpp) */
	case SIGJUMP:
		siglongjmp(sigback, 1);
	case JUMP_FROM_HANDLER:
		(void)signal(SIGUSR1, jump_back);
		(void)raise(SIGUSR1);
		break;
	case EXIT:
		pthread_exit(NULL);
	case CANCEL:
		(void)pthread_cancel(pthread_self());
		pthread_testcancel();
		break;
	default:
		break;
	}
}

static __attribute__((noinline)) void
leave_inner(enum leaving how)
{
	struct _pthread_cleanup_buffer inner;

	_pthread_cleanup_push(&inner, clean, &digit[1]);
	leave(how);
	_pthread_cleanup_pop(&inner, how == RETURN_AND_RUN);
}

static __attribute__((noinline)) void
leave_both(enum leaving how)
{
	struct _pthread_cleanup_buffer outer;

	_pthread_cleanup_push(&outer, clean, &digit[2]);
	leave_inner(how);
	_pthread_cleanup_pop(&outer, how == RETURN_AND_RUN);
}

static void *
leave_by(void *how)
{
	if (setjmp(back) == 0 && sigsetjmp(sigback, 1) == 0)
		leave_both(*(enum leaving *)how);
	return NULL;
}

TEST(cleanup_buffers_are_run_however_the_frame_is_left)
{
	static const unsigned due[] = {[RETURN] = 0, [RETURN_AND_RUN] = 12,
	    [JUMP] = 12, [SIGJUMP] = 12, [JUMP_FROM_HANDLER] = 12,
	    [EXIT] = 12, [CANCEL] = 12};

	for (enum leaving how = RETURN; how <= CANCEL; how++) {
		pthread_t thread;

		cleaned = 0;
		assert_int_equal(pthread_create(&thread, NULL, leave_by, &how),
		    0);
		assert_int_equal(pthread_join(thread, NULL), 0);
		if (cleaned != due[how])
			fail_msg("%d: %u", (int)how, cleaned);
	}
	(void)signal(SIGUSR1, SIG_DFL);
}

/* The setjmp is in the buffer's own frame. */
static __attribute__((noinline)) void
jump_within_frame(void)
{
	struct _pthread_cleanup_buffer buffer;

	if (setjmp(back) == 0) {
		_pthread_cleanup_push(&buffer, clean, &digit[1]);
		longjmp(back, 1);	/* NOLINT(cert-err52-cpp) */
	}
	assert_int_equal(cleaned, 0);
	_pthread_cleanup_pop(&buffer, 1);	/* it is still on the list */
	assert_int_equal(cleaned, 1);
}

TEST(a_jump_within_the_frame_leaves_them)
{
	cleaned = 0;
	jump_within_frame();
}

int
main(int argc, char **argv)
{
	char c;

	if (argc == 2 && strcmp(argv[1], "--exec") == 0)
		return store_at_fixed();
	if (argc == 2 && strcmp(argv[1], "--read") == 0)
		return read(0, &c, 1) == 0 ? 0 : 1;
	return run_live_tests(.before_each = begin, .after_each = end);
}

#else

SKIP_TESTS("these are facts of x86-64")

#endif
