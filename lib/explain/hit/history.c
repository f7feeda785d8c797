/* history: which writes happened between two readings.  See history.h. */
#include "hit/history.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "hit/history_private.h"

static struct gap *
gap_before(struct ex_history *h)
{
	return &h->gaps.at[0];
}

/* Make room for this many gaps.  Returns false if there is no memory. */
static bool
make_gaps(struct ex_history *h, size_t n)
{
	while (h->gaps.n < n) {
		if (!EX_ARRAY_ROOM(&h->gaps, at, STRETCH + 1))
			return false;
		h->gaps.at[h->gaps.n++] = (struct gap){0};
	}
	return true;
}

bool
ex_history_add_state(struct gap *gap, const struct happened *state,
    unsigned *index)
{
	for (*index = 0; *index < gap->n; ++*index)
		if (gap->state[*index].n == state->n &&
		    memcmp(gap->state[*index].of, state->of,
		    state->n * sizeof(state->of[0])) == 0)
			return true;
	if (!EX_ARRAY_ROOM(gap, state, STATES))
		return false;
	gap->state[gap->n++] = *state;
	return true;
}

struct ex_history *
ex_history_new(void)
{
	const struct happened nothing = {.n = 0};
	struct ex_history *h = calloc(1, sizeof(*h));
	unsigned index;

	if (h != NULL && make_gaps(h, 1) &&
	    ex_history_add_state(gap_before(h), &nothing, &index))
		return h;
	ex_history_free(h);
	return NULL;
}

void
ex_history_known(struct ex_history *h, struct ex_bytes bytes)
{
	if (h->done == 0 && h->placed == 0)
		h->read = bytes;
}

/* --- hits --- */

static uint64_t
later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static struct ex_history_hit *
new_hit(uint64_t number)
{
	struct ex_history_hit *hit = calloc(1, sizeof(*hit));

	if (hit != NULL) {
		hit->number = number;
		hit->queued = true;
	}
	return hit;
}

struct ex_history_hit *
ex_history_add(struct ex_history *h, uint64_t number)
{
	struct ex_history_hit *hit;

	if (number > NUMBER_MAX || !EX_ARRAY_ROOM(&h->waiting, hit, SIZE_MAX) ||
	    (hit = new_hit(number)) == NULL)
		return NULL;
	hit->referred = true;
	h->last = later(h->last, number);
	h->waiting.hit[h->waiting.n++] = hit;
	return hit;
}

static void
free_unused(struct ex_history_hit *hit)
{
	if (!hit->referred && !hit->queued)
		free(hit);
}

void
ex_history_release(struct ex_history_hit *hit)
{
	hit->referred = false;
	free_unused(hit);
}

static void
settle(struct ex_history_hit *hit)
{
	hit->settled = true;
	if (!hit->known || hit->tainted)
		hit->old.bits = hit->new.bits = 0;
	hit->queued = false;
	free_unused(hit);
}

/* Settle the hits up to this number, which come first in the queue. */
static void
settle_upto(struct ex_history *h, uint64_t number)
{
	size_t n = 0;

	while (n < h->waiting.n && h->waiting.hit[n]->number <= number)
		settle(h->waiting.hit[n++]);
	if (n == 0)
		return;
	h->waiting.n -= n;
	memmove(h->waiting.hit, h->waiting.hit + n,
	    h->waiting.n * sizeof(*h->waiting.hit));
}

static void
free_gap(struct gap *gap)
{
	free(gap->state);
	free(gap->moves.move);
	*gap = (struct gap){0};
}

void
ex_history_free(struct ex_history *h)
{
	if (h == NULL)
		return;
	for (size_t i = 0; i < h->waiting.n; i++) {
		h->waiting.hit[i]->queued = false;
		free_unused(h->waiting.hit[i]);
	}
	while (h->gaps.n > 0)
		free_gap(&h->gaps.at[--h->gaps.n]);
	free(h->gaps.at);
	free(h->cpus.at);
	free(h->threads.at);
	free(h->waiting.hit);
	free(h->cand);
	free(h->flight);
	free(h);
}

