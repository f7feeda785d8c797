/*
 * kernel: how Linux treats breakpoint events, measured on real ones: one test
 * for each fact of docs/kernel.md, in its order.
 */
#include "test.h"

#ifdef __x86_64__

#include <asm/perf_regs.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/vfs.h>

#include "child.h"
#include "live.h"
#include "proc/proc.h"
#include "ptrace/ptrace.h"
#include "puppet.h"
#include "shot.h"
#include "symbol/symbol.h"
#include "attach/target.h"
#include "ring/uptime.h"

enum {
	NOBODY = 65534,
};

/* What is watched: words of one cache line. */
static _Alignas(64) volatile uint64_t area[8];

/* What children share with their test. */
static struct {
	volatile int signals;	/* SIGUSR1s that a puppet has handled */
	volatile int passed;	/* landmark was executed */
	volatile int armed;	/* threads are to store from here on */
	volatile int stored;	/* how many did */
	volatile int chains;	/* chains of threads that have ended */
} *shared;

SHARED_FIXTURE

/* Actions. */

#define ACCESS(name, ...)						\
	static void							\
	name(void *at)							\
	{								\
		__asm__ volatile(#__VA_ARGS__ : : "r"(at) : "memory");	\
	}
ACCESS(do_store, movq $1, (%0))
ACCESS(do_byte_inside, movb $1, 3(%0))
ACCESS(do_wide_store_from_below, movups %%xmm0, -8(%0))
ACCESS(do_clflush, clflush (%0))
ACCESS(do_prefetch, prefetcht0 (%0))

static void
do_load(void *at)
{
	uint64_t value;

	__asm__ volatile("movq (%1), %0" : "=r"(value) : "r"(at) : "memory");
}

static void
do_failing_cmpxchg(void *at)
{
	uint64_t expected = *(uint64_t *)at + 1;

	__asm__ volatile("lock cmpxchgq %1, (%2)" : "+a"(expected) :
	    "r"(7ull), "r"(at) : "memory", "cc");
}

static void
do_same_value(void *at)
{
	uint64_t value = *(uint64_t *)at;

	__asm__ volatile("movq %0, (%1)" : : "r"(value), "r"(at) : "memory");
}

static void
do_nothing(void *at)
{
	(void)at;
}

/* Store; the address after that instruction is put at the argument. */
static void
do_store_and_say(void *arg)
{
	__asm__ volatile("leaq 1f(%%rip), %0\n\tmovq $1, (%1)\n1:" :
	    "=&r"(*(uint64_t *)arg) : "r"(area) : "memory");
}

/* Called by pointers that the compiler knows nothing of, so that there is one
   copy of it. */
static void
landmark(void *arg)
{
	__asm__ volatile("" : : "r"(arg) : "memory");
	shared->passed = 1;
}

/* Slots and attributes. */

/* Open up to n events that differ by nothing, until one is refused.  Result:
   how many could be; *err is the refusal. */
static unsigned
fill(struct perf_event_attr attr, int cpu, int fd[WP_SLOTS_MAX], int *err)
{
	unsigned n = 0;

	*err = 0;
	while (n < WP_SLOTS_MAX && *err == 0) {
		if ((fd[n] = wp_perf_open(&attr, 0, cpu)) < 0)
			*err = fd[n];
		else
			n++;
	}
	return n;
}

static void
close_all(const int *fd, unsigned n)
{
	while (n > 0)
		(void)close(fd[--n]);
}

TEST(four_slots_for_data_and_execution)
{
	struct perf_event_attr exec = attr_of(slot(HW_BREAKPOINT_X,
	    (void *)(uintptr_t)landmark, sizeof(long)), (struct wp_options){0});
	int fd[WP_SLOTS_MAX], err;
	unsigned n;

	n = fill(write_attr(area), -1, fd, &err);
	assert_int_equal(n, live_features.caps.slots);
	assert_in_range(n, 1, 4);
	assert_int_equal(err, -ENOSPC);
	assert_int_equal(wp_perf_open(&exec, 0, -1), -ENOSPC);
	close_all(fd, n);
	assert_int_equal(n = fill(exec, -1, fd, &err),
	    live_features.caps.slots);
	close_all(fd, n);
}

TEST(disabled_and_equal_events_take_slots)
{
	struct perf_event_attr attr = write_attr(area);
	int fd[WP_SLOTS_MAX], err;
	unsigned n;

	attr.disabled = 1;
	n = fill(attr, -1, fd, &err);
	assert_int_equal(n, live_features.caps.slots);
	assert_int_equal(err, -ENOSPC);
	close_all(fd, n);
}

TEST(an_event_for_one_processor_takes_a_slot_there_only)
{
	const unsigned slots = live_features.caps.slots;
	const int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
	int (*fd)[WP_SLOTS_MAX] = calloc((size_t)cpus, sizeof(*fd));
	struct perf_event_attr attr = write_attr(area);
	int err;

	assert_non_null(fd);
	for (int cpu = 0; cpu < cpus; cpu++) {
		assert_int_equal(fill(attr, cpu, fd[cpu], &err), slots);
		assert_int_equal(err, -ENOSPC);
	}
	assert_int_equal(wp_perf_open(&attr, 0, -1), -ENOSPC);
	for (int cpu = 0; cpu < cpus; cpu++)
		close_all(fd[cpu], slots);
	free(fd);
}

TEST(debug_registers_of_a_tracer_take_slots)
{
	static const struct wp_slot none[WP_DEBUG_REGISTERS];
	const struct wp_slot one[WP_DEBUG_REGISTERS] = {
		{(uintptr_t)area, 8, HW_BREAKPOINT_W},
	};
	struct wp_hold hold = {0};
	struct puppet p;

	puppet_start(&p);
	assert_int_equal(live_free_slots(p.pid), live_features.caps.slots);
	assert_int_equal(wp_hold_process(&hold, p.pid), 0);
	assert_int_equal(wp_trace_registers(p.pid, one, 1), 0);
	assert_int_equal(live_free_slots(p.pid),
	    live_features.caps.slots - 1);
	assert_int_equal(wp_trace_registers(p.pid, none, 0), 0);
	wp_hold_release(&hold);
	puppet_end(&p);
}

TEST(what_is_refused)
{
	struct perf_event_attr plain = write_attr(area);
	struct {
		const char *what;
		int err;
		struct perf_event_attr attr;
	} refused[] = {
		{"reads alone", -EINVAL, plain},
		{"unaligned", -EINVAL, plain},
		{"3 bytes", -EINVAL, plain},
		{"execution of 4 bytes", -EINVAL, plain},
		{"sigtrap without remove_on_exec", -EINVAL, plain},
		{"segment registers", -EINVAL, plain},
		{"stack of 12 bytes", -EINVAL, plain},
		{"stack of 65536 bytes", -EINVAL, plain},
		{"a kernel address, user accesses only", -EINVAL, plain},
	};

	refused[0].attr.bp_type = HW_BREAKPOINT_R;
	refused[1].attr.bp_addr += 4;
	refused[2].attr.bp_len = 3;
	refused[3].attr.bp_type = HW_BREAKPOINT_X;
	refused[3].attr.bp_len = 4;
	refused[4].attr.sigtrap = 1;
	refused[4].attr.remove_on_exec = 0;
	refused[5].attr.sample_regs_user |= 1ull << PERF_REG_X86_DS;
	refused[6].attr.sample_type |= PERF_SAMPLE_STACK_USER;
	refused[6].attr.sample_stack_user = 12;
	refused[7].attr.sample_type |= PERF_SAMPLE_STACK_USER;
	refused[7].attr.sample_stack_user = 65536;
	refused[8].attr.bp_addr = UINT64_MAX - 4095;
	for (size_t i = 0; i < COUNT(refused); i++) {
		int fd = wp_perf_open(&refused[i].attr, 0, -1);

		if (fd != refused[i].err)
			fail_msg("%s: %d", refused[i].what, fd);
	}
}

TEST(longer_than_a_register_needs_masks)
{
	struct perf_event_attr attr = write_attr(area);
	int fd;

	attr.bp_len = 16;
	fd = wp_perf_open(&attr, 0, -1);
	if (live_features.caps.range > 8)
		assert_true(fd >= 0);
	else
		assert_true(fd == -EOPNOTSUPP || fd == -EINVAL);
	if (fd >= 0)
		(void)close(fd);
}

TEST(addresses_without_memory_are_accepted)
{
	void *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
	    -1, 0);
	void *const addr[] = {NULL, page};

	(void)munmap(page, 4096);
	for (size_t i = 0; i < COUNT(addr); i++) {
		struct perf_event_attr attr = write_attr(addr[i]);
		int fd = wp_perf_open(&attr, 0, -1);

		assert_true(fd >= 0);
		(void)close(fd);
	}
}

