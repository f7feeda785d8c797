/*
 * trap: the signal handler.
 *
 * Signal safety.  All that a handler runs is in the files that trap.h names, in
 * channel_post.c, in what they call of perf.c, and in the deliveries' functions
 * count, disable and rearm.  Since an access can be in the middle of malloc(3),
 * it calls no function of libc that is not async-signal-safe, and none that is
 * a cancellation point; tests/script/trap_safe.sh checks the objects for that.
 * It keeps its own use of the stack below 1.5 KiB, takes no lock, and reads the
 * program's memory, except for the watches, by wp_peek only.  The one exception
 * is when the processes that armed the watches have died: arming/lifeline.c.
 *
 * From a signal to its effects:
 *
 *	identify	which watches the signal names; signals of others go to
 *			chain.c
 *	account		which other watches the step touched: account.c
 *	classify	drops accesses that are permitted or over the limit; the
 *			rest are hits
 *	report		into a cell of the channel; without a helper by
 *			fallback_report.c
 *	callbacks	the watches' handlers
 *
 * Masks.  The kernel sends SIGTRAP (sigtrap) and the events' signal (async);
 * the tracer in the helper sends WP_SIGNAL (ptrace), after it has seen the
 * SIGTRAP of a debug register.  Handlers run with all signals blocked except
 * SIGTRAP, because a SIGTRAP that is raised while it is blocked kills the
 * process (from the debug register of a tracer that has died, and on old
 * kernels from any), and except the events' signal.  So whatever the handler
 * and the user's handler touch of watched memory interrupts them; the nested
 * run sees in `self.context' that another run is in progress, and returns.
 * Nothing is left pending, and nothing loops.  The first and the last
 * instructions of the handler, which run while `self.context' is not set, and
 * those it returns to, are recognized by the pc.
 *
 * WP_SIGNAL stays blocked, and so does the events' signal where events fire
 * once.  One signal may then be pending at the end, caused by the handler
 * itself: it is taken; that of the ptrace delivery as the very last thing that
 * writes the stack.
 */
#include "handler/trap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "handler/capture.h"
#include "handler/trap_run.h"
#include "os/libc.h"
#include "os/trap_cpu.h"

enum { RETURN_LEN = 16 };  /* bytes of libc's code that handlers return to */

static _Thread_local __attribute__((tls_model("initial-exec"))) struct {
	const ucontext_t *context;	/* of the current run, or NULL */
	struct wp_run *run;
	siginfo_t taken;
	pid_t tid;		/* the thread's id, or 0 if not asked for yet */
} self;

/* The address that handlers return to: sigreturn in libc. */
static _Atomic uintptr_t handler_return;

/* on_signal is alone in its section, so the linker provides its bounds. */
#define HANDLER __attribute__((section("wp_handler"), noinline))
extern const char __start_wp_handler[] __attribute__((visibility("hidden")));
extern const char __stop_wp_handler[] __attribute__((visibility("hidden")));

bool
wp_trap_inside(void)
{
	return self.context != NULL;
}

static struct wp_program_action *
displaced(int sig)
{
	return sig == SIGTRAP ? &wp_state.old_trap :
	    sig == WP_SIGNAL ? &wp_state.old_signal : &wp_state.old_event;
}

/* Free what a run keeps outside of its frame. */
static void
forget(void)
{
	wp_callbacks_forget();
	wp_report_forget();
}

/* The end of a run; `back' if the thread goes back to the instruction.  Taking
   the pending signal of the ptrace delivery is the last access to the stack. */
static void
end(struct wp_run *run, bool back)
{
	wp_reentry_deferred();
	if (run->by_ptrace) {
		wp_reentry_counted();
		wp_trap_keep();
		if (wp_signal_take(WP_SIGNAL, &self.taken) &&
		    !wp_signal_is_ours(&self.taken))
			wp_signal_again(WP_SIGNAL, &self.taken);
	}
	if (run->nspent > 0)
		wp_rearm(run, back);
}

static void
hits(struct wp_run *run)
{
	bool fatal = false;

	if (wp_reentry_return(run))
		return;
	wp_classify(run);
	wp_report(run);
	for (unsigned i = 0; i < run->n; i++)
		wp_watch_leave(run->match[i].watch);
	for (unsigned i = 0; i < run->n; i++)
		fatal |= wp_callbacks(run, &run->match[i]);
	forget();
	if (fatal) {
		self.context = NULL;
		wp_signal_mask_set(wp_signal_mask(run->context));
		abort();
	}
}

