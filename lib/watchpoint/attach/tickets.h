/*
 * tickets: the tickets that the programs of a slot take at its hits
 * (bpf/ticket.h), and the check that each hit which the kernel counted took
 * one.
 *
 * One thread uses them.
 */
#ifndef WP_TICKETS_H
#define WP_TICKETS_H

#include <stdbool.h>
#include <stdint.h>

#include "ring/event_table.h"
#include "attach/target.h"
#include "bpf/ticket.h"

struct wp_tickets {
	int map;		/* the map for programs, until they are loaded;
				   then < 0 */
	const uint8_t *lines;	/* the current tickets; NULL: there are none, or
				   the watch has ended */
	uint64_t *missed;	/* by ring: known hits that took no ticket */
	const uint64_t *others;	/* by ring: hits of other processes, which take
				   no ticket; NULL: every hit takes one */
	unsigned rings;
	bool closing;		/* events are being switched off one after
				   another: accesses with tickets after closed
				   may be unseen */
	uint64_t closed;
	bool ended;		/* all events are closed; the next two members
				   are the result */
	bool known;		/* last is valid */
	struct wp_ticket_mark last;
};

/* Make tickets for the programs of this many rings.  0 or -errno: there are
   none. */
int wp_tickets_open(struct wp_tickets *, unsigned rings);
void wp_tickets_close(struct wp_tickets *);

/* Report that events are about to be switched off.  NULL: nothing to do. */
void wp_tickets_closing(struct wp_tickets *);

/* Report that no more programs will be loaded. */
void wp_tickets_loaded(struct wp_tickets *);

/* The number of tickets that were taken. */
uint64_t wp_tickets_taken(const struct wp_tickets *);

/* Compare the tickets with the counts of a watch's events, and make a mark
   whose records have this identifier.  False: hits come too often to compare,
   or some events have no program. */
bool wp_tickets_mark(struct wp_tickets *, const struct wp_events *,
    const struct wp_options *, size_t watch, uint64_t id,
    struct wp_ticket_mark *);

/* Make the last mark, when the events are stopped and about to be closed.
   NULL: nothing to do. */
void wp_tickets_end(struct wp_tickets *, const struct wp_events *,
    const struct wp_options *, size_t watch, uint64_t id);

#endif
