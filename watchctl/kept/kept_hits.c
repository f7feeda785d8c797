/* kept_hits: hits that are written, and those that are not. */
#include "kept/kept_hits.h"

void
kept_hits_forget_details(struct kept_hits *k)
{
	while (k->ndetails > 0)
		buffer_free(&k->detail[--k->ndetails].environment);
}

bool
kept_hits_take_details(struct kept_hits *k, const struct box_message *message)
{
	const struct box_message answer = {.what = BOX_ANSWER};
	const uint64_t len = message->value[2];
	struct kept_details *details;

	if (len > sizeof(k->box->shared->report))
		return false;
	if (k->act != NULL && k->ndetails < KEPT_DETAILS_MAX) {
		details = &k->detail[k->ndetails++];
		*details = (struct kept_details){
			.begun = message->value[0], .addr = message->value[1],
		};
		/* it may change meanwhile */
		buffer_put(&details->environment, k->box->shared->report,
		    len);
	}
	(void)box_tell(k->box, &answer, -1);
	return true;
}

static void
act_at(struct kept_hits *k, const struct journal_entry *e,
    const struct box_hit *hit)
{
	struct kept_hit at = {
		.seq = hit->seq, .pid = e->pid, .tid = e->tid,
		.passed = e->passed,
		.channel_hit = e->what == JOURNAL_CHANNEL_HIT ? e->bytes :
		    NULL,
	};

	if (k->act == NULL || (options_judge(k->session->options) &&
	    (hit->outcome & BOX_STRAY) == 0))
		return;
	for (size_t i = 0; i < k->ndetails; i++) {
		const struct kept_details *details = &k->detail[i];

		if (details->begun != hit->begun)
			continue;
		at.addr = details->addr;
		at.environment = details->environment.bytes;
		at.len = details->environment.len;
	}
	k->act(k->act_arg, &at);
}

/* The first sample of a hit that was given. */
static void
count_hit(struct kept_hits *k, const struct journal_entry *e,
    const struct box_hit *hit)
{
	struct session *s = k->session;
	const struct ex_hit counted = {
		.seq = hit->seq, .time = e->value[1], .pid = e->pid,
		.tid = e->tid,
	};
	const bool reported = (hit->outcome & BOX_REPORTED) != 0;

	if ((hit->outcome & BOX_UNTIL) != 0)
		s->until = s->full = true;
	s->rejected += (hit->outcome & BOX_REJECTED) != 0;
	s->unchanged += (hit->outcome & BOX_UNCHANGED) != 0;
	s->thinned += (hit->outcome & BOX_SKIPPED) != 0;
	if (hit->watch < s->nwatches)
		sieve_took(s->sieve, s->watches[hit->watch], (hit->outcome &
		    (BOX_REPORTED | BOX_SKIPPED)) != 0, reported,
		    e->value[1]);
	if (!reported)
		return;
	k->entries->written =
	    (size_t)((const uint8_t *)e - k->entries->bytes) + e->size;
	s->reported++;
	s->stray += (hit->outcome & BOX_STRAY) != 0;
	s->unjudged += (hit->outcome & BOX_UNJUDGED) != 0;
	/* without memory it is missing in the tables of a second explainer */
	if (hit->watch < s->nwatches)
		(void)past_add(k->past, s->watches[hit->watch], hit,
		    &counted, e->what == JOURNAL_CHANNEL_HIT, e->bytes, e->len);
	act_at(k, e, hit);
}

/* How many hits are written when this one is settled.  One that is left out is
   numbered as the next that is not: it waits for those before it, because what
   is done with them must be known when it is decided again. */
static uint64_t
written_before(const struct box_hit *hit)
{
	return (hit->outcome & BOX_REPORTED) != 0 ? hit->seq : hit->seq - 1;
}

/* Whether a hit has not been written, when so many are. */
static bool
is_unwritten(const struct box_hit *hit, uint64_t begun, uint64_t hits)
{
	return hit->begun == begun && written_before(hit) > hits;
}

