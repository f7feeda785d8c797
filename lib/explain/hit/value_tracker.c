/*
 * value_tracker: the bytes that the last hit of each watch left, and the values
 * of a hit.
 */
#include "hit/value_tracker_private.h"

#include <stdlib.h>
#include <string.h>

/* ns for which a hit waits for the mark that proves its ticket's order */
#define MARK_WAIT	UINT64_C(200000000)

/* ns for which a hit waits for the other hits of its crowd */
#define CROWD_WAIT	UINT64_C(100000000)

struct ex_value_tracker *
ex_tracker_new(const struct ex_value_options *values)
{
	struct ex_value_tracker *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->values = values;
	return s;
}

static void
free_tracked(void *item)
{
	struct ex_tracked *w = item;

	ex_history_free(w->history);
	free(w->ended);
	free(w);
}

void
ex_tracker_free(struct ex_value_tracker *s)
{
	if (s == NULL)
		return;
	ex_table_free(&s->of, free_tracked);
	free(s);
}

struct ex_tracked *
ex_tracked_of(struct ex_value_tracker *s, const struct ex_watch *watch)
{
	struct ex_tracked *w;

	if (s->values == NULL || watch->access == WP_EXEC || watch->id == 0)
		return NULL;
	w = ex_table_get(&s->of, watch->id);
	if (w == NULL && ex_table_reserve(&s->of, 1) &&
	    (w = calloc(1, sizeof(*w))) != NULL) {
		w->watch = watch;
		ex_table_put(&s->of, watch->id, w);
	}
	return w;
}

/* --- bytes --- */

uint64_t
ex_tracked_size(const struct ex_watch *watch)
{
	return watch->len < EX_VALUE_MAX ? watch->len : EX_VALUE_MAX;
}

uint32_t
ex_low_bits(uint64_t n)
{
	return (uint32_t)((UINT64_C(1) << n) - 1);
}

/* Which of the watch's bytes lie within len bytes at addr. */
static uint32_t
bits_of(const struct ex_watch *watch, uint64_t addr, uint64_t len)
{
	const uint64_t size = ex_tracked_size(watch);
	uint64_t from = addr - watch->addr, to = from + len;

	if (addr < watch->addr) {
		from = 0;
		to = addr + len <= watch->addr ? 0 : addr + len - watch->addr;
	}
	if (to < from || to > size)
		to = size;
	return from >= to ? 0 : ex_low_bits(to) & ~ex_low_bits(from);
}

uint32_t
ex_touched_bits(const struct ex_hit *hit)
{
	return bits_of(hit->watch, hit->addr, hit->len);
}

uint32_t
ex_operand_bits(const struct ex_hit *hit)
{
	return bits_of(hit->watch, hit->insn.addr, hit->insn.effect.size);
}

/* Remove the lowest bit, of which there must be one, and return its number. */
static unsigned
take_bit(uint32_t *bits)
{
	const unsigned lowest = (unsigned)__builtin_ctz(*bits);

	*bits &= *bits - 1;
	return lowest;
}

void
ex_put_operand(struct ex_value *value, const struct ex_hit *hit,
    const uint8_t *bytes)
{
	const uint64_t skip = hit->watch->addr - hit->insn.addr;
	uint32_t bits = ex_operand_bits(hit);

	value->known |= bits;
	while (bits != 0) {
		const unsigned i = take_bit(&bits);

		value->byte[i] = bytes[i + skip];
	}
}

void
ex_tracked_put_bytes(struct ex_value *value, const struct ex_value *from,
    uint32_t bits)
{
	value->known |= bits;
	while (bits != 0) {
		const unsigned i = take_bit(&bits);

		value->byte[i] = from->byte[i];
	}
}

bool
ex_tracked_agree(const struct ex_value *a, const struct ex_value *b)
{
	uint32_t bits = a->known & b->known;

	while (bits != 0) {
		const unsigned i = take_bit(&bits);

		if (a->byte[i] != b->byte[i])
			return false;
	}
	return true;
}

bool
ex_hit_is_execution(const struct ex_hit *hit)
{
	return hit->watch->access == WP_EXEC;
}

bool
ex_hit_is_exact(const struct ex_hit *hit)
{
	return !hit->kernel && hit->insn.confidence == EX_EXACT &&
	    hit->insn.effect.size > 0;
}

