/*
 * past_hits: a summary of a session's hits by backtrace, with a sample of each,
 * from which another explainer can continue.
 */
#ifndef PAST_HITS_H
#define PAST_HITS_H

#include "attach/target.h"
#include "base/table.h"
#include "broker/message.h"
#include "report/summary.h"

/* One backtrace of one watch. */
struct past_hits_row {
	struct ex_stack stack;	/* stands for the backtrace in the summary */
	uint64_t time;		/* of the first hit, */
	pid_t pid;		/* and its process */
	uint64_t watch;		/* if it is a channel's hit, the watch from 1;
				   0: it is a sample */
	size_t len;
	uint8_t record[];	/* len bytes: the first hit's sample */
};

/* All zero: empty. */
struct past_hits {
	struct summary *summary;	/* NULL: none yet */
	struct past_hits_row **at;	/* n of them */
	size_t n, cap;
	size_t size;		/* bytes of all records */
	struct ex_table rows;	/* by the explainer's numbers of watch and
				   backtrace */
	struct ex_table processes;	/* by the process of the sample */
};

/* Count a hit of a watch with the explainer's numbers; the record is its first
   sample, or a channel's hit.  0; -ENOMEM: it is not counted, because there is
   no memory or there are too many backtraces. */
int past_hits_add(struct past_hits *, const struct ex_watch *,
    const struct broker_hit *,
    const struct ex_hit *, bool is_channels, const void *record, size_t len);

/* Whether there are hits of a watch (from 0) with a backtrace, by the
   explainer's number. */
bool past_hits_has_row(const struct past_hits *, uint32_t watch,
    uint32_t stack);

/* Add hits of a watch that BPF programs counted.  False: no hit with that
   backtrace exists. */
bool past_hits_tally(struct past_hits *, const struct ex_watch *,
    const struct wp_target_tally *);

/* A new explainer has new numbers: forget the old ones; and set those of a
   row. */
void past_hits_renumber(struct past_hits *);
int past_hits_number(struct past_hits *, struct past_hits_row *,
    const struct broker_hit *);

/* Whether any sample is of this process. */
bool past_hits_has(const struct past_hits *, pid_t);

void past_hits_free(struct past_hits *);

#endif