TEST(ended_threads_are_refused)
{
	struct perf_event_attr attr = write_attr(area);
	siginfo_t info;
	pid_t pid;

	pid = child_start(do_nothing, NULL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT),
	    0);
	assert_int_equal(wp_perf_open(&attr, pid, -1), -ESRCH);
	(void)child_wait(pid);
	assert_int_equal(wp_perf_open(&attr, pid, -1), -ESRCH);
}

/* Hits. */

TEST(which_accesses_hit)
{
	static const struct {
		const char *what;
		void (*act)(void *);
		unsigned w, rw;	/* hits of a watch on writes; on both */
	} accesses[] = {
		{"a store", do_store, 1, 1},
		{"a load", do_load, 0, 1},
		{"a byte inside", do_byte_inside, 1, 1},
		{"16 bytes from below", do_wide_store_from_below, 1, 1},
		{"clflush", do_clflush, 0, 1},
		{"prefetch", do_prefetch, 0, 0},
	};

	for (size_t i = 0; i < COUNT(accesses); i++) {
		const unsigned want[] = {accesses[i].w, accesses[i].rw};
		const uint32_t type[] = {HW_BREAKPOINT_W, HW_BREAKPOINT_RW};

		for (size_t k = 0; k < 2; k++) {
			struct shot s;

			shoot(&s, attr_of(slot(type[k], &area[1], 8),
			    (struct wp_options){0}), accesses[i].act,
			    (void *)(uintptr_t)&area[1]);
			if (s.count.value != want[k] || s.samples != want[k])
				fail_msg("%s: %u samples", accesses[i].what,
				    s.samples);
			shot_end(&s);
		}
	}
}

TEST(stores_that_change_nothing_hit)
{
	static void (*const act[])(void *) = {do_same_value,
	    do_failing_cmpxchg};

	for (size_t i = 0; i < COUNT(act); i++) {
		const uint64_t before = area[0];
		struct shot s;

		shoot(&s, write_attr(area), act[i], (void *)(uintptr_t)area);
		assert_int_equal(s.samples, 1);
		assert_int_equal(area[0], before);
		shot_end(&s);
	}
}

TEST(a_data_watch_reports_the_instruction_after)
{
	uint64_t after;
	struct shot s;

	shoot(&s, write_attr(area), do_store_and_say, &after);
	assert_int_equal(s.samples, 1);
	assert_int_equal(s.sample[0].sample.ip, after);
	assert_int_equal(user_reg(&s.sample[0], PERF_REG_X86_IP), after);
	shot_end(&s);
}

static void
call_landmark(void *times)
{
	for (int i = 0; i < *(int *)times; i++)
		puppet_call(NULL);
}

TEST(an_execution_watch_reports_the_instruction_itself)
{
	const uint64_t at = (uintptr_t)landmark;
	int times = 20;
	struct shot s;

	shoot(&s, attr_of(slot(HW_BREAKPOINT_X, (void *)(uintptr_t)at,
	    sizeof(long)), (struct wp_options){0}), call_landmark, &times);
	assert_int_equal(s.count.value, times);
	assert_int_equal(s.samples, times);
	for (unsigned i = 0; i < s.samples; i++)
		assert_int_equal(s.sample[i].sample.ip, at);
	shot_end(&s);
}

/* An instruction of 7 bytes; where it begins is put at the argument. */
static void
do_long_instruction(void *arg)
{
	uint64_t at;

	__asm__ volatile("leaq 1f(%%rip), %0\n1:\tmovq $1, %1" : "=&r"(at),
	    "=m"(area[7]));
	*(uint64_t *)arg = at;
}

TEST(inside_an_instruction_execution_never_fires)
{
	void (*volatile act)(void *) = do_long_instruction;
	uint64_t at;
	struct shot s;

	act(&at);
	shoot(&s, attr_of(slot(HW_BREAKPOINT_X, (void *)(uintptr_t)at,
	    sizeof(long)), (struct wp_options){0}), act, &at);
	assert_int_equal(s.count.value, 1);
	shot_end(&s);
	shoot(&s, attr_of(slot(HW_BREAKPOINT_X, (void *)(uintptr_t)(at + 1),
	    sizeof(long)), (struct wp_options){0}), act, &at);
	assert_int_equal(s.count.value, 0);
	shot_end(&s);
}

static _Alignas(64) volatile char text[512];

/* rep stosb over text; the instruction's address is put at the argument. */
static void
do_rep_stosb(void *arg)
{
	volatile char *to = text;
	uint64_t n = sizeof(text), at;

	__asm__ volatile("leaq 1f(%%rip), %2\n1:\trep stosb" : "+D"(to),
	    "+c"(n), "=&r"(at) : "a"(1) : "memory");
	*(uint64_t *)arg = at;
}

TEST(an_unfinished_rep_reports_itself)
{
	uint64_t at, left;
	struct shot s;

	shoot(&s, write_attr(&text[128]), do_rep_stosb, &at);
	assert_true(s.samples >= 1);
	left = user_reg(&s.sample[0], PERF_REG_X86_CX);
	assert_int_equal(s.sample[0].sample.ip, at);
	assert_in_range(left, 1, sizeof(text) - 128);
	assert_int_equal(user_reg(&s.sample[0], PERF_REG_X86_DI),
	    (uintptr_t)text + sizeof(text) - left);
	shot_end(&s);

	shoot(&s, write_attr(&text[sizeof(text) - 8]), do_rep_stosb, &at);
	assert_true(s.samples >= 1);
	assert_int_equal(s.sample[s.samples - 1].sample.ip, at + 2);
	assert_int_equal(user_reg(&s.sample[s.samples - 1], PERF_REG_X86_CX),
	    0);
	shot_end(&s);
}

/* A stack to call on; a signal would need room there too. */
static _Alignas(64) volatile uint64_t stack[8192];
static volatile uint64_t *const stack_top = &stack[8000];

/* Call with rsp at stack_top; the callee's entry is put at the argument. */
static void
do_call(void *arg)
{
	uint64_t entry;

	__asm__ volatile("movq %%rsp, %%rbx\n\tmovq %1, %%rsp\n\tcall 1f\n\t"
	    "jmp 2f\n1:\tleaq 1b(%%rip), %0\n\tret\n2:\tmovq %%rbx, %%rsp" :
	    "=&r"(entry) : "r"(stack_top) : "rbx", "memory");
	*(uint64_t *)arg = entry;
}

TEST(a_call_reports_its_target)
{
	uint64_t entry;
	struct shot s;

	shoot(&s, write_attr(stack_top - 1), do_call, &entry);
	assert_int_equal(s.samples, 1);
	assert_int_equal(s.sample[0].sample.ip, entry);
	assert_int_equal(user_reg(&s.sample[0], PERF_REG_X86_SP),
	    (uintptr_t)(stack_top - 1));
	shot_end(&s);
}

TEST(the_address_is_that_of_the_watch)
{
	static void (*const act[])(void *) = {do_store, do_byte_inside,
	    do_wide_store_from_below};

	for (size_t i = 0; i < COUNT(act); i++) {
		struct shot s;

		shoot(&s, write_attr(&area[1]), act[i],
		    (void *)(uintptr_t)&area[1]);
		assert_int_equal(s.samples, 1);
		assert_int_equal(s.sample[0].sample.addr,
		    (uintptr_t)&area[1]);
		shot_end(&s);
	}
}

/* What do_copy stores: a value that registers never hold. */
static _Alignas(16) volatile const uint64_t secret[2] = {
	0x7ea5e7beadcafe01, 0x7ea5e7beadcafe02,
};

static void
do_copy(void *at)
{
	__asm__ volatile("movups (%0), %%xmm0\n\tmovups %%xmm0, (%1)" : :
	    "r"(secret), "r"(at) : "xmm0", "memory");
}

TEST(no_field_of_a_sample_is_the_value)
{
	struct perf_event_attr attr = write_attr(area);
	struct shot s;

	attr.sample_type |= PERF_SAMPLE_RAW | PERF_SAMPLE_DATA_SRC |
	    PERF_SAMPLE_WEIGHT | PERF_SAMPLE_PERIOD | PERF_SAMPLE_REGS_INTR;
	attr.sample_regs_intr = attr.sample_regs_user;
	shoot(&s, attr, do_copy, (void *)(uintptr_t)area);
	assert_int_equal(s.samples, 1);
	assert_int_equal(area[0], secret[0]);
	assert_null(memmem(s.sample[0].bytes, s.sample[0].size,
	    (const void *)(uintptr_t)secret, 8));
	shot_end(&s);
}

static void
do_straddling_store(void *unused)
{
	(void)unused;
	do_store((char *)(uintptr_t)area + 4);
}

