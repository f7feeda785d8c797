/* page_watch: the section of a watch. */
#include "html/page.h"

#include <stdlib.h>

#include "html/html_escape.h"
#include "html/timeline_svg.h"

/* The limits for all sections together: bytes of writers, and bins of
   timelines. */
enum { WRITERS_BYTES = 800000, BINS = 4 * TIMELINE_BINS };

/* "long, 8 bytes at 0x404090, writes" */
static void
put_what(struct buffer *b, const struct ex_watch *watch,
    const struct timeline *t)
{
	if (t != NULL && *t->type != '\0') {
		html_put(b, t->type);
		buffer_puts(b, ", ");
	}
	if (watch->pending)
		buffer_puts(b, "when it is there");
	else if (watch->len == 0)
		buffer_puts(b, "in each thread");
	else {
		if (watch->access != WP_EXEC) {
			page_put_count(b, watch->len, "byte");
			buffer_puts(b, " ");
		}
		buffer_puts(b, "at <code>");
		buffer_hex(b, watch->addr);
		buffer_puts(b, "</code>");
	}
	buffer_puts(b, ", watched for ");
	buffer_puts(b, text_access_words(watch->access));
}

static uint64_t
hits_of(const struct writers *writers, unsigned number, size_t *n)
{
	uint64_t hits = 0;

	*n = 0;
	for (size_t i = 0; i < writers->n; i++) {
		const struct summary_row *row = &writers->writer[i].row;

		if (ex_watch_number(row->watch) != number)
			continue;
		hits += row->count;
		*n += !writers->writer[i].again && !row->others;
	}
	return hits;
}

/* Writers get the colours 1, 2 and so on in the order of their hits, and the
   others 0. */
static void
choose_colours(const struct timeline *t,
    unsigned char colour[TIMELINE_WRITERS])
{
	colour[0] = 0;
	for (unsigned i = 1; i < TIMELINE_WRITERS; i++) {
		colour[i] = 1;
		for (unsigned k = 1; k < TIMELINE_WRITERS; k++)
			colour[i] += t->writer[k].count > t->writer[i].count ||
			    (k < i &&
			    t->writer[k].count == t->writer[i].count);
	}
}

static void
put_value(struct buffer *b, const struct range_value *value)
{
	const size_t start = b->len;

	value_range_put(b, value);
	html_escape(b, start);
}

/* "0.25 ms" */
static void
put_width(struct buffer *b, uint64_t ns)
{
	const double width = (double)ns;

	if (width < 1e3)
		buffer_printf(b, "%.0f ns", width);
	else if (width < 1e6)
		buffer_printf(b, "%.3g \302\265s", width / 1e3);
	else if (width < 1e9)
		buffer_printf(b, "%.3g ms", width / 1e6);
	else
		buffer_printf(b, "%.6g s", width / 1e9);
}

/* Put the upper end of the scale, and what the drawing shows. */
static void
put_upper_end(struct buffer *b, const struct timeline *t)
{
	buffer_puts(b, "<div class=\"ends\"><span>");
	if (timeline_has_values(t)) {
		put_value(b, &t->largest);
		buffer_puts(b, "</span><span>values");
	} else {
		page_put_count(b, timeline_svg_most(t), "hit");
		buffer_puts(b, "</span><span>hits in ");
		put_width(b, UINT64_C(1) << t->shift);
	}
	buffer_puts(b, "</span></div>\n");
}

static void
put_lower_end(const struct report *r, struct buffer *b,
    const struct timeline *t)
{
	buffer_puts(b, "<figcaption><span>");
	if (timeline_has_values(t)) {
		put_value(b, &t->least);
		buffer_puts(b, " &#183; ");
	}
	text_put_time(r, b, t->first, " s");
	buffer_puts(b, "</span><span>");
	text_put_time(r, b, t->last, " s");
	buffer_puts(b, "</span></figcaption>\n");
}

