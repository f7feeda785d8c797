/*
 * hit: one access to a watched region, explained: the thread, the place, the
 * values.
 *
 * An explainer takes decoded records in time order and delivers hits.  Samples
 * that are one access are one hit: those of several slots of one watch for one
 * instruction, and those of one system call that copies over a watch.  So that
 * they can be joined, a hit that may get more is delivered only when a later
 * sample, or ex_explain_flush, shows that it is complete.
 */
#ifndef EX_HIT_H
#define EX_HIT_H

#include "hit/argument.h"
#include "syscall/syscall.h"
#include "stack/stack.h"
#include "hit/value.h"
#include "insn/insn.h"
#include "os/counter.h"
#include "stop/value_sample.h"

/* What is watched, as a reader is to see it. */
struct ex_watch {
	unsigned id;		/* 1, 2, ...: in the order given */
	unsigned number;	/* what a reader knows it by, the same in each
				   of several processes; 0: that is id */
	pid_t pid;		/* the one process that it is in; 0: any */
	char comm[32];		/* that one's name; "": not known */
	const char *spec;	/* as the user wrote it */
	const char *symbol;	/* NULL: none */
	uint64_t addr, len;	/* the whole region */
	enum wp_access access;	/* what is watched for */
	unsigned slots;		/* how many it takes in a thread; of execution
				   0: it is by uprobes */
	bool moves;		/* it is one of several places of a watch: a
				   sample says at which it was, ... */
	uint64_t since;		/* ... of those that were there by its time,
				   ns */
	bool pending;		/* it is not armed: what is watched for it, when
				   it is there, are other watches of its
				   number */
	bool local;		/* each thread has its own, which are parts of
				   it */
	const struct ex_watch *whole;	/* it is a part of this one, over which
					   slots move; NULL: it is no part */
	uint64_t block;		/* that part is one thread's own, whose control
				   block is here, and only its hits are of it;
				   0: it is not */
	uint64_t object;	/* that part is the object of this number, as
				   long as that is there; 0: it is none */
	uint64_t freed;		/* ns: when it was; 0: it has not been, */
	pid_t freed_by;		/* by this thread, */
	const struct ex_stack *freed_at;	/* here; NULL: not known */
};

static inline unsigned
ex_watch_number(const struct ex_watch *watch)
{
	return watch->number != 0 ? watch->number : watch->id;
}

/* Whether it takes no slots, because uprobes are in their place. */
static inline bool
ex_watch_by_uprobe(const struct ex_watch *watch)
{
	return watch->access == WP_EXEC && watch->slots == 0 &&
	    !watch->pending && watch->addr != 0;
}

/* Whether it is in the kernel's memory, not a program's. */
static inline bool
ex_watch_in_kernel(const struct ex_watch *watch)
{
	return watch->addr > UINT64_MAX / 2;
}

/* What a hit made of the bytes that it touched. */
struct ex_change {
	bool has_old, has_new;	/* whether all of them are known in the hit's
				   old and new */
	const struct ex_object *object;	/* that they are, or are a part of;
					   NULL: not known */
	const char *type, *path;	/* of it; NULL: not known */
	/* values of the object, as the program's; "": not known, or of a type
	   that has no such text.  From the target. */
	char old_text[256], new_text[256];
};

/* What was counted in a hit's thread since its last hit. */
struct ex_counted {
	const char *name;	/* as in os/counter.h */
	uint64_t count;
	bool is_time;		/* in ns */
};

