/*
 * kept_session: the session of a watch, kept by an explainer.
 *
 *	journal   [ settled, or state | not settled ... | to be read | free   ]
 *	          0                   first             taken        end
 */
#include "box/kept_session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "box/kept_log.h"
#include "box/past.h"
#include "box/shared_memory.h"
#include "box/written_report.h"
#include "os/clock.h"
#include "top/top.h"
#include "util/complain.h"
#include "util/visible.h"

enum {
	SIZE = 16 << 20,	/* bytes of a journal */
	MARGIN = 4096,		/* of it, for what makes room */
	LOG = 256 << 10,	/* and of a log */
	PROCESSES = 64,
	TIDY = 2 << 20,		/* bytes from which on it is made smaller */
	DETAILS_MAX = 64,	/* hits of one stop */
	EARLY_MAX = 64,		/* stacks */
	PATIENCE = 2000,	/* ms that a thread which is stopped waits */
	LATER_MAX = 64 << 20,	/* bytes from which on it does so for who reads
				   the report */
};

struct kept_session {
	struct journal journal;		/* first */
	struct session *session;
	struct box *box;
	struct written_report report;
	struct shared_memory memory;	/* of the journal */
	uint8_t *bytes;			/* in it */
	size_t first, taken, end;
	size_t written;		/* what is before it is read, and in the report;
				   0: that is not known */
	size_t asked;		/* it is being read up to here; 0: it is not */
	unsigned taught;	/* which explainer is told the past, as of
				   box->starts; */
	struct shared_memory learnt;	/* that, while it reads it, */
	bool given;		/* and whether it has the journal's memory */
	long since;		/* so: ms; 0: it is not */
	size_t waiting;		/* samples that are not settled */
	uint64_t reported;	/* hits of what was read, perhaps not written */
	struct buffer later;	/* entries for which there is no room yet */
	bool urged;		/* none came of urging those that wait */
	long round;		/* when the last round began, ms; 0: there are
				   none, since no thread waits */
	long due;		/* ms: until then threads may be kept waiting */
	bool together;		/* patience is with all that is behind */
	bool has_channels;	/* there are hits of channels */
	bool hasty;		/* it is enough that their reports are out */
	void (*observe)(void *arg, const void *hit,
	    const struct box_channel_hit *);	/* NULL: nobody does */
	void *observer;		/* handed to it */
	bool hits_only;		/* are waited for */
	uint64_t replied;	/* the last hit that has a reply: */
	char reply[BOX_BYTES_MAX];
	struct buffer log;	/* entries of before that must survive */
	size_t log_more;	/* so large it is made smaller, bytes, */
	size_t allowed_more;	/* or when so many processes may be asked
				   about */
	struct past past;
	void (*act)(void *arg, const struct kept_hit *);
	void *act_arg;		/* act NULL: nothing is done at hits */
	bool (*know)(void *arg, const struct wp_known_stack *);
	void (*forget)(void *arg, pid_t);
	void *know_arg;		/* know NULL: nobody wants to */
	struct wp_known_stack early[EARLY_MAX];	/* nearly of them: their hits
						   may be counted once one is
						   in the past */
	size_t nearly;
	struct details {	/* of hits that are not written yet */
		uint64_t begun, addr;
		struct buffer environment;
	} detail[DETAILS_MAX];	/* ndetails of them */
	size_t ndetails;
	long until;		/* ms: as long an exchange may wait; 0: for
				   ever */
	uint64_t counted;	/* hits, by their numbers `begun' */
	bool failed;		/* there is no explainer, and will be none */
	bool ended;		/* the report is at its end, */
	int status;		/* with this exit status */
};

/* --- what became of samples --- */

static struct journal_entry *
entry_at(const struct kept_session *kept, size_t at)
{
	return (struct journal_entry *)(void *)(kept->bytes + at);
}

static bool
is_sample(const struct journal_entry *e)
{
	return (e->what == JOURNAL_RECORD && e->value[0] != 0) ||
	    e->what == JOURNAL_CHANNEL_HIT;
}

static bool
is_waiting(const struct journal_entry *e)
{
	return is_sample(e) && !e->settled;
}

static void
settle(struct kept_session *kept, struct journal_entry *e)
{
	e->settled = true;
	kept->waiting--;
}

/* --- what is done at hits --- */

static void
forget_details(struct kept_session *kept)
{
	while (kept->ndetails > 0)
		buffer_free(&kept->detail[--kept->ndetails].environment);
}

/* What an explainer says of a hit before it is written.  False: the message
   lies. */
static bool
take_details(struct kept_session *kept, const struct box_message *message)
{
	const struct box_message answer = {.what = BOX_ANSWER};
	const uint64_t len = message->value[2];
	struct details *details;

	if (len > sizeof(kept->box->shared->report))
		return false;
	if (kept->act != NULL && kept->ndetails < DETAILS_MAX) {
		details = &kept->detail[kept->ndetails++];
		*details = (struct details){
			.begun = message->value[0], .addr = message->value[1],
		};
		/* it may change meanwhile */
		buffer_put(&details->environment, kept->box->shared->report,
		    len);
	}
	(void)box_tell(kept->box, &answer, -1);
	return true;
}

