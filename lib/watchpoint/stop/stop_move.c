/*
 * stop_move: watches that move while all threads of their process are held.
 *
 * A thread that hits a scout stops behind its access, as at any hit.  By then
 * the record is in the ring, and is found at the next stop of any thread.  Only
 * then are the others held: until that they run.
 */
#include "os/clock.h"
#include "stop/stop_private.h"

static void
take_in(struct wp_stops *stops, const struct perf_event_header *header)
{
	const struct wp_sample *sample = (const void *)header;
	struct wp_stop_process *process = stops->process;
	struct wp_stop_thread *thread;

	if (header->type == PERF_RECORD_SAMPLE) {
		thread = wp_stop_find(stops, (pid_t)sample->tid);
		if (thread != NULL)
			thread->scout_ip = sample->ip;
		process = wp_stop_find_process(stops, (pid_t)sample->pid);
		if (process == NULL)
			return;
		process->scouted = true;
		stops->last = sample->time;
		stops->last_cpu = (int)sample->cpu;
		stops->last_tid = (pid_t)sample->tid;
		stops->calls->scouted(stops->arg, sample);
	} else if (header->type == PERF_RECORD_LOST) {
		for (; process != NULL; process = process->next)
			process->scouted = true;
		stops->calls->scouted(stops->arg, NULL);
	}
}

void
wp_stop_drain_scouts(struct wp_stops *stops)
{
	const struct perf_event_header *header;

	while (stops->scouts != NULL && (header = wp_rings_next(
	    wp_target_rings(stops->scouts), UINT64_MAX)) != NULL)
		take_in(stops, header);
}

/* The pc of the process's only thread, or 0 if there are more or it is not
   held. */
static uint64_t
only_pc(const struct wp_stop_process *process)
{
	return process->threads == 1 && process->thread->held ?
	    wp_trace_pc(process->thread->traced.tid) : 0;
}

static struct wp_stop_process *
next_scouted(const struct wp_stops *stops)
{
	struct wp_stop_process *process = stops->process;

	while (process != NULL && !process->scouted)
		process = process->next;
	return process;
}

/* A process may end or execute another program while it is being held. */
void
wp_stop_look_at_scouts(struct wp_stops *stops)
{
	struct wp_stop_process *process;

	while (stops->moving && !stops->ending && !stops->loop.enough &&
	    (process = next_scouted(stops)) != NULL) {
		struct wp_stops_held held = {.pid = process->pid};

		if (wp_stops_hold(stops, held.pid) == 0)
			held.time = wp_clock_ns();
		wp_stop_drain(stops);
		process = wp_stop_find_process(stops, held.pid);
		if (process == NULL)
			continue;
		process->scouted = false;
		held.pc = held.time != 0 ? only_pc(process) : 0;
		held.since = process->left;
		stops->calls->held(stops->arg, &held);
	}
}

void
wp_stops_scout(struct wp_stops *stops, struct wp_target *scouts, size_t first,
    size_t n)
{
	stops->scouts = scouts;
	stops->scout = first;
	stops->nscouts = n;
}

void
wp_stops_begin_moving(struct wp_stops *stops)
{
	stops->moving = true;
	for (struct wp_stop_process *process = stops->process; process != NULL;
	    process = process->next)
		process->scouted = true;
}

/* The samples of a thread that could not be held would get the bytes at the new
   place as their value. */
static void
give_up_process(struct wp_stops *stops, const struct wp_stop_process *process)
{
	for (const struct wp_stop_thread *t = process->thread; t != NULL;
	    t = t->next_in_process)
		wp_stop_give_up(stops, t->traced.tid);
}

int
wp_stops_move(struct wp_stops *stops, pid_t pid, struct wp_target *target,
    size_t watch, const struct wp_region *region)
{
	struct wp_stop_process *process = wp_stop_find_process(stops, pid);
	const bool scouts = target == stops->scouts;
	bool held = true;
	int err = wp_target_move(target, watch, region);

	if (process == NULL)
		return err;
	for (struct wp_stop_thread *t = process->thread; t != NULL && err == 0;
	    t = t->next_in_process) {
		held = held && t->held;
		err = wp_target_move_events(target, scouts ? &t->scouts :
		    &t->events, watch);
	}
	if (!scouts) {
		give_up_process(stops, process);
		wp_stop_begin_anew(stops, process, watch - process->first,
		    held && err == 0);
	}
	return err;
}

bool
wp_stops_owns(const struct wp_stops *stops, pid_t pid, uint64_t addr,
    uint64_t len)
{
	const struct wp_stop_process *process = wp_stop_find_process(stops,
	    pid);

	return process != NULL && addr >= process->own &&
	    addr + len <= process->own_end;
}
