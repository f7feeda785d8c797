/* remote_hits: the hits of a remote session, written or not. */
#include "remote/remote_hits.h"

void
remote_hits_forget_details(struct remote_hits *k)
{
	while (k->ndetails > 0)
		buffer_free(&k->detail[--k->ndetails].environment);
}

bool
remote_hits_take_details(struct remote_hits *k,
    const struct broker_message *message)
{
	const struct broker_message answer = {.what = BROKER_ANSWER};
	const uint64_t len = message->value[2];
	struct remote_details *details;

	if (len > sizeof(k->broker->shared->report))
		return false;
	if (k->act != NULL && k->ndetails < KEPT_DETAILS_MAX) {
		details = &k->detail[k->ndetails++];
		*details = (struct remote_details){
			.begun = message->value[0], .addr = message->value[1],
		};
		/* copied, as the explainer may change it at any time */
		buffer_put(&details->environment, k->broker->shared->report,
		    len);
	}
	(void)broker_post(k->broker, &answer, -1);
	return true;
}

static void
act_at(struct remote_hits *k, const struct journal_entry *e,
    const struct broker_hit *hit)
{
	struct remote_hit at = {
		.seq = hit->seq, .pid = e->pid, .tid = e->tid,
		.passed = e->passed,
		.watch = hit->watch < k->session->nwatches ?
		    k->session->watches[hit->watch] : NULL,
	};

	if (k->act == NULL || (options_judge(k->session->options) &&
	    (hit->outcome & BROKER_STRAY) == 0))
		return;
	for (size_t i = 0; i < k->ndetails; i++) {
		const struct remote_details *details = &k->detail[i];

		if (details->begun != hit->begun)
			continue;
		at.addr = details->addr;
		at.environment = details->environment.bytes;
		at.len = details->environment.len;
	}
	k->act(k->act_arg, &at);
}

/* Count a hit at its first sample. */
static void
count_hit(struct remote_hits *k, const struct journal_entry *e,
    const struct broker_hit *hit)
{
	struct session *s = k->session;
	const struct ex_hit counted = {
		.seq = hit->seq, .time = e->value[1], .pid = e->pid,
		.tid = e->tid,
	};
	const bool reported = (hit->outcome & BROKER_REPORTED) != 0;

	if ((hit->outcome & BROKER_UNTIL) != 0)
		s->until = s->full = true;
	s->rejected += (hit->outcome & BROKER_REJECTED) != 0;
	s->unchanged += (hit->outcome & BROKER_UNCHANGED) != 0;
	s->thinned += (hit->outcome & BROKER_SKIPPED) != 0;
	if (hit->watch < s->nwatches)
		hit_filter_took(s->filter, s->watches[hit->watch],
		    (hit->outcome &
		    (BROKER_REPORTED | BROKER_SKIPPED)) != 0, reported,
		    e->value[1]);
	if (!reported)
		return;
	k->entries->written =
	    (size_t)((const uint8_t *)e - k->entries->bytes) + e->size;
	s->reported++;
	s->stray += (hit->outcome & BROKER_STRAY) != 0;
	s->unjudged += (hit->outcome & BROKER_UNJUDGED) != 0;
	/* without memory it is missing in the tables of a second explainer */
	if (hit->watch < s->nwatches)
		(void)past_hits_add(k->past, s->watches[hit->watch], hit,
		    &counted, e->what == JOURNAL_CHANNEL_HIT, e->bytes, e->len);
	act_at(k, e, hit);
}

/* The number of hits that must be written before this one is settled.  A hit
   that is left out has the number of the next one that is not.  It waits for
   those before it, because the decision may depend on them if it is made
   again. */
static uint64_t
written_before(const struct broker_hit *hit)
{
	return (hit->outcome & BROKER_REPORTED) != 0 ? hit->seq : hit->seq - 1;
}

