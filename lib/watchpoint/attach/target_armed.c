/* target_armed: watches that are armed: moved, disarmed, and counted. */
#include "attach/target_private.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

#include "os/array.h"
#include "os/clock.h"
#include "ring/uptime.h"

static int
slot_ids(const struct wp_target *target, size_t watch, unsigned slot,
    uint64_t **ids)
{
	const struct wp_events *events = &target->events;
	int n = 0;

	if ((*ids = calloc(events->n + 2, sizeof(**ids))) == NULL)
		return -ENOMEM;
	if (target->options.stop) {	/* the records of stops have an id of
					   their own */
		**ids = wp_target_stop_id(watch, slot);
		return 1;
	}
	for (size_t i = 0; i < events->n; i++) {
		const struct wp_event *event = &events->event[i];

		if (event->watch == watch && event->slot == slot &&
		    wp_perf_id(event->fd, &(*ids)[n]) == 0)
			n++;
	}
	if (wp_rings_bpf(target->rings, 0) >= 0)	/* of samples by
							   programs, and of
							   marks */
		(*ids)[n++] = wp_sampler_id(watch, slot);
	return n;
}

int
wp_target_slot_ids(struct wp_target *target, size_t watch, unsigned slot,
    struct perf_event_attr *attr, uint64_t **ids)
{
	int n;

	(void)pthread_mutex_lock(&target->changing);
	wp_target_attr(target, watch, slot, attr);
	n = slot_ids(target, watch, slot, ids);
	(void)pthread_mutex_unlock(&target->changing);
	return n;
}

int
wp_target_move_events(const struct wp_target *target,
    const struct wp_events *events, size_t watch)
{
	int err = 0;

	for (size_t i = 0; i < events->n; i++) {
		const struct wp_event *event = &events->event[i];
		struct perf_event_attr attr;
		int one;

		if (event->watch != watch)
			continue;
		wp_target_attr(target, watch, event->slot, &attr);
		one = wp_perf_modify(event->fd, &attr);
		if (one < 0 && one != -ESRCH && err == 0)
			err = one;
	}
	return err;
}

int
wp_target_move(struct wp_target *target, size_t watch,
    const struct wp_region *region)
{
	struct wp_watched *watched = &target->watch[watch];
	struct wp_slot slot[WP_SLOTS_MAX];
	const int err = wp_slot_check(region, NULL), n = err < 0 ? err :
	    wp_slot_plan(region, &target->features.caps, slot, NULL);

	if (n < 0)
		return n;
	if ((unsigned)n > watched->nslots)
		return -ENOSPC;
	watched->region = *region;
	for (unsigned i = 0; i < watched->nslots; i++) {
		/* unused slots are moved to an address with nothing mapped */
		watched->slot[i].addr = i < (unsigned)n ? slot[i].addr : 0;
		if (i < (unsigned)n)
			watched->slot[i].len = slot[i].len;
	}
	return wp_target_move_events(target, &target->events, watch);
}

uint64_t
wp_target_armed(const struct wp_target *target)
{
	return target->armed;
}

/* Move the events of a process, or of one of its threads, to `out'.  Each
   thread's reference follows its events. */
static void
take_out(struct wp_events *events, size_t first, size_t n, pid_t tid,
    struct wp_events *out)
{
	size_t kept = 0, reference, end;

	for (size_t begin = 0; begin < events->n; begin = end) {
		const struct wp_event *event = &events->event[begin];
		const bool is = event->watch >= first &&
		    event->watch - first < n && (tid == 0 || event->tid == tid);

		end = wp_events_of_thread(events, begin, &reference);
		for (size_t i = begin; i < end; i++) {
			const struct wp_event one = events->event[i];

			if (is && WP_ARRAY_ROOM(out, event) == 0)
				out->event[out->n++] = one;
			else
				events->event[kept++] = one;
		}
	}
	events->n = kept;
}

void
wp_target_disarm(struct wp_target *target, size_t first, size_t n)
{
	struct wp_events out = {0};

	(void)pthread_mutex_lock(&target->changing);
	for (size_t w = first; w < first + n; w++)
		wp_tickets_closing(wp_samplers_tickets(&target->samplers, w,
		    0));
	wp_uprobes_turn(&target->uprobes, first, n, false);
	if (n > 0 && target->watch[first].on_processors)
		wp_process_filter_end(&target->others);
	take_out(&target->events, first, n, 0, &out);
	if (!target->stopped)
		wp_events_stop(&out, &target->options);
	for (size_t w = first; w < first + n; w++)
		wp_samplers_end(&target->samplers, &out, &target->options, w);
	wp_uptime_add(&target->past, &out, &target->options);
	target->past.threads = 0;  /* some may have been armed a second time */
	for (size_t w = first; w < first + n; w++) {
		wp_events_count(&out, &target->options, w,
		    &target->watch[w].past);
		target->watch[w].past.value += wp_uprobes_count(
		    &target->uprobes, w);
	}
	(void)pthread_mutex_unlock(&target->changing);
	wp_uprobes_close(&target->uprobes, first, n);
	wp_events_close(&out, 0);
}

