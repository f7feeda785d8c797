/*
 * run_ring: hits are read from the rings, and no thread waits for its report;
 * or, with --count, they are only counted.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/drain.h"
#include "deliver/deliver.h"
#include "deliver/ring_records.h"
#include "os/clock.h"
#include "proc/proc.h"
#include "setup/all_cpus.h"
#include "pending/exec_tracer.h"
#include "pending/instances.h"
#include "run/counted_hits.h"
#include "follow/follow.h"
#include "follow/rotate.h"
#include "setup/arrivals.h"
#include "setup/executions.h"
#include "setup/mappers.h"
#include "setup/objects.h"
#include "setup/setup.h"
#include "util/complain.h"

enum { SAMPLE_REST = 512 };	/* bytes of a sample without its stack */

static size_t
memory_of(const struct run *run)
{
	return run->options->buffer == 0 ? WP_DRAIN_USUAL :
	    run->options->buffer;
}

/* --until needs the explanation of every hit, so nothing can be kept
   unexplained. */
static bool
has_recorder(const struct options *o)
{
	return o->last != 0 && o->until.root == NULL;
}

/* Half of the memory is for the records that are kept, the other half for those
   drained while these are reported. */
static int
ring_open(struct run *run)
{
	const struct options *o = run->options;
	const uint64_t takes = o->last * (o->stack + SAMPLE_REST);
	const unsigned shift = 20;

	if (has_recorder(o) && takes > memory_of(run) / 2)
		return complain("--last %" PRIu64 ": so many hits, with the "
		    "stack of each, take %" PRIu64 "M, and %zuM of --buffer "
		    "are for them; give --buffer %" PRIu64 "M", o->last,
		    (takes >> shift) + 1, memory_of(run) / 2 >> shift,
		    ((2 * takes) >> shift) + 1);
	if ((run->own = calloc(1, sizeof(struct ring_run))) == NULL)
		return complain("out of memory");
	return 0;
}

/* From here on the loop waits for the drain instead of the rings. */
static void
poll_drain(struct run *run, const struct wp_drain *drain)
{
	const unsigned n = wp_rings_count(wp_target_rings(run->target));
	struct pollfd *p = &run->poll[run->npoll - 1 - n];

	for (unsigned i = 0; i < n; i++)
		p[i].fd = -1;
	p->fd = wp_drain_fd(drain);
}

/* Called before there is anything to drain. */
static int
start_drain(struct run *run, struct wp_cause *cause)
{
	const struct options *o = run->options;
	struct ring_run *ring = run->own;
	int err;

	if (ring->drain != NULL || o->count)
		return 0;
	err = wp_drain_start(&ring->drain, wp_target_rings(run->target),
	    memory_of(run), cause);
	if (err < 0)
		return err;
	poll_drain(run, ring->drain);
	/* with children, several memories would share the same tickets */
	if (!o->follow)
		wp_drain_marks(ring->drain, run->target);
	if (has_recorder(o) && (ring->recorder = recorder_new(ring->drain,
	    o->last, memory_of(run) / 2)) == NULL)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	return 0;
}

/* Without an initial process there is nothing to attach to.  A command that has
   nothing to watch yet is started by the thread that traces it. */
static int
ring_launch(struct run *run, struct wp_cause *cause)
{
	int err;

	if (run->mappers != NULL && (err = start_drain(run, cause)) < 0)
		return err;
	if (!run->waits)
		return options_scope(run->options) != NULL ?
		    start_drain(run, cause) : run_launch(run, cause);
	if ((err = start_drain(run, cause)) < 0)
		return err;
	/* an explainer ends with the thread that started it, so start it
	   here */
	if ((err = broker_start(&run->live.broker)) < 0)
		return wp_cause_errno(cause, "starting an explainer", -err);
	if ((err = exec_tracer_start(&run->tracer, run, cause)) == 0)
		run->poll[run->npoll - 1].fd = exec_tracer_fd(run->tracer);
	return err;
}

