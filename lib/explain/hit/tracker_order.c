/* tracker_order: values that the instruction of a hit, or the order of hits,
   establishes; the latter as long as nothing contradicts them. */
#include "hit/value_tracker_private.h"

#include <string.h>

#define QUIET		UINT64_C(100000000)

/* --- tentative values --- */

void
ex_tentative_withdraw(struct ex_tentative *tentative)
{
	struct ex_hit *hit = tentative->hit;

	hit->old.known &= tentative->loaded;
	hit->new.known &= tentative->stored | tentative->later;
	if (tentative->stored == 0 && (hit->source == EX_VALUE_DERIVED ||
	    hit->source == EX_VALUE_PROVED))
		hit->source = EX_VALUE_UNKNOWN;
	tentative->listed = false;
}

static void
withdraw_all(struct ex_tracked *w)
{
	for (struct ex_tentative *c = w->first; c != NULL; c = c->next)
		ex_tentative_withdraw(c);
	w->first = w->end = NULL;
}

void
ex_tracked_list(struct ex_tracked *w, struct ex_tentative *tentative)
{
	if (tentative->listed)
		return;
	tentative->listed = true;
	tentative->next = NULL;
	if (w->first == NULL)
		w->first = tentative;
	else
		w->end->next = tentative;
	w->end = tentative;
}

void
ex_tracked_unlist(struct ex_tracked *w, const struct ex_tentative *tentative)
{
	struct ex_tentative **link = &w->first, *before = NULL;

	while (*link != NULL && *link != tentative) {
		before = *link;
		link = &before->next;
	}
	if (*link == NULL)
		return;
	*link = tentative->next;
	if (w->end == tentative)
		w->end = before;
}

/* Another access came before the memory was read, so the bytes show nothing
   about this hit. */
static void
withdraw_later(struct ex_tentative *tentative)
{
	struct ex_hit *hit = tentative->hit;

	hit->new.known &= ~tentative->later;
	if (tentative->later != 0 && hit->source == EX_VALUE_LATER)
		hit->source = EX_VALUE_UNKNOWN;
	tentative->later = 0;
}

/* Values from tickets do not depend on times, and are kept: tickets would show a
   writer without hits, too. */
void
ex_tracked_contradict(struct ex_tracked *w)
{
	if (w == NULL)
		return;
	withdraw_all(w);
	w->misordered = w->numbered;
	w->unseen = w->unseen || !w->numbered;
}

/* --- what the instruction shows --- */

/* Derive the new value from the old one, if all bytes of that are known.  If
   the flags contradict the result, the old value was wrong. */
static void
derive(struct ex_hit *hit, struct ex_tentative *tentative)
{
	const struct ex_effect *effect = &hit->insn.effect;
	const uint64_t at = hit->insn.addr - hit->watch->addr;
	uint8_t bytes[EX_EFFECT_MAX] = {0};
	uint64_t value = 0;

	if (at >= EX_VALUE_MAX || !ex_value_known(&hit->old, (unsigned)at,
	    effect->size) || effect->size > sizeof(value))
		return;
	switch (ex_effect_derive(effect, ex_value_number(&hit->old,
	    (unsigned)at, effect->size), &value)) {
	case EX_DERIVED:
		memcpy(bytes, &value, sizeof(value));
		ex_put_operand(&hit->new, hit, bytes);
		hit->source = EX_VALUE_DERIVED;
		if ((ex_operand_bits(hit) & ~tentative->loaded) == 0)
			tentative->stored = ex_operand_bits(hit);
		break;
	case EX_CONTRADICTED:
		if ((ex_operand_bits(hit) & ~tentative->loaded) != 0)
			ex_tracked_contradict(tentative->tracked);
		hit->old.known &= tentative->loaded;
		break;
	case EX_NOT_DERIVED:
		break;
	}
}

/* These bytes are certain to be what the access found.  If they differ from
   what was known, the latter was wrong. */