static int
by_number(const void *a, const void *b)
{
	return ex_compare((*(struct ex_history_hit *const *)a)->number,
	    (*(struct ex_history_hit *const *)b)->number);
}

/* Most hits arrive in order, so look before sorting. */
static void
sort_waiting(struct ex_history *h)
{
	size_t i = 1;

	while (i < h->waiting.n && h->waiting.hit[i - 1]->number <=
	    h->waiting.hit[i]->number)
		i++;
	if (i < h->waiting.n)
		qsort(h->waiting.hit, h->waiting.n, sizeof(*h->waiting.hit),
		    by_number);
}

/* Start again after this number; nothing more is claimed of hits up to it. */
static void
restart(struct ex_history *h, uint64_t number)
{
	for (size_t i = 0; i < h->waiting.n; i++)
		h->waiting.hit[i]->tainted |=
		    h->waiting.hit[i]->number <= number;
	settle_upto(h, number);
	gap_before(h)->n = 0;
	h->done = number;
	h->read.bits = 0;
	h->ncand = 0;
}

void
ex_history_doubt(struct ex_history *h)
{
	h->doubt = true;
	h->doubtful = h->last;
}

/* --- when writes were made --- */

static struct last *
place_of(const struct lasts *lasts, uint64_t key)
{
	return &lasts->at[key & (lasts->n - 1)];
}

/* Double the number of places.  Keys that had a place of their own keep one.
   Returns false if there is no memory. */
static bool
more_lasts(struct lasts *lasts)
{
	const size_t n = lasts->n == 0 ? LASTS : 2 * lasts->n;
	const struct lasts more = {calloc(n, sizeof(*more.at)), n};

	if (more.at == NULL)
		return false;
	for (size_t i = 0; i < lasts->n; i++)
		*place_of(&more, lasts->at[i].key) = lasts->at[i];
	free(lasts->at);
	*lasts = more;
	return true;
}

/* Whether the place of this key is taken by another key, or there are no places
   yet. */
static bool
is_taken(const struct lasts *lasts, uint64_t key)
{
	const struct last *place = lasts->n == 0 ? NULL :
	    place_of(lasts, key);

	return place == NULL || (place->number != 0 && place->key != key);
}

/* Store a key's number and return its previous one.  Once the table has `most'
   places, two keys may share one; the older key is then forgotten, which only
   widens the range in which a write may have happened. */
static uint64_t
exchange(struct lasts *lasts, size_t most, uint64_t key, uint64_t number)
{
	struct last *place;
	uint64_t before;

	while (is_taken(lasts, key) && lasts->n < most && more_lasts(lasts))
		;
	if (lasts->n == 0)
		return 0;
	place = place_of(lasts, key);
	before = place->key == key ? place->number : 0;
	*place = (struct last){key, number};
	return before;
}

/* The processor and the thread of a hit without a sample are not known; then
   only the marks bound it. */
static void
place(struct ex_history *h, struct ex_history_hit *hit)
{
	uint64_t before = 0;

	if (hit->tid > 0)
		before = later(before, exchange(&h->threads, THREADS,
		    (uint64_t)hit->tid, hit->number));
	if (hit->cpu != UINT32_MAX)
		before = later(before, exchange(&h->cpus, PROCESSORS,
		    hit->cpu, hit->number));
	hit->after = later(h->bound, before);
	hit->follows = before == hit->number - 1;
}

/* A write of which nothing but its number is known. */
static struct ex_history_hit *
new_missing(uint64_t number)
{
	struct ex_history_hit *hit = new_hit(number);

	if (hit == NULL)
		return NULL;
	hit->cpu = UINT32_MAX;
	hit->write.bits = UINT64_MAX;
	return hit;
}

/* Insert hits for the numbers from first to number in front of waiting hit i.
   Returns false if there is no memory. */