struct ex_hit {
	uint64_t seq;		/* from 1, in order of delivery */
	uint64_t begun;		/* from 1, in order of their first samples,
				   which is that of delivery too: of all, also
				   those that are not delivered */
	const struct ex_watch *watch;	/* not a part of one: */
	const struct ex_watch *part;	/* that was hit, once the hit is
					   delivered; NULL: watch has none */
	uint64_t time;		/* ns on the records' clock */
	pid_t pid, tid;
	struct ex_process *process;	/* whose memory; NULL: out of memory */
	char comm[64];		/* the thread's name; "" when unknown */
	uint32_t cpu;		/* UINT32_MAX: unknown */
	const char *access;	/* "write", "read", "access", "execute",
				   "read-write" */
	bool kernel;		/* the kernel's access on the program's
				   behalf */
	uint64_t addr;		/* watched bytes touched: first, and how many */
	uint64_t len;
	uint64_t pc;		/* as sampled (user pc, for kernel hits too) */
	struct ex_insn insn;	/* not for kernel hits */
	struct ex_value old, new;	/* of the bytes of ex_hit_place; of
					   those that were touched or of more */
	enum ex_value_source source;	/* of new */
	bool unchanged;		/* a write that left every touched byte as it
				   was; both values are known */
	const struct ex_stack *stack;	/* NULL: out of memory */
	const struct ex_arguments *args;	/* of a function that is
						   executed from its beginning
						   on, until the hit was given;
						   NULL: it is none */
	unsigned nwith;		/* members of with; 0: there are none, or it is
				   the first hit that is known */
	unsigned samples;	/* how many were joined in this hit */
	unsigned accesses;	/* set from hints: it came late, and so many
				   were counted; 0: not known */
	bool stray;		/* made by a function that is not allowed to:
				   set from hints, or by the policy */
	bool unjudged;		/* maybe stray: the backtrace has no allowed
				   function, but is not whole */
	bool unsure;		/* whether it is wanted is not known: set by
				   the condition */
	bool late;		/* set from hints: delivered when the thread
				   unblocked the signal; pc and backtrace are
				   those of that moment */
	/* what is large, and mostly not used, comes last */
	struct ex_syscall call;	/* kernel: the system call */
	struct ex_change change;	/* of old and new, in words */
	struct ex_counted with[WP_COUNTERS];
};

/* The watch, or part of it, whose bytes old and new are. */
static inline const struct ex_watch *
ex_hit_place(const struct ex_hit *hit)
{
	return hit->part != NULL ? hit->part : hit->watch;
}

/* The object that was hit, or the watch, if it is of no objects. */
static inline const struct ex_watch *
ex_hit_object(const struct ex_hit *hit)
{
	return hit->part != NULL && hit->part->object != 0 ? hit->part :
	    hit->watch;
}

/* Whether it is of an object that was freed by then. */
static inline bool
ex_hit_after_free(const struct ex_hit *hit)
{
	return hit->part != NULL && hit->part->freed != 0 &&
	    hit->time >= hit->part->freed;
}

/* What an event (by its index in the formats) is a slot of. */
struct ex_slot {
	const struct ex_watch *watch;	/* NULL: none, ignored */
	uint64_t addr, len;	/* the bytes it covers */
};

/* Where the touched bytes are in the values; false: not among those kept. */
bool ex_hit_bytes(const struct ex_hit *, unsigned *from, unsigned *len);

/* Fill in what the hit changed, from its values; done for each that an
   explainer gives. */
void ex_hit_change(struct ex_hit *);

struct ex_explainer;

/*
 * A new explainer over a space.  Space, slots and their watches belong to the
 * caller and outlive it; slots are indexed by ex_record.attr.  give is called
 * for each hit, in order, and may change it; its non-zero result is returned by
 * the call that caused it.  NULL: out of memory.
 */
struct ex_explainer *ex_explainer_new(struct ex_space *,
    const struct ex_slot *slots, size_t nslots,
    int (*give)(void *arg, struct ex_hit *), void *arg);

/* There are more slots now, and they may lie elsewhere. */
void ex_explainer_slots(struct ex_explainer *, const struct ex_slot *slots,
    size_t nslots);

void ex_explainer_free(struct ex_explainer *);

/* As ex_stack_of_callers, of a process of its space. */
const struct ex_stack *ex_explain_callers(struct ex_explainer *, pid_t,
    const uint64_t *pc, unsigned n, bool whole);

/* The backtrace of a sample that is of no watch; after: the thread has left the
   instruction in front of its pc. */
const struct ex_stack *ex_explain_sample(struct ex_explainer *,
    const struct ex_record *, bool after);

/*
 * How the values of hits are found.
 *
 * Without these options, a hit has only the values that the instruction itself
 * shows.  With them, every hit waits some milliseconds, until it is known what
 * else was hit at the same time; or it is delivered at_once, for a thread that
 * waits.  Then an old value is only what the instruction or a stop shows,
 * unless hits come in_order: the caller says (ex_explain_doubt) which hits may
 * not have found what the previous one left.
 */