bool
ex_hit_is_read(const struct ex_hit *hit)
{
	if (hit->kernel)
		return hit->call.reads && !hit->call.writes;
	return hit->insn.confidence >= EX_ADDRESS_UNVERIFIED &&
	    hit->insn.reads && !hit->insn.writes;
}

/* --- hits --- */

/* Children that share the memory and are not watched may have written to any
   watch up to now, or still may. */
static void
look_at_children(struct ex_value_tracker *s)
{
	struct ex_tracked *w;
	size_t i = 0;

	if (s->lent.n == 0 && !s->lent.more)
		return;
	s->blind = wp_shared_vm_left(&s->lent, 0, s->values->shares) ?
	    UINT64_MAX : s->values->now();
	while ((w = ex_table_each(&s->of, &i)) != NULL) {
		w->value.known = w->later = 0;
		ex_tracked_doubt_history(w, 0);
	}
}

/* If the hit before this one still waits for a value, it left what this one
   loaded. */
static void
report_before(struct ex_tracked *w, const struct ex_tentative *tentative)
{
	struct ex_tentative *before = w->last;
	struct ex_hit *hit;
	uint32_t wanted;

	if (before == NULL || ex_hit_is_read(before->hit))
		return;
	hit = before->hit;
	wanted = ex_touched_bits(hit) & (~hit->new.known | before->later);
	if (wanted == 0 || (wanted & ~tentative->loaded) != 0)
		return;
	ex_tracked_put_bytes(&hit->new, &tentative->hit->old, wanted);
	before->later = 0;
	before->read = tentative->hit->time;
	hit->source = EX_VALUE_PROVED;
	ex_tracked_list(w, before);
}

void
ex_tracker_hit(struct ex_value_tracker *s, struct ex_hit *hit,
    const struct wp_stop_value *stop, const struct wp_ticket *ticket,
    struct ex_tentative *tentative)
{
	struct ex_tracked *w = ex_tracked_of(s, hit->watch);
	bool ordered = false, quiet = false;

	*tentative = (struct ex_tentative){ .hit = hit, .tracked = w };
	if (w != NULL) {
		w->numbered = w->numbered ||
		    (ticket != NULL && ex_tickets_help(s, w, hit));
		look_at_children(s);
		if (w->later != 0)
			ex_tracked_take_reading(s, w, hit->time);
		ordered = ex_tracked_follow(s, w, hit->time, hit->tid,
		    hit->cpu) && !w->misordered;
		if (w->pid != hit->pid || ex_tracked_has_unseen(s, w,
		    hit->time))
			w->value.known = 0;
		quiet = ordered && w->pid == hit->pid &&
		    ex_tracked_is_quiet(w, hit->time) &&
		    !ex_tracked_has_unseen(s, w, hit->time);
		w->pid = hit->pid;
		if (quiet)
			hit->old = w->value;
	}
	ex_tracked_apply(hit, tentative);
	if (quiet)
		report_before(w, tentative);
	tentative->looked = ex_tracked_take_stop(s, tentative, stop);
	if (tentative->looked)
		ex_concurrent_take(s, tentative, stop);
	if (w == NULL)
		return;
	if (ticket != NULL && ex_tickets_help(s, w, hit))
		ex_ticket_take(s, w, ticket, tentative);
	ex_tracked_leave(w, hit, ordered && !ex_tracked_has_unseen(s, w,
	    hit->time));
	if ((hit->old.known & ~tentative->loaded) != 0)
		ex_tracked_list(w, tentative);
	w->last = tentative;
}

void
ex_tracker_joined(struct ex_value_tracker *s, struct ex_tentative *tentative,
    const struct ex_record *record, const struct wp_stop_value *stop)
{
	struct ex_tracked *w = tentative->tracked;
	const bool stopped = ex_tracked_take_stop(s, tentative, stop);

	if (stopped)
		ex_concurrent_take(s, tentative, stop);
	if (w == NULL)
		return;
	if (w->later != 0)
		ex_tracked_take_reading(s, w, record->time);
	if (w->last != tentative) {
		ex_tracked_disorder(w, record->time);
		w->last = NULL;
	} else {
		tentative->looked = stopped;
	}
	if (ex_tracked_follow(s, w, record->time, tentative->hit->tid,
	    record->cpu))
		ex_tracked_leave(w, tentative->hit, true);
}

/* --- time --- */

