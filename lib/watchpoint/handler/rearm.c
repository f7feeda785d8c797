/*
 * rearm: events that fire once, of the async delivery: after a hit they are
 * armed again, once the thread is behind the access (step.c).
 *
 * Signal safety: everything here is async-signal-safe.
 */
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "handler/step.h"
#include "handler/trap_run.h"

static _Thread_local __attribute__((tls_model("initial-exec"))) struct {
	struct wp_step step;
	unsigned nowed;
	struct wp_spent owed[WP_TAKEN_MAX];	/* to be armed when that ends */
} self;

/* The helper's in this thread, whichever they are. */
static void
rearm_helpers(void)
{
	if (wp_helper_rearm() < 0)
		wp_say("watchpoint: a thread is no longer watched: no signal "
		    "can be queued, as the limit of them (ulimit -i) is "
		    "reached\n");
}

static void
rearm_own(const struct wp_spent *spent)
{
	struct wp_watch *w = wp_watch_enter(spent->index, 0, 0);

	if (w == NULL)
		return;
	if (wp_watch_has(w, spent->fd) &&
	    wp_async_rearm(w, spent->fd, spent->code) < 0 &&
	    !atomic_exchange(&w->deaf, true))
		wp_say_warning(w, " is no longer watched in a thread: "
		    "its event cannot be armed again after a hit");
	wp_watch_leave(w);
}

/* Events that fire once until they are armed again. */
static void
rearm(const struct wp_spent *spent, unsigned n)
{
	bool helpers = false;

	for (unsigned i = 0; i < n; i++)
		if (spent[i].fd < 0)
			helpers = true;
		else
			rearm_own(&spent[i]);
	if (helpers)
		rearm_helpers();
}

void
wp_rearm_end_step(ucontext_t *context)
{
	if (!self.step.on)
		return;
	wp_step_end(&self.step, context);
	rearm(self.owed, self.nowed);
	self.nowed = 0;
}

bool
wp_rearm_is_step_end(int sig, const siginfo_t *info)
{
	return self.step.on && sig == wp_inside.event_signal &&
	    !wp_signal_is_ours(info) && info->si_code > 0 &&
	    info->si_fd == self.step.fd;
}

/* Without it the same hit would come for ever. */
static void
cannot_step(const struct wp_run *run)
{
	for (unsigned i = 0; i < run->nspent; i++) {
		struct wp_watch *w = wp_watch_enter(run->spent[i].index, 0, 0);

		if (w == NULL)
			continue;
		(void)w->delivery->disable(w);
		wp_say_warning(w, " is disabled: to go on behind a hit takes "
		    "a free execution breakpoint and a descriptor");
		wp_watch_leave(w);
	}
}

static void
begin_step(struct wp_run *run)
{
	if (wp_step_begin(&self.step, run->context, run->tid,
	    wp_inside.event_signal) < 0) {
		cannot_step(run);
		rearm(run->spent, run->nspent);	/* for when it is enabled */
		return;
	}
	memcpy(self.owed, run->spent, run->nspent * sizeof(*self.owed));
	self.nowed = run->nspent;
}

/* What the run has touched of async's watches: it is no hit. */
static void
drop_own(struct wp_run *run)
{
	const int sig = wp_inside.event_signal;
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
	drop_own(run);
	if (back && wp_cpu_traps_before())
		begin_step(run);
	else
		rearm(run->spent, run->nspent);
}

void
wp_rearm_forked(void)
{
	if (self.step.on)
		(void)syscall(SYS_close, self.step.fd);
	self.step.on = false;
}
