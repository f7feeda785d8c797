/*
 * summary: counts hits in one row for each distinct backtrace of a watch, with
 * the times of the first and the last hit, and the threads; late hits have a
 * row of their own.  Watches with the same number, in several processes, count
 * as one.
 *
 * If there are very many rows, those with the most hits are kept, and the rest
 * is added up in one row for each watch.  A backtrace that comes again after
 * that gets a new row, which is marked, because earlier hits of it may be in
 * the other row.
 */
#ifndef SUMMARY_H
#define SUMMARY_H

#include "hit/hit.h"

struct value_range;

struct summary_row {
	const struct ex_watch *watch;	/* of the first hit */
	const struct ex_stack *stack;
	bool others;		/* the row of all backtraces without a row of
				   their own; members from here to count, and
				   threads, are not set */
	bool partial;		/* earlier hits may be in the row of others */
	const char *access;	/* of the first hit */
	bool kernel;
	const char *syscall, *work;	/* of the first hit, as of struct
					   ex_syscall */
	bool stray, unjudged;	/* the same for all hits of a backtrace */
	bool late;		/* its hits came late, so the backtrace is not
				   that of the accesses */
	uint64_t count;
	uint64_t first_seq;	/* seq of the first hit */
	uint64_t first, last;	/* ns on the records' clock */
	unsigned nthreads;	/* number of distinct threads */
	const pid_t *threads;	/* in order of first sight */
	struct value_range *values;	/* malloc'd by the form that records
					   them; NULL: not recorded */
};

struct summary;

/* The number of rows that is enough for a report. */
enum { SUMMARY_ROWS = 1 << 13 };

/* Create a summary that keeps at most max rows.  NULL: out of memory. */
struct summary *summary_new(size_t max);
void summary_free(struct summary *);

/* Count a hit; *row, unless row is NULL, is its row (valid until the next
   call).  0 or -ENOMEM. */
int summary_add(struct summary *, const struct ex_hit *,
    struct summary_row **row);

/* Add hits with this one's backtrace that another summary had counted.  0 or
   -ENOMEM. */
int summary_recall(struct summary *, const struct ex_hit *,
    const struct summary_row *);

/* The row of hits like this one, possibly a new row without hits; valid until
   the next call.  NULL: out of memory. */
struct summary_row *summary_row_of(struct summary *, const struct ex_hit *);

/* Add a row's count and times to another one's. */
void summary_join(struct summary_row *to, const struct summary_row *);

/* All rows, sorted by descending count, then by time, with those of others
   last; *rows is valid until the next call.  Also 0 when out of memory. */
size_t summary_rows(struct summary *, const struct summary_row **rows);

#endif
