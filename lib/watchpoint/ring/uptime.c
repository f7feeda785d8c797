/* uptime: for how long watches were on.  See uptime.h. */
#include "ring/uptime.h"

#include <stdlib.h>

#include "ring/event_table.h"

static uint64_t
running(const struct wp_event *event, uint64_t format)
{
	struct wp_perf_count count;

	return wp_event_read(event, format, &count) < 0 ? 0 : count.running;
}

/* The events of a slot are one after the other: from first on.  Result: the
   first behind them. */
static size_t
end_of_slot(const struct wp_events *events, size_t first)
{
	const struct wp_event *event = &events->event[first];
	size_t i = first;

	while (i < events->n && events->event[i].watch == event->watch &&
	    events->event[i].slot == event->slot)
		i++;
	return i;
}

/* How long a slot was off whose thread ran for this long, of which so much is
   not known of the slot. */
static uint64_t
slot_off(struct wp_uptime *uptime, const struct wp_events *events, size_t first,
    uint64_t ran, uint64_t vague, uint64_t format)
{
	const struct wp_event *event = &events->event[first];
	const size_t end = end_of_slot(events, first);
	uint64_t on = 0;

	if (event->off)
		return 0;
	for (size_t i = first; i < end; i++)
		on += running(&events->event[i], format);
	if (on + vague >= ran)
		return 0;
	if (ran - on > uptime->worst) {
		uptime->worst = ran - on;
		uptime->watch = event->watch;
		uptime->tid = event->tid;
	}
	return ran - on;
}

/* Add a thread: the events of its slots, from first on, and then its
   reference, or those of all processors, up to end. */
static void
add_thread(struct wp_uptime *uptime, const struct wp_events *events,
    size_t first, size_t reference, size_t end, uint64_t format)
{
	uint64_t ran = 0, vague = 0, off = 0;

	for (size_t i = reference; i < end; i++) {
		ran += events->event[i].ran;
		vague += events->event[i].vague;
	}
	for (size_t i = first; i < reference; i = end_of_slot(events, i)) {
		uint64_t one = slot_off(uptime, events, i, ran, vague, format);

		if (one > off)
			off = one;
	}
	uptime->known = true;
	uptime->ran += ran;
	uptime->off += off;
}

static int
compare(const void *a, const void *b)
{
	const pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

/* How many threads events are of: one that was armed twice has two references.
   0: there is no memory. */
static unsigned
count_threads(const struct wp_events *events)
{
	pid_t *tid = calloc(events->n + 1, sizeof(*tid));
	size_t n = 0;
	unsigned different = 0;

	if (tid == NULL)
		return 0;
	for (size_t i = 0; i < events->n; i++)
		if (events->event[i].watch == WP_EVENT_REFERENCE)
			tid[n++] = events->event[i].tid;
	qsort(tid, n, sizeof(*tid), compare);
	for (size_t i = 0; i < n; i++)
		different += i == 0 || tid[i] != tid[i - 1];
	free(tid);
	return different;
}

/* A processor that was offline has a reference for each time that it was not. */
static unsigned
count_processors(const struct wp_events *events, size_t first, size_t end)
{
	unsigned n = 0;

	for (size_t i = first; i < end; i++) {
		size_t k = 0;

		while (k < i && (events->event[k].watch != WP_EVENT_REFERENCE ||
		    events->event[k].tid >= 0 ||
		    events->event[k].ring != events->event[i].ring))
			k++;
		n += k == i;
	}
	return n;
}

void
wp_uptime_add(struct wp_uptime *uptime, const struct wp_events *events,
    const struct wp_options *options)
{
	const uint64_t format = wp_attr_format(options);
	size_t reference, end;

	for (size_t first = 0; first < events->n; first = end) {
		end = wp_events_of_thread(events, first, &reference);
		if (reference == end)
			continue;
		add_thread(uptime, events, first, reference, end, format);
		if (events->event[reference].tid < 0)
			uptime->processors += count_processors(events,
			    reference, end);
	}
	uptime->threads += count_threads(events);
}

/* 0 threads: their number is not known. */
void
wp_uptime_join(struct wp_uptime *sum, const struct wp_uptime *one)
{
	if (one->worst > sum->worst) {
		sum->worst = one->worst;
		sum->watch = one->watch;
		sum->tid = one->tid;
	}
	if (!one->known || one->unknown > 0) {
		sum->unknown++;
		sum->executed += one->executed;
		return;
	}
	sum->threads = !sum->known ? one->threads :
	    sum->threads == 0 || one->threads == 0 ? 0 :
	    sum->threads + one->threads;
	sum->known = true;
	sum->ran += one->ran;
	sum->off += one->off;
}
