/*
 * remote_resume: the state before an explainer, as entries of a journal.
 */
#include "remote/remote_resume.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "session/journal.h"

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
add_resume(const struct session *s, struct buffer *b)
{
	const struct hit_filter_count *count;
	struct hit_filter_place place;
	struct journal_resume *it;
	size_t n, size;

	hit_filter_state(s->filter, &place, &count, &n);
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
	const struct past_hits_row *past =
	    (const struct past_hits_row *)row->stack;
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

/* The rows in the order of their first hits, allocated.  NULL if there is no
   memory. */
static struct summary_row *
rows_by_time(const struct past_hits *past, size_t *n)
{
	const struct summary_row *rows;
	struct summary_row *sorted;

	*n = past->summary == NULL ? 0 : summary_rows(past->summary, &rows);
	if ((sorted = calloc(*n + 1, sizeof(*sorted))) == NULL)
		return NULL;
	if (*n > 0)
		memcpy(sorted, rows, *n * sizeof(*sorted));
	if (EX_ARRAY_SORT(sorted, *n, first))
		return sorted;
	free(sorted);
	return NULL;
}

/* The time of a record that has to be learnt again; 0 if it is unknown, or for
   other entries. */
static uint64_t
time_learnt(const struct journal_entry *e)
{
	return e->what == JOURNAL_LEARN ? e->value[1] : 0;
}

/* Mappings and processes may have changed after a hit, so each hit is put at
   its place in the log. */
void
remote_resume_put(struct buffer *b, const struct buffer *log,
    const struct session *session, const struct past_hits *past)
{
	const struct journal_entry *e;
	bool resumed = false;
	size_t n, i = 0;
	struct summary_row *rows = rows_by_time(past, &n);

	if (rows == NULL) {
		b->failed = true;
		return;
	}
	for (size_t at = 0; at < log->len; at += e->size) {
		e = (const void *)(log->bytes + at);
		while (resumed && i < n && rows[i].first < time_learnt(e))
			add_recall(b, &rows[i++]);
		if (e->what == JOURNAL_START && !resumed) {
			resumed = true;
			add_resume(session, b);
		}
		buffer_put(b, (const char *)e, e->size);
	}
	if (!resumed)
		add_resume(session, b);
	while (i < n)
		add_recall(b, &rows[i++]);
	add(b, JOURNAL_MISSED, 0, NULL, 0);
	free(rows);
}
