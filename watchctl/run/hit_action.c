/*
 * hit_action: performs the action of --on-hit at a hit, while its thread is
 * stopped.
 *
 * A hit is acted at when it is explained and written.  A thread waits for that
 * only so long; then it is acted at as far as the hit is known without, unless
 * it takes the explanation to decide whether it is to be acted at.
 */
#include <inttypes.h>

#include "os/clock.h"
#include "run/run.h"

static void
report_missed(struct run *run, const struct remote_hit *hit)
{
	if (run->missed)
		return;
	run->missed = true;
	session_warn(&run->session, "hit #%" PRIu64 ": --on-hit did nothing, "
	    "because thread %d was not stopped there: it blocks the signal "
	    "that stops it, hit while others were being attached, or went on "
	    "before the hit was explained", hit->seq, hit->tid);
}

/* Whether a hit has to be explained before it is known if the action
   applies. */
static bool
takes_explanation(const struct run *run)
{
	const struct options *o = run->options;

	return options_judge(o) || options_choose(o);
}

static bool
is_over(const struct run *run)
{
	return run->on_hit.what == ON_HIT_REPORT || run->on_hit.left != 0 ||
	    run_is_ending(run);
}

/* Returns false if the thread is not stopped. */
static bool
act_at(struct run *run, const struct on_hit_at *at)
{
	const long began = wp_clock_ms();
	struct on_hit_tracer tracer;

	if (!run->ops->tracer(run, at->pid, at->tid, &tracer))
		return false;
	run->on_hit.ms = run_left_for_wait(run);
	on_hit_act(&run->on_hit, &tracer, &run->session, at);
	remote_session_excuse(run->remote, wp_clock_ms() - began);
	return true;
}

/* Called when the hit has been written. */
static void
act(void *arg, const struct remote_hit *hit)
{
	struct run *run = arg;
	const struct on_hit_at at = {
		.seq = hit->seq, .pid = hit->pid, .tid = hit->tid,
		.addr = hit->addr, .environment = hit->environment,
		.len = hit->len,
	};

	if (hit->passed ? takes_explanation(run) :
	    !is_over(run) && !act_at(run, &at))
		report_missed(run, hit);
}

void
run_act_begin(struct run *run)
{
	if (run->options->on_hit.what == ON_HIT_REPORT)
		return;
	run->on_hit = run->options->on_hit;
	remote_session_act(run->remote, act, run);
}

void
run_act_end(struct run *run)
{
	run->on_hit.what = ON_HIT_REPORT;
}

bool
run_act_pass(struct run *run)
{
	const struct on_hit_at at = {
		.pid = run->stopped.pid, .tid = run->stopped.tid,
	};

	if (run->options->on_hit.what != ON_HIT_REPORT &&
	    remote_session_pass(run->remote, at.tid) &&
	    !takes_explanation(run) && !is_over(run))
		(void)act_at(run, &at);
	run->stopped.pid = run->stopped.tid = 0;
	return run->on_hit.left == 0;
}
