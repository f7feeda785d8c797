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
	uint8_t *bytes;			/* in it */
	size_t first, taken, end;
	size_t written;		/* what is before it is read, and in the report;
				   0: that is not known */
	size_t asked;		/* it is being read up to here; 0: it is not */
	size_t waiting;		/* samples that are not settled */
	bool has_channels;	/* there are hits of channels */
	struct buffer later;
	bool urged;		/* none came of urging those that wait */
	struct buffer log;
	size_t log_more;	/* so large it is made smaller, bytes, */
	size_t allowed_more;	/* or when so many processes may be asked
				   about */
	const struct past_hits *past;
	struct answers *answers;
};

/* Make them empty.  0 or -errno. */
int remote_entries_begin(struct remote_entries *, const struct past_hits *,
    struct answers *);
void remote_entries_free(struct remote_entries *);

static inline struct journal_entry *
remote_entry_at(const struct remote_entries *k, size_t at)
{
	return (struct journal_entry *)(void *)(k->bytes + at);
}

/* Whether hits come of it; and whether it is not known what became of them. */
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

/* It is known now. */
static inline void
remote_entry_settle(struct remote_entries *k, struct journal_entry *e)
{
	e->settled = true;
	k->waiting--;
}

/* Whether there is room for one more in memory. */
bool remote_entries_has_room(const struct remote_entries *, size_t size);

/* Put one there, or where there is no room for it yet; `entry' says what it is,
   and its bytes are what follows.  False: out of memory. */
bool remote_entries_put(struct remote_entries *, bool has_room,
    const struct journal_entry *entry, const void *part, size_t len,
    const void *more, size_t more_len);

/* Samples that wait for others are not to wait any longer. */
void remote_entries_urge(struct remote_entries *);

/* All that is in memory is read: put there what there was no room for.  False:
   no more can be, and it is dropped. */
bool remote_entries_refill(struct remote_entries *);

/* Drop what is done with; what must survive, and comes before all that is
   waiting, goes into the log.  The same if it is much. */
void remote_entries_tidy(struct remote_entries *);
void remote_entries_tidy_if_large(struct remote_entries *);

/* Nothing is read: another explainer will read all that it has to know.
   Tallies that were not read are in the past, as those that were. */
void remote_entries_rewind(struct remote_entries *);

/* Hits of a thread do not keep it waiting any longer.  Whether there are
   any. */
bool remote_entries_pass(struct remote_entries *, pid_t tid);

#endif
