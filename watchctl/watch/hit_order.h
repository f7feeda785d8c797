/*
 * hit_order: decides whether a hit is the next access to its watch after the
 * one reported before it, and therefore found what that one left.
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
 * ticket is reported, the two are the same: it was not there before, and no
 * other was.  After hits that raced, the last to be reported finds the watch
 * settled again, but which of them wrote last is not known; so the value is
 * known only from the hit after that.
 *
 * How often a hit was counted is not known for accesses by the kernel, and for
 * those over several debug registers that cannot be decoded.  After such a hit
 * the difference must stay the same for a while before it is taken to mean that
 * no hit is under way.  In a program with one thread no other hit is ever under
 * way.
 *
 * All this holds for accesses that are counted.  Where those of the kernel are
 * not, or others may write the bytes in other ways, no order is known.  After
 * such a write, the next hit is not known to be the next access.
 */
#ifndef HIT_ORDER_H
#define HIT_ORDER_H

#include <stdbool.h>

#include "handler/channel.h"

/* What the cells of a watch have reported so far. */
struct hit_order_watch {
	uint32_t serial;	/* of which use; 0: none */
	uint64_t reported;	/* hits, as they were counted */
	uint64_t base;		/* counted - suppressed - reported, if no hit is
				   under way; modulo 2^64 */
	bool based;		/* that is known */
	uint64_t excess;	/* it was so much at the last hit, */
	uint64_t since;		/* and has been since then, ns; 0: not known */
	/* of the last hit: */
	bool any;		/* there was one */
	bool settled;		/* no hit was under way */
	bool alone;
	uint64_t nth;
	uint64_t time;		/* ns */
	uint64_t seen;		/* counted - suppressed */
	uint64_t suppressed;
	uint32_t number;	/* of the baseline before it */
};

/* All but gaps zero: none. */
struct hit_order {
	uint32_t gaps;		/* of the channel, as far as it was looked at */
	struct hit_order_watch of[WP_WATCHES_MAX];
};

/* A hit, as its cell has it. */
struct hit_order_hit {
	const struct wp_cell_watch *watch;
	const struct wp_channel_watch *open;	/* as of hit_order_look */
	uint32_t gaps;		/* the channel's */
	uint64_t gap;		/* until then there may have been unseen
				   writes, ns; 0: never */
	uint32_t flags;		/* enum wp_cell_flags */
	uint64_t nth, counted, suppressed;	/* 0 of a watch that its cell
						   also has */
	unsigned times;		/* it was counted; 0: not known */
	uint64_t time;		/* ns */
	bool unseen;		/* others may write the bytes, and are not
				   counted */
};

enum ordered {
	ORDER_UNKNOWN,		/* others may have been there before it */
	ORDER_AFTER_HIT,	/* it is the next after the watch's last hit, */
	ORDER_AFTER_BASELINE,	/* or after it was settled: the bytes then */
};

/* Copy what a program says of a watch; what it is about to change is left
   out: the serial, or the number of its baseline, is then 0. */
void hit_order_look(struct wp_channel_watch *to,
    const struct wp_channel_watch *from);

/* Take in a hit; bytes is for ORDER_AFTER_BASELINE. */
enum ordered hit_order_take(struct hit_order *, const struct hit_order_hit *,
    uint8_t bytes[WP_BASELINE_MAX]);

#endif
