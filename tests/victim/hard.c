/*
 * hard: a program that watches itself where that is hard.
 *
 *	hard SCENE
 *
 * Each scene touches watched memory in the middle of something that a report
 * must not disturb, and checks that it did not.  Says "counted N", the accesses
 * that the kernel counted, unless it dies as planned.  Status 0, or 1 after the
 * check that failed.
 */
#define _GNU_SOURCE
#include <alloca.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "watchpoint.h"

#define CHECK(condition) do {						\
		if (!(condition)) {					\
			(void)printf("line %d: %s\n", __LINE__,		\
			    #condition);				\
			exit(1);					\
		}							\
	} while (0)

enum {
	ALTERNATE = 65536,		/* bytes of a signal stack */
	NEARLY = 6000,			/* bytes of a stack that are left */
	SCRIBBLED = 20000,		/* bytes of the heap */
	DEEP = 5000,
	THREADS = 50,
	TIMES = 4,
	ALARMS = 20,
	USUAL = 0,
};

static volatile uint64_t word;
static volatile int got;		/* signals of the program's own */

/* What is watched until watched(). */
static struct wp_watch *the_watch;

static void
watch_with(const volatile void *addr, wp_handler *handler)
{
	const struct wp_attr attr = {
		.size = sizeof(attr), .addr = addr, .len = sizeof(word),
		.handler = handler,
		.action = handler != NULL ? WP_PRINT | WP_CALL : USUAL,
	};

	if (wp_open(&attr, &the_watch) < 0) {
		(void)printf("%s\n", wp_cause());
		exit(1);
	}
}

static void
watch(const volatile void *addr)
{
	watch_with(addr, NULL);
}

static uint64_t
watched(void)
{
	uint64_t n = 0;

	CHECK(wp_count(the_watch, &n) == 0);
	wp_close(the_watch);
	(void)printf("counted %llu\n", (unsigned long long)n);
	return n;
}

static void
alternate_stack(void)
{
	const stack_t stack = {
		.ss_sp = malloc(ALTERNATE), .ss_size = ALTERNATE,
	};

	CHECK(stack.ss_sp != NULL && sigaltstack(&stack, NULL) == 0);
}

static void
on_signal(int sig, void (*fn)(int))
{
	struct sigaction action = {.sa_handler = fn, .sa_flags = SA_ONSTACK};

	CHECK(sigaction(sig, &action, NULL) == 0);
}

static void
thread(void *(*fn)(void *), void *arg)
{
	pthread_t id;

	CHECK(pthread_create(&id, NULL, fn, arg) == 0);
	CHECK(pthread_join(id, NULL) == 0);
}

/* --- in the middle of the C library --- */

/* The size of a chunk of the heap is in the word before it. */
static void
in_free(void)
{
	uint64_t *chunk = calloc(1, 5000);
	void *volatile above = malloc(1);

	CHECK(chunk != NULL && above != NULL);
	watch(chunk - 1);
	free(chunk);
	for (size_t i = 1; i < 20; i++)
		free(malloc(200 * i));
	CHECK(watched() > 0);
	free(above);
}

static void
in_printf(void)
{
	FILE *file = fopen("/dev/null", "w");

	CHECK(file != NULL);
	(void)fputs("a buffer", file);
	watch(&file->_IO_write_ptr);
	for (int i = 0; i < TIMES; i++)
		CHECK(fprintf(file, "%d and %f", i, i / 2.0) > 0);
	CHECK(watched() >= TIMES);
	(void)fclose(file);
}

static void
in_dlopen(void)
{
	struct link_map *map = dlopen("librt.so.1", RTLD_NOW);
	void *other;

	CHECK(map != NULL);
	watch(&map->l_next);
	other = dlopen("libutil.so.1", RTLD_NOW);
	CHECK(other != NULL);
	CHECK(dlclose(other) == 0);
	CHECK(watched() >= 2);
}

static void *
touch(void *arg)
{
	word = (uintptr_t)arg;
	return NULL;
}

/* The next thread gets the stack of the last, and the word is at its top, in
   what libc keeps of a thread. */
static void
in_thread_start_and_end(void)
{
	pthread_t last, next;

	CHECK(pthread_create(&last, NULL, touch, NULL) == 0);
	CHECK(pthread_join(last, NULL) == 0);
	watch((uint64_t *)last + 2);
	for (int i = 0; i < TIMES; i++) {
		CHECK(pthread_create(&next, NULL, touch, NULL) == 0);
		CHECK(next == last && pthread_join(next, NULL) == 0);
	}
	CHECK(watched() >= TIMES);
}

static void
at_the_end(void)
{
	word = 1;
	(void)watched();
}

static void
in_atexit(void)
{
	watch(&word);
	CHECK(atexit(at_the_end) == 0);
}

/* --- signals --- */

static void
nest(int sig)
{
	word++;
	if (sig == SIGUSR1)
		CHECK(raise(SIGUSR2) == 0);
	word++;
}