static int
ring_attach(struct run *run, const struct process *process,
    struct wp_cause *cause)
{
	int err = start_drain(run, cause);

	if (err < 0)
		return err;
	if (process->pid == EVERYWHERE)
		return all_cpus_attach(run, process, cause);
	return wp_target_holds(run->target, process->pid) ?
	    wp_target_arm(run->target, cause) :
	    wp_target_attach(run->target, process->pid, process->first,
	    process->n, cause);
}

/* The same for a process that has become another program.  If it is not traced
   any more, its next execve(2) was not noticed. */
static bool
has_program_ended(struct run *run, struct process *process)
{
	if (run_is_armed(run, process))
		return false;
	if (process->n > 0 && !process->disarmed && process->alone &&
	    !wp_proc_exiting(process->pid))
		run_executed(run, process);
	run_disarm(run, process);
	return true;
}

/*
 * Whether a process has nothing to watch any more: it has ended (with -f, its
 * children too), or has executed another program, which ends its watches.  Its
 * entry in the poll set is then empty.
 */
static bool
has_ended(struct run *run, size_t i)
{
	struct process *process = &run->process[i];
	struct pollfd *p = &run->poll[1 + i];
	bool watched;

	if (process->pid == EVERYWHERE)
		return false;
	if (process->program)
		return has_program_ended(run, process);
	watched = process->n > 0 && run_is_armed(run, process);
	if (p->fd < 0)
		return !run->options->follow || !watched;
	if (p->revents == 0 && process->n == 0)	/* its programs are in other
						   entries */
		return run->mappers == NULL;
	if (p->revents == 0 && watched) {
		process->seen = wp_clock_ns();
		return false;
	}
	if ((p->revents == 0 && !wp_proc_exiting(process->pid)) ||
	    (process->n > 0 && wp_target_executed(run->target,
	    process->first))) {
		if (!executions_expect(run, process))
			run_executed(run, process);
	} else if (p->revents == 0 && run->options->last != 0)
		return false;	/* its exit status is not known before it has
				   ended */
	if (p->revents != 0 && run->options->last != 0 &&
	    wp_proc_killed(process->pid, p->fd) != 0)
		run->crashed = true;
	(void)close(p->fd);
	p->fd = -1;	/* poll(2) ignores negative descriptors */
	return !run->options->follow || !watched;
}

static bool
all_ended(struct run *run)
{
	bool all = true;

	for (size_t i = 0; i < run->nprocesses; i++) {
		const bool ended = has_ended(run, i);

		if (ended && options_scope(run->options) != NULL)
			run_disarm(run, &run->process[i]);
		all = all && ended;
	}
	return all;
}

/* Whether nothing is watched any more.  A child may have executed a program that
   is to be watched, and be known by its record alone. */
static bool
is_over(struct run *run)
{
	if (!all_ended(run) || options_scope(run->options) != NULL ||
	    mappers_await(run->mappers) || exec_tracer_is_busy(run->tracer))
		return false;
	if (run->executions.children &&
	    ring_records_until(run, wp_clock_ns()) != 0)
		executions_look(run, true);
	return !executions_await(run);
}

/* Wait a limited time for something to happen. */
static void
wait_a_little(struct run *run)
{
	run_poll(run, run->poll, run->npoll);
	run_check_processors(run);
	run_check_children(run);
	exec_tracer_take(run->tracer);
	executions_look(run, false);
	if (run->reason == NULL && is_over(run))
		run->reason = "exit";
	if (run->arrivals != NULL)
		run_take_arrivals(run);
	if (run->mappers != NULL)
		run_take_mappers(run);
	if (executions_await(run))
		run_take_executions(run);
	follow_report(run->follow);
	instances_report(run);
	rotate_turn(run->rotate);
	objects_report(run->objects);
	if (run->crashed && run->release_reason == NULL)
		run_release(run, "crash");
	run_check_time(run);
}