TEST(one_store_over_two_slots_is_two_equal_samples)
{
	struct shot s;

	shot_begin(&s);
	shot_arm(&s, write_attr(&area[0]), gettid());
	shot_arm(&s, write_attr(&area[1]), gettid());
	do_straddling_store(NULL);
	shot_take(&s);
	assert_int_equal(s.samples, 2);
	assert_int_not_equal(s.sample[0].sample.addr, s.sample[1].sample.addr);
	assert_int_equal(s.sample[0].sample.ip, s.sample[1].sample.ip);
	assert_memory_equal(s.sample[0].sample.user.values,
	    s.sample[1].sample.user.values,
	    8 * (size_t)__builtin_popcountll(s.sample[0].sample.user.mask));
	shot_end(&s);
}

TEST(times_are_of_the_monotonic_clock)
{
	uint64_t before, after;
	struct shot s;

	before = wp_clock_ns();
	shoot(&s, write_attr(area), do_store, (void *)(uintptr_t)area);
	after = wp_clock_ns();
	assert_int_equal(s.samples, 1);
	assert_in_range(s.sample[0].time, before, after);
	shot_end(&s);
}

/* Store with rsp at the argument. */
static void
do_store_on_stack(void *sp)
{
	__asm__ volatile("movq %%rsp, %%rbx\n\tmovq %0, %%rsp\n\t"
	    "movq $1, (%1)\n\tmovq %%rbx, %%rsp" : : "r"(sp), "r"(area) :
	    "rbx", "memory");
}

TEST(the_stack_copy_ends_where_nothing_is_in_memory)
{
	const struct wp_options options = {.stack = 48 << 10};
	char *at = mmap(NULL, 5 * 4096, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	assert_int_equal(mprotect(at + 4 * 4096, 4096, PROT_NONE), 0);
	memset(at, 1, 4 * 4096);
	for (size_t pages = 4; pages >= 2; pages -= 2) {
		struct shot s;

		shoot(&s, attr_of(slot(HW_BREAKPOINT_W, area, 8), options),
		    do_store_on_stack, at + 4096);
		assert_int_equal(s.samples, 1);
		assert_int_equal(s.sample[0].sample.stack_asked,
		    options.stack);
		assert_int_equal(s.sample[0].sample.stack_len,
		    (pages - 1) * 4096);
		assert_memory_equal(s.sample[0].sample.stack, at + 4096,
		    (pages - 1) * 4096);
		shot_end(&s);
		/* next: these are mapped, and nothing is there */
		(void)madvise(at + 2 * 4096, 2 * 4096, MADV_DONTNEED);
	}
	(void)munmap(at, 5 * 4096);
}

static void
store_often(void *times)
{
	for (int i = 0; i < *(int *)times; i++)
		area[0] = (uint64_t)i;
}

TEST(nothing_is_throttled_and_every_hit_is_counted)
{
	int times = 20000;
	struct shot s;

	shoot(&s, write_attr(area), store_often, &times);
	assert_int_equal(s.count.value, times);
	assert_int_equal(s.throttles, 0);
	assert_true(s.samples < s.count.value);
	if (live_features.format_lost)
		assert_int_equal(s.samples + s.count.lost, times);
	shot_end(&s);
}

TEST(lost_hits_are_reported_with_the_next_record)
{
	cpu_set_t before;
	int times = 2000;
	uint64_t lost;
	struct shot s;

	stay_here(&before);
	shot_begin(&s);
	shot_arm(&s, write_attr(area), gettid());
	store_often(&times);
	shot_count(&s);
	shot_read(&s);
	lost = (uint64_t)times - s.samples;
	assert_int_not_equal(lost, 0);
	if (live_features.format_lost)
		assert_int_equal(s.count.lost, lost);
	assert_int_equal(s.lost, 0);
	area[0] = 1;
	shot_take(&s);
	assert_int_equal(s.lost, lost);
	assert_int_equal(s.count.value, times + 1);
	assert_int_equal(s.count.value, s.samples + s.lost);
	shot_end(&s);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

/* The kernel's accesses. */

/* A pipe that holds 8 bytes. */
static void
fill_pipe(int fd[2])
{
	assert_int_equal(pipe(fd), 0);
	assert_int_equal(write(fd[1], "12345678", 8), 8);
}

/* Read the 8 bytes of a pipe into the area. */
static void
do_read(void *fd)
{
	assert_int_equal(read(*(int *)fd, (void *)(uintptr_t)area, 8), 8);
}

/* Shoot a read(2) with these options; false: not permitted, and that is so. */
static bool
shoot_read(struct shot *s, struct wp_options options)
{
	struct perf_event_attr attr = write_attr(area);
	int fd[2];

	if (options.kernel && !live_features.kernel) {
		attr.exclude_kernel = 0;
		assert_int_equal(wp_perf_open(&attr, 0, -1), -EACCES);
		return false;
	}
	fill_pipe(fd);
	shoot(s, attr_of(slot(HW_BREAKPOINT_W, area, 8), options), do_read,
	    fd);
	(void)close(fd[0]);
	(void)close(fd[1]);
	return true;
}

static bool
is_kernel(const struct ex_record *r)
{
	return (r->misc & PERF_RECORD_MISC_CPUMODE_MASK) ==
	    PERF_RECORD_MISC_KERNEL;
}

TEST(one_system_call_is_up_to_a_sample_a_byte)
{
	struct shot s;
	uint64_t di, last = 0;

	if (!shoot_read(&s, (struct wp_options){.kernel = true}))
		return;
	assert_in_range(s.samples, 1, 8);
	for (unsigned i = 0; i < s.samples; i++) {
		const struct ex_record *r = &s.sample[i];

		assert_true(is_kernel(r));
		assert_true(r->sample.ip > UINT64_MAX / 2);
		assert_true(ex_regs_get(&r->sample.intr, PERF_REG_X86_DI,
		    &di));
		assert_true(i == 0 || di > last);
		last = di;
	}
	shot_end(&s);
	assert_true(shoot_read(&s, (struct wp_options){0}));
	assert_int_equal(s.count.value, 0);
	shot_end(&s);
}

static void
do_write(void *fd)
{
	assert_int_equal(write(*(int *)fd, (void *)(uintptr_t)area, 8), 8);
}

TEST(a_copy_out_of_memory_shows_its_source)
{
	uint64_t si, last = 0;
	struct shot s;
	int fd[2];

	if (!live_features.kernel)
		return;
	assert_int_equal(pipe(fd), 0);
	shoot(&s, attr_of(slot(HW_BREAKPOINT_RW, area, 8),
	    (struct wp_options){.kernel = true}), do_write, &fd[1]);
	assert_in_range(s.samples, 1, 8);
	for (unsigned i = 0; i < s.samples; i++) {
		assert_true(is_kernel(&s.sample[i]));
		assert_true(ex_regs_get(&s.sample[i].sample.intr,
		    PERF_REG_X86_SI, &si));
		assert_true(i == 0 || si > last);
		last = si;
	}
	shot_end(&s);
	(void)close(fd[0]);
	(void)close(fd[1]);
}

TEST(user_registers_are_those_of_the_system_calls_entry)
{
	struct shot s;

	if (!shoot_read(&s, (struct wp_options){.kernel = true}))
		return;
	for (unsigned i = 0; i < s.samples; i++) {
		const struct ex_record *r = &s.sample[i];

		assert_int_equal((int64_t)user_reg(r, PERF_REG_X86_AX),
		    -ENOSYS);
		assert_int_equal(user_reg(r, PERF_REG_X86_SI),
		    (uintptr_t)area);
		assert_int_equal(user_reg(r, PERF_REG_X86_DX), 8);
		assert_memory_equal(r->sample.user.values,
		    s.sample[0].sample.user.values, 8 *
		    (size_t)__builtin_popcountll(r->sample.user.mask));
	}
	shot_end(&s);
}

TEST(the_callchain_names_the_system_call)
{
	const char *name = "";
	uint64_t offset;
	struct shot s;

	if (!shoot_read(&s, (struct wp_options){.kernel = true,
	    .callchain = true}))
		return;
	if (!live_features.callchain) {
		shot_end(&s);
		return;
	}
	assert_true(s.sample[0].sample.callchain_len > 1);
	for (uint64_t i = 0; i < s.sample[0].sample.callchain_len; i++) {
		const char *found = ex_kernel_symbol(
		    ex_callchain_at(&s.sample[0].sample, i), &offset);

		if (found != NULL && strstr(found, "sys_read") != NULL)
			name = found;
	}
	if (ex_kernel_symbol(s.sample[0].sample.ip, &offset) != NULL)
		assert_string_not_equal(name, "");
	shot_end(&s);
}

/* A watched page, another mapping of it, and its file. */
struct page {
	volatile uint64_t *at, *alias;
	int fd;
};

static void
page_make(struct page *p)
{
	p->fd = memfd_create("page", MFD_CLOEXEC);
	assert_true(p->fd >= 0);
	assert_int_equal(ftruncate(p->fd, 4096), 0);
	p->at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, 0);
	p->alias = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd,
	    0);
	assert_true(p->at != MAP_FAILED && p->alias != MAP_FAILED);
	p->at[0] = 0;
}

