/*
 * value_tracker_private: the tracked state of a watch, and what else the files
 * of the tracker share.
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
	bool numbered;		/* its hits have tickets, which help */
	bool misordered;	/* and times do not have the order of these */
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

/* ns; see value_tracker.h. */
#define WINDOW		UINT64_C(2000000)

uint32_t ex_low_bits(uint64_t n);
void ex_tracked_put_bytes(struct ex_value *, const struct ex_value *,
    uint32_t bits);

/* Whether the bytes that are known of both are the same. */
bool ex_tracked_agree(const struct ex_value *, const struct ex_value *);
bool ex_hit_is_execution(const struct ex_hit *);

/* Whether it certainly did not write. */
bool ex_hit_is_read(const struct ex_hit *);

/* Keep it in mind: it has something to lose. */
void ex_tracked_list(struct ex_tracked *, struct ex_tentative *);
void ex_tracked_unlist(struct ex_tracked *, const struct ex_tentative *);

/* Complete the values by what the instruction did.  old holds what is known so
   far. */
void ex_tracked_apply(struct ex_hit *, struct ex_tentative *);

/* Others may have written until then what no ticket shows. */
void ex_tracked_doubt_history(struct ex_tracked *, uint64_t time);
void ex_tracked_disorder(struct ex_tracked *, uint64_t time);

/* Somebody hits the watch.  Result: whether it is known to have done so after
   all that were there before. */
bool ex_tracked_follow(const struct ex_value_tracker *, struct ex_tracked *,
    uint64_t time, pid_t tid, uint32_t cpu);
bool ex_tracked_is_quiet(const struct ex_tracked *, uint64_t time);

/* Memory that was read too short before a hit may hold what that wrote. */
void ex_tracked_take_reading(const struct ex_value_tracker *,
    struct ex_tracked *, uint64_t time);

/* What a hit left behind. */
void ex_tracked_leave(struct ex_tracked *, const struct ex_hit *, bool ordered);

/* What a stop has read.  If it vouches for it, there is nothing to doubt; else
   it fills in what is not known, and other threads hit that may be reported
   only after this one: what the previous hit left is no old value, unless the
   caller says so.  Result: whether there is any; then nothing else is to be
   read. */
bool ex_tracked_take_stop(const struct ex_value_tracker *,
    struct ex_tentative *, const struct wp_stop_value *);

#endif
