/*
 * hit_order: decides whether a hit is the next access to its watch after the
 * one reported before it, and therefore found the value that it left.
 *
 * Overview.  Threads hit at any time and report a little later, so that the hit
 * reported first need not be the first one.  But the kernel counts each access
 * as it is made.  A thread that is about to report a hit takes a ticket, and
 * then reads that count, over all threads.  It includes all hits with earlier
 * tickets.  If it includes nothing else, no other hit is under way, and the
 * watch has settled.
 *
 *	counted = reported + suppressed + under way
 *
 * If one more access is counted after a settled watch, and a hit with the next
 * ticket is reported, they are the same access: no other was under way before
 * it, or came in between.  After hits that raced, the last to be reported finds
 * the watch settled again, but it is unknown which of them wrote last; so the
 * value is known again only from the next hit on.
 *
 * It is unknown how often a hit was counted for accesses by the kernel, and for
 * accesses to several debug registers that cannot be decoded.  After such a hit
 * the difference must stay the same for a while before it is taken to mean that
 * no hit is under way.  In a program with one thread no other hit is ever under
 * way.
 *
 * All this holds for counted accesses.  Where those of the kernel are not
 * counted, or others may write the bytes in other ways, no order is known.
 * After such a write, the next hit is not known to be the next access.
 */
#ifndef HIT_ORDER_H
#define HIT_ORDER_H

#include <stdbool.h>

#include "handler/channel.h"

/* What cells have reported of a watch so far. */
struct hit_order_watch {
	uint32_t serial;	/* of the watch; 0: none */
	uint64_t reported;	/* accesses of the reported hits */
	uint64_t base;		/* counted - suppressed - reported when no hit
				   is under way; modulo 2^64 */
	bool based;		/* base is known */
	uint64_t excess;	/* counted - suppressed - reported at the last
				   hit, */
	uint64_t since;		/* unchanged since this time, ns; 0: not
				   known */
	/* of the last hit: */
	bool any;		/* there was one */
	bool settled;		/* no hit was under way */
	bool alone;
	uint64_t nth;
	uint64_t time;		/* ns */
	uint64_t seen;		/* counted - suppressed */
	uint64_t suppressed;
	uint32_t number;	/* number of the baseline before it */
};

/* All but gaps zero: no hits yet. */
struct hit_order {
	uint32_t gaps;		/* the channel's gaps, as last seen */
	struct hit_order_watch of[WP_WATCHES_MAX];
};

/* A hit, from its cell. */
struct hit_order_hit {
	const struct wp_cell_watch *watch;
	const struct wp_channel_watch *open;	/* as of hit_order_look */
	uint32_t gaps;		/* the channel's */
	uint64_t gap;		/* until this time there may have been unseen
				   writes, ns; 0: never */
	uint32_t flags;		/* enum wp_cell_flags */
	uint64_t nth, counted, suppressed;	/* 0 for further watches of its
						   cell */
	unsigned times;		/* times that it was counted; 0: not known */
	uint64_t time;		/* ns */
	bool unseen;		/* others may write the bytes uncounted */
};

enum ordered {
	ORDER_UNKNOWN,		/* other accesses may have come before it */
	ORDER_AFTER_HIT,	/* it is the next access after the watch's last
				   hit, */
	ORDER_AFTER_BASELINE,	/* or after the watch's baseline, which has the
				   bytes */
};

/* Copy a program's description of a watch.  If the program is changing it, the
   serial, or the number of its baseline, is 0 in the copy. */
void hit_order_look(struct wp_channel_watch *to,
    const struct wp_channel_watch *from);

/* Add a hit; bytes is set for ORDER_AFTER_BASELINE. */
enum ordered hit_order_take(struct hit_order *, const struct hit_order_hit *,
    uint8_t bytes[WP_BASELINE_MAX]);

#endif
