/*
 * text_tables: the end of the text report: for each watch its backtraces, or,
 * with --count, its number of hits; and the stray writers.  A summary consists
 * of these only, with values and the backtraces themselves.
 */
#include <string.h>

#include "report/summary.h"
#include "text/text.h"
#include "report/value_range.h"
#include "text/writers.h"

/* The most that a row of the summary shows of each. */
enum { THREADS_SHOWN = 3, BACKTRACES_SHOWN = 3, CALLERS_SHOWN = 4 };

/* The columns of the summary. */
enum column { COUNT, SHARE, TIME, THREADS, VALUES, HIT, WHERE, COLUMNS };

static const char *const headings[] = {
	[COUNT] = "hits", [SHARE] = "share", [TIME] = "first..last",
	[THREADS] = "threads", [VALUES] = "values", [HIT] = "backtrace",
	[WHERE] = "where",
};

static void
put_threads(struct buffer *b, const struct summary_row *row)
{
	if (row->others)
		return;
	buffer_printf(b, "%u:", row->nthreads);
	for (unsigned i = 0; i < row->nthreads && i < THREADS_SHOWN; i++)
		buffer_printf(b, " %d", (int)row->threads[i]);
	if (row->nthreads > THREADS_SHOWN)
		buffer_puts(b, " ...");
}

static bool
is_same(const struct range_value *a, const struct range_value *b)
{
	return a->len == b->len && memcmp(a->byte, b->byte, a->len) == 0;
}

static void
put_end_value(struct buffer *b, const struct range_value *value)
{
	if (value->known)
		value_range_put(b, value);
	else
		buffer_puts(b, "?");
}

void
text_put_values(struct buffer *b, const struct summary_row *row)
{
	const struct value_range *range = row->values;

	if (range == NULL || (!range->first.known && !range->last.known))
		return;
	if (range->least.known && is_same(&range->least, &range->largest)) {
		value_range_put(b, &range->first);
		return;
	}
	put_end_value(b, &range->first);
	if (row->count > 1) {
		buffer_puts(b, " .. ");
		put_end_value(b, &range->last);
	}
	if (!range->least.known)
		return;
	buffer_puts(b, ", from ");
	value_range_put(b, &range->least);
	buffer_puts(b, " to ");
	value_range_put(b, &range->largest);
}

void
text_put_where(const struct text *text, struct buffer *b,
    const struct summary_row *row)
{
	const struct ex_frame *frame = writer_frame(row);

	if (row->others) {
		buffer_puts(b, "other backtraces");
		return;
	}
	text_put_access(b, text_verdict(row->stray, row->unjudged), row->access,
	    row->kernel, row->syscall, row->work);
	if (frame == NULL)
		return;
	buffer_puts(b, row->late ? ", unblocked in " :
	    row->kernel ? " for " : " in ");
	text_put_name(b, frame);
	if (frame->file != NULL || frame->module != NULL) {
		buffer_puts(b, " ");
		text_put_place(text, b, frame);
	}
}

/* Put the callers that distinguish a backtrace from the others of its
   writer. */
static void
put_callers(struct buffer *b, const struct summary_row *row)
{
	const struct ex_frame *frame = writer_frame(row);
	const struct ex_frame *end = row->stack == NULL ? NULL :
	    row->stack->frame + row->stack->n;
	unsigned n = 0;

	buffer_puts(b, " ");
	while (frame != NULL && ++frame < end && n++ < CALLERS_SHOWN) {
		buffer_puts(b, " < ");
		text_put_name(b, frame);
	}
	if (frame != NULL && frame < end)
		buffer_puts(b, " < ...");
}

/* What the backtraces of a writer are called. */
static void
put_backtraces(struct text *text, struct buffer *b, const struct writer *w)
{
	const uint64_t *seq;

	for (size_t i = 0; i < w->n && i < BACKTRACES_SHOWN &&
	    !w->row.others; i++) {
		const struct summary_row *row = w->of[i];

		seq = row->stack == NULL ? NULL :
		    text_printed_at(text, row->stack->index);
		buffer_printf(b, "%s#%llu", i > 0 ? " " : "",
		    (unsigned long long)(seq != NULL && *seq != 0 ? *seq :
		    row->first_seq));
	}
	if (w->n > BACKTRACES_SHOWN)
		buffer_puts(b, " ...");
}

