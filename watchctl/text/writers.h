/*
 * writers: joins the rows of a summary into one row for each writer: an
 * instruction of a function, whatever its callers.
 */
#ifndef WRITERS_H
#define WRITERS_H

#include "report/summary.h"

struct writer {
	struct summary_row row;	/* the row of its first backtrace, with the sums
				   of all; without values */
	const struct summary_row **of;	/* n of them, in the order of the
					   summary */
	size_t n;
	bool again;		/* another entry has the same writer, whose hits
				   differ, for example in being stray */
	pid_t *threads;		/* malloc'd; NULL: row.threads belongs to
				   `of' */
};

struct writers {
	struct writer *writer;	/* malloc'd: n of them, sorted as rows are */
	size_t n;
	const struct summary_row **order;	/* malloc'd: contains all
						   `of' */
};

/* Join rows, which must outlive the writers; each: every row is a separate
   writer.  0 or -ENOMEM.  Free them in any case. */
int writers_join(struct writers *, const struct summary_row *rows, size_t n,
    bool each);
void writers_free(struct writers *);

/* A comparison for sorting: 0 for rows of the same writer. */
int writers_compare(const struct summary_row *, const struct summary_row *);

/* The innermost frame of the program itself in a row; NULL: none. */
const struct ex_frame *writer_frame(const struct summary_row *);

#endif