/* The thread that runs this traces the process. */
static int
ring_pass(struct run *run, const struct process *process,
    struct wp_cause *cause)
{
	return exec_tracer_pass(run->tracer, process, cause);
}

static uint64_t
counted(const struct run *run, size_t watch)
{
	struct wp_perf_count count;

	return wp_target_count(run->target, watch, &count) < 0 ? 0 :
	    count.value;
}

/* Accesses after the last hit that --each wants do not count. */
static uint64_t
counted_in_all(const struct run *run)
{
	uint64_t sum = run->also;

	for (size_t w = 0; w < run->ndescribed; w++)
		sum += hit_filter_is_full(run->session.filter,
		    run_session_index(run, w)) ? session_samples(&run->session,
		    run_session_index(run, w)) : counted(run, w);
	const uint64_t foreign = mappers_foreign(run->mappers) +
	    objects_foreign(run->objects);

	return sum - (foreign < sum ? foreign : sum);
}

/* With -n, nothing after the last hit is of interest. */
static void
leave_descendants(struct run *run, bool more)
{
	const uint64_t now = wp_clock_ns();
	uint64_t since = now;

	if (run->options->count || !run->options->follow ||
	    run->mappers != NULL ||
	    !options_vouch(run->options))
		return;
	if ((!more || ring_records_until(run, now) == 0) &&
	    run->session.last_hit > 0 && run->session.last_hit < now)
		since = run->session.last_hit > run->began ?
		    run->session.last_hit : run->began;
	run_leave_descendants(run, since);
}

/* Take the records that are there now. */
static bool
take_ready(struct run *run)
{
	const struct ring_run *ring = run->own;
	const uint64_t ready = wp_drain_ready(ring->drain);
	const bool more = ring_records_take(run, ready);

	counted_hits_look(run, ready);
	return more;
}

static void
ring_loop(struct run *run)
{
	struct ring_run *ring = run->own;
	bool more = true;

	executions_begin(run);
	while (run->reason == NULL) {
		wait_a_little(run);
		if (run->options->count)
			more = run->options->limit == 0 ||
			    counted_in_all(run) < run->options->limit;
		else
			more = take_ready(run);
		if (!more)
			run->reason = run->options->count ? "count" :
			    session_full_reason(&run->session);
		run_turn_off(run);
	}
	if (more)
		(void)all_ended(run);	/* as of now */
	executions_end(run);
	run_check_processors(run);
	run->poll[run->npoll - 1].fd = -1;
	run->missed_module = exec_tracer_end(run->tracer,
	    &run->missed_child);
	run->tracer = NULL;
	instances_report(run);
	follow_end(run->follow);
	leave_descendants(run, more);
	rotate_end(run->rotate);
	objects_end(run->objects);
	wp_target_stop(run->target);
	wp_drain_stop(ring->drain);
}

/* Whether a process was found to be no longer watched before the watch
   ended. */
static bool
has_left(const struct run *run, size_t i)
{
	const struct process *process = &run->process[i];

	return process->program ? process->alone && process->disarmed :
	    run->poll[1 + i].fd < 0;
}

/* A process that is traced is noticed when it executes a program, and records
   of its threads come only while something is armed in it. */
static bool
is_counted(const struct process *process)
{
	return process->n > 0 && (!process->program || process->alone);
}

/* A process that executes another program and ends soon may not be noticed.
   But every thread that ends while it is watched leaves a record; if no records
   were lost, missing ones show that. */
static void
report_all_executed(struct run *run)
{
	const bool all = strcmp(run->reason, "exit") == 0;

	if (run->session.lost > 0)
		return;
	for (size_t i = 0; i < run->nprocesses; i++)
		if (is_counted(&run->process[i]) &&
		    run->process[i].threads > 0 && (all || has_left(run, i)))
			run_executed(run, &run->process[i]);
}

