/*
 * unwind: programs are single-stepped and unwound at every instruction.  The
 * truth is known from what they did: each call pushed a return address, which
 * stays where it is until sp is above it.
 */
#include "test.h"

#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "capture.h"
#include "command.h"
#include "space/space.h"
#include "unwind/regs.h"
#include "unwind/unwind.h"

#define FRAMES_MAX 64
#define STEPS_MAX 60000
#define TRUTH_MAX 4096
#define VDSO_MAX 512		/* instructions of a function of the vDSO */
#define REPEATED_MAX 1000
#define NARROW_CS 0x23		/* what cs is while 32-bit code runs */
#define MOVED 0x5000		/* bytes */
#define OWN __attribute__((noinline))

static unsigned unwound_elsewhere;	/* samples */

/* --- a program that is stepped --- */

static const struct scenario {
	const char *program, *name;
	unsigned least;		/* instructions that it is known to take */
	bool other_stack;
	/* Where what rows say differs from what the program did, or there are
	   none: in these modules, at so many instructions at the most. */
	const char *excused;
	unsigned excuses;
} scenarios[] = {
	{ "victim/frames", "calls", 150, false, NULL, 0 },
	{ "victim/frames", "layouts", 200, false, NULL, 0 },
	{ "victim/frames", "callback", 100, false, NULL, 0 },
	{ "victim/frames", "plt", 500, false, NULL, 0 },
	{ "victim/frames", "vdso", 500, false, NULL, 0 },
	/* longjmp says that it has arrived before it has */
	{ "victim/frames", "jump", 500, false, "libc.so.6", 12 },
	{ "victim/frames", "signal", 1000, false, NULL, 0 },
	{ "victim/frames", "signal_stack", 1000, true, NULL, 0 },
	/* the trampoline is known by its first instruction only */
	{ "victim/frames", "signal_bare", 1000, false, "frames", 1 },
	/* before the frame pointer is set, and after */
	{ "victim/frames", "bare", 10, false, "frames", 3 },
	/* _Unwind_RaiseException overwrites its own frame before it leaves */
	{ "victim/debug_frame", "calls", 150, false, NULL, 0 },
	{ "victim/throws", NULL, 5000, false, "libgcc_s.so.1", 300 },
	/* the same as a 32-bit program */
	{ "victim/frames_narrow", "calls", 150, false, NULL, 0 },
	{ "victim/frames_narrow", "layouts", 200, false, NULL, 0 },
	/* libc's oldest memcpy does not say that it pushes a register */
	{ "victim/frames_narrow", "callback", 100, false, "libc.so.6", 60 },
	{ "victim/frames_narrow", "plt", 500, false, NULL, 0 },
	/* some of the vDSO's functions have no rows */
	{ "victim/frames_narrow", "vdso", 50, false, "[vdso]", 20 },
	/* where longjmp arrives, arguments are pushed below the slot that the
	   truth takes for one still to be returned to */
	{ "victim/frames_narrow", "jump", 500, false,
	    "libc.so.6 frames_narrow", 12 },
	{ "victim/frames_narrow", "signal", 500, false, NULL, 0 },
	{ "victim/frames_narrow", "signal_stack", 500, true, NULL, 0 },
	{ "victim/frames_narrow", "bare", 10, false, "frames_narrow", 3 },
};

/* A frame that is still to be returned to. */
struct pending {
	struct ex_pc pc;
	uint64_t slot;		/* the return address' own; it is gone once sp
				   is above */
};

struct stepper {
	pid_t pid;
	struct ex_space *space;
	struct ex_process *process;
	struct capture now;
	struct user_regs_struct regs;
	uint64_t word;		/* bytes of what a call pushes */
	struct pending frame[FRAMES_MAX];	/* outermost first */
	unsigned n;
	const struct scenario *scenario;
	unsigned steps, wrong, excused;
	uint64_t vdso[VDSO_MAX];	/* what was checked of the vDSO since it
					   was entered, */
	unsigned nvdso, repeated;	/* and steps that were there again */
};

/* Wait for a stop: SIGTRAP at an int3, another signal that is about to be
   delivered, 0 after a step (into a signal handler too) or execve; -1: none of
   these. */
static int
stopped(struct stepper *s)
{
	siginfo_t info;
	int status;

	if (waitpid(s->pid, &status, 0) != s->pid || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_GETREGS, s->pid, NULL, &s->regs) != 0 ||
	    ptrace(PTRACE_GETSIGINFO, s->pid, NULL, &info) != 0)
		return -1;
	if (WSTOPSIG(status) == SIGTRAP && info.si_code != SI_KERNEL)
		return 0;
	return WSTOPSIG(status);
}

static int
resume(struct stepper *s, int how, int sig)
{
	if (ptrace(how, s->pid, NULL, (void *)(intptr_t)sig) != 0)
		return -1;
	return stopped(s);
}