static void
act_at(struct kept_session *kept, const struct journal_entry *e,
    const struct box_hit *hit)
{
	struct kept_hit at = {
		.seq = hit->seq, .pid = e->pid, .tid = e->tid,
		.passed = e->passed,
	};

	if (kept->act == NULL || (options_judge(kept->session->options) &&
	    (hit->outcome & BOX_STRAY) == 0))
		return;
	for (size_t i = 0; i < kept->ndetails; i++) {
		const struct details *details = &kept->detail[i];

		if (details->begun != hit->begun)
			continue;
		at.addr = details->addr;
		at.environment = details->environment.bytes;
		at.len = details->environment.len;
	}
	kept->act(kept->act_arg, &at);
}

/* The first sample of a hit that was given. */
static void
count_hit(struct kept_session *kept, const struct journal_entry *e,
    const struct box_hit *hit)
{
	struct session *s = kept->session;
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
	kept->written = (size_t)((const uint8_t *)e - kept->bytes) + e->size;
	s->reported++;
	s->stray += (hit->outcome & BOX_STRAY) != 0;
	s->unjudged += (hit->outcome & BOX_UNJUDGED) != 0;
	/* without memory it is missing in the tables of a second explainer */
	if (hit->watch < s->nwatches)
		(void)past_add(&kept->past, s->watches[hit->watch], hit,
		    &counted, e->what == JOURNAL_CHANNEL_HIT, e->bytes, e->len);
	act_at(kept, e, hit);
}

/* How many hits are written when this one is settled.  One that is left out is
   numbered as the next that is not: it waits for those before it, because what is
   done with them must be known when it is decided again. */
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
look_at_channel_hit(struct kept_session *kept, struct journal_entry *e,
    uint64_t hits)
{
	const struct box_shared *shared = kept->box->shared;
	const struct box_channel_hit it =
	    shared->channel_hit[e->value[0] % BOX_CHANNEL_HITS_MAX];
	struct session *s = kept->session;
	uint64_t begun = kept->counted;
	struct box_hit hit;

	if (it.number != e->value[0] || it.begun < begun ||
	    it.begun - begun > BOX_SAMPLES_MAX)
		return;
	for (uint64_t i = begun + 1; i <= it.begun; i++) {
		hit = shared->hit[i % BOX_SAMPLES_MAX];
		if (is_unwritten(&hit, i, hits))
			return;
	}
	settle(kept, e);
	s->samples--;
	s->dropped += it.dropped;
	s->samples += it.dropped;
	for (uint64_t i = begun + 1; i <= it.begun; i++) {
		hit = shared->hit[i % BOX_SAMPLES_MAX];
		if (hit.begun != i)
			continue;
		s->samples++;
		count_hit(kept, e, &hit);
	}
	kept->counted = it.begun;
	if (kept->observe != NULL)
		kept->observe(kept->observer, e->bytes, &it);
}

/* Settle a sample if it is, when so many hits are written. */
static void
look_at(struct kept_session *kept, struct journal_entry *e, uint64_t hits)
{
	const struct box_shared *shared = kept->box->shared;
	const struct box_sample sample =
	    shared->sample[e->value[0] % BOX_SAMPLES_MAX];
	struct box_hit hit;

	if (e->what == JOURNAL_CHANNEL_HIT) {
		look_at_channel_hit(kept, e, hits);
		return;
	}
	if (sample.number != e->value[0])
		return;
	if (sample.begun >= EX_BEGUN_DROPPED) {
		kept->session->dropped += sample.begun == EX_BEGUN_DROPPED;
		kept->session->joined += sample.begun == EX_BEGUN_JOINED;
		settle(kept, e);
		return;
	}
	hit = shared->hit[sample.begun % BOX_SAMPLES_MAX];
	if (hit.begun == sample.begun ? written_before(&hit) > hits :
	    sample.begun > shared->given_up)
		return;
	settle(kept, e);
	if (sample.begun <= kept->counted) {
		kept->session->joined++;
		return;
	}
	kept->counted = sample.begun;
	if (hit.begun == sample.begun)
		count_hit(kept, e, &hit);
	else
		kept->session->dropped++;
}

/* So many hits are written. */
static void
settle_all(struct kept_session *kept, uint64_t hits)
{
	const size_t to = kept->asked != 0 ? kept->asked : kept->taken;

	for (size_t at = kept->first; at < to; at += entry_at(kept, at)->size)
		if (is_waiting(entry_at(kept, at)))
			look_at(kept, entry_at(kept, at), hits);
	while (kept->first < to && !is_waiting(entry_at(kept, kept->first)))
		kept->first += entry_at(kept, kept->first)->size;
	kept->session->written = hits;
}

static void
wrote(struct written_report *report, uint64_t hits)
{
	struct kept_session *kept = (struct kept_session *)((char *)report -
	    offsetof(struct kept_session, report));

	settle_all(kept, hits > kept->reported ? hits : kept->reported);
}

/* --- making it smaller --- */

