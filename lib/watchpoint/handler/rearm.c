/*
 * rearm: events that fire once, of the async delivery: after a hit they are
 * armed again, once the thread is behind the access (step.c).
 *
 * Some kernels stop an event for good when it has used up its overflow; it
 * comes to life only under wp_perf_once, by its own thread and while it is
 * enabled.  So it is armed even if the watch has been disabled in the meantime,
 * and disabled then; and this is repeated if another thread was disabling
 * events just then.
 *
 * Signal safety: everything here is async-signal-safe.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/libc.h"
#include "os/operand.h"
#include "os/perf.h"
#include "os/trap_cpu.h"
#include "handler/capture.h"
#include "handler/step.h"
#include "handler/trap_run.h"

static _Thread_local __attribute__((tls_model("initial-exec"))) struct {
	struct wp_step step;
	unsigned nowed;
	struct wp_fired owed[WP_TAKEN_MAX];	/* to be armed again after
						   the step */
} self;

/* The numbers of changes that disable events of a watch, temporarily or for
   good, which have begun and which have ended. */
static _Atomic unsigned begun, ended;

enum { TRIES = 100 };  /* as the thread in between may be the one interrupted */

void
wp_async_change_begin(void)
{
	(void)atomic_fetch_add(&begun, 1);
}

void
wp_async_change_end(void)
{
	(void)atomic_fetch_add(&ended, 1);
}

/* Allow the event another overflow, and try again if another thread may have
   disabled it in between. */
static int
load(int fd, uint64_t period)
{
	int err = 0;

	for (unsigned i = 0; i < TRIES && err == 0; i++) {
		unsigned before = atomic_load(&begun);
		bool quiet = atomic_load(&ended) == before;

		err = i == 0 ? wp_perf_once(fd, period) :
		    wp_perf_once_again(fd, period);
		if (quiet && atomic_load(&begun) == before)
			break;
	}
	return err;
}

static int
rearm_event(struct wp_watch *w, int fd, int code)
{
	int err;

	if (code != POLL_HUP)
		return 0;
	err = load(fd, wp_watch_period(w));
	while (err == 0 && !atomic_load(&w->on)) {
		(void)wp_perf_disable(fd);
		if (!atomic_load(&w->on))
			break;
		err = wp_perf_once_again(fd, wp_watch_period(w));
	}
	return err;
}

/* Ask the tracer to arm the helper's events of this thread again.  It sees the
   signal when the handler has returned, before the thread executes anything
   else, and suppresses it. */
static int
ask_tracer(bool back)
{
	siginfo_t info = {0};
	int saved = errno, err;

	info.si_signo = WP_SIGNAL;
	info.si_code = SI_QUEUE;
	info.si_pid = getpid();
	info.si_uid = getuid();
	info.si_value.sival_ptr = (void *)(uintptr_t)wp_sig_data(
	    (uint32_t)wp_state.copy << 24, WP_SIG_REARM, back);
	err = syscall(SYS_rt_tgsigqueueinfo, getpid(), wp_libc_tid(), WP_SIGNAL,
	    &info) == 0 ? 0 : -errno;
	errno = saved;
	return err;
}

/* Arm all events of this thread that belong to the helper. */
static void
rearm_helpers(bool back)
{
	if (ask_tracer(back) < 0) {
		wp_fallback_unwatched();
		wp_fallback_line("watchpoint: a thread is no longer watched: "
		    "no signal can be queued, as the limit of them (ulimit -i) "
		    "is reached\n");
	}
}

static void
rearm_own(const struct wp_fired *spent)
{
	struct wp_watch *w = wp_watch_enter(spent->index, 0, 0);

	if (w == NULL)
		return;
	if (wp_watch_has(w, spent->fd) &&
	    rearm_event(w, spent->fd, spent->code) < 0 &&
	    !atomic_exchange(&w->disarmed, true)) {
		wp_fallback_unwatched();
		wp_fallback_warning(w, " is no longer watched in a thread: "
		    "its event cannot be armed again after a hit");
	}
	wp_watch_leave(w);
}

