/* event_table: the table of open events. */
#include "ring/event_table.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "os/array.h"
#include "os/clock.h"

enum { VAGUE_MAX = 1000000 };	/* ns */

/* Raise the limit of descriptors to the maximum permitted. */
static bool
raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
	    limit.rlim_cur == limit.rlim_max)
		return false;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

static int
event_open(struct perf_event_attr *attr, pid_t tid, int cpu)
{
	int fd = wp_perf_open(attr, tid, cpu);

	if (fd == -EMFILE && raise_limit())
		fd = wp_perf_open(attr, tid, cpu);
	return fd;
}

/* Open one event, and redirect its records to a ring if it has one. */
static int
events_add(struct wp_events *events, struct perf_event_attr *attr,
    struct wp_event event, int cpu, int ring_fd)
{
	int err = WP_ARRAY_ROOM(events, event);

	if (err < 0)
		return err;
	if ((event.fd = event_open(attr, event.tid, cpu)) < 0)
		return event.fd;
	if (ring_fd >= 0 && (err = wp_perf_redirect(event.fd, ring_fd)) < 0) {
		(void)close(event.fd);
		return err;
	}
	events->event[events->n++] = event;
	return 0;
}

/* An offline processor can have events of threads, but none for everything that
   runs there. */
static int
unless_offline(int err, pid_t tid)
{
	return err == -ENODEV && tid < 0 ? 0 : err;
}

static bool
is_there(const struct wp_events *events, const struct wp_event *like)
{
	for (size_t i = 0; i < events->n; i++) {
		const struct wp_event *event = &events->event[i];

		if (event->tid < 0 && !event->dead &&
		    event->ring == like->ring && event->watch == like->watch &&
		    event->slot == like->slot)
			return true;
	}
	return false;
}

/* Open the event of a ring's processor, unless it is there. */
static int
add_of_processor(struct wp_events *events, struct perf_event_attr *attr,
    struct wp_event event, const struct wp_rings *rings, bool redirected)
{
	if (event.tid < 0 && is_there(events, &event))
		return 0;
	return unless_offline(events_add(events, attr, event,
	    wp_rings_cpu(rings, event.ring), redirected ?
	    wp_rings_fd(rings, event.ring) : -1), event.tid);
}

int
wp_events_open(struct wp_events *events, struct perf_event_attr *attr,
    uint16_t watch, uint16_t slot, pid_t tid, const struct wp_rings *rings)
{
	struct wp_event event = {.watch = watch, .slot = slot, .tid = tid};
	size_t first = events->n;
	int err = 0;

	for (unsigned i = 0; err == 0 && i < wp_rings_count(rings);
	    event.ring = ++i)
		err = add_of_processor(events, attr, event, rings, true);
	if (err < 0)
		wp_events_close(events, first);
	return err;
}

int
wp_events_reference(struct wp_events *events, const struct wp_options *options,
    pid_t tid, const struct wp_rings *rings)
{
	struct wp_event event = {.watch = WP_EVENT_REFERENCE, .tid = tid};
	struct wp_options of = *options;
	struct perf_event_attr attr;
	int err = 0;

	of.everywhere = tid < 0;
	wp_attr_reference(&attr, &of);
	if (!of.everywhere)
		return events_add(events, &attr, event, -1, -1);
	for (unsigned i = 0; err == 0 && i < wp_rings_count(rings);
	    event.ring = ++i)
		err = add_of_processor(events, &attr, event, rings, false);
	return err;
}

static const struct wp_event *
last_on_processor(const struct wp_events *events, unsigned ring)
{
	for (size_t i = events->n; i > 0; i--)
		if (events->event[i - 1].tid < 0 &&
		    events->event[i - 1].ring == ring)
			return &events->event[i - 1];
	return NULL;
}

int
wp_event_read(const struct wp_event *event, uint64_t format,
    struct wp_perf_count *count)
{
	if (!event->dead)
		return wp_perf_read(event->fd, format, count);
	*count = event->counted;
	return 0;
}

/* Close the events of a processor that has been offline, since they still take
   slots there.  It took them off one after the other, while no program ran. */
static void
bury(struct wp_events *events, unsigned ring, uint64_t format)
{
	for (size_t i = 0; i < events->n; i++) {
		struct wp_event *event = &events->event[i];

		if (event->tid >= 0 || event->ring != ring || event->dead)
			continue;
		(void)wp_perf_read(event->fd, format, &event->counted);
		(void)close(event->fd);
		event->fd = -1;
		event->dead = true;
		if (event->watch == WP_EVENT_REFERENCE)
			event->vague = VAGUE_MAX;
	}
}

