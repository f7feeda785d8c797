/*
 * acts: a victim that touches a word in many ways.
 *
 *	acts ACT [ARGUMENT]
 *
 * Says "pid PID word ADDRESS", waits for a line on stdin (not at end of file),
 * acts, says "done N" (how often the word was written, or as the act says), and
 * ends, with status 7, at the next line.  Made without PIE: the word is at the
 * same address in every such process.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "line.h"

#define OWN __attribute__((noinline, noclone))

volatile long word;
struct timespec moment;
static const char *argument;
static volatile long sink;

static long
number(void)
{
	return argument == NULL ? 1 : atol(argument);
}

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

/* One access; on 64-bit Arm, where not every processor has such an instruction,
   a load and a store. */
static OWN void
increment(void)
{
#if defined(__aarch64__)
	word = word + 1;
#else
	__asm__ volatile("incq %0" : "+m"(word));
#endif
}

/* N stores, twice as many loads, and three times as many that are both. */
static OWN long
mix(void)
{
	for (long i = 0; i < number(); i++) {
		store(i);
		load();
		load();
		for (int k = 0; k < 3; k++)
			increment();
	}
	return number();
}

OWN void
called(void)
{
	sink = sink + 1;
}

/* N increments of the word that is the top of the stack. */
static OWN long
on_the_stack(void)
{
	for (long i = 0; i < number(); i++)
#if defined(__aarch64__)	/* sp has to be a multiple of 16 there */
		increment();
#else
		__asm__ volatile("mov %%rsp,%%rbx; lea %0,%%rsp;"
		    "incq (%%rsp); mov %%rbx,%%rsp" : "+m"(word) : : "rbx");
#endif
	return number();
}

#if defined(__aarch64__)
#define STORE "str x1, [x0]"
#define FUNCTION "%function"
#else
#define STORE "mov %rsi,(%rdi)"
#define FUNCTION "@function"
#endif

/* A store and a return, on a page of its own. */
void patched(volatile long *at, long value);
__asm__(".pushsection .text\n"
    "	.p2align 12\n	.type patched, " FUNCTION "\n"
    "patched:\n	" STORE "\n	ret\n"
    "	.size patched, . - patched\n	.p2align 12\n	.popsection");

/* Ten stores of a one, and when told, ten additions by other code at the same
   place. */
static OWN long
patch_itself(void)
{
	uint8_t *code = (uint8_t *)(uintptr_t)patched;

	for (int i = 0; i < 10; i++)
		patched(&word, 1);
	if (!await_line() ||
	    mprotect(code, 4096, PROT_READ | PROT_WRITE) != 0)
		abort();
	code[1] = 0x01;
	if (mprotect(code, 4096, PROT_READ | PROT_EXEC) != 0)
		abort();
	for (int i = 0; i < 10; i++)
		patched(&word, 1);
	return 20;
}

/* N calls of called(); the word is not touched. */
static OWN long
call(void)
{
	for (long i = 0; i < number(); i++)
		called();
	return number();
}

static OWN void
by_memcpy(void)
{
	memcpy((void *)&word, (const void *)&sink, sizeof(word));
}

static OWN void
by_memset(void)
{
	memset((void *)&word, 1, sizeof(word));
}

static OWN void
by_strcpy(void)
{
	strcpy((char *)&word, "1234567");
}

static long compared;

static OWN int
compare(const void *a, const void *b)
{
	static void (*const by[])(void) = {by_memcpy, by_memset, by_strcpy};

	by[compared++ % 3]();
	return *(const int *)a - *(const int *)b;
}

/* How often a function of the C library wrote, called by a function that the C
   library called; each may store more than once. */
static OWN long
library(void)
{
	int n[] = {3, 1, 2, 5, 4, 9, 8};

	qsort(n, sizeof(n) / sizeof(n[0]), sizeof(n[0]), compare);
	return compared;
}

/* The C library's own code for it is in the vDSO; it writes the moment. */
static OWN long
tell_time(void)
{
	for (long i = 0; i < number(); i++)
		(void)clock_gettime(CLOCK_MONOTONIC, &moment);
	return number();
}

static OWN void
handler(int sig)
{
	store(sig);
}

static OWN long
handle(void)
{
	static char memory[65536];
	const stack_t stack = {.ss_sp = memory, .ss_size = sizeof(memory)};
	struct sigaction action = {.sa_handler = handler};

	(void)sigaltstack(&stack, NULL);
	for (long i = 0; i < number(); i++) {
		action.sa_flags = i % 2 == 0 ? 0 : SA_ONSTACK;
		(void)sigaction(SIGUSR1, &action, NULL);
		(void)raise(SIGUSR1);
	}
	return number();
}

/* N children, which write ten times each; then N writes. */
static OWN long
father(void)
{
	for (long i = 0; i < number(); i++) {
		if (fork() == 0) {
			for (int k = 0; k < 10; k++)
				store(k);
			_exit(0);
		}
		(void)wait(NULL);
		store(i);
	}
	return number();
}

static void *
do_nothing(void *arg)
{
	return arg;
}

/* N times: a write, a thread, a signal, whose handler writes, and a child that
   executes a program. */
static OWN long
stop_often(void)
{
	pthread_t thread;

	(void)signal(SIGUSR1, handler);
	for (long i = 0; i < number(); i++) {
		store(i);
		if (pthread_create(&thread, NULL, do_nothing, NULL) != 0 ||
		    pthread_join(thread, NULL) != 0 || raise(SIGUSR1) != 0)
			abort();
		if (fork() == 0) {
			(void)execl("/bin/true", "true", (char *)NULL);
			_exit(1);
		}
		(void)wait(NULL);
	}
	return 2 * number();
}

