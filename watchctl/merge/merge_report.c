/* merge_report: the rows of all runs. */
#include "merge/merge_report.h"

#include <string.h>

#include "base/table.h"
#include "util/field.h"
#include "util/wall_clock.h"

enum { WRITE_AT = 64 << 10, THREADS_SHOWN = 3 };

/* --- JSON Lines --- */

static int
line_end(struct buffer *b, FILE *out)
{
	buffer_puts(b, "}\n");
	return b->len < WRITE_AT && !b->failed ? 0 :
	    b->failed ? buffer_commit(b, 0) : buffer_write(b, out);
}

static int
put_start(struct buffer *b, const struct merged *m, FILE *out)
{
	struct merged_account all;
	const struct merged_watch *watch;
	const size_t n = merged_watches(m, &watch);

	merged_account(m, &all);
	buffer_puts(b, "{\"type\":\"start\"");
	field_text(b, "schema", "watchctl/1");
	field_dec(b, "runs", all.runs);
	wall_field(b, (uint64_t)all.wall);
	field(b, "watches");
	buffer_puts(b, "[");
	for (size_t i = 0; i < n; i++) {
		const char access[] = {watch[i].access, '\0'};

		buffer_puts(b, i == 0 ? "{" : ",{");
		field_dec(b, "id", i + 1);
		field_text(b, "spec", watch[i].spec);
		if (*access != '\0')
			field_text(b, "access", access);
		buffer_puts(b, "}");
	}
	buffer_puts(b, "]");
	return line_end(b, out);
}

static int
put_stack(struct buffer *b, const struct merged_stack *stack, FILE *out)
{
	buffer_puts(b, "{\"type\":\"stack\"");
	field_id(b, "id", stack->id);
	buffer_puts(b, ",");
	buffer_puts(b, stack->json);
	return line_end(b, out);
}

/* Relative to the start of the first run or, if that is not known, to that of
   each run itself. */
static void
field_time(struct buffer *b, const char *name, const struct merged_row *row,
    int64_t time, int64_t wall)
{
	const int64_t from = row->timed ? wall : 0;

	/* the difference may exceed an int64_t */
	if (!row->untimed && row->first <= row->last)
		field_seconds(b, name, time < from ? 0 :
		    (uint64_t)time - (uint64_t)from);
}

static void
put_number(struct buffer *b, const struct merged_number *number)
{
	buffer_puts(b, number->negative ? "-" : "");
	buffer_dec(b, number->negative ? -number->bits : number->bits);
}

static void
field_number(struct buffer *b, const char *name,
    const struct merged_number *number)
{
	field(b, name);
	buffer_puts(b, "\"");
	put_number(b, number);
	buffer_puts(b, "\"");
}

static void
put_values(struct buffer *b, const struct merged_row *row)
{
	const struct merged_values *v = &row->values;
	const bool ranged = v->first_at != 0 && !row->unranged;

	if (!v->first.known && !v->last.known && !ranged)
		return;
	field(b, "values");
	buffer_puts(b, "{");
	if (v->first.known)
		field_hex(b, "first", v->first.bits);
	if (v->last.known)
		field_hex(b, "last", v->last.bits);
	if (ranged) {
		field_hex(b, "min", v->min.bits);
		field_hex(b, "max", v->max.bits);
		field_number(b, "min_text", &v->min.number);
		field_number(b, "max_text", &v->max.number);
	}
	buffer_puts(b, "}");
}

static int
put_row(struct buffer *b, const struct merged *m, const struct merged_row *row,
    int64_t wall, FILE *out)
{
	const struct merged_place *place = merged_place(m, row->place);

	buffer_puts(b, "{\"type\":\"summary\"");
	if (*place->host != '\0')
		field_text(b, "host", place->host);
	if (place->ranked)
		field_dec(b, "rank", place->rank);
	field_dec(b, "watch", (uint64_t)row->watch + 1);
	if (row->stack != 0)
		field_id(b, "stack", row->stack);
	field_flag(b, "others", row->others);
	if (*row->access != '\0')
		field_text(b, "access", row->access);
	field_dec(b, "count", row->count);
	field_time(b, "first", row, row->first, wall);
	field_time(b, "last", row, row->last, wall);
	field(b, "threads");
	buffer_puts(b, "[");
	for (size_t i = 0; i < row->nthreads; i++)
		buffer_printf(b, i == 0 ? "%d" : ",%d", row->threads[i]);
	buffer_puts(b, "]");
	field_flag(b, "more_threads", row->more_threads);
	put_values(b, row);
	return line_end(b, out);
}

static int
put_end(struct buffer *b, const struct merged_account *all,
    const struct merge_count *count, FILE *out)
{
	buffer_puts(b, "{\"type\":\"end\"");
	field_dec(b, "hits", all->hits + all->lost);
	field_dec(b, "reported", all->hits);
	field_dec(b, "lost", all->lost);
	field_dec(b, "runs", all->runs);
	if (all->unended > 0)
		field_dec(b, "unended", all->unended);
	if (all->missing > 0)
		field_dec(b, "missing", all->missing);
	if (count->repeated > 0)
		field_dec(b, "repeated", count->repeated);
	if (count->left_out > 0)
		field_dec(b, "left_out", count->left_out);
	field_dec(b, "status", 0);
	return line_end(b, out);
}