static bool
add_missing(struct ex_history *h, size_t i, uint64_t first, uint64_t number)
{
	const size_t n = (size_t)(number + 1 - first);

	if (!ex_array_room(&h->waiting.hit, h->waiting.n, n, &h->waiting.cap,
	    sizeof(*h->waiting.hit), SIZE_MAX))
		return false;
	for (size_t k = 0; k < n; k++) {
		struct ex_history_hit *hit = new_missing(number - k);

		if (hit == NULL)
			return false;
		memmove(h->waiting.hit + i + 1, h->waiting.hit + i,
		    (h->waiting.n++ - i) * sizeof(*h->waiting.hit));
		h->waiting.hit[i] = hit;
	}
	return true;
}

/* Make sure that there is exactly one hit for each number up to this one, or
   start again. */
static void
fill(struct ex_history *h, uint64_t upto)
{
	uint64_t number = h->done + 1;
	size_t i = 0;

	while (number <= upto) {
		const uint64_t next = i < h->waiting.n &&
		    h->waiting.hit[i]->number <= upto ?
		    h->waiting.hit[i]->number : upto + 1;

		if (next == number) {
			number++;
			i++;
		} else if (next < number || next - number > MISSING ||
		    !add_missing(h, i, number, next - 1)) {
			restart(h, next < number ? number - 1 : next - 1);
			number = h->done + 1;
			i = 0;
		}
	}
}

/* Determine after which hit each hit up to this one was written. */
static void
place_upto(struct ex_history *h, uint64_t upto)
{
	sort_waiting(h);
	settle_upto(h, h->done);
	fill(h, upto);
	for (size_t i = 0; i < h->waiting.n &&
	    h->waiting.hit[i]->number <= upto; i++)
		if (h->waiting.hit[i]->number > h->placed)
			place(h, h->waiting.hit[i]);
	h->placed = upto;
}

/* --- claims --- */

static void
agree(struct ex_bytes *claim, const struct ex_bytes *with, bool first)
{
	if (first)
		*claim = *with;
	claim->bits &= with->bits;
	for (unsigned shift = 0; shift < 64; shift += 8)
		if (((claim->value ^ with->value) >> shift & 0xff) != 0)
			claim->bits &= ~(UINT64_C(0xff) << shift);
}

static void
claim_move(struct ex_history *h, const struct move *m)
{
	for (unsigned i = 0; i < m->n; i++) {
		struct ex_history_hit *hit = ex_history_hit_of(h, m->order[i]);

		agree(&hit->old, &m->at[i], !hit->known);
		agree(&hit->new, &m->at[i + 1], !hit->known);
		hit->known = true;
	}
}

/* Mark the moves through a gap that lead to live states, and replace those
   states by the ones that such moves come from. */
static void
keep_alive(struct gap *gap, bool live[STATES])
{
	bool before[STATES] = {false};

	for (size_t i = 0; i < gap->moves.n; i++) {
		struct move *m = &gap->moves.move[i];

		m->alive = live[m->to];
		before[m->from] |= m->alive;
	}
	memcpy(live, before, sizeof(before));
}

/* For each write in gaps 1 to n, claim the bytes that all possible orders agree
   on. */
static void
claim(struct ex_history *h, unsigned n)
{
	bool live[STATES];

	memset(live, true, sizeof(live));
	for (unsigned i = n; i > 0; i--)
		keep_alive(&h->gaps.at[i], live);
	for (unsigned i = 1; i <= n; i++) {
		const struct moves *moves = &h->gaps.at[i].moves;

		for (size_t k = 0; k < moves->n; k++)
			if (moves->move[k].alive)
				claim_move(h, &moves->move[k]);
	}
}

/* --- from mark to mark --- */

/* Sort the placed hits into lists by the reading after which they began.
   Returns false if there is no memory. */
static bool
list_flights(struct ex_history *h)
{
	const size_t n = (size_t)(h->placed - h->done) + 1;

	if (!ex_array_room(&h->flight, 0, n, &h->flights, sizeof(*h->flight),
	    SIZE_MAX))
		return false;
	memset(h->flight, 0, n * sizeof(*h->flight));
	for (size_t i = h->waiting.n; i > 0; i--) {
		struct ex_history_hit *hit = h->waiting.hit[i - 1];
		struct ex_history_hit **first = h->flight + (hit->after <
		    h->done ? 0 : hit->after - h->done);

		if (hit->number > h->placed)
			continue;
		hit->next = *first;
		*first = hit;
	}
	h->ncand = 0;
	return true;
}