static bool
begin_program(struct stepper *s, const struct scenario *scenario)
{
	const char *program = scenario->program;

	memset(s, 0, sizeof(*s));
	s->scenario = scenario;
	s->pid = fork();
	if (s->pid == 0) {
		(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		(void)execl(program, program, scenario->name, NULL);
		_exit(127);
	}
	if (s->pid < 0 || stopped(s) != 0 ||
	    resume(s, PTRACE_CONT, 0) != SIGTRAP)
		return false;
	s->space = ex_space_new(EX_LIVE);
	capture_maps(s->space, s->pid);
	s->process = ex_space_process(s->space, s->pid);
	s->word = s->regs.cs == NARROW_CS ? 4 : 8;
	return s->process != NULL;
}

static void
stop(struct stepper *s)
{
	(void)kill(s->pid, SIGKILL);
	(void)waitpid(s->pid, NULL, 0);
	ex_space_free(s->space);
}

static void
push(struct stepper *s, uint64_t slot, uint64_t pc, bool exact, bool signal)
{
	assert_true(s->n < FRAMES_MAX);
	s->frame[s->n++] = (struct pending){ { pc, exact, signal }, slot };
}

static bool same_pc(const struct ex_pc *, const struct ex_pc *);

/* Replace all of a sample but what was read of it, as if its stack were this
   many bytes further up. */
static void
spoil(struct capture *c, const struct capture *good,
    const struct ex_reads *reads, uint64_t moved)
{
	static uint64_t seed = 88172645463325252;

	for (size_t i = 0; i < sizeof(c->regs) / sizeof(c->regs[0]); i++)
		c->regs[i] = seed ^= seed << 13 ^ seed >> 7;
	for (size_t i = 0; i < good->sample.stack_len; i += sizeof(seed)) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		memcpy(c->stack + i, &seed, sizeof(seed));
	}
	for (unsigned i = 0; i < reads->n; i++) {
		const uint32_t place = reads->place[i] & ~EX_READ_ADDRESS;
		const uint64_t value = ex_read_value(&good->sample, place) +
		    (place != reads->place[i] ? moved : 0);

		if ((place & EX_READ_REG) != 0)
			memcpy((uint8_t *)c->regs + (place & ~EX_READ_REG),
			    &value, sizeof(value));
		else if ((place & EX_READ_NARROW) != 0)
			memcpy(c->stack + (place & ~EX_READ_NARROW), &value,
			    sizeof(uint32_t));
		else
			memcpy(c->stack + place, &value, sizeof(value));
	}
	c->sample = good->sample;
	c->sample.user.values = (const uint8_t *)c->regs;
	c->sample.stack = c->stack;
}

/* Whether bytes of an address were also read as something else. */
static bool
is_read_as_both(const struct ex_reads *reads)
{
	for (unsigned i = 0; i < reads->n; i++)
		for (unsigned k = 0; k < reads->n; k++) {
			const uint32_t a = reads->place[i];
			const uint32_t b = reads->place[k] & ~EX_READ_ADDRESS;

			if ((a & EX_READ_ADDRESS) != 0 &&
			    a != reads->place[k] &&
			    (a & ~EX_READ_ADDRESS) - b + 7 < 15)
				return true;
		}
	return false;
}

/* Unwind a sample, and twice more with nothing in it but what that has read,
   there and elsewhere, which gives the same. */
static unsigned
unwind_twice(struct ex_process *process, const struct capture *c,
    struct ex_pc *pc, unsigned max, enum ex_end *end)
{
	static struct ex_reads reads;
	static struct ex_pc again[256];
	static struct capture spoilt;
	const unsigned n = ex_unwind_reads(process, &c->sample, pc, max, end,
	    &reads);
	enum ex_end other;

	if (reads.n > EX_READS_MAX)
		return n;
	for (uint64_t moved = 0; moved <= MOVED; moved += MOVED) {
		if (moved > 0 && (reads.by_sp || is_read_as_both(&reads)))
			break;
		unwound_elsewhere += moved > 0;
		spoil(&spoilt, c, &reads, moved);
		assert_int_equal(ex_unwind(process, &spoilt.sample, again, max,
		    &other), n);
		assert_int_equal(other, *end);
		for (unsigned i = 0; i < n; i++)
			assert_true(same_pc(&pc[i], &again[i]));
	}
	return n;
}

static unsigned
unwind(struct stepper *s, struct ex_pc *pc, enum ex_end *end)
{
	capture_take(&s->now, s->pid, &s->regs, CAPTURE_STACK);
	if (s->word == 4)
		s->now.sample.user.abi = PERF_SAMPLE_REGS_ABI_32;
	return unwind_twice(s->process, &s->now, pc, FRAMES_MAX, end);
}

/* The callers of main: it was entered before anybody looked. */
static void
begin(struct stepper *s)
{
	struct ex_pc pc[FRAMES_MAX];
	enum ex_end end;
	unsigned n = unwind(s, pc, &end);

	assert_int_equal(end, EX_END_OUTERMOST);
	assert_int_equal(n, 4);		/* main, two of libc, _start */
	while (--n > 0)
		push(s, UINT64_MAX, pc[n].pc, false, false);
}