static void
take_found(struct ex_tentative *tentative, const uint8_t *bytes)
{
	struct ex_hit *hit = tentative->hit;
	struct ex_value found = {.known = 0};

	ex_put_operand(&found, hit, bytes);
	if (!ex_tracked_agree(&found, &hit->old)) {
		hit->old.known = 0;
		tentative->loaded = 0;
		ex_tracked_contradict(tentative->tracked);
	}
	tentative->loaded |= found.known;
	tentative->shown |= found.known;
	ex_tracked_put_bytes(&hit->old, &found, found.known);
}

void
ex_tracked_apply(struct ex_hit *hit, struct ex_tentative *tentative)
{
	const struct ex_effect *effect = &hit->insn.effect;

	if (!ex_hit_is_exact(hit) || ex_hit_is_execution(hit))
		return;
	if (effect->has_loaded)
		take_found(tentative, effect->loaded);
	switch (effect->operation) {
	case EX_OP_UNKNOWN:
	case EX_OP_NONE:
		break;
	case EX_OP_STORE:
		ex_put_operand(&hit->new, hit, effect->stored);
		tentative->stored = ex_operand_bits(hit);
		hit->source = effect->immediate ? EX_VALUE_IMMEDIATE :
		    EX_VALUE_REGISTER;
		break;
	default:
		derive(hit, tentative);
	}
	/* the other bytes of the watch keep their values */
	if (!effect->repeated && !ex_hit_is_read(hit))
		ex_tracked_put_bytes(&hit->new, &hit->old,
		    hit->old.known & ~ex_operand_bits(hit));
}

/* --- order --- */

static bool
is_ordered(const struct ex_value_tracker *s, const struct ex_tracked *w,
    uint64_t time, pid_t tid, uint32_t cpu)
{
	if (s->values->at_once)
		return s->values->in_order;
	if (!w->hit)
		return true;
	if (time == 0 || time < w->time)
		return false;
	return (tid == w->tid && tid > 0) || time - w->time >= WINDOW ||
	    (cpu == w->cpu && cpu != UINT32_MAX);
}

void
ex_tracked_doubt_history(struct ex_tracked *w, uint64_t time)
{
	if (time > w->doubted)
		w->doubted = time;
	if (w->history != NULL)
		ex_history_doubt(w->history);
}

void
ex_tracked_disorder(struct ex_tracked *w, uint64_t time)
{
	w->disordered = true;
	if (time > w->disorder)
		w->disorder = time;
	withdraw_all(w);
	w->value.known = 0;
	w->later = 0;
}

bool
ex_tracked_follow(const struct ex_value_tracker *s, struct ex_tracked *w,
    uint64_t time, pid_t tid, uint32_t cpu)
{
	const bool ordered = is_ordered(s, w, time, tid, cpu);

	if (!ordered)
		ex_tracked_disorder(w, time > w->time ? time : w->time);
	w->hit = true;
	if (time > w->time)
		w->time = time;
	w->tid = tid;
	w->cpu = cpu;
	return ordered;
}

bool
ex_tracked_is_quiet(const struct ex_tracked *w, uint64_t time)
{
	return !w->disordered ||
	    (time > w->disorder && time - w->disorder >= QUIET);
}

void
ex_tracked_take_reading(const struct ex_value_tracker *s, struct ex_tracked *w,
    uint64_t time)
{
	if (!s->values->in_order &&
	    (time < w->read || time - w->read < WINDOW)) {
		w->value.known &= ~w->later;
		if (w->last != NULL)
			withdraw_later(w->last);
	}
	w->later = 0;
}

void
ex_tracked_leave(struct ex_tracked *w, const struct ex_hit *hit, bool ordered)
{
	if (ex_hit_is_read(hit))
		return;
	if (!ordered || !ex_hit_is_exact(hit) || hit->insn.effect.repeated)
		w->value.known = 0;
	else
		w->value.known &= ~ex_operand_bits(hit);
	if (!ordered)
		return;
	if (hit->source == EX_VALUE_STOP)
		ex_tracked_put_bytes(&w->value, &hit->new, hit->new.known);
	else if (ex_hit_is_exact(hit))
		ex_tracked_put_bytes(&w->value, &hit->new, hit->new.known &
		    ex_operand_bits(hit));
}

