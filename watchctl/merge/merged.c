/* merged: runs, and their rows. */
#include "merge/merged.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/table.h"

/* Hits from one number to another. */
struct span {
	uint64_t from, to;	/* both are among them */
};

struct run_watch {
	uint64_t id;
	unsigned watch;
};

struct merged_run {
	uint64_t hash[2];
	unsigned number, place;
	const char *refused;	/* why it cannot be taken; NULL: it is */
	bool timed;
	int64_t wall;
	struct run_watch *watch;
	size_t nwatches, watches_cap;
	struct span *span;	/* ascending */
	size_t nspans, spans_cap;
	struct ex_table lines;	/* hashes of those that have no number */
	struct merged_row *last;	/* which was found before */
	uint64_t last_watch;
	uint64_t hits;
	struct merged_end end;
};

struct merged {
	struct ex_table by_hash;	/* runs */
	struct merged_run **run;
	size_t nruns, runs_cap;
	struct merged_place *place;
	size_t nplaces, places_cap;
	struct merged_watch *watch;
	size_t nwatches, watches_cap;
	struct merged_row **row;
	size_t nrows, rows_cap;
	struct ex_table by_key;	/* rows */
	struct ex_table stacks;
	size_t stack_bytes, nspans, nthreads, run_watches;
	uint64_t moves;		/* that were made */
	struct merged_row *sorted;	/* what merged_rows() gave, */
	size_t nsorted;		/* and their threads */
};

static const char no_memory[] = "out of memory";

struct merged *
merged_new(void)
{
	return calloc(1, sizeof(struct merged));
}

static void
free_stack(void *item)
{
	struct merged_stack *stack = item;

	free(stack->json);
	free(stack->text);
	free(stack);
}

static void
free_run(struct merged_run *run)
{
	free(run->watch);
	free(run->span);
	ex_table_free(&run->lines, NULL);
	free(run);
}

void
merged_free(struct merged *m)
{
	if (m == NULL)
		return;
	for (size_t i = 0; i < m->nrows; i++) {
		free(m->row[i]->threads);
		free(m->row[i]);
	}
	for (size_t i = 0; i < m->nruns; i++)
		free_run(m->run[i]);
	for (size_t i = 0; i < m->nplaces; i++)
		free(m->place[i].host);
	for (size_t i = 0; i < m->nwatches; i++)
		free(m->watch[i].spec);
	ex_table_free(&m->by_hash, NULL);
	ex_table_free(&m->by_key, NULL);
	ex_table_free(&m->stacks, free_stack);
	free(m->run);
	free(m->place);
	free(m->watch);
	for (size_t i = 0; i < m->nsorted; i++)
		free(m->sorted[i].threads);
	free(m->row);
	free(m->sorted);
	free(m);
}

/* --- runs --- */

struct merged_run *
merged_run(struct merged *m, const uint64_t hash[2], bool *is_new,
    const char **why)
{
	struct merged_run *run;
	size_t i = 0;

	*is_new = false;
	while ((run = ex_table_next(&m->by_hash, hash[0], &i)) != NULL)
		if (run->hash[1] == hash[1])
			return *why = run->refused, run->refused == NULL ? run :
			    NULL;
	*why = m->nruns == MERGED_RUNS ? "there are too many runs" : no_memory;
	if (m->nruns == MERGED_RUNS || !ex_array_room(&m->run, m->nruns, 1,
	    &m->runs_cap, sizeof(*m->run), SIZE_MAX) ||
	    !ex_table_reserve(&m->by_hash, 1) ||
	    (run = calloc(1, sizeof(*run))) == NULL)
		return NULL;
	memcpy(run->hash, hash, sizeof(run->hash));
	run->number = (unsigned)m->nruns;
	m->run[m->nruns++] = run;
	ex_table_put(&m->by_hash, hash[0], run);
	*is_new = true;
	return run;
}

bool
merged_run_place(struct merged *m, struct merged_run *run, const char *host,
    const unsigned *rank, int64_t wall, const char **why)
{
	const struct merged_place wanted = {
		.ranked = rank != NULL, .rank = rank == NULL ? 0 : *rank,
	};
	struct merged_place *place;

	run->timed = wall > 0;
	run->wall = wall;
	run->refused = m->nplaces == MERGED_PLACES ? "there are too many hosts "
	    "and ranks" : no_memory;
	for (run->place = 0; run->place < m->nplaces; run->place++) {
		place = &m->place[run->place];
		if (place->ranked == wanted.ranked &&
		    place->rank == wanted.rank &&
		    strcmp(place->host, host) == 0) {
			run->refused = NULL;
			return true;
		}
	}
	*why = run->refused;
	if (m->nplaces == MERGED_PLACES || !ex_array_room(&m->place,
	    m->nplaces, 1, &m->places_cap, sizeof(*m->place), SIZE_MAX))
		return false;
	place = &m->place[m->nplaces];
	*place = wanted;
	if ((place->host = strdup(host)) == NULL)
		return false;
	run->place = (unsigned)m->nplaces++;
	run->refused = NULL;
	return true;
}

