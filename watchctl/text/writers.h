/*
 * writers: the rows of a summary joined into one row for each writer: an
 * instruction of a function, whatever its callers.
 */
#ifndef WRITERS_H
#define WRITERS_H

#include "report/summary.h"

struct writer {
	struct summary_row row;	/* of the first of its backtraces, with the sums
				   of all; without values */
	const struct summary_row **of;	/* n of them, in the order of the
					   summary */
	size_t n;
	bool again;		/* another entry is of the same writer, which
				   did it otherwise: one was stray, perhaps */
	pid_t *threads;		/* malloc'd; NULL: row.threads are of `of' */
};

struct writers {
	struct writer *writer;	/* malloc'd: n of them, sorted as rows are */
	size_t n;
	const struct summary_row **order;	/* malloc'd: what `of' is in */
};

/* Join rows, which have to outlive them; each: each row is a writer's.  0 or
   -ENOMEM.  Free them in any case. */
int writers_join(struct writers *, const struct summary_row *rows, size_t n,
    bool each);
void writers_free(struct writers *);

/* As a comparison for sorting: 0 where rows are of one writer. */
int writers_compare(const struct summary_row *, const struct summary_row *);

/* The innermost frame of the program itself in a row; NULL: none. */
const struct ex_frame *writer_frame(const struct summary_row *);

#endif
