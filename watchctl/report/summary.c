/* summary: rows found by watch and backtrace, and the threads of each. */
#include "report/summary.h"

#include <errno.h>
#include <limits.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* A row, with what is needed to add to it. */
struct item {
	struct summary_row row;
	pid_t *threads;		/* row.threads, for writing */
	size_t cap;		/* of threads, in elements */
	void *seen;		/* tree of the tids in threads */
};

struct summary {
	void *tree;		/* items by watch and stack */
	struct item **items;	/* in order of first sight; or, of those that
				   are kept when there are too many, with the
				   most frequent first */
	size_t n, cap, max;
	struct summary_row *others;	/* nothers of them, one for a watch */
	size_t nothers, others_cap;
	struct summary_row *sorted;	/* as delivered last */
};

struct summary *
summary_new(size_t max)
{
	struct summary *s = calloc(1, sizeof(*s));

	if (s != NULL)
		s->max = max;
	return s;
}

static void
keep(void *node)
{
	(void)node;
}

static void
item_free(struct item *e)
{
	ex_stack_let_go(e->row.stack);
	tdestroy(e->seen, keep);
	free(e->threads);
	free(e->row.values);
	free(e);
}

void
summary_free(struct summary *s)
{
	if (s == NULL)
		return;
	tdestroy(s->tree, keep);
	for (size_t i = 0; i < s->n; i++)
		item_free(s->items[i]);
	free(s->items);
	free(s->others);
	free(s->sorted);
	free(s);
}

static int
compare_pointers(const void *a, const void *b)
{
	return ex_compare((uintptr_t)a, (uintptr_t)b);
}

/* The same backtrace has different addresses in several processes, so those are
   compared by its id. */
static int
compare_items(const void *a, const void *b)
{
	const struct summary_row *x = &((const struct item *)a)->row;
	const struct summary_row *y = &((const struct item *)b)->row;
	int order = ex_compare(ex_watch_number(x->watch),
	    ex_watch_number(y->watch));

	if (order == 0)
		order = ex_compare(x->late, y->late);
	if (order != 0)
		return order;
	if (x->watch->pid == 0 || x->stack == NULL || y->stack == NULL)
		return compare_pointers(x->stack, y->stack);
	return ex_compare(x->stack->id, y->stack->id);
}

/* The row of others with this one's watch; NULL: out of memory. */
static struct summary_row *
others_of(struct summary *s, const struct summary_row *row)
{
	struct summary_row *others;

	for (size_t i = 0; i < s->nothers; i++)
		if (ex_watch_number(s->others[i].watch) ==
		    ex_watch_number(row->watch))
			return &s->others[i];
	if (!ex_array_room(&s->others, s->nothers, 1, &s->others_cap,
	    sizeof(*s->others), SIZE_MAX))
		return NULL;
	others = &s->others[s->nothers++];
	*others = (struct summary_row){
		.watch = row->watch, .others = true,
		.first_seq = row->first_seq,
		.first = row->first, .last = row->last,
	};
	return others;
}

void
summary_join(struct summary_row *to, const struct summary_row *row)
{
	to->count += row->count;
	if (row->first_seq < to->first_seq)
		to->first_seq = row->first_seq;
	if (row->first < to->first)
		to->first = row->first;
	if (row->last > to->last)
		to->last = row->last;
}

/* Add a row to that of the others, and remove it.  False: out of memory. */
static bool
drop(struct summary *s, struct item *e)
{
	const struct summary_row *row = &e->row;
	struct summary_row *others = others_of(s, row);

	if (others == NULL)
		return false;
	summary_join(others, row);
	(void)tdelete(e, &s->tree, compare_items);
	item_free(e);
	return true;
}

/* The most frequent first, then the latest. */
static int
compare_use(const void *a, const void *b)
{
	const struct summary_row *x = &(*(struct item *const *)a)->row;
	const struct summary_row *y = &(*(struct item *const *)b)->row;

	return x->count != y->count ? ex_compare(y->count, x->count) :
	    ex_compare(y->last, x->last);
}

/* Keep half of the rows. */
static void
keep_most_frequent(struct summary *s)
{
	qsort(s->items, s->n, sizeof(*s->items), compare_use);
	while (s->n > s->max / 2 && drop(s, s->items[s->n - 1]))
		s->n--;
}

