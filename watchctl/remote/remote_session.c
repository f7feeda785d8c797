/* remote_session: a session that explainers keep, one after another. */
#include "remote/remote_session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "broker/shared_memory.h"
#include "broker/written_report.h"
#include "remote/remote_entries.h"
#include "remote/remote_hits.h"
#include "remote/remote_resume.h"
#include "remote/remote_stacks.h"
#include "remote/past_hits.h"
#include "os/clock.h"
#include "top/top.h"
#include "util/complain.h"
#include "util/visible.h"

enum {
	PATIENCE = 2000,	/* ms that a stopped thread waits */
	LATER_MAX = 64 << 20,	/* bytes from which on it waits for the
				   report's reader */
};

struct remote_session {
	struct journal journal;		/* must be first */
	struct session *session;
	struct broker *broker;
	struct written_report report;
	struct remote_entries entries;	/* of the journal */
	struct past_hits past;
	struct remote_hits hits;
	struct remote_stacks stacks;
	unsigned taught;	/* the explainer that gets the past, as
				   counted by broker->starts */
	struct shared_memory learnt;	/* the past, while it is read, */
	bool given;		/* whether it has the journal's memory */
	uint64_t reported;  /* hits that were read, perhaps not written yet */
	long since;		/* ms, when it fell behind; 0: it is not */
	long until;		/* ms at which an exchange ends; 0: never */
	long round;		/* ms, start of the last round; 0: there are
				   no rounds, as no thread waits */
	long due;		/* ms until which threads may be kept waiting */
	bool together;		/* the time is for all that is behind */
	bool hasty;		/* only the reports of hits have to be out */
	bool hits_only;		/* only hits are waited for */
	uint64_t replied;	/* the last hit with a reply */
	char reply[BROKER_BYTES_MAX];
	bool failed;		/* there is no explainer, and will be none */
	bool ended;		/* the report is complete, */
	int status;		/* with this exit status */
};

static void
wrote(struct written_report *report, uint64_t hits)
{
	struct remote_session *remote =
	    (struct remote_session *)((char *)report -
	    offsetof(struct remote_session, report));

	remote_hits_settle(&remote->hits, hits > remote->reported ? hits :
	    remote->reported);
}

/* --- having it read --- */

/* Send the bytes in messages if there is no shared memory. */
static void
send_bytes(struct remote_session *remote, const struct shared_memory *memory,
    size_t from, size_t to)
{
	struct broker_message message = {.what = BROKER_BYTES};

	for (size_t at = from; at < to; at += message.len) {
		const size_t left = to - at;

		message.len = left < BROKER_BYTES_MAX ? (uint32_t)left :
		    BROKER_BYTES_MAX;
		message.value[0] = at;
		message.value[1] = memory->size;
		memcpy(message.text, (const char *)memory->at + at,
		    message.len);
		(void)broker_post(remote->broker, &message, -1);
	}
}

/* Have the explainer read a part of shared memory. */
static void
bid(struct remote_session *remote, const struct shared_memory *memory, bool new,
    size_t from, size_t to)
{
	const struct broker_message message = {
		.what = BROKER_TAKE, .value = {from, to, memory->size},
	};

	if (memory->fd < 0)
		send_bytes(remote, memory, from, to);
	/* if it has died, that will be noticed soon */
	(void)broker_post(remote->broker, &message, new ? memory->fd : -1);
}

/* A part of the past or of the journal has been read.  Returns false if there
   was none, or the message is invalid. */
static bool
take_taken(struct remote_session *remote, const struct broker_message *message)
{
	const bool behind = written_report_is_behind(&remote->report);
	struct remote_entries *entries = &remote->entries;
	struct session *s = remote->session;

	if (message->err > 0 ||
	    (entries->asked == 0 && remote->learnt.at == NULL))
		return false;
	if (entries->asked != 0) {
		if (message->value[0] > s->written)
			remote->broker->deaths = 0;
		remote->reported = message->value[0];
		remote_hits_settle(&remote->hits, behind ? remote->report.hits :
		    remote->reported);
		entries->taken = entries->asked;
		entries->asked = 0;
		remote->broker->task = 0;
	} else {
		shared_memory_free(&remote->learnt);
		remote_hits_renumber(&remote->hits);
	}
	remote_hits_forget_details(&remote->hits);
	session_note(s, message->err);
	if (s->last_hit < message->value[2])
		s->last_hit = message->value[2];
	s->full = (message->value[1] != 0 || s->until) && message->err == 0;
	return true;
}