/* What the stack holds, from the interrupted sp and pc before a step. */
static void
follow(struct stepper *s, uint64_t old_sp, uint64_t old_pc)
{
	const uint64_t sp = s->regs.rsp, pc = s->regs.rip;
	uint64_t top = 0;

	(void)capture_read(s->pid, sp, &top, s->word);
	if (sp == old_sp - s->word && top > old_pc + 1 && top <= old_pc + 8 &&
	    pc != top)
		push(s, sp, top, false, false);
	while (s->n > 0 && s->frame[s->n - 1].slot < sp)
		s->n--;
	/* back from a signal: its frame's slot was on the other stack */
	if (s->n > 0 && s->frame[s->n - 1].pc.exact &&
	    s->frame[s->n - 1].pc.pc == pc)
		s->n--;
}

/* A signal was delivered: sp is at its return address, the trampoline's. */
static void
follow_signal(struct stepper *s, uint64_t interrupted)
{
	uint64_t trampoline = 0;

	(void)capture_read(s->pid, s->regs.rsp, &trampoline, s->word);
	/* a 32-bit trampoline drops the handler's argument first */
	push(s, s->regs.rsp + 8, interrupted, true, false);
	push(s, s->regs.rsp, trampoline, false, true);
}

static bool
same_pc(const struct ex_pc *a, const struct ex_pc *b)
{
	return a->pc == b->pc && a->exact == b->exact && a->signal == b->signal;
}

/* Whether the signal frame's own code runs, which frame 0 is then marked by. */
static bool
in_trampoline(const struct stepper *s)
{
	return s->n > 0 && s->frame[s->n - 1].pc.exact;
}

static void
print_pc(const struct stepper *s, const struct ex_pc *pc)
{
	const struct ex_module *module;
	uint64_t vaddr;

	module = ex_process_module(s->process, pc->pc, &vaddr);
	print_message("  %s+%#llx%s%s", module != NULL ?
	    ex_module_name(module) : "?", (unsigned long long)(module != NULL ?
	    vaddr : pc->pc), pc->exact ? " exact" : "",
	    pc->signal ? " signal" : "");
}

/* Show what there is, then what there should be. */
static void
complain(const struct stepper *s, const struct ex_pc *pc, unsigned n,
    const char *end)
{
	unsigned i;

	print_message("unwound:");
	for (i = 0; i < n; i++)
		print_pc(s, &pc[i]);
	print_message(" (%s)\n  truth:  ", end != NULL ? end : "complete");
	for (i = s->n; i-- > 0; )
		print_pc(s, &s->frame[i].pc);
	print_message("\n");
}

/* mov (%esp),%reg; ret: how 32-bit code learns where it is.  That of crt1.o and
   of the vDSO have no rows. */
static bool
is_thunk(const struct stepper *s)
{
	uint8_t code[7];

	if (s->word == 8 || capture_read(s->pid, s->regs.rip - 3, code,
	    sizeof(code)) != sizeof(code))
		return false;
	return (code[0] == 0x8b && code[2] == 0x24 && code[3] == 0xc3) ||
	    (code[3] == 0x8b && code[5] == 0x24 && code[6] == 0xc3);
}

static bool
is_excused(const struct stepper *s)
{
	const char *excused = s->scenario->excused;
	const struct ex_module *module;
	uint64_t vaddr;

	module = ex_process_module(s->process, s->regs.rip, &vaddr);
	return excused != NULL && module != NULL &&
	    strstr(excused, ex_module_name(module)) != NULL;
}

/*
 * Compare with what is true.  On a signal's own stack the copy does not reach
 * what was interrupted: its callers are then missing, and that is said.
 */
static void
check(struct stepper *s)
{
	struct ex_pc pc[FRAMES_MAX], first = { s->regs.rip, true, false };
	enum ex_end end;
	unsigned i, n = unwind(s, pc, &end), expected = s->n + 1;
	bool good = n > 0;

	first.signal = in_trampoline(s);
	for (i = 1; s->scenario->other_stack && i < expected; i++)
		if (s->frame[s->n - i].pc.exact)
			expected = i + 1;
	good = good && n == expected && same_pc(&pc[0], &first) &&
	    end == (expected < s->n + 1 ? EX_END_STACK : EX_END_OUTERMOST);
	for (i = 1; good && i < n; i++)
		good = same_pc(&pc[i], &s->frame[s->n - i].pc);
	if (good || is_thunk(s))
		return;
	if (is_excused(s))
		s->excused++;
	else if (s->wrong++ < 3)
		complain(s, pc, n, ex_end_text(end));
}

