/*
 * value_match: the value of each hit, at the stop of the thread that made it.
 *
 * A watch is settled when its bytes and the counts of all accesses to it are
 * known for one moment.  From one such moment to the next, its value is exact
 * if all that was counted are the samples of this stop, and these are one
 * access, which the thread has not gone on from: had it blocked the signal for
 * a while, they might be several.  The stopped thread has all its samples in
 * the rings.  The events of other threads are read after the memory: counts
 * only grow, so if they are unchanged, they were so all the time.  If not,
 * memory is read once more between this and another reading of the counts; but
 * then another thread may have written between the access and the reading, and
 * what was read is not the value of this access.  It is what all that came
 * since the watch was settled, a crowd, have left.  What each of them left may
 * follow from what they loaded, once all their samples are there.
 *
 * Nothing is claimed where there may be writers that are not counted: other
 * mappings of the bytes, in whatever process; a process that has had the memory
 * since before it was traced; a child that has it until it executes a program,
 * which a FORK record reports before it can do anything;
 * and the kernel where its accesses are not seen, but not while the only thread
 * is stopped.
 */
#include <linux/hw_breakpoint.h>
#include <sys/mman.h>

#include "os/clock.h"
#include "proc/proc.h"
#include "proc/sharers.h"
#include "stop/stop_private.h"

/* With more events than this, reading the counts of the other threads would
   take too long, and values are not exact. */
enum { COUNTS_MAX = 512 };

/* The event of a thread with this id, or NULL.  The last event is the
   reference, which makes no samples. */
static const struct wp_event *
event_of(const struct wp_stop_thread *thread, uint64_t id)
{
	for (size_t i = 0; i + 1 < thread->events.n; i++)
		if (thread->id[i] == id)
			return &thread->events.event[i];
	return NULL;
}

/* A child that is not traced may share its parent's memory. */
static void
take_child(struct wp_stops *stops, const struct perf_event_header *header)
{
	const struct wp_task_record *task = (const void *)header;
	struct wp_stop_process *process =
	    wp_stop_find_process(stops, (pid_t)task->ppid);

	if (task->pid == task->ppid || stops->target->options.follow ||
	    process == NULL)
		return;
	wp_shared_vm_add(&stops->lent, &(struct wp_loan){
		(pid_t)task->ppid, (pid_t)task->ptid, (pid_t)task->pid});
	for (size_t i = 0; i < process->n; i++)
		process->baseline[i].gap = true;
}

/* No access has made the bytes what they are now; and others may have the same
   mapping. */
static void
take_mapping(struct wp_stops *stops, const struct perf_event_header *header)
{
	const struct wp_mmap2_record *map = (const void *)header;
	struct wp_stop_process *process =
	    wp_stop_find_process(stops, (pid_t)map->pid);

	if (process == NULL)
		return;
	process->own_end = 0;
	for (size_t i = 0; i < process->n; i++) {
		const struct wp_region *region =
		    &stops->target->watch[process->first + i].region;

		if (region->addr < map->addr + map->len &&
		    map->addr < region->addr + region->len) {
			process->baseline[i].gap = true;
			process->baseline[i].shared |=
			    (map->flags & MAP_SHARED) != 0;
		}
	}
}

static void
take_in(struct wp_stops *stops, const struct perf_event_header *header)
{
	const bool callchain = stops->target->options.callchain ||
	    stops->target->options.for_perf;
	const struct wp_stop_thread *thread = NULL;
	const struct wp_event *event = NULL;
	const struct wp_sample *sample = (const void *)header;
	struct wp_stop_record *record;
	uint64_t id = 0;

	if (header->type == PERF_RECORD_FORK)
		take_child(stops, header);
	if (header->type == PERF_RECORD_MMAP2)
		take_mapping(stops, header);
	if (header->type == PERF_RECORD_SAMPLE) {
		id = sample->id;
		if ((thread = wp_stop_find(stops, (pid_t)sample->tid)) != NULL)
			event = event_of(thread, id);
		if (event != NULL)
			id = wp_target_stop_id(event->watch, event->slot);
	}
	record = wp_stop_queue_add(&stops->queue, header, callchain, id);
	if (record == NULL || !record->waits)
		return;
	if (event != NULL)
		record->watch = event->watch;
	record->waits = event != NULL && !thread->signal_blocked;
}

