/*
 * reentry: the accesses that the signal handler makes itself, which are not
 * hits.
 *
 * Those in the course of a run interrupt it, and return at once (trap.c).  One
 * case would make a loop: a watch on the dead part of the stack where the
 * signal's frame lies, which the kernel reads when the handler returns, or
 * where async's handler returns from arming it again.  Then each run makes the
 * next one: at the same place, nothing having been executed.  Such hits are
 * dropped, and after a few the watch is disabled, with a warning.
 *
 * Signal safety: everything here is async-signal-safe.
 */
#include "handler/capture.h"
#include "handler/trap_run.h"

enum {
	FRAME_MAX = 1 << 16,	/* bytes of a signal frame and the handler's
				   frames */
	TAIL_MAX = 1024,	/* part of that which is below struct wp_run */
	REPEATS_MAX = 8,  /* of one hit with nothing executed in between */
};

static _Thread_local __attribute__((tls_model("initial-exec"))) struct {
	siginfo_t trap, event;	/* deferred signals of others; si_signo 0:
				   none */
	uint64_t where;		/* hash of the registers at the last hit on
				   the signal's frame, or 0 */
	unsigned repeats;	/* consecutive hits with that hash */
} self;

bool
wp_reentry_access(int sig, siginfo_t *info, ucontext_t *context,
    const ucontext_t *outer, bool begins)
{
	struct wp_run run = {
		.context = context, .tid = wp_trap_thread(), .begins = begins,
	};
	bool ours = true;

	if (!wp_identify(&run, sig, info)) {
		if (outer != NULL && sig == wp_state.event_signal)
			self.event = *info;
		else if (outer != NULL && sig == SIGTRAP && info->si_code <= 0)
			self.trap = *info;
		else
			ours = false;
	}
	for (unsigned i = 0; i < run.n; i++) {
		struct wp_match *match = &run.match[i];

		(void)wp_match_account(match, match->watch->kernel ?
		    WP_STEP_MANY : WP_STEP_ONE);
		wp_account_suppressed(match->watch);
		wp_watch_leave(match->watch);
	}
	return ours;
}

void
wp_reentry_counted(void)
{
	struct wp_watch_walk walk = WP_WALK_ALL;
	struct wp_watch *w;
	siginfo_t info;

	if (!wp_signal_take(WP_SIGNAL, &info))
		return;
	if (!wp_signal_is_ours(&info)) {
		wp_signal_again(WP_SIGNAL, &info);
		return;
	}
	while ((w = wp_watch_next(&walk)) != NULL) {
		if (w->delivery->by_tracer)
			(void)wp_account_also(w, NULL, WP_STEP_MANY);
		wp_watch_leave(w);
	}
}

static void
again(siginfo_t *deferred)
{
	if (deferred->si_signo == 0)
		return;
	wp_signal_mask_set(UINT64_MAX);
	wp_signal_again(deferred->si_signo, deferred);
	deferred->si_signo = 0;
}

void
wp_reentry_deferred(void)
{
	again(&self.trap);
	again(&self.event);
}

/* Whether one of the watch's slots overlaps the frame of this signal. */
static bool
is_on_frame(const struct wp_run *run, const struct wp_watch *w)
{
	uintptr_t low = (uintptr_t)run - TAIL_MAX;
	uintptr_t high = wp_cpu_sp(run->context);

	if (high < low || high - low > FRAME_MAX)
		high = low + FRAME_MAX;	/* on an alternate stack */
	for (unsigned i = 0; i < w->nslots; i++)
		if (w->slot[i].addr + w->slot[i].len > low &&
		    w->slot[i].addr < high)
			return true;
	return false;
}

/* A hash of all registers; never 0. */
static uint64_t
where(const ucontext_t *context)
{
	uint64_t regs[WP_CPU_REGS_MAX], hash = 0;
	unsigned n = wp_cpu_regs(context, regs);

	for (unsigned i = 0; i < n; i++)
		hash = (hash ^ regs[i]) * 0x9e3779b97f4a7c15ull;
	return hash | 1;
}

bool
wp_reentry_return(struct wp_run *run)
{
	struct wp_watch *w = run->match[0].watch;
	uint64_t last = self.where;

	self.where = (w->region.access != WP_WRITE || run->nspent > 0) &&
	    is_on_frame(run, w) ? where(run->context) : 0;
	if (self.where == 0 || self.where != last) {
		self.repeats = 0;
		return false;
	}
	if (++self.repeats == REPEATS_MAX) {
		run->nspent = 0;	/* and do not arm it again */
		(void)w->delivery->disable(w);
		wp_fallback_unwatched();
		wp_fallback_warning(w, " lies where signal handlers have their "
		    "stack, which they read themselves: it is disabled");
	}
	wp_run_drop(run, WP_STEP_MANY);
	return true;
}