/* Returns false if it has control characters, which would reach the program's
   terminal. */
static bool
take_reply(struct remote_session *remote, const struct broker_message *message)
{
	const size_t len = strlen(message->text);

	if (message->len != 0 ||
	    !visible_is_harmless(message->text, len, false))
		return false;
	memcpy(remote->reply, message->text, len + 1);
	remote->replied = message->value[0];
	return true;
}

/* ms that are left; -1: unlimited. */
static int
left(const struct remote_session *remote)
{
	const long now = wp_clock_ms();

	return remote->until == 0 ? -1 :
	    remote->until > now ? (int)(remote->until - now) : 0;
}

/* An explainer that has asked a question is not kept waiting for the report's
   reader. */
static bool
take_report(struct remote_session *remote, const struct broker_message *message)
{
	if (!written_report_take(&remote->report, remote->broker, message,
	    remote->broker->asking ? 0 : left(remote)))
		return false;
	if (remote->broker->asking)
		written_report_answer(&remote->report, remote->broker);
	return true;
}

/* Returns false if the message is invalid. */
static bool
take(struct remote_session *remote, const struct broker_message *message)
{
	switch (message->what) {
	case BROKER_DETAILS:
		return remote_hits_take_details(&remote->hits, message);
	case BROKER_REPORT:
		return take_report(remote, message);
	case BROKER_KNOWN:
		return remote_stacks_take(&remote->stacks, message);
	case BROKER_FORGET:
		return remote_stacks_take_forget(&remote->stacks, message);
	case BROKER_REPLY:
		return take_reply(remote, message);
	case BROKER_TAKEN:
		return take_taken(remote, message) &&
		    remote_stacks_go_on(&remote->stacks);
	case BROKER_END:
		remote->ended = true;
		remote->status = (int)(message->value[0] & 255);
		return true;
	default:
		return false;
	}
}

/* Whether it has read what it has to, as far as that is waited for. */
static bool
is_read(const struct remote_session *remote)
{
	return remote->entries.asked == 0 ||
	    (remote->hasty && remote->entries.waiting == 0);
}

/* Continue to write what the reader has not taken.  Returns 0, or -EAGAIN if it
   still does not. */
static int
write_on(struct remote_session *remote)
{
	const bool owed = remote->report.owed;
	int err;

	if (!written_report_is_behind(&remote->report))
		return 0;
	err = written_report_go_on(&remote->report, remote->broker,
	    left(remote));
	if (err < 0 && err != -EAGAIN && !owed)	/* otherwise its explainer
						   reports it */
		session_note(remote->session, err);
	return err == -EAGAIN ? err : 0;
}

/* Serve the explainer until it has read what it has to, or the time is over.
   Returns 0 or an error of broker_hear_for. */
static int
attend(struct remote_session *remote)
{
	struct broker_message message;
	int err;

	while ((err = write_on(remote)) == 0 && !remote->ended &&
	    (!is_read(remote) || remote->learnt.at != NULL)) {
		err = broker_hear_for(remote->broker, &message, left(remote));
		if (err == 0 && !take(remote, &message))
			err = -EPROTO;
		if (err < 0)
			break;
	}
	return err;
}

/* The same until everything is read. */
static int
finish(struct remote_session *remote)
{
	const bool hasty = remote->hasty;
	int err;

	remote->hasty = false;
	err = attend(remote);
	remote->hasty = hasty;
	return err;
}

/* --- the next one --- */

/* Forget what only the dead explainer could have continued. */
static void
forget_dead(struct remote_session *remote)
{
	/* it may have reported more than it said */
	remote->session->last_hit = UINT64_MAX;
	remote_stacks_died(&remote->stacks);
}

/* Start with a new explainer, which first has to read the past if there is one.
   Returns 0 or -errno. */
