/* report: what of the hits is written for certain. */
#include "report/report.h"

#include <stdlib.h>

#include "base/array.h"
#include "report/summary.h"
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