/* The signal may have been sent because the processes that armed the watches
   have died. */
static void
look_after(int sig)
{
	void (*look)(void) = atomic_load(&wp_state.look_after);

	if (sig == wp_state.event_signal && look != NULL)
		look();
}

void
wp_leave(const struct wp_hit *hit)
{
	if (self.context == NULL)
		return;
	forget();
	if (self.run != NULL)
		end(self.run, false);
	self.run = NULL;
	look_after(wp_state.event_signal);
	self.context = NULL;
	wp_signal_mask_set(wp_signal_mask(hit->context));
}

pid_t
wp_trap_thread(void)
{
	if (self.tid == 0)
		self.tid = wp_libc_tid();
	return self.tid;
}

void
wp_trap_forked(void)
{
	self.tid = 0;
	wp_state.program = getpid();
	wp_rearm_forked();
}

/* Another watch of the instruction that is being stepped over.  Its hit has
   been reported already if the operand showed that it would be touched. */
static void
join(struct wp_run *run)
{
	self.run = run;
	if (run->n > 0 && !wp_classify_foresaw(run))
		hits(run);
	else
		for (unsigned i = 0; i < run->n; i++)
			wp_watch_leave(run->match[i].watch);
	self.run = NULL;
}

/* Returns false if the signal is not ours. */
static bool
run_handler(int sig, siginfo_t *info, ucontext_t *context)
{
	struct wp_run run = {.context = context, .tid = wp_trap_thread()};
	const bool ours = wp_identify(&run, sig, info);

	if (!ours && run.n == 0)
		return false;
	if (wp_rearm_joins_step(&run)) {
		join(&run);
		return ours;
	}
	wp_rearm_end_step(context);
	self.run = &run;
	if (run.n > 0)
		hits(&run);
	if (self.run != NULL)
		end(&run, true);
	self.run = NULL;
	return ours;
}

/* Whether the handler itself was interrupted: in the run whose context is
   `outer', or before that run has begun or after it has ended. */
static bool
is_own_step(const ucontext_t *context, const ucontext_t *outer)
{
	uintptr_t pc = wp_cpu_pc(context);

	if (outer != NULL) {
		if (wp_cpu_sp(context) <= (uintptr_t)outer)
			return true;
		forget();	/* longjmp(3) without wp_leave */
	}
	return (pc >= (uintptr_t)__start_wp_handler &&
	    pc < (uintptr_t)__stop_wp_handler) ||
	    pc - atomic_load(&handler_return) < RETURN_LEN;
}

/* Whether a signal of the program's own may have been merged with that of an
   event.  Its handler is then called too: a handler that checks for work does
   not mind an extra call, but would miss an event without one. */
static bool
may_be_merged(int sig)
{
	const struct sigaction wanted = wp_program_action(&wp_state.old_event);

	return sig == wp_state.event_signal && wanted.sa_handler != SIG_DFL &&
	    wanted.sa_handler != SIG_IGN &&
	    (wanted.sa_flags & (int)SA_RESETHAND) == 0;
}

/* The siginfo of a merged signal is lost; the sender is given as this
   process. */
static void
hand_on(int sig, ucontext_t *context)
{
	siginfo_t info = {.si_signo = sig, .si_code = SI_USER};

	info.si_pid = getpid();
	info.si_uid = getuid();
	wp_chain(sig, &info, context, displaced(sig));
}

/* Returns the context of the run that is current afterwards. */
static __attribute__((noinline)) const ucontext_t *
handle(int sig, siginfo_t *info, ucontext_t *context, const ucontext_t *outer)
{
	const int saved = errno;
	const bool own = is_own_step(context, outer);
	bool ours;

	if (wp_rearm_is_step_end(sig, info)) {
		wp_rearm_end_step(context);
		errno = saved;
		return outer;
	}
	ours = own ? wp_reentry_access(sig, info, context, outer,
	    self.run == NULL) :
	    run_handler(sig, info, context);
	if (!own)
		look_after(sig);
	errno = saved;
	if (!own)
		outer = NULL;
	if (!ours) {
		self.context = outer;
		wp_chain(sig, info, context, displaced(sig));
	} else if (!own && may_be_merged(sig)) {
		self.context = outer;
		hand_on(sig, context);
	}
	return outer;
}

/* Marks itself as running before it calls anything. */
HANDLER static void
on_signal(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *outer = self.context;

	self.context = context;
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&handler_return,
	    (uintptr_t)__builtin_return_address(0), memory_order_relaxed);
	outer = handle(sig, info, context, outer);
	atomic_signal_fence(memory_order_seq_cst);
	self.context = outer;
}

