/*
 * access_tally: counts the accesses of the delivered hits, according to their
 * instructions, and thereby those that were not delivered.
 *
 * Overview.  The signal that a step raises names one debug register.  What else
 * the step touched, the handlers in the program conclude from counts alone:
 * they may claim accesses that other hits lost, and the loss would not be
 * noticed (handler/account.c).  The instruction shows it.  As long as the
 * number of accesses is known exactly for each hit, every access that was
 * counted beyond them was lost.  After a hit for which it is not (an access by
 * the kernel, a late hit, a repeated or masked instruction) nothing is known,
 * and the handlers' claims are accepted.
 */
#ifndef ACCESS_TALLY_H
#define ACCESS_TALLY_H

#include <stdbool.h>

#include "handler/channel.h"

struct access_tally {
	struct {
		uint32_t serial;	/* whose; 0: none yet */
		uint64_t reached;
	} of[WP_WATCHES_MAX];
	bool unknown;		/* of a step it is not known what it touched */
};

/* A step touched so many debug registers of a watch. */
void access_tally_add(struct access_tally *, const struct wp_cell_watch *,
    unsigned times);

/* How many of the counted accesses to watch i did not reach the program, in
   all.  False: that is not known. */
bool access_tally_missed(const struct access_tally *, const struct wp_channel *,
    unsigned i, uint64_t counted, uint64_t *missed);

#endif