bool
wp_target_is_on_processors(const struct wp_target *target, size_t watch)
{
	return watch < target->nwatches && target->watch[watch].on_processors;
}

bool
wp_target_executed(const struct wp_target *target, size_t watch)
{
	return wp_target_is_on_processors(target, watch) &&
	    wp_process_filter_executed(&target->others);
}

static bool
is_any_alive(const struct wp_target *target, size_t first, size_t n)
{
	if (wp_target_is_on_processors(target, first))
		return wp_process_filter_alive(&target->others);
	for (size_t i = 0; i < target->events.n; i++) {
		const struct wp_event *event = &target->events.event[i];
		struct pollfd p = {.fd = event->fd};

		if (event->watch < first || event->watch >= first + n)
			continue;
		if (poll(&p, 1, 0) == 0 || (p.revents & POLLHUP) == 0)
			return true;
	}
	return false;
}

bool
wp_target_alive(struct wp_target *target, size_t first, size_t n)
{
	bool is;

	(void)pthread_mutex_lock(&target->changing);
	is = is_any_alive(target, first, n);
	(void)pthread_mutex_unlock(&target->changing);
	return is;
}

void
wp_target_turn_off_events(const struct wp_target *target,
    struct wp_events *events, size_t watch)
{
	struct perf_event_attr attr;

	for (unsigned s = 0; s < target->watch[watch].nslots; s++) {
		wp_target_attr_off(target, watch, s, &attr);
		wp_events_turn_off(events, watch, (uint16_t)s, &attr);
	}
}

void
wp_target_turn_off(struct wp_target *target, size_t watch)
{
	target->watch[watch].off = true;
	wp_uprobes_turn(&target->uprobes, watch, 1, false);
	if (target->watch[watch].uprobe)
		return;
	(void)pthread_mutex_lock(&target->changing);
	wp_tickets_closing(wp_samplers_tickets(&target->samplers, watch, 0));
	wp_target_turn_off_events(target, &target->events, watch);
	(void)pthread_mutex_unlock(&target->changing);
}

void
wp_target_stop(struct wp_target *target)
{
	if (target->stopped)
		return;
	(void)pthread_mutex_lock(&target->changing);
	for (size_t w = 0; w < target->nwatches; w++)
		wp_tickets_closing(wp_samplers_tickets(&target->samplers, w,
		    0));
	(void)pthread_mutex_unlock(&target->changing);
	wp_uprobes_turn(&target->uprobes, 0, target->nwatches, false);
	wp_process_filter_end(&target->others);
	wp_events_stop(&target->events, &target->options);
	target->stopped = true;
}

int
wp_target_count(const struct wp_target *target, size_t watch,
    struct wp_perf_count *count)
{
	uint64_t others;

	*count = (struct wp_perf_count){0};
	if (watch >= target->nwatches)
		return -EINVAL;
	*count = target->watch[watch].past;
	wp_events_count(&target->events, &target->options, watch, count);
	count->value += wp_uprobes_count(&target->uprobes, watch);
	others = wp_target_count_others(target, watch);	/* read after the
							   hits */
	count->value -= others < count->value ? others : count->value;
	return 0;
}

ssize_t
wp_target_thread_counts(const struct wp_target *target,
    struct wp_thread_count **out)
{
	return wp_thread_counts_read(&target->thread_counts, out);
}

int
wp_target_mark(struct wp_target *target, size_t watch, uint64_t done,
    struct wp_ticket_mark *mark)
{
	struct wp_tickets *tickets;
	int got = -ENOENT;

	if (pthread_mutex_trylock(&target->changing) != 0)
		return -EBUSY;
	if (watch < target->nwatches) {
		tickets = target->watch[watch].nslots != 1 ||
		    target->watch[watch].uprobe || target->inexact ? NULL :
		    wp_samplers_tickets(&target->samplers, watch, 0);
		got = tickets != NULL && wp_tickets_taken(tickets) != done &&
		    wp_tickets_mark(tickets, &target->events,
		    &target->options, watch, wp_sampler_id(watch, 0), mark);
	}
	(void)pthread_mutex_unlock(&target->changing);
	return got;
}

void
wp_target_uptime(const struct wp_target *target, struct wp_uptime *uptime)
{
	wp_uptime_add(uptime, &target->events, &target->options);
	if (target->past.known)
		wp_uptime_join(uptime, &target->past);
}

int
wp_target_thread_ended(struct wp_target *target, pid_t tid)
{
	int moved;

	(void)pthread_mutex_lock(&target->changing);
	moved = wp_uprobes_move(target, tid);
	(void)pthread_mutex_unlock(&target->changing);
	return moved;
}

