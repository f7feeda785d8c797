/* writers: rows of a summary, joined by writer. */
#include "text/writers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

const struct ex_frame *
writer_frame(const struct summary_row *row)
{
	const unsigned i = row->stack == NULL ? 0 : ex_stack_user(row->stack);

	return row->stack == NULL || i == row->stack->n ? NULL :
	    &row->stack->frame[i];
}

static int
compare_texts(const char *x, const char *y)
{
	return x == NULL || y == NULL ? ex_compare(x != NULL, y != NULL) :
	    strcmp(x, y);
}

/* An instruction is identified by its place in its module, or else by its
   address. */
static int
compare_frames(const struct ex_frame *x, const struct ex_frame *y)
{
	int order;

	if (x == NULL || y == NULL)
		return ex_compare(x != NULL, y != NULL);
	order = ex_compare((uintptr_t)x->module, (uintptr_t)y->module);
	if (order != 0)
		return order;
	return x->module != NULL ? ex_compare(x->vaddr, y->vaddr) :
	    ex_compare(x->pc, y->pc);
}

/* The first order that is not 0. */
static int
first_of(const int *orders, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (orders[i] != 0)
			return orders[i];
	return 0;
}

/* Rows of the same writer are equal in all of these. */
int
writers_compare(const struct summary_row *x, const struct summary_row *y)
{
	const int orders[] = {
		ex_compare(ex_watch_number(x->watch),
		    ex_watch_number(y->watch)),
		ex_compare(x->others, y->others),
		ex_compare(x->kernel, y->kernel),
		x->others ? 0 : compare_texts(x->syscall, y->syscall),
		x->others ? 0 : compare_frames(writer_frame(x),
		    writer_frame(y)),
	};

	return first_of(orders, sizeof(orders) / sizeof(orders[0]));
}

/* If it also did the same in the same way, the rows are equal in these, too. */
static int
compare_writers(const struct summary_row *x, const struct summary_row *y)
{
	const int orders[] = {
		writers_compare(x, y),
		ex_compare(x->late, y->late),
		ex_compare(x->stray, y->stray),
		ex_compare(x->unjudged, y->unjudged),
		x->others ? 0 : compare_texts(x->access, y->access),
	};

	return first_of(orders, sizeof(orders) / sizeof(orders[0]));
}

/* As above, and then in the order in which they were. */
static int
compare_order(const void *a, const void *b)
{
	const struct summary_row *x = *(const struct summary_row *const *)a;
	const struct summary_row *y = *(const struct summary_row *const *)b;
	const int order = compare_writers(x, y);

	return order != 0 ? order : ex_compare((uintptr_t)x, (uintptr_t)y);
}

/* As the rows of a summary are sorted. */
static int
compare_use(const void *a, const void *b)
{
	const struct summary_row *x = &((const struct writer *)a)->row;
	const struct summary_row *y = &((const struct writer *)b)->row;

	return x->others != y->others ? ex_compare(x->others, y->others) :
	    x->count != y->count ? ex_compare(y->count, x->count) :
	    ex_compare(x->first_seq, y->first_seq);
}

static int
compare_threads(const void *a, const void *b)
{
	return ex_compare(*(const pid_t *)a, *(const pid_t *)b);
}

/* Collect the threads of all rows of a writer, each once.  0 or -ENOMEM. */
static int
join_threads(struct writer *w)
{
	size_t all = 0, n = 0;

	for (size_t i = 0; i < w->n; i++)
		all += w->of[i]->nthreads;
	if (w->n < 2 || all == 0)
		return 0;
	if ((w->threads = calloc(all, sizeof(*w->threads))) == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < w->n; i++) {
		memcpy(w->threads + n, w->of[i]->threads,
		    w->of[i]->nthreads * sizeof(*w->threads));
		n += w->of[i]->nthreads;
	}
	qsort(w->threads, n, sizeof(*w->threads), compare_threads);
	for (size_t i = n = 0; i < all; i++)
		if (n == 0 || w->threads[n - 1] != w->threads[i])
			w->threads[n++] = w->threads[i];
	w->row.threads = w->threads;
	w->row.nthreads = (unsigned)n;
	return 0;
}

int
writers_join(struct writers *writers, const struct summary_row *rows, size_t n,
    bool each)
{
	int err = 0;

	*writers = (struct writers){
		.writer = calloc(n + 1, sizeof(*writers->writer)),
		.order = calloc(n + 1, sizeof(const void *)),
	};
	if (writers->writer == NULL || writers->order == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		writers->order[i] = &rows[i];
	if (!each)
		qsort(writers->order, n, sizeof(const void *), compare_order);
	for (size_t i = 0; i < n; i++) {
		const struct summary_row **at = &writers->order[i];

		if (i > 0 && !each && compare_writers(at[-1], at[0]) == 0) {
			struct writer *same = &writers->writer[writers->n - 1];

			summary_join(&same->row, *at);
			same->row.partial |= (*at)->partial;
			same->row.values = NULL;
			same->n++;
		} else
			writers->writer[writers->n++] = (struct writer){
				.row = **at, .of = at, .n = 1,
				.again = i > 0 && !each &&
				    writers_compare(at[-1], at[0]) == 0,
			};
	}
	for (size_t i = 0; i < writers->n && err == 0; i++)
		err = join_threads(&writers->writer[i]);
	qsort(writers->writer, writers->n, sizeof(*writers->writer),
	    compare_use);
	return err;
}

void
writers_free(struct writers *writers)
{
	for (size_t i = 0; i < writers->n; i++)
		free(writers->writer[i].threads);
	free(writers->writer);
	free(writers->order);
	*writers = (struct writers){.n = 0};
}
