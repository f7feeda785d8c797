/* history_gap: the orders in which the writes of one gap can have happened. */
#include "hit/history_private.h"

#include "base/array.h"

/* --- one way through a gap --- */

/* Add known bytes.  Returns false if they contradict those known before. */
static bool
learn(struct ex_bytes *bytes, uint64_t value, uint64_t bits)
{
	const uint64_t new = bits & ~bytes->bits;

	if (((bytes->value ^ value) & bytes->bits & bits) != 0)
		return false;
	bytes->value = (bytes->value & ~new) | (value & new);
	bytes->bits |= bits;
	return true;
}

/* Derive the new bytes from the old ones if all of those that the instruction
   uses are known.  Returns false if they contradict what is known. */
static bool
compute(const struct ex_write *w, const struct ex_bytes *old,
    struct ex_bytes *new)
{
	uint64_t value;

	if (w->effect == NULL || (w->bits & ~old->bits) != 0)
		return true;
	switch (ex_effect_derive(w->effect, (old->value & w->bits) >> w->shift,
	    &value)) {
	case EX_DERIVED:
		return learn(new, value << w->shift, w->bits);
	case EX_CONTRADICTED:
		return false;
	case EX_NOT_DERIVED:
		break;
	}
	return true;
}

static bool
invert(const struct ex_write *w, const struct ex_bytes *new,
    struct ex_bytes *old)
{
	uint64_t value;

	if (w->effect == NULL || (w->bits & ~new->bits) != 0 ||
	    !ex_effect_invert(w->effect, (new->value & w->bits) >> w->shift,
	    &value))
		return true;
	return learn(old, value << w->shift, w->bits);
}

static bool
forward(const struct ex_write *w, const struct ex_bytes *old,
    struct ex_bytes *new)
{
	return learn(new, old->value, old->bits & ~w->bits) &&
	    compute(w, old, new);
}

static bool
backward(const struct ex_write *w, const struct ex_bytes *new,
    struct ex_bytes *old)
{
	return learn(old, new->value, new->bits & ~w->bits) &&
	    invert(w, new, old);
}

struct ex_history_hit *
ex_history_hit_of(const struct ex_history *h, uint64_t number)
{
	return h->waiting.hit[number - h->waiting.hit[0]->number];
}

/* What a hit wrote.  If others may come in between its load and its store, what
   it loaded and computed holds only if both lie in this gap, and nothing else
   may. */
static struct ex_write
write_of(const struct ex_history *h, uint64_t number)
{
	const struct ex_history_hit *hit = ex_history_hit_of(h, number);
	struct ex_write w = hit->write;

	if (w.split && !(hit->follows && h->ncand == 1)) {
		w.loaded_bits = 0;
		w.effect = NULL;
	}
	return w;
}

/* Whether these writes, in this order, lead from one reading to the next.  If
   so, m->at has all that this shows of the bytes in between. */
static bool
fits(const struct ex_history *h, struct move *m, const struct ex_bytes *from,
    const struct ex_bytes *to)
{
	struct ex_write w[WIDE];
	bool fit;

	for (unsigned i = 0; i <= m->n; i++)
		m->at[i] = (struct ex_bytes){0};
	fit = learn(&m->at[0], from->value, from->bits) &&
	    learn(&m->at[m->n], to->value, to->bits);
	for (unsigned i = 0; i < m->n; i++) {
		w[i] = write_of(h, m->order[i]);
		fit = fit &&
		    learn(&m->at[i], w[i].loaded, w[i].loaded_bits) &&
		    learn(&m->at[i + 1], w[i].stored, w[i].stored_bits);
	}
	for (unsigned i = 0; i < m->n; i++)
		fit = fit && forward(&w[i], &m->at[i], &m->at[i + 1]);
	for (unsigned i = m->n; i > 0; i--)
		fit = fit && backward(&w[i - 1], &m->at[i], &m->at[i - 1]);
	for (unsigned i = 0; i < m->n; i++)
		fit = fit && forward(&w[i], &m->at[i], &m->at[i + 1]);
	return fit;
}

/* --- all ways --- */

static bool
has_happened(const struct happened *state, uint64_t number)
{
	for (unsigned i = 0; i < state->n; i++)
		if (state->of[i] == number)
			return true;
	return false;
}

void
ex_history_happen(struct happened *state, uint64_t number)
{
	unsigned i = state->n++;

	for (; i > 0 && state->of[i - 1] > number; i--)
		state->of[i] = state->of[i - 1];
	state->of[i] = number;
}

void
ex_history_forget(struct happened *state, uint64_t number)
{
	unsigned n = 0;

	for (unsigned i = 0; i < state->n; i++)
		if (state->of[i] != number)
			state->of[n++] = state->of[i];
	state->n = n;
}

/* Add a move that ends here, if it fits the readings. */
static void
end_move(struct pass *p, const struct happened *state, const struct move *m)
{
	struct moves *moves = &p->gap->moves;
	struct happened behind = *state;
	struct move end = *m;

	if (!fits(p->h, &end, &p->from, &p->to))
		return;
	ex_history_forget(&behind, p->number);
	if (!EX_ARRAY_ROOM(moves, move, MOVES) ||
	    !ex_history_add_state(p->gap, &behind, &end.to)) {
		p->failed = true;
		return;
	}
	moves->move[moves->n++] = end;
}

/* Try every write that can come next.  A move may end as soon as the write of
   this reading has happened. */
static void
extend(struct pass *p, const struct happened *state, const struct move *m)
{
	const struct ex_history *h = p->h;

	if (has_happened(state, p->number))
		end_move(p, state, m);
	for (size_t i = 0; i < h->ncand && !p->failed; i++) {
		const uint64_t number = h->cand[i]->number;
		struct happened more = *state;
		struct move longer = *m;

		if (has_happened(state, number))
			continue;
		ex_history_happen(&more, number);
		longer.order[longer.n++] = number;
		extend(p, &more, &longer);
	}
}

bool
ex_history_go_through(struct pass *p, const struct gap *before)
{
	p->gap->n = p->gap->moves.n = 0;
	p->failed = p->h->ncand > WIDE;
	for (unsigned i = 0; i < before->n && !p->failed; i++) {
		const struct move m = {.from = i};

		extend(p, &before->state[i], &m);
	}
	return !p->failed && p->gap->moves.n > 0;
}
