/* json_end: the lines at the end of a run. */
#include "json/json.h"

#include "report/summary.h"
#include "report/value_range.h"

/* Put those values of a row that are proved. */
static void
put_range(struct buffer *b, const struct value_range *range)
{
	const struct {
		const char *name;
		const struct range_value *value;
	} values[] = {
		{"first", &range->first}, {"last", &range->last},
		{"min", &range->least}, {"max", &range->largest},
	};
	const size_t start = b->len;
	bool any = false;

	field(b, "values");
	buffer_put(b, "{", 1);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		if (!values[i].value->known)
			continue;
		any = true;
		field(b, values[i].name);
		buffer_put(b, "\"", 1);
		value_range_put_hex(b, values[i].value);
		buffer_put(b, "\"", 1);
		if (i >= 2 && *values[i].value->text != '\0')
			field_text(b, i == 2 ? "min_text" : "max_text",
			    values[i].value->text);
	}
	buffer_put(b, "}", 1);
	if (!any)
		b->len = start;
}

static void
put_threads(struct buffer *b, const struct summary_row *row)
{
	field(b, "threads");
	buffer_put(b, "[", 1);
	for (unsigned i = 0; i < row->nthreads; i++)
		buffer_printf(b, i == 0 ? "%d" : ",%d", (int)row->threads[i]);
	buffer_put(b, "]", 1);
}

static int
put_summary(struct report *r, const struct summary_row *row)
{
	const int named = r->summary_only && row->stack != NULL ?
	    json_name_stack(r, row->stack) : 0;
	struct buffer *b;

	if (named != 0)
		return named;
	b = json_line_begin(r, "summary");
	field_dec(b, "watch", ex_watch_number(row->watch));
	if (row->stack != NULL)
		json_field_stack(b, "stack", r, row->stack);
	field_flag(b, "others", row->others);
	field_flag(b, "partial", row->partial);
	if (!row->others)
		field_text(b, "access", row->access);
	field_dec(b, "count", row->count);
	json_field_time(b, "first", r, row->first);
	json_field_time(b, "last", r, row->last);
	if (!row->others)
		put_threads(b, row);
	if (row->values != NULL)
		put_range(b, row->values);
	return json_line_end(r);
}

/* With --count, write the hits on a watch that a thread made; NULL: those of
   threads that are not known. */
static int
put_count(struct report *r, const struct ex_watch *watch,
    const struct wp_thread_count *thread, uint64_t count)
{
	struct buffer *b = json_line_begin(r, "count");

	field_dec(b, "watch", ex_watch_number(watch));
	if (thread == NULL)
		json_field_pid(b, watch);
	else {
		field_dec(b, "pid", (uint64_t)thread->pid);
		field_dec(b, "tid", (uint64_t)thread->tid);
	}
	field_dec(b, "count", count);
	return json_line_end(r);
}

/* Write the hits on a watch of each thread, and those of threads that are not
   known. */
static int
put_counts(struct report *r, const struct report_end *end, unsigned watch)
{
	const struct ex_watch *it = r->begin.watches[watch];
	uint64_t left = end->counts[watch];
	int rc = 0;

	for (size_t i = 0; i < end->nthreads && rc == 0; i++) {
		const struct wp_thread_count *thread = &end->threads[i];

		if (thread->watch != watch || thread->count > left)
			continue;
		left -= thread->count;
		rc = put_count(r, it, thread, thread->count);
	}
	return rc != 0 || (left == 0 && end->counts[watch] > 0) ? rc :
	    put_count(r, it, NULL, left);
}

/* From 0 to 1. */
static void
field_share(struct buffer *b, const char *name, double share)
{
	field(b, name);
	buffer_dec(b, (uint64_t)share);
	buffer_puts(b, ".");
	buffer_digits(b, (uint64_t)((share - (double)(uint64_t)share) * 1e6),
	    6);
}

static int
put_heap_coverage(struct report *r, const struct coverage *c)
{
	struct buffer *b = json_line_begin(r, "coverage");

	if (c->sites > 0) {
		field_dec(b, "sites", c->sites);
		field_share(b, "sites_share", (double)c->sites_watched /
		    (double)c->sites);
	}
	field_dec(b, "blocks", c->all);
	field_share(b, "share", coverage_share(c));
	return json_line_end(r);
}

static int
put_coverage(struct report *r, const struct coverage *part)
{
	struct buffer *b = json_line_begin(r, "coverage");
	const struct ex_watch *watch = r->begin.watches[part->watch];

	field_dec(b, "watch", ex_watch_number(watch));
	json_field_pid(b, watch);
	if (part->instances) {
		field_dec(b, "objects", part->objects);
	} else {
		field_hex(b, "addr", part->addr);
		field_dec(b, "len", part->len);
	}
	if (!part->unknown)
		field_share(b, "share", coverage_share(part));
	field_dec(b, "hits", part->hits);
	return json_line_end(r);
}

static int
put_account(struct report *r, const struct report_end *end)
{
	struct buffer *b = json_line_begin(r, "end");

	field_dec(b, "hits", end->hits);
	field_dec(b, "reported", end->reported);
	field_dec(b, "lost", end->lost);
	if (end->conditional)
		field_dec(b, "rejected", end->rejected);
	if (end->changed)
		field_dec(b, "unchanged", end->unchanged);
	if (end->thinned)
		field_dec(b, "skipped", end->skipped);
	if (end->handled > 0)
		field_dec(b, "handled", end->handled);
	if (end->merged > 0)
		field_dec(b, "merged", end->merged);
	if (end->dropped > 0)
		field_dec(b, "dropped", end->dropped);
	if (end->judged)
		field_dec(b, "stray", end->stray);
	if (end->unjudged > 0)
		field_dec(b, "unjudged", end->unjudged);
	if (end->uptime.known && end->uptime.threads > 0)
		field_dec(b, "threads", end->uptime.threads);
	if (end->uptime.known) {
		field_dec(b, "watched_ns", end->uptime.ran - end->uptime.off);
		field_dec(b, "gap_ns", end->uptime.off);
		if (end->uptime.unknown > 0)
			field_dec(b, "unmeasured", end->uptime.unknown);
	}
	if (end->reason != NULL)
		field_text(b, "reason", end->reason);
	field(b, "status");
	buffer_printf(b, "%d", end->status);
	return json_line_end(r);
}

int
json_put_end(struct report *r, const struct report_end *end)
{
	const struct summary_row *rows;
	const size_t n = summary_rows(r->summary, &rows);
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++)
		rc = put_summary(r, &rows[i]);
	for (unsigned i = 0; end->counts != NULL && rc == 0 &&
	    i < r->begin.nwatches; i++)
		rc = put_counts(r, end, i);
	for (size_t i = 0; i < end->nfindings && rc == 0; i++)
		rc = json_put_finding(r, end->findings[i]);
	for (size_t i = 0; i < end->ndoubts && rc == 0; i++)
		rc = json_put_finding(r, end->doubts[i]);
	for (size_t i = 0; i < end->ncoverage && rc == 0; i++)
		rc = end->coverage[i].heap ?
		    put_heap_coverage(r, &end->coverage[i]) :
		    put_coverage(r, &end->coverage[i]);
	return rc != 0 ? rc : put_account(r, end);
}