/* Whether hits as old as this have all arrived by now. */
static bool
is_past(uint64_t time, uint64_t now)
{
	return now > time && now - time >= WINDOW;
}

/* Whether the new value was computed from an old one that only the order of
   hits shows, and the thread waits. */
static bool
is_assumed(const struct ex_value_tracker *s,
    const struct ex_tentative *tentative)
{
	return s->values->at_once && s->values->in_order &&
	    tentative->hit->source == EX_VALUE_DERIVED &&
	    tentative->stored == 0;
}

/* Whether reading the watch's memory would add any byte that is not known; or,
   where the thread waits, show whether the old value was the one assumed. */
static bool
is_wanting(const struct ex_value_tracker *s, const struct ex_tracked *w)
{
	return s->values->read != NULL && w->last != NULL &&
	    !w->last->looked && (is_assumed(s, w->last) ||
	    (ex_low_bits(ex_tracked_size(w->watch)) & ~w->value.known) != 0 ||
	    (ex_touched_bits(w->last->hit) & ~w->last->hit->new.known) != 0);
}

bool
ex_tracker_settled(const struct ex_value_tracker *s,
    const struct ex_tentative *tentative,
    uint64_t now)
{
	const struct ex_tracked *w = tentative->tracked;

	if (now == UINT64_MAX || w == NULL)
		return true;
	if (tentative->crowd != 0 && now < tentative->hit->time + CROWD_WAIT)
		return false;
	if (s->values->at_once)
		return true;
	if (tentative->ticket != NULL && !tentative->ticket->settled &&
	    now < tentative->hit->time + MARK_WAIT)
		return false;
	if (w->last == tentative && is_wanting(s, w))
		return false;
	return is_past(tentative->hit->time, now) && is_past(tentative->read,
	    now);
}

static bool
is_other(const struct ex_value *value, unsigned at, uint64_t pc)
{
	return ex_value_known(value, at, sizeof(pc)) &&
	    ex_value_number(value, at, sizeof(pc)) != pc;
}

/* A jump through a pointer leaves the address of its target in place.  If the
   value before or after is not the address where the thread is, the instruction
   was a store after all. */
static void
settle_jump(struct ex_tentative *tentative)
{
	struct ex_hit *hit = tentative->hit;
	const uint64_t at = hit->insn.jump - hit->watch->addr;
	const enum ex_value_source source = hit->source;

	if (hit->insn.jump == 0 || at >= EX_VALUE_MAX ||
	    (!is_other(&hit->old, (unsigned)at, hit->pc) &&
	    (source != EX_VALUE_STOP ||
	    !is_other(&hit->new, (unsigned)at, hit->pc))))
		return;
	ex_insn_no_jump(&hit->insn);
	ex_tracked_apply(hit, tentative);
	if (source == EX_VALUE_STOP)
		hit->source = source;
}

void
ex_tracker_given(struct ex_tentative *tentative)
{
	struct ex_tracked *w = tentative->tracked;
	struct ex_hit *hit = tentative->hit;
	uint32_t bits = ex_touched_bits(hit);

	if (w != NULL && tentative->listed)
		ex_tracked_unlist(w, tentative);
	if (w != NULL && tentative->crowd != 0)
		ex_concurrent_leave(w, tentative);
	if (w != NULL && w->last == tentative)
		w->last = NULL;
	if (w != NULL)
		ex_ticket_use(w, tentative);
	if (tentative->ticket != NULL)
		ex_history_release(tentative->ticket);
	settle_jump(tentative);
	hit->old_inferred = (bits & hit->old.known & ~tentative->shown) != 0;
	if ((bits & ~hit->new.known) != 0 ||
	    hit->len > ex_tracked_size(hit->watch))
		hit->source = EX_VALUE_UNKNOWN;
	hit->unchanged = hit->source != EX_VALUE_UNKNOWN &&
	    hit->source != EX_VALUE_LATER && (bits & ~hit->old.known) == 0;
	while (hit->unchanged && bits != 0) {
		const unsigned i = take_bit(&bits);

		hit->unchanged = hit->old.byte[i] == hit->new.byte[i];
	}
}

/* --- memory --- */

/* Fill in the bytes of the last hit and of its watch that are not known with
   those that were read. */
