/* kept_session: explainers, one after the other, that keep a session. */
#include "kept/kept_session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "box/shared_memory.h"
#include "box/written_report.h"
#include "kept/kept_entries.h"
#include "kept/kept_hits.h"
#include "kept/kept_resume.h"
#include "kept/kept_stacks.h"
#include "kept/past.h"
#include "os/clock.h"
#include "top/top.h"
#include "util/complain.h"
#include "util/visible.h"

enum {
	PATIENCE = 2000,	/* ms that a thread which is stopped waits */
	LATER_MAX = 64 << 20,	/* bytes from which on it does so for who reads
				   the report */
};

struct kept_session {
	struct journal journal;		/* first */
	struct session *session;
	struct box *box;
	struct written_report report;
	struct kept_entries entries;	/* of the journal */
	struct past past;
	struct kept_hits hits;
	struct kept_stacks stacks;
	unsigned taught;	/* which explainer is told the past, as of
				   box->starts; */
	struct shared_memory learnt;	/* that, while it reads it, */
	bool given;		/* and whether it has the journal's memory */
	uint64_t reported;	/* hits of what was read, perhaps not written */
	long since;		/* it is behind since then, ms; 0: it is not */
	long until;		/* ms: as long an exchange may wait; 0: for
				   ever */
	long round;		/* when the last round began, ms; 0: there are
				   none, since no thread waits */
	long due;		/* ms: until then threads may be kept waiting */
	bool together;		/* patience is with all that is behind */
	bool hasty;		/* it is enough that reports of hits are out */
	bool hits_only;		/* are waited for */
	uint64_t replied;	/* the last hit that has a reply: */
	char reply[BOX_BYTES_MAX];
	bool failed;		/* there is no explainer, and will be none */
	bool ended;		/* the report is at its end, */
	int status;		/* with this exit status */
};