/* What a new explainer has to know again.  What was known of values is not. */
static bool
must_survive(const struct journal_entry *e)
{
	switch (e->what) {
	case JOURNAL_FORMAT:
	case JOURNAL_LEARN:
	case JOURNAL_WATCH:
	case JOURNAL_SLOT:
	case JOURNAL_READY:
	case JOURNAL_VALUES:
	case JOURNAL_UNSEEN:
	case JOURNAL_MAPPED:
	case JOURNAL_OBJECT:
	case JOURNAL_START:
	case JOURNAL_THREADS:
	case JOURNAL_COVERAGE:
	case JOURNAL_DAMAGE:
		return true;
	default:
		return false;
	}
}

/* It was read, and what it says reported; that it says it is to be learnt
   again. */
static void
make_learnt(struct journal_entry *e)
{
	if (e->what == JOURNAL_RECORD && e->value[0] == 0)
		e->what = JOURNAL_LEARN;
}

static bool
needs(void *arg, pid_t pid)
{
	const struct kept_session *kept = arg;

	return past_has(&kept->past, pid);
}

static void
forbid(void *arg, pid_t pid)
{
	struct kept_session *kept = arg;

	answers_forbid(&kept->box->answers, pid);
}

/* Each takes a descriptor. */
static bool
has_many_processes(const struct kept_session *kept)
{
	return kept->box->answers.n > kept->allowed_more;
}

/* Malloc'd; NULL: out of memory. */
static struct kept_log_use *
list_uses(const struct past *past)
{
	struct kept_log_use *use = calloc(past->n + 1, sizeof(*use));

	for (size_t i = 0; i < past->n && use != NULL; i++)
		use[i] = (struct kept_log_use){
			past->at[i]->time, past->at[i]->pid,
		};
	if (use == NULL || EX_ARRAY_SORT(use, past->n, time))
		return use;
	free(use);
	return NULL;
}

/* Who has ended has no hits any more that are not written: all that is in the log
   comes before those. */
static void
shrink_log(struct kept_session *kept)
{
	struct kept_log_use *use;

	if ((kept->log.len < LOG || kept->log.len < kept->log_more) &&
	    !has_many_processes(kept))
		return;
	if ((use = list_uses(&kept->past)) != NULL)
		kept_log_shrink(&kept->log, &(struct kept_log_calls){
			use, kept->past.n, needs, forbid, kept,
		});
	free(use);
	kept->log_more = 2 * kept->log.len;
	kept->allowed_more = 2 * kept->box->answers.n + PROCESSES;
}

/* Drop what is done with; what must survive, and comes before all that is
   waiting, goes into the log. */
static void
tidy(struct kept_session *kept)
{
	const size_t end = kept->end, read = kept->taken;
	bool waiting = false;
	size_t to = 0, size;

	kept->first = kept->taken = kept->written = 0;
	for (size_t at = 0; at < end; at += size) {
		struct journal_entry *e = entry_at(kept, at);
		bool keep = is_waiting(e);

		size = e->size;
		waiting = waiting || keep;
		if (at < read)
			make_learnt(e);
		if (!keep && at >= read)
			keep = !is_sample(e);
		else if (!keep && must_survive(e)) {
			keep = waiting;
			if (!waiting)
				buffer_put(&kept->log, (const char *)e, size);
		}
		if (keep) {
			memmove(kept->bytes + to, e, size);
			to += size;
		}
		if (at < read)
			kept->taken = to;
	}
	kept->end = to;
	shrink_log(kept);
}

static void
tidy_if_large(struct kept_session *kept)
{
	if (kept->asked == 0 && (kept->end > TIDY || has_many_processes(kept)))
		tidy(kept);
}

/* --- having it read --- */

/* In messages, where there is no memory for it. */
static void
send_bytes(struct kept_session *kept, const struct shared_memory *memory,
    size_t from, size_t to)
{
	struct box_message message = {.what = BOX_BYTES};

	for (size_t at = from; at < to; at += message.len) {
		const size_t left = to - at;

		message.len = left < BOX_BYTES_MAX ? (uint32_t)left :
		    BOX_BYTES_MAX;
		message.value[0] = at;
		message.value[1] = memory->size;
		memcpy(message.text, (const char *)memory->at + at,
		    message.len);
		(void)box_tell(kept->box, &message, -1);
	}
}

/* Have a part of some memory read. */
static void
bid(struct kept_session *kept, const struct shared_memory *memory, bool new,
    size_t from, size_t to)
{
	const struct box_message message = {
		.what = BOX_TAKE, .value = {from, to, memory->size},
	};

	if (memory->fd < 0)
		send_bytes(kept, memory, from, to);
	/* if it is dead already, this shows soon */
	(void)box_tell(kept->box, &message, new ? memory->fd : -1);
}

/* What this explainer calls the backtraces of before. */
static void
learn_numbers(struct kept_session *kept)
{
	const struct box_shared *shared = kept->box->shared;

	past_renumber(&kept->past);
	kept->counted = 0;
	for (size_t i = 0; i < kept->past.n; i++) {
		struct past_row *row = kept->past.at[i];
		const struct box_sample sample = shared->sample[row->stack.id];
		const struct box_hit hit =
		    shared->hit[sample.begun % BOX_SAMPLES_MAX];

		if (sample.number != row->stack.id ||
		    sample.begun >= EX_BEGUN_DROPPED ||
		    hit.begun != sample.begun)
			continue;
		(void)past_number(&kept->past, row, &hit);
		if (hit.begun > kept->counted)
			kept->counted = hit.begun;
	}
}

