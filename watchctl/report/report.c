/* report: counts the hits that are certainly written. */
#include "report/report.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "report/summary.h"
#include "report/value_range.h"
#include "util/buffer.h"

void
report_hit_ends(struct report *r, const struct buffer *b)
{
	if (ex_array_room(&r->ends, r->nends, 1, &r->cap, sizeof(*r->ends),
	    SIZE_MAX))
		r->ends[r->nends++] = b->len;
	else
		r->unplaced++;
}

int
report_write(struct report *r, struct buffer *b)
{
	const int err = buffer_write(b, r->out);

	for (size_t i = 0; i < r->nends; i++)
		r->written += r->ends[i] <= b->written;
	if (err == 0)
		r->written += r->unplaced;
	r->nends = 0;
	r->unplaced = 0;
	return err;
}

/* At the end the buffer grows instead, as long as there is memory. */
int
report_write_full(struct report *r, struct buffer *b)
{
	if (b->len < REPORT_WRITE_AT || (r->ending &&
	    b->len < REPORT_END_WRITE_AT && buffer_grow(b, REPORT_WRITE_AT)))
		return 0;
	b->failed = false;
	return report_write(r, b);
}

void
report_done(struct report *r)
{
	summary_free(r->summary);
	free(r->ends);
	r->summary = NULL;
	r->ends = NULL;
	r->nends = r->cap = 0;
	r->own = NULL;
}

/* Values that another process has counted, or for which there was no memory,
   are not known. */
int
report_count(struct report *r, const struct ex_hit *hit)
{
	struct summary_row *row;
	int err = summary_add(r->summary, hit, &row);

	if (err < 0)
		return err;
	if (row->values == NULL)
		row->values = calloc(1, sizeof(*row->values));
	if (row->values != NULL && hit->time < row->last)
		value_range_add_late(row->values, hit);
	else if (row->values != NULL)
		value_range_add(row->values, hit, row->count == 1);
	return 0;
}

int
report_tally(struct report *r, const struct ex_hit *hit,
    const struct wp_target_tally *tally)
{
	struct summary_row *row = summary_row_of(r->summary, hit);
	struct summary_row past = {
		.count = tally->count, .first_seq = hit->seq,
		.first = tally->first, .last = tally->last,
		.threads = &tally->tid, .nthreads = 1,
	};
	enum value_range_ends ends = 0;

	if (row == NULL)
		return -ENOMEM;
	if (row->count > 0)
		past.first_seq = row->first_seq;
	if (row->count == 0 || tally->first < row->first)
		ends |= VALUE_RANGE_FIRST;
	if (row->count == 0 || tally->last >= row->last)
		ends |= VALUE_RANGE_LAST;
	if (row->values == NULL)
		row->values = calloc(1, sizeof(*row->values));
	if (row->values != NULL)
		value_range_tally(row->values, hit, tally, row->count == 0,
		    ends);
	return summary_recall(r->summary, hit, &past);
}

void
report_counted(struct report *r)
{
	const struct summary_row *rows;
	const size_t n = summary_rows(r->summary, &rows);

	r->written = 0;
	for (size_t i = 0; i < n; i++)
		r->written += rows[i].count;
}

int
report_ended(struct report *r, const struct report_end *end, int put,
    int flushed)
{
	if (end != NULL && r->summary_only && put == 0 && flushed == 0)
		report_counted(r);
	return put != 0 ? put : flushed;
}
