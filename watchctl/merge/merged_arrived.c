/* merged_arrived: recognizes hits and lines of a run that have arrived
   before. */
#include "merge/merged_private.h"

#include <string.h>

#include "base/array.h"

/* The first span that ends at seq - 1 or later. */
static size_t
span_of(const struct merged_run *run, uint64_t seq)
{
	const size_t n = run->nspans;

	/* it is almost always in or after the last one */
	if (n > 0 && run->span[n - 1].from <= seq)
		return run->span[n - 1].to < seq - 1 ? n : n - 1;
	return seq < 2 ? 0 : EX_ARRAY_UPTO(run->span, n, to, seq - 2);
}

static bool
add_span(struct merged *m, struct merged_run *run, size_t at, uint64_t seq,
    const char **why)
{
	*why = m->nspans == MERGED_SPANS ? "too many hits of its run are "
	    "missing to tell whether it arrived before" : merged_no_memory;
	if (m->nspans == MERGED_SPANS || !ex_array_room(&run->span,
	    run->nspans, 1, &run->spans_cap, sizeof(*run->span), SIZE_MAX))
		return false;
	memmove(run->span + at + 1, run->span + at,
	    (run->nspans - at) * sizeof(*run->span));
	m->moves += run->nspans - at;
	run->span[at] = (struct merged_span){seq, seq};
	run->nspans++;
	m->nspans++;
	return true;
}

/* Join a span with the next one if they are adjacent. */
static void
join_spans(struct merged *m, struct merged_run *run, size_t at)
{
	struct merged_span *span = run->span + at;

	if (at + 1 >= run->nspans || span[1].from - 1 != span->to)
		return;
	span->to = span[1].to;
	memmove(span + 1, span + 2, (run->nspans - at - 2) * sizeof(*span));
	m->moves += run->nspans - at - 2;
	run->nspans--;
	m->nspans--;
}

bool
merged_new_hit(struct merged *m, struct merged_run *run, uint64_t seq,
    const char **why)
{
	const size_t at = seq == 0 ? 0 : span_of(run, seq);
	struct merged_span *span = at < run->nspans ? &run->span[at] : NULL;

	*why = NULL;
	if (seq == 0 || seq == UINT64_MAX) {
		*why = "its number is not that of a hit";
		return false;
	}
	if (m->moves >= MERGED_MOVES && at + 2 < run->nspans) {
		*why = "too many hits are in another order than they had";
		return false;
	}
	if (span == NULL || span->from - 1 > seq) {
		if (!add_span(m, run, at, seq, why))
			return false;
	} else if (span->from - 1 == seq)
		span->from = seq;
	else if (span->to + 1 == seq)
		span->to = seq;
	else
		return false;
	join_spans(m, run, at);
	run->hits++;
	return true;
}

bool
merged_new_line(struct merged *m, struct merged_run *run, uint64_t hash,
    const char **why)
{
	*why = NULL;
	if (ex_table_get(&run->lines, hash) != NULL)
		return false;
	*why = m->nspans == MERGED_SPANS ? "there are too many lines to tell "
	    "whether it arrived before" : merged_no_memory;
	if (m->nspans == MERGED_SPANS || !ex_table_reserve(&run->lines, 1))
		return false;
	ex_table_put(&run->lines, hash, run);
	m->nspans++;
	*why = NULL;
	return true;
}