/* Seconds since the run began, to the millisecond. */
static double
seconds(const struct report *r, uint64_t time)
{
	return (double)(int64_t)(time - r->begin.time) / 1e9;
}

/* Put a cell of the summary into the scratch buffer; below: the row is one
   backtrace, below its writer. */
static void
make_cell(struct report *r, const struct writer *w, bool below, uint64_t total,
    enum column column)
{
	const struct summary_row *row = &w->row;
	struct text *text = r->own;
	struct buffer *b = &text->scratch;

	b->len = 0;
	switch (column) {
	case COUNT:
		buffer_dec(b, row->count);
		buffer_puts(b, row->partial ? "+" : "");
		break;
	case SHARE:
		buffer_printf(b, "%.1f%%",
		    100.0 * (double)row->count / (double)total);
		break;
	case TIME:
		buffer_printf(b, "%.3f..%.3fs", seconds(r, row->first),
		    seconds(r, row->last));
		break;
	case THREADS:
		put_threads(b, row);
		break;
	case VALUES:
		text_put_values(b, row);
		break;
	case HIT:
		put_backtraces(text, b, w);
		break;
	default:
		if (below)
			put_callers(b, row);
		else
			text_put_where(text, b, row);
	}
}

/* The table has values only in a summary; otherwise they are printed with the
   hits. */
static bool
has_column(const struct report *r, enum column column)
{
	return column != VALUES || r->summary_only;
}

/* Rows of one watch, in all processes that have it, in a table of its own. */
struct watch_table {
	const struct ex_watch *watch;
	const struct writers *all;	/* of all watches */
	uint64_t hits;		/* of this watch */
	size_t writers;		/* of this watch, */
	size_t backtraces;	/* and theirs */
	bool others;		/* there is one of several */
	size_t width[COLUMNS];
};

static bool
is_of(const struct watch_table *t, const struct writer *w)
{
	return ex_watch_number(w->row.watch) == ex_watch_number(t->watch);
}

/* Call fn for each writer, and for each of its backtraces if there are several
   and they are wanted, until a call returns another result than 0, which is
   the result. */
static int
each_line(struct report *r, struct watch_table *t,
    int (*fn)(struct report *, struct watch_table *, const struct writer *,
    bool))
{
	int rc = 0;

	for (size_t i = 0; i < t->all->n && rc == 0; i++) {
		const struct writer *w = &t->all->writer[i];

		if (!is_of(t, w))
			continue;
		rc = fn(r, t, w, false);
		for (size_t k = 0; r->verbose && w->n > 1 && k < w->n &&
		    rc == 0; k++) {
			const struct writer one = {
				.row = *w->of[k], .of = &w->of[k], .n = 1,
			};

			rc = fn(r, t, &one, true);
		}
	}
	return rc;
}

static int
measure_line(struct report *r, struct watch_table *t, const struct writer *w,
    bool below)
{
	for (unsigned c = 0; c < COLUMNS; c++) {
		make_cell(r, w, below, t->hits, c);
		text_widen(r->own, &t->width[c]);
	}
	return 0;
}

/* Count the watch's rows and measure their columns. */
static void
table_measure(struct report *r, struct watch_table *t)
{
	for (size_t i = 0; i < t->all->n; i++) {
		const struct writer *w = &t->all->writer[i];

		if (is_of(t, w)) {
			t->hits += w->row.count;
			t->writers += !w->row.others && !w->again;
			t->backtraces += w->row.others ? 0 : w->n;
			t->others |= w->row.others;
		}
	}
	for (unsigned c = 0; c < COLUMNS; c++)
		t->width[c] = strlen(headings[c]);
	(void)each_line(r, t, measure_line);
}