static void
page_free(struct page *p)
{
	(void)munmap((void *)(uintptr_t)p->at, 4096);
	(void)munmap((void *)(uintptr_t)p->alias, 4096);
	(void)close(p->fd);
}

static const uint64_t unseen = 42;

static void
by_alias(void *page)
{
	((struct page *)page)->alias[0] = unseen;
}

static void
by_file(void *page)
{
	assert_int_equal(pwrite(((struct page *)page)->fd, &unseen, 8, 0), 8);
}

static void
by_vm_writev(void *page)
{
	const struct iovec from = {(void *)(uintptr_t)&unseen, 8};
	const struct iovec to = {(void *)(uintptr_t)((struct page *)page)->at,
	    8};

	assert_int_equal(process_vm_writev(getpid(), &from, 1, &to, 1, 0), 8);
}

static void
by_proc_mem(void *page)
{
	int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, &unseen, 8,
	    (off_t)(uintptr_t)((struct page *)page)->at), 8);
	(void)close(fd);
}

TEST(writes_that_no_watch_sees)
{
	static const struct {
		const char *what;
		void (*act)(void *);
	} ways[] = {
		{"a store through another mapping", by_alias},
		{"write(2) to the mapped file", by_file},
		{"process_vm_writev(2)", by_vm_writev},
		{"/proc/self/mem", by_proc_mem},
	};

	for (size_t i = 0; i < COUNT(ways); i++) {
		struct page p;
		struct shot s;

		page_make(&p);
		shoot(&s, attr_of(slot(HW_BREAKPOINT_W, p.at, 8),
		    (struct wp_options){.kernel = true}), ways[i].act, &p);
		if (s.count.value != 0 || p.at[0] != unseen)
			fail_msg("%s: %d hits", ways[i].what,
			    (int)s.count.value);
		shot_end(&s);
		page_free(&p);
	}
}

TEST(direct_input_is_not_seen)
{
	struct page p;
	struct statfs fs;
	struct shot s;
	int fd = open("/proc/self/exe", O_RDONLY | O_DIRECT | O_CLOEXEC);

	if (fd < 0 || fstatfs(fd, &fs) != 0 || fs.f_type != 0xEF53) {
		print_message("this program lies on no ext4\n");
		return;
	}
	page_make(&p);
	shot_begin(&s);
	shot_arm(&s, attr_of(slot(HW_BREAKPOINT_W, p.at, 8),
	    (struct wp_options){.kernel = true}), gettid());
	assert_int_equal(read(fd, (void *)(uintptr_t)p.at, 4096), 4096);
	shot_take(&s);
	assert_memory_equal((void *)(uintptr_t)p.at, "\177ELF", 4);
	assert_int_equal(s.count.value, 0);
	shot_end(&s);
	page_free(&p);
	(void)close(fd);
}

static void
give_back(void *page)
{
	assert_int_equal(madvise(page, 4096, MADV_DONTNEED), 0);
}

TEST(memory_that_is_given_back_is_not_seen)
{
	volatile uint64_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct shot s;

	assert_true(page != MAP_FAILED);
	page[0] = unseen;
	shoot(&s, attr_of(slot(HW_BREAKPOINT_W, page, 8),
	    (struct wp_options){.kernel = true}), give_back,
	    (void *)(uintptr_t)page);
	assert_int_equal(page[0], 0);
	assert_int_equal(s.count.value, 0);
	shot_end(&s);
	(void)munmap((void *)(uintptr_t)page, 4096);
}

/* Its id is cleared in the area, as for pthread_join(3). */
static void *
clear_at_exit(void *unused)
{
	(void)syscall(SYS_set_tid_address, area);
	(void)syscall(SYS_exit, 0);
	return unused;
}

static void
end_a_thread(void *unused)
{
	pthread_attr_t attr;
	pthread_t thread;

	(void)unused;
	area[0] = 1;
	assert_int_equal(pthread_attr_init(&attr), 0);
	assert_int_equal(pthread_attr_setdetachstate(&attr,
	    PTHREAD_CREATE_DETACHED), 0);
	assert_int_equal(pthread_create(&thread, &attr, clear_at_exit, NULL),
	    0);
	await(area[0] == 0);
}

TEST(a_threads_last_write_may_not_be_seen)
{
	struct shot s;

	if (!live_features.kernel)
		return;
	shoot(&s, attr_of(slot(HW_BREAKPOINT_W, area, 8),
	    (struct wp_options){.kernel = true}), end_a_thread, NULL);
	assert_in_range(s.count.value, 1, 2);	/* the store before */
	print_message("a thread's last write: %s\n", s.count.value == 2 ?
	    "seen" : "not seen");
	shot_end(&s);
}

/* An io_uring of one read of this program's file into the area. */
struct uring {
	struct io_uring_params params;
	uint8_t *queue;		/* params.sq_off into it */
	struct io_uring_sqe *entry;
	int fd, file;
};

static bool
uring_make(struct uring *u)
{
	const size_t size = 4096;	/* more than one entry needs */

	memset(u, 0, sizeof(*u));
	u->fd = (int)syscall(SYS_io_uring_setup, 1, &u->params);
	if (u->fd < 0) {
		print_message("io_uring_setup: %s\n", strerror(errno));
		return false;
	}
	u->queue = mmap(NULL, size, PROT_READ | PROT_WRITE,
	    MAP_SHARED, u->fd, IORING_OFF_SQ_RING);
	u->entry = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, u->fd,
	    IORING_OFF_SQES);
	assert_true(u->queue != MAP_FAILED && u->entry != MAP_FAILED);
	u->file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_true(u->file >= 0);
	return true;
}

static void
uring_free(struct uring *u)
{
	(void)munmap(u->queue, 4096);
	(void)munmap(u->entry, 4096);
	(void)close(u->file);
	(void)close(u->fd);
}

static void
submit(void *arg)
{
	struct uring *u = arg;

	*(uint32_t *)(u->queue + u->params.sq_off.array) = 0;
	*(uint32_t *)(u->queue + u->params.sq_off.tail) = 1;
	assert_int_equal(syscall(SYS_io_uring_enter, u->fd, 1, 1,
	    IORING_ENTER_GETEVENTS, NULL, 0), 1);
}

TEST(what_io_uring_reads_is_seen)
{
	static const uint8_t flags[] = {0, IOSQE_ASYNC};

	if (!live_features.kernel)
		return;
	for (size_t i = 0; i < sizeof(flags); i++) {
		struct uring u;
		struct shot s;

		if (!uring_make(&u))
			return;
		*u.entry = (struct io_uring_sqe){
			.opcode = IORING_OP_READ, .flags = flags[i],
			.fd = u.file, .addr = (uintptr_t)area, .len = 8,
		};
		shoot(&s, attr_of(slot(HW_BREAKPOINT_W, area, 8),
		    (struct wp_options){.kernel = true}), submit, &u);
		assert_memory_equal((void *)(uintptr_t)area, "\177ELF", 4);
		assert_in_range(s.count.value, 1, 8);
		shot_end(&s);
		uring_free(&u);
	}
}

static void
read_from_outside(void *unused)
{
	uint64_t value;

	(void)unused;
	assert_int_equal(wp_proc_read(getpid(), (uintptr_t)area, &value, 8),
	    8);
}

TEST(reading_memory_from_outside_does_not_hit)
{
	struct shot s;

	shoot(&s, attr_of(slot(HW_BREAKPOINT_RW, area, 8),
	    (struct wp_options){.kernel = true}), read_from_outside, NULL);
	assert_int_equal(s.count.value, 0);
	shot_end(&s);
}

static void
map_anew_and_store(void *page)
{
	assert_int_equal(munmap(page, 4096), 0);
	assert_true(mmap(page, 4096, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == page);
	do_store(page);
}

TEST(a_watch_is_on_an_address_whatever_is_mapped)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct shot s;

	assert_true(page != MAP_FAILED);
	shoot(&s, write_attr(page), map_anew_and_store, page);
	assert_int_equal(s.count.value, 1);
	shot_end(&s);
	(void)munmap(page, 4096);
}

/* Rings. */

