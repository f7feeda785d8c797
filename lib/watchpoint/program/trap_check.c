/*
 * trap_check: checks that the signals of hits still reach the library's
 * handler.  A program may take them over, ignore or block them at any time.
 */
#include <sys/syscall.h>
#include <unistd.h>

#include "handler/trap.h"
#include "handler/trap_run.h"
#include "os/libc.h"
#include "program/copies.h"
#include "program/scope_lock.h"
#include "program/table.h"

/* Check whether the program has changed the action of a signal, or blocks
   it. */
static int
check(int sig, const char *name, struct wp_cause *cause)
{
	struct sigaction action;
	uint64_t mask = 0;

	if (wp_libc_sigaction(sig, NULL, &action) == 0 &&
	    !wp_copies_lead_here(sig, &action)) {
		(void)wp_cause_set(cause, WP_CAUSE_TRAP_TAKEN, name,
		    action.sa_handler == SIG_IGN ? "ignored" :
		    action.sa_handler == SIG_DFL ? "back to its default action"
		    : "handled by the program itself");
		return 1;
	}
	(void)syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, sizeof(mask));
	if (wp_scope_locked())
		mask = wp_scope_mask();
	if ((mask & wp_signal_bit(sig)) == 0 || wp_trap_inside())
		return 0;
	(void)wp_cause_set(cause, WP_CAUSE_TRAP_BLOCKED, name);
	return 1;
}

/* The table is not locked, since that would block the signals.  Entering each
   watch keeps it from being closed meanwhile. */
int
wp_trap_check(struct wp_cause *cause)
{
	bool trap = false, signal = false, event = false;
	struct wp_watch_walk walk = WP_WALK_ALL;
	struct wp_watch *w;

	if (!wp_state.handling)
		return 0;
	while ((w = wp_watch_next(&walk)) != NULL) {
		trap |= w->delivery->counts_all;
		signal |= w->delivery->by_tracer;
		event |= w->delivery->by_descriptor;
		if (w->delivery->by_tracer)
			wp_trap_keep();
		wp_watch_leave(w);
	}
	if (trap && check(SIGTRAP, "SIGTRAP", cause) > 0)
		return 1;
	if (event && check(wp_state.event_signal, "the signal of hits",
	    cause) > 0)
		return 1;
	return signal && check(WP_SIGNAL, "the signal of hits", cause) > 0;
}