static int
take_thread_counts(struct run *run)
{
	struct wp_thread_count *counts;
	const ssize_t n = wp_target_thread_counts(run->target, &counts);
	const int err = n < 0 ? (int)n : session_thread_counts(&run->session,
	    counts, (size_t)n);

	free(counts);
	return err;
}

static int
take_counts(struct run *run)
{
	const size_t n = run->session.nwatches;

	if ((run->counts = calloc(n, sizeof(*run->counts))) == NULL)
		return -ENOMEM;
	for (size_t w = 0; w < n; w++)
		run->counts[w] = counted(run, w);
	return take_thread_counts(run);
}

/* The kernel does not run a BPF program while another one runs on the same
   processor, and delivers no sample then.  Only the count shows that, too late
   for the values. */
static void
withdraw_values(struct run *run)
{
	struct session *s = &run->session;

	if (wp_rings_bpf(wp_target_rings(run->target), 0) < 0 || s->lost == 0 ||
	    wp_rings_were_full(wp_target_rings(run->target)))
		return;
	session_warn(s, "the kernel counted %" PRIu64 " hit%s that its BPF "
	    "programs did not get%s: old values in this report may be wrong; "
	    "--delivery ring gets such hits", s->lost, s->lost == 1 ? "" : "s",
	    options_tally(run->options) ? ", or only counted while other "
	    "code was mapped" : "");
	session_doubt(s, "old values may be wrong");
}

static int
ring_account(struct run *run)
{
	struct session *s = &run->session;
	bool more;

	if (run->options->count)
		return take_counts(run);
	if (s->err < 0)		/* the rest of the counts is lost */
		session_counted(s, counted_in_all(run));
	more = !s->full && s->err >= 0 && ring_records_take(run, UINT64_MAX);
	/* only now are all mappings known */
	if (run->remote != NULL)
		counted_hits_take(run);
	if (!more) {
		ring_records_skip(run);
		run_settle_descendants(run);
		return 0;
	}
	session_counted(s, counted_in_all(run));
	withdraw_values(run);
	report_all_executed(run);
	run_settle_descendants(run);
	return 0;
}

static void
ring_turn_off(struct run *run, size_t watch)
{
	wp_target_turn_off(run->target, watch);
}

static int
ring_scout(struct run *run, struct wp_target *scouts, pid_t pid, size_t first,
    size_t n, struct wp_cause *cause)
{
	(void)run;
	return wp_target_attach(scouts, pid, first, n, cause);
}

static int
ring_move(struct run *run, pid_t pid, struct wp_target *target, size_t watch,
    const struct wp_region *region)
{
	(void)run;
	(void)pid;
	return wp_target_move(target, watch, region);
}

static void
ring_close(struct run *run)
{
	struct ring_run *ring = run->own;

	recorder_free(ring->recorder);
	wp_drain_free(ring->drain);
	free(ring);
}

/* Threads created while watched are known from their records. */
static void
ring_uptime(const struct run *run, struct wp_uptime *uptime)
{
	const struct session *s = &run->session;

	/* moving a slot disables it for a moment, which is reported */
	if (run->follow != NULL || run->rotate != NULL || run->objects != NULL)
		return;
	wp_target_uptime(run->target, uptime);
	if (options_everywhere(run->options) || run->mappers != NULL) {
		uptime->threads = 0;
		return;
	}
	uptime->threads = run->options->count || uptime->processors > 0 ||
	    s->lost > 0 || s->full ||
	    s->err < 0 || run->each ? 0 : uptime->threads + run->threads_made;
}

const struct run_ops run_by_ring = {
	.mode = "ring", .open = ring_open, .launch = ring_launch,
	.attach = ring_attach,
	.settle = ring_records_settle, .pass = ring_pass,
	.threads = run_threads, .announce = run_announce_kernel,
	.loop = ring_loop, .account = ring_account,
	.uptime = ring_uptime, .close = ring_close, .turn_off = ring_turn_off,
	.scout = ring_scout, .move = ring_move,
};
