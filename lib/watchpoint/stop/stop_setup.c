/* stop_setup: sets a process up so that its threads stop at hits. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "stop/stop_private.h"

static int
make_room(struct wp_stops *stops)
{
	const size_t n = stops->target->nwatches;
	struct wp_perf_count *gone;

	if (n <= stops->nclosed)
		return 0;
	gone = realloc(stops->closed_total, n * sizeof(*gone));
	if (gone == NULL)
		return -ENOMEM;
	memset(gone + stops->nclosed, 0, (n - stops->nclosed) * sizeof(*gone));
	stops->closed_total = gone;
	stops->nclosed = n;
	return 0;
}

/* Arm all stopped threads of a process. */
static int
arm_all(struct wp_stops *stops, const struct wp_hold *hold,
    const struct wp_stop_process *at, struct wp_cause *cause)
{
	struct wp_stop_process *process = wp_stop_add_process(stops, at->pid,
	    at->first, at->n);
	int err;

	if (process == NULL)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	process->unsure = at->unsure;
	for (size_t i = 0; i < hold->n; i++) {
		const pid_t tid = hold->thread[i].tid;

		err = wp_stop_add(stops, process, tid, false);
		if (err == 0 || err == -ESRCH)
			continue;
		err = wp_target_explain(stops->target, process->first,
		    process->n, err, tid, cause);
		wp_stop_forget_process(stops, process);
		return err;
	}
	if (process->threads == 0) {
		wp_stop_forget_process(stops, process);
		return wp_cause_set(cause, WP_CAUSE_GONE, at->pid);
	}
	wp_target_read_before(stops->target, hold, process->first, process->n);
	wp_stop_take_baselines(stops, process);
	return 0;
}

static int
attach_running(struct wp_stops *stops, const struct wp_stop_process *at,
    struct wp_cause *cause)
{
	struct wp_hold hold = {0};
	int err = wp_trace_process(&hold, at->pid,
	    stops->target->options.follow);

	if (err == -ESRCH)
		return wp_cause_set(cause, WP_CAUSE_GONE, at->pid);
	if (err < 0) {
		*cause = (struct wp_cause){0};
		return err;
	}
	if ((err = arm_all(stops, &hold, at, cause)) < 0)
		wp_hold_release(&hold);
	free(hold.thread);
	return err;
}

/* The command's stop has nothing to report, so it continues from here. */
static int
attach_command(struct wp_stops *stops, const struct wp_stop_process *at,
    struct wp_cause *cause)
{
	struct wp_target *target = stops->target;
	const size_t known = target->hold.n;
	int err = wp_trace_process(&target->hold, at->pid,
	    target->options.follow);

	if (err < 0)
		return err == -ESRCH ?
		    wp_cause_set(cause, WP_CAUSE_ENDED_EARLY) :
		    wp_cause_errno(cause, "holding the command", -err);
	if ((err = arm_all(stops, &target->hold, at, cause)) < 0)
		return err;
	for (size_t i = 0; i < known; i++)
		wp_trace_continue(target->hold.thread[i].tid,
		    target->hold.thread[i].signal);
	free(target->hold.thread);
	target->hold = (struct wp_hold){0};
	target->command = 0;
	return 0;
}

/* Other processes share the memory of this one, and their writes are not
   seen. */
void
wp_stops_lend(struct wp_stops *stops, pid_t pid, bool lent)
{
	struct wp_stop_process *process = wp_stop_find_process(stops, pid);

	if (process == NULL)
		return;
	process->unsure = false;
	process->lent = process->lent || lent;
	for (size_t i = 0; i < process->n && lent; i++) {
		process->baseline[i].shared = true;
		process->baseline[i].known = false;
		process->baseline[i].crowd.known = false;
	}
}

int
wp_stops_attach(struct wp_stops *stops, pid_t pid, size_t first, size_t n,
    struct wp_cause *cause)
{
	struct wp_target *target = stops->target;
	const bool command = target->command == pid;
	const struct wp_stop_process at = {
		.pid = pid, .first = first, .n = n, .unsure = !command,
	};
	uint64_t began;
	size_t before;
	int err;

	if (make_room(stops) < 0)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	if (!command && (err = wp_target_check(pid, cause)) < 0)
		return err;
	/* processes attached before need not wait for this one */
	wp_ptrace_loop_look(&stops->loop);
	before = stops->loop.all.n;
	began = wp_clock_ns();
	err = command ? attach_command(stops, &at, cause) :
	    attach_running(stops, &at, cause);
	if (err < 0)
		return err;
	target->threads += (unsigned)(stops->loop.all.n - before);
	if (command)
		return 0;
	/* nor this one for what is done next */
	wp_ptrace_loop_look(&stops->loop);
	wp_target_was_frozen(target, began);
	return 0;
}