static void
take_reading(const struct ex_value_tracker *s, struct ex_tracked *w,
    const struct ex_value *got, uint64_t time)
{
	struct ex_tentative *tentative = w->last;
	struct ex_hit *hit = tentative->hit;

	if (is_assumed(s, tentative) && !ex_tracked_agree(&hit->new, got)) {
		ex_tentative_withdraw(tentative);
		ex_tracked_contradict(w);
	}
	if (!ex_tracked_has_unseen(s, w, hit->time)) {
		w->later = got->known & ~w->value.known;
		w->read = time;
		ex_tracked_put_bytes(&w->value, got, w->later);
	}
	if (ex_hit_is_read(hit) ||
	    (ex_touched_bits(hit) & ~hit->new.known) == 0)
		return;
	tentative->later = got->known & ~hit->new.known;
	tentative->read = time;
	ex_tracked_put_bytes(&hit->new, got, tentative->later);
	hit->source = EX_VALUE_LATER;
}

static void
look(const struct ex_value_tracker *s, struct ex_tracked *w)
{
	const uint64_t size = ex_tracked_size(w->watch);
	struct ex_value got = {.known = 0};
	const uint64_t before = s->values->now();
	ssize_t n;

	w->last->looked = true;
	n = s->values->read(w->pid, w->watch->addr, got.byte, size);
	if (n <= 0 || before < w->time)
		return;
	got.known = ex_low_bits((uint64_t)n < size ? (uint64_t)n : size);
	take_reading(s, w, &got, s->values->now());
}

void
ex_tracker_look(struct ex_value_tracker *s)
{
	struct ex_tracked *w;
	size_t i = 0;

	while ((w = ex_table_each(&s->of, &i)) != NULL)
		if (is_wanting(s, w))
			look(s, w);
}

void
ex_tracker_known(struct ex_value_tracker *s, const struct ex_watch *watch,
    pid_t pid, const uint8_t *bytes, size_t len, uint64_t time)
{
	struct ex_tracked *w = ex_tracked_of(s, watch);

	if (w == NULL || w->hit)
		return;
	w->pid = pid;
	if (ex_tracked_has_unseen(s, w, time))
		return;
	if (len > ex_tracked_size(watch))
		len = ex_tracked_size(watch);
	memcpy(w->value.byte, bytes, len);
	w->value.known = ex_low_bits(len);
	w->later = time == 0 ? 0 : w->value.known;
	w->read = time;
	if (time == 0)
		ex_tickets_begin(w);
}

void
ex_tracker_doubt(struct ex_value_tracker *s, const struct ex_watch *watch,
    enum ex_doubt what)
{
	struct ex_tracked *w = ex_tracked_of(s, watch);

	if (w == NULL)
		return;
	if (what == EX_UNMAPPED) {
		w->unmapped = true;
		return;
	}
	w->value.known = what == EX_UNREAD ? w->value.known & ~w->later : 0;
	w->later = 0;
	ex_tracked_doubt_history(w, w->time);
	if (what == EX_MISSED) {
		w->hit = false;
		w->last = NULL;		/* the next hit may load what missed
					   ones left */
	}
	w->unseen = w->unseen || what == EX_UNSEEN;
}

bool
ex_tracker_is_unmapped(struct ex_value_tracker *s, const struct ex_watch *watch)
{
	const struct ex_tracked *w = ex_tracked_of(s, watch);

	return w != NULL && w->unmapped;
}

void
ex_tracker_mapped(struct ex_value_tracker *s, const struct ex_watch *watch,
    bool shared, uint64_t time)
{
	struct ex_tracked *w = ex_tracked_of(s, watch);

	if (w == NULL)
		return;
	w->unseen = w->unseen || shared;
	w->unmapped = false;
	w->value.known = w->later = 0;
	ex_tracked_doubt_history(w, time);
}

void
ex_tracker_born(struct ex_value_tracker *s, const struct ex_record *record)
{
	if (s->values == NULL || s->values->follows ||
	    record->task.pid == record->task.ppid)
		return;
	wp_shared_vm_add(&s->lent, &(struct wp_loan){record->task.ppid,
	    record->task.ptid, record->task.pid});
	look_at_children(s);
}

void
ex_tracker_lost(struct ex_value_tracker *s, uint64_t now)
{
	struct ex_tracked *w;
	size_t i = 0;

	while ((w = ex_table_each(&s->of, &i)) != NULL) {
		ex_tracked_disorder(w, now);
		ex_tracked_doubt_history(w, now);
	}
}