static int
begin_teaching(struct remote_session *remote)
{
	const struct broker_message begin = {
		.what = BROKER_BEGIN, .err = remote->report.begun,
		.value = {remote->report.hits, remote->report.screen.colour,
		    remote->report.screen.columns, remote->session->on_stderr},
	};
	struct buffer b = {0};
	int err;

	if (remote->taught != 0)	/* the previous one may have died of
					   a question */
		forget_dead(remote);
	remote->taught = remote->broker->starts;
	remote->broker->may_be_plain = true;
	remote->given = false;
	remote_hits_forget_details(&remote->hits);
	shared_memory_free(&remote->learnt);
	remote_entries_rewind(&remote->entries);
	(void)broker_post(remote->broker, &begin, -1);
	if (remote->entries.log.len == 0)
		return 0;
	remote_resume_put(&b, &remote->entries.log, remote->session,
	    &remote->past);
	err = b.failed ? -ENOMEM : shared_memory_make_readable(&remote->learnt,
	    "watchctl-past", b.len);
	if (err == 0) {
		memcpy(remote->learnt.at, b.bytes, b.len);
		bid(remote, &remote->learnt, true, 0, b.len);
	}
	buffer_free(&b);
	return err;
}

/* Write the complete pieces of the dead explainer; the next one continues after
   them.  Returns 0, or -EAGAIN if the reader does not read. */
static int
write_rest(struct remote_session *remote)
{
	written_report_drop(&remote->report);
	return write_on(remote);
}

/* An explainer has died.  Returns false if there will be no other. */
static bool
survive(struct remote_session *remote, int err)
{
	forget_dead(remote);
	if (written_report_survive(&remote->report, remote->broker, err))
		return true;
	remote->failed = true;
	session_note(remote->session, -ECONNRESET);
	return false;
}

/* Have everything read that is there.  Returns 0 or an error of
   broker_hear_for. */
static int
have_read(struct remote_session *remote)
{
	struct remote_entries *entries = &remote->entries;
	int err = 0;

	if (remote->taught != remote->broker->starts &&
	    (err = write_rest(remote)) == 0)
		err = begin_teaching(remote);
	if (err == 0)
		err = finish(remote);
	if (err < 0)
		return err;
	if (!remote->ended && entries->asked == 0 &&
	    entries->taken < entries->end) {
		entries->asked = entries->end;
		bid(remote, &entries->memory, !remote->given, entries->taken,
		    entries->end);
		remote->given = true;
	}
	return attend(remote);
}

/* Whether everything has been read and written. */
static bool
is_all_done(const struct remote_session *remote)
{
	const struct remote_entries *entries = &remote->entries;

	return remote->ended || (entries->taken == entries->end &&
	    entries->later.len == 0 &&
	    !written_report_is_behind(&remote->report));
}

/* Have everything read within ms (-1: however long it takes).  Returns whether
   it has. */
static bool
exchange(struct remote_session *remote, long ms)
{
	int err;

	remote->until = ms < 0 ? 0 : wp_clock_ms() + ms;
	while (!remote->failed && !is_all_done(remote)) {
		if (broker_start(remote->broker) < 0) {
			remote->failed = true;
			session_note(remote->session, -ECONNRESET);
			break;
		}
		if ((err = have_read(remote)) == -EAGAIN)
			return false;
		if (err < 0 && !survive(remote, err))
			break;
		if (err == 0 && remote->entries.asked != 0)
			break;
		if (err == 0 && !remote_entries_refill(&remote->entries))
			session_note(remote->session, -ENOMEM);
	}
	if (remote->failed && write_rest(remote) == -EAGAIN)
		return false;
	remote->since = 0;
	remote->broker->answers.gone = false;
	return !remote->failed;
}

static bool
wait_for(struct remote_session *remote, long ms)
{
	if (remote->since == 0)
		remote->since = wp_clock_ms();
	return exchange(remote, ms);
}

static long
lesser(long a, long b)
{
	return a < b ? a : b;
}

/* Whether threads are kept waiting only by a reader that does not read. */
static bool
is_not_read(const struct remote_session *remote)
{
	return remote->round != 0 && !remote->together &&
	    written_report_is_behind(&remote->report);
}

/* ms for which threads may be kept waiting, or -1 if none waits.  If there is
   no room, threads must wait, as they would go on making hits.  A report's
   reader that does not read is waited for only once. */
static long
patience(const struct remote_session *remote)
{
	const long now = wp_clock_ms();
	long left = remote->due - now;

	if (remote->round == 0)
		return -1;
	if (is_not_read(remote) && remote->entries.later.len < LATER_MAX)
		return 0;
	if (remote->together && remote->since != 0 &&
	    remote->entries.later.len == 0)
		left = lesser(left, remote->since + PATIENCE - now);
	return left > 0 ? left : 0;
}

