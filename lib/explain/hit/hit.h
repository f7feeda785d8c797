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

struct ex_process;
struct ex_space;

/* A watch, as it is reported. */
struct ex_watch {
	unsigned id;		/* 1, 2, ...: in the order given */
	unsigned number;	/* the reported number, the same in each of
				   several processes; 0: it is id */
	pid_t pid;		/* its only process; 0: any */
	char comm[32];		/* the process's name; "": not known */
	const char *spec;	/* as the user wrote it */
	const char *symbol;	/* NULL: none */
	uint64_t addr, len;	/* the whole region */
	enum wp_access access;	/* what is watched for */
	unsigned slots;		/* slots in each thread; 0 for execution: by
				   uprobes */
	bool moves;		/* one of several places of a watch: a sample
				   shows at which it was made, ... */
	uint64_t since;		/* ... of those that existed at its time, ns */
	bool pending;		/* it is not armed: when its variable exists,
				   other watches with its number are */
	bool local;		/* each thread has its own instance, which is a
				   part of it */
	const struct ex_watch *whole;	/* it is a part of this watch; NULL: no
					   part */
	uint64_t block;		/* the part is the instance of the thread with
				   this control block, and only that thread's
				   hits are of it; 0: no instance */
	uint64_t object;	/* the part is the object with this number,
				   during its life; 0: no object */
	uint64_t freed;		/* ns: when it was freed; 0: it was not, */
	pid_t freed_by;		/* by this thread, */
	const struct ex_stack *freed_at;	/* the backtrace; NULL: not
						   known */
};

static inline unsigned
ex_watch_number(const struct ex_watch *watch)
{
	return watch->number != 0 ? watch->number : watch->id;
}

/* Whether it uses uprobes instead of slots. */
static inline bool
ex_watch_by_uprobe(const struct ex_watch *watch)
{
	return watch->access == WP_EXEC && watch->slots == 0 &&
	    !watch->pending && watch->addr != 0;
}

/* Whether it is in the kernel's memory. */
static inline bool
ex_watch_in_kernel(const struct ex_watch *watch)
{
	return watch->addr > UINT64_MAX / 2;
}

/* The change of the bytes that a hit touched. */
struct ex_change {
	bool has_old, has_new;	/* all touched bytes are known in the hit's old
				   and new */
	const struct ex_object *object;	/* the object that the bytes are, or are
					   a part of; NULL: not known */
	const char *type, *path;	/* of it; NULL: not known */
	/* Values of the object as its type has them; "": not known, or the type
	   has no text.  From the target. */
	char old_text[256], new_text[256];
};

/* A counter's value in a hit's thread since its last hit. */
struct ex_counted {
	const char *name;	/* as in os/counter.h */
	uint64_t count;
	bool is_time;		/* in ns */
};

struct ex_hit {
	uint64_t seq;		/* from 1, in order of delivery */
	uint64_t begun;		/* from 1, in order of first samples, which is
				   that of delivery too; also counts hits that
				   are not delivered */
	const struct ex_watch *watch;	/* never a part: */
	const struct ex_watch *part;	/* the part that was hit, set on
					   delivery; NULL: watch has none */
	uint64_t time;		/* ns on the records' clock */
	pid_t pid, tid;
	struct ex_process *process;	/* whose memory was accessed; NULL: out
					   of memory */
	char comm[64];		/* the thread's name; "" when unknown */
	uint32_t cpu;		/* UINT32_MAX: unknown */
	const char *access;	/* "write", "read", "access", "execute",
				   "read-write" */
	bool kernel;		/* the kernel's access on the program's
				   behalf */
	uint64_t addr;		/* the watched bytes that were touched */
	uint64_t len;
	uint64_t pc;		/* as sampled (user pc, for kernel hits too) */
	struct ex_insn insn;	/* not for kernel hits */
	struct ex_value old, new;	/* bytes of ex_hit_place; at least the
					   touched ones */
	bool old_inferred;	/* some of old is what an earlier hit left, or
				   was read before: the access does not show
				   it */
	enum ex_value_source source;	/* of new */
	bool unchanged;		/* a write that left every touched byte as it
				   was; both values are known */
	const struct ex_stack *stack;	/* NULL: out of memory */
	const struct ex_arguments *args;	/* the arguments of a function
						   that is entered, valid while
						   the hit is given; NULL:
						   none */
	unsigned nwith;		/* members of `with'; 0: none, or this is the
				   thread's first known hit */
	unsigned samples;	/* samples joined in this hit */
	unsigned accesses;	/* set from hints: accesses counted by a late
				   hit; 0: not known */
	bool stray;		/* made by a function that is not allowed to:
				   set from hints, or by the policy */
	bool unjudged;		/* maybe stray: the backtrace has no allowed
				   function, but is incomplete */
	bool unsure;		/* unknown whether it is wanted: set by the
				   condition */
	bool late;		/* set from hints: delivered when the thread
				   unblocked the signal; pc and backtrace are
				   those of that moment */
	/* large and rarely used members come last */
	struct ex_syscall call;	/* kernel: the system call */
	struct ex_change change;	/* old and new as text */
	struct ex_counted with[WP_COUNTERS];
};

/* The watch or part whose bytes old and new are. */
static inline const struct ex_watch *
ex_hit_place(const struct ex_hit *hit)
{
	return hit->part != NULL ? hit->part : hit->watch;
}

/* The object that was hit, or else the watch. */
static inline const struct ex_watch *
ex_hit_object(const struct ex_hit *hit)
{
	return hit->part != NULL && hit->part->object != 0 ? hit->part :
	    hit->watch;
}