/* Which watch of all that is.  False: there is no place for it. */
static bool
find_watch(struct merged *m, const char *spec, char access, unsigned *at,
    const char **why)
{
	for (*at = 0; *at < m->nwatches; ++*at)
		if (m->watch[*at].access == access &&
		    strcmp(m->watch[*at].spec, spec) == 0)
			return true;
	*why = m->nwatches == MERGED_WATCHES ? "there are too many watches" :
	    no_memory;
	if (m->nwatches == MERGED_WATCHES || !ex_array_room(&m->watch,
	    m->nwatches, 1, &m->watches_cap, sizeof(*m->watch), SIZE_MAX))
		return false;
	m->watch[*at] = (struct merged_watch){strdup(spec), access};
	if (m->watch[*at].spec == NULL)
		return false;
	m->nwatches++;
	return true;
}

static const struct run_watch *
watch_of(const struct merged_run *run, uint64_t id)
{
	for (size_t i = 0; i < run->nwatches; i++)
		if (run->watch[i].id == id)
			return &run->watch[i];
	return NULL;
}

bool
merged_run_watch(struct merged *m, struct merged_run *run, uint64_t id,
    const char *spec, char access, const char **why)
{
	unsigned watch;

	if (watch_of(run, id) != NULL)
		return true;
	if (!find_watch(m, spec, access, &watch, why))
		return false;
	*why = run->nwatches == MERGED_RUN_WATCHES ||
	    m->run_watches == MERGED_ALL_WATCHES ? "there are too many "
	    "watches" : no_memory;
	if (run->nwatches == MERGED_RUN_WATCHES ||
	    m->run_watches == MERGED_ALL_WATCHES ||
	    !ex_array_room(&run->watch, run->nwatches, 1, &run->watches_cap,
	    sizeof(*run->watch), SIZE_MAX))
		return false;
	run->watch[run->nwatches++] = (struct run_watch){id, watch};
	m->run_watches++;
	return true;
}

void
merged_run_end(struct merged_run *run, const struct merged_end *end)
{
	run->end = *end;
}

/* --- what arrived before --- */