/* Put the cells of a line; w NULL: those of the headings. */
static void
put_cells(struct report *r, const struct watch_table *t, const struct writer *w,
    bool below)
{
	struct text *text = r->own;

	for (unsigned c = 0; c < COLUMNS; c++) {
		if (!has_column(r, c))
			continue;
		text->scratch.len = 0;
		if (w == NULL)
			buffer_puts(&text->scratch, headings[c]);
		else
			make_cell(r, w, below, t->hits, c);
		buffer_puts(&text->out, "  ");
		text_put_cell(text, c == WHERE ? 0 : t->width[c],
		    c == COUNT || c == SHARE);
	}
	buffer_puts(&text->out, "\n");
}

/* 0 or -errno. */
static int
put_line(struct report *r, struct watch_table *t, const struct writer *w,
    bool below)
{
	const size_t start = ((struct text *)r->own)->out.len;

	put_cells(r, t, w, below);
	return text_write(r, start, false);
}

/* 0 or -errno. */
static int
put_table(struct report *r, struct watch_table *t)
{
	struct buffer *b = &((struct text *)r->own)->out;

	table_measure(r, t);
	if (t->hits == 0)
		return 0;
	if (t->backtraces == 0)
		t->backtraces = t->writers = 1;
	buffer_puts(b, "\n");
	text_put_watch_name(r, b, t->watch);
	buffer_printf(b, ": %llu hit%s, %s%zu backtrace%s",
	    (unsigned long long)t->hits, t->hits == 1 ? "" : "s",
	    t->others ? "at least " : "", t->backtraces,
	    t->backtraces == 1 ? "" : "s");
	if (t->writers < t->backtraces)
		buffer_printf(b, " of %zu writer%s", t->writers,
		    t->writers == 1 ? "" : "s");
	buffer_puts(b, "\n");
	put_cells(r, t, NULL, false);
	return each_line(r, t, put_line);
}

/* A summary names a backtrace by the first hit of one of its rows. */
static void
name_backtraces(struct report *r, const struct summary_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t *seq = rows[i].stack == NULL ? NULL :
		    text_printed_at(r->own, rows[i].stack->index);

		if (seq != NULL && *seq == 0)
			*seq = rows[i].first_seq;
	}
}

/* Print a backtrace where the row is the one that names it. */
static int
put_backtrace(struct report *r, const struct summary_row *row)
{
	struct text *text = r->own;
	struct buffer *b = &text->out;
	const size_t start = b->len;
	const uint64_t *seq;

	if (row->stack == NULL)
		return 0;
	/* the name may have been forgotten */
	seq = text_printed_at(text, row->stack->index);
	if (seq != NULL && *seq != 0 && *seq != row->first_seq)
		return 0;
	buffer_printf(b, "\n#%llu  ", (unsigned long long)row->first_seq);
	text_put_where(text, b, row);
	buffer_puts(b, "\n");
	text_put_stack(r, row->stack);
	return text_write(r, start, false);
}

/* The columns of the list of stray writers. */
enum { TIMES, WRITER, PLACE, TOUCHED, FIRST, FINDING_COLUMNS };

/* Put a cell of that list into the scratch buffer. */
static void
make_finding_cell(struct report *r, const struct finding *f, unsigned column)
{
	struct text *text = r->own;
	struct buffer *b = &text->scratch;

	b->len = 0;
	switch (column) {
	case TIMES:
		buffer_printf(b, "%llux", (unsigned long long)f->count);
		break;
	case WRITER:
		if (f->culprit != NULL)
			text_put_name(b, f->culprit);
		else
			buffer_puts(b, f->late ? "delivered late" : "unknown");
		break;
	case PLACE:
		if (f->culprit != NULL)
			text_put_place(text, b, f->culprit);
		break;
	case TOUCHED:
		text_put_watch(b, f->watch);
		break;
	default:
		buffer_printf(b, "first #%llu",
		    (unsigned long long)f->first_seq);
	}
}