/* Whether the object had been freed by then. */
static inline bool
ex_hit_after_free(const struct ex_hit *hit)
{
	return hit->part != NULL && hit->part->freed != 0 &&
	    hit->time >= hit->part->freed;
}

/* The slot of an event (by its index in the formats). */
struct ex_slot {
	const struct ex_watch *watch;	/* NULL: none, ignored */
	uint64_t addr, len;	/* the bytes it covers */
};

/* The range of the touched bytes within the values; false: they are not
   kept. */
bool ex_hit_bytes(const struct ex_hit *, unsigned *from, unsigned *len);

/* Fill in `change' from the values; done for each hit that an explainer
   gives. */
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

/* Set the slots again: there are more now, and the array may have moved. */
void ex_explainer_slots(struct ex_explainer *, const struct ex_slot *slots,
    size_t nslots);

void ex_explainer_free(struct ex_explainer *);

/* As ex_stack_of_callers, for a process of its space. */
const struct ex_stack *ex_explain_callers(struct ex_explainer *, pid_t,
    const uint64_t *pc, unsigned n, bool whole);

/* The backtrace of a sample without a watch; after: the thread has executed the
   instruction before its pc. */
const struct ex_stack *ex_explain_sample(struct ex_explainer *,
    const struct ex_record *, bool after);

/*
 * How the values of hits are found.
 *
 * Without these options, a hit has only the values that the instruction itself
 * shows.  With them, every hit waits some milliseconds, until all hits of the
 * same time are known; or, with at_once, it is delivered immediately, for a
 * thread that waits.  Then old values are known only from the instruction or a
 * stop, unless hits come in_order: the caller says (ex_explain_doubt) which
 * hits may not have found what the previous one left.
 */
struct ex_value_options {
	/* Read a process's memory as it is now: the number of bytes from addr
	   on, or < 0.  NULL: impossible, as in a recording. */
	ssize_t (*read)(pid_t, uint64_t addr, void *to, size_t len);
	uint64_t (*now)(void);	/* with read: the records' clock, ns */
	bool follows;		/* children's hits are reported too;
				   otherwise: */
	bool (*shares)(pid_t tid, pid_t child);	/* whether the child shares its
						   creator's memory, so that its
						   writes are not seen; NULL:
						   cannot be asked */
	bool at_once;
	bool in_order;		/* with at_once */
	bool crowds;		/* with at_once: hits that stopped threads made
				   together may still wait for each other */
};

/* Find values in this way, from the next record on.  0 or -ENOMEM. */
int ex_explainer_values(struct ex_explainer *, const struct ex_value_options *);

/* Set the known bytes of a watch in a process (len, from its first on) as of
   this time, ns; 0: before any thread could hit it. */
void ex_explain_known(struct ex_explainer *, const struct ex_watch *, pid_t,
    const uint8_t *bytes, size_t len, uint64_t time);

/* From now on, less is known of a watch's bytes. */
void ex_explain_doubt(struct ex_explainer *, const struct ex_watch *,
    enum ex_doubt);

/* What is known of samples besides their contents. */
struct ex_hints {
	pid_t tid;		/* only of this thread's samples; 0: of all */
	bool stopped;		/* the thread is stopped where it was sampled,
				   so its process can be asked about the hit */
	bool kernel;		/* the kernel made the access, for the system
				   call from which the thread has returned */
	bool late, stray;	/* as in struct ex_hit */
	unsigned accesses;	/* as in struct ex_hit */
	const char *comm;	/* the thread's name then; NULL: from records */
	const struct wp_stop_value *read;	/* the bytes that were read of
						   the watch; NULL: as in the
						   sample */
};

/* Use these hints for samples that are fed from now on; NULL: none. */
void ex_explain_hints(struct ex_explainer *, const struct ex_hints *);

/* Is told of frequent stacks; and, when their process maps other code, that
   these may have changed. */
struct ex_listener {
	void (*know)(const struct wp_known_stack *);
	void (*forget)(pid_t);
	bool counts;		/* hits of such stacks are counted by BPF
				   programs and not delivered: stacks are
				   reported with their watch, and
				   ex_explain_counted explains the counts */
};

/* Fill in what all such hits of a stack have in common; the explainer holds the
   stack.  False: the listener was not told of it. */
bool ex_explain_counted(const struct ex_explainer *, const struct ex_watch *,
    pid_t, uint32_t stack, struct ex_hit *);

/* Set the listener, which must outlive the explainer; NULL: none, as at
   first. */
void ex_explain_listen(struct ex_explainer *, const struct ex_listener *);

/* Feed one record: the space learns, a sample of a watch becomes (part of) a
   hit.  0, or give's result. */
int ex_explain(struct ex_explainer *, const struct ex_record *);

/* All records up to this time have been fed (ns; UINT64_MAX: there will be no
   more): deliver the hits that get no more samples.  0, or give's result. */
int ex_explain_flush(struct ex_explainer *, uint64_t now);

/* What became of the samples fed: joined into another's hit; dropped, such as
   writes where only reads are watched. */
struct ex_tally {
	uint64_t samples;	/* of watches, in all */
	uint64_t joined, dropped;
	uint64_t hits;		/* delivered: samples - joined - dropped, once
				   flushed */
};
const struct ex_tally *ex_explain_tally(const struct ex_explainer *);

/* The hit, by its number `begun', that the last fed sample belongs to; or
   none. */
#define EX_BEGUN_DROPPED	(UINT64_MAX - 1)	/* a write, as above */
#define EX_BEGUN_JOINED		UINT64_MAX	/* it belongs to another
						   sample's hit */
uint64_t ex_explain_begun(const struct ex_explainer *);

/* The number `begun' up to which all hits were delivered or dropped. */
uint64_t ex_explain_done(const struct ex_explainer *);

#endif