/* Whether this instruction of the vDSO was checked in this call of it. */
static bool
is_repeated(struct stepper *s)
{
	const uint64_t pc = s->regs.rip;
	const struct ex_module *module;
	uint64_t vaddr;

	module = ex_process_module(s->process, pc, &vaddr);
	if (module == NULL || strcmp(ex_module_name(module), "[vdso]") != 0) {
		s->nvdso = s->repeated = 0;
		return false;
	}
	for (unsigned i = 0; i < s->nvdso; i++)
		if (s->vdso[i] == pc)
			return true;
	if (s->nvdso < VDSO_MAX)
		s->vdso[s->nvdso++] = pc;
	return false;
}

/* Step from one int3 to the next, and unwind at each instruction.  The vDSO
   reads the time again if a tick of the clock came between: if steps are slow
   it does so for ever, and is let go. */
static void
step_through(struct stepper *s)
{
	int sig = 0;

	begin(s);
	while (s->steps++ < STEPS_MAX) {
		const uint64_t sp = s->regs.rsp, pc = s->regs.rip;
		const int sent = sig;

		sig = resume(s, PTRACE_SINGLESTEP, sent);
		assert_true(sig >= 0);
		if (sig == SIGTRAP)
			return;
		if (sent != 0)
			follow_signal(s, pc);
		else
			follow(s, sp, pc);
		if (!is_repeated(s)) {
			check(s);
		} else if (++s->repeated > REPEATED_MAX) {
			assert_int_equal(resume(s, PTRACE_CONT, 0), SIGTRAP);
			return;
		}
	}
	fail_msg("no end after %u steps", s->steps);
}

static void
unwinds_every_instruction(void **state)
{
	const struct scenario *scenario = *state;
	struct stepper s;

	if (strstr(scenario->program, "narrow") != NULL)
		skip_unless_narrow_runs(scenario->program);
	if (!begin_program(&s, scenario))
		fail_msg("%s does not run", scenario->program);
	step_through(&s);
	stop(&s);
	assert_true(s.steps >= scenario->least);
	assert_true(s.excused <= scenario->excuses);
	assert_int_equal(s.wrong, 0);
}

/* --- this program, caught by an int3 --- */

static struct {
	struct capture sample;
	size_t max;			/* of the stack's bytes to take */
	void *truth[TRUTH_MAX];		/* what backtrace(3) says */
	int n;
} caught;

static struct ex_pc out[TRUTH_MAX];

static void
on_trap(int sig, siginfo_t *info, void *context)
{
	const struct user_regs_struct regs = capture_regs(context);
	int i, n;

	(void)sig;
	(void)info;
	capture_take(&caught.sample, getpid(), &regs, caught.max);
	n = backtrace(caught.truth, TRUTH_MAX);
	for (i = 0; i < n; i++)
		if ((uintptr_t)caught.truth[i] == regs.rip)
			break;
	caught.n = n - i;
	memmove(caught.truth, caught.truth + i,
	    (size_t)caught.n * sizeof(caught.truth[0]));
}

static struct ex_process *
this_process(struct ex_space **space)
{
	*space = ex_space_new(EX_LIVE);
	assert_non_null(*space);
	capture_maps(*space, getpid());
	return ex_space_process(*space, getpid());
}

/* Call fn, which is caught with at most max bytes of its stack. */
static void
catch(long (*fn)(long), long arg, size_t max)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO }, old;

	caught.max = max;
	action.sa_sigaction = on_trap;
	(void)sigaction(SIGTRAP, &action, &old);
	(void)fn(arg);
	(void)sigaction(SIGTRAP, &old, NULL);
}

/* Unwind what was caught; the result agrees with what is true as far as it
   goes. */
static unsigned
unwind_caught(unsigned max, enum ex_end *end)
{
	struct ex_space *space;
	struct ex_process *process = this_process(&space);
	unsigned i, n;

	n = ex_unwind(process, &caught.sample.sample, out, max, end);
	ex_space_free(space);
	for (i = 0; i < n && i < (unsigned)caught.n; i++)
		assert_int_equal(out[i].pc, (uintptr_t)caught.truth[i]);
	return n;
}

static volatile long sink;

static OWN long
trap(long n)
{
	__asm__ volatile("int3");
	return n + sink;
}

static OWN long
deep(long n)
{
	return n == 0 ? trap(n) : deep(n - 1) + sink;
}

static void *
thread(void *arg)
{
	sink = deep(3);
	return arg;
}

static OWN long
in_thread(long n)
{
	pthread_t id;

	assert_int_equal(pthread_create(&id, NULL, thread, NULL), 0);
	assert_int_equal(pthread_join(id, NULL), 0);
	return n;
}

static void
on_stack(char *stack, size_t size, void (*fn)(void))
{
	static ucontext_t here, there;

	assert_int_equal(getcontext(&there), 0);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = size;
	there.uc_link = &here;
	makecontext(&there, fn, 0);
	assert_int_equal(swapcontext(&here, &there), 0);
}

static void
context(void)
{
	sink = deep(2);
}

