/*
 * value_tracker: tracks the bytes that the last hit of a watch left, which are
 * the next hit's old value; and finds the values of hits.
 *
 * Order.  A hit's time is taken in the trap, soon after the access, but never
 * at it; on a virtual machine the processor may be taken away in between.  So
 * times alone do not show which of two accesses came first.  These facts do:
 *
 *  - accesses of one thread, and of one processor, are in the order of their
 *    times, because nothing else runs there before the time is taken;
 *  - other accesses are, if their times are at least WINDOW apart.
 *
 * Two successive hits of a watch to which neither applies are in disorder.
 * No old value is taken from what was tracked
 *
 *  - for either of them: a hit waits for WINDOW before it is delivered, so that
 *    one that comes after it can still take its value back;
 *  - for any hit in the time QUIET after that: a thread that hits often, and
 *    has not for a while, may have written already and be held up before its
 *    time is taken;
 *  - for a hit after one that left bytes which nothing shows (a vector store, a
 *    copy by the kernel): these bytes only;
 *  - when records were lost, until the next hit.
 *
 * What an instruction loaded itself is known whatever others do.  It is also
 * what the previous hit left, if nothing else shows that, and the two are in
 * order.
 *
 * Writers that make no hit.  What is tracked holds where all writers are seen.
 * It is not used for a watch whose bytes others may write in other ways (the
 * kernel, where its accesses are not watched; another process that maps them):
 * the caller says so; nor while a child that is not watched may have its
 * parent's memory (shared_vm.h), nor for what was left in that time.  If it is
 * contradicted by what an instruction loaded, or by its flags, then there is
 * such a writer after all.
 *
 * Reading memory.  When nothing shows what a hit left, and it is the last one
 * so far, memory is read; the result is taken for what it left if no other hit
 * comes before WINDOW after the reading.
 *
 * Where hits must be delivered at once, times are of no use, because no hit
 * waits to take a value back.  The caller then says whether hits are in order.
 * But those that threads made together, which is known by their stops, wait for
 * each other (concurrent.h), unless no hit may.
 *
 * Tickets.  Where each hit took one, with the bytes that it left
 * (bpf/ticket.h), the history of the readings shows more than times do
 * (history.h).  Such a hit waits for a mark, but no longer than MARK_WAIT.
 * Then values claimed by order are certain too, because no hit was missed.  If
 * no mark comes in time, they are taken back.
 *
 * Other accesses that bypass the watch are not known here; the manual lists
 * them.
 */
#ifndef EX_VALUE_TRACKER_H
#define EX_VALUE_TRACKER_H

#include "hit/history.h"
#include "hit/hit.h"
#include "bpf/ticket.h"

struct ex_value_tracker;

/* Values that a waiting hit may still lose: its old value; a new one derived
   from that, or from what the next one loaded; bytes that were read later. */
struct ex_tentative {
	struct ex_tentative *next;	/* of a later hit of the same watch */
	struct ex_tracked *tracked;	/* NULL: there is nothing to lose */
	struct ex_hit *hit;
	uint32_t loaded;	/* bits of old that are certain: the hit loaded
				   them */
	uint32_t shown;		/* bits of old that the hit itself shows */
	uint32_t stored;	/* bits of new that are certain: the hit stored
				   them */
	uint32_t later;		/* bits of new that were read later, ... */
	uint64_t read;		/* ... by this time, ns; or what distinguishes
				   others */
	bool looked;		/* reading memory for it was tried */
	bool listed;		/* it is in its watch's list */
	uint64_t crowd;		/* the crowd that it waits for; 0: none */
	uint64_t since;		/* crowd: it was made after this, ns */
	uint32_t samples;	/* crowd: number of its accesses */
	struct ex_tentative *next_waiting;	/* next one of the watch that
						   waits for any crowd */
	struct ex_history_hit *ticket;	/* NULL: it has none */
};

/* A new, empty set for all watches, or NULL when out of memory.  values
   outlive it. */
struct ex_value_tracker *ex_tracker_new(const struct ex_value_options *values);
void ex_tracker_free(struct ex_value_tracker *);

/* Fill in the values of a hit that was explained, as far as they are known by
   now, and the ex_tentative, which lives until ex_tracker_given, as the hit
   does.  The wp_stop_value is what a stop has read, the ticket that of its
   sample; NULL: none. */
void ex_tracker_hit(struct ex_value_tracker *, struct ex_hit *,
    const struct wp_stop_value *, const struct wp_ticket *,
    struct ex_tentative *);

/* Add another sample of a hit. */
void ex_tracker_joined(struct ex_value_tracker *, struct ex_tentative *,
    const struct ex_record *, const struct wp_stop_value *);

/* Whether a hit's values are final, when all hits from before now are known. */
bool ex_tracker_settled(const struct ex_value_tracker *,
    const struct ex_tentative *,
    uint64_t now);

/* Note that the hit is delivered. */
void ex_tracker_given(struct ex_tentative *);

/* Read memory for the last hit of each watch. */
void ex_tracker_look(struct ex_value_tracker *);

/* Set a watch's first len bytes in a process as of this time; 0: before any
   thread could hit it. */
void ex_tracker_known(struct ex_value_tracker *, const struct ex_watch *, pid_t,
    const uint8_t *bytes, size_t len, uint64_t time);

/* From now on, less is known of a watch's bytes. */
void ex_tracker_doubt(struct ex_value_tracker *, const struct ex_watch *,
    enum ex_doubt);

/* Whether it is unknown how a watch's bytes are mapped; and set that, as of
   this time, ns: the bytes are then no longer taken for what hits left. */
bool ex_tracker_is_unmapped(struct ex_value_tracker *, const struct ex_watch *);
void ex_tracker_mapped(struct ex_value_tracker *, const struct ex_watch *,
    bool shared, uint64_t time);

/* Add a mark of a watch's tickets: both numbers are as of ex_history_mark. */
void ex_tracker_mark(struct ex_value_tracker *, const struct ex_watch *,
    uint64_t all, uint64_t upto);

/* Process a FORK record, which may be of a child that is not watched and has
   its parent's memory. */
void ex_tracker_born(struct ex_value_tracker *, const struct ex_record *);

/* Hits of any watch were lost until now. */
void ex_tracker_lost(struct ex_value_tracker *, uint64_t now);

#endif