static void
rearm(const struct wp_fired *spent, unsigned n, bool back)
{
	bool helpers = false;

	for (unsigned i = 0; i < n; i++)
		if (spent[i].fd < 0)
			helpers = true;
		else
			rearm_own(&spent[i]);
	if (helpers)
		rearm_helpers(back);
}

void
wp_rearm_end_step(ucontext_t *context)
{
	if (!self.step.on)
		return;
	wp_step_end(&self.step, context);
	rearm(self.owed, self.nowed, true);
	self.nowed = 0;
}

/* On a processor that traps before the access, watches that one instruction
   touches trap one after the other, each once the previous ones are
   disarmed. */
bool
wp_rearm_joins_step(const struct wp_run *run)
{
	if (!self.step.on || wp_cpu_pc(run->context) != self.step.pc)
		return false;
	for (unsigned i = 0; i < run->nspent && self.nowed < WP_TAKEN_MAX; i++)
		self.owed[self.nowed++] = run->spent[i];
	return true;
}

bool
wp_rearm_is_step_end(int sig, const siginfo_t *info)
{
	return self.step.on && sig == wp_state.event_signal &&
	    !wp_signal_is_ours(info) && info->si_code > 0 &&
	    info->si_fd == self.step.fd;
}

/* Without this, an instruction that cannot be stepped over, or fails when it
   is, would raise the same hit forever. */
static void
give_up(const struct wp_run *run, const char *why)
{
	for (unsigned i = 0; i < run->nspent; i++) {
		struct wp_watch *w = wp_watch_enter(run->spent[i].index, 0, 0);

		if (w == NULL)
			continue;
		(void)w->delivery->disable(w);
		wp_fallback_unwatched();
		wp_fallback_warning(w, why);
		wp_watch_leave(w);
	}
	/* so that they fire once the watch is enabled again */
	rearm(run->spent, run->nspent, true);
}

static bool
is_exclusive(const ucontext_t *context)
{
	uint32_t code;

	return wp_peek(&code, wp_cpu_pc(context), sizeof(code)) ==
	    sizeof(code) && wp_operand_is_exclusive(code);
}

static void
begin_step(struct wp_run *run)
{
	if (is_exclusive(run->context)) {
		give_up(run, " is disabled: the program uses it by ldxr and "
		    "stxr, and stxr never succeeds on what is watched");
		return;
	}
	if (wp_step_begin(&self.step, run->context, run->tid,
	    wp_state.event_signal) < 0) {
		give_up(run, " is disabled: going on after a hit needs a free "
		    "execution breakpoint and a descriptor");
		return;
	}
	memcpy(self.owed, run->spent, run->nspent * sizeof(*self.owed));
	self.nowed = run->nspent;
}

/* The handler itself may have touched watches of the async delivery; those
   accesses are not hits. */
static void
drop_own(struct wp_run *run)
{
	const int sig = wp_state.event_signal;
	siginfo_t info;

	run->n = 0;
	while (run->nspent < WP_TAKEN_MAX && wp_signal_take(sig, &info)) {
		const bool ours = wp_identify(run, sig, &info);

		wp_run_drop(run, WP_STEP_ONE);
		if (!ours) {
			wp_signal_again(sig, &info);
			break;
		}
	}
}

void
wp_rearm(struct wp_run *run, bool back)
{
	if (run->by_ptrace) {		/* the tracer makes the step */
		rearm(run->spent, run->nspent, back);
		return;
	}
	drop_own(run);
	if (back && wp_cpu_traps_before())
		begin_step(run);
	else
		rearm(run->spent, run->nspent, back);
}

void
wp_rearm_forked(void)
{
	if (self.step.on)
		(void)syscall(SYS_close, self.step.fd);
	self.step.on = false;
}