static OWN long
in_context(long n)
{
	static char stack[65536];

	on_stack(stack, sizeof(stack), context);
	return n;
}

static void
trap_handler(int sig)
{
	sink = trap(sig);
}

static void
interrupted(void)
{
	(void)raise(SIGUSR1);
}

/* A handler whose stack is above the one that it interrupts. */
static OWN long
on_signal_stack(long n)
{
	static struct {
		char low[65536], high[65536];
	} memory;
	const stack_t high = {
		.ss_sp = memory.high, .ss_size = sizeof(memory.high)
	};
	const stack_t none = { .ss_flags = SS_DISABLE };
	struct sigaction action = { .sa_flags = SA_ONSTACK }, old;

	action.sa_handler = trap_handler;
	assert_int_equal(sigaltstack(&high, NULL), 0);
	assert_int_equal(sigaction(SIGUSR1, &action, &old), 0);
	on_stack(memory.low, sizeof(memory.low), interrupted);
	(void)sigaction(SIGUSR1, &old, NULL);
	(void)sigaltstack(&none, NULL);
	return n;
}

/* The whole stack, as backtrace(3) sees it too. */
static void
assert_whole(enum ex_end expected)
{
	enum ex_end end;
	unsigned n = unwind_caught(TRUTH_MAX, &end);

	assert_int_equal(end, expected);
	assert_int_equal(n, caught.n);
}

static void
reaches_the_outermost(void **state)
{
	(void)state;
	assert_null(ex_end_text(EX_END_OUTERMOST));
	catch(deep, 5, CAPTURE_STACK);
	assert_whole(EX_END_OUTERMOST);
	assert_true(caught.n > 8);
	catch(in_thread, 0, CAPTURE_STACK);
	assert_whole(EX_END_OUTERMOST);
	/* libc makes the return address up, and it is in no function */
	catch(in_context, 0, CAPTURE_STACK);
	assert_whole(EX_END_NO_CFI);
}

static void
stops_where_the_copy_ends(void **state)
{
	enum ex_end end;
	unsigned n;

	(void)state;
	catch(deep, 3000, CAPTURE_STACK);
	n = unwind_caught(TRUTH_MAX, &end);
	assert_int_equal(end, EX_END_STACK);
	assert_true(n > 100 && n < 3000);
	catch(deep, 3, 0);
	assert_int_equal(unwind_caught(TRUTH_MAX, &end), 1);
	assert_int_equal(end, EX_END_STACK);
	assert_holds(ex_end_text(end), "stack truncated");
}

static void
stops_where_another_stack_begins(void **state)
{
	enum ex_end end;
	unsigned n;

	(void)state;
	catch(on_signal_stack, 0, CAPTURE_STACK);
	n = unwind_caught(TRUTH_MAX, &end);
	assert_int_equal(end, EX_END_STACK);
	assert_int_equal(n, 4);	/* trap, handler, signal frame, interrupted */
	assert_true(out[2].signal && out[3].exact);
}

static void
stops_at_the_depth_asked_for(void **state)
{
	enum ex_end end;
	unsigned n;

	(void)state;
	catch(deep, 5, CAPTURE_STACK);
	n = unwind_caught(TRUTH_MAX, &end);
	assert_int_equal(unwind_caught(n, &end), n);
	assert_int_equal(end, EX_END_OUTERMOST);
	assert_int_equal(unwind_caught(n - 1, &end), n - 1);
	assert_int_equal(end, EX_END_DEPTH);
	assert_int_equal(unwind_caught(0, &end), 0);
	assert_int_equal(end, EX_END_DEPTH);
}

/* Something that a stack may hold: noise, a pointer to code or to itself. */
static uint64_t
word(unsigned *seed)
{
	const uint64_t *regs = caught.sample.regs;
	const uint64_t noise = (uint64_t)rand_r(seed);

	switch (noise & 7) {
	case 0:
		return 0;
	case 1:
		return noise << 33 | noise;
	case 2:
		return regs[PERF_REG_X86_IP] + (noise >> 3) % 4096;
	case 3:
		return (uintptr_t)caught.truth[(noise >> 3) % caught.n];
	default:
		return regs[PERF_REG_X86_SP] + (noise >> 3) % CAPTURE_STACK;
	}
}

static void
stands_any_stack(void **state)
{
	static struct capture good;
	struct capture *bad = &caught.sample;
	struct ex_space *space;
	struct ex_process *process = this_process(&space);
	unsigned round, i, seed = 1;
	enum ex_end end;

	(void)state;
	catch(deep, 20, 4096);
	good = *bad;
	for (round = 0; round < 20000; round++) {
		const unsigned words = 1 + round % 64;

		for (i = 0; i < words; i++) {
			const uint64_t value = word(&seed);

			memcpy(bad->stack + rand_r(&seed) % 512 * 8, &value, 8);
		}
		if (round % 3 == 0)
			bad->regs[rand_r(&seed) % PERF_REG_X86_64_MAX] =
			    word(&seed);
		assert_in_range(unwind_twice(process, bad, out, 256, &end), 1,
		    256);
		memcpy(bad->regs, good.regs, sizeof(bad->regs));
		memcpy(bad->stack, good.stack, 4096);
	}
	ex_space_free(space);
}

