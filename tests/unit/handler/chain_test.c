/*
 * chain: signals that do not come from the library.  Each scenario is run in a
 * process with the library's handler and in one without, and the program must
 * not see a difference.
 */
#include "test.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "child.h"
#include "handler/trap.h"
#include "arming/delivery.h"
#include "program/table.h"

/* What a program sees; shared with the child. */
struct seen {
	unsigned calls;
	int sig, code, value;
	bool has_info;
	uint64_t mask;		/* in the handler */
	uint64_t mask_after;
	bool reset;		/* to SIG_DFL, at the handler's end */
	bool nested;		/* the handler was interrupted by itself */
	bool moved;		/* it changed where the thread goes on */
	int error;		/* errno afterwards */
	bool lived;
};
static struct seen *seen;

enum action { ACT_DEFAULT, ACT_IGNORE, ACT_HANDLER, ACT_INFO };

struct scenario {
	const char *name;
	enum action action;
	int flags;		/* more sa_flags */
	bool masks;		/* SIGUSR1, in the handler */
	bool blocked;		/* SIGUSR2, by the thread */
	void (*trigger)(int sig);
	bool again;		/* the handler raises it itself */
};

static const struct scenario *now_run;
static bool ours;		/* our handler is installed */

static uint64_t
mask_now(void)
{
	uint64_t mask = 0;

	(void)syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, sizeof(mask));
	return mask;
}

/* Whether the program's action is gone. */
static bool
is_default(int sig)
{
	struct sigaction action;

	(void)sigaction(sig, NULL, &action);
	if (ours)
		action = sig == SIGTRAP ?
		    wp_program_action(&wp_state.old_trap) :
		    wp_program_action(&wp_state.old_signal);
	return (action.sa_flags & SA_SIGINFO) == 0 &&
	    action.sa_handler == SIG_DFL;
}

static void
note(int sig)
{
	static volatile bool inside;

	seen->nested |= inside;
	inside = true;
	seen->sig = sig;
	seen->mask = mask_now();
	seen->reset = is_default(sig);
	if (++seen->calls == 1 && now_run->again)
		(void)syscall(SYS_tgkill, getpid(), gettid(), sig);
	inside = false;
}

static void
note_info(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *uc = context;

	note(sig);
	seen->has_info = true;
	seen->code = info->si_code;
	if (info->si_code == SI_QUEUE)
		seen->value = info->si_value.sival_int;
#if defined(__x86_64__)
	seen->moved = uc->uc_mcontext.gregs[REG_RIP] != 0;
#else
	seen->moved = uc != NULL;
#endif
	errno = 99;
}

static void
by_kill(int sig)
{
	(void)kill(getpid(), sig);
}

static void
by_tgkill(int sig)
{
	(void)syscall(SYS_tgkill, getpid(), gettid(), sig);
}

static void
by_queue(int sig)
{
	(void)sigqueue(getpid(), sig, (union sigval){.sival_int = 4711});
}

/* As TRAP_PERF of somebody else's event. */
static void
by_perf(int sig)
{
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	info.si_signo = sig;
	info.si_code = 6;
	(void)syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), sig, &info);
}

static void
by_breakpoint(int sig)
{
	(void)sig;
#if defined(__x86_64__)
	__asm__ volatile("int3");
#elif defined(__aarch64__)
	__asm__ volatile("brk #0");
#endif
}

static void
act(int sig, const struct scenario *s)
{
	struct sigaction action = {.sa_flags = s->flags};

	(void)sigemptyset(&action.sa_mask);
	if (s->masks)
		(void)sigaddset(&action.sa_mask, SIGUSR1);
	switch (s->action) {
	case ACT_DEFAULT:
		action.sa_handler = SIG_DFL;
		break;
	case ACT_IGNORE:
		action.sa_handler = SIG_IGN;
		break;
	case ACT_HANDLER:
		action.sa_handler = note;
		break;
	case ACT_INFO:
		action.sa_sigaction = note_info;
		action.sa_flags |= SA_SIGINFO;
		break;
	}
	(void)sigaction(sig, &action, NULL);
}

