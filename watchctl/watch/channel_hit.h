/*
 * channel_hit: a hit that a program handed over, taken out of its cell and
 * checked, with everything that is needed to explain it later.
 */
#ifndef CHANNEL_HIT_H
#define CHANNEL_HIT_H

#include "handler/channel.h"

/* The most watches that one instruction can have touched. */
enum { CHANNEL_HIT_WATCHES = 1 + WP_ALSO_MAX };

/* A watch that the hit may be of. */
struct channel_hit_watch {
	struct wp_cell_watch what;
	struct wp_channel_watch open;	/* as of hit_order_look */
	uint64_t gap;		/* until this time there may have been unseen
				   writes, ns; 0: never */
	bool unseen;		/* others may write the bytes uncounted */
	int slot;		/* the session's slot for its whole region,
				   followed by its processor slots; negative:
				   none */
	unsigned nslots;	/* number of these, including that */
};

struct channel_hit {
	uint32_t flags;		/* enum wp_cell_flags */
	pid_t pid;
	uint64_t nth;		/* number of hits of the first watch, including
				   this one, */
	uint64_t counted, suppressed;	/* and accesses */
	uint8_t byte[WP_BASELINE_MAX];	/* the bytes before that, as of the
					   baseline */
	uint64_t mapped;	/* counts the times when the program may have
				   mapped something until now */
	bool code_known;	/* explainers know what code was mapped at this
				   hit */
	uint32_t gaps;		/* the channel's */
	bool only;		/* only one debug register exists that a step
				   can have touched */
	bool has_code;		/* the bytes before its pc were read: */
	uint8_t code[2];
	char comm[16];
	unsigned named;		/* watches that the program named; others may
				   have been touched as well */
	unsigned nwatches;	/* includes at least the first */
	struct channel_hit_watch watch[CHANNEL_HIT_WATCHES];
};

/* Its size with this many watches, bytes; a multiple of 8. */
static inline size_t
channel_hit_size(unsigned nwatches)
{
	return offsetof(struct channel_hit, watch) +
	    nwatches * sizeof(struct channel_hit_watch);
}

#endif
