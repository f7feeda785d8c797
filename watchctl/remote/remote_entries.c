/* remote_entries: the kept entries of a journal, and their memory. */
#include "remote/remote_entries.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "remote/remote_log.h"

enum {
	SIZE = 16 << 20,	/* bytes of a journal */
	MARGIN = 4096,		/* reserved for entries that make room */
	LOG = 256 << 10,	/* bytes of a log */
	PROCESSES = 64,
	TIDY = 2 << 20,		/* bytes from which on it is compacted */
};

/* Whether a new explainer needs the entry.  What was known of values is
   lost. */
static bool
must_survive(const struct journal_entry *e)
{
	switch (e->what) {
	case JOURNAL_FORMAT:
	case JOURNAL_IDS:
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

/* The entry was read and reported; a new explainer only learns from it. */
static void
make_learnt(struct journal_entry *e)
{
	if (e->what == JOURNAL_RECORD && e->value[0] == 0)
		e->what = JOURNAL_LEARN;
}

static bool
needs(void *arg, pid_t pid)
{
	const struct remote_entries *k = arg;

	return past_hits_has(k->past, pid);
}

static void
forbid(void *arg, pid_t pid)
{
	struct remote_entries *k = arg;

	answers_forbid(k->answers, pid);
}

/* Each process takes a descriptor. */
static bool
has_many_processes(const struct remote_entries *k)
{
	return k->answers->n > k->allowed_more;
}

/* Allocated; NULL if there is no memory. */
static struct remote_log_use *
list_uses(const struct past_hits *past)
{
	struct remote_log_use *use = calloc(past->n + 1, sizeof(*use));

	for (size_t i = 0; i < past->n && use != NULL; i++)
		use[i] = (struct remote_log_use){
			past->at[i]->time, past->at[i]->pid,
		};
	if (use == NULL || EX_ARRAY_SORT(use, past->n, time))
		return use;
	free(use);
	return NULL;
}

/* All entries in the log are older than the hits that are not written, so a
   process that has ended has no more hits to come. */
static void
shrink_log(struct remote_entries *k)
{
	struct remote_log_use *use;

	if ((k->log.len < LOG || k->log.len < k->log_more) &&
	    !has_many_processes(k))
		return;
	if ((use = list_uses(k->past)) != NULL)
		remote_log_shrink(&k->log, &(struct remote_log_calls){
			use, k->past->n, needs, forbid, k,
		});
	free(use);
	k->log_more = 2 * k->log.len;
	k->allowed_more = 2 * k->answers->n + PROCESSES;
}

void
remote_entries_tidy(struct remote_entries *k)
{
	const size_t end = k->end, read = k->taken;
	bool waiting = false;
	size_t to = 0, size;

	k->first = k->taken = k->written = 0;
	for (size_t at = 0; at < end; at += size) {
		struct journal_entry *e = remote_entry_at(k, at);
		bool keep = remote_entry_is_waiting(e);

		size = e->size;
		waiting = waiting || keep;
		if (at < read)
			make_learnt(e);
		if (!keep && at >= read)
			keep = !remote_entry_is_sample(e);
		else if (!keep && must_survive(e)) {
			keep = waiting;
			if (!waiting)
				buffer_put(&k->log, (const char *)e, size);
		}
		if (keep) {
			memmove(k->bytes + to, e, size);
			to += size;
		}
		if (at < read)
			k->taken = to;
	}
	k->end = to;
	shrink_log(k);
}

void
remote_entries_tidy_if_large(struct remote_entries *k)
{
	if (k->asked == 0 && (k->end > TIDY || has_many_processes(k)))
		remote_entries_tidy(k);
}

static struct journal_entry *
later_at(const struct remote_entries *k, size_t at)
{
	return (struct journal_entry *)(void *)(k->later.bytes + at);
}

static void
drop_tallies(struct remote_entries *k)
{
	struct journal_entry *e;

	for (size_t at = k->taken; at < k->end; at += e->size)
		if ((e = remote_entry_at(k, at))->what == JOURNAL_TALLY)
			e->what = JOURNAL_NOTHING;
	for (size_t at = 0; at < k->later.len; at += e->size)
		if ((e = later_at(k, at))->what == JOURNAL_TALLY)
			e->what = JOURNAL_NOTHING;
}

void
remote_entries_rewind(struct remote_entries *k)
{
	k->asked = 0;
	if (k->taken < k->written)
		k->taken = k->written;
	drop_tallies(k);
	remote_entries_tidy(k);
	k->first = k->taken = 0;
}

/* Append the entry just made. */
static void
append(struct remote_entries *k, const struct journal_entry *e)
{
	k->end += e->size;
	k->waiting += remote_entry_is_waiting(e);
	k->has_channels |= e->what == JOURNAL_CHANNEL_HIT;
}

bool
remote_entries_has_room(const struct remote_entries *k, size_t size)
{
	return k->end + size + MARGIN <= SIZE && k->waiting <
	    (k->has_channels ? BROKER_CHANNEL_HITS_MAX :
	    BROKER_SAMPLES_MAX) / 2;
}

void
remote_entries_urge(struct remote_entries *k)
{
	struct journal_entry *e = remote_entry_at(k, k->end);

	*e = (struct journal_entry){
		.size = sizeof(*e), .what = JOURNAL_FLUSH,
		.value = {UINT64_MAX},
	};
	append(k, e);
}

bool
remote_entries_refill(struct remote_entries *k)
{
	bool stuck;
	size_t at = 0;

	if (k->later.len == 0)
		return true;
	remote_entries_tidy(k);
	for (const struct journal_entry *e; at < k->later.len &&
	    remote_entries_has_room(k, (e = later_at(k, at))->size);
	    at += e->size) {
		memcpy(remote_entry_at(k, k->end), e, e->size);
		append(k, e);
	}
	k->later.len -= at;
	memmove(k->later.bytes, k->later.bytes + at, k->later.len);
	stuck = at == 0 && k->urged;
	if (stuck)
		k->later.len = 0;
	else if (at == 0)
		remote_entries_urge(k);
	if (k->later.len == 0)
		buffer_free(&k->later);
	k->urged = at == 0;
	return !stuck;
}

bool
remote_entries_put(struct remote_entries *k, bool has_room,
    const struct journal_entry *entry, const void *part, size_t len,
    const void *more, size_t more_len)
{
	const size_t size = journal_padded(sizeof(*entry) + len + more_len);
	struct journal_entry *e;

	if (has_room)
		e = remote_entry_at(k, k->end);
	else if (buffer_room(&k->later, size))
		e = later_at(k, k->later.len);
	else
		return false;
	*e = *entry;
	e->size = (uint32_t)size;
	e->len = (uint32_t)(len + more_len);
	if (len > 0)
		memcpy(e->bytes, part, len);
	if (more_len > 0)
		memcpy(e->bytes + len, more, more_len);
	if (has_room)
		append(k, e);
	else
		k->later.len += size;
	return true;
}

/* Whether the entry is a hit that its thread no longer waits for. */
static bool
pass(struct journal_entry *e, pid_t tid)
{
	const bool passes = remote_entry_is_waiting(e) && e->tid == tid &&
	    !e->passed;

	e->passed = e->passed || passes;
	return passes;
}

bool
remote_entries_pass(struct remote_entries *k, pid_t tid)
{
	struct journal_entry *e;
	bool any = false;

	for (size_t at = k->first; k->waiting > 0 && at < k->end;
	    at += e->size) {
		e = remote_entry_at(k, at);
		any |= pass(e, tid);
	}
	for (size_t at = 0; at < k->later.len; at += e->size) {
		e = later_at(k, at);
		any |= pass(e, tid);
	}
	return any;
}

int
remote_entries_begin(struct remote_entries *k, const struct past_hits *past,
    struct answers *answers)
{
	const int err = shared_memory_make_readable(&k->memory,
	    "watchctl-journal", SIZE);

	k->bytes = k->memory.at;
	k->past = past;
	k->answers = answers;
	return err;
}

void
remote_entries_free(struct remote_entries *k)
{
	buffer_free(&k->log);
	buffer_free(&k->later);
	shared_memory_free(&k->memory);
}