/*
 * Installing.
 */

bool
wp_trap_is_ours(const struct sigaction *action)
{
	return (action->sa_flags & SA_SIGINFO) != 0 &&
	    action->sa_sigaction == on_signal;
}

const struct sigaction *
wp_trap_displaced(int sig)
{
	const struct wp_program_action *wanted = displaced(sig);

	return &wanted->action[atomic_load(&wanted->turn) % 2];
}

/* Whether hits during the handler may nest.  They may not if events fire once,
   because those are armed again only at its end. */
static bool
nests(int sig)
{
	return sig != 0 && sig == wp_state.event_signal &&
	    !wp_cpu_traps_before();
}

/* Whether the program expects its signals to interrupt system calls. */
static bool
interrupts(struct sigaction wanted)
{
	return wanted.sa_handler != SIG_DFL && wanted.sa_handler != SIG_IGN &&
	    (wanted.sa_flags & SA_RESTART) == 0;
}

static int
install(int sig)
{
	struct sigaction action = {
		.sa_sigaction = on_signal,
		.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART,
	};

	/* including the signals that libc keeps for itself */
	memset(&action.sa_mask, 0xff, sizeof(action.sa_mask));
	(void)sigdelset(&action.sa_mask, SIGTRAP);
	if (nests(wp_state.event_signal))
		(void)sigdelset(&action.sa_mask, wp_state.event_signal);
	if (sig == SIGTRAP || nests(sig))
		action.sa_flags |= SA_NODEFER;
	if (interrupts(wp_program_action(displaced(sig))))
		action.sa_flags &= ~SA_RESTART;
	return wp_libc_sigaction(sig, &action, NULL) == 0 ? 0 : -errno;
}

/* The displaced action is stored before a signal can need it. */
static int
displace(int sig)
{
	struct sigaction old;

	if (wp_libc_sigaction(sig, NULL, &old) != 0)
		return -errno;
	if (!wp_trap_is_ours(&old))
		wp_program_action_set(displaced(sig), &old);
	return install(sig);
}

/* The first signal that the program does not handle, or the last in the
   list. */
static int
choose_event_signal(void)
{
	static const int signals[] = WP_EVENT_SIGNALS;
	struct sigaction action;
	unsigned i = 0;

	while (signals[i + 1] != 0 && (wp_libc_sigaction(signals[i], NULL,
	    &action) != 0 || (action.sa_handler != SIG_DFL &&
	    action.sa_handler != SIG_IGN)))
		i++;
	return signals[i];
}

int
wp_trap_install(bool events)
{
	int err;

	if (events)
		wp_state.event_signal = choose_event_signal();
	err = displace(SIGTRAP);
	if (err == 0)
		err = displace(WP_SIGNAL);
	if (err == 0 && events)
		err = displace(wp_state.event_signal);
	wp_state.program = getpid();
	wp_state.handling = err == 0;
	return err;
}

/* If the kernel forced a SIGTRAP while it was blocked, it has reset the action
   to SIG_DFL, but left its flags alone. */
void
wp_trap_keep(void)
{
	struct sigaction action;

	if (wp_libc_sigaction(SIGTRAP, NULL, &action) == 0 &&
	    action.sa_handler == SIG_DFL)
		(void)install(SIGTRAP);
}

/*
 * What the program does with our signals.
 */

bool
wp_trap_uses(int sig)
{
	return wp_state.handling && (sig == SIGTRAP || sig == WP_SIGNAL ||
	    (sig != 0 && sig == wp_state.event_signal));
}

static bool
is_ignored(const struct sigaction *action)
{
	return (action->sa_flags & SA_SIGINFO) == 0 &&
	    action->sa_handler == SIG_IGN;
}

bool
wp_trap_keeps(int sig)
{
	const struct sigaction wanted = wp_program_action(displaced(sig));
	struct sigaction action;

	return wp_trap_uses(sig) && wp_state.program == getpid() &&
	    wp_libc_sigaction(sig, NULL, &action) == 0 &&
	    (wp_trap_is_ours(&action) ||
	    (is_ignored(&action) && is_ignored(&wanted)));
}

struct sigaction
wp_trap_wanted(int sig)
{
	return wp_program_action(displaced(sig));
}

void
wp_trap_want(int sig, const struct sigaction *action)
{
	wp_program_action_set(displaced(sig), action);
	if (is_ignored(action))
		(void)wp_libc_sigaction(sig, action, NULL);
	else
		(void)install(sig);
}