/* Append a new item for the hit; NULL: out of memory. */
static struct item *
item_new(struct summary *s, const struct ex_hit *hit)
{
	struct item *e;

	if (s->n >= s->max)
		keep_most_frequent(s);
	if (!EX_ARRAY_ROOM(s, items, SIZE_MAX))
		return NULL;
	e = calloc(1, sizeof(*e));
	if (e == NULL)
		return NULL;
	e->row = (struct summary_row){
		.watch = hit->watch, .stack = hit->stack,
		.access = hit->access, .kernel = hit->kernel,
		.syscall = hit->call.name, .work = hit->call.work,
		.stray = hit->stray, .unjudged = hit->unjudged,
		.late = hit->late,
		.first_seq = hit->seq,
		.first = hit->time, .last = hit->time,
		.partial = s->nothers > 0,
	};
	if (tsearch(e, &s->tree, compare_items) == NULL) {
		free(e);
		return NULL;
	}
	s->items[s->n++] = e;
	ex_stack_hold(e->row.stack);
	return e;
}

static struct item *
item_of(struct summary *s, const struct ex_hit *hit)
{
	struct item key = {
		.row = {
			.watch = hit->watch, .stack = hit->stack,
			.late = hit->late,
		},
	};
	struct item **found = tfind(&key, &s->tree, compare_items);

	return found != NULL ? *found : item_new(s, hit);
}

/* Note that the thread was seen in the row.  0 or -ENOMEM. */
static int
item_thread(struct item *e, pid_t tid)
{
	void *key = (void *)(intptr_t)tid;
	unsigned n = e->row.nthreads;

	if (tfind(key, &e->seen, compare_pointers) != NULL)
		return 0;
	if (!ex_array_room(&e->threads, n, 1, &e->cap, sizeof(*e->threads),
	    UINT_MAX))
		return -ENOMEM;
	e->row.threads = e->threads;
	if (tsearch(key, &e->seen, compare_pointers) == NULL)
		return -ENOMEM;
	e->threads[n] = tid;
	e->row.nthreads++;
	return 0;
}

int
summary_add(struct summary *s, const struct ex_hit *hit,
    struct summary_row **row)
{
	struct item *e = item_of(s, hit);

	if (e == NULL)
		return -ENOMEM;
	e->row.count++;
	if (hit->time < e->row.first)
		e->row.first = hit->time;
	if (hit->time > e->row.last)
		e->row.last = hit->time;
	if (row != NULL)
		*row = &e->row;
	return item_thread(e, hit->tid);
}

int
summary_recall(struct summary *s, const struct ex_hit *hit,
    const struct summary_row *past)
{
	struct item *e = item_of(s, hit);
	int err = e == NULL ? -ENOMEM : 0;

	if (err < 0)
		return err;
	if (e->row.count == 0) {
		e->row.first_seq = past->first_seq;
		e->row.first = past->first;
		e->row.last = past->last;
	}
	if (past->first_seq < e->row.first_seq)
		e->row.first_seq = past->first_seq;
	if (past->first < e->row.first)
		e->row.first = past->first;
	if (past->last > e->row.last)
		e->row.last = past->last;
	e->row.count += past->count;
	for (unsigned i = 0; i < past->nthreads && err == 0; i++)
		err = item_thread(e, past->threads[i]);
	return err;
}

struct summary_row *
summary_row_of(struct summary *s, const struct ex_hit *hit)
{
	struct item *e = item_of(s, hit);

	return e == NULL ? NULL : &e->row;
}

/* The most frequent first, then the earliest. */
static int
compare_rows(const void *a, const void *b)
{
	const struct summary_row *x = a, *y = b;

	return x->count != y->count ? ex_compare(y->count, x->count) :
	    ex_compare(x->first_seq, y->first_seq);
}

size_t
summary_rows(struct summary *s, const struct summary_row **rows)
{
	struct summary_row *sorted;

	*rows = NULL;
	if (s->n == 0)
		return 0;
	sorted = reallocarray(s->sorted, s->n + s->nothers, sizeof(*sorted));
	if (sorted == NULL)
		return 0;
	s->sorted = sorted;
	for (size_t i = 0; i < s->n; i++)
		sorted[i] = s->items[i]->row;
	qsort(sorted, s->n, sizeof(*sorted), compare_rows);
	if (s->nothers > 0)
		memcpy(sorted + s->n, s->others,
		    s->nothers * sizeof(*sorted));
	*rows = sorted;
	return s->n + s->nothers;
}
