/* ring_records: handles records of tasks and mappings, and hits that are
   kept. */
#include "deliver/ring_records.h"

#include <errno.h>
#include <string.h>

#include "follow/follow.h"
#include "follow/rotate.h"
#include "os/clock.h"
#include "pending/instances.h"
#include "run/trap_before.h"
#include "run/counted_hits.h"
#include "setup/mappers.h"
#include "setup/objects.h"

enum { NAP = 200000 };	/* ns between looks for records that are not in the
			   rings yet */

/* Count the threads that are covered.  A new process with the id of an earlier
   one is another process: what is known of the earlier one is dropped, and an
   end that follows belongs to the new one. */
static void
count_threads(struct run *run, const struct ex_record *r)
{
	bool thread = r->task.pid == r->task.ppid;

	run->threads_made += r->type == PERF_RECORD_FORK &&
	    (thread || run->options->follow);
	for (size_t i = 0; i < run->nprocesses; i++) {
		struct process *process = &run->process[i];

		if (process->pid != r->task.pid || process->replaced)
			continue;
		if (r->type == PERF_RECORD_FORK && !thread)
			process->replaced = r->task.time > process->since;
		else if (r->type == PERF_RECORD_EXIT)
			process->threads--;
		else if (thread)
			process->threads++;
	}
}

/* The thread that uprobes were opened on may end before others of its
   process. */
static void
move_uprobes(struct run *run, const struct ex_record *record)
{
	const pid_t tid = record->task.tid;
	const int moved = wp_target_thread_ended(run->target, tid);
	const uint64_t now = wp_clock_ns();

	if (moved == 0)
		return;
	if (moved < 0)
		session_warn(&run->session, "thread %d has ended, by which "
		    "uprobes were on process %d: no more of their hits are "
		    "seen (%s)", tid, record->task.pid, moved == -EAGAIN ?
		    "its threads end too soon" : strerror(-moved));
	else
		session_warn(&run->session, "thread %d has ended, by which "
		    "uprobes were on process %d: for at most %.1f ms their "
		    "hits were not seen", tid, record->task.pid,
		    (double)(now - record->task.time) / 1e6);
	session_doubt(&run->session, "hits at uprobes were not seen after "
	    "thread %d had ended", tid);
}

/* Process what a record says about threads and processes. */
static void
take_tasks(struct run *run, const struct ex_record *record)
{
	counted_hits_learn(run, record);
	if (options_everywhere(run->options))
		return;
	if (run->mappers != NULL) {
		run_take_child(run, record);
		return;
	}
	if (record->type == PERF_RECORD_EXIT)
		move_uprobes(run, record);
	if (record->type == PERF_RECORD_FORK ||
	    record->type == PERF_RECORD_EXIT) {
		count_threads(run, record);
		run_take_descendant(run, record);
	}
	run_take_child(run, record);
	run_take_thread_end(run, record);
}

/* Keep the drained records, and drop those that are too many. */
static bool
keep_records(struct run *run)
{
	struct ring_run *ring = run->own;
	const struct perf_event_header *header;
	struct ex_record record;
	bool more = true;

	while (more && (header = wp_drain_look(ring->drain)) != NULL) {
		follow_report(run->follow);
		instances_report(run);
		if (!run_decode(run, header, &record)) {
			more = recorder_pass(ring->recorder, header);
			continue;
		}
		take_tasks(run, &record);
		more = run->mappers == NULL ||
		    run_is_of_mappers(run, &record) ?
		    recorder_keep(ring->recorder, run, header, &record) :
		    recorder_pass(ring->recorder, header);
	}
	return more;
}

/* Why the kept records have to be reported now that everything before the
   horizon is there (UINT64_MAX: at the end), or NULL. */
static const char *
reason_to_release(const struct run *run, uint64_t horizon)
{
	const struct ring_run *ring = run->own;

	if (run->release_reason != NULL)
		return horizon >= run->release ? run->release_reason : NULL;
	return horizon != UINT64_MAX || run->options->last == 0 ||
	    (ring->recorder != NULL && !recorder_is_due(ring->recorder)) ?
	    NULL : run->reason;
}

/* Write all records up to the horizon and the kept ones, followed by the reason
   why they were reported. */
static bool
release(struct run *run, const char *reason, uint64_t horizon)
{
	const struct ring_run *ring = run->own;
	struct session *s = &run->session;

	if ((ring->recorder != NULL &&
	    !recorder_release(ring->recorder, run)) ||
	    !session_flush(s, horizon))
		return false;
	session_last(s, reason);
	return session_flush(s, horizon);
}

/* Report the kept records if that is due; otherwise write those that are
   there. */
static bool
write_records(struct run *run, uint64_t horizon)
{
	const char *reason = reason_to_release(run, horizon);

	if (reason == NULL)
		return session_flush(&run->session, horizon);
	run->release_reason = NULL;
	run->crashed = false;
	return release(run, reason, horizon);
}

bool
ring_records_take(struct run *run, uint64_t horizon)
{
	struct ring_run *ring = run->own;
	const struct perf_event_header *header;
	struct ex_record record;

	if (ring->recorder != NULL)
		return keep_records(run) && write_records(run, horizon);
	while ((header = wp_drain_next(ring->drain)) != NULL) {
		follow_report(run->follow);
		objects_report(run->objects);
		instances_report(run);
		if (!run_decode(run, header, &record))
			continue;
		take_tasks(run, &record);
		rotate_take(run->rotate, &record);
		instances_take(run, &record);
		if (!objects_take(run->objects, &record))
			continue;
		if (run->mappers != NULL && !run_is_of_mappers(run, &record))
			continue;
		if (!trap_before_record(run, &record))
			return false;
	}
	return write_records(run, horizon);
}

uint64_t
ring_records_until(struct run *run, uint64_t time)
{
	struct ring_run *ring = run->own;

	for (;;) {
		const uint64_t ready = wp_drain_ready(ring->drain);

		if (!ring_records_take(run, ready))
			return 0;
		if (ready >= time)
			return ready;
		wp_clock_sleep(NAP);
	}
}

void
ring_records_settle(struct run *run, bool watched)
{
	struct ring_run *ring = run->own;
	const uint64_t ready = ring_records_until(run, wp_clock_ns());

	if (ready != 0 && watched && ring->recorder != NULL &&
	    recorder_has_hits(ring->recorder))
		(void)release(run, "exit", ready);
}

void
ring_records_skip(struct run *run)
{
	struct ring_run *ring = run->own;
	const struct perf_event_header *header;
	struct ex_record record;

	while ((header = wp_drain_next(ring->drain)) != NULL) {
		instances_report(run);
		if (run_decode(run, header, &record))
			take_tasks(run, &record);
	}
}
