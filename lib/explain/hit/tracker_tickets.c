/* tracker_tickets: values of a hit that the history of tickets establishes. */
#include "hit/value_tracker_private.h"

bool
ex_tracked_has_unseen(const struct ex_value_tracker *s,
    const struct ex_tracked *w, uint64_t time)
{
	return w->unseen || w->unmapped || (s->blind != 0 && time <= s->blind);
}

static uint64_t
byte_bits(unsigned from, unsigned len)
{
	return len >= 8 ? UINT64_MAX << from * 8 :
	    ((UINT64_C(1) << len * 8) - 1) << from * 8;
}

/* The bytes of an operand that starts `at' bytes from the start of the
   watch. */
static struct ex_bytes
bytes_of(const uint8_t *bytes, int64_t at, unsigned size, unsigned room)
{
	struct ex_bytes out = {0};

	for (unsigned to = 0; to < room && to < sizeof(out.value); to++) {
		const int64_t from = to - at;

		if (from < 0 || from >= size)
			continue;
		out.value |= (uint64_t)bytes[from] << to * 8;
		out.bits |= byte_bits(to, 1);
	}
	return out;
}

/* What an instruction did to the bytes, if it is exactly known. */
static void
describe(struct ex_history_hit *it, const struct ex_hit *hit)
{
	static const uint8_t any[EX_EFFECT_MAX];
	const struct ex_effect *effect = &hit->insn.effect;
	const int64_t at = (int64_t)(hit->insn.addr - hit->watch->addr);
	const unsigned room = (unsigned)hit->watch->len;
	struct ex_write *w = &it->write;
	struct ex_bytes bytes;

	w->bits = bytes_of(any, at, effect->size, room).bits;
	if (effect->operation == EX_OP_STORE) {
		bytes = bytes_of(effect->stored, at, effect->size, room);
		w->stored = bytes.value;
		w->stored_bits = bytes.bits;
	}
	w->split = !effect->atomic;
	if (effect->has_loaded) {
		bytes = bytes_of(effect->loaded, at, effect->size, room);
		w->loaded = bytes.value;
		w->loaded_bits = bytes.bits;
	}
	if (effect->operation >= EX_OP_ADD && at >= 0 &&
	    at + effect->size <= room) {
		it->effect = *effect;
		w->effect = &it->effect;
		w->shift = (unsigned)at * 8;
	}
}

void
ex_tickets_begin(struct ex_tracked *w)
{
	struct ex_bytes bytes = bytes_of(w->value.byte, 0, 8, 8);

	if (w->watch->len > sizeof(bytes.value) ||
	    (w->history == NULL && (w->history = ex_history_new()) == NULL))
		return;
	bytes.bits &= byte_bits(0, (unsigned)w->watch->len);
	ex_history_known(w->history, bytes);
}

void
ex_ticket_take(const struct ex_value_tracker *s, struct ex_tracked *w,
    const struct wp_ticket *ticket, struct ex_tentative *tentative)
{
	const struct ex_hit *hit = tentative->hit;
	struct ex_history_hit *it;

	if (w->history == NULL && (w->history = ex_history_new()) == NULL)
		return;
	if ((it = ex_history_add(w->history, ticket->number)) == NULL)
		return;
	it->read = (struct ex_bytes){ticket->bytes, ticket->len == 0 ? 0 :
	    byte_bits(0, ticket->len)};
	it->tid = hit->tid;
	it->cpu = hit->cpu;
	it->write.bits = UINT64_MAX;
	if (ex_hit_is_exact(hit) && !hit->insn.effect.repeated &&
	    hit->insn.other_size == 0 &&
	    hit->insn.effect.operation != EX_OP_NONE)
		describe(it, hit);
	tentative->ticket = it;
	if (hit->time <= w->doubted || ex_tracked_has_unseen(s, w, hit->time))
		ex_history_doubt(w->history);
}

bool
ex_tickets_help(const struct ex_value_tracker *s, const struct ex_tracked *w,
    const struct ex_hit *hit)
{
	return !s->values->at_once && !s->values->follows && !hit->kernel &&
	    hit->watch->slots == 1 && hit->watch->len <= sizeof(uint64_t) &&
	    !w->unseen && !w->unmapped;
}

/* Store claimed bytes where none are certain yet.  Returns those that have
   changed. */
static uint32_t
put_claim(struct ex_value *value, const struct ex_bytes *claim,
    uint32_t certain, uint64_t len)
{
	uint32_t changed = 0;

	for (unsigned i = 0; i < len; i++) {
		const uint8_t byte = (uint8_t)(claim->value >> i * 8);

		if ((claim->bits >> i * 8 & 0xff) == 0 ||
		    (certain >> i & 1) != 0)
			continue;
		if ((value->known >> i & 1) == 0 || value->byte[i] != byte)
			changed |= UINT32_C(1) << i;
		value->byte[i] = byte;
		value->known |= UINT32_C(1) << i;
	}
	return changed;
}

/* Which bytes a claim covers. */
static uint32_t
claimed_bytes(const struct ex_bytes *claim)
{
	uint32_t known = 0;

	for (unsigned i = 0; i < 8; i++)
		known |= (uint32_t)((claim->bits >> i * 8 & 0xff) != 0) << i;
	return known;
}

void
ex_ticket_use(struct ex_tracked *w, struct ex_tentative *tentative)
{
	const struct ex_history_hit *it = tentative->ticket;
	struct ex_hit *hit = tentative->hit;

	if (it == NULL || w->unseen)
		return;
	if (!it->settled) {
		ex_tentative_withdraw(tentative);
		return;
	}
	if (it->refuted) {
		ex_tentative_withdraw(tentative);
		w->numbered = false;
		ex_tracked_contradict(w);
		return;
	}
	if (it->known && !it->tainted) {
		hit->old.known &= tentative->loaded | claimed_bytes(&it->old);
		hit->new.known &= tentative->stored | tentative->later |
		    claimed_bytes(&it->new);
	}
	(void)put_claim(&hit->old, &it->old, tentative->loaded,
	    hit->watch->len);
	if ((put_claim(&hit->new, &it->new, tentative->stored,
	    hit->watch->len) & ex_touched_bits(hit)) != 0 ||
	    (hit->source == EX_VALUE_LATER && it->new.bits != 0))
		hit->source = EX_VALUE_PROVED;
}

void
ex_tracker_mark(struct ex_value_tracker *s, const struct ex_watch *watch,
    uint64_t all, uint64_t upto)
{
	struct ex_tracked *w = ex_tracked_of(s, watch);

	if (w != NULL && w->history != NULL)
		ex_history_mark(w->history, all, upto);
}