/* Whether a finding is not judged because its backtrace is incomplete. */
static bool
has_missing(const struct finding *const *findings, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (findings[i]->incomplete && !findings[i]->late)
			return true;
	return false;
}

/* Print a line for each writer that is stray, or may be. */
static int
put_findings(struct report *r, const char *title,
    const struct finding *const *findings, size_t n)
{
	struct text *text = r->own;
	size_t width[FINDING_COLUMNS] = {0}, start = text->out.len;

	if (n == 0)
		return 0;
	for (size_t i = 0; i < n; i++) {
		for (unsigned c = 0; c < FIRST; c++) {
			make_finding_cell(r, findings[i], c);
			text_widen(text, &width[c]);
		}
	}
	buffer_puts(&text->out, "\n");
	text_painted(r, &text->out, PAINT_BAD, title);
	buffer_printf(&text->out, ": %zu %s\n", n, policy_word(findings, n));
	for (size_t i = 0; i < n; i++) {
		for (unsigned c = 0; c < FINDING_COLUMNS; c++) {
			make_finding_cell(r, findings[i], c);
			buffer_puts(&text->out, "  ");
			text_put_cell(text, width[c], c == TIMES);
		}
		buffer_puts(&text->out, "\n");
	}
	if (has_missing(findings, n))
		buffer_puts(&text->out, "  a caller that is allowed may be "
		    "missing in their backtraces; where these are truncated, "
		    "--stack copies more\n");
	return text_write(r, start, false);
}

/* Put the hits of a watch by threads, as far as the threads are known. */
static void
put_thread_counts(const struct report *r, struct buffer *b,
    const struct report_end *end, unsigned watch)
{
	const pid_t in = r->begin.watches[watch]->pid;
	uint64_t left = end->counts[watch];

	for (size_t i = 0; i < end->nthreads; i++) {
		const struct wp_thread_count *thread = &end->threads[i];

		if (thread->watch != watch || thread->count > left)
			continue;
		left -= thread->count;
		buffer_printf(b, "%10llu    thread %d",
		    (unsigned long long)thread->count, (int)thread->tid);
		if (thread->pid != (in != 0 ? in : r->begin.pid))
			buffer_printf(b, " of process %d", (int)thread->pid);
		buffer_puts(b, "\n");
	}
	if (left > 0 && left < end->counts[watch])
		buffer_printf(b, "%10llu    unknown threads\n",
		    (unsigned long long)left);
}

/* With --count, print the hits of each watch. */
static int
put_counts(struct report *r, const struct report_end *end)
{
	const uint64_t *counts = end->counts;
	struct buffer *b = &((struct text *)r->own)->out;
	size_t start = b->len;

	buffer_puts(b, "\n      hits  watch\n");
	for (unsigned i = 0; i < r->begin.nwatches; i++) {
		const struct ex_watch *watch = r->begin.watches[i];

		buffer_printf(b, "%10llu  ", (unsigned long long)counts[i]);
		text_put_watch_name(r, b, watch);
		buffer_puts(b, " ");
		text_put_bytes(r, b, watch, watch->addr, watch->len, NULL);
		buffer_puts(b, ", ");
		buffer_puts(b, text_access_words(watch->access));
		text_put_process(b, watch);
		buffer_puts(b, "\n");
		put_thread_counts(r, b, end, i);
	}
	return text_write(r, start, false);
}

enum { PARTS_SHOWN = 64 };

/* Print the parts of a watch that were hit, with the time that each had a slot;
   then the shortest and the longest time that any part had one. */