/* Collect the writes that may have happened in the gap of this number.  Returns
   false if there is no memory. */
static bool
take_candidates(struct ex_history *h, uint64_t number)
{
	size_t n = 0;

	for (size_t i = 0; i < h->ncand; i++)
		if (h->cand[i]->number >= number)
			h->cand[n++] = h->cand[i];
	h->ncand = n;
	for (struct ex_history_hit *hit = h->flight[number - 1 - h->done];
	    hit != NULL; hit = hit->next) {
		if (!ex_array_room(&h->cand, h->ncand, 1, &h->candidates,
		    sizeof(*h->cand), SIZE_MAX))
			return false;
		h->cand[h->ncand++] = hit;
	}
	return true;
}

/* Claim what is known so far, and continue from the last gap. */
static void
end_stretch(struct ex_history *h)
{
	struct gap last = h->gaps.at[h->ngaps];

	claim(h, h->ngaps);
	h->gaps.at[h->ngaps] = h->gaps.at[0];
	h->gaps.at[0] = last;
	h->ngaps = 0;
}

/* No order explains the gap of this number, or too many may.  From here on, any
   subset of the writes in flight may have happened, and nothing is claimed of
   them. */
static void
begin_anew(struct ex_history *h, uint64_t number, bool refuted)
{
	struct gap *gap = gap_before(h);
	const size_t n = h->ncand <= WIDE ? h->ncand : 0;
	unsigned index;

	h->ngaps--;
	end_stretch(h);
	gap->n = 0;
	for (size_t i = 0; i < h->ncand; i++) {
		h->cand[i]->tainted = true;
		h->cand[i]->refuted |= refuted;
	}
	for (unsigned set = 0; h->ncand <= WIDE && set < 1u << n; set++) {
		struct happened state = {.n = 0};

		for (size_t i = 0; i < n; i++)
			if ((set >> i & 1) != 0)
				ex_history_happen(&state, h->cand[i]->number);
		ex_history_forget(&state, number);
		if (!ex_history_add_state(gap, &state, &index))
			gap->n = 0;
	}
}

/* The caller has made room for the gap. */
static void
solve_gap(struct ex_history *h, uint64_t number)
{
	const struct gap *before = &h->gaps.at[h->ngaps];
	struct pass pass = {
		.h = h, .gap = &h->gaps.at[++h->ngaps], .number = number,
		.from = h->read, .to = ex_history_hit_of(h, number)->read,
	};

	/* without a state to begin with, there is no way to be refuted */
	if (!ex_history_go_through(&pass, before))
		begin_anew(h, number, !pass.failed && before->n > 0);
	else if (h->ngaps == STRETCH)
		end_stretch(h);
	h->read = pass.to;
}

/* Process the gaps up to this number.  Returns false if there is no memory. */
static bool
solve(struct ex_history *h, uint64_t upto)
{
	if (!list_flights(h))
		return false;
	for (uint64_t number = h->done + 1; number <= upto; number++) {
		if (!take_candidates(h, number) ||
		    !make_gaps(h, h->ngaps + 2))
			return false;
		solve_gap(h, number);
	}
	end_stretch(h);
	settle_upto(h, upto);
	h->done = later(h->done, upto);
	return true;
}

void
ex_history_mark(struct ex_history *h, uint64_t all, uint64_t upto)
{
	const bool wrong = all > upto || upto < h->placed || all < h->bound ||
	    upto > NUMBER_MAX;

	if (wrong)		/* only in a damaged recording */
		upto = all = later(h->placed, h->bound);
	place_upto(h, upto);
	h->bound = all;
	if (h->doubt || wrong || !solve(h, all)) {
		h->ngaps = 0;
		restart(h, upto);
	}
	h->doubt = h->doubt && upto < h->doubtful;
}
