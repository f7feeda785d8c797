/*
 * tickets: the tickets that the programs of a slot take at its hits
 * (bpf/ticket.h), and whether there is one for each hit that the kernel has
 * counted.
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
	int map;		/* for programs, until they are loaded; < 0 */
	const uint8_t *lines;	/* as they are now; NULL: there are none,
				   or they have ended */
	uint64_t *missed;	/* of each ring: hits that took none, as far as
				   they are known */
	const uint64_t *others;	/* of each ring, hits that are not to take one;
				   NULL: each is */
	unsigned rings;
	bool closing;		/* events are switched off, one after another:
				   from this ticket on not all accesses are
				   seen */
	uint64_t closed;
	bool ended;		/* there are no events any more, and this is
				   what was found then; */
	bool known;		/* if anything was */
	struct wp_ticket_mark last;
};

/* For the programs of so many rings.  0 or -errno: there are none. */
int wp_tickets_open(struct wp_tickets *, unsigned rings);
void wp_tickets_close(struct wp_tickets *);

/* Events are about to be switched off.  Of NULL nothing. */
void wp_tickets_closing(struct wp_tickets *);

/* No more programs are loaded. */
void wp_tickets_loaded(struct wp_tickets *);

/* How many were taken. */
uint64_t wp_tickets_taken(const struct wp_tickets *);

/* Compare with what the events of a watch have counted; records have that id.
   False: they are hit too often to say; or events count that have no
   program. */
bool wp_tickets_mark(struct wp_tickets *, const struct wp_events *,
    const struct wp_options *, size_t watch, uint64_t id,
    struct wp_ticket_mark *);

/* Their events are stopped, and about to be closed: what they counted is the
   last.  Of NULL nothing. */
void wp_tickets_end(struct wp_tickets *, const struct wp_events *,
    const struct wp_options *, size_t watch, uint64_t id);

#endif