static int under_test;		/* the signal */

static void
program(void *arg)
{
	const struct rlimit none = {0, 0};
	sigset_t set;

	(void)arg;
	(void)setrlimit(RLIMIT_CORE, &none);
	(void)sigemptyset(&set);
	if (now_run->blocked)
		(void)sigaddset(&set, SIGUSR2);
	(void)sigprocmask(SIG_SETMASK, &set, NULL);
	act(under_test, now_run);
	if (ours && wp_trap_install(false) != 0)
		_exit(9);
	errno = 5;
	now_run->trigger(under_test);
	if (now_run->again && now_run->action >= ACT_HANDLER)
		now_run->trigger(under_test);
	seen->error = errno;
	seen->mask_after = mask_now();
	seen->lived = true;
}

static const struct scenario scenarios[] = {
	{"default, killed", ACT_DEFAULT, 0, false, false, by_kill, false},
	{"default, queued", ACT_DEFAULT, 0, false, true, by_queue, false},
	{"default, a breakpoint", ACT_DEFAULT, 0, false, false, by_breakpoint,
	    false},
	{"ignored", ACT_IGNORE, 0, false, false, by_kill, false},
	{"ignored, somebody's perf event", ACT_IGNORE, 0, false, false, by_perf,
	    false},
	{"ignored, a breakpoint", ACT_IGNORE, 0, false, false, by_breakpoint,
	    false},
	{"handled", ACT_HANDLER, 0, false, false, by_tgkill, false},
	{"handled, with a mask", ACT_HANDLER, 0, true, true, by_tgkill, false},
	{"handled once", ACT_HANDLER, (int)SA_RESETHAND, false, false,
	    by_tgkill, false},
	{"handled once, twice", ACT_HANDLER, (int)SA_RESETHAND, false, false,
	    by_tgkill, true},
	{"raised again by the handler", ACT_HANDLER, 0, false, false, by_tgkill,
	    true},
	{"raised again, not deferred", ACT_HANDLER, SA_NODEFER, false, false,
	    by_tgkill, true},
	{"with information", ACT_INFO, 0, false, false, by_kill, false},
	{"with a value", ACT_INFO, 0, true, false, by_queue, false},
#ifdef __x86_64__	/* elsewhere that is executed again, forever */
	{"handled, a breakpoint", ACT_HANDLER, 0, false, false, by_breakpoint,
	    false},
	{"with information, a breakpoint", ACT_INFO, 0, false, true,
	    by_breakpoint, false},
#endif
	{"somebody's perf event", ACT_INFO, 0, false, false, by_perf, false},
};

static int
run_program(const struct scenario *s, bool with, struct seen *out)
{
	int status;

	now_run = s;
	ours = with;
	memset(seen, 0, sizeof(*seen));
	status = child_wait(child_start(program, NULL));
	*out = *seen;
	return status;
}

static void
compare(const struct scenario *s)
{
	struct seen with, without;
	int status = run_program(s, false, &without);

	if (run_program(s, true, &with) != status)
		fail_msg("%s: the wait status is not %#x", s->name, status);
#define SAME(member)							\
	if (with.member != without.member)				\
		fail_msg("%s: " #member " is %llx, not %llx", s->name,	\
		    (unsigned long long)with.member,			\
		    (unsigned long long)without.member)
	SAME(calls);
	SAME(sig);
	SAME(code);
	SAME(value);
	SAME(has_info);
	SAME(mask);
	SAME(mask_after);
	SAME(reset);
	SAME(nested);
	SAME(moved);
	SAME(lived);
	if (with.lived && s->action != ACT_INFO)
		assert_int_equal(with.error, 5);
	SAME(error);
#undef SAME
}

TEST_WITH(a_foreign_sigtrap_does_what_it_did, NULL, children_end)
{
	under_test = SIGTRAP;
	for (unsigned i = 0; i < COUNT(scenarios); i++)
		compare(&scenarios[i]);
}

