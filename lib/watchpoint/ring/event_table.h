/*
 * event_table: the open events, one for each slot, thread and processor.
 */
#ifndef WP_EVENT_TABLE_H
#define WP_EVENT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "os/attr.h"
#include "os/perf.h"
#include "ring/ring.h"

/* The value of `watch' for a reference (uptime.h). */
#define WP_EVENT_REFERENCE UINT16_MAX

struct wp_event {
	int fd;
	uint16_t watch, slot;	/* the watch and the slot that it is for */
	bool off;		/* it watches nothing any more */
	bool stopped;		/* in the first event of a thread: all its
				   events are stopped */
	uint64_t ran;		/* in a reference: for how long it, and the
				   events that inherited it, had run until it
				   was read, ns */
	uint64_t vague;		/* at most this much of that time is unknown for
				   the slots, ns (uptime.h) */
	pid_t tid;		/* the thread it was opened on */
	unsigned ring;		/* the index of its ring, if it has one */
	bool dead;		/* its processor has been offline: it was closed
				   when it had counted this */
	struct wp_perf_count counted;
};

struct wp_events {
	struct wp_event *event;
	size_t n, cap;
};

/*
 * Open the event of a slot for a thread: one for each ring, redirected into it;
 * tid -1: for all that runs, on each processor that is online and has no such
 * event that is not dead.  0, -ESRCH if the thread has ended, or -errno: then
 * none of these is left open.
 */
int wp_events_open(struct wp_events *, struct perf_event_attr *, uint16_t watch,
    uint16_t slot, pid_t tid, const struct wp_rings *);

/* Open the reference of a thread, behind all its slots; for all that runs (tid
   -1) one on each processor.  0 or -errno. */
int wp_events_reference(struct wp_events *, const struct wp_options *,
    pid_t tid, const struct wp_rings *);

/* What an event has counted, even if it is dead.  0 or -errno. */
int wp_event_read(const struct wp_event *, uint64_t format,
    struct wp_perf_count *);

/* For events of all that runs: leave out (wp_rings_leave_out) each ring on
   whose processor no event can hit.  A processor that is offline has no events,
   and those of one that goes offline are dead for good, even if it comes back.
   This reads the last event of each ring, which must be enabled and have this
   read_format.  If a ring is left out, `open' is called: it opens the events
   again, of which those are opened that a processor lacks that is online.
   Result: whether it opened any. */
bool wp_events_check_processors(struct wp_events *, uint64_t format,
    struct wp_rings *, void (*open)(void *), void *);

/* The events of a thread follow each other: those of its slots from first on,
   then its references.  Result: the index behind them. */
size_t wp_events_of_thread(const struct wp_events *, size_t first,
    size_t *reference);

/* Add what the events of a watch counted; options must be those that they were
   opened with. */
void wp_events_count(const struct wp_events *, const struct wp_options *,
    size_t watch, struct wp_perf_count *);

/* Change the events of a watch to this attribute, so that they have no more
   hits; they still report whatever else they did. */
void wp_events_turn_off(struct wp_events *, size_t watch, uint16_t slot,
    const struct perf_event_attr *);

/* Disable all events of slots that are not stopped yet.  A thread's reference
   is read before its slots are disabled, and stays enabled (uptime.h). */
void wp_events_stop(struct wp_events *, const struct wp_options *);

/* Close the events from index first on. */
void wp_events_close(struct wp_events *, size_t first);

#endif
