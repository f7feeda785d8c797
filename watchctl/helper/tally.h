/*
 * tally: how many accesses the hits are that a program was told of, as their
 * instructions say; and so how many it was not told of.
 *
 * Overview.  The program's handlers know by counts alone what a step touched
 * besides the debug register that its signal names: they may claim what others
 * lost, and nobody would miss it (handler/account.c).  An instruction tells.  As
 * long as each hit's is exactly known, what was counted and is not theirs was
 * lost.  After one that is not (the kernel's accesses, late ones, repeated or
 * masked instructions) nothing is known, and the handlers' word is taken.
 */
#ifndef TALLY_H
#define TALLY_H

#include <stdbool.h>

#include "handler/channel.h"

struct tally {
	struct {
		uint32_t serial;	/* whose; 0: none yet */
		uint64_t told;
	} of[WP_WATCHES_MAX];
	bool unknown;		/* of a step it is not known what it touched */
};

/* A step touched so many debug registers of a watch. */
void tally_add(struct tally *, const struct wp_cell_watch *, unsigned times);

/* How many accesses to watch i of those that were counted, in all, were not told.
   False: that is not known. */
bool tally_missed(const struct tally *, const struct wp_channel *, unsigned i,
    uint64_t counted, uint64_t *missed);

#endif
