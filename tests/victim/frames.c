/*
 * frames: ways to lay out a stack, to be unwound at every instruction.
 *
 *	frames SCENARIO
 *
 * runs int3, the scenario, int3.
 */
#include <alloca.h>
#include <setjmp.h>
#include <signal.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define OWN __attribute__((noinline, noclone))

static volatile long sink;
static jmp_buf environment;

static OWN long
leaf(long n)
{
	return n + sink;
}

/* Registers live across calls, so that some are saved. */
static OWN long
calls(long a, long b, long c)
{
	const long x = leaf(a), y = leaf(b), z = leaf(c);

	return leaf(x * y) + leaf(y * z) + a + b + c;
}

static OWN long
recursion(long n)
{
	return n == 0 ? calls(1, 2, 3) : recursion(n - 1) + n;
}

static OWN long
variable(size_t n)
{
	char array[n];
	char *more = alloca(n * 2);

	memset(array, 1, n);
	memset(more, 2, n * 2);
	sink = array[n - 1] + more[n];
	return calls(1, n, (long)(intptr_t)more & 1);
}

struct wide {
	alignas(64) long value[8];
};

static OWN void
fill(struct wide *wide)
{
	for (int i = 0; i < 8; i++)
		wide->value[i] = leaf(i);
}

static OWN long
aligned(long n)
{
	struct wide wide;

	fill(&wide);
	return wide.value[n & 7] + calls(n, n, n);
}

/* Both: a frame pointer, and the CFA behind another register. */
static OWN long
aligned_variable(size_t n)
{
	struct wide wide;
	char *more = alloca(n);

	fill(&wide);
	memset(more, 1, n);
	return wide.value[n & 7] + calls((long)n, more[0], more[n - 1]);
}

__attribute__((optimize("no-omit-frame-pointer"))) static OWN long
frame_pointer(long n)
{
	return calls(n, 2, 3) + n;
}

/* Saves registers on one of its ways only. */
static OWN long
shrink_wrapped(long n)
{
	if (n > 0)
		return n;
	return calls(n, leaf(n), 3) + recursion(2);
}

static int
compare(const void *a, const void *b)
{
	return (int)leaf(*(const int *)a - *(const int *)b);
}

static OWN void
callback(void)
{
	int n[] = { 3, 1, 2, 5, 4 };

	qsort(n, 5, sizeof(n[0]), compare);
	sink = n[0];
}

/* The first call of each is bound lazily, from the PLT. */
static OWN void
plt(void)
{
	unsigned seed = 1;

	for (int i = 0; i < 2; i++) {
		sink = rand_r(&seed);
		sink += atoi("12");
	}
}

static OWN void
vdso(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	sink = now.tv_nsec;
}

__attribute__((noreturn)) static OWN void
throw(int n)
{
	sink = n;
	longjmp(environment, 1);
}

/* Ends in the call: the return address is the next function's first byte. */
__attribute__((noreturn)) static OWN void
noreturn(void)
{
	throw(1);
}

static OWN void
jump(void)
{
	if (setjmp(environment) == 0)
		noreturn();
}

static void
handler(int sig)
{
	sink = calls(sig, 2, 3);
}

static OWN void
handled(int flags)
{
	struct sigaction action = { .sa_flags = flags };

	action.sa_handler = handler;
	(void)sigaction(SIGUSR1, &action, NULL);
	(void)raise(SIGUSR1);
}

static OWN void
signal_frame(void)
{
	handled(0);
}

static OWN void
signal_stack(void)
{
	static char memory[65536];
	const stack_t stack = { .ss_sp = memory, .ss_size = sizeof(memory) };

	(void)sigaltstack(&stack, NULL);
	handled(SA_ONSTACK);
}

/* A sigreturn trampoline without unwind information, as musl and Go have. */
void bare_trampoline(void);
__asm__(
    ".text\n"
    "	ret\n"		/* no nop before it: pc - 1 is not in it */
    "	.globl bare_trampoline\n"
    "	.type bare_trampoline, @function\n"
    "bare_trampoline:\n"
#if defined(__x86_64__)
    "	mov $15,%rax\n"
    "	syscall\n"
#else
    "	mov $173,%eax\n"
    "	int $0x80\n"
#endif
    "	.size bare_trampoline, . - bare_trampoline\n");

static OWN void
signal_bare(void)
{
	struct {
		void (*handler)(int);
		unsigned long flags;
		void (*restorer)(void);
		unsigned long mask;
	} action = { handler, 0x04000000, bare_trampoline, 0 };

	(void)syscall(13, SIGUSR1, &action, NULL, sizeof(action.mask));
	(void)raise(SIGUSR1);
}

/* Assembly without unwind information that keeps a frame pointer. */
long bare_frame(long (*fn)(long));
__asm__(
    ".text\n"
    "	.globl bare_frame\n"
    "	.type bare_frame, @function\n"
    "bare_frame:\n"
#if defined(__x86_64__)
    "	push %rbp\n"
    "	mov %rsp,%rbp\n"
    "	sub $32,%rsp\n"
    "	mov %rdi,%rax\n"
    "	mov $5,%edi\n"
    "	call *%rax\n"
#else
    "	push %ebp\n"
    "	mov %esp,%ebp\n"
    "	sub $24,%esp\n"
    "	movl $5,(%esp)\n"
    "	call *8(%ebp)\n"
#endif
    "	leave\n"
    "	ret\n"
    "	.size bare_frame, . - bare_frame\n");

static OWN void
bare(void)
{
	sink = bare_frame(recursion);
}

static void
all_calls(void)
{
	sink = calls(1, 2, 3);
	sink += recursion(5);
	sink += frame_pointer(4);
	sink += shrink_wrapped(-1);
}

static void
all_layouts(void)
{
	sink = variable(40);
	sink += aligned(3);
	sink += aligned_variable(100);
}

static const struct {
	const char *name;
	void (*run)(void);
} scenarios[] = {
	{ "calls", all_calls },
	{ "layouts", all_layouts },
	{ "callback", callback },
	{ "plt", plt },
	{ "vdso", vdso },
	{ "jump", jump },
	{ "signal", signal_frame },
	{ "signal_stack", signal_stack },
	{ "signal_bare", signal_bare },
	{ "bare", bare },
};

int
main(int argc, char **argv)
{
	for (unsigned i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
		if (argc == 2 && strcmp(scenarios[i].name, argv[1]) == 0) {
			__asm__ volatile("int3");
			scenarios[i].run();
			__asm__ volatile("int3");
			return 0;
		}
	return 2;
}