static void
in_handlers(void)
{
	watch(&word);
	on_signal(SIGUSR1, nest);
	on_signal(SIGUSR2, nest);
	CHECK(raise(SIGUSR1) == 0);
	alternate_stack();
	CHECK(raise(SIGUSR1) == 0);
	CHECK(watched() == 8);
}

static void
note(int sig)
{
	(void)sig;
	got++;
}

static void
beside_other_traps(void)
{
	on_signal(SIGTRAP, note);
	watch(&word);
	__asm__ volatile("int3");
	CHECK(raise(SIGTRAP) == 0 && got == 2);
	CHECK(kill(getpid(), SIGTRAP) == 0 && got == 3);
	word = 1;
	CHECK(got == 3 && watched() == 1);
}

static void
count_alarm(int sig)
{
	word++;
	note(sig);
}

static void
under_timers(void)
{
	const struct itimerval often = {{0, 1000}, {0, 1000}}, never = {0};
	uint64_t own = 0;

	watch(&word);
	on_signal(SIGALRM, count_alarm);
	CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
	for (; got < ALARMS; own++)
		__asm__ volatile("incq %0" : "+m"(word));
	CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
	CHECK(watched() == own + (uint64_t)got);
}

/* --- stacks --- */

static __attribute__((noinline)) void
descend(const volatile char *to)
{
	volatile char here[256];

	here[0] = 0;
	if (here - sizeof(here) > to)
		descend(to);
	else
		word = 1;
	here[1] = 0;
}

static void *
fill_stack(void *left)
{
	pthread_attr_t attr;
	void *low;
	size_t size;

	CHECK(pthread_getattr_np(pthread_self(), &attr) == 0);
	CHECK(pthread_attr_getstack(&attr, &low, &size) == 0);
	descend((char *)low + (uintptr_t)left);
	(void)pthread_attr_destroy(&attr);
	return NULL;
}

static void
on_a_nearly_full_stack(void)
{
	watch(&word);
	thread(fill_stack, (void *)(uintptr_t)NEARLY);
	CHECK(watched() == 1);
}

static __attribute__((noinline)) void
recurse(volatile int n)
{
	if (n > 0)
		recurse(n - 1);
	else
		word = 1;
	n++;
}

static void
in_deep_recursion(void)
{
	watch(&word);
	recurse(DEEP);
	CHECK(watched() == 1);
}

static __attribute__((noinline)) void
store_with_sp(uint64_t sp)
{
	__asm__ volatile("mov %%rsp, %%r12\n\tmov %0, %%rsp\n\t"
	    "movq $1, %1\n\tnop\n\tmov %%r12, %%rsp"
	    : : "r"(sp), "m"(word) : "r12", "memory");
}

static void
without_a_stack(void)
{
	static const uint64_t sps[] = {
		0, 0x1234567, 0x8000000000000001, 0xffff800000000000,
		UINT64_MAX,
	};

	alternate_stack();
	watch(&word);
	for (size_t i = 0; i < sizeof(sps) / sizeof(sps[0]); i++)
		store_with_sp(sps[i]);
	CHECK(watched() == sizeof(sps) / sizeof(sps[0]));
}

static void
keeping_registers(void)
{
	uint64_t below, flags;

	watch(&word);
	__asm__ volatile("movq $5, -8(%%rsp)\n\tmovq $6, -120(%%rsp)\n\tstc\n\t"
	    "movq $1, %2\n\tsbb %1, %1\n\tmov -8(%%rsp), %0\n\t"
	    "add -120(%%rsp), %0"
	    : "=&r"(below), "=&r"(flags) : "m"(word) : "cc", "memory");
	CHECK(below == 11 && flags == UINT64_MAX);
	CHECK(watched() == 1);
}

/* --- the end is near --- */

static void
on_a_broken_heap(void)
{
	char *at = malloc(40);

	CHECK(at != NULL);
	(void)printf("counted 2\n");
	watch(&word);
	for (long i = -16; i < SCRIBBLED; i++)
		*(volatile char *)(at + i) = 'A';
	word = 1;
	word = 2;
	_exit(0);
}

static void
before_an_illegal_instruction(void)
{
	watch(&word);
	__asm__ volatile("movq $1, %0\n\tud2" : "=m"(word));
}

static void
before_exit(void)
{
	watch(&word);
	__asm__ volatile("movq $1, %0\n\tsyscall" : "=m"(word)
	    : "a"(SYS_exit_group), "D"(3) : "rcx", "r11", "memory");
}

static void
before_being_killed(void)
{
	const pid_t self = getpid();

	watch(&word);
	__asm__ volatile("movq $1, %0\n\tsyscall" : "=m"(word)
	    : "a"(SYS_kill), "D"(self), "S"(SIGKILL) : "rcx", "r11", "memory");
}

static void
before_abort(void)
{
	watch(&word);
	word = 1;
	abort();
}