static void
put_coverage_of(struct report *r, struct buffer *b, const struct coverage *part,
    size_t n)
{
	const struct ex_watch *watch = r->begin.watches[part->watch];
	double least = 1, most = 0, share;
	size_t shown = 0;

	buffer_puts(b, "\n   watched       hits  part of ");
	text_put_watch_name(r, b, watch);
	text_put_process(b, watch);
	buffer_puts(b, "\n");
	for (size_t i = 0; i < n; i++) {
		share = coverage_share(&part[i]);
		least = share < least ? share : least;
		most = share > most ? share : most;
		if (part[i].hits == 0 || ++shown > PARTS_SHOWN)
			continue;
		buffer_printf(b, "%8.2f %% %10llu  +%#llx, %llu byte%s\n",
		    share * 100, (unsigned long long)part[i].hits,
		    (unsigned long long)(part[i].addr - watch->addr),
		    (unsigned long long)part[i].len,
		    part[i].len == 1 ? "" : "s");
	}
	if (shown > PARTS_SHOWN)
		buffer_printf(b, "  and %zu more parts that were hit\n",
		    shown - PARTS_SHOWN);
	buffer_printf(b, "  %zu part%s, each watched for %.2f to %.2f %% of "
	    "%.3f s\n", n, n == 1 ? "" : "s", least * 100, most * 100,
	    (double)part->all / 1e9);
}

/* Print how many objects there were, and how many were watched. */
static void
put_objects(struct report *r, struct buffer *b, const struct coverage *c)
{
	buffer_puts(b, "\n  ");
	text_put_watch_name(r, b, r->begin.watches[c->watch]);
	buffer_printf(b, ": %llu object%s, of which %llu %s watched",
	    (unsigned long long)c->objects, c->objects == 1 ? "" : "s",
	    (unsigned long long)c->watched, c->watched == 1 ? "was" : "were");
	if (!c->unknown)
		buffer_printf(b, ", for %.2f %% of the time that all lived",
		    coverage_share(c) * 100);
	buffer_puts(b, "\n");
}

static void
put_heap(struct buffer *b, const struct coverage *c)
{
	buffer_puts(b, "\n  ");
	if (c->sites > 0)
		buffer_printf(b, "%llu of %llu call sites (%.2f %%) and ",
		    (unsigned long long)c->sites_watched,
		    (unsigned long long)c->sites, (double)c->sites_watched /
		    (double)c->sites * 100);
	buffer_printf(b, "%llu of %llu blocks (%.2f %%) were watched\n",
	    (unsigned long long)c->on, (unsigned long long)c->all,
	    coverage_share(c) * 100);
}

static int
put_coverage(struct report *r, const struct report_end *end)
{
	struct buffer *b = &((struct text *)r->own)->out;
	const size_t start = b->len;
	size_t n;

	for (size_t i = 0; i < end->ncoverage; i += n) {
		for (n = 1; i + n < end->ncoverage && end->coverage[i].watch ==
		    end->coverage[i + n].watch;)
			n++;
		if (end->coverage[i].heap)
			put_heap(b, &end->coverage[i]);
		else if (end->coverage[i].instances)
			put_objects(r, b, &end->coverage[i]);
		else
			put_coverage_of(r, b, &end->coverage[i], n);
	}
	return end->ncoverage == 0 ? 0 : text_write(r, start, false);
}

int
text_tables(struct report *r, const struct report_end *end)
{
	const struct summary_row *rows;
	size_t n = summary_rows(r->summary, &rows);
	struct writers writers;
	int rc;

	if (r->summary_only)
		name_backtraces(r, rows, n);
	rc = writers_join(&writers, rows, n, r->summary_only);
	for (unsigned i = 0; i < r->begin.nwatches && rc == 0; i++) {
		struct watch_table t = {
			.watch = r->begin.watches[i], .all = &writers,
		};

		if (!text_has_number(r->begin.watches, i,
		    ex_watch_number(t.watch)))
			rc = put_table(r, &t);
	}
	writers_free(&writers);
	for (size_t i = 0; i < n && r->summary_only && rc == 0; i++)
		rc = put_backtrace(r, &rows[i]);
	if (rc == 0 && end->counts != NULL)
		rc = put_counts(r, end);
	if (rc == 0)
		rc = put_findings(r, "stray", end->findings, end->nfindings);
	if (rc == 0)
		rc = put_findings(r, "not judged", end->doubts, end->ndoubts);
	if (rc == 0)
		rc = put_coverage(r, end);
	return rc;
}