TEST(an_inherited_events_ring_is_for_one_processor)
{
	struct perf_event_attr attr = write_attr(area);
	struct perf_event_mmap_page *ring;
	int any = wp_perf_open(&attr, 0, -1), one = wp_perf_open(&attr, 0, 0);

	assert_true(any >= 0 && one >= 0);
	assert_int_equal(wp_perf_map(any, SHOT_RING, &ring), -EINVAL);
	assert_int_equal(wp_perf_map(one, SHOT_RING, &ring), 0);
	wp_perf_unmap(ring, SHOT_RING);
	(void)close(any);
	(void)close(one);
}

TEST(a_rings_size_is_a_power_of_two)
{
	struct perf_event_mmap_page *ring;
	struct perf_event_attr attr;
	int fd;

	wp_attr_ring(&attr, 4096);
	assert_true((fd = wp_perf_open(&attr, 0, 0)) >= 0);
	assert_int_equal(wp_perf_map(fd, 3 * 4096, &ring), -EINVAL);
	assert_int_equal(wp_perf_map(fd, 4 * 4096, &ring), 0);
	wp_perf_unmap(ring, 4 * 4096);
	(void)close(fd);
}

TEST(records_go_to_a_ring_of_the_same_processor_only)
{
	struct perf_event_attr attr = write_attr(area);
	struct wp_rings *rings;
	struct puppet p;
	int any, one;

	assert_int_equal(wp_rings_open(&rings, SHOT_RING, NULL), 0);
	puppet_start(&p);
	one = wp_perf_open(&attr, p.pid, wp_rings_cpu(rings, 0));
	any = wp_perf_open(&attr, p.pid, -1);
	assert_true(any >= 0 && one >= 0);
	/* the ring's owner counts nothing, and in another process */
	assert_int_equal(wp_perf_redirect(one, wp_rings_fd(rings, 0)), 0);
	assert_int_equal(wp_perf_redirect(any, wp_rings_fd(rings, 0)),
	    -EINVAL);
	if (wp_rings_count(rings) > 1)
		assert_int_equal(wp_perf_redirect(one, wp_rings_fd(rings, 1)),
		    -EINVAL);
	(void)close(any);
	(void)close(one);
	puppet_end(&p);
	wp_rings_close(rings);
}

/* The ring of the processor that this thread stays on. */
static int
ring_here(const struct wp_rings *rings)
{
	for (unsigned i = 0; i < wp_rings_count(rings); i++)
		if (wp_rings_cpu(rings, i) == sched_getcpu())
			return wp_rings_fd(rings, i);
	return -1;
}

TEST(the_rings_owner_is_woken_by_others_records)
{
	struct pollfd ring = {.events = POLLIN};
	cpu_set_t before;
	struct shot s;
	int few = 10, many = 200;

	stay_here(&before);
	shot_begin(&s);
	shot_arm(&s, write_attr(area), gettid());
	ring.fd = ring_here(s.rings);
	store_often(&few);
	assert_int_equal(poll(&ring, 1, 0), 0);
	store_often(&many);	/* past a quarter of the ring */
	assert_int_equal(poll(&ring, 1, CHILD_PATIENCE_MS), 1);
	assert_int_equal(ring.revents, POLLIN);
	shot_take(&s);
	shot_end(&s);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

static void
map_and_name(bool with_data)
{
	struct wp_slot w = slot(HW_BREAKPOINT_W, area, 8);
	struct wp_options options = {0};
	struct perf_event_attr attr;
	struct shot s;
	void *code;

	wp_options_fit(&options, &live_features);
	wp_attr_watch(&attr, &w, &options, true);
	assert_true(attr.mmap_data);
	attr.mmap_data = with_data;
	shot_begin(&s);
	shot_arm(&s, attr, gettid());
	shot_read(&s);
	assert_int_equal(s.maps + s.comms, 0);
	code = mmap(NULL, 4096, PROT_READ | PROT_EXEC,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	(void)munmap(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS,
	    -1, 0), 4096);
	(void)prctl(PR_SET_NAME, "another");
	shot_take(&s);
	assert_int_equal(s.maps, with_data ? 2 : 1);
	assert_int_equal(s.comms, 1);
	shot_end(&s);
	(void)munmap(code, 4096);
}

TEST(only_later_mappings_and_names_are_reported)
{
	map_and_name(false);
	map_and_name(true);
}

static void
rings_are_limited_by_locked_memory(void *result)
{
	static const struct rlimit none = {0, 0};
	struct wp_rings *rings;
	struct wp_cause cause;
	size_t *size = result;

	if (getuid() == 0 && setresuid(NOBODY, NOBODY, NOBODY) != 0)
		_exit(1);
	(void)setrlimit(RLIMIT_MEMLOCK, &none);
	size[0] = 1;
	if (wp_rings_open(&rings, 1 << 30, &cause) < 0)
		return;
	size[0] = wp_rings_size(rings) * wp_rings_count(rings);
	wp_rings_close(rings);
}

static long
read_number(const char *path)
{
	FILE *f = fopen(path, "re");
	long value = 0;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%ld", &value), 1);
	(void)fclose(f);
	return value;
}

TEST(locked_memory_limits_rings)
{
	size_t *size = shared_memory(sizeof(*size));
	size_t most;
	pid_t pid;

	if (live_features.paranoid < 0 || live_features.paranoid > 2)
		return;		/* no limit applies; or no event is allowed */
	most = (size_t)read_number("/proc/sys/kernel/perf_event_mlock_kb") *
	    1024 * (size_t)sysconf(_SC_NPROCESSORS_ONLN);
	pid = child_start(rings_are_limited_by_locked_memory, size);
	assert_int_equal(child_wait(pid), 0);
	assert_in_range(*size, 1, most);
	(void)munmap(size, sizeof(*size));
}

/* Threads, children and programs. */

TEST(inherited_events_bear_the_opened_events_id)
{
	struct puppet p;
	struct shot s;

	puppet_start(&p);
	shot_begin(&s);
	shot_arm(&s, write_attr(area), p.pid);
	puppet_lead(&p, 't');
	puppet_second(&p, 's');
	shot_take(&s);
	assert_int_equal(s.samples, 1);
	assert_int_not_equal(s.sample[0].tid, p.pid);
	assert_int_not_equal(s.sample[0].id, 0);
	assert_int_equal(ex_formats_find(s.formats, s.sample[0].id), 0);
	shot_end(&s);
	puppet_end(&p);
}

/* --- how long events run --- */

enum { SPINS = 3000000 };

static void *
spin(void *at)
{
	for (int i = 0; i < SPINS; i++)
		__asm__ volatile("" : : : "memory");
	do_store(at);
	return NULL;
}

/* Threads that come and go, and those that they make, on all processors. */
static void
spin_in_threads(void *arg)
{
	pthread_t thread[4];

	(void)arg;
	while (!shared->armed)
		(void)usleep(1000);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 4; i++)
			(void)pthread_create(&thread[i], NULL, spin,
			    (void *)(uintptr_t)area);
		for (int i = 0; i < 4; i++)
			(void)pthread_join(thread[i], NULL);
	}
	shared->stored = 1;
	for (;;)
		(void)pause();
}

/* A child of which stores are counted, with a reference; it may begin. */
static pid_t
shot_referenced(struct shot *s, void (*child)(void *),
    const struct wp_options *options)
{
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	pid = child_start(child, NULL);
	shot_begin(s);
	shot_arm(s, attr_of(slot(HW_BREAKPOINT_W, area, 8), *options), pid);
	assert_int_equal(wp_events_reference(&s->events, options, pid,
	    s->rings), 0);
	shared->armed = 1;
	return pid;
}

TEST(a_reference_runs_as_long_as_a_slots_events)
{
	struct wp_options options = {.follow = true};

	wp_options_fit(&options, &live_features);
	for (int round = 0; round < 20; round++) {
		struct wp_uptime uptime = {0};
		struct shot s;
		pid_t pid;

		pid = shot_referenced(&s, spin_in_threads, &options);
		if (round % 2 == 0)
			await(shared->stored == 1);
		else	/* in their midst */
			(void)usleep((unsigned)round * 500);
		wp_events_stop(&s.events, &options);
		wp_uptime_add(&uptime, &s.events, &options);
		assert_true(uptime.known);
		assert_int_equal(uptime.off, 0);
		assert_true(round % 2 != 0 || uptime.ran > 0);
		shot_end(&s);
		child_kill(pid);
	}
}

enum { MANY = 150, BRIEFLY = 200000 };	/* ns */

/* A child that sleeps, or executes a program soon. */
static void
make_child(bool sleeps)
{
	const pid_t parent = getpid(), pid = fork();
	const uint64_t began = wp_clock_ns();

	assert_true(pid >= 0);
	if (pid != 0)
		return;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)	/* it was killed before that */
		_exit(1);
	if (sleeps)
		for (;;)
			(void)pause();
	while (wp_clock_ns() < began + BRIEFLY)
		;
	(void)execl("/bin/true", "true", NULL);
	_exit(1);
}

