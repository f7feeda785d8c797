/* merged_rows: the rows of single runs and of the merged report. */
#include "merge/merged_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static uint64_t
row_hash(unsigned run, unsigned watch, uint64_t stack, bool others)
{
	return ex_hash(ex_hash(ex_hash(ex_hash(0, run), watch), stack), others);
}

static struct merged_row *
find_row(const struct merged *m, uint64_t hash, unsigned run, unsigned watch,
    uint64_t stack, bool others)
{
	struct merged_row *row;
	size_t i = 0;

	while ((row = ex_table_next(&m->by_key, hash, &i)) != NULL)
		if (row->run == run && row->watch == watch &&
		    row->stack == stack && row->others == others)
			break;
	return row;
}

static struct merged_row *
add_row(struct merged *m, const struct merged_run *run, unsigned watch,
    uint64_t stack, bool others, uint64_t hash)
{
	struct merged_row *row;

	if (!ex_array_room(&m->row, m->nrows, 1, &m->rows_cap,
	    sizeof(struct merged_row *), SIZE_MAX) ||
	    !ex_table_reserve(&m->by_key, 1) ||
	    (row = calloc(1, sizeof(*row))) == NULL)
		return NULL;
	row->run = run->number;
	row->place = run->place;
	row->watch = watch;
	row->stack = stack;
	row->others = others;
	row->timed = run->timed;
	row->first = INT64_MAX;
	row->last = INT64_MIN;
	m->row[m->nrows++] = row;
	ex_table_put(&m->by_key, hash, row);
	return row;
}

/* The watch with this id; if no line has described it, it is described now. */
static const struct merged_run_watch *
described_watch(struct merged *m, struct merged_run *run, uint64_t id,
    const char **why)
{
	const struct merged_run_watch *watch = merged_watch_of(run, id);

	if (watch == NULL && merged_run_watch(m, run, id, "?", '\0', why))
		watch = merged_watch_of(run, id);
	return watch;
}

struct merged_row *
merged_row(struct merged *m, struct merged_run *run, uint64_t id,
    uint64_t stack, bool others, const char **why)
{
	const struct merged_run_watch *watch;
	struct merged_row *row = run->last;
	uint64_t hash;

	if (row != NULL && run->last_watch == id && row->stack == stack &&
	    row->others == others)
		return row;
	if ((watch = described_watch(m, run, id, why)) == NULL)
		return NULL;
	hash = row_hash(run->number, watch->watch, stack, others);
	row = find_row(m, hash, run->number, watch->watch, stack, others);
	*why = merged_no_memory;
	if (row == NULL && m->nrows >= MERGED_ROWS && !others)
		return merged_row(m, run, id, 0, true, why);
	/* plus one for each watch of a run, which are limited as well */
	if (row == NULL && m->nrows >= 2 * MERGED_ROWS)
		*why = "there are too many watches and backtraces";
	else if (row == NULL)
		row = add_row(m, run, watch->watch, stack, others, hash);
	run->last = row;
	run->last_watch = id;
	return row;
}

void
merged_row_time(const struct merged_run *run, struct merged_row *row,
    int64_t time)
{
	if (run->timed)
		time += run->wall;
	if (time < row->first)
		row->first = time;
	if (time > row->last)
		row->last = time;
}