static void
before_execve(void)
{
	char *const argv[] = {(char *)"/bin/echo", (char *)"counted 1", NULL};

	watch(&word);
	__asm__ volatile("movq $1, %0\n\tsyscall" : "=m"(word)
	    : "a"(SYS_execve), "D"(argv[0]), "S"(argv), "d"(environ)
	    : "rcx", "r11", "memory");
}

static void
before_a_stack_overflow(void)
{
	volatile char *volatile page;

	watch(&word);
	word = 1;
	for (;;) {
		page = alloca(4096);
		*page = 0;
	}
}

/* --- processes --- */

static void
store_in_children(uint64_t *shared)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		*(volatile uint64_t *)shared = 2;
		_exit(4);
	}
	CHECK(pid > 0 && waitpid(-1, &status, 0) == pid && status == 4 << 8);
	pid = vfork();
	if (pid == 0) {
		*(volatile uint64_t *)shared = 2;
		_exit(5);
	}
	CHECK(pid > 0 && waitpid(-1, &status, 0) == pid && status == 5 << 8);
}

static void
with_children(void)
{
	char *const argv[] = {(char *)"/bin/true", NULL};
	uint64_t *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;
	int status;

	CHECK(shared != MAP_FAILED);
	watch(shared);
	store_in_children(shared);
	CHECK(posix_spawn(&pid, argv[0], NULL, NULL, argv, environ) == 0);
	CHECK(waitpid(-1, &status, 0) == pid && status == 0);
	CHECK(system("exit 6") == 6 << 8);
	CHECK(waitpid(-1, NULL, __WALL) == -1 && errno == ECHILD);
	*(volatile uint64_t *)shared = 1;
	CHECK(watched() == 1);
}

static void
with_few_descriptors(void)
{
	const struct rlimit few = {16, 16};
	const int before = dup(0);

	CHECK(before >= 0 && close(before) == 0);
	on_signal(SIGCHLD, note);
	CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
	watch(&word);
	word = 1;
	CHECK(dup(0) == before && close(before) == 0);
	CHECK(watched() == 1);
	CHECK(got == 0 && waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

/* --- threads --- */

static void *
touch_often(void *arg)
{
	for (int i = 0; i < TIMES; i++)
		(void)touch(arg);
	return NULL;
}

static void
in_many_threads(void)
{
	pthread_t id[THREADS];

	watch(&word);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&id[i], NULL, touch_often, NULL) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(id[i], NULL) == 0);
	CHECK(watched() == THREADS * TIMES);
}

static void *
touch_for_ever(void *arg)
{
	(void)pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	for (;;)
		(void)touch(arg);
	return NULL;
}

/* How often the cancelled ones did is for nobody to know. */
static void
in_cancelled_threads(void)
{
	pthread_t id;
	void *result;

	watch(&word);
	for (int i = 0; i < TIMES; i++) {
		word = 0;
		CHECK(pthread_create(&id, NULL, touch_for_ever, &result) == 0);
		while (word == 0)
			(void)sched_yield();
		CHECK(pthread_cancel(id) == 0);
		CHECK(pthread_join(id, &result) == 0);
		CHECK(result == PTHREAD_CANCELED);
	}
	(void)watched();
}

static void
leave_thread(const struct wp_hit *hit, void *arg)
{
	wp_leave(hit);
	pthread_exit(arg);
}

static void *
touch_and_leave(void *arg)
{
	word = 1;
	CHECK(arg != NULL);
	return NULL;
}

static void
ending_threads_in_a_handler(void)
{
	watch_with(&word, leave_thread);
	for (int i = 0; i < TIMES; i++)
		thread(touch_and_leave, NULL);
	CHECK(watched() == TIMES);
}

#define SCENE(name) {#name, name}
static const struct {
	const char *name;
	void (*play)(void);
} scenes[] = {
	SCENE(in_free), SCENE(in_printf), SCENE(in_dlopen),
	SCENE(in_thread_start_and_end), SCENE(in_atexit), SCENE(in_handlers),
	SCENE(beside_other_traps), SCENE(under_timers),
	SCENE(on_a_nearly_full_stack), SCENE(in_deep_recursion),
	SCENE(without_a_stack), SCENE(keeping_registers),
	SCENE(on_a_broken_heap), SCENE(before_an_illegal_instruction),
	SCENE(before_exit), SCENE(before_being_killed), SCENE(before_abort),
	SCENE(before_execve), SCENE(before_a_stack_overflow),
	SCENE(with_children), SCENE(with_few_descriptors),
	SCENE(in_many_threads), SCENE(in_cancelled_threads),
	SCENE(ending_threads_in_a_handler),
};

int
main(int argc, char **argv)
{
	const struct rlimit no_core = {0};

	(void)setvbuf(stdout, NULL, _IONBF, 0);
	(void)setrlimit(RLIMIT_CORE, &no_core);
	for (size_t i = 0; argc == 2 &&
	    i < sizeof(scenes) / sizeof(scenes[0]); i++)
		if (strcmp(argv[1], scenes[i].name) == 0) {
			scenes[i].play();
			return 0;
		}
	(void)fprintf(stderr, "usage: hard SCENE\n");
	return 2;
}