/* What stops an event of many takes long. */
static void
make_children(void *unused)
{
	(void)unused;
	(void)signal(SIGCHLD, SIG_IGN);
	while (!shared->armed)
		(void)usleep(1000);
	for (int i = 0; i < MANY; i++)
		make_child(true);
	for (shared->stored = 1;;) {
		make_child(false);
		(void)usleep(100);
	}
}

/* The kernel forgets for how long its events ran since it was last asked. */
TEST(a_child_that_executes_a_program_is_no_gap)
{
	struct wp_options options = {.follow = true};

	wp_options_fit(&options, &live_features);
	for (unsigned round = 0; round < 10; round++) {
		struct wp_uptime uptime = {0};
		struct shot s;
		pid_t pid;

		pid = shot_referenced(&s, make_children, &options);
		await(shared->stored == 1);
		(void)usleep(round * 100);
		wp_events_stop(&s.events, &options);
		wp_uptime_add(&uptime, &s.events, &options);
		child_kill(pid);
		shot_end(&s);
		assert_true(uptime.known && uptime.ran > 0);
		assert_int_equal(uptime.off, 0);
	}
}

/* Where a thread ends, its events on other processors are not looked at. */
TEST(the_time_enabled_of_ended_threads_is_not_kept)
{
	struct perf_event_attr attr = attr_of(slot(HW_BREAKPOINT_W, area, 8),
	    (struct wp_options){0});
	uint64_t times[3], least = UINT64_MAX, running = 0;
	struct shot s;
	pid_t pid;

	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
	    PERF_FORMAT_TOTAL_TIME_RUNNING;
	memset(shared, 0, sizeof(*shared));
	pid = child_start(spin_in_threads, NULL);
	shot_begin(&s);
	assert_int_equal(wp_events_open(&s.events, &attr, 0, 0, pid, s.rings),
	    0);
	if (s.events.n < 2) {
		print_message("one processor: nothing to compare\n");
		shot_end(&s);
		child_kill(pid);
		skip();
	}
	shared->armed = 1;
	await(shared->stored == 1);
	for (size_t i = 0; i < s.events.n; i++) {
		assert_int_equal(read(s.events.event[i].fd, times,
		    sizeof(times)), sizeof(times));
		running += times[2];
		if (times[1] < least)
			least = times[1];
	}
	assert_true(least < running);
	shot_end(&s);
	child_kill(pid);
}

/* Hits of a second process's or thread's store, when the leader is watched
   before it makes the second. */
static uint64_t
hits_of_second(char make, bool follow)
{
	struct puppet p;
	struct shot s;
	uint64_t hits;

	puppet_start(&p);
	shot_begin(&s);
	shot_arm(&s, attr_of(slot(HW_BREAKPOINT_W, area, 8),
	    (struct wp_options){.follow = follow}), p.pid);
	puppet_lead(&p, make);
	puppet_second(&p, 's');
	shot_take(&s);
	hits = s.count.value;
	shot_end(&s);
	puppet_end(&p);
	return hits;
}

TEST(inherit_thread_leaves_children_out)
{
	assert_int_equal(hits_of_second('t', false), 1);
	assert_int_equal(hits_of_second('t', true), 1);
	assert_int_equal(hits_of_second('f', true), 1);
	if (live_features.inherit_thread)
		assert_int_equal(hits_of_second('f', false), 0);
}

/* Whether any event of a shot still has a thread to watch. */
static bool
shot_alive(const struct shot *s)
{
	for (size_t i = 0; i < s->events.n; i++) {
		struct pollfd p = {.fd = s->events.event[i].fd};

		if (poll(&p, 1, 0) == 0 || (p.revents & POLLHUP) == 0)
			return true;
	}
	return false;
}

TEST(an_event_hangs_up_with_the_last_that_inherited_it)
{
	struct puppet p;
	struct shot s;

	puppet_start(&p);
	shot_begin(&s);
	shot_arm(&s, attr_of(slot(HW_BREAKPOINT_W, area, 8),
	    (struct wp_options){.follow = true}), p.pid);
	puppet_lead(&p, 's');
	puppet_lead(&p, 'f');
	puppet_second(&p, 's');
	puppet_tell(p.lead[1], 'q');
	assert_int_equal(child_wait(p.pid), 0);
	assert_true(shot_alive(&s));
	puppet_second(&p, 's');
	(void)close(p.second[1]);	/* ends the second */
	p.second[1] = -1;
	await(!shot_alive(&s));
	shot_take(&s);
	assert_int_equal(s.count.value, 3);
	assert_int_equal(s.samples, 3);
	shot_end(&s);
	puppet_hang_up(&p);
}

TEST(without_a_ring_an_event_always_hangs_up)
{
	struct perf_event_attr attr = write_attr(area);
	struct pollfd p = {.fd = wp_perf_open(&attr, 0, -1), .events = POLLIN};

	assert_true(p.fd >= 0);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(p.revents & POLLHUP, POLLHUP);
	(void)close(p.fd);
}

TEST(disabling_reaches_those_that_inherited)
{
	struct puppet p;
	struct shot s;

	puppet_start(&p);
	shot_begin(&s);
	shot_arm(&s, write_attr(area), p.pid);
	puppet_lead(&p, 't');
	puppet_second(&p, 's');
	shot_take(&s);
	puppet_second(&p, 's');
	shot_count(&s);
	assert_int_equal(s.count.value, 1);
	shot_end(&s);
	puppet_end(&p);
}

TEST(events_survive_exec_unless_told_otherwise)
{
	for (int remove = 0; remove <= live_features.remove_on_exec;
	    remove++) {
		struct perf_event_attr attr = write_attr((void *)FIXED);
		struct puppet p;
		struct shot s;

		attr.remove_on_exec = remove & 1;
		puppet_start(&p);
		shot_begin(&s);
		shot_arm(&s, attr, p.pid);
		puppet_tell(p.lead[1], 'x');
		assert_int_equal(child_wait(p.pid), 0);
		shot_count(&s);
		assert_int_equal(s.count.value, !remove);
		shot_end(&s);
		puppet_hang_up(&p);
	}
}

TEST(removed_events_hang_up_at_exec)
{
	struct perf_event_attr attr = write_attr((void *)FIXED);
	struct puppet p;
	struct shot s;

	if (!live_features.remove_on_exec)
		return;
	puppet_start(&p);
	shot_begin(&s);
	shot_arm(&s, attr, p.pid);
	assert_true(shot_alive(&s));
	puppet_tell(p.lead[1], 'x');
	await(!shot_alive(&s));
	shot_end(&s);
	puppet_end(&p);
}

TEST(a_look_at_the_list_misses)
{
	pid_t *tids = NULL;
	size_t cap = 0;
	struct puppet p;
	struct shot s;
	int n;

	puppet_start(&p);
	shot_begin(&s);
	n = wp_proc_threads(p.pid, &tids, &cap);
	puppet_lead(&p, 't');	/* after the look, before its maker is armed */
	for (int i = 0; i < n; i++)
		shot_arm(&s, write_attr(area), tids[i]);
	puppet_second(&p, 's');
	shot_take(&s);
	assert_int_equal(s.count.value, 0);
	shot_end(&s);
	free(tids);
	puppet_end(&p);
}

TEST(a_second_look_counts_twice)
{
	pid_t *tids = NULL;
	size_t cap = 0;
	struct puppet p;
	struct shot s;
	int n;

	puppet_start(&p);
	shot_begin(&s);
	shot_arm(&s, write_attr(area), p.pid);
	puppet_lead(&p, 't');	/* it inherits, and shows in the next look */
	assert_int_equal(n = wp_proc_threads(p.pid, &tids, &cap), 2);
	for (int i = 0; i < n; i++)
		if (tids[i] != p.pid)
			shot_arm(&s, write_attr(area), tids[i]);
	puppet_second(&p, 's');
	shot_take(&s);
	assert_int_equal(s.count.value, 2);
	shot_end(&s);
	free(tids);
	puppet_end(&p);
}

/* A chain: each thread makes the next and ends.  Those that begin after the
   watch is there store once; the chain ends with the hundredth of them. */
static void *
link_of_chain(void *arg)
{
	int stores = (int)(intptr_t)arg;
	pthread_t next;

	if (shared->armed) {
		area[0] = 1;
		(void)__atomic_add_fetch(&shared->stored, 1, __ATOMIC_SEQ_CST);
		stores++;
	}
	if (stores == 100) {
		(void)__atomic_add_fetch(&shared->chains, 1, __ATOMIC_SEQ_CST);
		return NULL;
	}
	/* EAGAIN: a busy machine has no room for a thread now */
	while (pthread_create(&next, NULL, link_of_chain,
	    (void *)(intptr_t)stores) != 0)
		(void)sched_yield();
	(void)pthread_detach(next);
	return NULL;
}