/* Wait for the explainer for at most this time.  After that no thread waits, so
   what is read of a process may differ from what it was at the hit. */
static bool
wait_a_while(struct remote_session *remote, long ms)
{
	if (wait_for(remote, ms))
		return true;
	remote->broker->answers.gone = remote->round != 0;
	return false;
}

bool
remote_session_is_behind(const struct remote_session *remote)
{
	return !remote->failed && !remote->ended &&
	    (remote->since != 0 || remote->entries.asked != 0);
}

void
remote_session_catch_up(struct remote_session *remote, int ms)
{
	if (is_not_read(remote))
		ms = 0;
	if (remote_session_is_behind(remote) && wait_for(remote, ms))
		remote_entries_tidy_if_large(&remote->entries);
}

/* --- journal.h --- */

static struct remote_session *
remote_of(struct journal *journal)
{
	return (struct remote_session *)journal;
}

/* Returns false if there is none in the time for which threads may wait. */
static bool
make_room(struct remote_session *remote, size_t size)
{
	struct remote_entries *entries = &remote->entries;

	for (int i = 0; i < 2 && entries->later.len == 0 &&
	    !remote_entries_has_room(entries, size); i++) {
		if (i > 0)
			remote_entries_urge(entries);
		if (!wait_a_while(remote, patience(remote)))
			return false;
		remote_entries_tidy(entries);
	}
	return entries->later.len == 0 && remote_entries_has_room(entries,
	    size);
}

/* Children that are watched may be asked about. */
static void
allow_child(struct remote_session *remote, const void *record)
{
	struct wp_task_record task;

	memcpy(&task.header, record, sizeof(task.header));
	if (task.header.type != PERF_RECORD_FORK)
		return;
	memcpy(&task, record, sizeof(task));
	if (task.pid != task.ppid)
		answers_allow_child(&remote->broker->answers, (pid_t)task.pid,
		    (pid_t)task.ppid);
}

/* Having the journal read may add a warning. */
static bool
is_room(struct remote_session *remote, const struct journal_entry *entry,
    size_t size)
{
	const struct remote_entries *entries = &remote->entries;

	if (entry->what == JOURNAL_WARNING)
		return entries->later.len == 0 &&
		    entries->end + size <= entries->memory.size;
	if (entries->later.len > 0 && !remote->failed)
		(void)wait_a_while(remote, patience(remote));
	return make_room(remote, size);
}

static void
put(struct journal *journal, const struct journal_entry *entry,
    const void *part, size_t len, const void *more, size_t more_len)
{
	struct remote_session *remote = remote_of(journal);
	const size_t size = journal_padded(sizeof(*entry) + len + more_len);
	const bool room = !remote->failed && is_room(remote, entry, size);

	if (remote->failed || !remote_entries_put(&remote->entries, room, entry,
	    part, len, more, more_len))
		session_note(remote->session, -ENOMEM);
	else if ((entry->what == JOURNAL_RECORD ||
	    entry->what == JOURNAL_FORESEE) && remote->session->options->follow)
		allow_child(remote, part);
}

/* Whether only the flush itself is new, which then changes nothing. */
static bool
is_idle(const struct remote_session *remote)
{
	const struct remote_entries *entries = &remote->entries;

	return entries->asked == 0 && entries->waiting == 0 &&
	    entries->later.len == 0 &&
	    entries->end - entries->taken == sizeof(struct journal_entry) &&
	    remote_entry_at(entries, entries->taken)->what == JOURNAL_FLUSH &&
	    !top_is_due();
}

/* Nothing is due, and programs may want something else. */
static bool
is_no_hurry(const struct remote_session *remote, uint64_t now)
{
	return remote->hits_only && now == 0;
}

static bool
flush(struct journal *journal, uint64_t now)
{
	struct remote_session *remote = remote_of(journal);
	struct session *s = remote->session;

	remote->hasty = remote->entries.has_channels;
	if (is_idle(remote))
		remote->entries.end = remote->entries.taken;
	else if (is_no_hurry(remote, now))
		(void)wait_for(remote, 0);
	else if (wait_a_while(remote, remote->round == 0 ? PATIENCE :
	    patience(remote)))
		remote_entries_tidy_if_large(&remote->entries);
	remote->hasty = false;
	return !s->full && s->err == 0;
}