/* --- stacks made by hand --- */

#define SP UINT64_C(0x7ffd00000000)
#define JIT UINT64_C(0x200000000000)

struct made {
	struct capture c;
	struct ex_space *space;
	struct ex_process *process;
};

/* A sample at pc, which belongs to no module, with fp and a stack of words. */
static void
make(struct made *m, uint64_t fp, const uint64_t *words, size_t n)
{
	const struct user_regs_struct regs = {
		.rip = JIT, .rsp = SP, .rbp = fp
	};

	capture_take(&m->c, getpid(), &regs, 0);
	memcpy(m->c.stack, words, n * sizeof(*words));
	m->c.sample.stack_len = m->c.sample.stack_asked = n * sizeof(*words);
	m->process = this_process(&m->space);
}

/* Code that says it has a frame pointer, and that no call leads to; code that
   says it saved its caller's where no copy reaches; and code whose caller's
   frame is found by an expression of a register and of memory, by an sp that
   was saved, by sp alone, and by the call that was made before it. */
extern const char framed[], far[], by_expression[], by_saved[], by_sp[],
    by_call[];
__asm__(
    ".text\n"
    "	.type framed_function, @function\n"
    "framed_function:\n"
    "	.cfi_startproc\n"
    "	.cfi_def_cfa rbp, 16\n"
    "	.cfi_offset rbp, -16\n"
    "	.skip 32, 0x90\n"
    "	.globl framed\n"
    "	.hidden framed\n"
    "framed:\n"
    "	nop\n"
    "	.cfi_endproc\n"
    "	.size framed_function, . - framed_function\n"

    "	.type far_function, @function\n"
    "far_function:\n"
    "	.cfi_startproc\n"
    "	.cfi_offset rbp, 4096\n"
    "	.globl far\n"
    "	.hidden far\n"
    "far:\n"
    "	nop\n"
    "	.cfi_endproc\n"
    "	.size far_function, . - far_function\n"

    "	.cfi_startproc\n"
    "	.cfi_escape 0x0f, 5, 0x73, 8, 6, 0x30, 0x22\n"	/* breg3 8, deref,
							   lit0, plus */
    "	.skip 32, 0x90\n"
    "	.globl by_expression\n"
    "	.hidden by_expression\n"
    "by_expression:\n"
    "	nop\n"
    "	.cfi_endproc\n"

    "	.cfi_startproc\n"
    "	.cfi_def_cfa_offset 32\n"
    "	.cfi_offset rsp, -24\n"
    "	.skip 32, 0x90\n"
    "	.globl by_saved\n"
    "	.hidden by_saved\n"
    "by_saved:\n"
    "	nop\n"
    "	.cfi_endproc\n"

    "	.cfi_startproc\n"
    "	.skip 32, 0x90\n"
    "	.globl by_sp\n"
    "	.hidden by_sp\n"
    "by_sp:\n"
    "	nop\n"
    "	.cfi_endproc\n"

    "	.cfi_startproc\n"
    "	.skip 32, 0x90\n"
    "	syscall\n"
    "	.cfi_endproc\n"
    "	.globl by_call\n"
    "	.hidden by_call\n"
    "by_call:\n"
    "	nop\n");

/* What a frame is found by is read, wherever it comes from: each sample is also
   unwound with nothing in it but that. */
static void
reads_what_frames_are_found_by(void **state)
{
	const uint64_t caller = (uintptr_t)by_sp;
	const struct {
		uint64_t pc, rax, rbx, word[8];
		unsigned n;
	} cases[] = {
		{ (uintptr_t)by_expression, 0, SP,
		    { 7, SP + 24, caller, 0, 7, 7, 7, 7 }, 2 },
		{ (uintptr_t)by_saved, 0, 0,
		    { 7, SP + 40, 7, caller, 7, caller, 0, 7 }, 3 },
		{ (uintptr_t)by_call, (uint64_t)-ENOSYS, 0,
		    { caller, 0, 7, 7, 7, 7, 7, 7 }, 2 },
		{ (uintptr_t)by_call, 1, 0,
		    { caller, 0, 7, 7, 7, 7, 7, 7 }, 1 },
	};
	struct made m;
	enum ex_end end;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		make(&m, 0, cases[i].word, 8);
		m.c.regs[PERF_REG_X86_IP] = cases[i].pc;
		m.c.regs[PERF_REG_X86_AX] = cases[i].rax;
		m.c.regs[PERF_REG_X86_BX] = cases[i].rbx;
		assert_int_equal(unwind_twice(m.process, &m.c, out, 256, &end),
		    cases[i].n);
		assert_int_equal(end, cases[i].n == 1 ? EX_END_NO_CFI :
		    EX_END_OUTERMOST);
		ex_space_free(m.space);
	}
}

