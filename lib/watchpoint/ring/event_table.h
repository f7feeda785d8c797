/*
 * event_table: the table of open events: one for each slot, thread and processor.
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

/* As watch: it is a reference (uptime.h). */
#define WP_EVENT_REFERENCE UINT16_MAX

struct wp_event {
	int fd;
	uint16_t watch, slot;	/* which it is of */
	bool off;		/* it watches nothing any more */
	bool stopped;		/* the first of a thread: all are */
	uint64_t ran;		/* a reference: for how long it, and those that
				   inherited it, ran until then; ns */
	uint64_t vague;		/* and at most so many ns of that are not known
				   of the slots (uptime.h) */
	pid_t tid;		/* the thread it was opened on */
	unsigned ring;		/* the index of its ring, if it has one */
};

struct wp_events {
	struct wp_event *event;
	size_t n, cap;
};

/*
 * Open the event of a slot for a thread: one for each ring, redirected into it;
 * tid -1 is all that runs, where a processor that is offline is passed over.
 * 0, -ESRCH when the thread has ended, or -errno: then none of these is left
 * open.
 */
int wp_events_open(struct wp_events *, struct perf_event_attr *, uint16_t watch,
    uint16_t slot, pid_t tid, const struct wp_rings *);

/* Open the reference of a thread, behind all its slots; for what runs anywhere
   (tid -1) one on each processor.  0 or -errno. */
int wp_events_reference(struct wp_events *, const struct wp_options *,
    pid_t tid, const struct wp_rings *);

/* For events of whatever runs: leave out (wp_rings_leave_out) those rings on
   whose processors none hits.  One that is offline gets none, and those of one
   that goes offline stop for good, also if it comes back.  The last one of each
   ring is read, which is enabled and has this read_format. */
void wp_events_check_processors(const struct wp_events *, uint64_t format,
    struct wp_rings *);

/* The events of a thread are one after the other: those of its slots from first
   on, and then its references.  Result: the first behind them. */
size_t wp_events_of_thread(const struct wp_events *, size_t first,
    size_t *reference);

/* Add what those of a watch have counted; options are those they were opened
   with. */
void wp_events_count(const struct wp_events *, const struct wp_options *,
    size_t watch, struct wp_perf_count *);

/* Have those of a watch hit no more, by this attribute; they still report what
   else theirs do. */
void wp_events_turn_off(struct wp_events *, size_t watch, uint16_t slot,
    const struct perf_event_attr *);

/* Disable all that watch and are not stopped yet.  A thread's reference is read
   before its slots are disabled, and goes on (uptime.h). */
void wp_events_stop(struct wp_events *, const struct wp_options *);

/* Close those from index first on. */
void wp_events_close(struct wp_events *, size_t first);

#endif
