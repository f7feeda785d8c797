/* merged: runs, their hosts and watches, and backtraces. */
#include "merge/merged_private.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

const char merged_no_memory[] = "out of memory";

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
	*why = m->nruns == MERGED_RUNS ? "there are too many runs" :
	    merged_no_memory;
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
	    "and ranks" : merged_no_memory;
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

/* The index of a watch among all.  Returns false if there is no room. */
static bool
find_watch(struct merged *m, const char *spec, char access, unsigned *at,
    const char **why)
{
	for (*at = 0; *at < m->nwatches; ++*at)
		if (m->watch[*at].access == access &&
		    strcmp(m->watch[*at].spec, spec) == 0)
			return true;
	*why = m->nwatches == MERGED_WATCHES ? "there are too many watches" :
	    merged_no_memory;
	if (m->nwatches == MERGED_WATCHES || !ex_array_room(&m->watch,
	    m->nwatches, 1, &m->watches_cap, sizeof(*m->watch), SIZE_MAX))
		return false;
	m->watch[*at] = (struct merged_watch){strdup(spec), access};
	if (m->watch[*at].spec == NULL)
		return false;
	m->nwatches++;
	return true;
}

const struct merged_run_watch *
merged_watch_of(const struct merged_run *run, uint64_t id)
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

	if (merged_watch_of(run, id) != NULL)
		return true;
	if (!find_watch(m, spec, access, &watch, why))
		return false;
	*why = run->nwatches == MERGED_RUN_WATCHES ||
	    m->run_watches == MERGED_ALL_WATCHES ? "there are too many "
	    "watches" : merged_no_memory;
	if (run->nwatches == MERGED_RUN_WATCHES ||
	    m->run_watches == MERGED_ALL_WATCHES ||
	    !ex_array_room(&run->watch, run->nwatches, 1, &run->watches_cap,
	    sizeof(*run->watch), SIZE_MAX))
		return false;
	run->watch[run->nwatches++] = (struct merged_run_watch){id, watch};
	m->run_watches++;
	return true;
}

void
merged_run_end(struct merged_run *run, const struct merged_end *end)
{
	run->end = *end;
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