static void
wrote(struct written_report *report, uint64_t hits)
{
	struct kept_session *kept = (struct kept_session *)((char *)report -
	    offsetof(struct kept_session, report));

	kept_hits_settle(&kept->hits, hits > kept->reported ? hits :
	    kept->reported);
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

/* The part that was being read is: of the past, or of the journal.  False:
   there was none, or the message makes no sense. */
static bool
take_taken(struct kept_session *kept, const struct box_message *message)
{
	const bool behind = written_report_is_behind(&kept->report);
	struct kept_entries *entries = &kept->entries;
	struct session *s = kept->session;

	if (message->err > 0 ||
	    (entries->asked == 0 && kept->learnt.at == NULL))
		return false;
	if (entries->asked != 0) {
		if (message->value[0] > s->written)
			kept->box->deaths = 0;
		kept->reported = message->value[0];
		kept_hits_settle(&kept->hits, behind ? kept->report.hits :
		    kept->reported);
		entries->taken = entries->asked;
		entries->asked = 0;
	} else {
		shared_memory_free(&kept->learnt);
		kept_hits_renumber(&kept->hits);
	}
	kept_hits_forget_details(&kept->hits);
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

/* ms that may still be waited; -1: for ever. */
static int
left(const struct kept_session *kept)
{
	const long now = wp_clock_ms();

	return kept->until == 0 ? -1 :
	    kept->until > now ? (int)(kept->until - now) : 0;
}

/* While it is asked something it is not kept waiting for who reads the
   report. */
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
		return kept_hits_take_details(&kept->hits, message);
	case BOX_REPORT:
		return take_report(kept, message);
	case BOX_KNOWN:
		return kept_stacks_take(&kept->stacks, message);
	case BOX_FORGET:
		return kept_stacks_take_forget(&kept->stacks, message);
	case BOX_REPLY:
		return take_reply(kept, message);
	case BOX_TAKEN:
		return take_taken(kept, message) &&
		    kept_stacks_go_on(&kept->stacks);
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
	return kept->entries.asked == 0 ||
	    (kept->hasty && kept->entries.waiting == 0);
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
	kept_hits_forget_details(&kept->hits);
	shared_memory_free(&kept->learnt);
	kept_entries_rewind(&kept->entries);
	(void)box_tell(kept->box, &begin, -1);
	if (kept->entries.log.len == 0)
		return 0;
	kept_resume_put(&b, &kept->entries.log, kept->session, &kept->past);
	err = b.failed ? -ENOMEM : shared_memory_make_readable(&kept->learnt,
	    "watchctl-past", b.len);
	if (err == 0) {
		memcpy(kept->learnt.at, b.bytes, b.len);
		bid(kept, &kept->learnt, true, 0, b.len);
	}
	buffer_free(&b);
	return err;
}

/* Write what the one that has died had made whole: the next begins behind that.
   0; or -EAGAIN: who reads it does not. */
static int
write_rest(struct kept_session *kept)
{
	written_report_drop(&kept->report);
	return write_on(kept);
}

/* One has died.  False: there will be no other. */
static bool
survive(struct kept_session *kept, int err)
{
	/* it may have reported more than it has said */
	kept->session->last_hit = UINT64_MAX;
	kept_stacks_died(&kept->stacks);
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
	struct kept_entries *entries = &kept->entries;
	int err = 0;

	if (kept->taught != kept->box->starts &&
	    (err = write_rest(kept)) == 0)
		err = begin_teaching(kept);
	if (err == 0)
		err = finish(kept);
	if (err < 0)
		return err;
	if (!kept->ended && entries->asked == 0 &&
	    entries->taken < entries->end) {
		entries->asked = entries->end;
		bid(kept, &entries->memory, !kept->given, entries->taken,
		    entries->end);
		kept->given = true;
	}
	return attend(kept);
}

/* Whether all of it is read, and written. */
static bool
is_all_done(const struct kept_session *kept)
{
	const struct kept_entries *entries = &kept->entries;

	return kept->ended || (entries->taken == entries->end &&
	    entries->later.len == 0 &&
	    !written_report_is_behind(&kept->report));
}

/* Have all be read, but do not wait longer than this many ms (-1: as long as it
   takes).  False: it is not. */
static bool
exchange(struct kept_session *kept, long ms)
{
	int err;

	kept->until = ms < 0 ? 0 : wp_clock_ms() + ms;
	while (!kept->failed && !is_all_done(kept)) {
		if (box_start(kept->box) < 0) {
			kept->failed = true;
			session_note(kept->session, -ECONNRESET);
			break;
		}
		if ((err = have_read(kept)) == -EAGAIN)
			return false;
		if (err < 0 && !survive(kept, err))
			break;
		if (err == 0 && kept->entries.asked != 0)
			break;
		if (err == 0 && !kept_entries_refill(&kept->entries))
			session_note(kept->session, -ENOMEM);
	}
	if (kept->failed && write_rest(kept) == -EAGAIN)
		return false;
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

/* For how long, ms, threads may be kept waiting; -1: none waits.  When there is
   no room, threads are not to make hits as if there were.  Who does not read
   the report is not waited for a second time. */
static long
patience(const struct kept_session *kept)
{
	const long now = wp_clock_ms();
	long left = kept->due - now;

	if (kept->round == 0)
		return -1;
	if (is_not_read(kept) && kept->entries.later.len < LATER_MAX)
		return 0;
	if (kept->together && kept->since != 0 && kept->entries.later.len == 0)
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
	    (kept->since != 0 || kept->entries.asked != 0);
}

void
kept_session_catch_up(struct kept_session *kept, int ms)
{
	if (is_not_read(kept))
		ms = 0;
	if (kept_session_is_behind(kept) && wait_for(kept, ms))
		kept_entries_tidy_if_large(&kept->entries);
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
	struct kept_entries *entries = &kept->entries;

	for (int i = 0; i < 2 && entries->later.len == 0 &&
	    !kept_entries_has_room(entries, size); i++) {
		if (i > 0)
			kept_entries_urge(entries);
		if (!wait_a_while(kept, patience(kept)))
			return false;
		kept_entries_tidy(entries);
	}
	return entries->later.len == 0 && kept_entries_has_room(entries, size);
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
	const struct kept_entries *entries = &kept->entries;

	if (entry->what == JOURNAL_WARNING)
		return entries->later.len == 0 &&
		    entries->end + size <= entries->memory.size;
	if (entries->later.len > 0 && !kept->failed)
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

	if (kept->failed || !kept_entries_put(&kept->entries, room, entry, part,
	    len, more, more_len))
		session_note(kept->session, -ENOMEM);
	else if ((entry->what == JOURNAL_RECORD ||
	    entry->what == JOURNAL_FORESEE) && kept->session->options->follow)
		allow_child(kept, part);
}

/* Whether nothing was put there but the flush itself, which then changes
   nothing. */
static bool
is_idle(const struct kept_session *kept)
{
	const struct kept_entries *entries = &kept->entries;

	return entries->asked == 0 && entries->waiting == 0 &&
	    entries->later.len == 0 &&
	    entries->end - entries->taken == sizeof(struct journal_entry) &&
	    kept_entry_at(entries, entries->taken)->what == JOURNAL_FLUSH &&
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

	kept->hasty = kept->entries.has_channels;
	if (is_idle(kept))
		kept->entries.end = kept->entries.taken;
	else if (is_no_hurry(kept, now))
		(void)wait_for(kept, 0);
	else if (wait_a_while(kept, kept->round == 0 ? PATIENCE :
	    patience(kept)))
		kept_entries_tidy_if_large(&kept->entries);
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

/* What a dead one had called a backtrace is known by the past alone.  What is
   not, for want of memory, or since its first hits are not settled, is lost. */
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

bool
kept_session_pass(struct kept_session *kept, pid_t tid)
{
	return kept_entries_pass(&kept->entries, tid);
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
	kept->hits = (struct kept_hits){
		.session = session, .box = box, .entries = &kept->entries,
		.past = &kept->past,
	};
	kept->stacks.past = &kept->past;
	if ((err = kept_entries_begin(&kept->entries, &kept->past,
	    &box->answers)) < 0)
		return complain_errno(-err, "memory for what is to be "
		    "explained");
	box->warn = warn;
	box->warned = session;
	box->other = take_other;
	box->release = release;
	box->keeper = kept;
	session->journal = &kept->journal;
	return 0;
}

void
kept_session_act(struct kept_session *kept,
    void (*act)(void *, const struct kept_hit *), void *arg)
{
	kept->hits.act = act;
	kept->hits.act_arg = arg;
}

void
kept_session_know(struct kept_session *kept,
    bool (*know)(void *, const struct wp_known_stack *),
    void (*forget)(void *, pid_t), void *arg)
{
	kept->stacks.know = know;
	kept->stacks.forget = forget;
	kept->stacks.arg = arg;
}

void
kept_session_observe(struct kept_session *kept, void (*fn)(void *,
    const void *, const struct box_channel_hit *), void *arg, bool hits_only)
{
	kept->hits.observe = fn;
	kept->hits.observer = arg;
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
	kept_hits_forget_details(&kept->hits);
	shared_memory_free(&kept->learnt);
	past_free(&kept->past);
	kept_entries_free(&kept->entries);
	written_report_free(&kept->report);
	free(kept);
}