/* The same for a hit of a channel, which may be one of several watches. */
static void
look_at_channel_hit(struct kept_hits *k, struct journal_entry *e,
    uint64_t hits)
{
	const struct box_shared *shared = k->box->shared;
	const struct box_channel_hit it =
	    shared->channel_hit[e->value[0] % BOX_CHANNEL_HITS_MAX];
	struct session *s = k->session;
	uint64_t begun = k->counted;
	struct box_hit hit;

	if (it.number != e->value[0] || it.begun < begun ||
	    it.begun - begun > BOX_SAMPLES_MAX)
		return;
	for (uint64_t i = begun + 1; i <= it.begun; i++) {
		hit = shared->hit[i % BOX_SAMPLES_MAX];
		if (is_unwritten(&hit, i, hits))
			return;
	}
	kept_entry_settle(k->entries, e);
	s->samples--;
	s->dropped += it.dropped;
	s->samples += it.dropped;
	for (uint64_t i = begun + 1; i <= it.begun; i++) {
		hit = shared->hit[i % BOX_SAMPLES_MAX];
		if (hit.begun != i)
			continue;
		s->samples++;
		count_hit(k, e, &hit);
	}
	k->counted = it.begun;
	if (k->observe != NULL)
		k->observe(k->observer, e->bytes, &it);
}

/* Settle a sample if it is, when so many hits are written. */
static void
look_at(struct kept_hits *k, struct journal_entry *e, uint64_t hits)
{
	const struct box_shared *shared = k->box->shared;
	const struct box_sample sample =
	    shared->sample[e->value[0] % BOX_SAMPLES_MAX];
	struct box_hit hit;

	if (e->what == JOURNAL_CHANNEL_HIT) {
		look_at_channel_hit(k, e, hits);
		return;
	}
	if (sample.number != e->value[0])
		return;
	if (sample.begun >= EX_BEGUN_DROPPED) {
		k->session->dropped += sample.begun == EX_BEGUN_DROPPED;
		k->session->joined += sample.begun == EX_BEGUN_JOINED;
		kept_entry_settle(k->entries, e);
		return;
	}
	hit = shared->hit[sample.begun % BOX_SAMPLES_MAX];
	if (hit.begun == sample.begun ? written_before(&hit) > hits :
	    sample.begun > shared->given_up)
		return;
	kept_entry_settle(k->entries, e);
	if (sample.begun <= k->counted) {
		k->session->joined++;
		return;
	}
	k->counted = sample.begun;
	if (hit.begun == sample.begun)
		count_hit(k, e, &hit);
	else
		k->session->dropped++;
}

void
kept_hits_settle(struct kept_hits *k, uint64_t hits)
{
	struct kept_entries *entries = k->entries;
	const size_t to = entries->asked != 0 ? entries->asked : entries->taken;
	struct journal_entry *e;

	for (size_t at = entries->first; at < to; at += e->size) {
		e = kept_entry_at(entries, at);
		if (kept_entry_is_waiting(e))
			look_at(k, e, hits);
	}
	while (entries->first < to) {
		e = kept_entry_at(entries, entries->first);
		if (kept_entry_is_waiting(e))
			break;
		entries->first += e->size;
	}
	k->session->written = hits;
}

void
kept_hits_renumber(struct kept_hits *k)
{
	const struct box_shared *shared = k->box->shared;

	past_renumber(k->past);
	k->counted = 0;
	for (size_t i = 0; i < k->past->n; i++) {
		struct past_row *row = k->past->at[i];
		const struct box_sample sample = shared->sample[row->stack.id];
		const struct box_hit hit =
		    shared->hit[sample.begun % BOX_SAMPLES_MAX];

		if (sample.number != row->stack.id ||
		    sample.begun >= EX_BEGUN_DROPPED ||
		    hit.begun != sample.begun)
			continue;
		(void)past_number(k->past, row, &hit);
		if (hit.begun > k->counted)
			k->counted = hit.begun;
	}
}
