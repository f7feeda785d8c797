/* tracker_concurrent: hits that wait for simultaneous hits of other threads. */
#include "hit/value_tracker_private.h"

#include <stdlib.h>
#include <string.h>

#include "hit/concurrent.h"

void
ex_concurrent_leave(struct ex_tracked *w, struct ex_tentative *tentative)
{
	struct ex_tentative **link = &w->waiting;

	while (*link != NULL && *link != tentative)
		link = &(*link)->next_waiting;
	if (*link != NULL)
		*link = tentative->next_waiting;
	tentative->crowd = 0;
}

/* The hits of one crowd. */
struct gathered {
	struct ex_concurrent crowd;
	struct ex_tentative *of[EX_CROWD_MAX];
	uint32_t samples;
	bool fit;		/* each loaded the same bytes, and the
				   instruction of each is known */
};

static bool
fits(const struct ex_hit *hit, const struct ex_hit *first)
{
	const struct ex_effect *effect = &hit->insn.effect;

	return ex_hit_is_exact(hit) && effect->atomic && effect->has_loaded &&
	    !effect->repeated && effect->size <= sizeof(uint64_t) &&
	    effect->size == first->insn.effect.size &&
	    hit->insn.addr == first->insn.addr;
}

static uint64_t
number_of(const uint8_t *bytes, unsigned size)
{
	uint64_t value = 0;

	memcpy(&value, bytes, size);	/* low byte first */
	return value;
}

/* The value that a hit left, if its registers show it. */
static bool
left_of(const struct ex_hit *hit, uint64_t *left)
{
	const struct ex_effect *effect = &hit->insn.effect;

	if (effect->operation == EX_OP_STORE)
		*left = number_of(effect->stored, effect->size);
	return effect->operation == EX_OP_STORE ||
	    ex_effect_derive(effect, number_of(effect->loaded, effect->size),
	    left) == EX_DERIVED;
}

static void
gather_one(struct gathered *g, struct ex_tentative *tentative)
{
	const struct ex_hit *hit = tentative->hit;
	const size_t n = g->crowd.n;
	struct ex_concurrent_access *access = &g->crowd.access[n];

	g->samples += tentative->samples;
	g->fit = g->fit && n < EX_CROWD_MAX &&
	    fits(hit, n == 0 ? hit : g->of[0]->hit);
	if (!g->fit)
		return;
	g->of[g->crowd.n++] = tentative;
	*access = (struct ex_concurrent_access){
		.tid = hit->tid, .cpu = hit->cpu, .time = hit->time,
		.since = tentative->since, .loaded =
		    number_of(hit->insn.effect.loaded, hit->insn.effect.size),
	};
	access->has_left = left_of(hit, &access->left);
	access->added = hit->insn.effect.added ? &hit->insn.effect : NULL;
}

static void
gather(struct ex_tracked *w, uint64_t number, struct gathered *g)
{
	*g = (struct gathered){.fit = true};
	for (struct ex_tentative *t = w->waiting; t != NULL;
	    t = t->next_waiting)
		if (t->crowd == number)
			gather_one(g, t);
}

/* Set the values before and after the crowd, if all bytes in question were
   read. */
static void
take_ends(struct gathered *g, const struct ex_ended *ended)
{
	const struct ex_hit *hit = g->of[0]->hit;
	const uint64_t at = hit->insn.addr - hit->watch->addr;
	const unsigned size = hit->insn.effect.size;

	if (hit->insn.addr < hit->watch->addr ||
	    at > ex_tracked_size(hit->watch) ||
	    size > ex_tracked_size(hit->watch) - at)
		return;
	g->crowd.has_after = true;
	g->crowd.after = number_of(ended->after + at, size);
	g->crowd.has_before = ended->has_before;
	g->crowd.before = number_of(ended->before + at, size);
}

/* Set the new value of each hit of the crowd. */
static void
report_left(struct gathered *g)
{
	for (size_t i = 0; i < g->crowd.n; i++) {
		struct ex_tentative *tentative = g->of[i];
		struct ex_hit *hit = tentative->hit;
		const uint32_t bits = ex_operand_bits(hit);
		uint8_t bytes[EX_EFFECT_MAX] = {0};

		if (!g->crowd.access[i].has_left ||
		    (bits & ~(hit->new.known & ~tentative->later)) == 0)
			continue;
		memcpy(bytes, &g->crowd.access[i].left, sizeof(uint64_t));
		ex_put_operand(&hit->new, hit, bytes);
		tentative->stored |= bits;
		tentative->later = 0;
		hit->source = EX_VALUE_PROVED;
	}
}

/* If the crowd has ended and all of its hits have arrived, none waits
   longer. */
static void
settle_crowd(struct ex_tracked *w, uint64_t number)
{
	struct ex_ended *ended = w->ended;
	struct gathered g;

	if (number == 0 || ended == NULL)
		return;
	while (ended < w->ended + ENDED_MAX && ended->number != number)
		ended++;
	if (ended == w->ended + ENDED_MAX)
		return;
	gather(w, number, &g);
	if (g.samples != ended->samples && ended->samples != 0)
		return;
	if (g.fit && g.crowd.n > 0 && ended->samples != 0 && !w->unseen) {
		take_ends(&g, ended);
		ex_concurrent_solve(&g.crowd);
		report_left(&g);
	}
	ended->number = 0;
	for (struct ex_tentative *t = w->waiting, *next; t != NULL; t = next) {
		next = t->next_waiting;
		if (t->crowd == number)
			ex_concurrent_leave(w, t);
	}
}

/* Store what a stop knows of a crowd that has ended.  If there is no memory for
   it, its hits wait no longer than others. */
static void
take_ended(struct ex_tracked *w, const struct wp_stop_value *stop)
{
	struct ex_ended *ended;

	if (w->ended == NULL &&
	    (w->ended = calloc(ENDED_MAX, sizeof(*w->ended))) == NULL)
		return;
	ended = &w->ended[w->next_ended++ % ENDED_MAX];
	*ended = (struct ex_ended){
		.number = stop->ended, .samples = stop->all,
		.has_before = (stop->flags & WP_STOP_BEGAN) != 0,
	};
	memcpy(ended->before, stop->old, sizeof(ended->before));
	memcpy(ended->after, stop->new, sizeof(ended->after));
	settle_crowd(w, stop->ended);
}

void
ex_concurrent_take(const struct ex_value_tracker *s,
    struct ex_tentative *tentative, const struct wp_stop_value *stop)
{
	struct ex_tracked *w = tentative->tracked;

	if (w == NULL || !s->values->crowds ||
	    (stop->flags & (WP_STOP_EXACT | WP_STOP_LEFT)) != 0)
		return;
	if (stop->crowd != 0 && tentative->crowd == 0) {
		tentative->crowd = stop->crowd;
		tentative->since = stop->since;
		tentative->samples = stop->samples;
		tentative->next_waiting = w->waiting;
		w->waiting = tentative;
	}
	if (stop->ended != 0)
		take_ended(w, stop);
	settle_crowd(w, tentative->crowd);
}