/* Whether the hit has not been written, given the number of those that are. */
static bool
is_unwritten(const struct broker_hit *hit, uint64_t begun, uint64_t hits)
{
	return hit->begun == begun && written_before(hit) > hits;
}

/* The same for a hit of a channel, which may be of several watches. */
static void
look_at_channel_hit(struct remote_hits *k, struct journal_entry *e,
    uint64_t hits)
{
	const struct broker_shared *shared = k->broker->shared;
	const struct broker_channel_hit it =
	    shared->channel_hit[e->value[0] % BROKER_CHANNEL_HITS_MAX];
	struct session *s = k->session;
	uint64_t begun = k->counted;
	struct broker_hit hit;

	if (it.number != e->value[0] || it.begun < begun ||
	    it.begun - begun > BROKER_SAMPLES_MAX)
		return;
	for (uint64_t i = begun + 1; i <= it.begun; i++) {
		hit = shared->hit[i % BROKER_SAMPLES_MAX];
		if (is_unwritten(&hit, i, hits))
			return;
	}
	remote_entry_settle(k->entries, e);
	s->samples--;
	s->dropped += it.dropped;
	s->samples += it.dropped;
	for (uint64_t i = begun + 1; i <= it.begun; i++) {
		hit = shared->hit[i % BROKER_SAMPLES_MAX];
		if (hit.begun != i)
			continue;
		s->samples++;
		count_hit(k, e, &hit);
	}
	k->counted = it.begun;
	if (k->observe != NULL)
		k->observe(k->observer, e->bytes, &it);
}

/* Settle a sample if its hit has been written. */
static void
look_at(struct remote_hits *k, struct journal_entry *e, uint64_t hits)
{
	const struct broker_shared *shared = k->broker->shared;
	const struct broker_sample sample =
	    shared->sample[e->value[0] % BROKER_SAMPLES_MAX];
	struct broker_hit hit;

	if (e->what == JOURNAL_CHANNEL_HIT) {
		look_at_channel_hit(k, e, hits);
		return;
	}
	if (sample.number != e->value[0])
		return;
	if (sample.begun >= EX_BEGUN_DROPPED) {
		k->session->dropped += sample.begun == EX_BEGUN_DROPPED;
		k->session->joined += sample.begun == EX_BEGUN_JOINED;
		remote_entry_settle(k->entries, e);
		return;
	}
	hit = shared->hit[sample.begun % BROKER_SAMPLES_MAX];
	if (hit.begun == sample.begun ? written_before(&hit) > hits :
	    sample.begun > shared->given_up)
		return;
	remote_entry_settle(k->entries, e);
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
remote_hits_settle(struct remote_hits *k, uint64_t hits)
{
	struct remote_entries *entries = k->entries;
	const size_t to = entries->asked != 0 ? entries->asked : entries->taken;
	struct journal_entry *e;

	for (size_t at = entries->first; at < to; at += e->size) {
		e = remote_entry_at(entries, at);
		if (remote_entry_is_waiting(e))
			look_at(k, e, hits);
	}
	while (entries->first < to) {
		e = remote_entry_at(entries, entries->first);
		if (remote_entry_is_waiting(e))
			break;
		entries->first += e->size;
	}
	k->session->written = hits;
}

void
remote_hits_renumber(struct remote_hits *k)
{
	const struct broker_shared *shared = k->broker->shared;

	past_hits_renumber(k->past);
	k->counted = 0;
	for (size_t i = 0; i < k->past->n; i++) {
		struct past_hits_row *row = k->past->at[i];
		const struct broker_sample sample =
		    shared->sample[row->stack.id];
		const struct broker_hit hit =
		    shared->hit[sample.begun % BROKER_SAMPLES_MAX];

		if (sample.number != row->stack.id ||
		    sample.begun >= EX_BEGUN_DROPPED ||
		    hit.begun != sample.begun)
			continue;
		(void)past_hits_number(k->past, row, &hit);
		if (hit.begun > k->counted)
			k->counted = hit.begun;
	}
}