/* Take the bytes that the access found, as known from a stop. */
static void
take_before(struct ex_tentative *tentative, const struct ex_value *before,
    bool read)
{
	struct ex_hit *hit = tentative->hit;

	if (!read && tentative->tracked != NULL && tentative->tracked->unseen)
		return;
	if (!ex_tracked_agree(before, &hit->old)) {
		ex_tracked_contradict(tentative->tracked);
		return;
	}
	ex_tracked_put_bytes(&hit->old, before, before->known);
	tentative->loaded = before->known;
}

/* Compute the old value from the new one if that is certain.  If several old
   values lead to the new one, check that the one known is among them. */
static void
take_back(struct ex_tentative *tentative)
{
	struct ex_hit *hit = tentative->hit;
	const struct ex_effect *effect = &hit->insn.effect;
	const uint64_t at = hit->insn.addr - hit->watch->addr;
	uint8_t bytes[EX_EFFECT_MAX] = {0};
	uint64_t old, new, then;

	if (!ex_hit_is_exact(hit) || effect->repeated || at >= EX_VALUE_MAX ||
	    effect->size > sizeof(old) ||
	    !ex_value_known(&hit->new, (unsigned)at, effect->size))
		return;
	new = ex_value_number(&hit->new, (unsigned)at, effect->size);
	if (ex_effect_invert(effect, new, &old)) {
		memcpy(bytes, &old, sizeof(old));
		take_found(tentative, bytes);
		return;
	}
	if (effect->has_loaded ||
	    !ex_value_known(&hit->old, (unsigned)at, effect->size))
		return;
	old = ex_value_number(&hit->old, (unsigned)at, effect->size);
	if (ex_effect_derive(effect, old, &then) == EX_DERIVED && then != new) {
		hit->old.known = tentative->loaded = 0;
		ex_tracked_contradict(tentative->tracked);
	}
}

/* Take the bytes that the thread's access left, as known from a stop.  Bytes
   that it did not touch are also those that it found; if it only read, all
   are. */
static void
take_left(struct ex_tentative *tentative, const struct ex_value *left)
{
	struct ex_hit *hit = tentative->hit;
	uint32_t kept = 0;

	if (ex_hit_is_read(hit))
		kept = left->known;
	else if (ex_hit_is_exact(hit) && !hit->insn.effect.repeated)
		kept = left->known & ~ex_operand_bits(hit);
	ex_tracked_put_bytes(&hit->old, left, kept & ~tentative->loaded);
	tentative->loaded |= kept;
	if (ex_hit_is_read(hit))
		return;
	ex_tracked_put_bytes(&hit->new, left, left->known);
	tentative->stored = left->known;
	tentative->later = 0;
	hit->source = EX_VALUE_STOP;
	take_back(tentative);
}

bool
ex_tracked_take_stop(const struct ex_value_tracker *s,
    struct ex_tentative *tentative, const struct wp_stop_value *stop)
{
	struct ex_hit *hit = tentative->hit;
	struct ex_value old, new;

	if (stop == NULL || stop->addr != hit->watch->addr ||
	    ex_hit_is_execution(hit))
		return false;
	new.known = old.known = ex_low_bits(stop->len);
	memcpy(old.byte, stop->old, sizeof(old.byte));
	memcpy(new.byte, stop->new, sizeof(new.byte));
	if (stop->flags & WP_STOP_EXACT)
		take_before(tentative, &old,
		    (stop->flags & WP_STOP_BEFORE) != 0);
	if (stop->flags & (WP_STOP_EXACT | WP_STOP_LEFT)) {
		take_left(tentative, &new);
		return true;
	}
	if (s->values == NULL || !s->values->in_order) {
		if (tentative->listed)
			ex_tracked_unlist(tentative->tracked, tentative);
		ex_tentative_withdraw(tentative);
	}
	if (!ex_hit_is_read(hit) &&
	    (ex_touched_bits(hit) & ~hit->new.known) != 0) {
		tentative->later = new.known & ~hit->new.known;
		tentative->read = hit->time;
		ex_tracked_put_bytes(&hit->new, &new, tentative->later);
		hit->source = tentative->later != 0 ? EX_VALUE_LATER :
		    hit->source;
	}
	return true;
}
