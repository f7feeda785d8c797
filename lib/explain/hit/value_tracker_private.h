/*
 * value_tracker_private: what is tracked of a watch, and what the files of the
 * tracker share.
 */
#ifndef EX_VALUE_TRACKER_PRIVATE_H
#define EX_VALUE_TRACKER_PRIVATE_H

#include "base/table.h"
#include "hit/value_tracker.h"
#include "stop/shared_vm.h"

/* Crowds that have ended and whose hits are not there. */
enum { ENDED_MAX = 32 };

struct ex_ended {
	uint64_t number;	/* 0: none */
	uint32_t samples;	/* 0: nothing is known of it */
	bool has_before;
	uint8_t before[EX_VALUE_MAX], after[EX_VALUE_MAX];
};

struct ex_tracked {
	const struct ex_watch *watch;
	struct ex_value value;	/* after the last hit */
	pid_t pid;		/* in this process; 0: none yet */
	bool unseen;		/* others write it, or may, without a hit */
	bool unmapped;		/* it is not known how it is mapped */
	bool hit;		/* there was a hit; the last one was: */
	uint64_t time;		/* ns */
	pid_t tid;
	uint32_t cpu;
	bool disordered;	/* there was disorder, at the latest */
	uint64_t disorder;	/* then, ns */
	uint32_t later;		/* value's bytes that were read in memory */
	uint64_t read;		/* by this time, ns */
	struct ex_tentative *first, *end;	/* those that have something to
						   lose, oldest first; NULL:
						   none */
	struct ex_tentative *last;	/* the last hit's, while it waits */
	struct ex_tentative *waiting;	/* for crowds; NULL: none */
	struct ex_ended *ended;	/* ENDED_MAX of them; NULL: none so far */
	size_t next_ended;	/* the oldest of these */
	struct ex_history *history;	/* of its tickets; NULL: none so far */
	uint64_t doubted;	/* what it says of hits up to then is not so,
				   ns */
};

struct ex_value_tracker {
	const struct ex_value_options *values;	/* NULL: no tracker are kept */
	struct ex_table of;	/* by the watch's id */
	struct wp_shared_vm lent;	/* memory, to children that are not
					   watched; */
	uint64_t blind;		/* they may have written up to then, ns; 0:
				   never */
};

/* What is tracked of a watch; NULL: nothing, or out of memory. */
struct ex_tracked *ex_tracked_of(struct ex_value_tracker *,
    const struct ex_watch *);

/* How many of a watch's bytes are kept. */
uint64_t ex_tracked_size(const struct ex_watch *);

/* The bits of a watch's bytes that a hit touched, and of those that its
   instruction's operand covers; and to put the operand's bytes there. */
uint32_t ex_touched_bits(const struct ex_hit *);
uint32_t ex_operand_bits(const struct ex_hit *);
void ex_put_operand(struct ex_value *, const struct ex_hit *,
    const uint8_t *bytes);

/* Whether the instruction is known, and the bytes that it touched. */
bool ex_hit_is_exact(const struct ex_hit *);

/* Take back what rests on the order of hits. */
void ex_tentative_withdraw(struct ex_tentative *);

/* --- tracker_concurrent.c --- */

/* What a stop knows of the crowd of its access, and of one that has ended. */
void ex_concurrent_take(const struct ex_value_tracker *, struct ex_tentative *,
    const struct wp_stop_value *);

/* It waits for no crowd any more. */
void ex_concurrent_leave(struct ex_tracked *, struct ex_tentative *);

/* --- tracker_tickets.c --- */

/* Whether what others left shows nothing: not all writers make hits. */
bool ex_tracked_is_blind(const struct ex_value_tracker *,
    const struct ex_tracked *, uint64_t time);

/* Whether its tickets are of use. */
bool ex_tickets_help(const struct ex_value_tracker *, const struct ex_tracked *,
    const struct ex_hit *);

/* The history begins with what is known of the bytes before any hit. */
void ex_tickets_begin(struct ex_tracked *);

/* A hit has taken a ticket. */
void ex_ticket_take(const struct ex_value_tracker *, struct ex_tracked *,
    const struct wp_ticket *, struct ex_tentative *);

/* What the history says of a hit, if it has come to say anything.  What it
   leaves open, the order of the hits does not prove: a processor may have been
   taken away between a store and its hit. */
void ex_ticket_use(const struct ex_tracked *, struct ex_tentative *);

#endif