/* Put what the timeline does not show. */
static void
put_gaps(struct buffer *b, const struct timeline *t)
{
	if (t->before > 0) {
		buffer_puts(b, "<p class=\"small dim\">");
		page_put_count(b, t->before, "hit");
		buffer_puts(b, " from before the process that explains was "
		    "replaced: not on the timeline.</p>\n");
	}
	if (timeline_has_values(t) && t->valued < t->hits) {
		buffer_puts(b, "<p class=\"small dim\">");
		page_put_count(b, t->hits - t->valued, "hit");
		buffer_puts(b, " left no value that is proved: not on the "
		    "timeline.</p>\n");
	}
}

/* A watch without hits of known time has a timeline, too. */
static void
put_no_timeline(struct buffer *b)
{
	buffer_puts(b, "<figure><svg viewBox=\"0 0 10 10\" role=\"img\" "
	    "aria-label=\"nothing to draw\"></svg></figure>\n");
}

static void
put_timeline(const struct report *r, struct buffer *b, struct timeline *t,
    const unsigned char *colour, const struct report_end *end, unsigned of)
{
	/* nothing else can have changed it in between */
	const bool whole = t->valued == t->hits && !t->processes &&
	    end->lost == 0 && t->before == 0 && end->skipped == 0 &&
	    end->rejected == 0;

	if (t->hits == 0) {
		put_no_timeline(b);
		put_gaps(b, t);
		return;
	}
	timeline_coarsen(t, of < 4 ? TIMELINE_BINS : BINS / of);
	buffer_puts(b, "<figure>\n");
	put_upper_end(b, t);
	timeline_svg_put(b, t, colour, whole);
	put_lower_end(r, b, t);
	buffer_puts(b, "</figure>\n");
	put_gaps(b, t);
}

/* Put as many writers as there is room for, the most frequent first. */
static void
put_writers(struct report *r, struct buffer *b, const struct writers *writers,
    const struct timeline *t, const unsigned char *colour, uint64_t hits,
    size_t room)
{
	const size_t from = b->len;
	uint64_t left = hits;
	size_t n = 0;

	for (size_t i = 0; i < writers->n; i++) {
		const struct writer *w = &writers->writer[i];
		const size_t start = b->len;

		if (ex_watch_number(w->row.watch) != t->number)
			continue;
		page_put_writer(r, t, w, w->row.others ? 0 :
		    colour[timeline_place_of(t, &w->row)], hits,
		    n++ == 0 || (w->row.stray && n < 4));
		if (b->len - from > room) {
			b->len = start;
			break;
		}
		left -= w->row.count;
	}
	if (left == 0)
		return;
	buffer_puts(b, "<p class=\"small dim\">");
	page_put_count(b, left, "hit");
	buffer_puts(b, " of more writers are not shown: <code>-o summary"
	    "</code> has them.</p>\n");
}

void
page_put_watch(struct report *r, const struct ex_watch *watch,
    const struct writers *writers, const struct report_end *end, unsigned of)
{
	struct buffer *b = &((struct page *)r->own)->text.out;
	const unsigned number = ex_watch_number(watch);
	struct timeline *t = page_timeline(r->own, number);
	unsigned char colour[TIMELINE_WRITERS];
	size_t n;
	const uint64_t hits = hits_of(writers, number, &n);

	buffer_printf(b, "<section id=\"w%u\">\n<h2><code>", number);
	html_put_max(b, watch->spec == NULL ? "watch" : watch->spec, PAGE_NAME);
	buffer_puts(b, "</code></h2>\n<p class=\"dim small\">");
	put_what(b, watch, t);
	buffer_puts(b, "</p>\n<p>");
	page_put_count(b, hits, "hit");
	if (n > 0) {
		buffer_puts(b, " by ");
		page_put_count(b, n, watch->access == WP_WRITE ? "writer" :
		    "place");
	}
	buffer_puts(b, "</p>\n");
	if (t == NULL)
		put_no_timeline(b);
	else {
		choose_colours(t, colour);
		put_timeline(r, b, t, colour, end, of);
		put_writers(r, b, writers, t, colour, hits, WRITERS_BYTES / of);
	}
	buffer_puts(b, "</section>\n");
}
