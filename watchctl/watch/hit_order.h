/*
 * hit_order: whether a hit is the next access to its watch after the one that
 * was reported before it, so that it found what that left.
 *
 * Overview.  Threads hit at any time, and report it a little later: what is
 * reported first need not have come first.  But the kernel counts an access as
 * it is made.  A thread that is about to report a hit takes a ticket, and then
 * reads that count, of all threads.  All hits of earlier tickets are in it.  If
 * there is nothing else in it, no other hit is under way: the watch is settled.
 *
 *	counted = reported + silent + under way
 *
 * A hit that comes next, and after which just one more is counted, is that one
 * more: it was not there before, and no other was.  After hits that raced, the
 * last to report finds the watch settled again, but it is not known which of
 * them was the last to write; so what is left is known from the hit after that
 * on.
 *
 * How often a hit was counted is not known of the kernel's accesses, and of
 * those over several debug registers that cannot be decoded.  After such the
 * difference must be the same for a while, until it is taken to mean that no
 * hit is under way.  In a program with one thread no other hit is under way.
 *
 * All this is of those that are counted.  Where the kernel's accesses are not,
 * or others may write the bytes in other ways, no order is known; and from one
 * of these that is heard of (hit_order_forget) the next hit is not known to be
 * the next.
 */
#ifndef HIT_ORDER_H
#define HIT_ORDER_H

#include <stdbool.h>

#include "handler/channel.h"

/* What the cells of a watch have reported so far. */
struct hit_order_watch {
	uint32_t serial;	/* of which use; 0: none */
	uint64_t reported;	/* hits, as they were counted */
	uint64_t base;		/* counted - silent - reported, if no hit is
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
	uint64_t seen;		/* counted - silent */
	uint64_t suppressed;
	uint32_t number;	/* of the settling before it */
};

/* All but gaps zero: none. */
struct hit_order {
	uint32_t gaps;		/* of the channel, as far as it was looked at */
	struct hit_order_watch of[WP_WATCHES_MAX];
	uint64_t gap[WP_WATCHES_MAX];	/* until then there may have been unseen
					   writes, ns; 0: nobody */
};

/* A hit, as its cell has it. */
struct hit_order_hit {
	const struct wp_cell_watch *watch;
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

/* Somebody may have written the bytes of a watch, by its index, unseen, until
   then, ns. */
void hit_order_forget(struct hit_order *, unsigned index, uint64_t time);

/* Take in a hit; bytes is for AFTER_SETTLING. */
enum ordered hit_order_take(struct hit_order *, struct wp_channel *,
    const struct hit_order_hit *, uint8_t bytes[WP_BASELINE_MAX]);

#endif
