/*
 * stop_queue: the records of hits at which threads stop, on their way from the
 * rings to the explainer.
 *
 * A sample waits here, in order of time with all other records, until the
 * thread that made it has stopped, and the value has been put into it.  Then,
 * or when it has waited for too long, it is delivered.
 */
#ifndef WP_STOP_QUEUE_H
#define WP_STOP_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "os/perf_event.h"
#include "stop/value_sample.h"

/* A record, and what was found out about it. */
struct wp_stop_record {
	uint64_t time;
	pid_t tid;		/* a sample's thread; else 0 */
	uint16_t watch;		/* a sample: what it is of */
	bool waits;		/* for its thread to stop */
	bool kernel;		/* an access of the kernel */
	int cpu;		/* a sample's processor */
	uint64_t pc;		/* where its thread was in the program; 0: not
				   known */
	uint64_t ip;
	uint32_t value;		/* offset of its value in the record; 0: there
				   is no room for one */
	struct perf_event_header *header;
};

struct wp_stop_queue {
	struct wp_stop_record *record;	/* from first to end, by time */
	size_t first, end, cap;
	struct perf_event_header *given;	/* that was delivered last */
};

/* Add a copy of a record of the events of wp_attr_watch; of a sample with its
   identifier set to id, and room for its value; it waits.  callchain: as in the
   events' options.  NULL: out of memory.  Valid until the next call. */
struct wp_stop_record *wp_stop_queue_add(struct wp_stop_queue *,
    const struct perf_event_header *, bool callchain, uint64_t id);

/* The next record that was made before the horizon (ns) and does not wait, or
   NULL.  It is valid until the next call.  Those that wait keep back others
   that came later; unless in_order is false. */
const struct perf_event_header *wp_stop_queue_next(struct wp_stop_queue *,
    uint64_t horizon, bool in_order);

/* The oldest that waits, or NULL. */
struct wp_stop_record *wp_stop_queue_waiting(struct wp_stop_queue *);

/* Put a value into a record that has room for it. */
void wp_stop_record_value(struct wp_stop_record *,
    const struct wp_stop_value *);

void wp_stop_queue_free(struct wp_stop_queue *);

#endif
