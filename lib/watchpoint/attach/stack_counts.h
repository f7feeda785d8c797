/*
 * stack_counts: the stacks whose hits are only counted, and their counts.
 *
 * Each stack gets a number, by which programs count its hits
 * (bpf/stack_counter.h).  A stack is valid while the code that its words point
 * into stays mapped; a record reports a new mapping, but only later.  So the
 * counts are read at intervals, and hits that may have been counted since such
 * a mapping are left out; the events' counts still include them.
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
		uint64_t until;	/* ns: from this time on, hits may be of other
				   code; UINT64_MAX: none are */
		bool known;	/* the programs may use it */
	} *stack;		/* n of them; the first one has number base +
				   1 */
	size_t n, cap;
	uint32_t base;
	struct wp_stack_counts_mapping {	/* the newest of nmappings
						   mappings, in a ring */
		pid_t pid;
		uint64_t from, to, time;
	} mapping[WP_TALLIED_MAPPINGS];
	uint64_t nmappings;
	uint64_t forgotten;	/* time of the newest mapping that is not in the
				   ring any more, ns */
	bool done;		/* counting has ended */
	uint64_t seen;		/* when the rows were last read, ns */
	struct wp_stack_counts_row {
		struct wp_stack_row seen;	/* as read then; owner 0: not
						   read */
		struct wp_stack_row sure;	/* as last read while it was
						   certain; owner 0: it never
						   was */
		uint64_t shown, shown_values;	/* hits and values already
						   shown */
		bool left;	/* nothing more is taken from it */
	} *row;			/* one for each row of the table */
	uint64_t cleared;	/* when the table was last cleared, ns */
};

/* NULL: counting is not possible here. */
struct wp_stack_counts *wp_stack_counts_new(void);
void wp_stack_counts_free(struct wp_stack_counts *);

/* Count the hits of a slot with this stack; or only make the stack known, if
   other code may have been mapped since its hit. */
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

/* After all counts were taken and the programs know no stack: count anew, with
   the stacks that they knew.  settled: no program uses the table any more;
   otherwise, counting ends. */
void wp_stack_counts_renew(struct wp_stack_counts *, const struct wp_known *,
    bool settled);

#endif