/* The part that was being read is: of the past, or of the journal.  False: there
   was none, or the message makes no sense. */
static bool
take_taken(struct kept_session *kept, const struct box_message *message)
{
	const bool behind = written_report_is_behind(&kept->report);
	struct session *s = kept->session;

	if (message->err > 0 || (kept->asked == 0 && kept->learnt.at == NULL))
		return false;
	if (kept->asked != 0) {
		if (message->value[0] > s->written)
			kept->box->deaths = 0;
		kept->reported = message->value[0];
		settle_all(kept, behind ? kept->report.hits : kept->reported);
		kept->taken = kept->asked;
		kept->asked = 0;
	} else {
		shared_memory_free(&kept->learnt);
		learn_numbers(kept);
	}
	forget_details(kept);
	session_note(s, message->err);
	if (s->last_hit < message->value[2])
		s->last_hit = message->value[2];
	s->full = (message->value[1] != 0 || s->until) && message->err == 0;
	return true;
}

/* False: the program's terminal would obey it. */
static bool
take_reply(struct kept_session *kept, const struct box_message *message)
{
	const size_t len = strlen(message->text);

	if (message->len != 0 ||
	    !visible_is_harmless(message->text, len, false))
		return false;
	memcpy(kept->reply, message->text, len + 1);
	kept->replied = message->value[0];
	return true;
}

/* Whether its hits are to be counted, and what an explainer calls it would be lost
   with that. */
static bool
is_early(const struct kept_session *kept, const struct wp_known_stack *stack)
{
	return stack->watch > 0 && !past_has_row(&kept->past, stack->watch - 1,
	    stack->stack);
}

/* False: one makes no sense. */
static bool
know_early(struct kept_session *kept)
{
	size_t n = 0;
	bool good = true;

	for (size_t i = 0; i < kept->nearly; i++) {
		if (is_early(kept, &kept->early[i]))
			kept->early[n++] = kept->early[i];
		else
			good = kept->know(kept->know_arg, &kept->early[i]) &&
			    good;
	}
	kept->nearly = n;
	return good;
}

/* What it maps is another by now. */
static void
forget_early(struct kept_session *kept, pid_t pid)
{
	size_t n = 0;

	for (size_t i = 0; i < kept->nearly; i++)
		if (kept->early[i].pid != pid)
			kept->early[n++] = kept->early[i];
	kept->nearly = n;
}

/* False: it makes no sense. */
static bool
take_known(struct kept_session *kept, const struct box_message *message)
{
	struct wp_known_stack stack;

	if (message->len != sizeof(stack) || kept->know == NULL)
		return false;
	memcpy(&stack, message->text, sizeof(stack));
	if (is_early(kept, &stack) && kept->nearly < EARLY_MAX) {
		kept->early[kept->nearly++] = stack;
		return true;
	}
	if (is_early(kept, &stack))
		stack.watch = 0;
	return kept->know(kept->know_arg, &stack);
}

static bool
take_forget(struct kept_session *kept, const struct box_message *message)
{
	if (kept->know == NULL || message->value[0] == 0 ||
	    message->value[0] > INT32_MAX)
		return false;
	forget_early(kept, (pid_t)message->value[0]);
	kept->forget(kept->know_arg, (pid_t)message->value[0]);
	return true;
}

/* ms that may still be waited; -1: for ever. */
static int
left(const struct kept_session *kept)
{
	const long now = wp_clock_ms();

	return kept->until == 0 ? -1 :
	    kept->until > now ? (int)(kept->until - now) : 0;
}

/* While it is asked something it is not kept waiting for who reads the report. */
static bool
take_report(struct kept_session *kept, const struct box_message *message)
{
	if (!written_report_take(&kept->report, kept->box, message,
	    kept->box->asking ? 0 : left(kept)))
		return false;
	if (kept->box->asking)
		written_report_answer(&kept->report, kept->box);
	return true;
}

/* False: it makes no sense. */
static bool
take(struct kept_session *kept, const struct box_message *message)
{
	switch (message->what) {
	case BOX_DETAILS:
		return take_details(kept, message);
	case BOX_REPORT:
		return take_report(kept, message);
	case BOX_KNOWN:
		return take_known(kept, message);
	case BOX_FORGET:
		return take_forget(kept, message);
	case BOX_REPLY:
		return take_reply(kept, message);
	case BOX_TAKEN:
		return take_taken(kept, message) && know_early(kept);
	case BOX_END:
		kept->ended = true;
		kept->status = (int)(message->value[0] & 255);
		return true;
	default:
		return false;
	}
}

/* Whether what it was to read is read, as far as that is waited for. */
static bool
is_read(const struct kept_session *kept)
{
	return kept->asked == 0 || (kept->hasty && kept->waiting == 0);
}

/* Go on with what its reader did not read.  0 or -EAGAIN: it still does not. */
static int
write_on(struct kept_session *kept)
{
	const bool owed = kept->report.owed;
	int err;

	if (!written_report_is_behind(&kept->report))
		return 0;
	err = written_report_go_on(&kept->report, kept->box, left(kept));
	if (err < 0 && err != -EAGAIN && !owed)	/* else its explainer says so */
		session_note(kept->session, err);
	return err == -EAGAIN ? err : 0;
}

