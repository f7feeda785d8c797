/*
 * stack_counts: the stacks whose hits are only counted, and the counts.
 *
 * A stack gets a number, by which programs count (bpf/stack_counter.h).  It is
 * proved as long as what its words point into stays mapped; a record says when
 * something else is mapped there, but only later.  So what was counted is
 * looked at again and again, and what may have been counted since that mapping
 * is left out: it shows in the events' counts.
 *
 * One thread uses it.
 */
#ifndef WP_STACK_COUNTS_H
#define WP_STACK_COUNTS_H

#include "attach/target.h"
#include "bpf/known_stack_map.h"
#include "bpf/stack_counter.h"

enum { WP_TALLIED_MAPPINGS = 64 };

struct wp_stack_counts {
	struct wp_stack_table table;
	struct wp_stack_counts_stack {
		struct wp_known_stack stack;
		uint64_t slot;
		uint64_t until;	/* ns: hits of that time and later may be of
				   other code; UINT64_MAX: none are */
		bool known;	/* programs may know it */
	} *stack;		/* n of them; the first has number base + 1 */
	size_t n, cap;
	uint32_t base;
	struct wp_stack_counts_mapping {	/* the newest of nmappings, in a
				   ring */
		pid_t pid;
		uint64_t from, to, time;
	} mapping[WP_TALLIED_MAPPINGS];
	uint64_t nmappings;
	uint64_t forgotten;	/* ns: when the newest was that is not there */
	bool done;		/* nothing is counted any more */
	uint64_t seen;		/* ns: when rows were looked at, last */
	struct wp_stack_counts_row {
		struct wp_stack_row seen;	/* as it was then; owner 0: it
				   was not */
		struct wp_stack_row sure;	/* as it was while that was
				   certain; owner 0: it never was */
		uint64_t shown, shown_values;	/* of its hits, and values */
		bool left;	/* no more is taken from it */
	} *row;			/* of the table's */
	uint64_t cleared;	/* ns: when the table was, last */
};

/* NULL: there is none. */
struct wp_stack_counts *wp_stack_counts_new(void);
void wp_stack_counts_free(struct wp_stack_counts *);

/* Have hits of a slot with this stack counted; or only known, where other code
   may have been mapped since its hit. */
void wp_stack_counts_know(struct wp_stack_counts *, const struct wp_known *,
    const struct wp_known_stack *, uint64_t slot);

/* As wp_known_forget. */
void wp_stack_counts_forget(struct wp_stack_counts *, pid_t);

/* As wp_target_remapped. */
void wp_stack_counts_remapped(struct wp_stack_counts *, pid_t, uint64_t from,
    uint64_t to, uint64_t time);

/* As wp_target_look_at_tallies. */
bool wp_stack_counts_look(struct wp_stack_counts *, uint64_t horizon);

/* As wp_target_show_tallies. */
void wp_stack_counts_show(struct wp_stack_counts *,
    void (*fn)(void *arg, const struct wp_target_tally *), void *arg);

/* As wp_target_take_tallies. */
void wp_stack_counts_take(struct wp_stack_counts *,
    void (*fn)(void *arg, const struct wp_target_tally *), void *arg);

/* All was taken, and programs know no stack: begin anew, with those that they
   did; settled: none is at the table, or else they are done without. */
void wp_stack_counts_renew(struct wp_stack_counts *, const struct wp_known *,
    bool settled);

#endif
