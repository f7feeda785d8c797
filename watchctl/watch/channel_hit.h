/*
 * channel_hit: a hit as a program handed it over, taken out of its cell and
 * checked, with everything that is needed to explain it later.
 */
#ifndef CHANNEL_HIT_H
#define CHANNEL_HIT_H

#include "handler/channel.h"

/* Watches that one instruction can have touched, at most. */
enum { CHANNEL_HIT_WATCHES = 1 + WP_ALSO_MAX };

/* One whose hit it may be. */
struct channel_hit_watch {
	struct wp_cell_watch what;
	struct wp_channel_watch open;	/* as of hit_order_look */
	uint64_t gap;		/* until then there may have been unseen writes,
				   ns; 0: never */
	bool unseen;		/* others may write the bytes, and are not
				   counted */
	int slot;		/* the session's for its whole region, before
				   those that the processor takes it by;
				   negative: it has none */
	unsigned nslots;	/* how many, with that */
};

struct channel_hit {
	uint32_t flags;		/* enum wp_cell_flags */
	pid_t pid;
	uint64_t nth;		/* the first's hits, with this one, */
	uint64_t counted, suppressed;	/* and accesses */
	uint8_t byte[WP_BASELINE_MAX];	/* as they were before that */
	uint64_t mapped;	/* how often the program may have mapped
				   something until now */
	bool code_known;	/* explainers know what code was mapped at it */
	uint32_t gaps;		/* the channel's */
	bool only;		/* there is but one debug register that a step
				   can have touched */
	bool has_code;		/* what is in front of its pc was read: */
	uint8_t code[2];
	char comm[16];
	unsigned named;		/* by the program, of the watches; others may
				   have been touched as well */
	unsigned nwatches;	/* surely the first's */
	struct channel_hit_watch watch[CHANNEL_HIT_WATCHES];
};

/* Bytes of it with so many watches; a multiple of 8. */
static inline size_t
channel_hit_size(unsigned nwatches)
{
	return offsetof(struct channel_hit, watch) +
	    nwatches * sizeof(struct channel_hit_watch);
}

#endif
