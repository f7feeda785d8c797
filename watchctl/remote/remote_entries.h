/*
 * remote_entries: the entries of a remote session's journal, in memory that its
 * explainer maps and cannot write.
 *
 *	memory	[ settled, or state | not settled ... | to be read | free   ]
 *		0                   first             taken        end
 *	later	entries for which there was no room in it
 *	log	what was there before, and another explainer has to know
 */
#ifndef REMOTE_ENTRIES_H
#define REMOTE_ENTRIES_H

#include "broker/answers.h"
#include "broker/shared_memory.h"
#include "remote/past_hits.h"
#include "session/journal.h"

struct remote_entries {
	struct shared_memory memory;
	uint8_t *bytes;			/* the same, as bytes */
	size_t first, taken, end;
	size_t written;		/* everything before this is read, and in the
				   report; 0: not known */
	size_t asked;		/* it is being read up to here; 0: no reading is
				   in progress */
	size_t waiting;		/* samples that are not settled yet */
	bool has_channels;	/* it contains hits of channels */
	struct buffer later;
	bool urged;		/* urging waiting samples has brought no
				   result */
	struct buffer log;
	size_t log_more;	/* size at which the log is shrunk, bytes */
	size_t allowed_more;	/* or the number of processes that may be asked
				   about at which it is */
	const struct past_hits *past;
	struct answers *answers;
};

/* Create them, empty.  0 or -errno. */
int remote_entries_begin(struct remote_entries *, const struct past_hits *,
    struct answers *);
void remote_entries_free(struct remote_entries *);

static inline struct journal_entry *
remote_entry_at(const struct remote_entries *k, size_t at)
{
	return (struct journal_entry *)(void *)(k->bytes + at);
}

/* Whether an entry leads to hits; and whether their fate is still unknown. */
static inline bool
remote_entry_is_sample(const struct journal_entry *e)
{
	return (e->what == JOURNAL_RECORD && e->value[0] != 0) ||
	    e->what == JOURNAL_CHANNEL_HIT;
}

static inline bool
remote_entry_is_waiting(const struct journal_entry *e)
{
	return remote_entry_is_sample(e) && !e->settled;
}

/* Settle an entry: the outcome of its hit is known. */
static inline void
remote_entry_settle(struct remote_entries *k, struct journal_entry *e)
{
	e->settled = true;
	k->waiting--;
}

/* Whether the memory has room for another entry. */
bool remote_entries_has_room(const struct remote_entries *, size_t size);

/* Append an entry to memory or, without has_room, to `later'; `entry' describes
   it, the two parts are its bytes.  False: out of memory. */
bool remote_entries_put(struct remote_entries *, bool has_room,
    const struct journal_entry *entry, const void *part, size_t len,
    const void *more, size_t more_len);

/* Do not let samples wait for others any longer. */
void remote_entries_urge(struct remote_entries *);

/* Everything in memory is read: move there what is in `later'.  False: nothing
   can be added any more, and it is dropped. */
bool remote_entries_refill(struct remote_entries *);

/* Drop entries that are finished; those that a new explainer needs, and that
   precede all waiting ones, go into the log.  And the same only if there are
   many. */
void remote_entries_tidy(struct remote_entries *);
void remote_entries_tidy_if_large(struct remote_entries *);

/* Mark all as unread: a new explainer will read everything that it has to
   know.  Unread tallies count as past, like those that were read. */
void remote_entries_rewind(struct remote_entries *);

/* The hits of a thread do not keep it waiting any longer.  Result: whether
   there are any. */
bool remote_entries_pass(struct remote_entries *, pid_t tid);

#endif