/* Attend to it until it has read what it was to read, or all, or time is over.
   0, or as of box_hear_for. */
static int
attend(struct kept_session *kept)
{
	struct box_message message;
	int err;

	while ((err = write_on(kept)) == 0 && !kept->ended &&
	    (!is_read(kept) || kept->learnt.at != NULL)) {
		err = box_hear_for(kept->box, &message, left(kept));
		if (err == 0 && !take(kept, &message))
			err = -EPROTO;
		if (err < 0)
			break;
	}
	return err;
}

/* The same, to its end. */
static int
finish(struct kept_session *kept)
{
	const bool hasty = kept->hasty;
	int err;

	kept->hasty = false;
	err = attend(kept);
	kept->hasty = hasty;
	return err;
}

/* --- the next one --- */

static void
add(struct buffer *b, enum journal_what what, uint64_t value, const void *part,
    size_t len)
{
	struct journal_entry e = {
		.size = (uint32_t)journal_padded(sizeof(e) + len),
		.what = (uint16_t)what, .len = (uint32_t)len, .value = {value},
	};
	static const char zero[8];

	buffer_put(b, (const char *)&e, sizeof(e));
	buffer_put(b, part, len);
	buffer_put(b, zero, e.size - sizeof(e) - len);
}

static void
add_resume(struct kept_session *kept, struct buffer *b)
{
	const struct session *s = kept->session;
	const struct sieve_count *count;
	struct sieve_place place;
	struct journal_resume *it;
	size_t n, size;

	sieve_stand(s->sieve, &place, &count, &n);
	size = sizeof(*it) + n * sizeof(*count);
	if ((it = calloc(1, size)) == NULL) {
		b->failed = true;
		return;
	}
	*it = (struct journal_resume){
		.reported = s->reported, .rejected = s->rejected,
		.unchanged = s->unchanged, .thinned = s->thinned,
		.stray = s->stray, .unjudged = s->unjudged,
		.dropped = s->dropped, .place = place,
		.ncounts = (uint32_t)n,
	};
	if (n > 0)
		memcpy(it->count, count, n * sizeof(*count));
	add(b, JOURNAL_RESUME, 0, it, size);
	free(it);
}

static void
add_recall(struct buffer *b, const struct summary_row *row)
{
	const struct past_row *past = (const struct past_row *)row->stack;
	const size_t threads = row->nthreads * sizeof(*row->threads);
	const size_t head =
	    journal_padded(sizeof(struct journal_recall) + threads);
	struct journal_recall *recall = calloc(1, head + past->len);
	size_t at = b->len;

	if (recall == NULL) {
		b->failed = true;
		return;
	}
	recall->count = row->count;
	recall->first_seq = row->first_seq;
	recall->first = row->first;
	recall->last = row->last;
	recall->nthreads = row->nthreads;
	memcpy(recall->thread, row->threads, threads);
	memcpy((char *)recall + head, past->record, past->len);
	add(b, JOURNAL_RECALL, past->stack.id, recall, head + past->len);
	if (!b->failed)
		((struct journal_entry *)(void *)(b->bytes + at))->value[1] =
		    past->watch;
	free(recall);
}

/* The rows in the order of their first hits, malloc'd; NULL: out of memory. */
static struct summary_row *
rows_by_time(const struct kept_session *kept, size_t *n)
{
	const struct summary_row *rows;
	struct summary_row *sorted;

	*n = kept->past.summary == NULL ? 0 :
	    summary_rows(kept->past.summary, &rows);
	if ((sorted = calloc(*n + 1, sizeof(*sorted))) == NULL)
		return NULL;
	if (*n > 0)
		memcpy(sorted, rows, *n * sizeof(*sorted));
	if (EX_ARRAY_SORT(sorted, *n, first))
		return sorted;
	free(sorted);
	return NULL;
}

/* When a record was made that has to be learnt again; 0: that is not known, or it is
   another entry. */
static uint64_t
time_learnt(const struct journal_entry *e)
{
	return e->what == JOURNAL_LEARN ? e->value[1] : 0;
}

/* What was mapped, and who lived, at a hit may be otherwise now: each is recalled
   where it was. */
static void
make_past(struct kept_session *kept, struct buffer *b)
{
	const struct journal_entry *e;
	bool resumed = false;
	size_t n, i = 0;
	struct summary_row *rows = rows_by_time(kept, &n);

	if (rows == NULL) {
		b->failed = true;
		return;
	}
	for (size_t at = 0; at < kept->log.len; at += e->size) {
		e = (const void *)(kept->log.bytes + at);
		while (resumed && i < n && rows[i].first < time_learnt(e))
			add_recall(b, &rows[i++]);
		if (e->what == JOURNAL_START && !resumed) {
			resumed = true;
			add_resume(kept, b);
		}
		buffer_put(b, (const char *)e, e->size);
	}
	if (!resumed)
		add_resume(kept, b);
	while (i < n)
		add_recall(b, &rows[i++]);
	add(b, JOURNAL_MISSED, 0, NULL, 0);
	free(rows);
}

static struct journal_entry *
later_at(const struct kept_session *kept, size_t at)
{
	return (struct journal_entry *)(void *)(kept->later.bytes + at);
}