/* A frame that says its caller is itself. */
static void
stops_at_a_loop(void **state)
{
	const uint64_t words[6] = { SP, (uintptr_t)framed };
	struct made m;
	enum ex_end end;

	(void)state;
	make(&m, SP, words, 6);
	m.c.regs[PERF_REG_X86_IP] = (uintptr_t)framed;
	assert_int_equal(unwind_twice(m.process, &m.c, out, 256, &end), 2);
	assert_int_equal(end, EX_END_BAD);
	ex_space_free(m.space);
}

/* The caller's frame cannot be found without a register that was not had. */
static void
stops_where_a_register_is_missing(void **state)
{
	const uint64_t words[6] = { (uintptr_t)framed };
	struct made m;
	enum ex_end end;

	(void)state;
	make(&m, SP, words, 6);
	m.c.regs[PERF_REG_X86_IP] = (uintptr_t)far;
	assert_int_equal(unwind_twice(m.process, &m.c, out, 256, &end), 2);
	assert_int_equal(end, EX_END_STACK);

	/* not sampled at all */
	m.c.regs[PERF_REG_X86_IP] = (uintptr_t)framed;
	m.c.sample.user.mask = 1 << PERF_REG_X86_SP | 1 << PERF_REG_X86_IP;
	m.c.sample.user.values =
	    (const uint8_t *)&m.c.regs[PERF_REG_X86_SP];
	assert_int_equal(unwind_twice(m.process, &m.c, out, 256, &end), 1);
	assert_int_equal(end, EX_END_BAD);
	ex_space_free(m.space);
}

static OWN uint64_t
a_return_address(void)
{
	return (uintptr_t)__builtin_return_address(0);
}

static void
follows_frame_pointers(void **state)
{
	const uint64_t ra = a_return_address();
	static const uint8_t data[32] = { [11] = 0xe8 };	/* a call? */
	const uint64_t no_ra = (uintptr_t)framed;
	const uint64_t no_code = (uintptr_t)data + 16;
	const struct {
		uint64_t fp, word[6];
		unsigned n;	/* frames at least */
		enum ex_end end;
	} chains[] = {
		/* two of code made at run time, called by this program */
		{ SP, { SP + 24, JIT + 64, 0, SP + 40, ra, 0 }, 3,
		    EX_END_STACK },
		{ SP + 8, { 0, SP + 999, ra, 0, 0, 0 }, 2, EX_END_STACK },
		/* no return address at its end; no end; backwards; nowhere */
		{ SP, { SP + 24, JIT + 64, 0, SP + 40, no_ra, 0 }, 1,
		    EX_END_NO_MODULE },
		{ SP, { SP + 24, no_code, 0, SP + 40, ra, 0 }, 1,
		    EX_END_NO_MODULE },
		{ SP, { SP + 16, JIT, SP + 32, JIT, 0, JIT }, 1,
		    EX_END_NO_MODULE },
		{ SP + 16, { 0, ra, SP, JIT, 0, ra }, 1, EX_END_NO_MODULE },
		{ SP + 4, { ra, ra, ra, ra, ra, ra }, 1, EX_END_NO_MODULE },
		{ SP - 8, { ra, ra, ra, ra, ra, ra }, 1, EX_END_NO_MODULE },
		{ SP + 40, { ra, ra, ra, ra, ra, ra }, 1, EX_END_NO_MODULE },
		{ UINT64_MAX - 7, { ra, ra, ra, ra, ra, ra }, 1,
		    EX_END_NO_MODULE },
	};
	struct made m;
	enum ex_end end;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(chains); i++) {
		make(&m, chains[i].fp, chains[i].word, 6);
		assert_int_equal(unwind_twice(m.process, &m.c, out, 256, &end),
		    chains[i].n);
		assert_int_equal(end, chains[i].end);
		ex_space_free(m.space);
	}
}

