/*
 * access_tally: counts the accesses of the delivered hits, as their
 * instructions show them, and thereby the accesses that were not delivered.
 *
 * Overview.  The signal of a step names one debug register.  The handlers in
 * the program conclude from counts alone what else the step touched: they may
 * claim accesses that belong to other, lost hits, and the loss would go
 * unnoticed (handler/account.c).  The instruction shows what was touched.  As
 * long as each hit's number of accesses is known exactly, every counted access
 * beyond them was lost.  After a hit whose number is not known (an access by
 * the kernel, a late hit, a repeated or masked instruction) the handlers'
 * claims have to be believed.
 */
#ifndef ACCESS_TALLY_H
#define ACCESS_TALLY_H

#include <stdbool.h>

#include "handler/channel.h"

struct access_tally {
	struct {
		uint32_t serial;	/* of the watch; 0: none yet */
		uint64_t reached;
	} of[WP_WATCHES_MAX];
	bool unknown;		/* it is unknown what some step touched */
};

/* Add a step that touched this many debug registers of a watch. */
void access_tally_add(struct access_tally *, const struct wp_cell_watch *,
    unsigned times);

/* Determine how many of the counted accesses to watch i did not reach the
   program, in total.  False: this is not known. */
bool access_tally_missed(const struct access_tally *, const struct wp_channel *,
    unsigned i, uint64_t counted, uint64_t *missed);

#endif