static void
make_chains(void *unused)
{
	pthread_t thread;

	(void)unused;
	for (int i = 0; i < 4; i++)
		if (pthread_create(&thread, NULL, link_of_chain, NULL) == 0)
			(void)pthread_detach(thread);
	for (;;)
		(void)pause();
}

TEST(a_held_process_is_covered_exactly)
{
	const struct wp_region region = {(uintptr_t)area, 8, WP_WRITE};
	const struct wp_options options = {.count = true};

	for (int round = 0; round < 5; round++) {
		struct wp_perf_count count;
		struct wp_target *target;
		struct wp_cause cause;
		pid_t pid;

		memset(shared, 0, sizeof(*shared));
		pid = child_start(make_chains, NULL);
		assert_int_equal(wp_target_new(&target, &live_features,
		    &options, &cause), 0);
		assert_int_equal(wp_target_watch(target, &region, 1, &cause),
		    0);
		if (wp_target_attach(target, pid, 0, 1, &cause) < 0)
			fail_msg("%s", cause.text);
		shared->armed = 1;
		await(shared->chains == 4);
		assert_int_equal(wp_target_count(target, 0, &count), 0);
		assert_int_equal(shared->stored, 400);
		assert_int_equal(count.value, 400);
		wp_target_free(target);
		child_kill(pid);
	}
}

/* Holding and stopping. */

static void
a_thread_has_one_tracer(void *pid)
{
	struct wp_hold hold = {0};

	_exit(wp_hold_process(&hold, *(pid_t *)pid) == -EPERM ? 0 : 1);
}

TEST(a_traced_process_cannot_be_held)
{
	struct wp_hold hold = {0};
	struct puppet p;

	puppet_start(&p);
	assert_int_equal(wp_hold_process(&hold, p.pid), 0);
	assert_int_equal(child_wait(child_start(a_thread_has_one_tracer,
	    &p.pid)), 0);
	wp_hold_release(&hold);
	puppet_end(&p);
}

TEST(a_signal_on_its_way_must_be_passed_on)
{
	static const int passed[] = {0, SIGUSR1};

	shared->signals = 0;
	for (int i = 0; i < 2; i++) {
		struct puppet p;
		int status;

		puppet_start(&p);
		puppet_lead(&p, 's');	/* its handler is there */
		assert_int_equal(ptrace(PTRACE_SEIZE, p.pid, 0, 0), 0);
		assert_int_equal(kill(p.pid, SIGUSR1), 0);
		assert_int_equal(waitpid(p.pid, &status, __WALL), p.pid);
		assert_int_equal(WSTOPSIG(status), SIGUSR1);
		assert_int_equal(ptrace(PTRACE_DETACH, p.pid, 0,
		    (void *)(intptr_t)passed[i]), 0);
		puppet_lead(&p, 's');
		assert_int_equal(shared->signals, i);
		puppet_end(&p);
	}
}

/* A tracer that has seen its thread stop, and is killed then. */
struct tracer {
	const struct puppet *puppet;
	bool take;		/* it took the stop: waited for it without
				   WNOWAIT */
};

static void
trace_until_killed(void *arg)
{
	const struct tracer *t = arg;
	siginfo_t info;

	if (ptrace(PTRACE_SEIZE, t->puppet->pid, 0, 0) != 0)
		_exit(1);
	puppet_say(t->puppet);
	(void)waitid(P_PID, (id_t)t->puppet->pid, &info, WSTOPPED |
	    (t->take ? 0 : WNOWAIT));
	puppet_say(t->puppet);
	for (;;)
		(void)pause();
}

TEST(a_stop_that_was_taken_forgets_its_signal)
{
	for (int take = 0; take <= 1; take++) {
		struct puppet p;
		struct tracer t = {&p, take};
		pid_t tracer;

		shared->signals = 0;
		puppet_start(&p);
		puppet_lead(&p, 's');	/* its handler is there */
		tracer = child_start(trace_until_killed, &t);
		puppet_hear(&p);
		assert_int_equal(kill(p.pid, SIGUSR1), 0);
		puppet_hear(&p);
		child_kill(tracer);
		puppet_lead(&p, 's');
		assert_int_equal(shared->signals, !take);
		puppet_end(&p);
	}
}

/* Take a signal that is blocked.  Result: its descriptor; 0: somebody sent it;
   -1: there is none. */
static int
take_signal(const sigset_t *signals)
{
	const struct timespec now = {0};
	siginfo_t info;

	if (sigtimedwait(signals, &info, &now) < 0)
		return -1;
	return info.si_code > 0 ? info.si_fd : 0;
}

TEST(a_thread_keeps_one_of_each_signal)
{
	struct perf_event_attr attr = write_attr(area);
	sigset_t urgent, before;
	int fd;

	(void)sigemptyset(&urgent);
	(void)sigaddset(&urgent, SIGURG);
	(void)sigprocmask(SIG_BLOCK, &urgent, &before);
	fd = wp_perf_open(&attr, gettid(), -1);
	assert_true(fd > 0);
	assert_int_equal(wp_perf_signal(fd, gettid(), SIGURG), 0);
	*area = 1;
	assert_int_equal(tgkill(getpid(), gettid(), SIGURG), 0);
	assert_int_equal(take_signal(&urgent), fd);
	assert_int_equal(take_signal(&urgent), -1);
	*area = 2;
	assert_int_equal(kill(getpid(), SIGURG), 0);	/* its process's */
	assert_int_equal(take_signal(&urgent), fd);
	assert_int_equal(take_signal(&urgent), 0);
	(void)close(fd);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
}

/* Let threads go on that have something to report, and count that: by their
   place in the hold. */
static void
let_report(const struct wp_hold *hold, unsigned reports[2])
{
	struct wp_trace trace;

	for (size_t i = 0; i < hold->n; i++)
		if (wp_trace_next(hold->thread[i].tid, &trace) > 0) {
			reports[i]++;
			wp_trace_continue(trace.tid, 0);
		}
}

TEST(sigcont_stops_all_traced_threads)
{
	static const int signals[] = {SIGURG, SIGWINCH, SIGCHLD, SIGCONT};
	struct wp_hold hold = {0};
	unsigned reports[2] = {0, 0};
	struct puppet p;
	size_t first;

	puppet_start(&p);
	puppet_lead(&p, 't');
	assert_int_equal(wp_trace_process(&hold, p.pid, false), 0);
	assert_int_equal(hold.n, 2);
	first = hold.thread[0].tid != p.pid;
	await((let_report(&hold, reports), reports[0] > 0 && reports[1] > 0));
	for (size_t i = 0; i < 4; i++) {
		const bool all = signals[i] == SIGCONT;

		reports[0] = reports[1] = 0;
		assert_int_equal(tgkill(p.pid, hold.thread[1 - first].tid,
		    signals[i]), 0);
		await((let_report(&hold, reports), reports[1 - first] > 0 &&
		    (reports[first] > 0 || !all)));
		assert_int_equal(reports[first] > 0, all);
	}
	(void)kill(p.pid, SIGKILL);
	(void)waitpid(hold.thread[1 - first].tid, NULL, __WALL);
	(void)child_wait(p.pid);
	puppet_hang_up(&p);
	free(hold.thread);
}

TEST(a_stopped_process_stays_stopped)
{
	struct wp_hold hold = {0};
	struct puppet p;

	puppet_start(&p);
	assert_int_equal(kill(p.pid, SIGSTOP), 0);
	await(state_of(p.pid) == 'T');
	assert_int_equal(wp_hold_process(&hold, p.pid), 0);
	wp_hold_release(&hold);
	await(state_of(p.pid) == 'T');
	assert_int_equal(kill(p.pid, SIGCONT), 0);
	puppet_lead(&p, 's');
	puppet_end(&p);
}

/* In a child: wait for a pipe, by poll or by epoll; what that gave. */
struct waiter {
	int fd;
	volatile bool there;
	volatile int polled, epolled;	/* results, or -errno */
};

static void
wait_by_poll(void *arg)
{
	struct waiter *w = arg;
	struct pollfd p = {w->fd, POLLIN, 0};
	int n;

	w->there = true;
	n = poll(&p, 1, CHILD_PATIENCE_MS);
	w->polled = n < 0 ? -errno : n;
}

static void
wait_by_epoll(void *arg)
{
	struct waiter *w = arg;
	struct epoll_event event = {.events = EPOLLIN};
	int n, fd = epoll_create1(EPOLL_CLOEXEC);

	(void)epoll_ctl(fd, EPOLL_CTL_ADD, w->fd, &event);
	w->there = true;
	n = epoll_wait(fd, &event, 1, CHILD_PATIENCE_MS);
	w->epolled = n < 0 ? -errno : n;
}