void
wp_stop_drain(struct wp_stops *stops)
{
	const struct perf_event_header *header;

	while ((header = wp_rings_next(stops->target->rings, UINT64_MAX)) !=
	    NULL)
		take_in(stops, header);
	wp_stop_drain_scouts(stops);
}

void
wp_stop_give_up(struct wp_stops *stops, pid_t tid)
{
	struct wp_stop_queue *q = &stops->queue;

	for (size_t i = q->first; i < q->end; i++)
		if (q->record[i].tid == tid)
			q->record[i].waits = false;
}

/* The samples of one watch that a thread made before it stopped. */
struct touched {
	struct wp_stop_record record;	/* the last one, copied because the
					   queue may move */
	struct wp_stop_record *last;  /* in the queue; NULL if there are none */
	uint64_t samples;
	bool one;			/* they are from one access, */
	bool here;			/* and the thread is stopped right
					   behind it, as it had not blocked
					   the signal */
};

/* The findings about one stop. */
struct findings {
	struct wp_stops *stops;
	struct wp_stop_thread *thread;
	struct touched touched[WP_SLOTS_MAX];	/* indexed by watch - first */
	bool read[WP_SLOTS_MAX];	/* the memory could be read */
	bool exact[WP_SLOTS_MAX];	/* no other thread has accessed it */
	bool crowded[WP_SLOTS_MAX];	/* other threads are known to have */
	bool lent;			/* others share the memory */
	bool settled[WP_SLOTS_MAX];	/* no thread accessed it while it was
					   read */
	struct wp_stop_value value[WP_SLOTS_MAX];
	uint64_t pc;	/* where the thread is stopped, or 0 if not known */
	int call;
	int64_t result;
};

/* Find the thread's samples.  Returns whether there are any. */
static bool
find_samples(struct findings *found)
{
	const struct wp_stop_process *process = found->thread->process;
	struct wp_stop_queue *q = &found->stops->queue;
	bool any = false;

	for (size_t i = q->first; i < q->end; i++) {
		struct wp_stop_record *r = &q->record[i];
		struct touched *touched;

		if (!r->waits || r->tid != found->thread->traced.tid)
			continue;
		any = true;
		r->waits = false;
		touched = &found->touched[r->watch - process->first];
		touched->samples++;
		/* the kernel read it to take that sample */
		if (touched->last != NULL && r->kernel &&
		    !touched->last->kernel && r->pc == touched->last->ip)
			continue;
		touched->one = touched->last == NULL ||
		    (touched->one && touched->last->kernel == r->kernel &&
		    (r->kernel || touched->last->ip == r->ip));
		touched->record = *r;
		touched->last = &touched->record;
		touched->here = r->pc != 0 && r->pc == found->pc;
		found->stops->last = r->time;
		found->stops->last_cpu = r->cpu;
		found->stops->last_tid = r->tid;
	}
	return any;
}

/* Read the counts that the other threads have for a watch, and keep them.
   Returns whether they are the same as those kept before. */
static bool
counts_stand(const struct findings *found, size_t i)
{
	const struct wp_stops *stops = found->stops;
	const size_t watch = found->thread->process->first + i;
	bool same = true;

	for (struct wp_stop_thread *thread = found->thread->process->thread;
	    thread != NULL; thread = thread->next_in_process) {
		uint64_t now, time;

		if (thread == found->thread)
			continue;
		time = wp_clock_ns();
		now = wp_stop_counted(stops, thread, watch);
		same = same && now == thread->counted[i];
		thread->counted[i] = now;
		if (now == thread->taken[i])
			thread->crowd[i].since = time;
	}
	return same;
}

static bool
is_data(const struct findings *found, size_t i)
{
	return found->stops->target->watch[found->thread->process->first + i]
	    .slot[0].type != HW_BREAKPOINT_X;
}

/* Whether the counts of all threads can be read in a reasonable time. */
static bool
are_countable(const struct findings *found)
{
	const struct wp_stop_process *process = found->thread->process;

	return process->threads * found->thread->events.n <= COUNTS_MAX;
}

