/*
 * delivery: the ways in which watches are armed: by perf events of the
 * program's own, one for each slot and existing thread (self_events.c), or by
 * the helper.
 */
#ifndef WP_DELIVERY_H
#define WP_DELIVERY_H

#include <string.h>

#include "os/attr.h"
#include "handler/watches.h"

extern const struct wp_delivery wp_deliver_sigtrap, wp_deliver_async,
    wp_deliver_ptrace;

/* How the program's own events of a delivery differ. */
struct wp_arming {
	bool inherited;		/* new threads inherit them */
	/* complete the attribute that wp_attr_inside makes for a slot's
	   event */
	void (*attr)(struct perf_event_attr *, const struct wp_watch *,
	    uint32_t serial, unsigned slot);
	/* the event is open: prepare it; NULL: nothing to do */
	int (*ready)(struct wp_armed *);
	int (*enable)(const struct wp_watch *, struct wp_armed *);
};

/* Open the events for all threads, or for w->tid.  They are disabled, unless
   threads had to be held to open them: then the watch is open, and (except with
   WP_DISABLED) enabled, when the threads continue.  0 or -errno with a
   cause. */
int wp_self_events_open(struct wp_watch *, uint32_t serial, struct wp_cause *);

/* Close the events; some are kept, disabled, for the next watch. */
void wp_self_events_close(struct wp_watch *);

/*
 * Open events for an open watch that has none, and enable them if the watch is
 * enabled.  Handlers may run in the meantime, and may call this, so there is no
 * cause.  0 or -errno: the watch still has no events.
 */
int wp_self_events_take_over(struct wp_watch *);

int wp_self_events_enable(struct wp_watch *);
int wp_self_events_move(struct wp_watch *, const struct wp_slot *,
    struct wp_cause *);

/* Note that a watch has moved to these slots, as many as it had. */
static inline void
wp_watch_place(struct wp_watch *w, const struct wp_slot *slots)
{
	uint64_t len = 0;

	for (unsigned i = 0; i < w->nslots; i++)
		len += wp_slot_bytes(slots[i].type, slots[i].len);
	memcpy(w->slot, slots, w->nslots * sizeof(*slots));
	w->region.addr = slots[0].addr;
	w->region.len = len;
}

/* In the child of a fork(2), locked: the events that are kept for the next
   watch belong to its parent (self_events.c). */
void wp_self_events_forked(void);

/*
 * The helper arms these watches in all threads of the program or in one: by
 * debug registers, or (by_signal) by perf events that raise that signal, whose
 * descriptor numbers are in channel->owner.  Locked.  In deliver_ptrace.c.
 */
int wp_helper_arm(struct wp_watch *, uint32_t serial, int by_signal,
    struct wp_cause *);
void wp_helper_disarm(struct wp_watch *);
int wp_helper_move(struct wp_watch *, const struct wp_slot *,
    struct wp_cause *);

#endif