/* Hold a waiter while it waits, let it go, and then end its waiting. */
static void
hold_waiter(struct waiter *w, void (*wait)(void *))
{
	struct wp_hold hold = {0};
	int fd[2];
	pid_t pid;

	assert_int_equal(pipe(fd), 0);
	w->fd = fd[0];
	w->there = false;
	pid = child_start(wait, w);
	await(w->there && state_of(pid) == 'S');
	assert_int_equal(wp_hold_process(&hold, pid), 0);
	wp_hold_release(&hold);
	nap_us(1000);
	assert_int_equal(write(fd[1], "", 1), 1);
	assert_int_equal(child_wait(pid), 0);
	(void)close(fd[0]);
	(void)close(fd[1]);
}

TEST(being_held_interrupts_few_system_calls)
{
	struct waiter *w = shared_memory(sizeof(*w));

	hold_waiter(w, wait_by_poll);
	assert_int_equal(w->polled, 1);
	hold_waiter(w, wait_by_epoll);
	assert_int_equal(w->epolled, -EINTR);
	(void)munmap(w, sizeof(*w));
}

/* One hold, made by a thread that ends with it. */
struct vfork_hold {
	pid_t pid;
	int result;
	bool stopped;
	struct shot *shot;
};

static void *
hold_vfork_parent(void *arg)
{
	struct vfork_hold *v = arg;
	struct wp_hold hold = {0};

	v->result = wp_hold_process(&hold, v->pid);
	if (v->result != 0)
		return NULL;
	v->stopped = hold.thread[0].stopped;
	shot_arm(v->shot, write_attr(area), v->pid);
	wp_hold_release(&hold);
	return NULL;
}

TEST(a_vfork_parent_cannot_stop_and_is_covered)
{
	struct vfork_hold v = {0};
	pthread_t thread;
	struct puppet p;
	struct shot s;

	puppet_start(&p);
	shot_begin(&s);
	v.shot = &s;
	v.pid = p.pid;
	puppet_lead(&p, 'v');	/* it sleeps until its child has ended */
	await(state_of(p.pid) == 'D');
	assert_int_equal(pthread_create(&thread, NULL, hold_vfork_parent, &v),
	    0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(v.result, 0);
	assert_false(v.stopped);
	puppet_second(&p, 'q');	/* the child ends */
	puppet_hear(&p);	/* the parent goes on */
	puppet_lead(&p, 's');
	shot_take(&s);
	assert_int_equal(s.count.value, 1);
	shot_end(&s);
	puppet_end(&p);
}

static void
hold_for_ever(void *arg)
{
	struct puppet *p = arg;
	struct wp_hold hold = {0};

	if (wp_hold_process(&hold, p->pid) != 0)
		_exit(1);
	puppet_say(p);
	for (;;)
		(void)pause();
}

TEST(held_threads_continue_when_the_holder_is_killed)
{
	struct puppet p;
	pid_t holder;

	puppet_start(&p);
	puppet_lead(&p, 't');
	holder = child_start(hold_for_ever, &p);
	puppet_hear(&p);
	assert_int_equal(state_of(p.pid), 't');
	child_kill(holder);
	puppet_lead(&p, 's');
	puppet_second(&p, 's');
	puppet_end(&p);
}

static uint64_t
pc_of(pid_t tid)
{
	struct user_regs_struct regs;

	assert_int_equal(ptrace(PTRACE_GETREGS, tid, 0, &regs), 0);
	return regs.rip;
}

TEST(a_signal_stops_at_the_very_instruction)
{
	struct perf_event_attr attr = attr_of(slot(HW_BREAKPOINT_X,
	    (void *)(uintptr_t)landmark, sizeof(long)), (struct wp_options){0});
	struct wp_perf_count count;
	struct wp_hold hold = {0};
	struct wp_stop stop;
	struct puppet p;
	int fd;

	attr.inherit = attr.inherit_thread = 0;
	shared->passed = 0;
	puppet_start(&p);
	assert_int_equal(wp_hold_process(&hold, p.pid), 0);
	assert_true((fd = wp_perf_open(&attr, p.pid, -1)) >= 0);
	assert_int_equal(wp_perf_signal(fd, p.pid, SIGURG), 0);
	puppet_tell(p.lead[1], 'l');
	assert_int_equal(wp_hold_continue(&hold, NULL, &stop), 0);
	assert_false(stop.ended);
	assert_int_equal(stop.signal, SIGURG);
	assert_int_equal(stop.fd, fd);
	assert_int_equal(pc_of(p.pid), (uintptr_t)landmark);
	assert_int_equal(shared->passed, 0);
	wp_hold_release(&hold);	/* with the signal, which it ignores */
	puppet_hear(&p);
	assert_int_equal(shared->passed, 1);
	assert_int_equal(wp_perf_read(fd, live_format(), &count),
	    0);
	assert_int_equal(count.value, 1);
	(void)close(fd);
	puppet_end(&p);
}

/* Permission. */

struct permission {
	int user, kernel;	/* what opening gave: 0 or -errno */
};

static void
ask_permission(void *arg)
{
	struct perf_event_attr attr = write_attr(area);
	struct permission *p = arg;
	int fd;

	if (setresuid(NOBODY, NOBODY, NOBODY) != 0 && getuid() == 0)
		_exit(1);
	attr.exclude_kernel = 1;
	fd = wp_perf_open(&attr, 0, -1);
	p->user = fd < 0 ? fd : 0;
	attr.exclude_kernel = 0;
	fd = wp_perf_open(&attr, 0, -1);
	p->kernel = fd < 0 ? fd : 0;
}

TEST(paranoid_2_leaves_ordinary_users_the_user_part)
{
	struct permission *p = shared_memory(sizeof(*p));

	assert_int_equal(child_wait(child_start(ask_permission, p)), 0);
	if (live_features.paranoid <= 1)
		assert_int_equal(p->kernel, 0);
	else
		assert_int_equal(p->kernel, -EACCES);
	if (live_features.paranoid <= 2)
		assert_int_equal(p->user, 0);
	(void)munmap(p, sizeof(*p));
}

/* Features that are not used. */

static void
do_ten_thousand(void *at)
{
	for (unsigned i = 0; i < 10000; i++)
		do_store(at);
}

TEST(what_other_events_show_breakpoints_do_not)
{
	struct perf_event_attr attr = write_attr(&area[0]);
	struct perf_event_mmap_page *page;
	struct shot s;
	int fd;

	shoot(&s, attr, do_store, (void *)(uintptr_t)&area[0]);
	assert_int_equal(s.samples, 1);
	/* the count is set back, and the sample remains */
	assert_int_equal(ioctl(s.events.event[0].fd, PERF_EVENT_IOC_RESET, 0),
	    0);
	for (size_t i = 0; i < s.events.n; i++)
		assert_int_equal(ioctl(s.events.event[i].fd,
		    PERF_EVENT_IOC_RESET, 0), 0);
	shot_count(&s);
	assert_int_equal(s.count.value, 0);
	shot_end(&s);

	attr.precise_ip = 3;
	shoot(&s, attr, do_store, (void *)(uintptr_t)&area[0]);
	assert_int_equal(s.samples, 1);
	shot_end(&s);

	attr.precise_ip = 0;
	attr.freq = 1;
	attr.sample_freq = 1000;
	shoot(&s, attr, do_ten_thousand, (void *)(uintptr_t)&area[0]);
	assert_int_equal(s.count.value, 10000);
	assert_true(s.samples + s.lost < 5000);
	shot_end(&s);

	attr = write_attr(&area[0]);
	attr.sample_type |= PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY |
	    PERF_SAMPLE_BRANCH_USER;
	assert_int_equal(wp_perf_open(&attr, 0, -1), -EOPNOTSUPP);

	attr = write_attr(&area[0]);
	attr.inherit = attr.inherit_thread = 0;
	assert_true((fd = wp_perf_open(&attr, 0, -1)) >= 0);
	assert_int_equal(wp_perf_map(fd, 4096, &page), 0);
	assert_int_equal(page->cap_user_rdpmc, 0);
	assert_int_equal(ioctl(fd, PERF_EVENT_IOC_SET_FILTER, "ip == 1"), -1);
	assert_int_equal(errno, EINVAL);
	wp_perf_unmap(page, 4096);
	(void)close(fd);
}

int
main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--exec") == 0)
		return store_at_fixed();
	puppet_word = area;
	puppet_call = landmark;
	puppet_signals = &shared->signals;
	return run_live_tests();
}

#else

SKIP_TESTS("these are facts of x86-64")

#endif