/* An event of a processor counts everything that runs there, so its time always
   passes. */
static bool
is_dead(const struct wp_event *event, uint64_t format)
{
	struct wp_perf_count one, two;

	return event == NULL || wp_event_read(event, format, &one) < 0 ||
	    wp_event_read(event, format, &two) < 0 ||
	    one.running == two.running;
}

/* Returns whether there are any. */
static bool
leave_out_dead(struct wp_events *events, uint64_t format,
    struct wp_rings *rings)
{
	bool any = false;

	for (unsigned i = 0; i < wp_rings_count(rings); i++) {
		const bool dead = is_dead(last_on_processor(events, i), format);

		wp_rings_leave_out(rings, i, dead);
		if (dead)
			bury(events, i, format);
		any = any || dead;
	}
	return any;
}

/* Events of threads need no check, because they follow the thread to any
   processor. */
bool
wp_events_check_processors(struct wp_events *events, uint64_t format,
    struct wp_rings *rings, void (*open)(void *), void *arg)
{
	const size_t n = events->n;

	if (n == 0 || events->event[n - 1].tid >= 0 ||
	    !leave_out_dead(events, format, rings))
		return false;
	open(arg);
	(void)leave_out_dead(events, format, rings);
	return events->n > n;
}

void
wp_events_count(const struct wp_events *events,
    const struct wp_options *options, size_t watch, struct wp_perf_count *sum)
{
	const uint64_t format = wp_attr_format(options);
	struct wp_perf_count one;

	for (size_t i = 0; i < events->n; i++)
		if (events->event[i].watch == watch &&
		    wp_event_read(&events->event[i], format, &one) == 0) {
			sum->value += one.value;
			sum->lost += one.lost;
		}
}

/* Older kernels cannot move inherited copies; these remain. */
void
wp_events_turn_off(struct wp_events *events, size_t watch, uint16_t slot,
    const struct perf_event_attr *attr)
{
	for (size_t i = 0; i < events->n; i++) {
		struct wp_event *event = &events->event[i];

		if (event->watch != watch || event->slot != slot)
			continue;
		event->off = true;
		(void)wp_perf_modify(event->fd, attr);
	}
}

size_t
wp_events_of_thread(const struct wp_events *events, size_t first,
    size_t *reference)
{
	size_t i = first;

	while (i < events->n && events->event[i].watch != WP_EVENT_REFERENCE)
		i++;
	*reference = i++;
	while (i < events->n && events->event[i].tid < 0 &&
	    events->event[i].watch == WP_EVENT_REFERENCE)
		i++;
	return i < events->n ? i : events->n;
}

/* Read a thread's references, and its slots before them, so that the kernel
   has forgotten no more of these than of the references.  Result: how long that
   took, ns. */
static uint64_t
read_references(struct wp_events *events, size_t first, size_t reference,
    size_t end, uint64_t format)
{
	const uint64_t began = wp_clock_ns();
	struct wp_perf_count count;

	for (size_t i = first; i < end; i++)
		if (wp_event_read(&events->event[i], format, &count) == 0 &&
		    i >= reference)
			events->event[i].ran = count.running;
	return wp_clock_ns() - began;
}

/* For how long threads may have run in so many ns.  If something came in
   between, that proves nothing. */
static uint64_t
may_have_run(uint64_t ns, long processors)
{
	return (ns < VAGUE_MAX ? ns : VAGUE_MAX) *
	    (processors > 0 ? (uint64_t)processors : 1);
}

void
wp_events_stop(struct wp_events *events, const struct wp_options *options)
{
	const uint64_t format = wp_attr_format(options);
	const long processors = sysconf(_SC_NPROCESSORS_ONLN);
	size_t reference, end;

	for (size_t first = 0; first < events->n; first = end) {
		uint64_t took;

		end = wp_events_of_thread(events, first, &reference);
		if (events->event[first].stopped)
			continue;
		took = read_references(events, first, reference, end, format);
		for (size_t i = first; i < reference; i++)
			(void)wp_perf_disable(events->event[i].fd);
		if (reference < end && events->event[reference].tid >= 0)
			events->event[reference].vague = may_have_run(took,
			    processors);
		events->event[first].stopped = true;
	}
}

void
wp_events_close(struct wp_events *events, size_t first)
{
	while (events->n > first)
		(void)close(events->event[--events->n].fd);
	if (first == 0) {
		free(events->event);
		*events = (struct wp_events){0};
	}
}