/* Read the watched bytes. */
static bool
read_bytes(struct findings *found, size_t i)
{
	struct wp_stop_value *value = &found->value[i];
	const struct wp_watched *watched = &found->stops->target->
	    watch[found->thread->process->first + i];
	const struct wp_region *region = &watched->region;
	uint32_t len = region->len < WP_STOP_BYTES ? (uint32_t)region->len :
	    WP_STOP_BYTES;

	const uint64_t addr = region->addr + (watched->block == 0 ? 0 :
	    found->thread->block - watched->block);

	*value = (struct wp_stop_value){
		.magic = WP_STOP_MAGIC, .version = WP_STOP_VERSION,
		.addr = addr, .len = len,
		.call = found->call, .result = found->result,
	};
	found->read[i] = wp_proc_read(found->thread->process->pid, addr,
	    value->new, len) == (ssize_t)len;
	return found->read[i];
}

static bool
is_wanted(const struct findings *found, size_t i)
{
	return found->touched[i].last != NULL && is_data(found, i);
}

/* Whether each thread has its own instance, which others may write to without a
   hit. */
static bool
is_local(const struct findings *found, size_t i)
{
	return found->stops->target->watch[found->thread->process->first +
	    i].block != 0;
}

/* Read the value of a watch, between two readings of the other threads' counts
   unless there are no other threads. */
static void
look_at_value(struct findings *found, size_t i)
{
	const struct wp_stop_process *process = found->thread->process;
	const bool alone = process->threads == 1;

	if (is_local(found, i)) {
		(void)read_bytes(found, i);
		return;
	}
	found->settled[i] = read_bytes(found, i) &&
	    (alone || are_countable(found));
	found->exact[i] = found->settled[i] &&
	    (alone || counts_stand(found, i));
	found->crowded[i] = found->settled[i] && !found->exact[i];
	if (found->crowded[i])
		found->settled[i] = read_bytes(found, i) &&
		    counts_stand(found, i);
}

/* The next process, starting with `from', that shares these bytes. */
static struct wp_stop_process *
sharer(struct wp_stop_process *from, const struct wp_stop_process *process,
    size_t i)
{
	while (from != NULL && (from == process ||
	    from->first != process->first ||
	    from->baseline[i].memory != process->baseline[i].memory))
		from = from->next;
	return from;
}

/* An access was made by a thread whose counts are not the ones read here. */
static void
unsettle(const struct wp_stops *stops, struct wp_stop_process *process,
    size_t i)
{
	struct wp_stop_process *other = stops->process;

	process->baseline[i].gap = true;
	for (; (other = sharer(other, process, i)) != NULL; other = other->next)
		other->baseline[i].gap = true;
}

/* Whether the bytes read are what the thread's last access left.  They are if
   the samples account for all that the thread did since the previous reading,
   and no other thread accessed the bytes, nor could have without being counted.
   The previous reading must be consistent, that is of a single moment:
   otherwise this access might have come after its own count was read, and
   another thread's access before. */
static bool
is_left(const struct findings *found, size_t i, uint64_t now, bool alone)
{
	const struct wp_stop_thread *thread = found->thread;
	const struct wp_stop_baseline *baseline = &thread->process->baseline[i];
	const struct touched *touched = &found->touched[i];
	const bool kernel = found->stops->target->options.kernel;

	return found->exact[i] && found->settled[i] && baseline->consistent &&
	    thread->counted[i] == thread->taken[i] &&
	    now == thread->taken[i] + touched->samples && alone &&
	    !baseline->shared && !baseline->gap && !found->lent &&
	    (kernel || (touched->here && thread->process->threads == 1));
}

/* Whether, in addition, the value known before is what the access found: there
   was only one access, and the kernel made none that was not seen. */
static bool
is_exact(const struct findings *found, size_t i)
{
	const struct touched *touched = &found->touched[i];

	return found->thread->process->baseline[i].known && touched->one &&
	    touched->here && found->stops->target->options.kernel;
}

/* Set the crowd of an access: the current one, unless the access was counted
   before an earlier crowd ended. */
