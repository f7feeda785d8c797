/* report_top: the frames of the table, followed by a text summary. */

#include "os/clock.h"
#include "report/report.h"
#include "report/summary.h"
#include "text/text.h"
#include "report/value_range.h"
#include "text/writers.h"
#include "top/top.h"

enum { WRITERS_MAX = 200, EVERY_MS = 450 };

static long last_frame;		/* of wp_clock_ms: a process has one report of
				   this form */

/* The backtrace of a writer that hit last. */
static const struct summary_row *
latest(const struct writer *w)
{
	const struct summary_row *row = w->of[0];

	for (size_t i = 1; i < w->n; i++)
		if (w->of[i]->last > row->last)
			row = w->of[i];
	return row;
}

/* The number by which a writer is recognized from frame to frame. */
static uint64_t
first_seq(const struct writer *w)
{
	uint64_t seq = w->row.first_seq;

	for (size_t i = 0; i < w->n; i++)
		if (w->of[i]->first_seq < seq)
			seq = w->of[i]->first_seq;
	return seq;
}

static void
put_writer(struct report *r, struct buffer *b, const struct writer *w)
{
	const struct summary_row *row = latest(w);

	buffer_printf(b, "\t%llu\t%llu\t%u\t", (unsigned long long)
	    first_seq(w), (unsigned long long)w->row.count, w->row.nthreads);
	if (row->values != NULL && row->values->last.known)
		value_range_put(b, &row->values->last);
	buffer_puts(b, "\t");
	text_put_where(r->own, b, &w->row);
	buffer_puts(b, "\t");
	text_put_watch(b, w->row.watch);
	buffer_puts(b, "\n");
}

static int
put_frame(struct report *r)
{
	const struct summary_row *rows;
	const size_t n = summary_rows(r->summary, &rows);
	struct writers all;
	struct buffer b = {0};
	int err = writers_join(&all, rows, n, false);
	uint64_t hits = 0;

	for (size_t i = 0; i < n; i++)
		hits += rows[i].count;
	buffer_printf(&b, "\t%llu\n", (unsigned long long)hits);
	for (size_t i = 0; err == 0 && i < all.n && i < WRITERS_MAX; i++)
		put_writer(r, &b, &all.writer[i]);
	writers_free(&all);
	if (err == 0)
		err = buffer_commit(&b, 0);
	if (err == 0)
		err = buffer_write(&b, r->out);
	buffer_free(&b);
	return err;
}

/* Write a frame if one is due, after the text that was written before it. */
static int
frame(struct report *r)
{
	const long now = wp_clock_ms();
	int err;

	if (now - last_frame < EVERY_MS || r->own == NULL)
		return 0;
	last_frame = now;
	err = text_flush(r);
	return err != 0 ? err : put_frame(r);
}

static int
top_hit(struct report *r, const struct ex_hit *hit)
{
	const int err = text_hit(r, hit);

	return err != 0 ? err : frame(r);
}

static int
top_flush(struct report *r)
{
	const int err = text_flush(r);

	return err != 0 ? err : frame(r);
}

const struct report_ops report_top = {
	.name = "top", .start = text_start, .watch = text_watch,
	.event = text_event, .hit = top_hit, .lost = text_lost,
	.warning = text_warning, .flush = top_flush, .end = text_end,
};