/* Tallies that are not read are in the past, as those that are. */
static void
drop_tallies(struct kept_session *kept)
{
	struct journal_entry *e;

	for (size_t at = kept->taken; at < kept->end; at += e->size)
		if ((e = entry_at(kept, at))->what == JOURNAL_TALLY)
			e->what = JOURNAL_NOTHING;
	for (size_t at = 0; at < kept->later.len; at += e->size)
		if ((e = later_at(kept, at))->what == JOURNAL_TALLY)
			e->what = JOURNAL_NOTHING;
}

/* Begin with an explainer that knows nothing yet: what there was before it, if
   anything, is to be read first.  0 or -errno. */
static int
begin_teaching(struct kept_session *kept)
{
	const struct box_message begin = {
		.what = BOX_BEGIN, .err = kept->report.begun,
		.value = {kept->report.hits, kept->report.screen.colour,
		    kept->report.screen.columns, kept->session->on_stderr},
	};
	struct buffer b = {0};
	int err;

	kept->taught = kept->box->starts;
	kept->box->may_be_plain = true;
	kept->given = false;
	kept->asked = 0;
	forget_details(kept);
	shared_memory_free(&kept->learnt);
	if (kept->taken < kept->written)
		kept->taken = kept->written;
	drop_tallies(kept);
	tidy(kept);
	kept->first = kept->taken = 0;
	(void)box_tell(kept->box, &begin, -1);
	if (kept->log.len == 0)
		return 0;
	make_past(kept, &b);
	err = b.failed ? -ENOMEM : shared_memory_make_readable(&kept->learnt,
	    "watchctl-past", b.len);
	if (err == 0) {
		memcpy(kept->learnt.at, b.bytes, b.len);
		bid(kept, &kept->learnt, true, 0, b.len);
	}
	buffer_free(&b);
	return err;
}

/* One has died.  False: there will be no other. */
static bool
survive(struct kept_session *kept, int err)
{
	/* it may have reported more than it has said */
	kept->session->last_hit = UINT64_MAX;
	/* and would have said when what it made known is to be forgotten */
	kept->nearly = 0;
	if (kept->know != NULL)
		kept->forget(kept->know_arg, 0);
	if (written_report_survive(&kept->report, kept->box, err))
		return true;
	kept->failed = true;
	session_note(kept->session, -ECONNRESET);
	return false;
}

/* Have what there is read.  0, or as of box_hear_for. */
static int
have_read(struct kept_session *kept)
{
	int err = kept->taught != kept->box->starts ?
	    begin_teaching(kept) : 0;

	if (err == 0)
		err = finish(kept);
	if (err < 0)
		return err;
	if (!kept->ended && kept->asked == 0 && kept->taken < kept->end) {
		kept->asked = kept->end;
		bid(kept, &kept->memory, !kept->given, kept->taken, kept->end);
		kept->given = true;
	}
	return attend(kept);
}

/* The next entry is made. */
static void
append(struct kept_session *kept, const struct journal_entry *e)
{
	kept->end += e->size;
	kept->waiting += is_waiting(e);
	kept->has_channels |= e->what == JOURNAL_CHANNEL_HIT;
}

static bool
has_room(const struct kept_session *kept, size_t size)
{
	return kept->end + size + MARGIN <= SIZE && kept->waiting <
	    (kept->has_channels ? BOX_CHANNEL_HITS_MAX : BOX_SAMPLES_MAX) / 2;
}

/* Samples that wait for others are not to wait any longer. */
static void
urge(struct kept_session *kept)
{
	struct journal_entry *e = entry_at(kept, kept->end);

	*e = (struct journal_entry){
		.size = sizeof(*e), .what = JOURNAL_FLUSH,
		.value = {UINT64_MAX},
	};
	append(kept, e);
}

/* All of the journal is read: put into it what it had no room for. */
static void
refill(struct kept_session *kept)
{
	size_t at = 0;

	if (kept->later.len == 0)
		return;
	tidy(kept);
	for (const struct journal_entry *e; at < kept->later.len &&
	    has_room(kept, (e = later_at(kept, at))->size); at += e->size) {
		memcpy(entry_at(kept, kept->end), e, e->size);
		append(kept, e);
	}
	kept->later.len -= at;
	memmove(kept->later.bytes, kept->later.bytes + at, kept->later.len);
	if (at == 0 && kept->urged) {
		kept->later.len = 0;
		session_note(kept->session, -ENOMEM);
	} else if (at == 0) {
		urge(kept);
	}
	if (kept->later.len == 0)
		buffer_free(&kept->later);
	kept->urged = at == 0;
}

/* Have all be read, but do not wait longer than this many ms (-1: as long as it
   takes).  False: it is not. */
static bool
exchange(struct kept_session *kept, long ms)
{
	int err;

	kept->until = ms < 0 ? 0 : wp_clock_ms() + ms;
	while (!kept->failed && !kept->ended && (kept->taken < kept->end ||
	    kept->later.len > 0 || written_report_is_behind(&kept->report))) {
		if (box_start(kept->box) < 0) {
			kept->failed = true;
			session_note(kept->session, -ECONNRESET);
			break;
		}
		if ((err = have_read(kept)) == -EAGAIN)
			return false;
		if (err < 0 && !survive(kept, err))
			break;
		if (err == 0 && kept->asked != 0)
			break;
		if (err == 0)
			refill(kept);
	}
	kept->since = 0;
	kept->box->answers.gone = false;
	return !kept->failed;
}