static void
put_crowd(const struct findings *found, size_t i, uint64_t now,
    struct wp_stop_value *value)
{
	struct wp_stop_thread *thread = found->thread;
	const struct touched *touched = &found->touched[i];
	const bool ended = thread->crowd[i].number != 0;

	if (touched->one && are_countable(found) &&
	    now == thread->taken[i] + touched->samples &&
	    (!ended || thread->crowd[i].counted == now)) {
		value->crowd = ended ? thread->crowd[i].number :
		    thread->process->baseline[i].crowd.number;
		value->samples = (uint32_t)touched->samples;
		value->since = thread->crowd[i].since;
	}
	thread->crowd[i].number = 0;
}

/* The accesses of a thread that were counted when a crowd ended belong to it.
   If some were counted when an earlier crowd ended as well, only the rest
   do. */
static uint32_t
leave_crowd(struct wp_stop_thread *thread, size_t i, uint64_t number)
{
	const uint64_t now = thread->counted[i];
	const uint32_t samples = (uint32_t)(now - thread->ended[i]);

	thread->ended[i] = now;
	if (now != thread->taken[i] && thread->crowd[i].number == 0) {
		thread->crowd[i].number = number;
		thread->crowd[i].counted = now;
	}
	return samples;
}

/* All counts are known here, so the crowd ends, and the next one begins. */
static void
end_crowd(struct findings *found, size_t i, struct wp_stop_value *value)
{
	struct wp_stop_process *process = found->thread->process;
	const struct wp_stop_baseline *baseline = &process->baseline[i];
	struct wp_crowd *crowd = &process->baseline[i].crowd;

	value->ended = crowd->number;
	for (struct wp_stop_thread *thread = process->thread; thread != NULL;
	    thread = thread->next_in_process)
		value->all += leave_crowd(thread, i, crowd->number);
	if (crowd->unseen)
		value->all = 0;
	if (crowd->known && (value->flags & WP_STOP_EXACT) == 0) {
		value->flags |= WP_STOP_BEGAN;
		memcpy(value->old, crowd->byte, sizeof(value->old));
	}
	crowd->number = ++found->stops->crowds;
	crowd->unseen = false;
	crowd->known = baseline->known;
	memcpy(crowd->byte, value->new, sizeof(crowd->byte));
}

/* Put the value of a watch into its last sample. */
static void
put_value(struct findings *found, size_t i)
{
	struct wp_stop_thread *thread = found->thread;
	struct wp_stop_baseline *baseline = &thread->process->baseline[i];
	struct wp_stop_value *value = &found->value[i];
	const uint64_t now = wp_stop_counted(found->stops, thread,
	    thread->process->first + i);
	const bool alone = sharer(found->stops->process, thread->process, i) ==
	    NULL;

	if (is_local(found, i)) {
		thread->taken[i] = thread->counted[i] = now;
		if (found->read[i])
			wp_stop_record_value(found->touched[i].last, value);
		return;
	}
	if (is_left(found, i, now, alone)) {
		value->flags |= WP_STOP_LEFT;
		if (is_exact(found, i)) {
			value->flags |= WP_STOP_EXACT;
			memcpy(value->old, baseline->byte, value->len);
		}
	} else if (found->crowded[i] || baseline->gap ||
	    !baseline->consistent || thread->counted[i] != thread->taken[i]) {
		value->len = 0;	/* others may have accessed it, even after
				   this access */
	}
	put_crowd(found, i, now, value);
	baseline->crowd.unseen |= baseline->gap || baseline->shared ||
	    found->lent || !alone || !found->stops->target->options.kernel;
	thread->taken[i] = thread->counted[i] = now;
	if (!alone)
		unsettle(found->stops, thread->process, i);
	baseline->known = found->settled[i] && alone && !baseline->shared &&
	    !found->lent;
	baseline->gap = found->lent;
	baseline->consistent = found->settled[i];
	memcpy(baseline->byte, value->new, sizeof(baseline->byte));
	if (found->settled[i])
		end_crowd(found, i, value);
	if (found->read[i])
		wp_stop_record_value(found->touched[i].last, value);
}

