/*
 * value_tracker_private: the tracked state of a watch, and other things that
 * the files of the tracker share.
 */
#ifndef EX_VALUE_TRACKER_PRIVATE_H
#define EX_VALUE_TRACKER_PRIVATE_H

#include "base/table.h"
#include "hit/value_tracker.h"
#include "stop/shared_vm.h"

/* Crowds that have ended and some of whose hits are still missing. */
enum { ENDED_MAX = 32 };

struct ex_ended {
	uint64_t number;	/* 0: none */
	uint32_t samples;	/* 0: not known */
	bool has_before;
	uint8_t before[EX_VALUE_MAX], after[EX_VALUE_MAX];
};

struct ex_tracked {
	const struct ex_watch *watch;
	struct ex_value value;	/* after the last hit */
	pid_t pid;		/* the process of value; 0: none yet */
	bool unseen;		/* others write the bytes, or may, without a
				   hit */
	bool numbered;		/* its hits have usable tickets */
	bool misordered;	/* and their order differs from that of times */
	bool unmapped;		/* unknown how it is mapped */
	bool hit;		/* there was a hit; the last one was: */
	uint64_t time;		/* ns */
	pid_t tid;
	uint32_t cpu;
	bool disordered;	/* there was disorder, */
	uint64_t disorder;	/* last at this time, ns */
	uint32_t later;		/* bits of value that were read from memory */
	uint64_t read;		/* by this time, ns */
	struct ex_tentative *first, *end;	/* hits that may still lose a
						   value, oldest first; NULL:
						   none */
	struct ex_tentative *last;	/* the last hit's, while it waits */
	struct ex_tentative *waiting;	/* those that wait for crowds; NULL:
					   none */
	struct ex_ended *ended;	/* ENDED_MAX of them; NULL: none so far */
	size_t next_ended;	/* the oldest of these */
	struct ex_history *history;	/* the history of its tickets; NULL:
					   none so far */
	uint64_t doubted;	/* ns: its results for hits up to then are
				   invalid */
};

struct ex_value_tracker {
	const struct ex_value_options *values;	/* NULL: nothing is tracked */
	struct ex_table of;	/* by the watch's id */
	struct wp_shared_vm lent;	/* memory shared with children that are
					   not watched; */
	uint64_t blind;		/* ns: these may have written until then; 0:
				   never */
};

/* The tracked state of a watch; NULL: none, or out of memory. */
struct ex_tracked *ex_tracked_of(struct ex_value_tracker *,
    const struct ex_watch *);

/* The number of a watch's bytes that are kept. */
uint64_t ex_tracked_size(const struct ex_watch *);

/* The set of a watch's bytes that a hit touched; the set that its instruction's
   operand covers; and to store the operand's bytes there. */
uint32_t ex_touched_bits(const struct ex_hit *);
uint32_t ex_operand_bits(const struct ex_hit *);
void ex_put_operand(struct ex_value *, const struct ex_hit *,
    const uint8_t *bytes);

/* Whether the instruction is known, and the bytes that it touched. */
bool ex_hit_is_exact(const struct ex_hit *);

/* Take back values that rest on the order of hits. */
void ex_tentative_withdraw(struct ex_tentative *);

/* A hit found something else than the previous hit had left: either something
   writes to the watch without hits, and their order shows nothing, or times are
   not in the order of the accesses.  NULL: nothing is tracked. */
void ex_tracked_contradict(struct ex_tracked *);

/* --- tracker_concurrent.c --- */

/* Take over what a stop knows of its access's crowd, and of a crowd that has
   ended. */
void ex_concurrent_take(const struct ex_value_tracker *, struct ex_tentative *,
    const struct wp_stop_value *);

/* A hit waits for no crowd any more. */
void ex_concurrent_leave(struct ex_tracked *, struct ex_tentative *);

/* --- tracker_tickets.c --- */

/* Whether values left by others are of no use, because not all writers make
   hits. */
bool ex_tracked_has_unseen(const struct ex_value_tracker *,
    const struct ex_tracked *, uint64_t time);

/* Whether tickets help with this hit. */
bool ex_tickets_help(const struct ex_value_tracker *, const struct ex_tracked *,
    const struct ex_hit *);

/* Begin the history with what is known of the bytes before any hit. */
void ex_tickets_begin(struct ex_tracked *);

/* Add a hit that has taken a ticket. */
void ex_ticket_take(const struct ex_value_tracker *, struct ex_tracked *,
    const struct wp_ticket *, struct ex_tentative *);

/* Use the history's result for a hit, if there is one.  What it leaves open,
   the order of hits does not prove: a processor may have been taken away
   between a store and its hit. */
void ex_ticket_use(struct ex_tracked *, struct ex_tentative *);

/* ns; see value_tracker.h. */
#define WINDOW		UINT64_C(2000000)

uint32_t ex_low_bits(uint64_t n);
void ex_tracked_put_bytes(struct ex_value *, const struct ex_value *,
    uint32_t bits);

/* Whether the bytes that are known in both are equal. */
bool ex_tracked_agree(const struct ex_value *, const struct ex_value *);
bool ex_hit_is_execution(const struct ex_hit *);

/* Whether the hit certainly did not write. */
bool ex_hit_is_read(const struct ex_hit *);

/* List a hit that may still lose a value; and unlist it. */
void ex_tracked_list(struct ex_tracked *, struct ex_tentative *);
void ex_tracked_unlist(struct ex_tracked *, const struct ex_tentative *);

/* Complete the values by what the instruction did; old holds what is known so
   far. */
void ex_tracked_apply(struct ex_hit *, struct ex_tentative *);

/* Others may have written until then, without a ticket. */
void ex_tracked_doubt_history(struct ex_tracked *, uint64_t time);
void ex_tracked_disorder(struct ex_tracked *, uint64_t time);

/* Add a hit of the watch.  Result: whether it is known to have come after all
   earlier ones. */
bool ex_tracked_follow(const struct ex_value_tracker *, struct ex_tracked *,
    uint64_t time, pid_t tid, uint32_t cpu);
bool ex_tracked_is_quiet(const struct ex_tracked *, uint64_t time);

/* Withdraw readings of memory so soon before a hit that they may contain what
   it wrote. */
void ex_tracked_take_reading(const struct ex_value_tracker *,
    struct ex_tracked *, uint64_t time);

/* Track what a hit left. */
void ex_tracked_leave(struct ex_tracked *, const struct ex_hit *, bool ordered);

/* Use the values that a stop has read.  If it vouches for them, there is
   nothing to doubt; else they fill in what is unknown, and other threads may
   hit that are reported only after this one: what the previous hit left is then
   no old value, unless the caller says so.  Result: whether there are any
   values; then nothing else needs to be read. */
bool ex_tracked_take_stop(const struct ex_value_tracker *,
    struct ex_tentative *, const struct wp_stop_value *);

#endif