struct ex_value_options {
	/* Read a process's memory as it is now: how many bytes from addr on,
	   or < 0.  NULL: there is none, as in a recording. */
	ssize_t (*read)(pid_t, uint64_t addr, void *to, size_t len);
	uint64_t (*now)(void);	/* with read: the records' clock, ns */
	bool follows;		/* children's hits are reported too; else: */
	bool (*shares)(pid_t tid, pid_t child);	/* whether the child shares
						   its maker's memory, so that
						   its writes are not seen;
						   NULL: it cannot be asked */
	bool at_once;
	bool in_order;		/* with at_once */
	bool crowds;		/* with at_once: hits that stopped threads made
				   together may still wait for each other */
};

/* Find values in this way, from the next record on.  0 or -ENOMEM. */
int ex_explainer_values(struct ex_explainer *, const struct ex_value_options *);

/* A watch's bytes were these in a process (as many as len, from its first on)
   by this time, ns; 0: before any thread could hit it. */
void ex_explain_known(struct ex_explainer *, const struct ex_watch *, pid_t,
    const uint8_t *bytes, size_t len, uint64_t time);

/* Less is known of a watch's bytes from now on. */
void ex_explain_doubt(struct ex_explainer *, const struct ex_watch *,
    enum ex_doubt);

/* What is known of samples besides what they say themselves. */
struct ex_hints {
	pid_t tid;		/* of this thread's alone; 0: of all */
	bool stopped;		/* it is stopped where it was sampled, so that
				   its process can be asked about the hit */
	bool kernel;		/* the kernel made the access, for the system
				   call that the thread has come back from */
	bool late, stray;	/* as in struct ex_hit, */
	unsigned accesses;	/* too */
	const char *comm;	/* the thread's name then; NULL: by records */
	const struct wp_stop_value *read;	/* what was read of the watch;
				   NULL: by the sample */
};

/* Take these for the samples that are fed from now on; NULL: nothing is known
   of them. */
void ex_explain_hints(struct ex_explainer *, const struct ex_hints *);

/* Is notified of stacks that come often; and, when their process maps other
   code, that they may have changed. */
struct ex_listener {
	void (*know)(const struct wp_known_stack *);
	void (*forget)(pid_t);
	bool counts;		/* who it tells counts hits of such stacks, and
				   does not deliver them: then it is said of
				   which watch, and they are taken up by
				   ex_explain_counted */
};

/* What such hits of a stack have in common: it is held by the explainer.
   False: it was not told of this one. */
bool ex_explain_counted(const struct ex_explainer *, const struct ex_watch *,
    pid_t, uint32_t stack, struct ex_hit *);

/* The listener outlives it; NULL: no listener, as in the beginning. */
void ex_explain_listen(struct ex_explainer *, const struct ex_listener *);

/* Feed one record: the space learns, a sample of a watch becomes (part of) a
   hit.  0, or give's result. */
int ex_explain(struct ex_explainer *, const struct ex_record *);

/* All records up to this time have been fed (ns; UINT64_MAX: there will be no
   more): deliver the hits that get no more samples.  0, or give's result. */
int ex_explain_flush(struct ex_explainer *, uint64_t now);

/* What became of the samples fed: joined into another's hit; dropped, as writes
   are where only reads are watched. */
struct ex_tally {
	uint64_t samples;	/* of watches, in all */
	uint64_t joined, dropped;
	uint64_t hits;		/* delivered: samples - joined - dropped, once
				   flushed */
};
const struct ex_tally *ex_explain_tally(const struct ex_explainer *);

/* Where the sample fed last has gone: the hit that it is a part of, by its
   number `begun'; or none. */
#define EX_BEGUN_DROPPED	(UINT64_MAX - 1)	/* a write, as above */
#define EX_BEGUN_JOINED		UINT64_MAX	/* another sample has it */
uint64_t ex_explain_begun(const struct ex_explainer *);

/* All hits up to this one, by its number `begun', were delivered or dropped. */
uint64_t ex_explain_done(const struct ex_explainer *);

#endif