/* Before the address is said: a child, and its child.  After the line, each
   writes ten times, and then this process writes N times. */
static int begin[2];

static OWN long
member(void)
{
	char c;

	(void)close(begin[1]);
	while (read(begin[0], &c, 1) > 0)
		;
	(void)wait(NULL);
	for (int i = 0; i < 10; i++)
		store(i);
	return 0;
}

static OWN void
found_family(void)
{
	int there[2];
	char c;

	if (pipe(begin) != 0 || pipe(there) != 0)
		abort();
	if (fork() == 0) {
		(void)fork();
		(void)write(there[1], "", 1);
		_exit((int)member());
	}
	if (read(there[0], &c, 1) != 1 || read(there[0], &c, 1) != 1)
		abort();
}

static OWN long
family(void)
{
	(void)close(begin[1]);
	(void)wait(NULL);
	for (long i = 0; i < number(); i++)
		store(i);
	return number();
}

/* What execve(2) reads. */
_Alignas(8) char self[] = "/proc/self/exe";


static void
execute(const char *act)
{
	(void)execl(self, "acts", act, "100", (char *)NULL);
	_exit(1);
}

/* A child that writes twice, then is another program that writes a lot. */
static OWN long
father_of(const char *program)
{
	if (fork() == 0) {
		store(1);
		store(2);
		execute(program);
	}
	(void)wait(NULL);
	store(3);
	return 1;
}

static OWN long
father_of_another(void)
{
	return father_of("at_once");
}

/* The same of one that waits for lines. */
static OWN long
father_of_writer(void)
{
	return father_of("writer");
}

/* Five writes, then this process is another program that writes a lot. */
static OWN long
become_another(void)
{
	for (int i = 0; i < 5; i++)
		store(i);
	execute("writer");
	return 0;
}

static OWN long
writer(void)
{
	for (long i = 0; i < number(); i++)
		store(i);
	return number();
}

/* A library's writes, by its function plug_write, once it is there. */
static OWN long
load_library(void)
{
	void *plug = dlopen(argument, RTLD_NOW);
	void (*write_by)(volatile long *) = NULL;

	if (plug == NULL || (*(void **)&write_by =
	    dlsym(plug, "plug_write")) == NULL)
		abort();
	for (int i = 0; i < 10; i++)
		write_by(&word);
	return 10;
}

/*
 * A storm of threads, from before the line on: one thread makes others as fast
 * as it can, and threads of a chain make the next and end.  After the line,
 * each writes once, until N have.
 */
static volatile int armed, over;
static long wanted, written;

static void *
strike(void *unused)
{
	(void)unused;
	if (armed && __atomic_fetch_sub(&wanted, 1, __ATOMIC_SEQ_CST) > 0) {
		store(1);
		__atomic_fetch_add(&written, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void *
make_many(void *unused)
{
	pthread_t thread[4];

	while (!over) {
		for (int i = 0; i < 4; i++)
			if (pthread_create(&thread[i], NULL, strike, NULL) != 0)
				abort();
		for (int i = 0; i < 4; i++)
			(void)pthread_join(thread[i], NULL);
	}
	return unused;
}

static void *
make_next(void *unused)
{
	pthread_t thread;

	(void)strike(NULL);
	if (!over && pthread_create(&thread, NULL, make_next, NULL) == 0)
		(void)pthread_detach(thread);
	return unused;
}

static void
storm_begins(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, make_many, NULL) != 0 ||
	    pthread_detach(thread) != 0)
		abort();
	(void)make_next(NULL);
}

static long
storm(void)
{
	long n = number();

	wanted = n;
	armed = 1;
	while (__atomic_load_n(&written, __ATOMIC_SEQ_CST) < n)
		(void)usleep(1000);
	over = 1;
	return n;
}

static void *perform(void *);

/* The first thread ends, another acts. */
static void
lose_head(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, perform, NULL) != 0)
		abort();
	pthread_exit(NULL);
}

static const struct act {
	const char *name;
	void (*before)(void);
	long (*run)(void);
} acts[] = {
	{"mix", NULL, mix},
	{"on_the_stack", NULL, on_the_stack},
	{"patch_itself", NULL, patch_itself},
	{"call", NULL, call},
	{"library", NULL, library},
	{"tell_time", NULL, tell_time},
	{"handle", NULL, handle},
	{"father", NULL, father},
	{"stop_often", NULL, stop_often},
	{"family", NULL, family},
	{"father_of_another", NULL, father_of_another},
	{"father_of_writer", NULL, father_of_writer},
	{"become_another", NULL, become_another},
	{"writer", NULL, writer},
	{"load_library", NULL, load_library},
	{"storm", storm_begins, storm},
	{"headless", lose_head, writer},
};
static const struct act *act;

static void *
perform(void *unused)
{
	(void)unused;
	(void)await_line();
	printf("done %ld\n", act->run());
	fflush(stdout);
	(void)await_line();
	exit(7);
}

int
main(int argc, char **argv)
{
	argument = argc > 2 ? argv[2] : NULL;
	if (argc > 1 && strcmp(argv[1], "at_once") == 0)
		return (int)(writer() - number());
	for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++)
		if (argc > 1 && strcmp(argv[1], acts[i].name) == 0)
			act = &acts[i];
	if (act == NULL)
		return 2;
	if (act->run == family)
		found_family();
	printf("pid %d word %p\n", (int)getpid(), (void *)&word);
	fflush(stdout);
	if (act->before != NULL)
		act->before();
	(void)perform(NULL);
}