/* Put the backtrace of each row once. */
static int
put_stacks(struct buffer *b, const struct merged *m,
    const struct merged_row *row, size_t n,
    int (*put)(struct buffer *, const struct merged_stack *, FILE *),
    FILE *out)
{
	struct ex_table done = {0};
	int err = 0;

	for (size_t i = 0; i < n && err == 0; i++) {
		const struct merged_stack *stack = row[i].stack == 0 ? NULL :
		    merged_stack(m, row[i].stack);

		if (stack == NULL || ex_table_get(&done, stack->id) != NULL ||
		    !ex_table_reserve(&done, 1))
			continue;
		ex_table_put(&done, stack->id, b);
		err = put(b, stack, out);
	}
	ex_table_free(&done, NULL);
	return err;
}

static int
write_rest(struct buffer *b, int err, FILE *out)
{
	if (err == 0)
		err = buffer_commit(b, 0);
	if (err == 0)
		err = buffer_write(b, out);
	buffer_free(b);
	return err;
}

int
merge_report_json(struct merged *m, const struct merge_count *count, FILE *out)
{
	struct buffer b = {0};
	struct merged_account all;
	const struct merged_row *row;
	size_t n;
	int err;

	merged_account(m, &all);
	err = put_start(&b, m, out);
	n = merged_rows(m, &row);
	if (err == 0)
		err = put_stacks(&b, m, row, n, put_stack, out);
	for (size_t i = 0; i < n && err == 0; i++)
		err = put_row(&b, m, &row[i], all.wall, out);
	if (err == 0)
		err = put_end(&b, &all, count, out);
	return write_rest(&b, err, out);
}

/* --- text --- */

static int
put_text_stack(struct buffer *b, const struct merged_stack *stack, FILE *out)
{
	buffer_printf(b, "backtrace %016llx\n", (unsigned long long)stack->id);
	buffer_puts(b, stack->text);
	return b->len < WRITE_AT ? 0 : buffer_write(b, out);
}

/* The innermost frame of a backtrace. */
static void
put_where(struct buffer *b, const struct merged *m,
    const struct merged_row *row)
{
	const struct merged_stack *stack = merged_stack(m, row->stack);

	if (row->others)
		buffer_puts(b, "other backtraces");
	else if (stack == NULL || *stack->text == '\0')
		buffer_puts(b, "?");
	else	/* after its number */
		buffer_put(b, stack->text + 8, strcspn(stack->text, "\n") - 8);
}

static void
put_text_values(struct buffer *b, const struct merged_row *row)
{
	const struct merged_values *v = &row->values;

	if (v->first_at == 0 || row->unranged)
		return;
	put_number(b, &v->min.number);
	buffer_puts(b, v->max.number.negative ? ".. " : "..");
	put_number(b, &v->max.number);
}

enum { HOST_COLUMNS = 16, VALUE_COLUMNS = 16 };

/* Pad with spaces, at least one. */
static void
pad(struct buffer *b, size_t start, size_t columns)
{
	const size_t used = visible_columns(b->bytes + start, b->len - start);

	buffer_fill(b, ' ', used < columns ? columns - used + 2 : 2);
}

static void
put_text_row(struct buffer *b, const struct merged *m,
    const struct merged_row *row, uint64_t all)
{
	const struct merged_place *place = merged_place(m, row->place);
	size_t start = b->len;

	visible_put(b, *place->host == '\0' ? "?" : place->host);
	pad(b, start, HOST_COLUMNS);
	start = b->len;
	if (place->ranked)
		buffer_dec(b, place->rank);
	else
		buffer_puts(b, "-");
	pad(b, start, 4);
	buffer_printf(b, "%9llu  %5.1f%%  %7zu%s  ",
	    (unsigned long long)row->count, 100.0 * (double)row->count /
	    (double)(all == 0 ? 1 : all), row->nthreads,
	    row->more_threads ? "+" : " ");
	start = b->len;
	put_text_values(b, row);
	pad(b, start, VALUE_COLUMNS);
	if (row->stack != 0)
		buffer_printf(b, "%016llx  ", (unsigned long long)row->stack);
	else
		buffer_fill(b, ' ', 18);
	put_where(b, m, row);
	buffer_puts(b, "\n");
}

static void
put_heading(struct buffer *b, const struct merged_watch *watch, uint64_t hits)
{
	buffer_puts(b, watch->access == 'x' ? "executions of " :
	    watch->access == 'r' ? "reads of " : watch->access == 'w' ?
	    "writes of " : "accesses to ");
	visible_put(b, watch->spec);
	buffer_printf(b, ": %llu\n%-*s  %-4s  %9s  %6s  %7s   %-*s  %-16s  "
	    "%s\n", (unsigned long long)hits, HOST_COLUMNS, "host", "rank",
	    "hits", "share", "threads", VALUE_COLUMNS, "values", "backtrace",
	    "where");
}

int
merge_report_text(struct merged *m, FILE *out)
{
	struct buffer b = {0};
	const struct merged_row *row;
	const struct merged_watch *watch;
	const size_t n = merged_rows(m, &row);
	size_t first = 0;
	int err = 0;

	(void)merged_watches(m, &watch);
	while (first < n && err == 0) {
		uint64_t hits = 0;
		size_t end = first;

		for (; end < n && row[end].watch == row[first].watch; end++)
			hits += row[end].count;
		put_heading(&b, &watch[row[first].watch], hits);
		for (; first < end; first++)
			put_text_row(&b, m, &row[first], hits);
		buffer_puts(&b, "\n");
		if (b.len > WRITE_AT)
			err = buffer_write(&b, out);
	}
	if (err == 0)
		err = put_stacks(&b, m, row, n, put_text_stack, out);
	return write_rest(&b, err, out);
}