/* The first span that ends at seq or later, or right in front of it. */
static size_t
span_of(const struct merged_run *run, uint64_t seq)
{
	size_t low = 0, high = run->nspans;

	/* nearly always it is the next one */
	if (high > 0 && run->span[high - 1].from <= seq)
		low = high - 1;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (run->span[middle].to < seq - 1)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool
add_span(struct merged *m, struct merged_run *run, size_t at, uint64_t seq,
    const char **why)
{
	*why = m->nspans == MERGED_SPANS ? "too many hits of its run are "
	    "missing to tell whether it arrived before" : no_memory;
	if (m->nspans == MERGED_SPANS || !ex_array_room(&run->span,
	    run->nspans, 1, &run->spans_cap, sizeof(*run->span), SIZE_MAX))
		return false;
	memmove(run->span + at + 1, run->span + at,
	    (run->nspans - at) * sizeof(*run->span));
	m->moves += run->nspans - at;
	run->span[at] = (struct span){seq, seq};
	run->nspans++;
	m->nspans++;
	return true;
}

/* Join a span and the one behind it, if nothing is between them. */
static void
join_spans(struct merged *m, struct merged_run *run, size_t at)
{
	struct span *span = run->span + at;

	if (at + 1 >= run->nspans || span[1].from - 1 != span->to)
		return;
	span->to = span[1].to;
	memmove(span + 1, span + 2, (run->nspans - at - 2) * sizeof(*span));
	m->moves += run->nspans - at - 2;
	run->nspans--;
	m->nspans--;
}

bool
merged_new_hit(struct merged *m, struct merged_run *run, uint64_t seq,
    const char **why)
{
	const size_t at = seq == 0 ? 0 : span_of(run, seq);
	struct span *span = at < run->nspans ? &run->span[at] : NULL;

	*why = NULL;
	if (seq == 0 || seq == UINT64_MAX) {
		*why = "its number is none that a hit has";
		return false;
	}
	if (m->moves >= MERGED_MOVES && at + 2 < run->nspans) {
		*why = "too many hits are in another order than they had";
		return false;
	}
	if (span == NULL || span->from - 1 > seq) {
		if (!add_span(m, run, at, seq, why))
			return false;
	} else if (span->from - 1 == seq)
		span->from = seq;
	else if (span->to + 1 == seq)
		span->to = seq;
	else
		return false;
	join_spans(m, run, at);
	run->hits++;
	return true;
}

bool
merged_new_line(struct merged *m, struct merged_run *run, uint64_t hash,
    const char **why)
{
	*why = NULL;
	if (ex_table_get(&run->lines, hash) != NULL)
		return false;
	*why = m->nspans == MERGED_SPANS ? "there are too many lines to tell "
	    "whether it arrived before" : no_memory;
	if (m->nspans == MERGED_SPANS || !ex_table_reserve(&run->lines, 1))
		return false;
	ex_table_put(&run->lines, hash, run);
	m->nspans++;
	*why = NULL;
	return true;
}

/* --- rows --- */

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

/* The watch of that number; one that no line describes is described now. */
static const struct run_watch *
described_watch(struct merged *m, struct merged_run *run, uint64_t id,
    const char **why)
{
	const struct run_watch *watch = watch_of(run, id);

	if (watch == NULL && merged_run_watch(m, run, id, "?", '\0', why))
		watch = watch_of(run, id);
	return watch;
}

struct merged_row *
merged_row(struct merged *m, struct merged_run *run, uint64_t id,
    uint64_t stack, bool others, const char **why)
{
	const struct run_watch *watch;
	struct merged_row *row = run->last;
	uint64_t hash;

	if (row != NULL && run->last_watch == id && row->stack == stack &&
	    row->others == others)
		return row;
	if ((watch = described_watch(m, run, id, why)) == NULL)
		return NULL;
	hash = row_hash(run->number, watch->watch, stack, others);
	row = find_row(m, hash, run->number, watch->watch, stack, others);
	*why = no_memory;
	if (row == NULL && m->nrows >= MERGED_ROWS && !others)
		return merged_row(m, run, id, 0, true, why);
	/* one for each watch of a run, which are bounded, too */
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

/* Where a thread is among those of a row, or would be. */
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

/* --- backtraces --- */

bool
merged_has_stack(const struct merged *m, uint64_t id)
{
	return ex_table_get(&m->stacks, id) != NULL;
}

void
merged_add_stack(struct merged *m, uint64_t id, char *json, char *text)
{
	struct merged_stack *stack = NULL;
	const size_t size = json == NULL || text == NULL ? SIZE_MAX :
	    strlen(json) + strlen(text);

	if (size <= MERGED_STACK_BYTES - m->stack_bytes &&
	    ex_table_reserve(&m->stacks, 1))
		stack = calloc(1, sizeof(*stack));
	if (stack == NULL) {
		free(json);
		free(text);
		return;
	}
	m->stack_bytes += size;
	*stack = (struct merged_stack){id, json, text};
	ex_table_put(&m->stacks, id, stack);
}

/* --- the end --- */

/* By what they are to be added up, then by run. */
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

/* When each run's began counts, not when its own time did. */
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

/* Rows of those runs that have hits, by these; of others by their summaries. */
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

const struct merged_place *
merged_place(const struct merged *m, unsigned place)
{
	return &m->place[place];
}

size_t
merged_watches(const struct merged *m, const struct merged_watch **watches)
{
	*watches = m->watch;
	return m->nwatches;
}

const struct merged_stack *
merged_stack(const struct merged *m, uint64_t id)
{
	return ex_table_get(&m->stacks, id);
}

void
merged_account(const struct merged *m, struct merged_account *all)
{
	*all = (struct merged_account){.runs = m->nruns};
	for (size_t i = 0; i < m->nrows; i++)
		all->hits += m->run[m->row[i]->run]->hits > 0 ?
		    m->row[i]->count : m->row[i]->summed;
	for (size_t i = 0; i < m->nruns; i++) {
		const struct merged_run *run = m->run[i];

		all->unended += !run->end.is;
		all->lost += run->end.lost;
		if (run->hits > 0 && run->end.reported > run->hits)
			all->missing += run->end.reported - run->hits;
		if (run->timed && (all->wall == 0 || run->wall < all->wall))
			all->wall = run->wall;
	}
}
