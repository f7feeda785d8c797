/*
 * tally: how many accesses the hits that reached a program are, by their
 * instructions; and so how many did not reach it.
 *
 * Overview.  The program's handlers know by counts alone what a step touched
 * besides the debug register that its signal names: they may claim what others
 * lost, and it would not be missed (handler/account.c).  The instruction shows
 * it.  As long as each hit's number is exactly known, what was counted and is
 * not theirs was lost.  After one that is not (the kernel's accesses, late
 * ones, repeated or masked instructions) nothing is known, and the handlers'
 * claims are accepted.
 */
#ifndef TALLY_H
#define TALLY_H

#include <stdbool.h>

#include "handler/channel.h"

struct tally {
	struct {
		uint32_t serial;	/* whose; 0: none yet */
		uint64_t reached;
	} of[WP_WATCHES_MAX];
	bool unknown;		/* of a step it is not known what it touched */
};

/* A step touched so many debug registers of a watch. */
void tally_add(struct tally *, const struct wp_cell_watch *, unsigned times);

/* How many of the counted accesses to watch i did not reach the program, in
   all.  False: that is not known. */
bool tally_missed(const struct tally *, const struct wp_channel *, unsigned i,
    uint64_t counted, uint64_t *missed);

#endif
