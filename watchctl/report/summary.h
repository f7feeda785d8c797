/*
 * summary: one row for each distinct backtrace of a watch: how often, from when
 * to when, by which threads; and one more for its late hits.  Watches of one
 * number, in several processes, are one there.
 */
#ifndef SUMMARY_H
#define SUMMARY_H

#include "hit/hit.h"

struct value_range;

struct summary_row {
	const struct ex_watch *watch;	/* of the first hit */
	const struct ex_stack *stack;
	const char *access;	/* of the first hit */
	bool kernel;
	const char *syscall, *work;	/* of the first hit, as of struct
					   ex_syscall */
	bool stray, unjudged;	/* as all hits of a backtrace are, or none */
	bool late;		/* came late: the backtrace is not theirs */
	uint64_t count;
	uint64_t first_seq;	/* seq of the first hit */
	uint64_t first, last;	/* ns on the records' clock */
	unsigned nthreads;	/* how many distinct */
	const pid_t *threads;	/* in order of first sight */
	struct value_range *values;	/* malloc'd by who takes them down;
					   NULL: nobody does */
};

struct summary;

struct summary *summary_new(void);	/* NULL: out of memory */
void summary_free(struct summary *);

/* Count a hit; *row, unless row is NULL, is its row (valid until the next
   call).  0 or -ENOMEM. */
int summary_add(struct summary *, const struct ex_hit *,
    struct summary_row **row);

/* Add what another summary had counted of hits with this one's backtrace.  0 or
   -ENOMEM. */
int summary_recall(struct summary *, const struct ex_hit *,
    const struct summary_row *);

/* All rows, the most frequent first, then the earliest; *rows is valid until
   the next call.  None, too, when out of memory. */
size_t summary_rows(struct summary *, const struct summary_row **rows);

#endif