/* Whether others share the memory for the time being. */
static bool
is_lent(const struct findings *found, bool (*shares)(pid_t tid, pid_t child))
{
	const struct wp_stop_process *process = found->thread->process;

	return wp_shared_vm_left(&found->stops->lent, process->pid, shares) ||
	    process->unsure;
}

enum wp_stopped_at
wp_stop_join(struct wp_stops *stops, struct wp_stop_thread *thread)
{
	struct findings found = {.stops = stops, .thread = thread, .call = -1};
	bool here = false, kernel = false;

	found.pc = wp_trace_pc(thread->traced.tid);
	if (!find_samples(&found))
		return WP_STOP_AT_NOTHING;
	for (size_t i = 0; i < thread->process->n; i++) {
		here = here || found.touched[i].here;
		kernel = kernel || (found.touched[i].here &&
		    found.touched[i].last->kernel);
	}
	if (kernel)
		found.call = wp_trace_call(thread->traced.tid, &found.result);
	found.lent = is_lent(&found, wp_sharers_has);
	for (size_t i = 0; i < thread->process->n; i++)
		if (is_wanted(&found, i))
			look_at_value(&found, i);
	/* for children that were created in the meantime */
	wp_stop_drain(stops);
	found.lent = is_lent(&found, NULL);
	for (size_t i = 0; i < thread->process->n; i++)
		if (is_wanted(&found, i))
			put_value(&found, i);
	return kernel ? WP_STOP_AT_CALL : here ? WP_STOP_AT_HIT :
	    WP_STOP_AT_NOTHING;
}

void
wp_stop_void_baselines(struct wp_stops *stops, struct wp_stop_thread *thread)
{
	struct wp_stop_process *process = thread->process;

	for (size_t i = 0; i < process->n; i++)
		if (wp_stop_counted(stops, thread, process->first + i) !=
		    thread->counted[i] ||
		    thread->counted[i] != thread->ended[i])
			unsettle(stops, process, i);
}

/* Whether no other process has the bytes mapped.  Looking that up takes longer
   than a hit, and a watch that moves mostly stays in one mapping, so the range
   is kept. */
static bool
is_own(struct wp_stop_process *process, const struct wp_region *region)
{
	if (region->addr == 0)
		return false;
	if (region->addr < process->own ||
	    region->addr + region->len > process->own_end)
		wp_proc_own(process->pid, region->addr, region->len,
		    &process->own, &process->own_end);
	return process->own_end != 0 || !wp_proc_shares(process->pid,
	    region->addr, region->len);
}

static void
take_baseline(struct wp_stops *stops, struct wp_stop_process *process, size_t i)
{
	const struct wp_region *region =
	    &stops->target->watch[process->first + i].region;
	struct wp_stop_baseline *baseline = &process->baseline[i];

	baseline->shared = process->lent ||
	    stops->target->watch[process->first + i].block != 0 ||
	    !is_own(process, region);
	baseline->consistent = true;
	baseline->known = !baseline->shared &&
	    region->len <= WP_STOP_BYTES &&
	    wp_proc_read(process->pid, region->addr, baseline->byte,
	    region->len) == (ssize_t)region->len;
	baseline->crowd.number = ++stops->crowds;
	baseline->crowd.known = baseline->known;
	memcpy(baseline->crowd.byte, baseline->byte, sizeof(baseline->byte));
}

void
wp_stop_take_baselines(struct wp_stops *stops, struct wp_stop_process *process)
{
	for (size_t i = 0; i < process->n; i++)
		take_baseline(stops, process, i);
}

void
wp_stop_begin_anew(struct wp_stops *stops, struct wp_stop_process *process,
    size_t i, bool held)
{
	struct wp_stop_baseline *baseline = &process->baseline[i];

	take_baseline(stops, process, i);
	baseline->gap = !held || wp_shared_vm_left(&stops->lent, process->pid,
	    NULL);
	baseline->crowd.unseen = baseline->gap;
	for (struct wp_stop_thread *t = process->thread; t != NULL;
	    t = t->next_in_process) {
		t->counted[i] = t->taken[i] = t->ended[i] = wp_stop_counted(
		    stops, t, process->first + i);
		t->crowd[i].number = 0;
		t->crowd[i].since = wp_clock_ns();
	}
}
