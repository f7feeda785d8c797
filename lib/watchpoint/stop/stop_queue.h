/*
 * stop_queue: the records of hits at which threads stop, on their way from the
 * rings to the explainer.
 *
 * A sample waits here, in order of time with all other records, until its
 * thread has stopped and the value was put into it.  Then, or when it has
 * waited for too long, it is delivered.
 */
#ifndef WP_STOP_QUEUE_H
#define WP_STOP_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "os/perf_event.h"
#include "stop/value_sample.h"

/* A record, and what is known about it. */
struct wp_stop_record {
	uint64_t time;
	pid_t tid;		/* a sample's thread; else 0 */
	uint16_t watch;		/* a sample's watch */
	bool waits;		/* it waits for its thread to stop */
	bool kernel;		/* an access of the kernel */
	int cpu;		/* a sample's processor */
	uint64_t pc;		/* its thread's program counter in user space;
				   0: unknown */
	uint64_t ip;
	uint32_t value;		/* offset of the value in the record; 0: it has
				   no room for one */
	struct perf_event_header *header;
};

struct wp_stop_queue {
	struct wp_stop_record *record;	/* from first to end, by time */
	size_t first, end, cap;
	struct perf_event_header *given;	/* the record that was delivered
						   last */
};

/* Add a copy of a record of wp_attr_watch's events.  A sample gets the
   identifier id and room for its value, and waits.  callchain: as in the
   events' options.  NULL: out of memory.  The result is valid until the next
   call. */
struct wp_stop_record *wp_stop_queue_add(struct wp_stop_queue *,
    const struct perf_event_header *, bool callchain, uint64_t id);

/* The next record that was made before the horizon (ns) and does not wait, or
   NULL.  It is valid until the next call.  Unless in_order is false, a record
   that waits keeps back all later ones. */
const struct perf_event_header *wp_stop_queue_next(struct wp_stop_queue *,
    uint64_t horizon, bool in_order);

/* The oldest record that waits, or NULL. */
struct wp_stop_record *wp_stop_queue_waiting(struct wp_stop_queue *);

/* Put a value into a record that has room for it. */
void wp_stop_record_value(struct wp_stop_record *,
    const struct wp_stop_value *);

void wp_stop_queue_free(struct wp_stop_queue *);

#endif
