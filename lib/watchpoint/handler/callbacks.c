/*
 * callbacks: the handlers of the watches that were hit.
 *
 * Signal safety: everything here is async-signal-safe; what the handlers do is
 * theirs.
 */
#include "handler/trap_run.h"

/* The watch whose handler this thread is calling, or NULL. */
static _Thread_local __attribute__((tls_model("initial-exec")))
    struct wp_watch *held;

const struct wp_watch *
wp_trap_held(void)
{
	return held;
}

static bool
is_handled(const struct wp_match *match)
{
	return (match->watch->attr.action & WP_CALL) != 0 ||
	    (match->stray && wp_stray_is_handled());
}

bool
wp_callbacks(const struct wp_run *run, const struct wp_match *match)
{
	struct wp_watch *w = wp_watch_enter(wp_watch_index(match->watch),
	    match->serial, UINT32_MAX);
	struct wp_hit hit;
	bool fatal;

	if (w == NULL)
		return false;
	hit = wp_report_hit(run, match);
	fatal = (w->attr.action & WP_ABORT) != 0;
	held = w;
	/* accesses by the handlers themselves are not counted as hits here */
	if (!w->delivery->counts_all && is_handled(match))
		wp_baseline_drop(w);
	if ((w->attr.action & WP_CALL) != 0 && w->attr.handler != NULL)
		w->attr.handler(&hit, w->attr.arg);
	if (match->stray)
		wp_stray_call(&hit);
	held = NULL;
	wp_watch_leave(w);
	return fatal;
}

void
wp_callbacks_forget(void)
{
	if (held != NULL)
		wp_watch_leave(held);
	held = NULL;
}