static int
end(struct journal *journal)
{
	struct remote_session *remote = remote_of(journal);

	if (!exchange(remote, -1) || !remote->ended)
		return -ECONNRESET;
	return written_report_finish(&remote->report) < 0 ?
	    STATUS_OWN_FAILURE : remote->status;
}

/* Backtraces that a dead explainer numbered are known only by its past hits.
   If one is not there, for lack of memory or because its first hit is not
   settled, its counts are lost. */
void
remote_session_tally(struct remote_session *remote,
    const struct wp_target_tally *tally, bool last)
{
	struct session *s = remote->session;
	const bool there = tally->watch < s->nwatches &&
	    past_hits_tally(&remote->past, s->watches[tally->watch], tally);

	if (last && there) {
		s->reported += tally->count;
		s->samples += tally->count;
	} else if (!last) {
		session_tally(s, tally);
	}
}

bool
remote_session_pass(struct remote_session *remote, pid_t tid)
{
	return remote_entries_pass(&remote->entries, tid);
}

void
remote_session_round(struct remote_session *remote, bool together)
{
	const long now = wp_clock_ms();

	if (remote->round == 0 && remote->since != 0)
		remote->since = now;
	remote->together = together;
	remote->due = (remote->round != 0 ? remote->round : now) + PATIENCE;
	remote->round = now;
}

void
remote_session_excuse(struct remote_session *remote, long ms)
{
	if (remote->until != 0)
		remote->until += ms;
	if (remote->round != 0) {
		remote->due += ms;
		remote->round += ms;
	}
}

/* --- opening and closing --- */

/* Take a message of the journal while the answer to a question is awaited. */
static bool
take_other(struct broker *broker, const struct broker_message *message)
{
	return take(broker->keeper, message);
}

static void
release(struct broker *broker)
{
	struct remote_session *remote = broker->keeper;

	written_report_answer(&remote->report, broker);
}

static void
warn(struct broker *broker, const char *text)
{
	session_warn(broker->warned, "%s", text);
}

int
remote_session_open(struct remote_session **out, struct session *session,
    struct broker *broker)
{
	struct remote_session *remote = calloc(1, sizeof(*remote));
	int err;

	*out = remote;
	if (remote == NULL)
		return complain("out of memory");
	remote->journal = (struct journal){put, flush, end};
	remote->learnt.fd = remote->learnt.id = -1;
	remote->session = session;
	remote->broker = broker;
	remote->report = (struct written_report){
		.output = &session->output, .screen = session->report.screen,
		.wrote = wrote,
	};
	remote->hits = (struct remote_hits){
		.session = session, .broker = broker, .entries =
		    &remote->entries,
		.past = &remote->past,
	};
	remote->stacks.past = &remote->past;
	if ((err = remote_entries_begin(&remote->entries, &remote->past,
	    &broker->answers)) < 0)
		return complain_errno(-err, "memory for what is to be "
		    "explained");
	broker->warn = warn;
	broker->warned = session;
	broker->other = take_other;
	broker->release = release;
	broker->keeper = remote;
	session->journal = &remote->journal;
	return 0;
}

void
remote_session_act(struct remote_session *remote,
    void (*act)(void *, const struct remote_hit *), void *arg)
{
	remote->hits.act = act;
	remote->hits.act_arg = arg;
}

void
remote_session_know(struct remote_session *remote,
    bool (*know)(void *, const struct wp_known_stack *),
    void (*forget)(void *, pid_t), void *arg)
{
	remote->stacks.know = know;
	remote->stacks.forget = forget;
	remote->stacks.arg = arg;
}

void
remote_session_observe(struct remote_session *remote, void (*fn)(void *,
    const void *, const struct broker_channel_hit *), void *arg, bool hits_only)
{
	remote->hits.observe = fn;
	remote->hits.observer = arg;
	remote->hits_only = hits_only;
}

const char *
remote_session_reply(const struct remote_session *remote)
{
	return remote->replied == remote->session->channel_hits ?
	    remote->reply : "";
}

bool
remote_session_has_failed(const struct remote_session *remote)
{
	return remote->failed;
}

void
remote_session_close(struct remote_session *remote)
{
	if (remote == NULL)
		return;
	remote_hits_forget_details(&remote->hits);
	shared_memory_free(&remote->learnt);
	past_hits_free(&remote->past);
	remote_entries_free(&remote->entries);
	written_report_free(&remote->report);
	free(remote);
}