static bool
wait_for(struct kept_session *kept, long ms)
{
	if (kept->since == 0)
		kept->since = wp_clock_ms();
	return exchange(kept, ms);
}

static long
lesser(long a, long b)
{
	return a < b ? a : b;
}

/* Whether threads that are traced here do not wait for who does not read. */
static bool
is_not_read(const struct kept_session *kept)
{
	return kept->round != 0 && !kept->together &&
	    written_report_is_behind(&kept->report);
}

/* For how long, ms, threads may be kept waiting; -1: none waits.  When there is no
   room, threads are not to make hits as if there were.  Who does not read the
   report is not waited for a second time. */
static long
patience(const struct kept_session *kept)
{
	const long now = wp_clock_ms();
	long left = kept->due - now;

	if (kept->round == 0)
		return -1;
	if (is_not_read(kept) && kept->later.len < LATER_MAX)
		return 0;
	if (kept->together && kept->since != 0 && kept->later.len == 0)
		left = lesser(left, kept->since + PATIENCE - now);
	return left > 0 ? left : 0;
}

/* From then on no thread waits: what is found out of a process is not what was
   there at the hit. */
static bool
wait_a_while(struct kept_session *kept, long ms)
{
	if (wait_for(kept, ms))
		return true;
	kept->box->answers.gone = kept->round != 0;
	return false;
}

bool
kept_session_is_behind(const struct kept_session *kept)
{
	return !kept->failed && !kept->ended &&
	    (kept->since != 0 || kept->asked != 0);
}

void
kept_session_catch_up(struct kept_session *kept, int ms)
{
	if (is_not_read(kept))
		ms = 0;
	if (kept_session_is_behind(kept) && wait_for(kept, ms))
		tidy_if_large(kept);
}

/* --- journal.h --- */

static struct kept_session *
kept_of(struct journal *journal)
{
	return (struct kept_session *)journal;
}

/* False: there is none for as long as threads may be kept waiting. */
static bool
make_room(struct kept_session *kept, size_t size)
{
	for (int i = 0; i < 2 && kept->later.len == 0 &&
	    !has_room(kept, size); i++) {
		if (i > 0)
			urge(kept);
		if (!wait_a_while(kept, patience(kept)))
			return false;
		tidy(kept);
	}
	return kept->later.len == 0 && has_room(kept, size);
}

/* Children that are watched may be asked about. */
static void
allow_child(struct kept_session *kept, const void *record)
{
	struct wp_task_record task;

	memcpy(&task.header, record, sizeof(task.header));
	if (task.header.type != PERF_RECORD_FORK)
		return;
	memcpy(&task, record, sizeof(task));
	if (task.pid != task.ppid)
		answers_allow_child(&kept->box->answers, (pid_t)task.pid,
		    (pid_t)task.ppid);
}

/* A warning may come of having it read. */
static bool
is_room(struct kept_session *kept, const struct journal_entry *entry,
    size_t size)
{
	if (entry->what == JOURNAL_WARNING)
		return kept->later.len == 0 && kept->end + size <= SIZE;
	if (kept->later.len > 0 && !kept->failed)
		(void)wait_a_while(kept, patience(kept));
	return make_room(kept, size);
}

static void
put(struct journal *journal, const struct journal_entry *entry,
    const void *part, size_t len, const void *more, size_t more_len)
{
	struct kept_session *kept = kept_of(journal);
	const size_t size = journal_padded(sizeof(*entry) + len + more_len);
	const bool room = !kept->failed && is_room(kept, entry, size);
	struct buffer *later = &kept->later;
	struct journal_entry *e = NULL;

	if (room)
		e = entry_at(kept, kept->end);
	else if (!kept->failed && buffer_room(later, size))
		e = (void *)(later->bytes + later->len);
	if (e == NULL) {
		session_note(kept->session, -ENOMEM);
		return;
	}
	*e = *entry;
	e->size = (uint32_t)size;
	e->len = (uint32_t)(len + more_len);
	if (len > 0)
		memcpy(e->bytes, part, len);
	if (more_len > 0)
		memcpy(e->bytes + len, more, more_len);
	if (room)
		append(kept, e);
	else
		later->len += size;
	if ((entry->what == JOURNAL_RECORD || entry->what == JOURNAL_FORESEE) &&
	    kept->session->options->follow)
		allow_child(kept, part);
}

/* Whether nothing was put there but the flush itself, which then changes
   nothing. */
static bool
is_idle(const struct kept_session *kept)
{
	return kept->asked == 0 && kept->waiting == 0 &&
	    kept->later.len == 0 &&
	    kept->end - kept->taken == sizeof(struct journal_entry) &&
	    entry_at(kept, kept->taken)->what == JOURNAL_FLUSH &&
	    !top_is_due();
}

/* Nothing is due, and programs may want something else. */
static bool
is_no_hurry(const struct kept_session *kept, uint64_t now)
{
	return kept->hits_only && now == 0;
}

