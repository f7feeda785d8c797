/*
 * truth: what libwatchpoint reports of accesses that are known.
 *
 *	truth JOB	exit status 0: all of it; 77: impossible here, and why
 *	truth facts	what this kernel and processor do: lines NAME|VALUE
 *	truth bytes	no job: store to each of the 16 bytes called `byte`
 *	truth twins	the same to both of `twin`, by one instruction; it ends
 *			with standard input
 *	truth atomic	the same: add to `word` by ldxr and stxr
 *
 * WATCHPOINT_DELIVERY and WATCHPOINT_HELPER are the library's.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/drain.h"
#include "attach/target.h"
#include "os/perf.h"
#include "probe/probe.h"
#include "watchpoint.h"

#define OWN __attribute__((noinline))
#define SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Whether the processor traps before the access. */
#ifdef __aarch64__
#define BEFORE 1
#else
#define BEFORE 0
#endif

enum { FAILED = 1, NOT_HERE = 77, STORES = 20, THREADS = 3 };

static volatile long word;
_Alignas(16) static volatile char byte[16];
static volatile long sink;

static __attribute__((format(printf, 2, 3), noreturn)) void
end(int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vprintf(format, args);
	va_end(args);
	(void)putchar('\n');
	exit(status);
}

#define EXPECT(got, wanted)						\
	do {								\
		const long got_ = (long)(got), wanted_ = (long)(wanted); \
									\
		if (got_ != wanted_)					\
			end(FAILED, "line %d: %s is %ld, not %ld",	\
			    __LINE__, #got, got_, wanted_);		\
	} while (0)

static OWN void
store(long value)
{
	word = value;
}

static OWN void
load(void)
{
	sink = word;
}

static OWN void
called(void)
{
	sink++;
}

/* --- what the handler has seen --- */

static long hits, wrong_value, wrong_place, wrong_thread;
static long expected;	/* the value that the handler finds; < 0: any */

/* The code of a small function. */
static int
within(const void *pc, void (*function)(long))
{
	const uintptr_t at = (uintptr_t)pc, begin = (uintptr_t)function;

	return at >= begin && at < begin + 64;
}

static void
see(const struct wp_hit *hit, void *unused)
{
	(void)unused;
	__atomic_fetch_add(&hits, 1, __ATOMIC_SEQ_CST);
	if (expected < 0)
		return;
	wrong_value += word != expected;
	wrong_place += !within(hit->pc, store);
	wrong_thread += hit->tid != gettid();
}

static struct wp_watch *
watch(const volatile void *addr, size_t len, enum wp_access access,
    uint64_t limit)
{
	const struct wp_attr attr = {
		.size = sizeof(attr), .addr = addr, .len = len,
		.access = access, .handler = see, .limit = limit,
	};
	struct wp_watch *w;

	hits = 0;
	expected = -1;
	if (wp_open(&attr, &w) != 0)
		end(FAILED, "wp_open: %s", wp_cause());
	return w;
}

/* Each store is a hit: after it, in it, in its thread. */
static void
writes(void)
{
	struct wp_watch *w = watch(&word, sizeof(word), WP_WRITE, 0);
	uint64_t count;

	for (long i = 0; i < STORES; i++) {
		expected = BEFORE ? word : 3 * i;
		store(3 * i);
		EXPECT(hits, i + 1);
	}
	EXPECT(wrong_value, 0);
	EXPECT(wrong_place, 0);
	EXPECT(wrong_thread, 0);
	EXPECT(wp_count(w, &count), 0);
	EXPECT(count, STORES);
	wp_close(w);
	store(1);
	EXPECT(hits, STORES);
}

/* --- threads --- */

static pthread_barrier_t all;
static int waits;

static void *
work(void *unused)
{
	if (waits)
		(void)pthread_barrier_wait(&all);
	if (waits)
		(void)pthread_barrier_wait(&all);
	for (long i = 0; i < STORES; i++)
		store(i);
	return unused;
}

static void
start(pthread_t thread[THREADS])
{
	for (int i = 0; i < THREADS; i++)
		EXPECT(pthread_create(&thread[i], NULL, work, NULL), 0);
}

static void
join(const pthread_t thread[THREADS])
{
	for (int i = 0; i < THREADS; i++)
		EXPECT(pthread_join(thread[i], NULL), 0);
}

static void
threads(void)
{
	pthread_t thread[THREADS];
	struct wp_watch *w;

	waits = 1;
	EXPECT(pthread_barrier_init(&all, NULL, THREADS + 1), 0);
	start(thread);
	(void)pthread_barrier_wait(&all);
	w = watch(&word, sizeof(word), WP_WRITE, 0);
	(void)pthread_barrier_wait(&all);
	join(thread);
	EXPECT(hits, THREADS * STORES);
	wp_close(w);
}

static void
new_threads(void)
{
	struct wp_watch *w = watch(&word, sizeof(word), WP_WRITE, 0);
	pthread_t thread[THREADS];

	start(thread);
	join(thread);
	EXPECT(hits, THREADS * STORES);
	wp_close(w);
}

/* --- kinds of access --- */

static void
reads(void)
{
	struct wp_watch *w = watch(&word, sizeof(word), WP_READ, 0);

	for (int i = 0; i < STORES; i++)
		load();
	EXPECT(hits, STORES);
	wp_close(w);
}

static void
execution(void)
{
	struct wp_watch *w = watch((const void *)(uintptr_t)called, 1, WP_EXEC,
	    0);

	for (int i = 0; i < STORES; i++)
		called();
	EXPECT(hits, STORES);
	wp_close(w);
}

/* Store to each byte, one after the other. */
static OWN void
store_bytes(void)
{
	for (size_t i = 0; i < sizeof(byte); i++)
		byte[i] = (char)i;
}

/* 16 bytes by one instruction. */
static _Alignas(16) volatile long twin[2];

static OWN void
store_twins(void)
{
	for (long i = 0; i < STORES; i++)
#ifdef __aarch64__
		__asm__ volatile("stp %1,%1,[%0]" : : "r"(twin), "r"(i) :
		    "memory");
#else
		__asm__ volatile("movq %1,%%xmm0; punpcklqdq %%xmm0,%%xmm0;"
		    "movdqa %%xmm0,(%0)" : : "r"(twin), "r"(i) :
		    "memory", "xmm0");
#endif
}

static void
twins(void)
{
	char c;

	store_twins();
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
}

static void
pair(void)
{
	struct wp_watch *first = watch(&twin[0], sizeof(twin[0]), WP_WRITE, 0);
	struct wp_watch *second = watch(&twin[1], sizeof(twin[1]), WP_WRITE,
	    0);

	store_twins();
	EXPECT(hits, 2 * STORES);
	wp_close(first);
	wp_close(second);
}

static OWN void
add_exclusively(void)
{
#ifdef __aarch64__
	long value;
	int failed;

	for (long i = 0; i < STORES; i++)
		__asm__ volatile("1: ldxr %0,[%2]; add %0,%0,#1;"
		    "stxr %w1,%0,[%2]; cbnz %w1,1b" : "=&r"(value),
		    "=&r"(failed) : "r"(&word) : "memory");
#else
	word += STORES;
#endif
	if (word != STORES)
		end(FAILED, "%ld, not %d", word, STORES);
}

/* Under a watch stxr would fail for ever. */
static void
exclusive(void)
{
	struct wp_watch *w = watch(&word, sizeof(word), WP_ACCESS, 0);

#ifndef __aarch64__
	end(NOT_HERE, "x86-64 has no such instructions");
#endif
	add_exclusively();
	wp_close(w);
}

/* Each length that the slots cover, each place. */
static void
odd_lengths(void)
{
	struct wp_watch *w;

	for (size_t len = 1; len <= 8; len++)
		for (size_t at = 0; at + len <= sizeof(byte); at += 3) {
			w = watch(byte + at, len, WP_WRITE, 0);
			store_bytes();
			if (hits != (long)len)
				end(FAILED, "%zu bytes at +%zu: %ld hits", len,
				    at, hits);
			wp_close(w);
		}
}

static void
kernel_writes(void)
{
	struct wp_watch *w = watch(&word, sizeof(word), WP_WRITE, 0);
	int fd[2];

#ifdef __aarch64__
	end(NOT_HERE, "arm64 does not report the kernel's accesses");
#endif
	EXPECT(pipe(fd), 0);
	EXPECT(write(fd[1], "12345678", sizeof(word)), sizeof(word));
	EXPECT(read(fd[0], (void *)(uintptr_t)&word, sizeof(word)),
	    sizeof(word));
	EXPECT(hits > 0, 1);
	wp_close(w);
}

/* --- the rest of the library's calls --- */

static void
freeze(void)
{
	WP_FREEZE(word) {
		WP_PERMIT(word) {
			store(1);
		}
		EXPECT(wp_stray_count(), 0);
		store(2);
		EXPECT(wp_stray_count(), 1);
	}
	store(3);
	EXPECT(wp_stray_count(), 1);
	EXPECT(wp_stray_missed(), 0);
}

/* Moved, disabled and enabled between two hits, by turns. */
static void
control_once(void)
{
	static volatile long other;
	struct wp_watch *w = watch(&other, sizeof(other), WP_WRITE, 0);
	uint64_t count;

	other = 1;
	EXPECT(hits, 1);
	EXPECT(wp_move(w, &word), 0);
	other = 2;
	store(1);
	EXPECT(hits, 2);
	EXPECT(wp_disable(w), 0);
	store(2);
	EXPECT(hits, 2);
	EXPECT(wp_enable(w), 0);
	store(3);
	EXPECT(hits, 3);
	EXPECT(wp_count(w, &count), 0);
	EXPECT(count, 3);
	wp_close(w);
}

static void
control(void)
{
	struct wp_watch *w;

	for (unsigned i = 0; i < STORES; i++)
		control_once();
	w = watch(&word, sizeof(word), WP_WRITE, 2);
	for (long i = 0; i < STORES; i++)
		store(i);
	EXPECT(hits, 2);
	wp_close(w);
}

/* --- another process --- */

static pid_t
child(int go)
{
	pid_t pid = fork();
	char c;

	if (pid != 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (read(go, &c, 1) != 1)
		_exit(1);
	for (long i = 0; i < STORES; i++)
		store(i);
	_exit(0);
}

static void
outside(void)
{
	const struct wp_options options = {.stack = 0};
	const struct wp_region region = {.addr = (uintptr_t)&word,
	    .len = sizeof(word), .access = WP_WRITE};
	const struct perf_event_header *record;
	struct wp_features features;
	struct wp_perf_count count;
	struct wp_target *target;
	struct wp_cause cause;
	int go[2], status;
	long samples = 0, in_store = 0;
	pid_t pid;

	EXPECT(pipe(go), 0);
	pid = child(go[0]);
	if (wp_probe_features(&features, &cause) != 0 ||
	    wp_target_new(&target, &features, &options, &cause) != 0 ||
	    wp_target_watch(target, &region, 1, &cause) != 0 ||
	    wp_target_attach(target, pid, 0, 1, &cause) != 0)
		end(FAILED, "%s", cause.text);
	EXPECT(write(go[1], "", 1), 1);
	EXPECT(waitpid(pid, &status, 0), pid);
	EXPECT(status, 0);
	wp_target_stop(target);
	while ((record = wp_rings_next(wp_target_rings(target),
	    UINT64_MAX)) != NULL)
		if (record->type == PERF_RECORD_SAMPLE) {
			const uint64_t *field = (const void *)(record + 1);

			samples++;
			in_store += within((const void *)(uintptr_t)field[1],
			    store);
		}
	EXPECT(samples, STORES);
	EXPECT(in_store, STORES);
	EXPECT(wp_target_count(target, 0, &count), 0);
	EXPECT(count.value, STORES);
	wp_target_free(target);
}

/* --- deliveries --- */

/* Whether this kernel has what came with Linux 5.13. */
static int
since_5_13(void)
{
	struct utsname name;
	int major = 0, minor = 0;

	EXPECT(uname(&name), 0);
	EXPECT(sscanf(name.release, "%d.%d", &major, &minor), 2);
	return major > 5 || (major == 5 && minor >= 13);
}

static void
sigtrap(void)
{
#ifdef __aarch64__
	end(NOT_HERE, "arm64 traps before the access: async is used");
#endif
	if (!since_5_13())
		end(NOT_HERE, "sigtrap came with Linux 5.13");
	(void)setenv("WATCHPOINT_DELIVERY", "sigtrap", 1);
	writes();
}

static void
async(void)
{
	(void)setenv("WATCHPOINT_DELIVERY", "async", 1);
	writes();
}

static void
ptrace_delivery(void)
{
	(void)setenv("WATCHPOINT_DELIVERY", "ptrace", 1);
	writes();
}

/* --- facts --- */

static volatile sig_atomic_t signals;

static void
count_signal(int unused)
{
	(void)unused;
	signals++;
}

/* How many of three REFRESHes, each followed by a store, had their signal. */
static int
refreshed(struct perf_event_attr *attr, int revive)
{
	const struct f_owner_ex owner = {F_OWNER_TID, gettid()};
	uint64_t period = 1;
	int fd = wp_perf_open(attr, 0, -1);

	signals = 0;
	if (fd < 0 || fcntl(fd, F_SETFL, O_ASYNC) != 0 ||
	    fcntl(fd, F_SETSIG, SIGURG) != 0 ||
	    fcntl(fd, F_SETOWN_EX, &owner) != 0)
		return -1;
	for (int i = 0; i < 3; i++) {
		(void)ioctl(fd, PERF_EVENT_IOC_REFRESH, 1);
		if (revive)
			(void)ioctl(fd, PERF_EVENT_IOC_PERIOD, &period);
		store(i);
	}
	(void)close(fd);
	return signals;
}

static void
facts(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT, .size = sizeof(attr),
		.bp_type = HW_BREAKPOINT_W, .bp_len = sizeof(word),
		.bp_addr = (uintptr_t)&word, .sample_period = 1,
		.disabled = 1, .exclude_kernel = 1, .wakeup_events = 1,
	};
	struct wp_features has;
	struct wp_cause cause;

	(void)signal(SIGURG, count_signal);
	if (wp_probe_features(&has, &cause) != 0)
		end(FAILED, "%s", cause.text);
	printf("debug registers|%u\n", wp_probe_all_slots());
	printf("sigtrap events|%s\n", has.sigtrap ? "yes" : "no");
	printf("events that follow threads, not children|%s\n",
	    has.inherit_thread ? "yes" : "no");
	printf("events that end at execve(2)|%s\n",
	    has.remove_on_exec ? "yes" : "no");
	printf("how many of three REFRESHes arm|%d\n", refreshed(&attr, 0));
	printf("... each followed by PERIOD|%d\n", refreshed(&attr, 1));
}

static const struct {
	const char *name;
	void (*run)(void);
} jobs[] = {
	{"in_sigtrap", sigtrap},
	{"in_async", async},
	{"in_ptrace", ptrace_delivery},
	{"in_threads", threads},
	{"in_new_threads", new_threads},
	{"in_reads", reads},
	{"in_execution", execution},
	{"in_odd", odd_lengths},
	{"in_pair", pair},
	{"in_exclusive", exclusive},
	{"in_kernel", kernel_writes},
	{"in_freeze", freeze},
	{"in_control", control},
	{"outside", outside},
	{"facts", facts},
	{"bytes", store_bytes},
	{"twins", twins},
	{"atomic", add_exclusively},
};

int
main(int argc, char **argv)
{
	for (size_t i = 0; i < SIZE(jobs); i++)
		if (argc == 2 && strcmp(argv[1], jobs[i].name) == 0) {
			jobs[i].run();
			return 0;
		}
	end(2, "usage: truth JOB");
}