/* The index of a thread in the list of a row, or the one to insert it at. */
static size_t
thread_at(const struct merged_row *row, int tid)
{
	size_t low = 0, high = row->nthreads;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (row->threads[middle] < tid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void
merged_row_thread(struct merged *m, struct merged_row *row, int tid)
{
	const size_t at = thread_at(row, tid);

	if (at < row->nthreads && row->threads[at] == tid)
		return;
	if (m->nthreads == MERGED_THREADS ||
	    (m->moves >= MERGED_MOVES && at < row->nthreads) ||
	    !ex_array_room(&row->threads, row->nthreads, 1, &row->cap,
	    sizeof(*row->threads), SIZE_MAX)) {
		row->more_threads = true;
		return;
	}
	memmove(row->threads + at + 1, row->threads + at,
	    (row->nthreads - at) * sizeof(*row->threads));
	m->moves += row->nthreads - at;
	row->threads[at] = tid;
	row->nthreads++;
	m->nthreads++;
}

/* --- values --- */

static bool
is_less(const struct merged_number *a, const struct merged_number *b)
{
	if (a->negative != b->negative)
		return a->negative;
	return a->bits < b->bits;	/* two's complement, if both are */
}

void
merged_values_add(struct merged_row *row, const struct merged_values *v)
{
	struct merged_values *all = &row->values;
	const bool alone = all->first_at == 0;

	if (alone || v->first_at < all->first_at) {
		all->first = v->first;
		all->first_at = v->first_at;
	}
	if (alone || v->last_at >= all->last_at) {
		all->last = v->last;
		all->last_at = v->last_at;
	}
	row->unranged = row->unranged || !v->min.known || !v->max.known ||
	    !v->min.is_number || !v->max.is_number;
	if (alone || is_less(&v->min.number, &all->min.number))
		all->min = v->min;
	if (alone || is_less(&all->max.number, &v->max.number))
		all->max = v->max;
}

/* --- the end --- */

/* By what is to be added up, then by run. */
static int
compare_rows(const void *a, const void *b)
{
	const struct merged_row *x = a, *y = b;
	int order = ex_compare(x->place, y->place);

	order = order != 0 ? order : ex_compare(x->watch, y->watch);
	order = order != 0 ? order : ex_compare(x->others, y->others);
	order = order != 0 ? order : ex_compare(x->stack, y->stack);
	return order != 0 ? order : ex_compare(x->run, y->run);
}

static int
compare_counts(const void *a, const void *b)
{
	const struct merged_row *x = a, *y = b;

	return x->watch != y->watch ? ex_compare(x->watch, y->watch) :
	    x->count != y->count ? ex_compare(y->count, x->count) :
	    compare_rows(a, b);
}

/* Ordered by the start of each run, not by the rows' own times. */
static void
add_values(struct merged_row *to, const struct merged_row *row)
{
	struct merged_values v = row->values;

	to->unranged = to->unranged || row->unranged;
	if (to->untimed || to->timed != row->timed) {
		to->values.first.known = to->values.last.known = false;
		v.first.known = v.last.known = false;
	}
	to->values.first_at = (uint64_t)to->first + 1;
	to->values.last_at = (uint64_t)to->last + 1;
	v.first_at = (uint64_t)row->first + 1;
	v.last_at = (uint64_t)row->last + 1;
	merged_values_add(to, &v);
}

static void
add_up(struct merged *m, struct merged_row *to, const struct merged_row *row)
{
	add_values(to, row);
	to->count += row->count;
	to->untimed = to->untimed || to->timed != row->timed;
	if (row->first < to->first)
		to->first = row->first;
	if (row->last > to->last)
		to->last = row->last;
	to->more_threads = to->more_threads || row->more_threads;
	for (size_t i = 0; i < row->nthreads; i++)
		merged_row_thread(m, to, row->threads[i]);
}

static bool
is_alike(const struct merged_row *a, const struct merged_row *b)
{
	return a->place == b->place && a->watch == b->watch &&
	    a->stack == b->stack && a->others == b->others;
}

/* Rows of runs with lines for hits are counted from those, others from
   summaries. */
static size_t
take_rows(struct merged *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->nrows; i++) {
		struct merged_row *row = &m->sorted[n];

		*row = *m->row[i];
		if (m->run[row->run]->hits == 0)
			row->count = row->summed;
		m->row[i]->threads = NULL;
		if (row->count > 0)
			n++;
		else
			free(row->threads);
	}
	return n;
}

size_t
merged_rows(struct merged *m, const struct merged_row **rows)
{
	size_t n, kept = 0;

	*rows = NULL;
	m->sorted = calloc(m->nrows + 1, sizeof(*m->sorted));
	if (m->sorted == NULL)
		return 0;
	n = take_rows(m);
	qsort(m->sorted, n, sizeof(*m->sorted), compare_rows);
	for (size_t i = 0; i < n; i++) {
		if (kept > 0 && is_alike(&m->sorted[kept - 1], &m->sorted[i])) {
			add_up(m, &m->sorted[kept - 1], &m->sorted[i]);
			free(m->sorted[i].threads);
			continue;
		}
		m->sorted[kept++] = m->sorted[i];
	}
	qsort(m->sorted, kept, sizeof(*m->sorted), compare_counts);
	m->nsorted = kept;
	*rows = m->sorted;
	return kept;
}
