/*
 * presence: for how long the watches of a program on itself were on, of the
 * time that its threads ran.
 *
 * Copies of the watches' events say the one, and the sideband's events, which
 * the program has no part in, the other (uptime.h).  The sideband is looked at
 * after the copies when this begins, and before them at its end, so that it
 * never says more than they do.
 */
#ifndef PRESENCE_H
#define PRESENCE_H

#include "attach/uptime.h"
#include "watch/event_dups.h"
#include "watch/sideband.h"

struct presence {
	const struct event_dups *dups;	/* NULL: it has not begun */
	struct sideband *sideband;
	uint64_t ran;			/* by the sideband, when it began */
	uint64_t on[WP_WATCHES_MAX][WP_SLOTS_MAX];	/* by the copies */
	bool measured[WP_WATCHES_MAX];
};

/* From here on.  Both outlive it.  alone: the program has one thread, so that
   those to come can be counted. */
void presence_begin(struct presence *, const struct event_dups *,
    struct sideband *, bool alone);

/* Up to now, of a program that may run or have ended: not known if it has not
   begun, or there is no sideband, or a watch is not to be measured.
   uptime.watch is the channel's index. */
void presence_end(struct presence *, struct wp_uptime *);

#endif