/* Calls whose return address is at the end of the bytes, and what is none. */
static void
tells_calls(void **state)
{
	static const struct {
		bool call;
		uint8_t len, code[8];
	} codes[] = {
		{ true, 5, { 0xe8, 1, 2, 3, 4 } },
		{ true, 2, { 0xff, 0xd0 } },			/* *%rax */
		{ true, 3, { 0x41, 0xff, 0xd4 } },		/* *%r12 */
		{ true, 2, { 0xff, 0x13 } },			/* *(%rbx) */
		{ true, 3, { 0xff, 0x53, 0x18 } },		/* *24(%rbx) */
		{ true, 6, { 0xff, 0x93, 1, 2, 3, 4 } },
		{ true, 6, { 0xff, 0x15, 1, 2, 3, 4 } },	/* *(%rip) */
		{ true, 3, { 0xff, 0x14, 0xc8 } },		/* *(,%rax,8) */
		{ true, 4, { 0xff, 0x54, 0x24, 8 } },		/* *8(%rsp) */
		{ true, 7, { 0xff, 0x94, 0x24, 1, 2, 3, 4 } },
		{ true, 7, { 0xff, 0x14, 0xc5, 1, 2, 3, 4 } },
		{ false, 4, { 0xe8, 1, 2, 3 } },
		{ false, 5, { 0xe9, 1, 2, 3, 4 } },		/* jmp */
		{ false, 2, { 0xff, 0xe0 } },			/* jmp *%rax */
		{ false, 2, { 0xff, 0x30 } },			/* push */
		{ false, 2, { 0xff, 0x53 } },
		{ false, 2, { 0xff, 0x14 } },
		{ false, 1, { 0xff } },
		{ false, 0, { 0 } },
	};
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(codes); i++)
		assert_int_equal(ex_regs_after_call(codes[i].code,
		    codes[i].len), codes[i].call);
}

static void
does_with_what_there_is(void **state)
{
	const uint64_t chain[] = {
		PERF_CONTEXT_KERNEL, UINT64_C(0xffffffff81000010),
		UINT64_C(0xffffffff81000020), PERF_CONTEXT_USER, 0x1000, 0x2000,
		0x3000,
	};
	const uint64_t none[6] = { 0 };
	struct made m;
	struct ex_sample *sample = &m.c.sample;
	enum ex_end end;

	(void)state;
	make(&m, 0, none, 6);
	assert_int_equal(ex_unwind(m.process, sample, out, 9, &end), 1);
	assert_int_equal(end, EX_END_NO_MODULE);

	/* a 32-bit program */
	sample->user.abi = PERF_SAMPLE_REGS_ABI_32;
	assert_int_equal(ex_unwind(m.process, sample, out, 9, &end), 1);
	assert_int_equal(end, EX_END_NO_MODULE);
	assert_int_equal(out[0].pc, JIT & UINT32_MAX);

	/* registers without the pc: no better than none */
	sample->user.abi = PERF_SAMPLE_REGS_ABI_64;
	sample->user.mask &= ~(UINT64_C(1) << PERF_REG_X86_IP);
	sample->ip = 0x4000;
	assert_int_equal(ex_unwind(m.process, sample, out, 9, &end), 1);
	assert_int_equal(end, EX_END_NO_REGS);
	assert_int_equal(out[0].pc, 0x4000);

	/* frame pointers that the kernel followed */
	sample->callchain = (const uint8_t *)chain;
	sample->callchain_len = COUNT(chain);
	assert_int_equal(ex_unwind(m.process, sample, out, 9, &end), 3);
	assert_int_equal(end, EX_END_NO_REGS);
	assert_true(out[0].exact && !out[1].exact && !out[2].exact);
	assert_int_equal(out[2].pc, 0x3000);
	assert_int_equal(ex_unwind_kernel(sample, out, 9), 2);
	assert_int_equal(out[1].pc, chain[2]);
	assert_int_equal(ex_unwind_kernel(sample, out, 1), 1);

	/* nothing of the user's */
	sample->callchain_len = 2;
	sample->ip = chain[1];
	assert_int_equal(ex_unwind(m.process, sample, out, 9, &end), 0);
	assert_int_equal(end, EX_END_NO_REGS);
	sample->callchain_len = 0;
	assert_int_equal(ex_unwind_kernel(sample, out, 9), 1);
	assert_int_equal(out[0].pc, chain[1]);
	ex_space_free(m.space);
}

#define STEPPED(i) { "unwinds every instruction: " #i, \
	unwinds_every_instruction, NULL, NULL, \
	(void *)(uintptr_t)&scenarios[i] }

int
main(void)
{
	const struct CMUnitTest tests[] = {
		STEPPED(0), STEPPED(1), STEPPED(2), STEPPED(3), STEPPED(4),
		STEPPED(5), STEPPED(6), STEPPED(7), STEPPED(8), STEPPED(9),
		STEPPED(10), STEPPED(11), STEPPED(12), STEPPED(13),
		STEPPED(14), STEPPED(15), STEPPED(16), STEPPED(17),
		STEPPED(18), STEPPED(19), STEPPED(20),
		cmocka_unit_test(reaches_the_outermost),
		cmocka_unit_test(stops_where_the_copy_ends),
		cmocka_unit_test(stops_where_another_stack_begins),
		cmocka_unit_test(stops_at_a_loop),
		cmocka_unit_test(stops_where_a_register_is_missing),
		cmocka_unit_test(reads_what_frames_are_found_by),
		cmocka_unit_test(stops_at_the_depth_asked_for),
		cmocka_unit_test(stands_any_stack),
		cmocka_unit_test(follows_frame_pointers),
		cmocka_unit_test(tells_calls),
		cmocka_unit_test(does_with_what_there_is),
	};

	return cmocka_run_group_tests_name("unwind", tests, NULL, NULL);
}
