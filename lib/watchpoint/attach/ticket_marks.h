/*
 * ticket_marks: compares, at intervals, the tickets that hits of a target took
 * with the kernel's counts (tickets.h), and inserts the result among the
 * records as a mark.  Conclusions from tickets are certain only up to a mark,
 * which also shows that no hit was missed.
 *
 * One thread uses the marks of a target; it need not be the target's own.
 */
#ifndef WP_TICKET_MARKS_H
#define WP_TICKET_MARKS_H

#include <stdbool.h>
#include <stdint.h>

#include "os/perf_event.h"

struct wp_ticket_marks;
struct wp_target;

/* Make the marks of all watches of a target, present and future.  NULL: out of
   memory. */
struct wp_ticket_marks *wp_ticket_marks_new(struct wp_target *);
void wp_ticket_marks_free(struct wp_ticket_marks *);

/* Compare, if it is time to do so, or (now) at once. */
void wp_ticket_marks_look(struct wp_ticket_marks *, bool now);

/* Whether a mark waits to be returned, because the horizon was too early so
   far. */
bool wp_ticket_marks_wait(const struct wp_ticket_marks *);

/* The next record of a mark that belongs behind all records up to this time,
   ns, or NULL.  It is returned again until it is taken. */
const struct perf_event_header *wp_ticket_marks_next(struct wp_ticket_marks *,
    uint64_t horizon);
void wp_ticket_marks_take(struct wp_ticket_marks *);

#endif
