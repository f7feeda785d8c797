/*
 * summary: one row for each distinct backtrace of a watch, with the number of
 * hits, the times of the first and the last, and the threads; and one more row
 * for its late hits.  Watches with the same number, in several processes, count
 * as one.
 *
 * Of very many rows those with the most hits are kept.  What the rest counted
 * is in one row for each watch; and a backtrace that comes again after that has
 * a new row, which is marked, as hits of it may be in the other.
 */
#ifndef SUMMARY_H
#define SUMMARY_H

#include "hit/hit.h"

struct value_range;

struct summary_row {
	const struct ex_watch *watch;	/* of the first hit */
	const struct ex_stack *stack;
	bool others;		/* not of one backtrace: of all whose rows are
				   not kept; what follows, up to count, is of
				   none, and so are threads */
	bool partial;		/* it may have been among those */
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
	struct value_range *values;	/* malloc'd by the form that records
					   them; NULL: not recorded */
};

struct summary;

/* So many rows are enough for a report. */
enum { SUMMARY_ROWS = 1 << 13 };

/* One that keeps so many rows.  NULL: out of memory. */
struct summary *summary_new(size_t max);
void summary_free(struct summary *);

/* Count a hit; *row, unless row is NULL, is its row (valid until the next
   call).  0 or -ENOMEM. */
int summary_add(struct summary *, const struct ex_hit *,
    struct summary_row **row);

/* Add what another had counted of hits with this one's backtrace.  0 or
   -ENOMEM. */
int summary_recall(struct summary *, const struct ex_hit *,
    const struct summary_row *);

/* The row of such hits, maybe a new one, of none; valid until the next call.
   NULL: out of memory. */
struct summary_row *summary_row_of(struct summary *, const struct ex_hit *);

/* All rows, the most frequent first, then the earliest, and those of others
   last; *rows is valid until the next call.  None, too, when out of memory. */
size_t summary_rows(struct summary *, const struct summary_row **rows);

#endif