TEST_WITH(so_does_the_other_signal, NULL, children_end)
{
	under_test = WP_SIGNAL;
	for (unsigned i = 0; i < COUNT(scenarios); i++)
		if (scenarios[i].trigger != by_breakpoint &&
		    scenarios[i].trigger != by_perf)
			compare(&scenarios[i]);
}

/* The scenarios themselves: some die, some are handled. */
TEST_WITH(the_scenarios_are_what_they_say, NULL, children_end)
{
	struct seen s;

	under_test = SIGTRAP;
	assert_int_equal(run_program(&scenarios[0], true, &s) & 0x7f, SIGTRAP);
	assert_int_equal(run_program(&scenarios[5], true, &s) & 0x7f, SIGTRAP);
	assert_int_equal(run_program(&scenarios[3], true, &s), 0);
	assert_int_equal(run_program(&scenarios[6], true, &s), 0);
	assert_int_equal(s.calls, 1);
	assert_int_equal(run_program(&scenarios[13], true, &s), 0);
	assert_int_equal(s.value, 4711);
}

/*
 * Looking after our handlers.
 */

static struct wp_cause cause;

TEST(the_owner_of_the_signal_is_reported)
{
	static const struct {
		const struct wp_delivery *delivery;
		int sig;
		enum action action;
		const char *says;	/* NULL: all is well */
	} cases[] = {
		{&wp_deliver_sigtrap, SIGTRAP, ACT_IGNORE,
		    "SIGTRAP is ignored"},
		{&wp_deliver_sigtrap, SIGTRAP, ACT_DEFAULT, "default action"},
		{&wp_deliver_sigtrap, SIGTRAP, ACT_HANDLER, "handled by"},
		{&wp_deliver_sigtrap, SIGTRAP, ACT_INFO, "handled by"},
		{&wp_deliver_sigtrap, SIGUSR1, ACT_IGNORE, NULL},
		{&wp_deliver_async, SIGTRAP, ACT_IGNORE, NULL},
		{NULL, SIGTRAP, ACT_IGNORE, NULL},
	};
	struct wp_watch *w = &wp_state.watch[0];

	for (unsigned i = 0; i < COUNT(cases); i++) {
		const struct scenario s = {.action = cases[i].action};
		struct sigaction old;

		assert_int_equal(wp_trap_install(false), 0);
		w->delivery = cases[i].delivery;
		atomic_store(&w->serial, w->delivery != NULL);
		assert_int_equal(wp_trap_check(&cause), 0);
		(void)sigaction(cases[i].sig, NULL, &old);
		act(cases[i].sig, &s);
		assert_int_equal(wp_trap_check(&cause), cases[i].says != NULL);
		if (cases[i].says != NULL)
			assert_holds(cause.text, cases[i].says);
		(void)sigaction(cases[i].sig, &old, NULL);
	}
	atomic_store(&w->serial, 0);
}

/* The kernel resets SIGTRAP when a debug register fires that ptrace set. */
TEST(a_reset_handler_is_installed_again)
{
	const struct scenario reset = {.action = ACT_DEFAULT};
	struct wp_watch *w = &wp_state.watch[0];
	struct sigaction action, before;

	assert_int_equal(wp_trap_install(false), 0);
	before = wp_program_action(&wp_state.old_trap);
	w->delivery = &wp_deliver_ptrace;
	atomic_store(&w->serial, 1);
	act(SIGTRAP, &reset);
	assert_int_equal(wp_trap_check(&cause), 0);
	atomic_store(&w->serial, 0);
	(void)sigaction(SIGTRAP, NULL, &action);
	assert_true(wp_trap_is_ours(&action));
	assert_true(wp_program_action(&wp_state.old_trap).sa_handler ==
	    before.sa_handler);
}

int
main(void)
{
	seen = shared_memory(sizeof(*seen));
	return run_all_tests();
}