bool
wp_target_know(struct wp_target *target, const struct wp_known_stack *stack)
{
	const struct wp_samplers *samplers = &target->samplers;
	const bool tally = samplers->tallied != NULL && stack->watch > 0;

	if (!wp_known_is_valid(stack) || stack->watch > target->nwatches)
		return false;
	if (tally && target->watch[stack->watch - 1].nslots == 1)
		wp_stack_counts_know(samplers->tallied, samplers->known, stack,
		    wp_sampler_id(stack->watch - 1, 0));
	else if (samplers->known != NULL)
		(void)wp_known_add(samplers->known, stack, 0, 0);
	return true;
}

void
wp_target_forget(struct wp_target *target, pid_t pid)
{
	if (target->samplers.known != NULL)
		wp_known_forget(target->samplers.known, pid);
	if (target->samplers.tallied != NULL)
		wp_stack_counts_forget(target->samplers.tallied, pid);
}

void
wp_target_remapped(struct wp_target *target, pid_t pid, uint64_t from,
    uint64_t to, uint64_t time)
{
	if (target->samplers.tallied != NULL)
		wp_stack_counts_remapped(target->samplers.tallied, pid, from,
		    to, time);
}

bool
wp_target_look_at_tallies(struct wp_target *target, uint64_t horizon)
{
	return target->samplers.tallied != NULL &&
	    wp_stack_counts_look(target->samplers.tallied, horizon);
}

void
wp_target_show_tallies(struct wp_target *target,
    void (*fn)(void *, const struct wp_target_tally *), void *arg)
{
	if (target->samplers.tallied != NULL)
		wp_stack_counts_show(target->samplers.tallied, fn, arg);
}

void
wp_target_take_tallies(struct wp_target *target,
    void (*fn)(void *, const struct wp_target_tally *), void *arg)
{
	struct wp_samplers *samplers = &target->samplers;
	bool settled;

	if (samplers->tallied == NULL)
		return;
	wp_known_forget(samplers->known, 0);
	settled = wp_stack_table_settle();
	wp_stack_counts_take(samplers->tallied, fn, arg);
	wp_stack_counts_renew(samplers->tallied, samplers->known, settled);
}

/* --- threads that are added one by one --- */

/* List the events of a thread.  Returns their number or -ENOMEM. */
static int
list_events(const struct wp_target *target, size_t first, size_t n, pid_t tid,
    struct wp_target_event **out)
{
	const struct wp_events *events = &target->events;
	const size_t most = n * WP_SLOTS_MAX * wp_rings_count(target->rings);
	size_t got = 0;

	if ((*out = calloc(most, sizeof(**out))) == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < events->n && got < most; i++) {
		const struct wp_event *event = &events->event[i];
		struct wp_target_event *to = &(*out)[got];

		if (event->tid != tid || event->watch < first ||
		    event->watch >= first + n ||
		    wp_perf_id(event->fd, &to->id) < 0)
			continue;
		to->watch = event->watch;
		to->slot = event->slot;
		got++;
	}
	return (int)got;
}

/* Set the address of each event. */
static void
place_events(const struct wp_target *target, pid_t tid,
    struct wp_target_event *event, int n)
{
	struct perf_event_attr attr;

	for (int i = 0; i < n; i++) {
		const struct wp_watched *watched =
		    &target->watch[event[i].watch];

		attr.bp_addr = watched->slot[event[i].slot].addr;
		wp_target_put_local(watched, tid, &attr);
		event[i].addr = attr.bp_addr;
	}
}

int
wp_target_add_thread(struct wp_target *target, size_t first, size_t n,
    pid_t tid, struct wp_target_event **out)
{
	int err = 0, got;

	(void)pthread_mutex_lock(&target->changing);
	got = list_events(target, first, n, tid, out);
	if (got == 0) {
		err = target->stopped ? -ESRCH : wp_target_open_thread(target,
		    &target->events, first, n, tid);
		free(*out);
		got = err < 0 ? err : list_events(target, first, n, tid, out);
	}
	if (got >= 0)
		place_events(target, tid, *out, got);
	(void)pthread_mutex_unlock(&target->changing);
	return got;
}

void
wp_target_drop_thread(struct wp_target *target, size_t first, size_t n,
    pid_t tid)
{
	struct wp_events out = {0};

	(void)pthread_mutex_lock(&target->changing);
	take_out(&target->events, first, n, tid, &out);
	wp_events_stop(&out, &target->options);
	wp_uptime_add(&target->past, &out, &target->options);
	for (size_t w = first; w < first + n; w++)
		wp_events_count(&out, &target->options, w,
		    &target->watch[w].past);
	(void)pthread_mutex_unlock(&target->changing);
	wp_events_close(&out, 0);
}