static bool
flush(struct journal *journal, uint64_t now)
{
	struct kept_session *kept = kept_of(journal);
	struct session *s = kept->session;

	kept->hasty = kept->has_channels;
	if (is_idle(kept))
		kept->end = kept->taken;
	else if (is_no_hurry(kept, now))
		(void)wait_for(kept, 0);
	else if (wait_a_while(kept, kept->round == 0 ? PATIENCE :
	    patience(kept)))
		tidy_if_large(kept);
	kept->hasty = false;
	return !s->full && s->err == 0;
}

static int
end(struct journal *journal)
{
	struct kept_session *kept = kept_of(journal);

	if (!exchange(kept, -1) || !kept->ended)
		return -ECONNRESET;
	return written_report_finish(&kept->report) < 0 ?
	    STATUS_OWN_FAILURE : kept->status;
}

void
kept_session_act(struct kept_session *kept,
    void (*act)(void *, const struct kept_hit *), void *arg)
{
	kept->act = act;
	kept->act_arg = arg;
}

void
kept_session_know(struct kept_session *kept,
    bool (*know)(void *, const struct wp_known_stack *),
    void (*forget)(void *, pid_t), void *arg)
{
	kept->know = know;
	kept->forget = forget;
	kept->know_arg = arg;
}

/* What a dead one had called a backtrace is known by the past alone.  What is not,
   for want of memory, or since its first hits are not settled, is lost. */
void
kept_session_tally(struct kept_session *kept,
    const struct wp_target_tally *tally, bool last)
{
	struct session *s = kept->session;
	const bool there = tally->watch < s->nwatches && past_tally(&kept->past,
	    s->watches[tally->watch], tally);

	if (last && there) {
		s->reported += tally->count;
		s->samples += tally->count;
	} else if (!last) {
		session_tally(s, tally);
	}
}

/* Whether an entry is of a hit that this thread does not wait for any longer. */
static bool
pass(struct journal_entry *e, pid_t tid)
{
	const bool passes = is_waiting(e) && e->tid == tid && !e->passed;

	e->passed = e->passed || passes;
	return passes;
}

bool
kept_session_pass(struct kept_session *kept, pid_t tid)
{
	struct journal_entry *e;
	bool any = false;

	for (size_t at = kept->first; kept->waiting > 0 && at < kept->end;
	    at += e->size) {
		e = entry_at(kept, at);
		any |= pass(e, tid);
	}
	for (size_t at = 0; at < kept->later.len; at += e->size) {
		e = later_at(kept, at);
		any |= pass(e, tid);
	}
	return any;
}

void
kept_session_round(struct kept_session *kept, bool together)
{
	const long now = wp_clock_ms();

	if (kept->round == 0 && kept->since != 0)
		kept->since = now;
	kept->together = together;
	kept->due = (kept->round != 0 ? kept->round : now) + PATIENCE;
	kept->round = now;
}

void
kept_session_excuse(struct kept_session *kept, long ms)
{
	if (kept->until != 0)
		kept->until += ms;
	if (kept->round != 0) {
		kept->due += ms;
		kept->round += ms;
	}
}

/* --- opening and closing --- */

/* What is being read is read on while a question is asked. */
static bool
take_other(struct box *box, const struct box_message *message)
{
	return take(box->keeper, message);
}

static void
release(struct box *box)
{
	struct kept_session *kept = box->keeper;

	written_report_answer(&kept->report, box);
}

static void
warn(struct box *box, const char *text)
{
	session_warn(box->warned, "%s", text);
}

int
kept_session_open(struct kept_session **out, struct session *session,
    struct box *box)
{
	struct kept_session *kept = calloc(1, sizeof(*kept));
	int err;

	*out = kept;
	if (kept == NULL)
		return complain("out of memory");
	kept->journal = (struct journal){put, flush, end};
	kept->learnt.fd = kept->learnt.id = -1;
	kept->session = session;
	kept->box = box;
	kept->report = (struct written_report){
		.output = &session->output, .screen = session->report.screen,
		.wrote = wrote,
	};
	if ((err = shared_memory_make_readable(&kept->memory,
	    "watchctl-journal", SIZE)) < 0)
		return complain_errno(-err, "memory for what is to be explained");
	kept->bytes = kept->memory.at;
	box->warn = warn;
	box->warned = session;
	box->other = take_other;
	box->release = release;
	box->keeper = kept;
	session->journal = &kept->journal;
	return 0;
}

void
kept_session_observe(struct kept_session *kept, void (*fn)(void *,
    const void *, const struct box_channel_hit *), void *arg, bool hits_only)
{
	kept->observe = fn;
	kept->observer = arg;
	kept->hits_only = hits_only;
}

const char *
kept_session_reply(const struct kept_session *kept)
{
	return kept->replied == kept->session->channel_hits ? kept->reply : "";
}

bool
kept_session_has_failed(const struct kept_session *kept)
{
	return kept->failed;
}

void
kept_session_close(struct kept_session *kept)
{
	if (kept == NULL)
		return;
	forget_details(kept);
	shared_memory_free(&kept->learnt);
	past_free(&kept->past);
	buffer_free(&kept->log);
	buffer_free(&kept->later);
	written_report_free(&kept->report);
	shared_memory_free(&kept->memory);
	free(kept);
}
